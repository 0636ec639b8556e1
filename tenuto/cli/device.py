"""The sound card, by PortAudio. It pulls; what it pulls from is somebody else's matter."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Protocol

from tenuto.cli.soundlibrary import ELSEWHERE, forget_at_exit, load_sounddevice
from tenuto.convert import Converter, Shape
from tenuto.errors import OperatorError, RequestError

__all__ = [
    "Device",
    "DeviceShape",
    "Listener",
    "no_resampler",
    "open_device",
]

# Seconds ahead that we believe of a device; some report nonsense, some nothing at all.
_SANE_LATENCY = 2.0


@dataclass(frozen=True, slots=True)
class DeviceShape:
    """What the device takes: any rate, unlike an `AudioFormat`. `latency` is in seconds."""

    name: str
    rate: int
    channels: int
    latency: float

    @property
    def bytes_per_sample(self) -> int:
        return 2 * self.channels


class Listener(Protocol):
    """Whom the device's thread calls. Nothing of it may raise or wait."""

    def attach(self, shape: DeviceShape) -> None:
        """Before the first pull."""
        ...

    def pull(self, samples: int, ahead: float, underflow: bool) -> tuple[bytes, bool]:
        """So many samples to sound `ahead` seconds from now, and whether they are the last."""
        ...


class Device(Protocol):
    """A device that plays."""

    @property
    def shape(self) -> DeviceShape: ...

    @property
    def stopped(self) -> bool:
        """Whether it has, after our last sample or by itself."""
        ...

    def close(self) -> None:
        """Stop at once; nobody is called any more. May hang where the device does."""
        ...


def open_device(
    wanted: Shape,
    listener: Listener,
    *,
    latency: float = 0.0,
    anew: bool = False,
    own_rate: bool = False,
) -> Device:
    """Start the default device: as the stream is if it takes that, else as it is itself.

    `anew` looks at the machine's devices again, which PortAudio does only once by itself;
    none may be open. `latency` is the least to ask for, `own_rate` prefers the rate that the
    device says. Raises `OperatorError`.
    """
    library = load_sounddevice()
    try:
        if anew:
            _look_again(library)
        info = library.query_devices(kind="output")
        rate, channels = _choose(library, info, wanted, own_rate=own_rate)
        shape = DeviceShape(
            str(info["name"]),
            rate,
            channels,
            max(latency, _sane(info["default_high_output_latency"]) or 0.0),
        )
        return PortAudioDevice(library, shape, listener)
    except (library.PortAudioError, ValueError) as error:
        raise OperatorError(
            f"no loudspeaker for {wanted.rate} Hz and {wanted.channels} channels: {error}",
            remedy=f"connect or choose one in the system's settings, {ELSEWHERE}",
        ) from None


def no_resampler(stream: int, device: int) -> OperatorError:
    """For rates that differ, where nothing converts them."""
    return OperatorError(
        f"the loudspeaker plays {device} Hz, the stream has {stream} Hz, and soxr, which "
        "converts them, is not installed",
        remedy=f"pip install 'tenuto[audio]', {ELSEWHERE}",
    )


@dataclass(frozen=True, slots=True)
class _Wish:
    rate: int
    channels: int


def _look_again(library: Any) -> None:
    if any("JACK" in api["name"] for api in library.query_hostapis()):
        # PortAudio aborts the process if it ends JACK's part after JACK's server has gone.
        forget_at_exit()
        return
    library._terminate()  # noqa: SLF001 - there is no public way
    library._initialize()  # noqa: SLF001


def _choose(
    library: Any, info: dict[str, Any], wanted: Shape, *, own_rate: bool
) -> tuple[int, int]:
    """Rate and channels of the default device as it will be opened."""
    own = round(info["default_samplerate"])
    most = int(info["max_output_channels"])
    if most < 1:
        raise ValueError(f"{info['name']} has no channel to play on")
    rates = [own, wanted.rate] if own_rate else [wanted.rate, own]
    counts = [count for count in (wanted.channels, 2, 1) if count <= most] or [most]
    refusals: list[Exception] = []
    for rate in dict.fromkeys(rates):
        for channels in dict.fromkeys([*counts, most]):
            try:
                library.check_output_settings(channels=channels, dtype="int16", samplerate=rate)
                Converter(wanted, _Wish(rate, channels))
            except (library.PortAudioError, RequestError) as error:
                refusals.append(error)
            else:
                return rate, channels
    for refusal in refusals:
        if isinstance(refusal, RequestError):
            raise no_resampler(wanted.rate, own)
    raise refusals[0]


class PortAudioDevice:
    """A `Device`; see `open_device`."""

    def __init__(self, library: Any, wish: DeviceShape, listener: Listener) -> None:
        self._library = library
        self._listener = listener
        self._closed = False
        self.stopped = False
        self._stream = library.RawOutputStream(
            samplerate=wish.rate,
            channels=wish.channels,
            dtype="int16",
            blocksize=0,
            latency=wish.latency,
            callback=self._pull,
            finished_callback=self._stop,
        )
        self.shape = replace(wish, latency=_sane(self._stream.latency) or wish.latency)
        listener.attach(self.shape)
        try:
            self._stream.start()
        except library.PortAudioError:
            self.close()
            raise

    def close(self) -> None:
        self._closed = True
        with suppress(self._library.PortAudioError):  # it may have gone before us
            self._stream.abort()
            self._stream.close()

    def _pull(self, out: Any, samples: int, time: Any, status: Any) -> None:
        """Called by the device's thread, for blocks of any size."""
        if self._closed:  # given up as hanging, and come back to life
            out[:] = bytes(len(out))
            raise self._library.CallbackAbort
        ahead = _sane(time.outputBufferDacTime - time.currentTime)
        if ahead is None:
            ahead = self.shape.latency
        out[:], last = self._listener.pull(samples, ahead, bool(status.output_underflow))
        if last:
            raise self._library.CallbackStop

    def _stop(self) -> None:
        self.stopped = True


def _sane(latency: float) -> float | None:
    """Also of what is no number."""
    return latency if 0 < latency <= _SANE_LATENCY else None
