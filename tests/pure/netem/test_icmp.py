"""ICMP errors, byte by byte."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from netem.link import TOO_BIG, Endpoint, TooBig, icmp_error
from netem.profile import Answer
from tests.pure.netem.ip import V4, V6, ipv4, ipv6, pseudo, udp, zero_sum

CLIENT4, SERVER4 = (Endpoint(address, 5000) for address in V4)
CLIENT6, SERVER6 = (Endpoint(address, 5000) for address in V6)
SMALL4 = ipv4(udp(CLIENT4, SERVER4))
SMALL6 = ipv6(udp(CLIENT6, SERVER6))
Said = Answer | TooBig


def said(offending: bytes, answer: Said, mtu: int = 0, source: bytes | None = None) -> bytes | None:
    assert answer is not Answer.DROP
    return icmp_error(offending, answer, mtu, source)


@pytest.mark.parametrize(
    ("answer", "mtu", "kind"),
    [
        (Answer.REJECT, 0, "0303 0000 00000000"),
        (Answer.PROHIBIT, 0, "030d 0000 00000000"),
        (TOO_BIG, 1300, "0304 0000 00000514"),
    ],
)
def test_icmp(answer: Said, mtu: int, kind: str) -> None:
    packet = said(SMALL4, answer, mtu)
    assert packet is not None
    assert packet[0] == 0x45
    assert int.from_bytes(packet[2:4]) == len(packet) == 28 + len(SMALL4)
    assert packet[9] == 1
    # In the name of the one who was not reached, to the sender.
    assert (packet[12:16], packet[16:20]) == (V4[1], V4[0])
    assert zero_sum(packet[:20])
    assert zero_sum(packet[20:])
    assert packet[20:22] + b"\0\0" + packet[24:28] == bytes.fromhex(kind)
    assert packet[28:] == SMALL4


@pytest.mark.parametrize(
    ("answer", "mtu", "kind"),
    [
        (Answer.REJECT, 0, "0104 0000 00000000"),
        (Answer.PROHIBIT, 0, "0101 0000 00000000"),
        (TOO_BIG, 1300, "0200 0000 00000514"),
    ],
)
def test_icmpv6(answer: Said, mtu: int, kind: str) -> None:
    packet = said(SMALL6, answer, mtu)
    assert packet is not None
    assert packet[0] == 0x60
    assert int.from_bytes(packet[4:6]) == len(packet) - 40 == 8 + len(SMALL6)
    assert packet[6] == 58
    assert (packet[8:24], packet[24:40]) == (V6[1], V6[0])
    assert zero_sum(pseudo(V6[1], V6[0], 58, len(packet) - 40) + packet[40:])
    assert packet[40:42] + b"\0\0" + packet[44:48] == bytes.fromhex(kind)
    assert packet[48:] == SMALL6


def test_a_router_may_speak_for_itself() -> None:
    router4, router6 = bytes([198, 18, 9, 9]), b"\xfd" + bytes(14) + b"\x09"
    four = said(SMALL4, Answer.PROHIBIT, source=router4)
    six = said(SMALL6, Answer.PROHIBIT, source=router6)
    assert four is not None
    assert six is not None
    assert four[12:16] == router4
    assert zero_sum(four[:20])
    assert six[8:24] == router6
    assert zero_sum(pseudo(router6, V6[0], 58, len(six) - 40) + six[40:])


@given(st.integers(0, 3000).map(bytes), st.sampled_from([Answer.REJECT, Answer.PROHIBIT, TOO_BIG]))
@example(bytes(range(256)) * 6, TOO_BIG)
def test_as_much_is_quoted_as_may_be(data: bytes, answer: Said) -> None:
    four = said(ipv4(data), answer, 1300)
    six = said(ipv6(data), answer, 1300)
    assert four is not None
    assert six is not None
    assert len(four) == min(576, 48 + len(data))
    assert len(six) == min(1280, 88 + len(data))
    assert ipv4(data).startswith(four[28:])
    assert ipv6(data).startswith(six[48:])
    assert zero_sum(four[20:])
    assert zero_sum(pseudo(V6[1], V6[0], 58, len(six) - 40) + six[40:])


GROUP4, GROUP6 = bytes([224, 0, 0, 251]), b"\xff\x02" + bytes(13) + b"\xfb"


@pytest.mark.parametrize(
    "offending",
    [
        b"",
        b"\x45",
        SMALL4[:19],
        SMALL6[:39],
        b"\x50" + bytes(60),
        ipv4(b"later", fragment=3),
        ipv4(b"later", fragment=0x1F00),
        ipv4(b"x", destination=GROUP4),
        ipv4(b"x", destination=b"\xff\xff\xff\xff"),
        ipv4(b"x", source=bytes(4)),
        # About an error: unreachable, time exceeded, and what is cut too short to tell.
        ipv4(b"\x03\x03" + bytes(20), 1),
        ipv4(b"\x0b\x00" + bytes(20), 1),
        ipv4(b"", 1),
        ipv6(b"x", source=bytes(16)),
        ipv6(b"x", source=GROUP6),
        ipv6(b"x", destination=GROUP6),
        ipv6(b"\x01\x04" + bytes(20), 58),
        # The same behind a header of options, and as a first fragment; and a redirect.
        ipv6(b"\x3a\0\x01\4" + bytes(4) + b"\x01\x04" + bytes(20), 60),
        ipv6(b"\x3a\0\0\x01\0\0\0\7" + b"\x02\x00" + bytes(20), 44),
        ipv6(b"\x89\x00" + bytes(38), 58),
    ],
)
def test_where_the_rfcs_forbid_it_nothing_is_said(offending: bytes) -> None:
    assert said(offending, Answer.REJECT) is None


def test_echo_requests_may_be_answered() -> None:
    assert said(ipv4(b"\x08\x00" + bytes(20), 1), Answer.PROHIBIT) is not None
    assert said(ipv6(b"\x80\x00" + bytes(20), 58), Answer.PROHIBIT) is not None
    assert said(ipv6(b"", 58), Answer.PROHIBIT) is not None
    later = ipv6(b"\x3a\0\0\x08\0\0\0\7" + b"\x02\x00" + bytes(20), 44)
    assert said(later, Answer.PROHIBIT) is not None


def test_too_big_may_be_said_of_a_packet_to_a_group() -> None:
    packet = said(ipv6(b"x", destination=GROUP6), TOO_BIG, 1300)
    assert packet is not None
    assert packet[8:24] != GROUP6
    assert said(ipv6(b"x", destination=GROUP6), TOO_BIG, 1300, V6[1]) is not None
