"""ICMP errors about a packet that was not passed (RFC 792, RFC 1191, RFC 4443)."""

from typing import Final, Literal, assert_never

from netem.link.checksum import checksum, pseudo_header
from netem.link.headers import upper_of_ipv6
from netem.link.refusal import TooBig
from netem.profile import Answer

__all__ = ["icmp_error"]

_ICMP: Final = 1
_ICMPV6: Final = 58
_FIRST_INFORMATION: Final = 128
"""RFC 4443, section 2.1: the types below are errors."""
_REDIRECT: Final = 137
_HOPS: Final = 64
_UNREACHABLE: Final = 3
_IPV4_LIMIT: Final = 576
"""RFC 1812, section 4.3.2.3: as much of the packet as fits into this."""
_IPV6_LIMIT: Final = 1280
"""RFC 4443, section 2.4 (c)."""
_ICMP_QUERIES: Final = frozenset({0, 8, 13, 14})
"""Echo and timestamp: the messages that are no errors."""

_Answer = Literal[Answer.REJECT, Answer.PROHIBIT] | TooBig


def icmp_error(
    offending: bytes, answer: _Answer, mtu: int = 0, source: bytes | None = None
) -> bytes | None:
    """The IP packet that tells the sender of `offending`; None where the RFCs forbid to.

    It comes from `source`, or in the name of the host that was not reached.
    """
    version = offending[0] >> 4 if offending else 0
    if version == 4 and len(offending) >= 20:
        return _ipv4(offending, answer, mtu, source)
    if version == 6 and len(offending) >= 40:
        return _ipv6(offending, answer, mtu, source)
    return None


def _ipv4(offending: bytes, answer: _Answer, mtu: int, source: bytes | None) -> bytes | None:
    sender, destination = offending[12:16], offending[16:20]
    header = (offending[0] & 0x0F) * 4
    later_fragment = (offending[6] & 0x1F) | offending[7]
    # RFC 1122, section 3.2.2: never about a later fragment, to or about a group, about an error.
    if later_fragment or not _one_ipv4_host(sender) or not _one_ipv4_host(destination):
        return None
    if offending[9] == _ICMP and offending[header : header + 1] not in _QUERY_TYPES:
        return None
    code, word = _ipv4_code(answer, mtu)
    quoted = offending[: _IPV4_LIMIT - 28]
    body = _with_checksum(bytes([_UNREACHABLE, code, 0, 0]) + word + quoted, b"")
    total = (20 + len(body)).to_bytes(2)
    start = b"\x45\xc0" + total + b"\0\0\0\0" + bytes([_HOPS, _ICMP])
    addresses = (source or destination) + sender
    return start + checksum(start + addresses).to_bytes(2) + addresses + body


_QUERY_TYPES: Final = frozenset(bytes([number]) for number in _ICMP_QUERIES)


def _ipv4_code(answer: _Answer, mtu: int) -> tuple[int, bytes]:
    match answer:
        case Answer.REJECT:
            return 3, bytes(4)
        case Answer.PROHIBIT:
            return 13, bytes(4)
        case TooBig.TOO_BIG:
            # RFC 1191, section 4: the low half of the word that was unused.
            return 4, mtu.to_bytes(4)
        case _:
            assert_never(answer)


def _one_ipv4_host(address: bytes) -> bool:
    """Neither unspecified nor a group nor everybody."""
    return 0 < address[0] < 224


def _ipv6(offending: bytes, answer: _Answer, mtu: int, source: bytes | None) -> bytes | None:
    sender, destination = offending[8:24], offending[24:40]
    # RFC 4443, section 2.4 (e); only "too big" may be said of a packet to a group.
    if sender == bytes(16) or sender[0] == 0xFF or _is_error_or_redirect(offending):
        return None
    if destination[0] == 0xFF and answer is not TooBig.TOO_BIG:
        return None
    if source is None:
        source = destination if destination[0] != 0xFF else sender
    kind, code, word = _ipv6_code(answer, mtu)
    quoted = offending[: _IPV6_LIMIT - 48]
    message = bytes([kind, code, 0, 0]) + word + quoted
    body = _with_checksum(message, pseudo_header(source, sender, _ICMPV6, len(message)))
    start = b"\x60\0\0\0" + len(body).to_bytes(2) + bytes([_ICMPV6, _HOPS])
    return start + source + sender + body


def _is_error_or_redirect(offending: bytes) -> bool:
    upper = upper_of_ipv6(offending)
    if upper is None or upper[0] != _ICMPV6:
        return False
    kind = offending[upper[1] : upper[1] + 1]
    return kind != b"" and (kind[0] < _FIRST_INFORMATION or kind[0] == _REDIRECT)


def _ipv6_code(answer: _Answer, mtu: int) -> tuple[int, int, bytes]:
    match answer:
        case Answer.REJECT:
            return 1, 4, bytes(4)
        case Answer.PROHIBIT:
            return 1, 1, bytes(4)
        case TooBig.TOO_BIG:
            return 2, 0, mtu.to_bytes(4)
        case _:
            assert_never(answer)


def _with_checksum(message: bytes, before: bytes) -> bytes:
    return message[:2] + checksum(before + message).to_bytes(2) + message[4:]
