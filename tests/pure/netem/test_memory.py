"""Two endpoints in virtual time."""

import pytest

from netem.drivers.memory import Address, MemoryPath, supports
from netem.errors import ImpairmentError
from netem.profile import (
    Answer,
    Block,
    Conditions,
    Mtu,
    Nat,
    Police,
    Profile,
    RandomLoss,
    Way,
)

CLIENT: Address = ("192.0.2.1", 40001)
SERVER: Address = ("192.0.2.2", 4433)
DELAYED = Profile(name="p", up=Conditions(delay=0.030), down=Conditions(delay=0.020))


class Talker:
    """Sends what it is told, answers what it hears if it is polite, and notes everything."""

    def __init__(self, peer: Address, *, polite: bool = False) -> None:
        self.peer = peer
        self.polite = polite
        self.outbox: list[tuple[bytes, Address]] = []
        self.heard: list[tuple[float, bytes, Address]] = []
        self.timer: float | None = None
        self.called: list[float] = []

    def receive(self, data: bytes, source: Address, now: float) -> None:
        self.heard.append((now, data, source))
        if self.polite:
            self.outbox.append((b"re: " + data, source))

    def datagrams_to_send(self, now: float) -> list[tuple[bytes, Address]]:
        outbox, self.outbox = self.outbox, []
        return outbox

    def next_timer(self) -> float | None:
        return self.timer

    def handle_timer(self, now: float) -> None:
        self.called.append(now)


def talk(
    profile: Profile, seed: int = 1, *, started: float = 0.0
) -> tuple[MemoryPath, Talker, Talker]:
    client, server = Talker(SERVER), Talker(CLIENT, polite=True)
    return MemoryPath(profile, seed, client, server, started=started), client, server


def say(path: MemoryPath, client: Talker, *texts: bytes) -> None:
    client.outbox += [(text, SERVER) for text in texts]
    path.transmit(Way.UP)


def test_datagrams_arrive_when_they_are_due_and_answers_too() -> None:
    path, client, server = talk(DELAYED, started=100.0)
    say(path, client, b"a", b"b")
    path.run_until(100.029)
    assert server.heard == []
    assert path.now == 100.029
    path.run_until(101.0)
    assert server.heard == [(100.030, b"a", CLIENT), (100.030, b"b", CLIENT)]
    assert [(data, source) for _, data, source in client.heard] == [
        (b"re: a", SERVER),
        (b"re: b", SERVER),
    ]
    assert client.heard[0][0] == pytest.approx(100.050)
    assert path.now == 101.0
    tally = path.tally()
    assert tally.up.link.delivered == tally.down.link.delivered == 2
    # Time does not go back.
    path.run_until(5.0)
    assert path.now == 101.0


@pytest.mark.parametrize(("host", "largest"), [("192.0.2.2", 1272), ("2001:db8::2", 1252)])
def test_a_datagram_has_its_headers_on_the_wire(host: str, largest: int) -> None:
    client, server = Talker((host, 4433)), Talker(CLIENT)
    profile = Profile(name="p", up=Conditions(mtu=Mtu(size=1300)))
    path = MemoryPath(profile, 1, client, server, server_address=(host, 4433))
    client.outbox = [(bytes(size), (host, 4433)) for size in (largest, largest + 1)]
    path.transmit(Way.UP)
    path.run_until(1.0)
    assert [len(data) for _, data, _ in server.heard] == [largest]
    assert path.tally().up.too_big == 1


def test_calls_are_made_at_their_times_and_in_their_order() -> None:
    path, client, server = talk(DELAYED)
    made: list[tuple[str, float]] = []

    def call(name: str) -> None:
        made.append((name, path.now))
        if name == "first":
            path.at(path.now, lambda: call("at once"))
            say(path, client, b"x")

    path.at(2.0, lambda: call("second"))
    path.at(1.0, lambda: call("first"))
    path.at(2.0, lambda: call("third"))
    path.at(9.0, lambda: call("never"))
    path.run_until(2.0)
    assert made == [("first", 1.0), ("at once", 1.0), ("second", 2.0), ("third", 2.0)]
    assert server.heard[0][0] == pytest.approx(1.030)


def test_a_timer_is_handled_just_after_its_time() -> None:
    path, client, server = talk(DELAYED)
    server.timer = 0.5
    path.run_until(0.4)
    assert server.called == []
    path.at(0.5, lambda: None)
    path.run_until(0.500_000_5)
    assert server.called == []
    path.run_until(0.500_001_5)
    assert server.called == [0.500_001]
    server.timer = None
    path.run_until(2.0)
    assert client.called == []
    assert len(server.called) == 1


def test_a_timer_that_stays_where_it_was_does_not_stop_time() -> None:
    path, client, _ = talk(DELAYED)
    client.timer = 1.0
    path.run_until(1.000_1)
    assert 95 <= len(client.called) <= 100
    assert client.called == sorted(set(client.called))
    assert path.now == 1.000_1


def test_the_same_seed_is_the_same_story() -> None:
    profile = Profile(name="p", up=Conditions(delay=0.1, loss=RandomLoss(rate=0.5)))
    stories = []
    for seed in (1, 1, 2):
        path, client, server = talk(profile, seed)
        say(path, client, *(b"%d" % number for number in range(100)))
        path.run_until(1.0)
        stories.append((server.heard, client.heard))
    assert stories[0] == stories[1]
    assert stories[0] != stories[2]


def test_a_datagram_to_where_nobody_is_goes_astray() -> None:
    path, client, server = talk(DELAYED)
    client.outbox = [(b"x", ("192.0.2.2", 80)), (b"y", SERVER)]
    path.transmit(Way.UP)
    path.run_until(0.040)
    assert path.astray == 1
    assert [data for _, data, _ in server.heard] == [b"y"]
    # The client moves on while the answer is under way.
    path.client_address = ("198.51.100.7", 1)
    path.run_until(1.0)
    assert client.heard == []
    assert path.astray == 2
    say(path, client, b"z")
    path.run_until(2.0)
    assert server.heard[-1][1:] == (b"z", ("198.51.100.7", 1))
    assert [data for _, data, _ in client.heard] == [b"re: z"]


def test_behind_a_nat_the_server_sees_another_port_after_a_rebinding() -> None:
    path, client, server = talk(Profile(name="p", nat=Nat(rebind_at=(1.0,))))
    say(path, client, b"one")
    path.run_until(1.0)
    server.outbox = [(b"late", server.heard[0][2])]
    path.transmit(Way.DOWN)
    say(path, client, b"two")
    path.run_until(2.0)
    first, second = (source for _, _, source in server.heard)
    assert first[0] == second[0] == CLIENT[0]
    assert first[1] != second[1]
    assert [data for _, data, _ in client.heard] == [b"re: one", b"re: two"]
    assert path.tally().down.unbound == 1
    assert path.tally().rebindings == 1
    assert path.astray == 0


def test_what_endpoints_in_memory_cannot_have_is_refused_by_name() -> None:
    mtu = Conditions(mtu=Mtu(size=1300, answers=True))
    profile = Profile(name="mine", up=mtu, block=Block(answer=Answer.REJECT))
    assert [reason.partition(":")[0] for reason in supports(profile)] == [
        "block.answer reject",
        "up.mtu.answers",
    ]
    with pytest.raises(ImpairmentError, match="^mine: block.answer reject: .*; use the driver tun"):
        talk(profile)
    police = Police(bits_per_second=1e6, burst=3000)
    assert supports(Profile(name="p", block=Block(), police=police, nat=Nat())) == []
