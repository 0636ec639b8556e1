"""What a path does to packets, without I/O and without a clock: time is an argument. Pure."""

from netem.link.drops import MAX_NOTED, Cause, DropLog
from netem.link.flows import read_flow
from netem.link.icmp import icmp_error
from netem.link.link import Link
from netem.link.packet import Endpoint, Flow, Packet, QuotedFlow
from netem.link.path import Path
from netem.link.refusal import TOO_BIG, Refusal, TooBig
from netem.link.rewrite import with_client_port
from netem.link.tally import PathTally, Tally, WayTally

__all__ = [
    "MAX_NOTED",
    "TOO_BIG",
    "Cause",
    "DropLog",
    "Endpoint",
    "Flow",
    "Link",
    "Packet",
    "Path",
    "PathTally",
    "QuotedFlow",
    "Refusal",
    "Tally",
    "TooBig",
    "WayTally",
    "icmp_error",
    "read_flow",
    "with_client_port",
]
