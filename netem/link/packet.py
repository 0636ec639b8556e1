"""What travels: a packet, and the conversation that it belongs to."""

from typing import NamedTuple

__all__ = ["Endpoint", "Flow", "Packet", "QuotedFlow"]


class Endpoint(NamedTuple):
    address: str | bytes
    """As the driver has it: four or sixteen bytes from an IP header, or text from a socket."""
    port: int


class Flow(NamedTuple):
    """One conversation, the same value in both directions."""

    protocol: int
    """17 is UDP, 6 is TCP, as in the IP header."""
    client: Endpoint
    server: Endpoint


class QuotedFlow(Flow):
    """Of the packet that an ICMP error is about: equal to that packet's own."""

    __slots__ = ()


class Packet(NamedTuple):
    data: bytes
    """A whole IP packet, or a UDP payload, as the driver has it: a link does not look inside."""
    size: int
    """Bytes on the wire with the IP header: a UDP payload and 28 (IPv4) or 48 (IPv6)."""
    flow: Flow | None = None
    """None: neither UDP nor TCP nor an ICMP error about one of them, or a later fragment, or nobody
    needs to know.
    """
