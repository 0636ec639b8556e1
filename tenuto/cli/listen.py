"""From a URL to a sink: what `play` and `speak` have in common."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Literal

from tenuto.cli.errors import FramesMissingError
from tenuto.cli.options import ListenOptions
from tenuto.cli.report import QuietReport, make_report, summary
from tenuto.cli.sink import FileSink, Sink, StdoutSink
from tenuto.cli.speaker import Speaker, load_sounddevice
from tenuto.client import Stream, open_stream
from tenuto.errors import ErrorCode, TenutoError
from tenuto.media import AudioFormat, Frame

__all__ = ["listen"]

Value = str | int | float


def listen(
    url: str,
    options: ListenOptions,
    *,
    params: Mapping[str, Value],
    method: Literal["GET", "POST"] = "GET",
) -> None:
    """Play or write the stream to its end; what went wrong is raised."""
    if options.output is None:
        load_sounddevice()  # before a server works for nothing
    # aioquic warns of what we report ourselves, in its own words.
    logging.getLogger("quic").setLevel(logging.CRITICAL)
    asyncio.run(_listen(url, options, params, method))


async def _listen(
    url: str,
    options: ListenOptions,
    params: Mapping[str, Value],
    method: Literal["GET", "POST"],
) -> None:
    report = make_report(as_json=options.as_json, stdout_is_audio=options.output == "-")
    opened: list[Stream] = []
    error: BaseException | None = None
    with report:
        try:
            async with open_stream(
                url,
                transport=options.transport,
                params=params,
                lead=options.lead_for(url),
                method=method,
                trust=options.trust(url),
                on_event=report.event,
            ) as stream:
                opened.append(stream)
                await _drain(stream, options.output, report)
                if stream.gaps:
                    raise FramesMissingError(stream.gaps)
        except BaseException as raised:
            error = raised
            raise
        finally:
            report.done(summary(opened[0] if opened else None, options.output, error))


async def _drain(stream: Stream, output: str | None, report: QuietReport) -> None:
    audio = stream.format
    sink = _sink(output, audio)
    try:
        report.playing(stream, sink)
        async for frame in stream:
            await sink.write(await _batch(stream, frame, audio))
        await sink.finish()
    except BaseException:
        await sink.abandon()
        raise


async def _batch(stream: Stream, first: Frame, audio: AudioFormat) -> list[Frame]:
    """This frame and those that came with it."""
    if stream.format != audio:
        raise TenutoError(
            ErrorCode.UNSUPPORTED_AUDIO,
            f"the audio format changed to {stream.format.rate} Hz with {stream.format.channels} "
            "channels in mid-stream",
            remedy="listen to the rest separately",
        )
    return [first, *[await anext(stream) for _ in range(stream.ready)]]


def _sink(output: str | None, audio: AudioFormat) -> Sink:
    if output is None:
        return Speaker(audio)
    if output == "-":
        return StdoutSink(audio)
    return FileSink(output, audio)
