"""Requests by clients that we did not write: libcurl over HTTP/3 and over HTTP/1.1."""

from __future__ import annotations

import asyncio
import io
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pycurl

__all__ = ["DOORS", "Answer", "fetch", "fetch_soon"]

DOORS = ("quic", "tcp")

_VERSIONS = {"quic": 31, "tcp": pycurl.CURL_HTTP_VERSION_1_1}
"""CURL_HTTP_VERSION_3ONLY is 31; pycurl has no name for it in every release."""


@dataclass(slots=True)
class Answer:
    """What came: `result` is curl's exit code (0 complete, 18 or 95 cut)."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    result: int = 0
    problem: str = ""
    version: int = 0

    @property
    def json(self) -> dict[str, Any]:
        value: dict[str, Any] = json.loads(self.body)
        return value


def fetch(
    door: str,
    port: int,
    path: str,
    *,
    ca: Path,
    method: str = "GET",
    body: bytes | None = None,
    headers: tuple[str, ...] = (),
    timeout: float = 20.0,
) -> Answer:
    """One request; transfer errors are reported in the answer, not raised."""
    answer, collected = Answer(), io.BytesIO()

    def header(line: bytes) -> None:
        name, separator, value = line.decode("latin-1").partition(":")
        if separator:
            answer.headers[name.strip().lower()] = value.strip()

    curl = pycurl.Curl()
    try:
        curl.setopt(pycurl.URL, f"https://localhost:{port}{path}".encode())
        curl.setopt(pycurl.CAINFO, str(ca))
        curl.setopt(pycurl.HTTP_VERSION, _VERSIONS[door])
        curl.setopt(pycurl.TIMEOUT_MS, round(timeout * 1000))
        curl.setopt(pycurl.NOSIGNAL, 1)
        curl.setopt(pycurl.WRITEDATA, collected)
        curl.setopt(pycurl.HEADERFUNCTION, header)
        curl.setopt(pycurl.HTTPHEADER, ["Expect:", *headers])
        if method == "HEAD":
            curl.setopt(pycurl.NOBODY, 1)
        elif method != "GET":
            curl.setopt(pycurl.CUSTOMREQUEST, method)
        if body is not None:
            curl.setopt(pycurl.POSTFIELDS, body)
            curl.setopt(pycurl.POSTFIELDSIZE, len(body))
        try:
            curl.perform()
        except pycurl.error as error:
            answer.result, answer.problem = error.args[0], error.args[1]
        answer.status = curl.getinfo(pycurl.RESPONSE_CODE)
        answer.version = curl.getinfo(pycurl.INFO_HTTP_VERSION)
    finally:
        curl.close()
    answer.body = collected.getvalue()
    return answer


async def fetch_soon(door: str, port: int, path: str, **options: Any) -> Answer:
    """The same beside a server in this loop."""
    return await asyncio.to_thread(fetch, door, port, path, **options)
