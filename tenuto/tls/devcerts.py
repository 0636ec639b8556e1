"""Development certificates in a folder: made once, renewed in time, the next one at hand."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from cryptography.exceptions import InvalidSignature

from tenuto.tls.certificate import ServerCertificate
from tenuto.tls.folder import locked, refuse_foreign, write_whole
from tenuto.tls.issue import (
    BACKDATE,
    DEFAULT_NAMES,
    LEAF_VALIDITY,
    Issued,
    covers,
    general_names,
    issue_ca,
    issue_leaf,
)
from tenuto.tls.load import read_certificate
from tenuto.tls.problems import CertificateError

__all__ = ["DEFAULT_FOLDER", "RENEW_BEFORE", "DevCertificates", "DevPair"]

DEFAULT_FOLDER = Path("certs/dev")

RENEW_BEFORE = timedelta(days=2)
"""A pair with less than this left is replaced by the next one."""

# The next leaf ends 11 + 13 days from now at the latest; its CA must outlive it.
_RENEW_CA_BEFORE = timedelta(days=30)

_KEY_TYPE = "ECDSA P-256"

_PRIVATE = 0o600


@dataclass(frozen=True, slots=True)
class DevPair:
    """The pair to serve now, and what a page needs to know about it."""

    current: ServerCertificate
    next_pair: ServerCertificate
    ca: ServerCertificate
    renewed: bool
    """Whether `ensure` made or replaced the current pair this time."""
    new_ca: bool
    """Whether the CA is new, so that it has to be trusted anew."""


class DevCertificates:
    """The generated files of one folder.

    A next pair always waits beside the current one. It becomes valid an hour before it is
    due, so a page that was given both hashes can connect for 11 days and more, and a renewal
    surprises nobody. The authority stays for a year.
    """

    def __init__(self, folder: Path = DEFAULT_FOLDER, names: Iterable[str] = ()) -> None:
        """`names` come in addition to localhost and to what the folder's pair has already."""
        self.folder = folder
        self.chain_path = folder / "cert.pem"
        self.key_path = folder / "key.pem"
        self.ca_path = folder / "ca.pem"
        self.next_chain_path = folder / "next-cert.pem"
        self._ca_key_path = folder / "ca-key.pem"
        self._next_key_path = folder / "next-key.pem"
        self._names = (*DEFAULT_NAMES, *names)
        general_names(self._names)  # refuse a bad name before anything is written

    def ensure(self, now: datetime, *, patience: float = 5.0) -> DevPair:
        """The pair to serve at `now`; whatever is missing or due is made first.

        Other processes may do the same in the same folder: this one then waits for up to
        `patience` seconds. Raises `CertificateError` rather than touch a file that is not
        ours. Reads only, if all is well.
        """
        found = self._complete(now)
        if found is not None:
            return found
        with locked(self.folder, patience=patience):
            refuse_foreign(self._all_paths())
            found = self._complete(now)  # another process may have been quicker
            return found if found is not None else self._repair(now)

    def read_next(self) -> ServerCertificate | None:
        """The pair that waits, or None while it is being replaced or cannot be read."""
        return _read(self.next_chain_path, self._next_key_path)

    def _all_paths(self) -> tuple[Path, ...]:
        return (
            self.chain_path,
            self.key_path,
            self.ca_path,
            self.next_chain_path,
            self._ca_key_path,
            self._next_key_path,
        )

    def _complete(self, now: datetime) -> DevPair | None:
        ca = _read(self.ca_path, self._ca_key_path)
        current = _read(self.chain_path, self.key_path)
        if ca is None or current is None or not _is_issued_by(current, ca):
            return None
        names = self._wanted(current)
        following = self.read_next()
        if (
            _is_good_ca(ca, names, now)
            and _is_good(current, ca, names, now)
            and following is not None
            and _follows(following, current, ca, names)
        ):
            return DevPair(current, following, ca, renewed=False, new_ca=False)
        return None

    def _repair(self, now: datetime) -> DevPair:
        """Keep what is good and make the rest, in an order that may be cut at any point."""
        current = _read(self.chain_path, self.key_path)
        names = self._wanted(current)
        ca = _read(self.ca_path, self._ca_key_path)
        new_ca = ca is None or not _is_good_ca(ca, names, now)
        if ca is None or new_ca:
            made = issue_ca(names, now)
            ca = self._write(self.ca_path, self._ca_key_path, made)
        renewed = current is None or not _is_good(current, ca, names, now)
        if current is None or renewed:
            current = self._write(self.chain_path, self.key_path, self._successor(ca, names, now))
        following = self.read_next()
        if following is None or not _follows(following, current, ca, names):
            made = issue_leaf(_issued(ca), names, current.not_after - RENEW_BEFORE)
            following = self._write(self.next_chain_path, self._next_key_path, made)
        return DevPair(current, following, ca, renewed=renewed, new_ca=new_ca)

    def _successor(self, ca: ServerCertificate, names: tuple[str, ...], now: datetime) -> Issued:
        # The waiting pair is copied, not moved: cut short, the promotion is simply repeated.
        waiting = self.read_next()
        if waiting is not None and _is_good(waiting, ca, names, now):
            return _issued(waiting)
        return issue_leaf(_issued(ca), names, now)

    def _wanted(self, current: ServerCertificate | None) -> tuple[str, ...]:
        """Names once asked for stay, so that a server's own renewal never drops them."""
        kept = current.names if current is not None else ()
        return tuple(dict.fromkeys((*self._names, *kept)))

    def _write(self, chain_path: Path, key_path: Path, made: Issued) -> ServerCertificate:
        # Between the two a reader sees a pair that does not match: `CertificateKeeper` then
        # keeps what it has, and `ensure` waits for the lock.
        write_whole(key_path, made.key_pem, mode=_PRIVATE)
        write_whole(chain_path, made.certificate_pem)
        return read_certificate(chain_path, key_path)


def _read(chain_path: Path, key_path: Path) -> ServerCertificate | None:
    try:
        return read_certificate(chain_path, key_path)
    except CertificateError:
        return None  # whatever is wrong with it, it is replaced if it is ours


def _is_good_ca(ca: ServerCertificate, names: tuple[str, ...], now: datetime) -> bool:
    return (
        ca.not_before <= now
        and ca.remaining(now) >= _RENEW_CA_BEFORE
        and ca.key_type == _KEY_TYPE
        and covers(ca.leaf, names)
    )


def _is_good(
    pair: ServerCertificate, ca: ServerCertificate, names: tuple[str, ...], now: datetime
) -> bool:
    return (
        pair.not_before <= now
        and pair.remaining(now) >= RENEW_BEFORE
        and _is_as_issued(pair, ca, names)
    )


def _follows(
    pair: ServerCertificate,
    current: ServerCertificate,
    ca: ServerCertificate,
    names: tuple[str, ...],
) -> bool:
    due = current.not_after - RENEW_BEFORE
    return (
        pair.not_before <= due - BACKDATE
        and pair.not_after > current.not_after
        and _is_as_issued(pair, ca, names)
    )


def _is_as_issued(pair: ServerCertificate, ca: ServerCertificate, names: tuple[str, ...]) -> bool:
    """Whether we would issue it like this today."""
    return (
        _is_issued_by(pair, ca)
        and pair.key_type == _KEY_TYPE
        and pair.not_after - pair.not_before <= LEAF_VALIDITY
        and set(general_names(names)) <= set(general_names(pair.names))
    )


def _is_issued_by(pair: ServerCertificate, ca: ServerCertificate) -> bool:
    try:
        pair.leaf.verify_directly_issued_by(ca.leaf)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _issued(pair: ServerCertificate) -> Issued:
    return Issued(pair.leaf, pair.private_key)
