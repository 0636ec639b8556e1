"""Tokens are for the server alone: no message, event or list of requests shows one."""

from __future__ import annotations

import re

__all__ = ["redacted"]

_TOKEN = re.compile(r"(?i)\b(token=|bearer +)[^\s&#\"'<>]+")


def redacted(text: str) -> str:
    """The text, with `***` in place of what follows `token=` and `Bearer`."""
    return _TOKEN.sub(r"\1***", text)
