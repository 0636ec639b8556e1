"""Whose certificates this client believes, the same on both transports."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

from aioquic.quic.configuration import QuicConfiguration

from tenuto.tls import client_context

__all__ = ["Trust"]


@dataclass(frozen=True, slots=True)
class Trust:
    """The CA to trust alone (PEM), or the public ones; `insecure` verifies nothing.

    An insecure stream is encrypted, but by whom nobody knows: for looking, never for use.
    """

    cafile: Path | None = None
    insecure: bool = False

    def tls_context(self) -> ssl.SSLContext:
        """For TCP; an `OperatorError` where `cafile` cannot be read."""
        context = client_context(None if self.insecure else self.cafile)
        if self.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context

    def apply(self, configuration: QuicConfiguration) -> QuicConfiguration:
        """For QUIC; an `OperatorError` where `cafile` cannot be read."""
        if self.insecure:
            configuration.verify_mode = ssl.CERT_NONE
        elif self.cafile is not None:
            client_context(self.cafile)  # says what is wrong with the file; OpenSSL does not
            configuration.cafile = str(self.cafile)
        return configuration
