"""What this process may do to the network it is in, as the kernel has it."""

from pathlib import Path
from typing import Final

from netem.errors import ImpairmentError
from netem.kernel.libc import CLONE_NEWNET, require_linux, setns
from netem.kernel.namespaces import Namespace, become_root_of_own

__all__ = ["ensure_power", "lacking_power"]

# linux/capability.h
_NEEDED: Final = {"CAP_NET_ADMIN": 12, "CAP_NET_RAW": 13, "CAP_SYS_ADMIN": 21}


def lacking_power() -> str | None:
    """What this process lacks to change the network that it is in; None if it may."""
    require_linux()
    missing = _missing_capabilities()
    if missing:
        return f"without {', '.join(missing)}"
    with Namespace.current() as home:
        try:
            # Changes nothing, yet asks whether we are somebody there: in a user namespace
            # without a network of its own we are not.
            setns(home.fd, CLONE_NEWNET)
        except OSError:
            return "it belongs to another user namespace"
    return None


def _missing_capabilities() -> list[str]:
    held = 0
    for line in Path("/proc/thread-self/status").read_text().splitlines():
        if line.startswith("CapEff:"):
            held = int(line.split()[1], 16)
    return [name for name, bit in _NEEDED.items() if not held >> bit & 1]


def ensure_power(*, own_network: bool) -> bool:
    """Be able to make a bed, in a user namespace if need be; whether that was needed.

    There is no power over the network we came from in there, so it helps only with `own_network`.
    """
    lacking = lacking_power()
    if lacking is None:
        return False
    if not own_network:
        raise ImpairmentError(
            f"Your own network cannot be changed: {lacking}. Either be root (in a container: "
            "--cap-add NET_ADMIN,SYS_ADMIN), or let netem start the server side too, with "
            "--serve CMD, or use --driver relay --server HOST:PORT, for UDP only."
        )
    become_root_of_own()
    return True
