"""Errors as HTTP answers: problem details (RFC 9457), never a traceback."""

from __future__ import annotations

import math
from http import HTTPStatus

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from tenuto.auth import TokenError
from tenuto.errors import ErrorCode, RequestError, TenutoError
from tenuto.redaction import redact

__all__ = ["FAILED", "failed", "problem", "refused", "unrouted"]

FAILED = TenutoError(
    ErrorCode.INTERNAL, "the server failed on this request", remedy="its log names the fault"
)
"""What a client is told of a bug of ours."""


def problem(error: TenutoError) -> Response:
    """The answer for an error that came before the first body byte."""
    status = error.code.status
    body = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "code": error.code.value,
        "detail": _clean(error.message),
        "remedy": _clean(error.remedy),
        **error.detail,
    }
    headers = {"cache-control": "no-store"}
    if "retry_after" in error.detail:
        # The field holds whole seconds (RFC 9110 section 10.2.3), the body the exact time.
        headers["retry-after"] = str(math.ceil(float(error.detail["retry_after"])))
    if isinstance(error, TokenError):
        headers["www-authenticate"] = error.challenge
    return JSONResponse(body, status, headers, media_type="application/problem+json")


async def refused(request: Request, error: Exception) -> Response:
    """Exception handler for `TenutoError`."""
    assert isinstance(error, TenutoError)
    return problem(error)


async def failed(request: Request, error: Exception) -> Response:
    """Exception handler for everything else; the guard around the app tells the log."""
    return problem(FAILED)


async def unrouted(request: Request, error: Exception) -> Response:
    """Exception handler for Starlette's own 404 and 405."""
    assert isinstance(error, HTTPException)
    if error.status_code == ErrorCode.METHOD_NOT_ALLOWED.status:
        allowed = (error.headers or {}).get("Allow", "")
        answer = problem(
            RequestError(
                ErrorCode.METHOD_NOT_ALLOWED,
                f"{request.method[:20]} is not possible here",
                remedy=f"use {allowed}",
            )
        )
        answer.headers["allow"] = allowed
        return answer
    return problem(
        RequestError(
            ErrorCode.UNKNOWN_ROUTE,
            f"there is nothing at {request.url.path[:100]}",
            remedy="GET / lists what there is",
        )
    )


def _clean(text: str) -> str:
    """Text that JSON and UTF-8 can carry, whatever a client put into it, save tokens."""
    return redact(text).encode("utf-8", "backslashreplace").decode()
