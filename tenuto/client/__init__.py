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

The iteration ends only when the server has proved that the stream is whole. Where a connection
is lost, the stream goes on over another by itself; what cannot be repaired raises `StreamCut`,
which says where to go on. This package is the reference for clients in other languages.
"""

from tenuto.client.dialing import Deadlines
from tenuto.client.errors import ConnectError, Failure, FailureKind, StreamCut
from tenuto.client.events import (
    Cut,
    EpochBegun,
    Event,
    Finished,
    FormatAnnounced,
    GapSeen,
    Interrupted,
    MarkReached,
    Moved,
    NoticeReceived,
    Parked,
    Rebound,
    Restarted,
    Resumed,
    Retrying,
    Stayed,
    Suspected,
    TransportChosen,
    TransportFailed,
    Unparked,
)
from tenuto.client.exchange import Timings, Transport, TransportChoice
from tenuto.client.opening import RETRY, WATCH, open_stream, session_url
from tenuto.client.pathstore import PathStore
from tenuto.client.stream import Stream
from tenuto.client.target import Address, Target
from tenuto.client.trust import Trust
from tenuto.policy import RetryPolicy, WatchPolicy

__all__ = [
    "RETRY",
    "WATCH",
    "Address",
    "ConnectError",
    "Cut",
    "Deadlines",
    "EpochBegun",
    "Event",
    "Failure",
    "FailureKind",
    "Finished",
    "FormatAnnounced",
    "GapSeen",
    "Interrupted",
    "MarkReached",
    "Moved",
    "NoticeReceived",
    "Parked",
    "PathStore",
    "Rebound",
    "Restarted",
    "Resumed",
    "RetryPolicy",
    "Retrying",
    "Stayed",
    "Stream",
    "StreamCut",
    "Suspected",
    "Target",
    "Timings",
    "Transport",
    "TransportChoice",
    "TransportChosen",
    "TransportFailed",
    "Trust",
    "Unparked",
    "WatchPolicy",
    "open_stream",
    "session_url",
]
