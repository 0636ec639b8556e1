"""What an operator may set, in one frozen value; the command line and environment fill it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from tenuto.errors import OperatorError
from tenuto.media import AudioFormat
from tenuto.policy import AttachRate, QuicShare
from tenuto.session import SessionLimits

__all__ = ["LOOPBACK", "ServerSettings"]

LOOPBACK = ("127.0.0.1", "::1")

MAX_PATIENCE = 3600.0
"""Seconds for which a server may be told to drain, or to wait for its port."""


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """Times in seconds, sizes in bytes. `None` for the certificate means our own for dev."""

    hosts: tuple[str, ...] = LOOPBACK
    port: int = 4433
    certificate: Path | None = None
    key: Path | None = None
    certificates_folder: Path = Path("certs/dev")
    media: Path | None = None
    stdin: str | None = None
    """"live" or "pausable": serve standard input as `source=stdin`."""
    stdin_format: AudioFormat | None = None
    """Of raw samples; None: a WAV header says it."""
    quic: QuicShare = field(default_factory=QuicShare)
    node: str = ""
    """The tag in the ids of our sessions, by which servers of a cluster tell whose they are."""
    peers: Mapping[str, str] = field(default_factory=dict)
    """URLs of other nodes by their tags."""
    token_keys: tuple[Path, ...] = ()
    """Files of keys for tokens, the one that signs first; none: loopback only, no tokens."""
    attach_rate: float = 150.0
    """Listeners a second that may attach, beyond a burst of `attach_burst`."""
    attach_burst: float = 150.0
    wait_for_port: float = 0.0
    """Seconds to wait for a port that another process is about to leave."""
    idle_timeout: float = 12.0
    grace: float = 2.0
    max_connections: int = 2000
    max_half_open: int = 500
    max_half_open_per_address: int = 64
    max_sessions: int = 2000
    max_held: int = 1 << 30
    test_sources: bool = False
    first_sequence: int = 0
    limits: SessionLimits = field(default_factory=SessionLimits)

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65535:
            raise OperatorError(f"port {self.port}", remedy="choose 1 to 65535, or 0 for any")
        for host in self.hosts:
            self._check_host(host)
        self._check_nodes()
        self._check_numbers()
        if (self.certificate is None) != (self.key is None):
            missing = "--key" if self.key is None else "--cert"
            raise OperatorError(
                "a certificate and its key come together", remedy=f"add {missing} FILE"
            )
        if self.media is not None and not self.media.is_dir():
            what = "is no folder" if self.media.exists() else "does not exist"
            raise OperatorError(
                f"media folder {self.media} {what}", remedy="make it or name another"
            )
        if self.stdin not in (None, "live", "pausable"):
            raise OperatorError(
                f"standard input as {self.stdin!r}", remedy="serve it live or pausable"
            )
        if self.stdin_format is not None and self.stdin is None:
            raise OperatorError(
                "a format of standard input, which is not served",
                remedy="add --stdin live or --stdin pausable",
            )

    def _check_nodes(self) -> None:
        for tag in (*([self.node] if self.node else []), *self.peers):
            if not re.fullmatch("[a-z0-9]{1,16}", tag):
                raise OperatorError(
                    f"node {tag[:50]!r}", remedy="call it by 1 to 16 of the characters a-z and 0-9"
                )

    def _check_numbers(self) -> None:
        AttachRate(self.attach_rate, self.attach_burst)  # It refuses nonsense.
        for name, seconds in (("grace", self.grace), ("wait-for-port", self.wait_for_port)):
            if not 0 <= seconds <= MAX_PATIENCE:
                raise OperatorError(
                    f"{name} = {seconds:g}", remedy=f"give 0 to {MAX_PATIENCE:g} seconds"
                )

    @staticmethod
    def parse_peers(given: Iterable[str]) -> dict[str, str]:
        """From `TAG=URL` each."""
        peers: dict[str, str] = {}
        for text in given:
            tag, _, url = text.partition("=")
            parts = urlsplit(url)
            if parts.scheme != "https" or not parts.netloc:
                raise OperatorError(
                    f"peer {text[:100]!r}", remedy="say TAG=https://HOST:PORT of the other node"
                )
            if tag in peers:
                raise OperatorError(f"peer {tag[:50]!r} twice", remedy="name each node once")
            peers[tag] = url.rstrip("/")
        return peers

    def _check_host(self, host: str) -> None:
        try:
            address = ip_address(host)
        except ValueError:
            raise OperatorError(
                f"{host!r} is no address", remedy="bind to addresses, such as 127.0.0.1 or ::1"
            ) from None
        if not address.is_loopback and not self.token_keys:
            # Nobody may listen or spend on an engine without a token.
            raise OperatorError(
                f"cannot bind {host}: without a configured key only loopback is served",
                remedy="make a key with `tenuto token --new-key FILE` and add --token-key FILE",
            )
