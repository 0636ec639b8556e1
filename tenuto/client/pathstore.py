"""What is known of QUIC on the networks of this machine, on disk.

A file of JSON in the folder that the system has for such things. It names networks by salted
digests alone, so that it tells nobody where its owner has been. Losing it costs a quarter of a
second, so nothing about it ever fails: what cannot be read is nothing, what cannot be written is
kept by this process.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import secrets
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from platformdirs import user_state_path

from tenuto.client.identity import network_identity
from tenuto.client.target import Address
from tenuto.policy import FIRST_COOL_DOWN, CoolDown

__all__ = ["MAX_NETWORKS", "MAX_ORIGINS", "MAX_STORE_SIZE", "PathStore", "default_store"]

MAX_NETWORKS = 64
MAX_ORIGINS = 16
"""Servers remembered of each network; the one not heard of for longest makes room."""

MAX_STORE_SIZE = 512 * 1024
"""Bytes of a file that is read; a larger one is not ours."""

_VERSION = 1

Identify = Callable[[Sequence[Address]], str | None]

_Networks = dict[str, dict[str, CoolDown]]


class PathStore:
    """By network and origin. `path` None keeps it in this process alone.

    Several processes may share a file: each reads it anew before it writes, and replaces it as a
    whole. `cool_down` is for how many seconds QUIC is left alone first. `identify` names the
    network that the way to some addresses begins in: an app that knows better than the system,
    such as a phone's, says so. `clock` is seconds since 1970, for the file outlives the machine's
    uptime.
    """

    def __init__(
        self,
        path: Path | None = None,
        *,
        cool_down: float = FIRST_COOL_DOWN,
        identify: Identify = network_identity,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.cool_down = cool_down
        self.identify = identify
        self.clock = clock
        self._path = path
        self._salt = secrets.token_hex(16)
        self._networks: _Networks = {}

    def get(self, network: str, origin: str) -> CoolDown:
        self._load()
        return self._networks.get(self._name(network), {}).get(origin, CoolDown())

    def put(self, network: str, origin: str, cool_down: CoolDown) -> None:
        """What lies last was used last."""
        self._load()
        name = self._name(network)
        origins = self._networks.pop(name, {})
        origins.pop(origin, None)
        if cool_down != CoolDown():
            origins[origin] = cool_down
        if origins:
            self._networks[name] = dict(list(origins.items())[-MAX_ORIGINS:])
        self._networks = dict(list(self._networks.items())[-MAX_NETWORKS:])
        self._save()

    def _name(self, network: str) -> str:
        return hashlib.sha256(f"{self._salt}\n{network}".encode()).hexdigest()[:24]

    def _load(self) -> None:
        if self._path is None:
            return
        try:
            with self._path.open("rb") as file:
                said = json.loads(file.read(MAX_STORE_SIZE + 1)[:MAX_STORE_SIZE])
            salt, networks = _checked(said)
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return
        self._salt, self._networks = salt, networks

    def _save(self) -> None:
        if self._path is None:
            return
        said = {
            "version": _VERSION,
            "salt": self._salt,
            "networks": {
                name: {origin: [each.failures, each.until] for origin, each in origins.items()}
                for name, origins in self._networks.items()
            },
        }
        with contextlib.suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            _replace(self._path, json.dumps(said).encode())


def default_store() -> PathStore:
    """In the user's own folder for state; where there is none, in memory."""
    try:
        return PathStore(user_state_path("tenuto", appauthor=False) / "paths.json")
    except (OSError, RuntimeError):
        return PathStore(None)


def _checked(said: dict[str, object]) -> tuple[str, _Networks]:
    """Raises for what we have not written; a time too far ahead is found out later."""
    salt, listed = said["salt"], said["networks"]
    if said["version"] != _VERSION or not isinstance(salt, str) or not isinstance(listed, dict):
        raise ValueError("not ours")
    networks: _Networks = {}
    for name, origins in list(listed.items())[-MAX_NETWORKS:]:
        networks[name] = {}
        for origin, (failures, until) in list(origins.items())[-MAX_ORIGINS:]:
            whole = isinstance(failures, int) and isinstance(until, int | float)
            if not whole or not math.isfinite(until):
                raise ValueError("not ours")
            networks[name][origin] = CoolDown(max(0, failures), float(until))
    return salt, networks


def _replace(path: Path, data: bytes) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
