"""Measure the path of a bed: sockets on its two hosts, packets both ways."""

from collections.abc import Callable

from netem.drivers.bed import Bed
from netem.errors import ImpairmentError
from netem.measure.plan import Plan
from netem.measure.running import Measurement, measure_between
from netem.measure.sockets import open_socket
from netem.profile.conditions import Profile

__all__ = ["measure_bed"]


def measure_bed(
    bed: Bed,
    profile: Profile,
    plan: Plan,
    *,
    ipv6: bool = False,
    on_progress: Callable[[int, int], None] = lambda sent, total: None,
) -> Measurement:
    """As `plan` says, over the family asked for; the server is at the port that is blocked."""
    client_host, server_host = (
        host.ipv6 if ipv6 else host.ipv4 for host in (bed.client, bed.server)
    )
    if not client_host or not server_host:
        raise ImpairmentError("This kernel has no IPv6: measure without -6.")
    with bed.client.entered():
        client = open_socket(client_host)
    with client:
        with bed.server.entered():
            server = open_socket(server_host, profile.udp_port or 0)
        with server:
            # Behind a NAT nobody knows the client's address until a packet says.
            to_client = None if profile.nat else client.getsockname()[:2]
            peers = (server.getsockname()[:2], to_client)
            return measure_between(client, server, peers, plan, on_progress)
