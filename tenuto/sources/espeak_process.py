"""The child process that holds espeak-ng, seen from the server."""

from __future__ import annotations

import contextlib
import importlib
import subprocess
import sys

from tenuto.errors import ErrorCode, RequestError
from tenuto.sources import espeak_child
from tenuto.sources.espeak_child import HEADER

__all__ = ["BROKEN", "Child", "ChildDiedError"]

BROKEN = "reinstall the extra: pip install --force-reinstall 'tenuto[espeak]'"


class ChildDiedError(Exception):
    """The child ended in the middle of an answer; the text says how."""


class Child:
    """The process, with blocking calls for the worker thread.

    Raises `RequestError(NO_VOICE)` where the extra is not installed or does not work.
    """

    def __init__(self) -> None:
        library, data = _find_library()
        # -I and -S: nothing of the environment, the working directory or site-packages.
        command = [sys.executable, "-I", "-S", espeak_child.__file__, library, data]
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,  # The library writes there of its own accord.
            )
        except OSError as error:
            raise RequestError(
                ErrorCode.NO_VOICE, f"espeak-ng's process cannot be started: {error.strerror}"
            ) from error

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, kind: bytes, body: bytes = b"") -> None:
        assert self._process.stdin is not None
        # A child that has gone may have said why before: whoever receives reads that, or the end.
        with contextlib.suppress(OSError):
            self._process.stdin.write(HEADER.pack(kind, len(body)) + body)
            self._process.stdin.flush()

    def receive(self) -> tuple[bytes, int, bytes]:
        """The next answer: its kind, its number and its bytes. X raises."""
        kind, number = HEADER.unpack(self._read(HEADER.size))
        body = self._read(number) if kind in b"RVX" else b""
        if kind == b"X":
            raise RequestError(
                ErrorCode.NO_VOICE,
                f"espeak-ng cannot be used: {body.decode(errors='replace')}",
                remedy=BROKEN,
            )
        return kind, number, body

    def close(self) -> None:
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):  # Unsent bytes have no reader any more.
                    pipe.close()
        self._process.wait()

    def _read(self, size: int) -> bytes:
        assert self._process.stdout is not None
        data = self._process.stdout.read(size)
        if len(data) < size:
            raise self._death()
        return data

    def _death(self) -> ChildDiedError:
        self._process.kill()
        status = self._process.wait()
        return ChildDiedError(f"by signal {-status}" if status < 0 else f"with status {status}")


def _find_library() -> tuple[str, str]:
    try:
        loader = importlib.import_module("espeakng_loader")
        return loader.get_library_path(), loader.get_data_path()
    except ImportError as error:
        raise RequestError(
            ErrorCode.NO_VOICE,
            "speech needs espeak-ng, which is not installed",
            remedy="pip install 'tenuto[espeak]'",
        ) from error
    except Exception as error:  # The loader's own complaint about missing data.
        raise RequestError(
            ErrorCode.NO_VOICE, f"espeak-ng is not installed whole: {error}", remedy=BROKEN
        ) from error
