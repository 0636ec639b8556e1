"""Keys that sign and verify tokens: Ed25519 from PEM, or a secret of 32 bytes or more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, cast

from jwt.algorithms import OKPAlgorithm
from jwt.exceptions import InvalidKeyError

from tenuto.errors import OperatorError

if TYPE_CHECKING:
    from jwt.algorithms import AllowedPrivateKeys, AllowedPublicKeys

__all__ = ["MAX_KEYS", "MIN_SECRET_SIZE", "Key", "KeyRing", "read_key"]

MAX_KEYS = 16
"""A rotation needs two; each is tried for a token that names none."""

MIN_SECRET_SIZE = 32
"""Bytes of an HS256 secret: RFC 7518 section 3.2 wants as many as its hash has."""

_KID_SIZE = 16
_REMEDY = "make one with `tenuto token --new-key FILE`"


@dataclass(frozen=True, slots=True)
class Key:
    """One key; a public one only verifies."""

    id: str
    """The `kid` of the tokens it signs, found from the key itself."""
    algorithm: str
    verifies_with: AllowedPublicKeys | bytes = field(repr=False)
    signs_with: AllowedPrivateKeys | bytes | None = field(repr=False)


class KeyRing:
    """The keys of a server: the first that can sign signs, all verify.

    Rotation: add the new key behind the old one, put it first when every server has it, and take
    the old one away when its last token has expired.
    """

    def __init__(self, keys: Sequence[Key]) -> None:
        if not 0 < len(keys) <= MAX_KEYS:
            raise OperatorError(
                f"{len(keys)} token keys", remedy=f"give 1 to {MAX_KEYS} with --token-key"
            )
        self._keys = tuple(keys)

    @property
    def signer(self) -> Key | None:
        return next((key for key in self._keys if key.signs_with is not None), None)

    def algorithms(self) -> list[str]:
        return sorted({key.algorithm for key in self._keys})

    def candidates(self, algorithm: str, id: object) -> list[Key]:
        """The keys of that algorithm: the one with this `kid`, or all where none has it.

        A token never chooses how a key is used: a public key is no secret of HS256.
        """
        fitting = [key for key in self._keys if key.algorithm == algorithm]
        return [key for key in fitting if key.id == id] or fitting


def read_key(data: bytes, name: str) -> Key:
    """From the bytes of a file; raises `OperatorError` that calls it `name`."""
    if b"-----BEGIN" in data:
        return _ed25519(data, name)
    secret = data.strip(b"\r\n")
    if len(secret) < MIN_SECRET_SIZE:
        raise OperatorError(
            f"{name} has {len(secret)} bytes, and a secret needs {MIN_SECRET_SIZE}",
            remedy=_REMEDY,
        )
    return Key(_id(b"HS256\0" + secret), "HS256", secret, secret)


def _ed25519(data: bytes, name: str) -> Key:
    try:
        material = OKPAlgorithm().prepare_key(data)
        known = OKPAlgorithm.to_jwk(material, as_dict=True)
    except (ValueError, TypeError, InvalidKeyError):
        raise OperatorError(
            f"{name} holds no Ed25519 key that is readable without a password", remedy=_REMEDY
        ) from None
    if known["crv"] != "Ed25519":
        raise OperatorError(f"{name} is a key of {known['crv']}, not Ed25519", remedy=_REMEDY)
    id = _id(str(known["x"]).encode())
    if hasattr(material, "public_key"):
        return Key(id, "EdDSA", material.public_key(), cast("AllowedPrivateKeys", material))
    return Key(id, "EdDSA", material, None)


def _id(material: bytes) -> str:
    return sha256(b"tenuto kid\0" + material).hexdigest()[:_KID_SIZE]
