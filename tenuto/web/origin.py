"""Who may spend: pages of other origins and borrowed host names may not.

A page elsewhere can make a browser on this machine ask us (CSRF), and a name that its owner
points to this machine makes that page look like ours (DNS rebinding).
"""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import urlsplit

from tenuto.errors import ErrorCode, RequestError

__all__ = ["check_origin"]


def check_origin(host: str, origin: str | None, names: Collection[str]) -> None:
    """Refuse a request by its Host (or :authority) and Origin fields.

    `names` are those in our certificate, in lower case. Raises `RequestError`: MISDIRECTED,
    FOREIGN_ORIGIN.
    """
    if not _covers(names, _name(f"//{host}")):
        raise RequestError(
            ErrorCode.MISDIRECTED,
            f"this server is not {host[:100]!r}",
            remedy="ask it by a name in its certificate, such as localhost",
        )
    # A browser always sends an origin with a request of another site's; programs send none.
    if origin is not None and _place(origin) != host.lower():
        raise RequestError(
            ErrorCode.FOREIGN_ORIGIN,
            f"pages of {origin[:100]!r} may not start or steer sessions here",
            remedy="serve the page from this host and port",
        )


def _covers(names: Collection[str], name: str) -> bool:
    """As a client matches a certificate: a wildcard stands for one label (RFC 9525 6.3)."""
    _, _, parent = name.partition(".")
    return name in names or (bool(parent) and f"*.{parent}" in names)


def _place(origin: str) -> str:
    """Host and port of an origin (RFC 6454 section 6.2); empty for `null` and nonsense."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


def _name(url: str) -> str:
    try:
        return (urlsplit(url).hostname or "").lower()
    except ValueError:
        return ""
