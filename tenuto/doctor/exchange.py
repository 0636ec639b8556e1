"""Handshakes and short exchanges over either transport, each bounded in time and bytes."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from ipaddress import ip_address
from typing import Any

from tenuto import __version__
from tenuto.client import Address, FailureKind, Target, Trust
from tenuto.client.errors import LegError
from tenuto.client.exchange import Leg, Request, Response
from tenuto.client.quic import QuicLeg
from tenuto.client.tcp import TcpLeg, connect_socket, secure
from tenuto.doctor.diagnosis.evidence import Carried, Handshake, Seen, Transport
from tenuto.media import FRAME_DURATION, AudioFormat
from tenuto.session import LIVE_LEAD
from tenuto.wire import MEDIA_TYPE, VERSION

__all__ = ["Look", "carry", "look_quic", "look_tcp", "outside", "see"]

_CONNECT_WITHIN = 5.0
_SECURE_WITHIN = 5.0
_ANSWER_WITHIN = 5.0
_FIRST_BYTE_WITHIN = 6.0

_MOST_BODY = 64 * 1024
_MOST_CARRIED = 1024 * 1024

_VOICE = AudioFormat(rate=16000, channels=1)
_RECORD = 5
"""Bytes of a FRAME record beside its payload."""

NEED = (_VOICE.frame_size + _RECORD) / FRAME_DURATION
"""Bytes a second of the voice that is asked for."""


@dataclass(frozen=True, slots=True)
class Look:
    """One connection and one answer; `facts` is its JSON object, empty where it has none."""

    handshake: Handshake
    status: int = 0
    facts: Mapping[str, Any] | None = None
    date: float | None = None
    certificate: bytes | None = None
    why: str = ""
    """Why there is no answer, in spite of the handshake."""


async def look_tcp(
    address: Address, target: Target, trust: Trust, path: str, *, padding: int = 0
) -> Look:
    """TCP, then TLS, then one GET, larger by `padding` bytes."""
    handshake, leg = await _shake_tcp(address, target, trust)
    if leg is None:
        return Look(handshake)
    return await _ask(leg, handshake, _request(target, path, padding))


async def look_quic(
    address: Address,
    target: Target,
    trust: Trust,
    path: str,
    *,
    local: socket.socket | None = None,
) -> Look:
    """QUIC, then one GET; from the port of `local`, where one is given."""
    handshake, leg = await _shake_quic(address, target, trust, local)
    return Look(handshake) if leg is None else await _ask(leg, handshake, _request(target, path))


async def see(
    address: Address, target: Target, trust: Trust, local: socket.socket, tries: int = 2
) -> Seen | None:
    """Our address as the server sees that of `local` over QUIC."""
    loop = asyncio.get_running_loop()
    for _ in range(tries):
        look = await look_quic(address, target, trust, "/v1/address", local=local)
        if (there := outside(look.facts)) is not None:
            name = local.getsockname()
            return Seen(loop.time(), _plain(name[0]), name[1], *there)
    return None


def outside(facts: Mapping[str, Any] | None) -> tuple[str, int] | None:
    """Our address and port as `/v1/address` tells them; None for whatever else that is."""
    facts = facts or {}
    address, port = facts.get("address"), facts.get("port")
    if facts.get("transport") not in ("quic", "tcp") or not isinstance(address, str):
        return None
    if type(port) is not int or not 0 < port < 65536:
        return None
    with suppress(ValueError):
        return _plain(address), port
    return None


def _plain(address: str) -> str:
    """As it is compared: without a scope, which means something on one machine only."""
    there = ip_address(address.partition("%")[0])
    return str((there.version == 6 and there.ipv4_mapped) or there)


async def carry(
    transport: Transport,
    address: Address,
    target: Target,
    trust: Trust,
    path: str,
    *,
    need: float,
    seconds: float,
) -> Carried:
    """What a stream brings within `seconds` of its first byte."""
    leg: Leg | None
    if transport == "tcp":
        handshake, leg = await _shake_tcp(address, target, trust)
    else:
        handshake, leg = await _shake_quic(address, target, trust, None)
    carried = Carried(transport, need, 0, 0.0, handshake.failure)
    if leg is None:
        return carried
    try:
        return await _listen(leg, _request(target, path), carried, seconds)
    finally:
        await leg.aclose()


async def _listen(leg: Leg, request: Request, carried: Carried, seconds: float) -> Carried:
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(_FIRST_BYTE_WITHIN) as patience:
            response = await leg.request(request)
            if response.status != 200:
                return replace(carried, need=0.0, failure=f"the server answers {response.status}")
            size = len(await leg.read())
            began = loop.time()
            patience.reschedule(began + seconds)
            # What a lead lets come at once is no sign of the rate.
            carried = replace(carried, size=size, seconds=LIVE_LEAD)
            while size < _MOST_CARRIED and (data := await leg.read()):
                size += len(data)
                carried = replace(carried, size=size, seconds=loop.time() - began + LIVE_LEAD)
    except TimeoutError:
        if carried.size:
            return replace(carried, seconds=seconds + LIVE_LEAD)
        return replace(carried, seconds=_FIRST_BYTE_WITHIN, failure="nothing came of it")
    except LegError as error:
        return replace(carried, failure=error.reason)
    return carried


async def _shake_tcp(
    address: Address, target: Target, trust: Trust
) -> tuple[Handshake, TcpLeg | None]:
    loop = asyncio.get_running_loop()
    started = loop.time()
    handshake = Handshake("tcp")
    try:
        async with asyncio.timeout(_CONNECT_WITHIN) as patience:
            connected = await connect_socket(address)
            handshake = replace(handshake, connected=loop.time() - started)
            patience.reschedule(loop.time() + _SECURE_WITHIN)
            leg = await secure(connected, address, target.host, trust.tls_context())
    except TimeoutError:
        within = _CONNECT_WITHIN if handshake.connected is None else _SECURE_WITHIN
        return _failed(handshake, FailureKind.TIMEOUT, f"no answer within {within:g} s"), None
    except LegError as error:
        return replace(_failed(handshake, error.kind, error.reason), remedy=error.remedy), None
    return replace(handshake, secured=loop.time() - started), leg


async def _shake_quic(
    address: Address, target: Target, trust: Trust, local: socket.socket | None
) -> tuple[Handshake, QuicLeg | None]:
    loop = asyncio.get_running_loop()
    started = loop.time()
    handshake = Handshake("quic")
    try:
        leg = QuicLeg(address, target.host, trust, local=local)
    except OSError as error:
        reason = f"{address} cannot be reached: {error.strerror or error}"
        return _failed(handshake, FailureKind.UNREACHABLE, reason), None
    try:
        async with asyncio.timeout(_CONNECT_WITHIN):
            await leg.connect()
    except BaseException as error:
        await leg.aclose()
        if isinstance(error, TimeoutError):
            reason = f"no answer within {_CONNECT_WITHIN:g} s"
            return _failed(handshake, FailureKind.TIMEOUT, reason), None
        if isinstance(error, LegError):
            return _failed(handshake, error.kind, error.reason), None
        raise
    return replace(handshake, secured=loop.time() - started), leg


def _failed(handshake: Handshake, kind: FailureKind, reason: str) -> Handshake:
    return replace(handshake, failure=reason, kind=kind.value)


async def _ask(leg: TcpLeg | QuicLeg, handshake: Handshake, request: Request) -> Look:
    certificate = leg.certificate if isinstance(leg, TcpLeg) else None
    try:
        async with asyncio.timeout(_ANSWER_WITHIN):
            response = await leg.request(request)
            body = await _body(leg)
    except TimeoutError:
        return Look(handshake, certificate=certificate, why=f"silent for {_ANSWER_WITHIN:g} s")
    except LegError as error:
        return Look(handshake, certificate=certificate, why=error.reason)
    finally:
        await leg.aclose()
    facts, date = _facts(response, body), _date(response)
    return Look(handshake, response.status, facts, date, certificate)


async def _body(leg: Leg) -> bytes:
    body = b""
    while len(body) < _MOST_BODY and (data := await leg.read()):
        body += data
    return body


def _request(target: Target, path: str, padding: int = 0) -> Request:
    headers: tuple[tuple[str, str], ...] = (
        ("accept", f"{MEDIA_TYPE}; v={VERSION}, application/json, */*;q=0.1"),
        ("user-agent", f"tenuto-doctor/{__version__}"),
    )
    if padding:
        headers = (*headers, ("x-padding", "0" * padding))
    return Request("GET", target.authority, path, headers)


def _facts(response: Response, body: bytes) -> dict[str, Any] | None:
    if response.status != 200:
        return None
    with suppress(ValueError, RecursionError):
        facts = json.loads(body)
        if isinstance(facts, dict):
            return facts
    return None


def _date(response: Response) -> float | None:
    with suppress(ValueError, OverflowError):
        date = parsedate_to_datetime(response.headers.get("date", ""))
        return date.timestamp() if date.tzinfo is not None else None
    return None
