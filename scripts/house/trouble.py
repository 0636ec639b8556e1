"""What went wrong, and what to do about it."""

__all__ = ["Trouble", "pip_remedy"]

# The first line that matches wins: a full disk also breaks connections, and a missing network
# also ends in "no matching distribution".
_PIP_REMEDIES = (
    (
        ("no space left on device", "disk quota exceeded", "errno 28"),
        "The disk is full: about 400 MB are needed here and in the temporary folder.",
    ),
    (
        ("certificate_verify_failed", "sslerror", "ssl: "),
        "The package index was reached, but its certificate was not trusted. Behind a proxy that\n"
        "inspects TLS, point PIP_CERT at its CA file.",
    ),
    (
        (
            "newconnectionerror",
            "connecttimeouterror",
            "readtimeouterror",
            "name resolution",
            "nameresolutionerror",
            "network is unreachable",
            "connection refused",
            "connection aborted",
            "proxyerror",
            "max retries exceeded",
        ),
        "The package index was not reached: check the network and the proxy (HTTPS_PROXY), then\n"
        "run the same command again: it goes on where it stopped.",
    ),
    (
        ("do not match the hashes",),
        "A downloaded file is not the one that the lock names. Try once more with\n"
        "PIP_NO_CACHE_DIR=1; if it stays so, do not trust the index or mirror in use.",
    ),
    (
        ("permission denied", "access is denied"),
        "Files in .venv cannot be written: is it another user's, or in use? Removing .venv and\n"
        "running the same command again makes a new one.",
    ),
    (
        ("no matching distribution found", "could not find a version"),
        "The index in use lacks a package that the lock names, or has none for this Python and\n"
        "machine. Python 3.11 to 3.13 are supported; Linux (glibc) is tested.",
    ),
    (
        ("failed building wheel", "failed to build", "metadata-generation-failed"),
        "A package has no ready-made build for this machine and could not be compiled. Python\n"
        "3.11 to 3.13 on Linux (glibc), macOS and Windows need no compiler.",
    ),
)


class Trouble(Exception):  # noqa: N818
    """An ending that the user can do something about: no traceback, a remedy instead."""

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy


def pip_remedy(output: str) -> str:
    """The advice that fits what pip printed; empty if none does."""
    heard = output.casefold()
    for signs, remedy in _PIP_REMEDIES:
        if any(sign in heard for sign in signs):
            return remedy
    return ""
