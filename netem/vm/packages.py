"""What the machine is made of, and where it comes from: Debian's packages, none of them built here.

The kernel's package is unpacked into a cache and never installed, so the host keeps its own.
"""

import contextlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from netem.errors import ImpairmentError

if sys.platform == "linux":
    import fcntl

__all__ = [
    "META_PACKAGE",
    "Kernel",
    "NoMachineError",
    "cache_directory",
    "fetch_kernel",
    "find_kernel",
    "find_tool",
    "missing",
]

META_PACKAGE: Final = "linux-image-cloud-amd64"
"""Debian's kernel for virtual machines: a small one, which has sch_netem."""

SYSTEM_PATH: Final = "/usr/local/sbin:/usr/sbin:/sbin"
_DEBIAN_PACKAGES: Final = {
    "qemu-system-x86_64": "qemu-system-x86",
    "busybox": "busybox-static",
    "dash": "dash",
    "ip": "iproute2",
    "tc": "iproute2",
    "nft": "nftables",
}
_DOWNLOAD: Final = "download-"
_DOWNLOAD_TIMEOUT: Final = 120.0
_QUERY_TIMEOUT: Final = 30.0


class NoMachineError(ImpairmentError):
    """The machine cannot be made here; the text says what is absent and how to get it."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """An unpacked kernel package."""

    release: str
    image: Path
    modules: Path


def find_tool(name: str) -> Path:
    found = shutil.which(name, path=f"{os.environ.get('PATH', os.defpath)}:{SYSTEM_PATH}")
    if found is None:
        raise NoMachineError(
            f"{name} is not installed: apt-get install {_DEBIAN_PACKAGES.get(name, name)}"
        )
    return Path(found)


def cache_directory() -> Path:
    root = os.environ.get("XDG_CACHE_HOME") or ""
    if not Path(root).is_absolute():
        # A relative one is to be ignored, says the XDG Base Directory Specification.
        try:
            root = str(Path.home() / ".cache")
        except RuntimeError:
            raise NoMachineError("you have no home folder: set XDG_CACHE_HOME") from None
    return Path(root) / "tenuto-netem"


def find_kernel() -> Kernel:
    """The newest kernel of the cache."""
    kernels = sorted(_cached(), key=lambda kernel: _natural(kernel.release))
    if not kernels:
        raise NoMachineError(
            f"no kernel in {cache_directory()}: run python -m netem.vm, which downloads Debian's "
            f"{META_PACKAGE} there (27 MB, not installed)"
        )
    return kernels[-1]


def missing() -> str | None:
    """Why the machine cannot be made here, all reasons in one line; None if it can."""
    reasons = []
    if platform.machine() != "x86_64":
        reasons.append(f"the tools inside are this host's, which is {platform.machine()}")
    packages = set()
    for tool, package in _DEBIAN_PACKAGES.items():
        try:
            find_tool(tool)
        except NoMachineError:
            packages.add(package)
    if packages:
        reasons.append(f"not installed: apt-get install {' '.join(sorted(packages))}")
    try:
        find_kernel()
    except NoMachineError as error:
        reasons.append(str(error))
    return "; ".join(reasons) or None


def fetch_kernel() -> Kernel:
    """Download the kernel that Debian's package index names now, unless the cache has it.

    Where the index cannot be asked, any kernel of the cache will do.
    """
    try:
        package = _kernel_package()
    except NoMachineError:
        if any(_cached()):
            return find_kernel()
        raise
    release = package.removeprefix("linux-image-")
    if (kernel := _cached_as(release)) is not None:
        return kernel
    cache = cache_directory()
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with _alone_in(cache):
            return _cached_as(release) or _download(package, release, cache)
    except OSError as error:
        raise NoMachineError(f"cannot keep the kernel in {cache}: {error.strerror}") from None


@contextlib.contextmanager
def _alone_in(cache: Path) -> Iterator[None]:
    """One downloads, others wait; what one that was killed left behind goes."""
    descriptor = os.open(cache, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        for left in cache.glob(f"{_DOWNLOAD}*"):
            shutil.rmtree(left, ignore_errors=True)
        yield
    finally:
        os.close(descriptor)


def _download(package: str, release: str, cache: Path) -> Kernel:
    with tempfile.TemporaryDirectory(dir=cache, prefix=_DOWNLOAD) as folder:
        options = ["-o", "APT::Sandbox::User=root"] if os.geteuid() == 0 else []
        _run(["apt-get", "-qq", *options, "download", package], cwd=folder)
        archives = list(Path(folder).glob("*.deb"))
        if len(archives) != 1:
            raise NoMachineError(f"apt-get downloaded no {package}")
        unpacked = Path(folder) / "unpacked"
        _run(["dpkg-deb", "-x", str(archives[0]), str(unpacked)], cwd=folder)
        # What is there under its name is not whole, or it would have been found.
        shutil.rmtree(cache / release, ignore_errors=True)
        unpacked.rename(cache / release)
    if (kernel := _cached_as(release)) is None:
        raise NoMachineError(f"{package} has no kernel {release} in it")
    return kernel


def _cached_as(release: str) -> Kernel | None:
    return next((kernel for kernel in _cached() if kernel.release == release), None)


def _cached() -> Iterator[Kernel]:
    for image in cache_directory().glob("*/boot/vmlinuz-*"):
        release = image.name.removeprefix("vmlinuz-")
        for modules in ("lib/modules", "usr/lib/modules"):
            folder = image.parent.parent / modules / release
            if image.parent.parent.name == release and folder.is_dir():
                yield Kernel(release, image, folder)


def _kernel_package() -> str:
    """The package that the meta package stands for today."""
    output = _run(["apt-cache", "depends", META_PACKAGE], timeout=_QUERY_TIMEOUT)
    names = re.findall(r"Depends: (linux-image-\S+)", output)
    if not names:
        raise NoMachineError(
            f"apt knows no {META_PACKAGE}: this needs Debian's package index (apt-get update)"
        )
    return str(names[0])


def _run(argv: list[str], cwd: str | None = None, timeout: float = _DOWNLOAD_TIMEOUT) -> str:
    try:
        done = subprocess.run(
            argv, cwd=cwd, timeout=timeout, capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        raise NoMachineError(f"{argv[0]} is not here: this needs a Debian system") from None
    except OSError as error:
        raise NoMachineError(f"{argv[0]}: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        raise NoMachineError(f"{' '.join(argv)}: took longer than {timeout:.0f} s") from None
    if done.returncode:
        last = done.stderr.strip().rpartition("\n")[2]
        raise NoMachineError(f"{' '.join(argv)}: {last or f'status {done.returncode}'}")
    return done.stdout


def _natural(text: str) -> list[int]:
    return [int(digits) for digits in re.findall(r"\d+", text)]
