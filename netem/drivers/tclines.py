"""Lines of `tc`, `nft` and `ip` run in a namespace, and what the kernel counted by them."""

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from netem.errors import ImpairmentError
from netem.kernel.interfaces import PATIENCE, find_tool
from netem.kernel.namespaces import Namespace
from netem.link.tally import Tally
from netem.tc import HANDLE, TABLE, Command, shell

__all__ = [
    "QueueCounts",
    "counts_of",
    "firewall_counts",
    "has_our_root",
    "queue_counts",
    "refuse_seed",
    "rule_counts",
    "run_line",
    "transmitted",
]

_PACKAGE = {"tc": "iproute2", "ip": "iproute2", "nft": "nftables"}
_NO_QDISC = "qdisc kind is unknown"


def run_line(namespace: Namespace, command: Command) -> str:
    """What the line printed. ImpairmentError with the kernel's own words when it is refused."""
    name = command[0]
    tool = find_tool(name)
    if tool is None:
        raise ImpairmentError(
            f"There is no `{name}` here: install {_PACKAGE[name]}, or use the tun driver."
        )
    try:
        with namespace.entered():
            done = subprocess.run(
                [tool, *command[1:]],
                capture_output=True,
                text=True,
                check=False,
                timeout=PATIENCE,
                env={**os.environ, "LC_ALL": "C"},
            )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ImpairmentError(f"`{shell(command)}` failed: {error}.") from None
    if done.returncode != 0:
        raise ImpairmentError(_refusal(command, done.stderr))
    return done.stdout


def refuse_seed(seed: int | None) -> None:
    """ImpairmentError if there is one: the kernel's netem has no use for it."""
    if seed is not None:
        raise ImpairmentError(
            f"The kernel's netem draws without a seed, so seed {seed} means nothing to it: "
            "use the tun or veth driver."
        )


def _refusal(command: Command, stderr: str) -> str:
    said = "; ".join(stderr.split("\n")).strip("; ") or "nothing"
    if _NO_QDISC in said:
        kind = next(word for word in ("netem", "tbf", "pfifo") if word in command)
        return (
            f"This kernel has no {kind}; it says to `{shell(command)}`: {said} "
            f"Load it (modprobe sch_{kind}), or use the tun or veth driver."
        )
    return f"The kernel refused `{shell(command)}`: {said}"


@dataclass(frozen=True, slots=True)
class QueueCounts:
    """Of one device: what left it, what its qdiscs dropped, and what is still in them."""

    sent: int
    lost: int
    queue_dropped: int
    waiting: int

    def tally(self) -> Tally:
        return Tally(
            offered=self.sent + self.lost + self.queue_dropped + self.waiting,
            delivered=self.sent,
            lost=self.lost,
            queue_dropped=self.queue_dropped,
            in_flight=self.waiting,
        )


def queue_counts(namespace: Namespace, device: str) -> QueueCounts | None:
    """None where our qdiscs are not."""
    return counts_of(_qdiscs(namespace, device))


def counts_of(qdiscs: Sequence[dict[str, Any]]) -> QueueCounts | None:
    """From what `tc -s -j qdisc show` says of one device; None where our qdiscs are not."""
    root = next((qdisc for qdisc in qdiscs if _is_ours(qdisc)), None)
    if root is None:
        return None
    # Each qdisc counts the drops of those below it once more.
    bottleneck = next((qdisc for qdisc in qdiscs if _is_bottleneck(qdisc)), None)
    queue_dropped = int(bottleneck["drops"]) if bottleneck else 0
    return QueueCounts(
        sent=int(root["packets"]),
        lost=int(root["drops"]) - queue_dropped,
        queue_dropped=queue_dropped,
        waiting=int(root["qlen"]),
    )


def has_our_root(namespace: Namespace, device: str) -> bool:
    return any(_is_ours(qdisc) for qdisc in _qdiscs(namespace, device))


def _qdiscs(namespace: Namespace, device: str) -> Sequence[dict[str, Any]]:
    command = ("tc", "-s", "-j", "qdisc", "show", "dev", device)
    listed: list[dict[str, Any]] = json.loads(run_line(namespace, command) or "[]")
    return listed


def _is_bottleneck(qdisc: dict[str, Any]) -> bool:
    is_child = str(qdisc.get("parent", "")).startswith(HANDLE)
    return bool(qdisc["kind"] == "tbf" or (qdisc["kind"] == "netem" and is_child))


def _is_ours(qdisc: dict[str, Any]) -> bool:
    return bool(qdisc.get("root")) and qdisc.get("handle") == HANDLE


def firewall_counts(namespace: Namespace) -> dict[str, int]:
    """Packets by the comment of the rule that took them: `blocked up`."""
    return rule_counts(json.loads(run_line(namespace, ("nft", "-j", f"list table inet {TABLE}"))))


def rule_counts(listed: dict[str, Any]) -> dict[str, int]:
    """The same from what `nft -j` says."""
    counts: dict[str, int] = {}
    for item in listed["nftables"]:
        rule = item.get("rule", {})
        for part in rule.get("expr", []):
            if "counter" in part:
                comment = rule.get("comment", "")
                counts[comment] = counts.get(comment, 0) + int(part["counter"]["packets"])
    return counts


def transmitted(table: str, device: str) -> int:
    """Packets that left a device, by what /proc/net/dev says."""
    for line in table.splitlines():
        name, colon, counters = line.partition(":")
        if colon and name.strip() == device:
            # proc(5): receive has eight columns; of transmit: bytes packets
            return int(counters.split()[9])
    return 0
