"""From a URL to a sink: what `play` and `speak` have in common."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Literal

from tenuto.cli.errors import FramesMissingError
from tenuto.cli.options import ListenOptions
from tenuto.cli.pipesink import StdoutSink
from tenuto.cli.recorder import ArrivalRecorder
from tenuto.cli.report import QuietReport, make_report, summary
from tenuto.cli.sink import Sink, open_sink
from tenuto.cli.sinkevents import SinkEvent
from tenuto.cli.soundlibrary import load_aside
from tenuto.cli.switches import Switches
from tenuto.cli.together import together
from tenuto.client import (
    EpochBegun,
    Event,
    FormatAnnounced,
    NoticeReceived,
    Stream,
    StreamCut,
    open_stream,
)
from tenuto.client.arrivals import ArrivalsHeader
from tenuto.daemons import DaemonExecutor
from tenuto.errors import OperatorError, RemoteProtocolError
from tenuto.media import Frame

__all__ = ["listen"]

Value = str | int | float


@dataclass(slots=True)
class _Listening:
    """How far it got."""

    stream: Stream | None = None
    recorder: ArrivalRecorder | None = None
    sink: Sink | None = None
    started: float = 0.0
    switches: Switches = field(default_factory=Switches)


def listen(
    url: str,
    options: ListenOptions,
    *,
    params: Mapping[str, Value],
    method: Literal["GET", "POST"] = "GET",
) -> None:
    """Play or write the stream to its end; what went wrong is raised."""
    # aioquic warns of what we report ourselves, in its own words.
    logging.getLogger("quic").setLevel(logging.CRITICAL)
    asyncio.run(_listen(url, options, params, method))


async def _listen(
    url: str,
    options: ListenOptions,
    params: Mapping[str, Value],
    method: Literal["GET", "POST"],
) -> None:
    # The end joins the default executor, where a name is resolved that may take its time.
    asyncio.get_running_loop().set_default_executor(DaemonExecutor())
    report = make_report(as_json=options.as_json, stdout_is_audio=options.output == "-")
    at = _Listening(started=asyncio.get_running_loop().time())
    error: BaseException | None = None
    with report:
        try:
            if options.output is None:
                await load_aside()  # before a server works for nothing
            async with open_stream(
                url,
                transport=options.transport,
                params=params,
                lead=options.lead_for(url),
                method=method,
                mode=options.mode_for(url),
                token=options.token,
                resume=options.resume,
                memory=options.memory,
                trust=options.trust(url),
                on_event=partial(_happened, at, report),
            ) as stream:
                at.stream = stream
                with _recorder(url, options, stream) as at.recorder:
                    async with _sink(options, stream, report.event) as at.sink:
                        for event in stream.events:
                            _tell(at.sink, event, stream)
                        report.playing(stream, at.sink, at.switches)
                        await together(at.sink.open(), _drain(stream, at.sink, at.recorder))
                if stream.gaps:
                    raise FramesMissingError(stream.gaps)
        except BaseException as raised:
            error = raised
            raise
        finally:
            done = summary(at.stream, options.output, error, at.sink, at.recorder, at.switches)
            report.done(done)


def _happened(at: _Listening, report: QuietReport, event: Event) -> None:
    if at.sink is not None and at.stream is not None:
        _tell(at.sink, event, at.stream)
    at.switches.note(event, asyncio.get_running_loop().time() - at.started)
    report.event(event)


def _tell(sink: Sink, event: Event, stream: Stream) -> None:
    """What the sink must know of it, as soon as its bytes are read: its frames come later."""
    match event:
        case EpochBegun():
            sink.flush(event.base)
        case NoticeReceived(code="paused"):
            sink.pause(stream.next_sequence)
        case NoticeReceived(code="resumed"):
            sink.resume()
        case _:
            pass


async def _drain(stream: Stream, sink: Sink, recorder: ArrivalRecorder | None) -> None:
    try:
        async for frame in stream:
            batch = await _batch(stream, frame)
            if recorder is not None:
                recorder.add(batch)
            await sink.write(batch, stream.format)
            if sink.heard is not None:
                stream.heard(sink.heard)
    except (StreamCut, RemoteProtocolError):
        # What came before is good. What else goes wrong with it now matters less.
        with suppress(OperatorError):
            await sink.finish()
        raise
    await sink.finish()


async def _batch(stream: Stream, first: Frame) -> list[Frame]:
    """This frame and those of its format that came with it."""
    return [first, *[await anext(stream) for _ in range(stream.ready)]]


@asynccontextmanager
async def _sink(
    options: ListenOptions, stream: Stream, on_event: Callable[[SinkEvent], None]
) -> AsyncIterator[Sink]:
    """What is to play or to write; abandoned where anything goes wrong."""
    sink: Sink
    if options.output is None:
        from tenuto.cli.speaker import Speaker  # not for a file: it takes its time to load

        sink = Speaker(
            stream.format, mode=options.mode, drift=not options.no_drift, on_event=on_event
        )
    elif options.output == "-":
        sink = StdoutSink(stream.format)
    else:
        sink = open_sink(options.output, stream.format)
    try:
        yield sink
    except BaseException:
        await sink.abandon()
        raise


def _recorder(
    url: str, options: ListenOptions, stream: Stream
) -> ArrivalRecorder | nullcontext[None]:
    if options.record_arrivals is None:
        return nullcontext()
    announced = [event for event in stream.events if isinstance(event, FormatAnnounced)]
    header = ArrivalsHeader(
        transport=stream.transport,
        mode=options.mode,
        lead=options.pacing(url),
        chunk_frames=announced[0].chunk_frames if announced else 0,
        rate=stream.format.rate,
        channels=stream.format.channels,
        started=datetime.now(UTC).isoformat(timespec="milliseconds"),
    )
    return ArrivalRecorder(options.record_arrivals, header)
