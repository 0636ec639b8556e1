"""Listen to Tenuto: frames as an async iterator, over QUIC or TCP, and the truth about both.

    import asyncio
    from pathlib import Path
    from tenuto.client import Trust, open_stream

    async def main() -> None:
        trust = Trust(cafile=Path("certs/dev/ca.pem"))
        url = "https://localhost:4433/v1/speak"
        async with open_stream(url, params={"text": "Hello."}, trust=trust) as stream:
            async for frame in stream:  # 20 ms each, in order
                print(stream.transport, frame.sequence, len(frame.payload))

    asyncio.run(main())

The iteration ends only when the server has proved that the stream is whole; a stream that
is cut raises `StreamCut`, which says where to go on. This package is the reference for
clients in other languages.
"""

from tenuto.client.errors import ConnectError, Failure, FailureKind, StreamCut
from tenuto.client.events import (
    Cut,
    Event,
    Finished,
    FormatAnnounced,
    GapSeen,
    MarkReached,
    NoticeReceived,
    TransportChosen,
    TransportFailed,
)
from tenuto.client.exchange import Timings, Transport, TransportChoice
from tenuto.client.opening import Deadlines, open_stream, session_url
from tenuto.client.stream import Stream
from tenuto.client.target import Address, Target
from tenuto.client.trust import Trust

__all__ = [
    "Address",
    "ConnectError",
    "Cut",
    "Deadlines",
    "Event",
    "Failure",
    "FailureKind",
    "Finished",
    "FormatAnnounced",
    "GapSeen",
    "MarkReached",
    "NoticeReceived",
    "Stream",
    "StreamCut",
    "Target",
    "Timings",
    "Transport",
    "TransportChoice",
    "TransportChosen",
    "TransportFailed",
    "Trust",
    "open_stream",
    "session_url",
]
