"""`tenuto doctor` itself on emulated networks; `python -m bench doctor` does it 20 times each."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from bench.doctor import ACCEPTANCE, Condition, Ward, ward, wrong
from netem.profile import Conditions, Mtu, Nat, Profile
from tenuto.tls import DevPair

SIDE = Conditions(delay=0.01)


def behind(name: str, nat: Nat, limit: str, **expected: object) -> Condition:
    right: dict[str, object] = {"udp.state": "open", "transport": "quic"}
    right |= {f"nat.{key}": value for key, value in expected.items()}
    return Condition(Profile(name=name, up=SIDE, down=SIDE, nat=nat), right, ("--nat", limit))


def too_small(*, told: bool) -> Condition:
    """For QUIC, whose packets have 1,228 bytes at least; told so, it connects in fragments."""
    side = Conditions(delay=0.01, mtu=Mtu(size=1200, answers=told))
    state = {"udp.state": "open", "udp.icmp_from": "127.0.0.1", "transport": "quic"}
    if not told:
        state = {"udp.state": "small-packets-only", "transport": "tcp"}
    name = f"mtu-1200-{'told' if told else 'silent'}"
    return Condition(Profile(name=name, up=side, down=SIDE), {**state, "mtu": None}, ("--quick",))


# Time-outs short enough for a test.
CONDITIONS = [
    *(replace(c, options=("--quick",)) for c in ACCEPTANCE if c.options == ("--nat", "0")),
    too_small(told=True),
    too_small(told=False),
    behind("forgets", Nat(idle=8.0), "11", binding="forgotten", kept=6.0, forgotten_within=11.0),
    behind("forgets-soon", Nat(idle=2.0), "3", binding="forgotten", kept=None, forgotten_within=3),
    behind("keeps", Nat(idle=60.0), "3", binding="kept", kept=3.0),
    behind("rebinds", Nat(rebind_every=4.0), "5", binding="rebinds"),
]


@pytest.fixture(scope="module")
def beds(dev_pair: DevPair) -> Iterator[Ward]:
    with ward(dev_pair.ca.chain_path.parent) as there:
        yield there


@pytest.mark.timeout(300)
def test_every_network_is_called_what_it_is(beds: Ward) -> None:
    """In one test: they mostly wait, so all of them wait side by side."""
    order = CONDITIONS
    with ThreadPoolExecutor(len(order)) as pool:
        told = pool.map(lambda condition: beds.examine(condition, 1), order)
        found = dict(zip((condition.name for condition in order), told, strict=True))
    faults = {c.name: wrong(c, found[c.name]) for c in order if wrong(c, found[c.name])}
    assert faults == {}, [found[name] for name in faults]


def test_the_text_can_be_forwarded(beds: Ward) -> None:
    (reject,) = (c for c in ACCEPTANCE if c.name == "udp-blocked-reject")
    with beds.bed(reject.profile, 1) as bed:
        process = bed.client.popen(beds.command("--quick"), stdout=subprocess.PIPE)
        said = process.communicate(timeout=60)[0].decode()
    assert process.returncode == 1
    assert "UDP is rejected: 127.0.0.1 answers with ICMP port unreachable" in said
    assert "Tenuto will use: TCP, because UDP is rejected." in said
    assert f"Let UDP to 127.0.0.1:{beds.server.port} pass, both ways." in said
