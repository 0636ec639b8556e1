"""Tokens taken out of any text that somebody may read: log lines, faults, answers, URLs."""

from __future__ import annotations

import re

__all__ = ["redact"]

_HIDDEN = "***"

_SECRETS = re.compile(
    r"""(?ix)
    # as a parameter of a URL, percent-encoded or not
    (?P<parameter> \btoken (?: = | %3D ) ) [^&\s"'<>\\#]+
    # as a member of JSON, or of a Python object as it is printed
    | (?P<member> \btoken \\? ["'] \s* [:,] \s* b? \\? ["'] ) [^"'\\]+
    # as a header field
    | (?P<field> \bBearer (?: \s | %20 | \+ )+ ) [^\s,;"'\\]+
    # wherever: base64url of {" begins with eyJ; the parts behind it may be cut off
    | \beyJ [\w-]{10,} (?: \. [\w-]* ){0,2}
    """
)


def redact(text: str) -> str:
    """The same text with `***` in place of each token."""
    return _SECRETS.sub(_hide, text)


def _hide(found: re.Match[str]) -> str:
    kept = found["parameter"] or found["member"] or found["field"] or ""
    return kept + _HIDDEN
