"""The machine itself: a process of qemu that emulates a processor, and a shell on its console.

Never /dev/kvm: it is rarely there where tests run, and where it is it may hang with this kernel.
"""

import base64
import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from netem.kernel.processes import PRIORITY, die_with_parent, parent_outlives_threads, run_first
from netem.vm.initrd import READY, STATUS, build_initrd
from netem.vm.packages import Kernel, NoMachineError, find_kernel, find_tool

__all__ = ["Machine", "RefusedLineError", "mac_address"]

BOOT_TIMEOUT: Final = 60.0
"""It boots in 3 s of a processor's time; this bounds a machine that shares its processor."""
_COMMAND_TIMEOUT: Final = 20.0
_END_TIMEOUT: Final = 5.0
_MEMORY: Final = 256
"""MiB: a queue of 64 MiB of packets and the system fit."""
_CONSOLE_LIMIT: Final = 1 << 20
# An emulated processor that is kept waiting misses its timer's ticks, and would panic at its start.
_KERNEL_LINE: Final = (
    "console=ttyS0 quiet loglevel=1 panic=-1 tsc=reliable mitigations=off no_timer_check"
)
# Every packet as it is: no segment of 64 KiB, no checksum left for later.
_OFFLOADS: Final = (
    "csum=off,gso=off,guest_csum=off,guest_tso4=off,guest_tso6=off,guest_ufo=off,"
    "host_tso4=off,host_tso6=off,host_ufo=off,mrg_rxbuf=off"
)


class RefusedLineError(Exception):
    """A command inside the machine was refused; the text holds what it said."""


def mac_address(interface: int) -> str:
    return f"52:54:00:4e:45:{interface:02x}"


class Machine:
    """A running machine, whose interfaces eth0, eth1, … are the far ends of `taps`.

    It ends with this process, however this process ends.
    """

    def __init__(self, taps: Sequence[int], kernel: Kernel | None = None) -> None:
        kernel = kernel or find_kernel()
        started = time.monotonic()
        initrd = _file_of(build_initrd(kernel))
        try:
            argv = _command_line(kernel, initrd, taps)
            self._process = subprocess.Popen(
                argv,
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=(initrd, *taps),
                # Two system calls and no lock: safe beside threads, too.
                preexec_fn=die_with_parent if parent_outlives_threads() else None,  # noqa: PLW1509
            )
        finally:
            os.close(initrd)
        self._seen = b""
        try:
            said = self._read_until(READY, started + BOOT_TIMEOUT)
        except NoMachineError as error:
            self.close()
            folder = kernel.image.parent.parent
            raise NoMachineError(
                f"{error}; if it never starts, remove {folder} and run python -m netem.vm again"
            ) from None
        except BaseException:
            self.close()
            raise
        self.boot_time = time.monotonic() - started
        if "failed" in said:
            self.close()
            raise NoMachineError(f"the machine did not load its modules: {said.strip()}")
        self._run_first()

    def _run_first(self) -> None:
        """Booted, it has little to do, but that in time; where it is allowed."""
        for thread in Path(f"/proc/{self._process.pid}/task").iterdir():
            emulates = (thread / "comm").read_text().startswith("CPU ")
            # The processor waits for its devices by turning round and round: where there are fewer
            # processors than such threads, those of the devices must be able to interrupt.
            run_first(int(thread.name), PRIORITY - 1 if emulates else PRIORITY)

    def run(self, script: str) -> str:
        """What the shell's `script` says; it stops at its first command that fails."""
        encoded = base64.b64encode(f"set -e\n{script}\n".encode())
        console = self._process.stdin
        assert console is not None
        # Reading tells why, if it is gone.
        with contextlib.suppress(BrokenPipeError):
            console.write(encoded + b"\n")
        said = self._read_until(STATUS, time.monotonic() + _COMMAND_TIMEOUT)
        status = self._read_until("\n", time.monotonic() + _COMMAND_TIMEOUT).strip()
        if status != "0":
            raise RefusedLineError(f"{said.strip() or script} (status {status})")
        return said

    def close(self) -> None:
        if self._process.poll() is None:
            # There is nothing in it to save.
            self._process.send_signal(signal.SIGKILL)
        self._process.wait(_END_TIMEOUT)
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()

    def _read_until(self, mark: str, deadline: float) -> str:
        """What the console said before `mark`, which is taken away with it."""
        assert self._process.stdout is not None
        pipe = self._process.stdout.fileno()
        while mark.encode() not in self._seen:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([pipe], [], [], left)[0]:
                raise NoMachineError(f"the machine hangs; it said: {self._last_words()}")
            data = os.read(pipe, 65536)
            if not data:
                status = self._process.wait(_END_TIMEOUT)
                raise NoMachineError(
                    f"qemu ended with status {status}; it said: {self._last_words()}"
                )
            self._seen += data
            if len(self._seen) > _CONSOLE_LIMIT:
                raise NoMachineError("the machine says too much")
        before, _, self._seen = self._seen.partition(mark.encode())
        return before.decode(errors="replace").replace("\r", "")

    def _last_words(self) -> str:
        return self._seen[-400:].decode(errors="replace").strip() or "nothing"


def _file_of(data: bytes) -> int:
    """A descriptor of a file that has no name, hence cannot stay behind."""
    descriptor = os.memfd_create("initrd")
    with os.fdopen(os.dup(descriptor), "wb") as file:
        file.write(data)
    return descriptor


def _command_line(kernel: Kernel, initrd: int, taps: Sequence[int]) -> list[str]:
    argv = [
        str(find_tool("qemu-system-x86_64")),
        *("-nodefaults", "-no-user-config", "-no-reboot"),
        # Threads say by their names which of them is a processor.
        *("-name", "netem,debug-threads=on"),
        *("-display", "none", "-serial", "stdio"),
        *("-machine", "q35,accel=tcg", "-cpu", "max", "-smp", "1", "-m", str(_MEMORY)),
        *("-kernel", str(kernel.image), "-initrd", f"/proc/self/fd/{initrd}"),
        *("-append", _KERNEL_LINE),
    ]
    for number, tap in enumerate(taps):
        argv += ["-netdev", f"tap,id=net{number},fd={tap}"]
        device = f"virtio-net-pci,netdev=net{number},mac={mac_address(number)},romfile="
        argv += ["-device", f"{device},{_OFFLOADS}"]
    return argv
