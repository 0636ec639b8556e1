"""Keys for the tests, made for nothing else."""

from tenuto.auth import Claims, Key, Scope, read_key

__all__ = ["ED25519", "OTHER", "PUBLIC", "SECRET", "claims", "key"]

ED25519 = b"""-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f
-----END PRIVATE KEY-----
"""
PUBLIC = b"""-----BEGIN PUBLIC KEY-----
MCowBQYDK2VwAyEAA6EHv/POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg=
-----END PUBLIC KEY-----
"""
OTHER = ED25519.replace(b"AABAgME", b"AABAgMF")
SECRET = b"thirty-two bytes are just enough"


def key(data: bytes = ED25519) -> Key:
    return read_key(data, "k.pem")


def claims(scope: str = "listen", *, expires: float = 2000.0, session: str | None = None) -> Claims:
    scopes = frozenset(Scope(word) for word in scope.split())
    return Claims(scopes, expires, session)
