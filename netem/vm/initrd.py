"""The first and only root file system of the machine: a shell, `ip`, `tc`, `nft` and modules.

Everything is this host's own, but the kernel's modules, so what runs inside is what an engineer
with the same distribution would run on a router.
"""

import lzma
import re
import subprocess
from pathlib import Path
from typing import Final

from netem.vm.archive import Archive
from netem.vm.packages import Kernel, NoMachineError, find_tool

__all__ = ["READY", "STATUS", "build_initrd", "module_order"]

READY: Final = "netem-ready"
"""The line on the console after which commands are taken."""
STATUS: Final = "netem-status"
"""The word before each command's exit status."""

MODULES: Final = (
    # The virtual hardware.
    "virtio_pci",
    "virtio_net",
    # What `netem.tc` speaks to.
    "sch_netem",
    "sch_tbf",
    "sch_prio",
    "cls_u32",
    "cls_matchall",
    "act_police",
    "nf_tables",
    "nft_ct",
    "nft_limit",
    "nft_reject_inet",
    "nft_quota",
    "nft_connlimit",
    "nft_masq",
    "nft_chain_nat",
)
_TOOLS: Final = ("dash", "ip", "tc", "nft")
_DISTRIBUTIONS: Final = ("/usr/lib/tc", "/usr/lib/x86_64-linux-gnu/tc", "/lib/tc")

# Commands come base64 encoded, one a line: so they may have lines of their own, and quotes.
# The shell is dash, for busybox's own takes busybox's `ip` and `tc` whatever the path says.
_INIT: Final = f"""#!/sbin/dash
/bin/busybox --install -s /bin
ln -sf /sbin/dash /bin/sh
export PATH=/sbin:/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
stty raw -echo
dmesg -n 1
while read -r module; do
    insmod "/modules/$module" || echo "insmod $module failed"
done < /modules/order
ip link set lo up
echo {READY}
while read -r line; do
    echo "$line" | base64 -d | sh 2>&1
    echo "{STATUS} $?"
done
poweroff -f
"""


def build_initrd(kernel: Kernel) -> bytes:
    """The archive, not compressed: the emulated processor would be slow to expand it."""
    archive = Archive()
    for folder in ("dev", "proc", "sys", "sbin", "tmp"):
        archive.add_directory(folder)
    archive.add_file("init", _INIT.encode(), executable=True)
    archive.add_file("bin/busybox", _static_busybox().read_bytes(), executable=True)
    libraries: set[str] = set()
    for name in _TOOLS:
        tool = find_tool(name)
        archive.add_file(f"sbin/{name}", tool.read_bytes(), executable=True)
        libraries.update(_libraries(tool))
    for library in sorted(libraries):
        archive.add_file(library, Path(library).read_bytes(), executable=True)
    for folder in _DISTRIBUTIONS:
        for table in sorted(Path(folder).glob("*.dist")):
            archive.add_file(str(table), table.read_bytes())
    order = module_order(kernel.modules, MODULES)
    for name, data in order:
        archive.add_file(f"modules/{name}.ko", data)
    archive.add_file("modules/order", "".join(f"{name}.ko\n" for name, _ in order).encode())
    return archive.finish()


def module_order(folder: Path, wanted: tuple[str, ...]) -> list[tuple[str, bytes]]:
    """The modules wanted and those they need, by name, in an order in which they can be loaded.

    Read from the modules themselves: a package that was never installed has no modules.dep.
    """
    files = {_plain(path.name): path for path in folder.rglob("*.ko*")}
    builtin = {_plain(Path(line).name) for line in _lines(folder / "modules.builtin")}
    order: dict[str, bytes] = {}

    def add(name: str) -> None:
        if name in order or name in builtin:
            return
        if name not in files:
            raise NoMachineError(f"the kernel {folder.name} has no module {name}")
        data = _expand(files[name])
        for needed in _depends(data):
            add(needed)
        order[name] = data

    for name in wanted:
        add(name)
    return list(order.items())


def _static_busybox() -> Path:
    busybox = find_tool("busybox")
    if _libraries(busybox):
        raise NoMachineError(
            f"{busybox} needs libraries: apt-get install busybox-static (it replaces busybox)"
        )
    return busybox


def _libraries(tool: Path) -> list[str]:
    listed = subprocess.run(["ldd", str(tool)], capture_output=True, text=True, check=False)
    return re.findall(r"(/\S+) \(0x", listed.stdout)


def _plain(name: str) -> str:
    return name.partition(".ko")[0].replace("-", "_")


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def _expand(path: Path) -> bytes:
    try:
        data = path.read_bytes()
        if path.suffix == ".xz":
            return lzma.decompress(data)
    except (OSError, lzma.LZMAError) as error:
        raise NoMachineError(f"{path} cannot be read: {error}") from None
    if path.suffix != ".ko":
        raise NoMachineError(f"{path} is compressed in a way not known here")
    return data


def _depends(module: bytes) -> list[str]:
    """The names in the module's section .modinfo, where texts end with a zero byte."""
    found = re.search(rb"\0depends=([^\0]*)\0", module)
    names = found[1].decode().split(",") if found else []
    return [name.replace("-", "_") for name in names if name]
