"""One pair for both doors: follows the files, renews development pairs, breaks neither."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tenuto.tls.certificate import ServerCertificate
from tenuto.tls.devcerts import RENEW_BEFORE, DevCertificates
from tenuto.tls.load import load_certificate
from tenuto.tls.problems import CertificateError, CertificateProblem

__all__ = [
    "CertificateEvent",
    "CertificateHashes",
    "CertificateKeeper",
    "CertificateRejected",
    "CertificateReplaced",
    "RenewalFailed",
]

# A file written this recently may be written again without its times showing it.
_RACY = timedelta(seconds=2)

_RETRY_RENEWAL = timedelta(minutes=1)

# A pair that was rejected may become good without being written again: its time comes.
_RETRY_REJECTED = timedelta(seconds=10)

_Identity = tuple[tuple[int, ...] | None, ...]


@dataclass(frozen=True, slots=True)
class CertificateReplaced:
    """New handshakes on both doors get `certificate` from now on."""

    previous: ServerCertificate
    certificate: ServerCertificate


@dataclass(frozen=True, slots=True)
class CertificateRejected:
    """The files hold something that cannot be served; the former pair stays in use."""

    problem: CertificateProblem
    message: str


@dataclass(frozen=True, slots=True)
class RenewalFailed:
    """The development pair is due and could not be renewed; tried again every minute."""

    problem: CertificateProblem
    message: str


CertificateEvent = CertificateReplaced | CertificateRejected | RenewalFailed


@dataclass(frozen=True, slots=True)
class CertificateHashes:
    """SHA-256 of leaves for `serverCertificateHashes`: a page may be given both."""

    current: bytes
    upcoming: bytes | None


class CertificateKeeper:
    """Holds the current pair; its owner calls `check` every second or so.

    A check costs a few `stat` calls while nothing changes, and about a millisecond when
    something does (30 with an RSA key, whose primes are tested).
    """

    def __init__(
        self,
        certificate: ServerCertificate,
        *,
        dev: DevCertificates | None = None,
        upcoming: ServerCertificate | None = None,
    ) -> None:
        """`of_files` and `of_dev` are the usual ways to make one."""
        self._certificate = certificate
        self._upcoming = upcoming
        self._dev = dev
        self._callbacks: list[Callable[[ServerCertificate], None]] = []
        self._settled: _Identity | None = None
        self._sighting: tuple[_Identity, CertificateProblem] | None = None
        self._reported: tuple[_Identity, CertificateProblem] | None = None
        self._rejected_until: datetime | None = None
        self._failure: CertificateProblem | None = None
        self._retry_at: datetime | None = None

    @classmethod
    def of_files(cls, chain_path: Path, key_path: Path, now: datetime) -> CertificateKeeper:
        """Follow the operator's own files; raises `CertificateError` if they are bad now."""
        return cls(load_certificate(chain_path, key_path, now))

    @classmethod
    def of_dev(cls, dev: DevCertificates, now: datetime) -> CertificateKeeper:
        """Make or take up development certificates, and renew them while running."""
        pair = dev.ensure(now)
        return cls(pair.current, dev=dev, upcoming=pair.next_pair)

    @property
    def certificate(self) -> ServerCertificate:
        """The pair in use on both doors."""
        return self._certificate

    def days_left(self, now: datetime) -> float:
        """Days until the pair in use expires, for a gauge; negative afterwards."""
        return self._certificate.remaining(now) / timedelta(days=1)

    def hashes(self) -> CertificateHashes:
        """What a page needs to connect now and after the next renewal."""
        upcoming = self._upcoming.sha256 if self._upcoming is not None else None
        return CertificateHashes(self._certificate.sha256, upcoming)

    def subscribe(self, callback: Callable[[ServerCertificate], None]) -> None:
        """Call `callback` with the pair at once, and again in the moment it is replaced.

        If one of the callbacks raises `CertificateError`, all are called again with the
        former pair, so that both doors always serve the same.
        """
        callback(self._certificate)
        self._callbacks.append(callback)

    def look(self) -> None:
        """Open the files that `check` would; where their disk hangs, this does.

        It may be called beside the loop, and `check` on it when this has returned.
        """
        for path in self._paths():
            with contextlib.suppress(OSError, ValueError):
                if stat.S_ISREG(os.stat(path).st_mode):  # A FIFO would wait for a writer.
                    path.open("rb").close()

    def check(self, now: datetime) -> list[CertificateEvent]:
        """Take up what changed on disk and renew what is due; what happened, to be logged.

        A broken pair is reported once, at the second check that finds it: the first may
        have come between the two writes of an ordinary renewal.
        """
        events = self._follow_files(now)
        if self._renewal_is_due(now):
            events += self._renew(now)
        return events

    def _follow_files(self, now: datetime) -> list[CertificateEvent]:
        identity = self._identity()
        if identity == self._settled or self._is_known_to_be_broken(identity, now):
            return []
        served = self._certificate
        try:
            found = load_certificate(served.chain_path, served.key_path, now)
            if self._identity() != identity:
                return []  # being written: the next check sees it whole
            if found != served:
                self._replace(found)
        except CertificateError as error:
            return self._broken(identity, error, now)
        self._sighting = self._reported = None
        self._settled = identity if self._is_settled(identity, now) else None
        self._upcoming = self._read_upcoming(found)
        return [CertificateReplaced(served, found)] if found != served else []

    def _read_upcoming(self, current: ServerCertificate) -> ServerCertificate | None:
        found = self._dev.read_next() if self._dev is not None else None
        if found is None or found.sha256 == current.sha256:
            return None  # in the middle of a renewal
        # Somebody may have put a pair of their own into the folder.
        return found if found.leaf.issuer == current.leaf.issuer else None

    def _replace(self, found: ServerCertificate) -> None:
        try:
            for callback in self._callbacks:
                callback(found)
        except CertificateError:
            for callback in self._callbacks:
                callback(self._certificate)
            raise
        self._certificate = found

    def _is_known_to_be_broken(self, identity: _Identity, now: datetime) -> bool:
        if self._reported is None or self._rejected_until is None:
            return False
        return identity == self._reported[0] and _is_waiting(
            self._rejected_until, _RETRY_REJECTED, now
        )

    def _broken(
        self, identity: _Identity, error: CertificateError, now: datetime
    ) -> list[CertificateEvent]:
        sighting = (identity, error.problem)
        seen_before, self._sighting = self._sighting == sighting, sighting
        if not seen_before:
            return []
        self._rejected_until = now + _RETRY_REJECTED
        if self._reported == sighting:
            return []
        self._reported = sighting
        return [CertificateRejected(error.problem, str(error))]

    def _renewal_is_due(self, now: datetime) -> bool:
        served = self._certificate
        if self._dev is None or served.not_before <= now <= served.not_after - RENEW_BEFORE:
            return False
        return self._retry_at is None or not _is_waiting(self._retry_at, _RETRY_RENEWAL, now)

    def _renew(self, now: datetime) -> list[CertificateEvent]:
        assert self._dev is not None
        try:
            self._dev.ensure(now, patience=0.0)
        except CertificateError as error:
            if error.problem is CertificateProblem.BUSY:
                return []  # another server renews the same folder: its pair is seen next time
            self._retry_at = now + _RETRY_RENEWAL
            repeated, self._failure = self._failure is error.problem, error.problem
            return [] if repeated else [RenewalFailed(error.problem, str(error))]
        self._retry_at = self._failure = None
        return self._follow_files(now)

    def _identity(self) -> _Identity:
        """Changes when a file is rewritten, replaced, or a symbolic link leads elsewhere."""
        return tuple(map(_file_identity, self._paths()))

    def _paths(self) -> list[Path]:
        paths = [self._certificate.chain_path, self._certificate.key_path]
        if self._dev is not None:
            paths.append(self._dev.next_chain_path)
        return paths

    def _is_settled(self, identity: _Identity, now: datetime) -> bool:
        newest = max(file[-1] for file in identity if file is not None)
        return abs(now - datetime.fromtimestamp(newest / 1e9, UTC)) > _RACY


def _is_waiting(until: datetime, delay: timedelta, now: datetime) -> bool:
    return until - delay <= now < until  # a clock that was set back ends the wait


def _file_identity(path: Path) -> tuple[int, ...] | None:
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    # The status-change time tells of a permission that was given since.
    return (found.st_dev, found.st_ino, found.st_size, found.st_ctime_ns, found.st_mtime_ns)
