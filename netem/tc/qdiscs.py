"""What `tc` does to the packets that leave a device: netem on top, and below it the bottleneck."""

import math
from typing import Final

from netem.profile.conditions import (
    Conditions,
    Distribution,
    GilbertElliott,
    Jitter,
    RandomLoss,
    Rate,
)
from netem.tc.lines import HANDLE, Command, rate, share, span

__all__ = ["qdiscs"]

LIMIT: Final = 100_000
"""Packets in netem's delay line. Its default of 1,000 is full at 10,000 packets/s over 100 ms."""
ORDER_RATE: Final = "10gbit"
"""netem keeps the order of packets under jitter only where it has a rate: one that costs nothing.

It fits the 32 bits in which every version of tc passes a rate.
"""
PARETO: Final = 0.75**0.5
"""What tc's table of it takes for the standard deviation, in real ones: it divides by the variance.

The table ends at four of its own, so that the latest packets are 3.5 of ours late.
"""
LEAST_DELAY: Final = 1e-6
LEAST_BUCKET: Final = 3_100
"""Bytes: two full frames with their link headers. Less, and tbf drops what is larger."""
LARGEST_FRAME: Final = 1_600
_CHILDREN: Final = ("7f:", "80:")


def qdiscs(device: str, conditions: Conditions) -> list[Command]:
    """The lines that make `device` do it; none for a direction that does nothing."""
    words = _netem(conditions)
    bottleneck = conditions.bottleneck if isinstance(conditions.bottleneck, Rate) else None
    lines: list[Command] = []
    if words:
        lines.append(_add(device, "root", HANDLE, ["netem", *words]))
    if bottleneck is not None:
        tbf, fifo = _CHILDREN if words else (HANDLE, _CHILDREN[0])
        place = f"parent {HANDLE}1" if words else "root"
        lines.append(_add(device, place, tbf, _tbf(bottleneck)))
        queue = ["pfifo", "limit", str(bottleneck.queue)]
        lines.append(_add(device, f"parent {tbf}1", fifo, queue))
    return lines


def _add(device: str, place: str, handle: str, words: list[str]) -> Command:
    # Never `replace`: it leaves what netem was told before and is not told again.
    return ("tc", "qdisc", "add", "dev", device, *place.split(), "handle", handle, *words)


def _netem(conditions: Conditions) -> list[str]:
    words: list[str] = []
    if conditions.delay or conditions.jitter:
        # tc refuses a distribution around no delay at all.
        delay = max(conditions.delay, LEAST_DELAY) if conditions.jitter else conditions.delay
        words += ["delay", span(delay), *_jitter(conditions.jitter)]
    words += _loss(conditions.loss)
    for word, fraction in (
        ("corrupt", conditions.corrupt),
        ("duplicate", conditions.duplicate),
        ("reorder", conditions.reorder),
    ):
        if fraction:
            words += [word, share(fraction)]
    if conditions.jitter and not conditions.jitter.reordering:
        words += ["rate", ORDER_RATE]
    return ["limit", str(LIMIT), *words] if words else []


def _jitter(jitter: Jitter | None) -> list[str]:
    if jitter is None:
        return []
    pareto = jitter.distribution is Distribution.PARETO
    words = [span(jitter.spread * PARETO if pareto else jitter.spread)]
    if jitter.distribution is not Distribution.UNIFORM:  # uniform is what netem does without one
        words += ["distribution", jitter.distribution.value]
    return words


def _loss(loss: RandomLoss | GilbertElliott | None) -> list[str]:
    # Never `loss 5% 25%`: with a correlation netem loses far less than it is told.
    if loss is None:
        return []
    if isinstance(loss, RandomLoss):
        return ["loss", share(loss.rate)]
    words = ["loss", "gemodel", share(loss.to_bad), share(loss.to_good)]
    if (loss.loss_bad, loss.loss_good) != (1.0, 0.0):
        words += [share(loss.loss_bad), share(loss.loss_good)]
    return words


def _tbf(bottleneck: Rate) -> list[str]:
    # A bucket of a millisecond: less, and the timers cannot fill a fast line.
    bucket = max(LEAST_BUCKET, math.ceil(bottleneck.bits_per_second / 8 / 1_000))
    # tbf asks for a limit in bytes; the pfifo below it takes its place.
    limit = bottleneck.queue * LARGEST_FRAME
    words = ["tbf", "rate", rate(bottleneck.bits_per_second)]
    return [*words, "burst", str(bucket), "limit", str(max(limit, bucket))]
