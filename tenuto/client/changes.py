"""Whether the device is on another network now: netlink on Linux, a look each second elsewhere."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

__all__ = ["NetworkChanges", "Road", "look"]

DEBOUNCE = 0.1
"""Seconds between the kernel's word and our look: changes come in bursts."""

POLL_INTERVAL = 1.0
"""Seconds between two looks where nothing tells."""

# Links, addresses and routes of both families (linux/rtnetlink.h): no neighbours, for they
# come and go all day.
_GROUPS = 0x1 | 0x10 | 0x40 | 0x100 | 0x400

# Messages read in one go; what they say is not looked at, for the present is.
_MOST_MESSAGES = 64

# Nobody's addresses (RFC 5737, RFC 3849): the way there is the way to anywhere.
_ANYWHERE = ("192.0.2.1", "2001:db8::1")

Road = tuple[str, ...]
"""What a way out looks like: our own address and, beyond the device, the default routes."""


class NetworkChanges:
    """Calls `on_change` when the way to these hosts has become another.

    That is another address of ours towards them, another default route, or a way again after
    there was none. Nothing is said when the last way goes: there is nowhere to go then.
    Whatever the system refuses is made up for by looking each second; nothing here raises,
    and a call that fails is the caller's loss alone.
    """

    def __init__(
        self,
        on_change: Callable[[], None],
        hosts: Sequence[str] = _ANYWHERE,
        *,
        seen: Callable[[Sequence[str]], Road] | None = None,
        netlink: bool = True,
    ) -> None:
        """`hosts` are numeric addresses; `seen` looks, `look` by default."""
        self._on_change = on_change
        self._hosts = tuple(hosts)
        self._seen = seen or look
        self._netlink = netlink
        self._road: Road = ()
        self._lost = False
        self._timer: asyncio.TimerHandle | None = None
        self._socket: socket.socket | None = None
        self._polls = False

    def start(self) -> None:
        """From the running loop."""
        self._loop = asyncio.get_running_loop()
        self._road = self._look()
        self._lost = not self._road
        if not (self._netlink and self._subscribe()):
            self._poll()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._polls = False
        self._unsubscribe()

    def _subscribe(self) -> bool:
        family: int | None = getattr(socket, "AF_NETLINK", None)
        if family is None:
            return False
        made: socket.socket | None = None
        try:
            made = socket.socket(family, socket.SOCK_RAW, 0)  # NETLINK_ROUTE
            made.setblocking(False)
            made.bind((0, _GROUPS))
            self._loop.add_reader(made.fileno(), self._told)
        except (OSError, NotImplementedError):
            if made is not None:
                made.close()
            return False
        self._socket = made
        return True

    def _unsubscribe(self) -> None:
        if self._socket is not None:
            self._loop.remove_reader(self._socket.fileno())
            self._socket.close()
            self._socket = None

    def _told(self) -> None:
        """Something happened: look in a moment. A queue that ran over says so, too."""
        assert self._socket is not None
        for _ in range(_MOST_MESSAGES):
            try:
                if not self._socket.recv(65536):
                    break
            except (BlockingIOError, InterruptedError):
                break
            except OSError as error:
                if error.errno != errno.ENOBUFS:
                    self._unsubscribe()
                    self._poll()
                    return
        if self._timer is None:
            self._timer = self._loop.call_later(DEBOUNCE, self._compare)

    def _poll(self) -> None:
        self._polls = True
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(POLL_INTERVAL, self._compare)

    def _compare(self) -> None:
        self._timer = None
        road = self._look()
        if self._polls:
            self._poll()
        if not road:
            self._lost = True
        elif self._lost or road != self._road:
            self._lost, self._road = False, road
            with suppress(Exception):
                self._on_change()

    def _look(self) -> Road:
        try:
            return self._seen(self._hosts)
        except (OSError, ValueError):
            return ()


def look(hosts: Sequence[str]) -> Road:
    """The way to these hosts as it is now; empty where there is none.

    Where none leads to them but there is a network, that counts: the host may have an address of
    the other family, or other ones by now.
    """
    own = [(host, address) for host in hosts if (address := _own_address(host))]
    if not own:
        return () if tuple(hosts) == _ANYWHERE else look(_ANYWHERE)
    road = [f"{host} from {address}" for host, address in own]
    if not all(_stays_here(address) for _, address in own):
        road += _default_routes()
    return tuple(road)


def _own_address(host: str) -> str | None:
    """From where a datagram to it would leave; nothing is sent."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as made:
            made.connect((host, 9))
            address: str = made.getsockname()[0]
    except (OSError, ValueError):
        return None
    return address


def _stays_here(address: str) -> bool:
    return address.startswith("127.") or address == "::1"


def _default_routes(folder: Path = Path("/proc/net")) -> list[str]:
    """The best of each family by interface and gateway: two networks may give one address."""
    return [*_best(_routes_4(folder / "route")), *_best(_routes_6(folder / "ipv6_route"))]


def _best(routes: list[tuple[int, str]]) -> list[str]:
    least = min((metric for metric, _ in routes), default=0)
    return sorted({name for metric, name in routes if metric == least})


def _routes_4(path: Path) -> list[tuple[int, str]]:
    found = []
    for line in _lines(path):
        words = line.split()
        # Interface, destination, gateway, flags, two counters, metric, mask.
        if len(words) > 7 and words[1] == words[7] == "00000000":
            found.append((int(words[6]), f"via {words[2]} on {words[0]}"))
    return found


def _routes_6(path: Path) -> list[tuple[int, str]]:
    found = []
    for line in _lines(path):
        words = line.split()
        # Destination and its length, source and its length, gateway, metric, two counters,
        # flags, interface. The kernel's own "unreachable" is on lo.
        if len(words) > 9 and words[1] == "00" and words[9] != "lo":
            found.append((int(words[5], 16), f"via {words[4]} on {words[9]}"))
    return found


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text("ascii", "replace").splitlines()
    except OSError:
        return []  # not Linux, or not for us
