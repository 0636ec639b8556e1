"""What happened, for people (one live line) and for machines (JSON lines)."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import asdict
from typing import Any, TextIO

from rich.console import Console
from rich.live import Live
from rich.text import Text

from tenuto.cli.errors import CommandError
from tenuto.cli.place import shown
from tenuto.cli.recorder import ArrivalRecorder
from tenuto.cli.sink import Sink
from tenuto.cli.sinkevents import DeviceLost, DeviceOpened, SinkEvent
from tenuto.cli.switches import Switches
from tenuto.client import (
    ConnectError,
    Event,
    Failure,
    Interrupted,
    Moved,
    Rebound,
    Restarted,
    Resumed,
    Stream,
    StreamCut,
    Suspected,
    TransportChosen,
    TransportFailed,
)
from tenuto.errors import ErrorCode, TenutoError
from tenuto.media import FRAME_DURATION, AudioFormat

__all__ = ["JsonReport", "LiveReport", "QuietReport", "event_fields", "make_report", "summary"]


class QuietReport:
    """Says nothing; the others say more."""

    def __enter__(self) -> QuietReport:
        return self

    def __exit__(self, *exception: object) -> None:
        pass

    def event(self, event: Event | SinkEvent) -> None:
        """Something happened."""

    def playing(self, stream: Stream, sink: Sink, switches: Switches) -> None:
        """From now on there is something to show."""

    def done(self, fields: dict[str, Any]) -> None:
        """It is over; `fields` is the summary."""


class JsonReport(QuietReport):
    """One JSON object a line: the events as they happen, the summary last."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def event(self, event: Event | SinkEvent) -> None:
        self._write(event_fields(event))

    def done(self, fields: dict[str, Any]) -> None:
        self._write(fields)

    def _write(self, fields: dict[str, Any]) -> None:
        print(json.dumps(fields), file=self._file, flush=True)


class LiveReport(QuietReport):
    """One line on a terminal that follows the stream."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._stream: Stream | None = None
        self._sink: Sink | None = None
        self._switches = Switches()
        self._live = Live(
            console=console, get_renderable=self._render, refresh_per_second=8, transient=False
        )

    def __enter__(self) -> LiveReport:
        self._live.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._live.stop()

    def event(self, event: Event | SinkEvent) -> None:
        line = _told(event)
        if line is not None:
            self._console.print(Text(shown(line), style="yellow"))

    def playing(self, stream: Stream, sink: Sink, switches: Switches) -> None:
        self._stream, self._sink, self._switches = stream, sink, switches

    def _render(self) -> Text:
        stream, sink = self._stream, self._sink
        if stream is None or sink is None:
            return Text("connecting ...", style="dim")
        seconds = stream.seconds
        # What matters most comes first: a narrow terminal cuts off the rest.
        text = Text(no_wrap=True, overflow="ellipsis")
        text.append(f"{int(seconds) // 60:02d}:{seconds % 60:04.1f}", style="bold")
        if stream.interrupted:
            text.append("  reconnecting ...", style="yellow")
        else:
            text.append(f"  {stream.transport}", style="green")
        text.append(f"  buffer {max(0.0, sink.buffered):.1f} s")
        text.append(f"  {stream.gaps} missing", style="red" if stream.gaps else "")
        text.append(f" of {stream.received + stream.gaps}")
        _append_switches(text, self._switches)
        _append_sink(text, sink)
        if not stream.interrupted:
            text.append(f"  {stream.peer}", style="dim")
        return text


def make_report(*, as_json: bool, stdout_is_audio: bool) -> QuietReport:
    """JSON where asked for; else a live line if a person is looking; else nothing."""
    if as_json:
        return JsonReport(sys.stderr if stdout_is_audio else sys.stdout)
    console = Console(stderr=True)
    return LiveReport(console) if console.is_terminal else QuietReport()


def event_fields(event: Event | SinkEvent) -> dict[str, Any]:
    """An event as a flat JSON object; `event` is its name in kebab case."""
    fields = {"event": re.sub(r"(?<!^)(?=[A-Z])", "-", type(event).__name__).lower()}
    if isinstance(event, TransportFailed):
        return fields | _failure_fields(event.failure)
    if isinstance(event, TransportChosen):
        return fields | asdict(event) | {"handshake": round(event.handshake, 6)}
    return fields | {name: _plain(value) for name, value in _items(event)}


def summary(
    stream: Stream | None,
    output: str | None,
    error: BaseException | None,
    sink: Sink | None = None,
    recorder: ArrivalRecorder | None = None,
    switches: Switches | None = None,
) -> dict[str, Any]:
    """The last JSON line. Times are seconds since the start; null is what never happened."""
    fields: dict[str, Any] = {
        "event": "summary",
        "complete": error is None and stream is not None and stream.complete,
        "output": output,
        "error": _error_fields(error),
    }
    if stream is None:
        return fields
    timings = {
        name: None if value is None else round(value, 6)
        for name, value in asdict(stream.timings).items()
    }
    account = None if sink is None else sink.account
    if account is not None:
        fields |= account.fields()
    if recorder is not None:
        fields["arrivals"] = {"events": recorder.events, "dropped": recorder.dropped}
    if switches is not None:
        fields["switches"] = [switch.fields() for switch in switches.recent]
        fields["switch_count"] = switches.count
    return fields | {
        "transport": stream.transport,
        "peer": stream.peer,
        "session": stream.session,
        "epoch": stream.epoch,
        "next": stream.next_sequence,
        "format": _plain(stream.format),
        "frames": stream.received,
        "samples": stream.samples,
        "seconds": round(stream.seconds, 6),
        "gaps": stream.gaps,
        "gap_seconds": round(stream.gaps * FRAME_DURATION, 6),
        "duplicates": stream.duplicates,
        "timings": timings,
    }


def _told(event: Event | SinkEvent) -> str | None:
    """What a person should read of it."""
    if isinstance(event, TransportFailed):
        return f"{event.failure.transport} gave nothing: {event.failure.reason}"
    if isinstance(event, Interrupted):
        return f"the connection is lost ({event.reason}): reconnecting ..."
    if isinstance(event, Resumed):
        return f"back on {event.transport} after {event.gap:.1f} s"
    if isinstance(event, Moved):
        return f"goes on over {event.transport}: {event.reason}"
    if isinstance(event, Suspected):
        return f"audio is {event.lag:.1f} s overdue on {event.transport}"
    if isinstance(event, Rebound):
        return f"the network has changed: {event.transport} goes on from another port"
    if isinstance(event, Restarted):
        return f"a new session goes on from frame {event.sequence}"
    if isinstance(event, DeviceLost):
        return f"the loudspeaker {event.name} was lost: {event.reason}"
    if isinstance(event, DeviceOpened) and event.count > 1:
        return f"playing on {event.name} at {event.rate} Hz"
    return None


def _append_switches(text: Text, switches: Switches) -> None:
    last = switches.last
    if last is None:
        return
    noun = "switch" if switches.count == 1 else "switches"
    text.append(f"  {switches.count} {noun}", style="yellow")
    text.append(f" ({last.reason})")


def _append_sink(text: Text, sink: Sink) -> None:
    account = sink.account
    if account is None:
        return
    playout = account.playout
    text.append(f"  {playout.underruns} underruns", style="red" if playout.underruns else "")
    text.append(f"  {1000 * account.made.concealed:.0f} ms concealed")
    if account.underflows:
        text.append(f"  {account.underflows} device underflows", style="red")
    if account.reopened:
        text.append(f"  reopened {account.reopened}x", style="yellow")
    text.append(f"  delay {1000 * playout.delay:.0f}/{1000 * playout.target:.0f} ms", style="dim")


def _items(event: Event | SinkEvent) -> list[tuple[str, Any]]:
    return [(name, getattr(event, name)) for name in type(event).__dataclass_fields__]


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 6)
    if isinstance(value, AudioFormat):
        return {"codec": value.codec.name.lower(), "rate": value.rate, "channels": value.channels}
    return value


def _failure_fields(failure: Failure) -> dict[str, Any]:
    return {
        "transport": failure.transport,
        "kind": failure.kind.value,
        "reason": failure.reason,
    }


def _error_name(error: TenutoError) -> str:
    """The code; errors that arise on this side have a name of their own."""
    if isinstance(error, CommandError):
        return error.name
    if isinstance(error, ConnectError):
        return "unreachable"
    if isinstance(error, StreamCut) and error.code is ErrorCode.INTERNAL:
        return "cut"
    return str(error.code.value)


def _error_fields(error: BaseException | None) -> dict[str, Any] | None:
    if error is None:
        return None
    if isinstance(error, TenutoError):
        return {"code": _error_name(error), "message": error.message, "remedy": error.remedy}
    return {"code": "interrupted", "message": type(error).__name__, "remedy": ""}
