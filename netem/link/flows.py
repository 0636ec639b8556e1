"""The flow of an IP packet, told from its headers."""

from netem.link.headers import transport
from netem.link.packet import Endpoint, Flow
from netem.profile import Way

__all__ = ["read_flow"]


def read_flow(packet: bytes, way: Way) -> Flow | None:
    """The client is the source of what goes up and the destination of what comes down."""
    header = transport(packet)
    if header is None:
        return None
    at = header.offset
    source = Endpoint(header.source, int.from_bytes(packet[at : at + 2]))
    destination = Endpoint(header.destination, int.from_bytes(packet[at + 2 : at + 4]))
    if way is Way.UP:
        return Flow(header.protocol, source, destination)
    return Flow(header.protocol, destination, source)
