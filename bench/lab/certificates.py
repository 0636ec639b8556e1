"""A certificate for one run, in memory: nobody has to clear it away."""

from __future__ import annotations

import os
from datetime import UTC, datetime

from tenuto.tls.issue import DEFAULT_NAMES, issue_ca, issue_leaf

__all__ = ["Certificates"]


class Certificates:
    """Three files without a place: who inherits `fds` reads them by their paths."""

    def __init__(self) -> None:
        now = datetime.now(UTC)
        ca = issue_ca(DEFAULT_NAMES, now)
        leaf = issue_leaf(ca, DEFAULT_NAMES, now)
        self.certificate = _file("certificate", leaf.certificate_pem)
        self.key = _file("key", leaf.key_pem)
        self.ca = _file("ca", ca.certificate_pem)

    @staticmethod
    def path(fd: int) -> str:
        return f"/proc/self/fd/{fd}"

    def close(self) -> None:
        for fd in (self.certificate, self.key, self.ca):
            os.close(fd)


def _file(name: str, data: bytes) -> int:
    fd = os.memfd_create(f"lab-{name}", os.MFD_CLOEXEC)
    os.write(fd, data)
    return fd
