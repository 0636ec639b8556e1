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
LINK_HEADER: Final = 14
"""Bytes of Ethernet before each packet: the kernel's rates count them, a profile's do not."""
LEAST_DELAY: Final = 1e-6
LEAST_BUCKET: Final = 3_100
"""Bytes: two full frames with their link headers. Less, and tbf drops what is larger."""
LARGEST_FRAME: Final = 1_600
CHILD: Final = "7f:"
GRANDCHILD: Final = "80:"


def qdiscs(device: str, conditions: Conditions) -> list[Command]:
    """The lines that make `device` do it; none for a direction that does nothing.

    Below a netem the bottleneck is another one: it keeps each packet as long as the line would,
    where the bucket of a tbf lets those of a quiet line go at once. Alone it is a tbf, which more
    kernels have; and beside `duplicate`, for kernels since 6.17, and those of the distributions
    that were mended like it, refuse a second netem on a device where one duplicates.
    """
    words = _netem(conditions)
    bottleneck = conditions.bottleneck if isinstance(conditions.bottleneck, Rate) else None
    if bottleneck is None:
        return [_add(device, "root", HANDLE, ["netem", *words])] if words else []
    stab = f"{HANDLE} stab overhead {-LINK_HEADER} linklayer ethernet"
    if not words:
        return [
            _add(device, "root", stab, _tbf(bottleneck)),
            _add(device, f"parent {HANDLE}1", CHILD, _queue(bottleneck)),
        ]
    below = f"parent {HANDLE}1"
    if conditions.duplicate:
        return [
            # The kernel takes a stab at the root alone; a tbf below counts by it as well.
            _add(device, "root", stab, ["netem", *words]),
            _add(device, below, CHILD, _tbf(bottleneck)),
            _add(device, f"parent {CHILD}1", GRANDCHILD, _queue(bottleneck)),
        ]
    line = ["netem", "limit", str(bottleneck.queue), "rate", rate(bottleneck.bits_per_second)]
    return [
        _add(device, "root", HANDLE, ["netem", *words]),
        _add(device, below, CHILD, [*line, str(-LINK_HEADER)]),
    ]


def _add(device: str, place: str, handle: str, words: list[str]) -> Command:
    # Never `replace`: it leaves what netem was told before and is not told again.
    return ("tc", "qdisc", "add", "dev", device, *place.split(), "handle", *handle.split(), *words)


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
    words = [span(jitter.spread)]
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


def _queue(bottleneck: Rate) -> list[str]:
    return ["pfifo", "limit", str(bottleneck.queue)]


def _tbf(bottleneck: Rate) -> list[str]:
    # A bucket of a millisecond: less, and the timers cannot fill a fast line.
    bucket = max(LEAST_BUCKET, math.ceil(bottleneck.bits_per_second / 8 / 1_000))
    # tbf asks for a limit in bytes; the pfifo below it takes its place.
    limit = bottleneck.queue * LARGEST_FRAME
    words = ["tbf", "rate", rate(bottleneck.bits_per_second)]
    return [*words, "burst", str(bucket), "limit", str(max(limit, bucket))]
