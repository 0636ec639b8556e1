"""A sound card that keeps time but makes no sound: a PulseAudio of our own."""

from __future__ import annotations

import ctypes.util
import importlib.util
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import NDArray

__all__ = ["RATE", "PulseCard", "missing"]

RATE = 48000

_PLUGIN = "libasound_module_pcm_pulse.so"
_CONFIG = Path("/usr/share/alsa/alsa.conf")


def missing() -> str:
    """What this machine lacks for it; empty if nothing."""
    lacks = [program for program in ("pulseaudio", "pactl", "parec") if not shutil.which(program)]
    if importlib.util.find_spec("sounddevice") is None:
        lacks.append("sounddevice")
    if ctypes.util.find_library("portaudio") is None:
        lacks.append("libportaudio2")
    if not _CONFIG.is_file() or not any(Path("/usr/lib").glob(f"*/alsa-lib/{_PLUGIN}")):
        lacks.append("libasound2-plugins")
    return ", ".join(lacks)


class PulseCard:
    """The daemon, its sinks, and what they were given: `heard(sink)` is 48 kHz mono."""

    def __init__(self, folder: Path) -> None:
        # A socket's path has 108 bytes, and pytest's folders take most of them.
        self._folder = folder
        config = folder / "asound.conf"
        config.write_text("pcm.!default { type pulse }\nctl.!default { type pulse }\n")
        names = ("HOME", "XDG_RUNTIME_DIR", "PULSE_RUNTIME_PATH")
        self.environment = {
            **os.environ,
            **dict.fromkeys(names, str(folder)),
            "PULSE_SERVER": f"unix:{folder}/native",
            "ALSA_CONFIG_PATH": f"{_CONFIG}:{config}",
        }
        self._daemon: subprocess.Popen[bytes] | None = None
        self._recorders: dict[str, subprocess.Popen[bytes]] = {}
        self._records: dict[str, list[Path]] = {}

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()

    def start(self) -> None:
        """With one sink, `first`."""
        load = f"module-native-protocol-unix auth-anonymous=1 socket={self._folder}/native"
        quiet = ["--exit-idle-time=-1", f"--log-target=file:{self._folder}/log"]
        alone = ["-n", "--daemonize=no", "--disable-shm=yes", "--use-pid-file=no"]
        self._daemon = subprocess.Popen(
            ["pulseaudio", *alone, *quiet, "-L", load],
            env=self.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._until(lambda: self._pactl("info").returncode == 0)
        self.add("first")

    def freeze(self) -> None:
        """It is there and answers nothing."""
        assert self._daemon is not None
        self._daemon.send_signal(signal.SIGSTOP)

    def kill(self) -> None:
        """Without a word, as when it crashes."""
        for process in [self._daemon, *self._recorders.values()]:
            if process is not None:
                process.kill()
                process.wait()
        self._daemon = None
        self._recorders.clear()

    def add(self, sink: str) -> None:
        """Another sink, and somebody who listens: without one the sink takes 2 s at once."""
        added = self._pactl("load-module", "module-null-sink", f"sink_name={sink}", f"rate={RATE}")
        assert added.returncode == 0, added.stderr
        records = self._records.setdefault(sink, [])
        path = self._folder / f"{sink}-{len(records)}.raw"
        records.append(path)
        command = ["parec", "-d", f"{sink}.monitor", "--latency-msec=10", f"--rate={RATE}"]
        with path.open("wb") as file:
            self._recorders[sink] = subprocess.Popen(
                [*command, "--channels=1", "--format=s16le"],
                env=self.environment,
                stdout=file,
                stderr=subprocess.DEVNULL,
            )
        self._until(lambda: path.stat().st_size > 0)

    def remove(self, sink: str) -> None:
        """Pull it out; its streams go to another one."""
        modules = self._pactl("list", "short", "modules").stdout.splitlines()
        listener = self._recorders.pop(sink)  # it would go to the other sink, too
        listener.kill()
        listener.wait()
        (number,) = [line.split()[0] for line in modules if f"sink_name={sink} " in line]
        assert self._pactl("unload-module", number).returncode == 0

    def heard(self, sink: str) -> list[NDArray[np.int16]]:
        """One array for each time that it was there, without the silence around."""
        found = []
        for path in self._records[sink]:
            data = path.read_bytes()
            samples = np.frombuffer(data, "<i2", len(data) // 2)
            loud = np.flatnonzero(np.abs(samples.astype(int)) > 50)
            found.append(samples[loud[0] : loud[-1] + 1] if len(loud) else samples[:0])
        return found

    def _pactl(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["pactl", *arguments],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        )

    def _until(self, reached: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 10
        while not reached():
            assert time.monotonic() < deadline, (self._folder / "log").read_text()
            time.sleep(0.05)
