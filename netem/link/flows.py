"""The flow of an IP packet, told from its headers."""

from netem.link.headers import Transport, quote, transport
from netem.link.packet import Endpoint, Flow, QuotedFlow
from netem.profile import Way

__all__ = ["read_flow"]


def read_flow(packet: bytes, way: Way) -> Flow | None:
    """The client is the source of what goes up and the destination of what comes down.

    An ICMP error has the flow of the packet that it quotes, which went the other way.
    """
    header = transport(packet)
    if header is not None:
        return _flow(packet, header, way)
    at = quote(packet)
    if at is None:
        return None
    quoted = packet[at:]
    header = transport(quoted)
    return None if header is None else QuotedFlow(*_flow(quoted, header, way.back))


def _flow(packet: bytes, header: Transport, way: Way) -> Flow:
    at = header.offset
    source = Endpoint(header.source, int.from_bytes(packet[at : at + 2]))
    destination = Endpoint(header.destination, int.from_bytes(packet[at + 2 : at + 4]))
    if way is Way.UP:
        return Flow(header.protocol, source, destination)
    return Flow(header.protocol, destination, source)
