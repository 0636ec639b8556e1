"""What a load's listeners make of bytes and instants."""

from __future__ import annotations

import random
import ssl

import pytest

from bench.load_reader import Listener
from bench.load_tcp import TcpListener
from bench.peers.work import group_size, payload, schedule
from tenuto.media import AudioFormat, Frame
from tenuto.sources.counting import numbered_payload
from tenuto.wire import Format, Notice, RecordEncoder


def records(first: int, count: int) -> bytes:
    """What our server sends: FORMAT, then numbered frames."""
    encoder = RecordEncoder()
    head = encoder.format(Format(AudioFormat(), first, epoch=0, epoch_base=0, chunk_frames=1))
    frames = (Frame(n, numbered_payload(n, 640), 320, ()) for n in range(first, first + count))
    return head + b"".join(map(encoder.frame, frames))


def test_a_peer_sends_the_bytes_of_our_frames() -> None:
    ours = records(0, 70_000)
    assert ours.endswith(payload(0, 70_000))
    assert group_size("source=counting&chunk=5") == 5


@pytest.mark.parametrize("group", [1, 5])
def test_a_peer_keeps_an_absolute_schedule(group: int) -> None:
    times = schedule(group)
    assert next(times) == (0.0, 0, 1)
    found = [next(times) for _ in range(1000)]
    assert [first for _, first, _ in found] == list(range(1, 1 + 1000 * group, group))
    assert found[-1][0] == pytest.approx(1000 * group * 0.020)


@pytest.mark.parametrize("seed", range(5))
def test_frames_are_heard_however_their_bytes_are_cut(seed: int) -> None:
    cut = random.Random(seed)
    notice = RecordEncoder().notice(Notice('{"message": "' + "x" * 3000 + '"}'))
    data = records(0, 20) + b"\x00" + notice + b"\x00\x00" + payload(20, 20)
    heard = Listener()
    position = 0
    while position < len(data):
        step = cut.randint(1, 1500)
        heard.feed(data[position : position + step], float(position + step))
        position += step
    assert heard.indexes == list(range(40))
    assert (heard.missing, heard.duplicates, heard.trouble) == (0, 0, "")
    assert heard.times == sorted(heard.times)


def test_what_is_missing_twice_or_foreign_is_counted() -> None:
    heard = Listener()
    heard.feed(payload(0, 2) + payload(5, 1) + payload(4, 2), 1.0)
    assert (heard.indexes, heard.missing, heard.duplicates) == ([0, 1, 5], 3, 2)
    foreign = bytearray(payload(6, 1))
    foreign[9] ^= 1
    heard.feed(bytes(foreign), 2.0)
    assert heard.trouble == "a payload that is none of a counting source"


def test_gaps_and_lateness_of_single_frames() -> None:
    late = {5: 0.004, 7: 0.030}
    heard = Listener(
        times=[0.020 * n + late.get(n, 0.0) for n in range(10)], indexes=list(range(10))
    )
    assert heard.gaps(0.05, 1) == pytest.approx([0.020, 0.024, 0.016, 0.050, -0.010, 0.020])
    assert max(heard.lateness(0.05, 1)) == pytest.approx(0.030)
    assert Listener().gaps(0.0, 1) == []
    assert Listener().lateness(0.0, 5) == []


@pytest.mark.parametrize("offset", range(5))
def test_a_group_is_complete_with_its_last_frame_wherever_groups_begin(offset: int) -> None:
    def arrival(index: int) -> float:
        begin = (index - offset) // 5 * 5
        # The frames of a group come within 4 ms; the fourth group is 10 ms late.
        return 0.020 * begin + 0.001 * (index - offset - begin) + 0.010 * (begin == 15)

    indexes = list(range(60))
    heard = Listener(times=[arrival(n) for n in indexes], indexes=indexes)
    gaps = heard.gaps(-1.0, 5)
    assert len(gaps) in (10, 11)
    assert min(gaps) == pytest.approx(0.090)
    assert max(gaps) == pytest.approx(0.110)
    assert max(heard.lateness(-1.0, 5)) == pytest.approx(0.010)


@pytest.mark.parametrize("step", [1, 3, 700, 10_000])
def test_chunks_are_taken_apart_however_they_are_cut(step: int) -> None:
    response = b"HTTP/1.1 200 \r\ntransfer-encoding: chunked\r\n\r\n"
    for chunk in (records(0, 1), payload(1, 5), b"\x00", payload(6, 5)):
        response += b"%x\r\n%s\r\n" % (len(chunk), chunk)
    listener = TcpListener(1, ssl.create_default_context(), "/")
    for position in range(0, len(response), step):
        listener.data_received(response[position : position + step])
    assert listener.heard.indexes == list(range(11))
    assert listener.heard.trouble == ""
    listener.data_received(b"0\r\n\r\n")
    assert listener.heard.trouble == "the stream ended"


def test_a_refusal_is_trouble() -> None:
    listener = TcpListener(1, ssl.create_default_context(), "/")
    listener.data_received(b"HTTP/1.1 503 \r\ncontent-length: 0\r\n\r\n")
    assert "503" in listener.heard.trouble
