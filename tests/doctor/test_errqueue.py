"""What Linux's error queue says, as values."""

from __future__ import annotations

import errno
import socket
import struct
import sys

import pytest

from tenuto.doctor.diagnosis.evidence import IcmpKind
from tenuto.doctor.errqueue import (
    SocketError,
    errors_behind,
    explained,
    prepare,
    queued_errors,
    read_extended,
)


def extended(origin: int, kind: int, code: int, *, info: int = 0, number: int = 0) -> bytes:
    head = struct.pack("=IBBBBII", number, origin, kind, code, 0, info, 0)
    if origin == 3:
        return head + struct.pack("=HHI", socket.AF_INET6, 0, 0) + bytes(15) + b"\x09" + bytes(4)
    return head + struct.pack("=HH", socket.AF_INET, 0) + bytes([192, 0, 2, 9]) + bytes(8)


@pytest.mark.parametrize(
    ("origin", "kind", "code", "what"),
    [
        (2, 3, 3, IcmpKind.PORT),
        (2, 3, 9, IcmpKind.PROHIBITED),
        (2, 3, 10, IcmpKind.PROHIBITED),
        (2, 3, 13, IcmpKind.PROHIBITED),
        (2, 3, 1, IcmpKind.UNREACHABLE),
        (2, 11, 0, None),
        (3, 1, 4, IcmpKind.PORT),
        (3, 1, 1, IcmpKind.PROHIBITED),
        (3, 1, 5, IcmpKind.PROHIBITED),
        (3, 1, 3, IcmpKind.UNREACHABLE),
        (3, 3, 0, None),
        (4, 3, 3, None),
    ],
)
def test_icmp_has_a_kind(origin: int, kind: int, code: int, what: IcmpKind | None) -> None:
    error = read_extended(extended(origin, kind, code))
    by = "::9" if origin == 3 else "192.0.2.9"
    assert error == (None if what is None else SocketError(what, by))


def test_a_size_is_told_with_its_teller() -> None:
    assert read_extended(extended(2, 3, 4, info=1400)) == SocketError(
        IcmpKind.TOO_BIG, "192.0.2.9", 1400
    )
    assert read_extended(extended(3, 2, 0, info=1280)) == SocketError(IcmpKind.TOO_BIG, "::9", 1280)


def test_this_machine_may_say_it_itself() -> None:
    local = struct.pack("=IBBBBII", errno.EMSGSIZE, 1, 0, 0, 0, 1500, 0)
    assert read_extended(local) == SocketError(IcmpKind.TOO_BIG, "", 1500)
    other = struct.pack("=IBBBBII", errno.ENOBUFS, 1, 0, 0, 0, 0, 0)
    assert read_extended(other) is None
    assert read_extended(local[:15]) is None
    assert read_extended(extended(2, 3, 3)[:18]) == SocketError(IcmpKind.PORT, "")


@pytest.mark.parametrize(
    ("number", "what"),
    [
        (errno.ECONNREFUSED, IcmpKind.PORT),
        (errno.EMSGSIZE, IcmpKind.TOO_BIG),
        (errno.EPERM, IcmpKind.PROHIBITED),
        (errno.EHOSTUNREACH, IcmpKind.UNREACHABLE),
        (errno.ENOBUFS, None),
    ],
)
def test_without_a_queue_errno_has_to_do(number: int, what: IcmpKind | None) -> None:
    assert explained(OSError(number, "x")) == ([] if what is None else [SocketError(what)])


@pytest.mark.skipif(sys.platform != "linux", reason="the queue is Linux's")
def test_a_closed_port_is_in_the_queue() -> None:
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as gone,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made,
    ):
        gone.bind(("127.0.0.1", 0))
        prepare(made)
        made.settimeout(5)
        made.connect(gone.getsockname())
        gone.close()
        made.send(b"anybody?")
        with pytest.raises(ConnectionRefusedError) as refused:
            made.recv(9)
        made.setblocking(False)
        assert errors_behind(made, refused.value) == [SocketError(IcmpKind.PORT, "127.0.0.1")]
        assert queued_errors(made) == []


def test_where_there_is_no_queue_nothing_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
        prepare(made)
        assert queued_errors(made) == []
        refused = ConnectionRefusedError()
        assert errors_behind(made, refused) == [SocketError(IcmpKind.PORT)]
