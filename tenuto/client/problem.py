"""From a server's refusal to the exception the caller sees (RFC 9457)."""

from __future__ import annotations

import json
from http import HTTPStatus

from tenuto.client.exchange import Response
from tenuto.errors import ErrorCode, RequestError
from tenuto.redaction import redact

__all__ = ["MAX_PROBLEM_SIZE", "error_code", "problem_error"]

MAX_PROBLEM_SIZE = 64 * 1024
"""Bytes of an error's body that are looked at."""

_PROBLEM = "application/problem+json"

_CODES = {code.value: code for code in ErrorCode}

_COMMON = frozenset({"type", "title", "status", "code", "detail", "remedy", "instance"})


def problem_error(response: Response, body: bytes) -> RequestError:
    """A `RequestError` with the server's own code, message and remedy where it gave them."""
    fields = _fields(response, body)
    code = error_code(str(fields.get("code", ""))) or _code_for(response.status)
    message = fields.get("detail") or fields.get("title") or _plain(response)
    detail = {
        name: value
        for name, value in fields.items()
        if name not in _COMMON and isinstance(value, int | float | str)
    }
    detail["status"] = response.status
    if "retry-after" in response.headers:
        detail["retry-after"] = response.headers["retry-after"]
    return RequestError(
        code,
        redact(str(message)).rstrip("."),
        remedy=redact(str(fields.get("remedy", "") or "")),
        detail=detail,
    )


def error_code(name: str) -> ErrorCode | None:
    """The code of this name; None for one that only a later version knows."""
    return _CODES.get(name)


def _fields(response: Response, body: bytes) -> dict[str, object]:
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != _PROBLEM:
        return {}
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return fields if isinstance(fields, dict) else {}


def _code_for(status: int) -> ErrorCode:
    """A code that tells the caller's mistakes from the server's."""
    preferred = {404: ErrorCode.UNKNOWN_ROUTE, 503: ErrorCode.AT_CAPACITY}
    if status in preferred:
        return preferred[status]
    for code in ErrorCode:
        if code.status == status:
            return code
    return ErrorCode.BAD_REQUEST if status < 500 else ErrorCode.INTERNAL


def _plain(response: Response) -> str:
    try:
        phrase = HTTPStatus(response.status).phrase
    except ValueError:
        phrase = "?"
    where = response.headers.get("location")
    moved = f" and points to {where}" if where and 300 <= response.status < 400 else ""
    return f"the server answered {response.status} {phrase}{moved}"
