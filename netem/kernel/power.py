"""What this process may do to the network it is in, as the kernel has it."""

from pathlib import Path
from typing import Final

from netem.errors import ImpairmentError
from netem.kernel.libc import require_linux
from netem.kernel.namespaces import become_root_of_own

__all__ = ["ensure_power", "missing_capabilities"]

# linux/capability.h
_NEEDED: Final = {"CAP_NET_ADMIN": 12, "CAP_NET_RAW": 13, "CAP_SYS_ADMIN": 21}


def missing_capabilities() -> list[str]:
    """Those of the ones that a bed needs that this process does not have."""
    require_linux()
    held = 0
    for line in Path("/proc/thread-self/status").read_text().splitlines():
        if line.startswith("CapEff:"):
            held = int(line.split()[1], 16)
    return [name for name, bit in _NEEDED.items() if not held >> bit & 1]


def ensure_power(*, own_network: bool) -> bool:
    """Be able to make a bed, in a user namespace if need be; whether that was needed.

    There is no power over the network we came from in there, so it helps only with `own_network`.
    """
    missing = missing_capabilities()
    if not missing:
        return False
    if not own_network:
        raise ImpairmentError(
            f"Without {', '.join(missing)} your own network cannot be changed. Either be root "
            "(in a container: --cap-add NET_ADMIN,SYS_ADMIN), or let netem start the server side "
            "too, with --serve CMD, or use --driver relay --server HOST:PORT, for UDP only."
        )
    become_root_of_own()
    return True
