"""One direction of a profile, from its layer to its meaning."""

from collections.abc import Sequence
from typing import Final

from netem.profile.conditions import (
    Blackout,
    Bottleneck,
    Conditions,
    Distribution,
    Fades,
    GilbertElliott,
    Jitter,
    Mtu,
    RandomLoss,
    Rate,
    Schedule,
)
from netem.profile.fields import check_needs, choice, flag, inner, missing, read, reading
from netem.profile.layers import Layer, Said
from netem.profile.traces import parse_trace
from netem.profile.units import (
    DELAY,
    EVERY,
    LENGTH,
    MOMENT,
    RATE,
    SHARE,
    BadValueError,
    Count,
    Mean,
    quoted,
)

__all__ = ["DEFAULT_QUEUE", "read_direction"]

DEFAULT_QUEUE: Final = 100
"""Packets: 120 ms of full ones at 10 Mbit/s, a device that is neither starved nor bloated."""
MOST_BLACKOUTS: Final = 1_000
_QUEUE: Final = Count(noun="packets", least=1, most=1_000_000)
_MTU: Final = Count(noun="bytes", least=68, most=65_535)  # RFC 791, section 3.2: the smallest MTU
_BURST: Final = Mean(noun="packets", least=1, most=10_000)
_GEMODEL: Final = 'gemodel = { p = "1.7544%", r = "33.333%" }'
_FADE: Final = 'fade = { every = "5s", length = "100ms" }'
_BLACKOUT: Final = 'blackout = { start = "10s", length = "2s", every = "15s" }'


def read_direction(layer: Layer) -> Conditions:
    """Raises `ProfileError`."""
    check_needs(layer)
    delay = read(layer, "delay", DELAY.read, 0.0)
    reorder = read(layer, "reorder", SHARE.read, 0.0)
    if reorder and not delay:
        raise layer["reorder"].error(
            "packets can overtake only where there is a delay", "give a delay above 0ms"
        )
    return Conditions(
        delay=delay,
        jitter=_jitter(layer),
        loss=_loss(layer),
        fades=_fades(layer),
        blackouts=_blackouts(layer),
        bottleneck=_bottleneck(layer),
        reorder=reorder,
        duplicate=read(layer, "duplicate", SHARE.read, 0.0),
        corrupt=read(layer, "corrupt", SHARE.read, 0.0),
        mtu=_mtu(layer),
    )


def _jitter(layer: Layer) -> Jitter | None:
    spread = read(layer, "jitter", DELAY.read, 0.0)
    distribution = Distribution(
        read(layer, "distribution", choice(*Distribution), Distribution.NORMAL)
    )
    reordering = read(layer, "reordering", flag, False)
    if not spread:
        return None
    return Jitter(spread=spread, distribution=distribution, reordering=reordering)


def _loss(layer: Layer) -> RandomLoss | GilbertElliott | None:
    if "gemodel" in layer:
        return _gemodel(layer["gemodel"])
    loss = read(layer, "loss", SHARE.read, 0.0)
    burst = read(layer, "burst", _BURST.read, None)
    if not loss:
        return None
    if burst is None:
        return RandomLoss(rate=loss)
    most = burst / (1.0 + burst)
    if loss > most:
        raise layer["loss"].error(
            f"no more than {most * 100:.4g}% can be lost in bursts of {burst:g}",
            "lose less, or make the bursts longer",
        )
    return GilbertElliott.of_mean(loss, burst)


def _gemodel(said: Said) -> GilbertElliott:
    """In the letters of tc-netem(8), which takes `p r 1-h 1-k` after the word `gemodel`.

    h and k are the chances to get through, in the bad state and in the good one.
    """
    if isinstance(said.value, dict):
        for key in ("1-h", "1-k"):
            if key in said.value:
                raise said.error(
                    f"{key} is what tc takes, the chance of loss",
                    f'give {key[-1]}, the chance to get through: "0%" where tc has 100%',
                )
    shares = inner(said, said.value, dict.fromkeys(("p", "r", "h", "k"), SHARE), _GEMODEL)
    for key in ("p", "r"):
        if key not in shares:
            raise missing(said, key, _GEMODEL)
    if not shares["r"] and shares["p"]:
        raise said.error("r is 0%, so the bad state never ends", "give r above 0%")
    return GilbertElliott(
        to_bad=shares["p"],
        to_good=shares["r"],
        loss_bad=1.0 - shares.get("h", 0.0),
        loss_good=1.0 - shares.get("k", 1.0),
    )


def _fades(layer: Layer) -> Fades | None:
    said = layer.get("fade")
    if said is None:
        return None
    quantities = {"every": EVERY, "length": LENGTH, "loss": SHARE}
    values = inner(said, said.value, quantities, _FADE)
    for key in ("every", "length"):
        if key not in values:
            raise missing(said, key, _FADE)
    if values["length"] >= values["every"]:
        raise said.error(
            "a fade as long as its period leaves nothing clear", "make length shorter than every"
        )
    return Fades(every=values["every"], length=values["length"], loss=values.get("loss", 1.0))


def _blackouts(layer: Layer) -> tuple[Blackout, ...]:
    said = layer.get("blackout")
    if said is None:
        return ()
    items: Sequence[object] = said.value if isinstance(said.value, list) else [said.value]
    if len(items) > MOST_BLACKOUTS:
        raise said.error(
            f"there are {len(items):,} of them, more than {MOST_BLACKOUTS:,}", "use every"
        )
    return tuple(_blackout(said, item) for item in items)


def _blackout(said: Said, item: object) -> Blackout:
    quantities = {"start": MOMENT, "length": LENGTH, "every": EVERY}
    values = inner(said, item, quantities, _BLACKOUT)
    for key in ("start", "length"):
        if key not in values:
            raise missing(said, key, _BLACKOUT)
    every = values.get("every")
    if every is not None and values["length"] >= every:
        raise said.error(
            "a blackout as long as its period never ends", "make length shorter than every"
        )
    return Blackout(start=values["start"], length=values["length"], every=every)


def _bottleneck(layer: Layer) -> Bottleneck | None:
    queue = read(layer, "queue", _QUEUE.read, DEFAULT_QUEUE)
    if "rate" in layer:
        return Rate(bits_per_second=reading(layer["rate"], RATE.read), queue=queue)
    said = layer.get("trace")
    if said is None:
        return None
    name = reading(said, _trace_name)
    opportunities = reading(said, lambda _: parse_trace(said.document.text_of(name)))
    return Schedule(opportunities=opportunities, queue=queue, name=name)


def _trace_name(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise BadValueError(
            f"{quoted(value)} is not the name of a file", 'write it as in trace = "drive.trace"'
        )
    return value


def _mtu(layer: Layer) -> Mtu | None:
    answers = read(layer, "too_big", choice("silent", "icmp"), "silent") == "icmp"
    size = read(layer, "mtu", _MTU.read, None)
    return None if size is None else Mtu(size=size, answers=answers)
