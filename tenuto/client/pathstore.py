"""What is known of QUIC on the networks of this machine, in memory and on disk.

A file of JSON in the folder that the system has for such things. It names networks by salted
digests alone, so that it tells nobody where its owner has been. Losing it costs a quarter of a
second, so nothing about it ever fails: what cannot be read is nothing, what cannot be written is
kept by this process. Nor does anybody wait for it: a home may lie on a disk that hangs.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import hashlib
import json
import math
import os
import secrets
import stat
import tempfile
import threading
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

READ_WITHIN = 0.1
"""Seconds that a stream waits for the file: it costs as little to be wrong."""

MOST_THREADS = 64
"""Files read or written at once, each by a thread, whose disk may hang; more are left alone."""

LEAVE_WITHIN = 0.5
"""Seconds that the end of the process waits for what is being written."""

_LITTER = 60.0
"""Seconds after which a half-written file is nobody's: its writer was killed."""

_SALT_SIZE = 16
_VERSION = 1

_threads: set[threading.Thread] = set()

Identify = Callable[[Sequence[Address]], str | None]

_Networks = dict[str, dict[str, CoolDown]]
_Changes = dict[tuple[str, str], CoolDown]


class PathStore:
    """By network and origin. `path` None keeps it in this process alone.

    Several processes may share a file: each reads it anew before it writes, and replaces it as a
    whole. `cool_down` is for how many seconds QUIC is left alone first. `identify` names the
    network that the way to some addresses begins in: an app that knows better than the system,
    such as a phone's, says so. `clock` is seconds since 1970, for the file outlives the machine's
    uptime. Every method may be called from any thread, and only `sync` waits for the disk.
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
        self.path = path
        self._salt = secrets.token_hex(_SALT_SIZE)
        self._networks: _Networks = {}
        self._unwritten: _Changes = {}
        self._memory = threading.Lock()
        self._file = threading.Lock()
        self._began: float | None = None
        """Since when a thread has been at the file."""
        self._again = False
        self._waiting: set[Callable[[], None]] = set()

    def get(self, network: str, origin: str) -> CoolDown:
        with self._memory:
            return self._networks.get(self._name(network), {}).get(origin, CoolDown())

    def put(self, network: str, origin: str, cool_down: CoolDown) -> None:
        """Known from now on; the file learns it as soon as its disk allows."""
        with self._memory:
            self._learn(network, origin, cool_down)
            if self.path is None:
                return
            self._unwritten = _newest(self._unwritten, {(network, origin): cool_down})
        self._sync_soon()

    async def refresh(self) -> None:
        """Learn what other processes know, unless the disk is too slow to tell."""
        began = self._began
        if self.path is None or (began is not None and time.monotonic() - began > READ_WITHIN):
            return
        loop, told = asyncio.get_running_loop(), asyncio.Event()

        def tell() -> None:
            with contextlib.suppress(RuntimeError):  # The loop is over, and nobody waits.
                loop.call_soon_threadsafe(told.set)

        with self._memory:
            self._waiting.add(tell)
        try:
            if self._sync_soon():
                async with asyncio.timeout(READ_WITHIN):
                    await told.wait()
        except TimeoutError:
            pass
        finally:
            with self._memory:
                self._waiting.discard(tell)

    def sync(self) -> None:
        """Learn what the file says, and write what it does not say yet."""
        if self.path is None:
            return
        with self._file:
            found = _read(self.path)
            with self._memory:
                if found is not None:
                    self._salt, self._networks = found
                unwritten, self._unwritten = self._unwritten, {}
                for (network, origin), cool_down in unwritten.items():
                    self._learn(network, origin, cool_down)
                said = self._said()
            if unwritten and not _write(self.path, said):
                with self._memory:
                    self._unwritten = _newest(unwritten, self._unwritten)

    def _sync_soon(self) -> bool:
        """In a thread, of which there is one at most; False where none is to be had."""
        with self._memory:
            if self._began is not None:
                self._again = True
                return True
            if len(_threads) >= MOST_THREADS:
                return False
            thread = threading.Thread(target=self._work, name="remembers networks", daemon=True)
            try:
                thread.start()
            except RuntimeError:
                return False
            _threads.add(thread)
            self._began = time.monotonic()
            return True

    def _work(self) -> None:
        self.sync()
        while not self._finished():
            self.sync()

    def _finished(self) -> bool:
        with self._memory:
            if self._again:
                self._again = False
                return False
            self._began = None
            waiting, self._waiting = self._waiting, set()
            _threads.discard(threading.current_thread())
        for tell in waiting:
            tell()
        return True

    def _learn(self, network: str, origin: str, cool_down: CoolDown) -> None:
        """What lies last was used last."""
        name = self._name(network)
        origins = self._networks.pop(name, {})
        origins.pop(origin, None)
        if cool_down != CoolDown():
            origins[origin] = cool_down
        if origins:
            self._networks[name] = dict(list(origins.items())[-MAX_ORIGINS:])
        self._networks = dict(list(self._networks.items())[-MAX_NETWORKS:])

    def _name(self, network: str) -> str:
        text = f"{self._salt}\n{network}"  # An SSID is any bytes.
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:24]

    def _said(self) -> dict[str, object]:
        return {
            "version": _VERSION,
            "salt": self._salt,
            "networks": {
                name: {origin: [each.failures, each.until] for origin, each in origins.items()}
                for name, origins in self._networks.items()
            },
        }


_default = PathStore()


def default_store() -> PathStore:
    """In the user's own folder for state; where there is none, in memory. One for all streams."""
    global _default  # noqa: PLW0603 - streams of one process know the same
    try:
        path: Path | None = user_state_path("tenuto", appauthor=False) / "paths.json"
    except (OSError, RuntimeError):
        path = None
    if path is not None and not path.is_absolute():
        path = None  # A user without a home: "~" is no folder.
    if _default.path != path:
        _default = PathStore(path)
    return _default


@atexit.register
def _leave() -> None:
    until = time.monotonic() + LEAVE_WITHIN
    for thread in list(_threads):
        thread.join(max(0.0, until - time.monotonic()))


def _newest(older: _Changes, newer: _Changes) -> _Changes:
    kept = {key: cool_down for key, cool_down in older.items() if key not in newer}
    return dict(list({**kept, **newer}.items())[-MAX_NETWORKS:])


def _read(path: Path) -> tuple[str, _Networks] | None:
    """None for what we have not written."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return None  # A pipe would be waited for.
        with path.open("rb") as file:
            said = json.loads(file.read(MAX_STORE_SIZE + 1)[:MAX_STORE_SIZE])
        return _checked(said)
    except (OSError, ValueError, TypeError, AttributeError):
        return None
    except (KeyError, OverflowError, RecursionError):
        return None


def _checked(said: dict[str, object]) -> tuple[str, _Networks]:
    """Raises for what we have not written; a time too far ahead is found out later."""
    salt, listed = said["salt"], said["networks"]
    if said["version"] != _VERSION or not isinstance(salt, str) or not isinstance(listed, dict):
        raise ValueError("not ours")
    if len(bytes.fromhex(salt)) != _SALT_SIZE:
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


def _write(path: Path, said: dict[str, object]) -> bool:
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        _clear(path)
        _replace(path, json.dumps(said).encode())
    except (OSError, ValueError):  # of a path that holds a NUL
        return False
    return True


def _clear(path: Path) -> None:
    for left in path.parent.glob(f".{path.name}.*"):
        with contextlib.suppress(OSError):
            if time.time() - left.stat().st_mtime > _LITTER:
                left.unlink()


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
