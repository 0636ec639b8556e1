"""What servers that are none of ours may answer."""

from __future__ import annotations

import json
import socket

import pytest

from tenuto.client import Address, Target, Trust
from tenuto.doctor.exchange import look_tcp, outside
from tenuto.tls import DevPair
from tests.support.stranger import answer, stranger

NESTED = b"[" * 60_000
TARGET = Target("127.0.0.1", 443, "/")


@pytest.mark.parametrize(
    "said",
    [
        answer(200, NESTED),
        answer(200, b'{"a":' * 10_000),
        answer(200, b"1" * 5_000),
        answer(200, b"\xff\xfe"),
        b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 300_000,
    ],
    ids=["list", "object", "number", "bytes", "endless"],
)
async def test_a_body_that_is_no_object_has_no_facts(said: bytes, dev_pair: DevPair) -> None:
    with stranger(dev_pair, said) as port:
        address = Address(socket.AF_INET, ("127.0.0.1", port))
        look = await look_tcp(address, TARGET, Trust(insecure=True), "/")
    assert (look.status, look.facts) == (200, None)


@pytest.mark.parametrize(
    ("date", "seconds"),
    [
        ("Thu, 01 Jan 1970 00:01:00 GMT", 60.0),
        ("Fri, 31 Dec 99999999999999999999 23:59:59 GMT", None),
        ("Fri, 31 Dec 2026 23:59:59 +999999999", None),
        ("Mon, 99 Foo 0000 25:61:00 GMT", None),
        ("Thu, 01 Jan 1970 00:01:00 -0000", None),
        ("", None),
    ],
)
async def test_a_date_may_be_none(date: str, seconds: float | None, dev_pair: DevPair) -> None:
    with stranger(dev_pair, answer(404, b"", date=date)) as port:
        address = Address(socket.AF_INET, ("127.0.0.1", port))
        look = await look_tcp(address, TARGET, Trust(insecure=True), "/")
    assert (look.status, look.date) == (404, seconds)


@pytest.mark.parametrize(
    ("facts", "seen"),
    [
        ('{"address": "192.0.2.1", "port": 9, "transport": "tcp"}', ("192.0.2.1", 9)),
        ('{"address": "::ffff:192.0.2.1", "port": 9, "transport": "tcp"}', ("192.0.2.1", 9)),
        ('{"address": "fe80::1%eth0", "port": 9, "transport": "quic"}', ("fe80::1", 9)),
        ('{"address": "\\u001b[31mred", "port": 9, "transport": "quic"}', None),
        ('{"address": "192.0.2.1", "port": true, "transport": "tcp"}', None),
        ('{"address": "192.0.2.1", "port": 65536, "transport": "tcp"}', None),
        ('{"address": 5, "port": 9, "transport": "tcp"}', None),
        ('{"address": "192.0.2.1", "port": 9}', None),
        ("null", None),
    ],
)
def test_only_an_address_is_taken_for_one(facts: str, seen: tuple[str, int] | None) -> None:
    assert outside(json.loads(facts)) == seen
