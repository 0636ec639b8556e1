"""Flows read from IP packets, and ports written into them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netem.link import (
    Endpoint,
    Flow,
    QuotedFlow,
    icmp_error,
    read_flow,
    with_client_port,
)
from netem.profile import Answer, Way
from tests.pure.netem.ip import V4, V6, ipv4, ipv6, pseudo, segment, tcp, udp, zero_sum

PORTS = st.integers(0, 65_535)
FIRST_FRAGMENT = 0x2000
"""More fragments follow, at offset 0."""


def ends(version: int, client: int = 5000, server: int = 443) -> tuple[Endpoint, Endpoint]:
    addresses = V4 if version == 4 else V6
    return Endpoint(addresses[0], client), Endpoint(addresses[1], server)


def packet(version: int, protocol: int, way: Way, data: bytes = b"data") -> bytes:
    client, server = ends(version)
    source, destination = (client, server) if way is Way.UP else (server, client)
    inner = (udp if protocol == 17 else tcp)(source, destination, data)
    addresses = (source.address, destination.address)
    assert isinstance(addresses[0], bytes)
    assert isinstance(addresses[1], bytes)
    wrap = ipv4 if version == 4 else ipv6
    return wrap(inner, protocol, source=addresses[0], destination=addresses[1])


@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize("protocol", [17, 6])
def test_a_flow_is_the_same_in_both_directions(version: int, protocol: int) -> None:
    flow = Flow(protocol, *ends(version))
    for way in Way:
        assert read_flow(packet(version, protocol, way), way) == flow


INNER = udp(*ends(4))
INNER6 = udp(*ends(6))
# Filled with what is no header, so that a wrong length is found out.
HOP_BY_HOP = bytes([60, 1]) + b"\xee" * 14
DESTINATION = bytes([43, 0]) + b"\xee" * 6
ROUTING = bytes([51, 2]) + b"\xee" * 22
AUTHENTICATION = bytes([44, 4]) + b"\xee" * 22
FIRST = bytes([17, 0, 0, 1]) + bytes(4)


def test_options_and_extension_headers_are_passed_over() -> None:
    assert read_flow(ipv4(INNER, options=bytes(12)), Way.UP) == Flow(17, *ends(4))
    headers = HOP_BY_HOP + DESTINATION + ROUTING + AUTHENTICATION + FIRST
    assert read_flow(ipv6(headers + INNER6, 0), Way.UP) == Flow(17, *ends(6))


def test_the_first_fragment_has_ports_and_the_others_none() -> None:
    assert read_flow(ipv4(INNER, fragment=FIRST_FRAGMENT), Way.UP) == Flow(17, *ends(4))
    for later in (1, 0x100, FIRST_FRAGMENT | 5):
        assert read_flow(ipv4(INNER, fragment=later), Way.UP) is None
    assert read_flow(ipv6(FIRST + INNER6, 44), Way.UP) == Flow(17, *ends(6))
    for later in (8, 0x100):
        fragment = bytes([17, 0]) + later.to_bytes(2) + bytes(4)
        assert read_flow(ipv6(fragment + INNER6, 44), Way.UP) is None


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x45",
        b"\x60" + bytes(38),
        b"\x50" + bytes(60),
        ipv4(INNER[:7]),
        ipv4(tcp(*ends(4))[:19], 6),
        ipv6(INNER6[:7]),
        ipv6(HOP_BY_HOP[:7], 0),
        ipv6(HOP_BY_HOP, 0),
        # A header of four words.
        b"\x44" + ipv4(INNER)[1:],
        # ICMP, ICMPv6, no next header.
        ipv4(INNER, 1),
        ipv6(INNER6, 58),
        ipv6(INNER6, 59),
    ],
)
def test_what_has_no_ports_has_no_flow(data: bytes) -> None:
    for way in Way:
        assert read_flow(data, way) is None
        assert with_client_port(data, way, 7) == data


@given(st.binary(max_size=120), st.sampled_from(Way))
def test_any_bytes_are_read_or_not(data: bytes, way: Way) -> None:
    for start in (b"", b"\x45", b"\x60"):
        read_flow(start + data, way)
        assert len(with_client_port(start + data, way, 7)) == len(start + data)


def test_a_chain_of_headers_ends_with_the_packet() -> None:
    assert read_flow(ipv6((bytes([0, 0]) + bytes(6)) * 8000, 0), Way.UP) is None
    # An authentication header that says it is shorter than it can be.
    assert read_flow(ipv6(bytes([17, 0]) + bytes(6) + INNER6, 51), Way.UP) == Flow(17, *ends(6))


# Ports


@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize("protocol", [17, 6])
@given(port=PORTS, data=st.binary(max_size=9), way=st.sampled_from(Way))
def test_a_port_is_written_with_its_checksum(
    version: int, protocol: int, port: int, data: bytes, way: Way
) -> None:
    before = packet(version, protocol, way, data)
    offset = 20 if version == 4 else 40
    assert zero_sum(segment(before, offset))
    after = with_client_port(before, way, port)
    client, server = ends(version)
    assert read_flow(after, way) == Flow(protocol, client._replace(port=port), server)
    assert zero_sum(segment(after, offset))
    # Nothing but the port and the checksum, and back again.
    assert with_client_port(after, way, client.port) == before


def test_a_udp_checksum_of_zero_stays_what_it_says() -> None:
    without = ipv4(INNER[:6] + b"\0\0" + INNER[8:])
    after = with_client_port(without, Way.UP, 7)
    assert after[26:28] == b"\0\0"
    assert after[20:22] == b"\0\7"


def test_a_computed_zero_is_sent_as_ones_over_udp_and_as_zero_over_tcp() -> None:
    udps, tcps = set(), set()
    for port in range(65_536):
        udps.add(with_client_port(ipv4(INNER), Way.UP, port)[26:28])
        tcps.add(with_client_port(ipv4(tcp(*ends(4)), 6), Way.UP, port)[36:38])
    assert b"\0\0" not in udps
    assert b"\xff\xff" in udps
    assert b"\0\0" in tcps


# ICMP errors


def about(offending: bytes) -> bytes:
    error = icmp_error(offending, Answer.REJECT)
    assert error is not None
    return error


def icmp(error: bytes) -> bytes:
    """What its checksum is of."""
    return (
        error[20:] if error[0] >> 4 == 4 else pseudo(V6[1], V6[0], 58, len(error) - 40) + error[40:]
    )


@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize("protocol", [17, 6])
@given(port=PORTS, data=st.binary(max_size=9), way=st.sampled_from(Way))
def test_an_icmp_error_has_the_flow_that_it_quotes(
    version: int, protocol: int, port: int, data: bytes, way: Way
) -> None:
    error = about(packet(version, protocol, way, data))
    flow = read_flow(error, way.back)
    assert flow == Flow(protocol, *ends(version))
    assert isinstance(flow, QuotedFlow)
    after = with_client_port(error, way.back, port)
    # As if the packet with the other port had been answered.
    quoted = with_client_port(packet(version, protocol, way, data), way, port)
    assert after[-len(quoted) :] == quoted
    changed = read_flow(after, way.back)
    assert changed is not None
    assert changed.client.port == port
    if way is Way.UP:
        assert zero_sum(icmp(after))
    wrong = error[:-1] + bytes([error[-1] ^ 1])
    assert not data or not zero_sum(icmp(with_client_port(wrong, way.back, port)))


@pytest.mark.parametrize(
    "data",
    [
        about(ipv4(INNER))[:27],
        about(ipv4(INNER))[:40],
        about(ipv6(INNER6))[:47],
        about(ipv6(INNER6))[:60],
        # Echoes, and an error about an error, as deep as can be.
        ipv4(b"\x08" + bytes(7) + ipv4(INNER), 1),
        ipv6(b"\x80" + bytes(7) + ipv6(INNER6), 58),
        (about(ipv4(INNER))[:28]) * 2000,
        # Fragments of an error.
        ipv4(about(ipv4(INNER))[20:], 1, fragment=FIRST_FRAGMENT),
        ipv4(about(ipv4(INNER))[20:], 1, fragment=1),
    ],
)
def test_an_icmp_message_that_quotes_no_ports_has_no_flow(data: bytes) -> None:
    for way in Way:
        assert read_flow(data, way) is None
        assert with_client_port(data, way, 7) == data
