"""Which server a session lives on: its id says so."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping

from tenuto.errors import ErrorCode, RequestError

__all__ = ["Nodes", "is_tag"]

_ID = re.compile(r"(?:([a-z0-9]{1,16})-)?[0-9a-f]{32}")


def is_tag(text: str) -> bool:
    """Can a server be called that?"""
    return re.fullmatch("[a-z0-9]{1,16}", text) is not None


class Nodes:
    """Makes ids of 128 random bits, behind the tag of this server if it has one.

    `peers` are the tags of other servers, and their URLs.
    """

    def __init__(self, node: str = "", peers: Mapping[str, str] | None = None) -> None:
        for tag in (*([node] if node else []), *(peers or ())):
            if not is_tag(tag):
                raise ValueError(f"a server called {tag!r}")
        self._node = node
        self._peers = dict(peers or {})

    def new_id(self) -> str:
        return f"{self._node}-{secrets.token_hex(16)}" if self._node else secrets.token_hex(16)

    def check(self, id: str) -> None:
        """Raises `RequestError` WRONG_NODE for an id that another server has given."""
        match = _ID.fullmatch(id)
        tag = match[1] if match else None
        if tag is None or tag == self._node:
            return
        detail: dict[str, int | float | str] = {"node": tag}
        if tag in self._peers:
            detail["url"] = self._peers[tag]
        raise RequestError(
            ErrorCode.WRONG_NODE,
            f"session {id} lives on the server {tag}",
            remedy=f"ask {self._peers.get(tag, 'there')}",
            detail=detail,
        )
