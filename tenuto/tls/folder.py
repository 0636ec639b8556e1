"""A folder of generated PEM files: whose they are, whole writes, one writer at a time."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tenuto.tls.pem import read_file
from tenuto.tls.problems import CertificateError, CertificateProblem, shown

__all__ = ["locked", "refuse_foreign", "write_whole"]

# Text before the first boundary is permitted and ignored (RFC 7468, section 2).
MARK = b"# Made by `tenuto certs` for development; replaced without asking.\n"

_RETRY_DELAY = 0.02


def refuse_foreign(paths: Iterable[Path]) -> None:
    """Raise `CertificateError` if one of the files exists and was not made by us.

    An empty file is nobody's: it is what a full disk leaves behind.
    """
    for path in paths:
        if not os.path.lexists(path):
            continue
        if path.is_symlink() or not _is_ours(read_file(path)):
            raise CertificateError(
                CertificateProblem.NOT_OURS,
                f"{shown(path)} was not made by `tenuto certs` and will not be overwritten",
                remedy="serve it as your own certificate, or move it away, "
                "or choose another folder for development certificates",
            )


def write_whole(path: Path, data: bytes, *, mode: int = 0o644) -> None:
    """Replace the file in one step, marked as ours; for the holder of the lock only."""
    new = path.with_name(f".{path.name}.new")
    try:
        new.unlink(missing_ok=True)  # a crash left it; not opened, it may be a link by now
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        with open(os.open(new, flags, mode), "wb") as file:
            file.write(MARK + data)
            file.flush()
            os.fsync(file.fileno())  # a power cut must not leave the new name on an old block
        new.replace(path)
    except OSError as error:
        with suppress(OSError):
            new.unlink(missing_ok=True)
        raise _unwritable(path, error) from None


@contextmanager
def locked(folder: Path, *, patience: float) -> Iterator[None]:
    """Make the folder if need be and hold its lock, waiting at most `patience` seconds.

    The lock ends with its process, however that ends. Raises `CertificateError` with
    `BUSY` when another process keeps it.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise _unwritable(folder, error) from None
    try:
        give_up = time.monotonic() + patience
        while not _try_lock(descriptor):
            if time.monotonic() >= give_up:
                raise CertificateError(
                    CertificateProblem.BUSY,
                    f"another process is making certificates in {shown(folder)}",
                    remedy="try again in a moment",
                )
            time.sleep(_RETRY_DELAY)
        yield
    finally:
        os.close(descriptor)


if sys.platform == "win32":
    import msvcrt

    def _try_lock(descriptor: int) -> bool:
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True
else:
    import fcntl

    def _try_lock(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            # A file system without locks: whole writes and tolerant readers must do.
            return True
        return True


def _is_ours(data: bytes) -> bool:
    return not data.strip() or data.startswith(MARK.rstrip())


def _unwritable(path: Path, error: OSError | ValueError) -> CertificateError:
    reason = error.strerror if isinstance(error, OSError) else str(error)
    return CertificateError(
        CertificateProblem.UNWRITABLE,
        f"cannot write {shown(path)}: {reason}",
        remedy="choose a folder that this user may write to",
    )
