"""Token keys in files: read, and made so that nobody else can read them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from tenuto.auth import Key, KeyRing, read_key
from tenuto.errors import OperatorError

__all__ = ["MAX_KEY_FILE_SIZE", "load_key", "load_keys", "make_key"]

MAX_KEY_FILE_SIZE = 64 * 1024
"""Bytes; a larger file is no key."""


def load_key(path: Path) -> Key:
    """Raises `OperatorError` that names the file."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_KEY_FILE_SIZE + 1)
    except OSError as error:
        raise OperatorError(
            f"the token key {path} cannot be read: {error.strerror}",
            remedy="name another, or make one with `tenuto token --new-key FILE`",
        ) from None
    if len(data) > MAX_KEY_FILE_SIZE:
        raise OperatorError(f"the token key {path} is too large", remedy="name the key's own file")
    return read_key(data, f"the token key {path}")


def load_keys(paths: Iterable[Path]) -> KeyRing | None:
    """None where no file is named: then nothing is authorised, and only loopback served."""
    keys = [load_key(path) for path in paths]
    return KeyRing(keys) if keys else None


def make_key(path: Path) -> None:
    """A new Ed25519 key, for its owner's eyes only; a file that is there stays as it is."""
    pem = Ed25519PrivateKey.generate().private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
    )
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise OperatorError(
            f"{path} is there already and is not overwritten", remedy="name a new file"
        ) from None
    except OSError as error:
        raise OperatorError(
            f"the key {path} cannot be made: {error.strerror}", remedy="name another place"
        ) from None
    with os.fdopen(descriptor, "wb") as file:
        file.write(pem)
