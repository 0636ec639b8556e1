import random
from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.errors import ErrorCode, RemoteProtocolError
from tenuto.media import AudioFormat, Frame
from tenuto.wire import (
    MEDIA_TYPE,
    VERSION,
    Copy,
    End,
    Format,
    Gap,
    Keepalive,
    Mark,
    Notice,
    Record,
    RecordDecoder,
    RecordEncoder,
    RecordType,
    Unknown,
    extend,
    truncate,
)
from tenuto.wire.records import (
    MAX_BODY_SIZE,
    MAX_GAP,
    MAX_MARKS,
    MAX_NOTICE_SIZE,
    MAX_SKIPPED_SIZE,
)
from tenuto.wire.varint import MAX_VARINT, decode_varint, encode_varint, varint_size

MONO = AudioFormat(16000, 1)
TINY = AudioFormat(100, 2)  # a frame of 2 samples, 8 bytes
BUFFER_BOUND = 1 + 8 + MAX_BODY_SIZE
ENCODER = RecordEncoder()
FORMAT = ENCODER.format(Format(TINY, 0))

NUMBER = st.one_of(st.integers(0, 300), st.integers(0, MAX_VARINT))
BYTE = st.integers(0, 255)
AUDIO = st.sampled_from([TINY, MONO, AudioFormat(48000, 2), AudioFormat(50, 255)])


def chop(data: bytes, cuts: list[int]) -> Iterator[bytes]:
    edges = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    for start, end in pairwise(edges):
        yield data[start:end]


def feed(decoder: RecordDecoder, runs: Iterator[bytes]) -> list[Record]:
    records: list[Record] = []
    for run in runs:
        records += decoder.feed(run)
        assert decoder.buffered < BUFFER_BOUND
    return records


def decode(data: bytes) -> list[Record]:
    return RecordDecoder().feed(data)


def record(type: int, body: bytes) -> bytes:
    return bytes((type,)) + encode_varint(len(body)) + body


def refused(data: bytes) -> str:
    """What a decoder says of a stream that begins with FORMAT and goes on with `data`."""
    decoder = RecordDecoder()
    with pytest.raises(RemoteProtocolError) as caught:
        decoder.feed(FORMAT + data)
    assert caught.value.code is ErrorCode.BAD_RECORD
    assert decoder.buffered == 0
    assert not decoder.ended or "after END" in caught.value.message
    return caught.value.message


class TestVarint:
    @pytest.mark.parametrize(
        ("value", "encoded"),
        [
            (0, "00"),
            (37, "25"),
            (63, "3f"),
            (64, "4040"),
            (15293, "7bbd"),
            (16383, "7fff"),
            (16384, "80004000"),
            (494878333, "9d7f3e7d"),
            ((1 << 30) - 1, "bfffffff"),
            (1 << 30, "c000000040000000"),
            (151288809941952652, "c2197c5eff14e88c"),
            (MAX_VARINT, "ffffffffffffffff"),
        ],
    )
    def test_examples_of_rfc_9000(self, value: int, encoded: str) -> None:
        data = bytes.fromhex(encoded)
        assert encode_varint(value) == data
        assert decode_varint(data, 0) == (value, len(data))
        assert varint_size(data[0]) == len(data)

    def test_longer_encodings_mean_the_same(self) -> None:
        for encoded in ("25", "4025", "80000025", "c000000000000025"):
            assert decode_varint(bytes.fromhex(encoded), 0) == (37, len(encoded) // 2)

    @given(value=NUMBER, before=st.binary(max_size=3))
    def test_any_prefix_is_not_enough(self, value: int, before: bytes) -> None:
        data = before + encode_varint(value)
        assert decode_varint(data + b"\xff", len(before)) == (value, len(data))
        for size in range(len(before), len(data)):
            assert decode_varint(data[:size], len(before)) is None

    @pytest.mark.parametrize("value", [-1, MAX_VARINT + 1])
    def test_bounds(self, value: int) -> None:
        with pytest.raises(ValueError, match=f"{value} does not fit"):
            encode_varint(value)


@st.composite
def streams(draw: st.DrawFn) -> list[Record]:
    """A stream as a server sends it: FORMAT first, sequences rising, END at most once."""
    audio = draw(AUDIO)
    base = draw(st.one_of(st.integers(65_500, 65_540), st.integers(0, 2**60)))
    sequence = base + draw(st.sampled_from([0, 1, 40, 70_000]))
    format = Format(
        audio, sequence, draw(NUMBER), base, draw(BYTE), chunk_frames=draw(st.integers(1, 255))
    )
    records: list[Record] = [format]
    for kind in draw(st.lists(st.sampled_from(["keepalive", "notice", "copy", "gap", "frame"]))):
        if kind == "keepalive":
            records.append(Keepalive())
        elif kind == "notice":
            records.append(Notice(draw(st.text(max_size=20))))
        elif kind == "copy":
            earlier = max(0, sequence - draw(st.integers(1, 9)))
            records.append(Copy(earlier, draw(BYTE), draw(st.binary(max_size=20))))
        elif kind == "gap":
            count = draw(st.sampled_from([1, 2, 32_767, 32_768, 65_536, 100_000, MAX_GAP]))
            records.append(Gap(sequence, count))
            sequence += count
        else:
            marks = draw(st.lists(NUMBER, max_size=2))
            records += [Mark(sequence, offset) for offset in marks]
            samples = draw(st.integers(1, audio.samples_per_frame))
            payload = draw(BYTE).to_bytes() * (samples * audio.bytes_per_sample)
            records.append(Frame(sequence, payload, samples, tuple(marks)))
            sequence += 1
    if draw(st.booleans()):
        records.append(End(draw(NUMBER), draw(NUMBER)))
    return records


def encode(records: list[Record]) -> bytes:
    """Records to bytes; a FRAME brings the MARKs before it along."""
    parts = []
    for item in records:
        assert not isinstance(item, Unknown)
        if not isinstance(item, Mark):
            parts.append(ENCODER.encode(item))
    return b"".join(parts)


class TestRoundTrip:
    @given(records=streams(), cuts=st.lists(st.integers(0, 2**20), max_size=8))
    def test_any_stream_in_any_cut(self, records: list[Record], cuts: list[int]) -> None:
        decoder = RecordDecoder()
        assert feed(decoder, chop(encode(records), cuts)) == records
        assert decoder.ended == isinstance(records[-1], End)
        assert decoder.buffered == 0

    @given(records=streams())
    def test_byte_by_byte(self, records: list[Record]) -> None:
        data = encode(records)[:3000]
        whole = decode(data)
        decoder = RecordDecoder()
        assert feed(decoder, (data[i : i + 1] for i in range(len(data)))) == whole

    @pytest.mark.parametrize(
        "item",
        [
            Keepalive(),
            Format(AudioFormat(48000, 2), 2**40, 7, 2**39, 255, 10),
            Frame(0, bytes(8), 2),
            Frame(1, bytes(4), 1),
            Copy(0, 3, b"cheaper"),
            Copy(0, 0, b""),
            Gap(0, MAX_GAP),
            Mark(2, MAX_VARINT),
            Notice('{"code": "draining"}'),
            Notice("é" * (MAX_NOTICE_SIZE // 2)),
            End(0, 0),
            End(MAX_VARINT, MAX_VARINT),
        ],
        ids=lambda item: type(item).__name__,
    )
    def test_each_record_in_every_cut(self, item: Record) -> None:
        assert not isinstance(item, Unknown)
        data = FORMAT + ENCODER.encode(item)
        for cut in range(0, len(data), max(1, len(data) // 100)):
            assert feed(RecordDecoder(), chop(data, [cut]))[1:] == [item]

    @pytest.mark.parametrize("payload_size", [2, 60, 62, 640, 3840, 16380])
    def test_a_frame_costs_5_bytes_at_most(self, payload_size: int) -> None:
        data = ENCODER.frame(Frame(65_537, bytes(payload_size), payload_size // 2))
        assert len(data) - payload_size == (4 if payload_size < 62 else 5)
        assert data[0] == RecordType.FRAME
        assert data[-payload_size - 2 : -payload_size] == b"\x00\x01"

    def test_keepalive_is_one_byte(self) -> None:
        assert ENCODER.keepalive() == b"\x00"
        assert decode(b"\x00" * 3) == [Keepalive()] * 3

    def test_sequences_across_the_wrap(self) -> None:
        first = 65_000
        decoder = RecordDecoder()
        decoder.feed(ENCODER.format(Format(TINY, first)))
        for sequence in range(first, first + 70_000):
            (item,) = decoder.feed(ENCODER.frame(Frame(sequence, b"abcd", 1)))
            assert isinstance(item, Frame)
            assert item.sequence == sequence
            assert isinstance(item.samples, int)

    @pytest.mark.parametrize("count", [32_768, 65_535, 65_536, 200_000, MAX_GAP])
    def test_a_gap_longer_than_half_the_sequence_space(self, count: int) -> None:
        after = Frame(10 + count, b"abcd", 1)
        data = ENCODER.format(Format(TINY, 10)) + ENCODER.gap(Gap(10, count)) + ENCODER.frame(after)
        assert decode(data)[1:] == [Gap(10, count), after]

    @pytest.mark.parametrize("sequence", [109 - 32_767, 109, 109 + 32_768, 109 - 60])
    def test_behind_a_gap_its_last_frame_is_the_reference(self, sequence: int) -> None:
        base = 1 << 20
        data = ENCODER.format(Format(TINY, base)) + ENCODER.gap(Gap(base + 100, 10))
        mark = Mark(base + sequence, 7)
        assert decode(data + ENCODER.mark(mark))[2:] == [mark]

    def test_copies_and_marks_do_not_move_the_sequence(self) -> None:
        items: list[Record] = [
            Format(TINY, 40_000),
            Copy(39_990, 0, b"a"),
            Mark(50_000, 1),
            Mark(60_000, 2),
            Frame(60_000, b"abcd", 1, (2,)),
        ]
        data = b"".join(
            ENCODER.frame(Frame(item.sequence, item.payload, 1))
            if isinstance(item, Frame)
            else ENCODER.encode(item)
            for item in items
            if not isinstance(item, Unknown)
        )
        assert decode(data) == items

    def test_a_second_format_begins_anew(self) -> None:
        other = Format(MONO, 900_000, epoch=1, epoch_base=900_000)
        data = FORMAT + ENCODER.format(other) + ENCODER.frame(Frame(900_001, bytes(640), 320))
        assert decode(data)[1:] == [other, Frame(900_001, bytes(640), 320)]

    def test_what_a_server_may_not_say(self) -> None:
        with pytest.raises(ValueError, match="a notice of 4098 bytes; 4096 at most"):
            ENCODER.notice(Notice("é" * 2049))
        with pytest.raises(AssertionError):
            ENCODER.encode(Unknown(9, 0))  # type: ignore[arg-type]

    def test_names_on_the_outside(self) -> None:
        assert (MEDIA_TYPE, VERSION) == ("application/vnd.tenuto.records", 1)
        assert [type.name for type in sorted(RecordType)] == [
            "KEEPALIVE",
            "FORMAT",
            "FRAME",
            "COPY",
            "GAP",
            "MARK",
            "NOTICE",
            "END",
        ]


class TestMarks:
    def test_a_frame_has_the_marks_sent_for_it_and_no_others(self) -> None:
        data = (
            FORMAT
            + ENCODER.mark(Mark(0, 5))
            + ENCODER.gap(Gap(0, 1))
            + ENCODER.mark(Mark(1, 6))
            + ENCODER.keepalive()
            + ENCODER.mark(Mark(1, 7))
            + ENCODER.frame(Frame(1, b"abcd", 1))
            + ENCODER.frame(Frame(2, b"abcd", 1))
        )
        frames = [item for item in decode(data) if isinstance(item, Frame)]
        assert [frame.marks for frame in frames] == [(6, 7), ()]

    def test_no_more_than_64_are_held(self) -> None:
        decoder = RecordDecoder()
        decoder.feed(FORMAT)
        for offset in range(MAX_MARKS * 3):
            assert decoder.feed(ENCODER.mark(Mark(0, offset))) == [Mark(0, offset)]
        (frame,) = decoder.feed(ENCODER.frame(Frame(0, b"abcd", 1)))
        assert isinstance(frame, Frame)
        assert frame.marks == tuple(range(MAX_MARKS * 2, MAX_MARKS * 3))


class TestLaterVersions:
    @pytest.mark.parametrize("size", [0, 1, 63, 64, 16_384, 1_000_000])
    def test_unknown_types_are_skipped_without_being_held(self, size: int) -> None:
        data = FORMAT + record(9, bytes(size)) + record(255, b"") + ENCODER.keepalive()
        decoder = RecordDecoder()
        records: list[Record] = []
        for start in range(0, len(data), 1000):
            records += decoder.feed(data[start : start + 1000])
            assert decoder.buffered < 10
        assert records[1:] == [Unknown(9, size), Unknown(255, 0), Keepalive()]

    def test_of_a_size_that_has_a_bound(self) -> None:
        head = b"\x09" + encode_varint(MAX_SKIPPED_SIZE)
        assert decode(head) == [Unknown(9, MAX_SKIPPED_SIZE)]
        message = refused(b"\x09" + encode_varint(MAX_SKIPPED_SIZE + 1))
        assert message == "a record of type 9 announces 16777217 bytes; 16777216 at most"

    @pytest.mark.parametrize(
        "item",
        [Format(TINY, 3, 1, 2), Gap(0, 5), Mark(0, 5), End(1, 2)],
        ids=lambda item: type(item).__name__,
    )
    @given(more=st.binary(min_size=1, max_size=50))
    def test_records_may_grow_at_their_end(
        self, item: Format | Gap | Mark | End, more: bytes
    ) -> None:
        encoded = ENCODER.encode(item)
        assert decode(FORMAT + record(encoded[0], encoded[2:] + more))[1:] == [item]

    def test_lengths_need_not_be_the_shortest(self) -> None:
        assert decode(FORMAT + b"\x04\xc0\0\0\0\0\0\0\x03\0\0\x05")[1:] == [Gap(0, 5)]


FIXED = bytes((1, 0, 0, 1, 20, 5))
NUMBERS = bytes.fromhex("7e80 00 00 00")  # 16000 Hz, epoch 0, base 0, sequence 0


class TestRefusals:
    @pytest.mark.parametrize(
        ("body", "message"),
        [
            (b"", "a FORMAT of 0 bytes; 10 at least"),
            (FIXED[:5], "a FORMAT of 5 bytes; 10 at least"),
            (FIXED, "FORMAT ends in the middle of a number"),
            (FIXED + NUMBERS[:-1], "FORMAT ends in the middle of a number"),
            (b"\2" + FIXED[1:] + NUMBERS, "wire format version 2; this side reads 1"),
            (b"\0" + FIXED[1:] + NUMBERS, "wire format version 0; this side reads 1"),
            (bytes((1, 0, 1, 1, 20, 5)) + NUMBERS, "codec 1 is unknown to this side"),
            (bytes((1, 0, 0, 1, 10, 5)) + NUMBERS, "frames of 10 ms; 20 expected"),
            (bytes((1, 0, 0, 1, 20, 0)) + NUMBERS, "chunks of 0 frames"),
            (
                bytes((1, 0, 0, 0, 20, 5)) + NUMBERS,
                "an impossible FORMAT: 0 channels at 16000 Hz make frames of 0 bytes; "
                "1 to 255 channels and 16381 bytes fit a record",
            ),
            (
                FIXED + bytes.fromhex("6b11 00 00 00"),
                "an impossible FORMAT: 20 ms at 11025 Hz are not whole samples",
            ),
            (
                FIXED + bytes.fromhex("7e80 00 06 05"),
                "sequence 5 lies before its epoch's base 6",
            ),
        ],
    )
    def test_a_format(self, body: bytes, message: str) -> None:
        assert refused(record(1, body)) == message

    def test_the_format_that_those_are_made_from(self) -> None:
        assert decode(record(1, FIXED + NUMBERS)) == [Format(MONO, 0, chunk_frames=5)]

    @pytest.mark.parametrize(
        ("data", "message"),
        [
            (record(2, b""), "a FRAME without a sequence"),
            (record(2, b"\0"), "a FRAME without a sequence"),
            (
                record(2, b"\0\0"),
                "frame 0 has 0 bytes; whole samples of 4 bytes up to 8 were announced",
            ),
            (
                record(2, b"\0\0" + bytes(6)),
                "frame 0 has 6 bytes; whole samples of 4 bytes up to 8 were announced",
            ),
            (
                record(2, b"\0\5" + bytes(12)),
                "frame 5 has 12 bytes; whole samples of 4 bytes up to 8 were announced",
            ),
            (record(3, b"\0"), "a COPY without a sequence"),
            (record(3, b"\0\0"), "a COPY without a format id"),
            (record(4, b"\0"), "a GAP without a sequence"),
            (record(4, b"\0\0"), "GAP ends in the middle of a number"),
            (record(4, b"\0\0\x40"), "GAP ends in the middle of a number"),
            (record(4, b"\0\0\0"), "a GAP of 0 frames; 1 to 4294967296 are possible"),
            (
                record(4, b"\0\0" + encode_varint(MAX_GAP + 1)),
                "a GAP of 4294967297 frames; 1 to 4294967296 are possible",
            ),
            (record(5, b"\0"), "a MARK without a sequence"),
            (record(5, b"\0\0"), "MARK ends in the middle of a number"),
            (record(6, b"\xff"), "a NOTICE that is not UTF-8"),
            (record(6, b'"\xed\xa0\x80"'), "a NOTICE that is not UTF-8"),
            (b"\x06\x50\x01", "a record of type 6 announces 4097 bytes; 4096 at most"),
            (record(7, b""), "END ends in the middle of a number"),
            (record(7, b"\1"), "END ends in the middle of a number"),
            (b"\x02\x80\x00\x40\x00", "a record of type 2 announces 16384 bytes; 16383 at most"),
            (ENCODER.end(End(0, 0)) + b"\0", "a record came after END"),
            (ENCODER.end(End(0, 0)) + b"\x09", "a record came after END"),
            (ENCODER.end(End(0, 0)) * 2, "a record came after END"),
        ],
    )
    def test_behind_a_format(self, data: bytes, message: str) -> None:
        assert refused(data) == message

    @pytest.mark.parametrize(
        ("item", "name"),
        [
            (Frame(0, b"ab", 1), "a FRAME"),
            (Copy(0, 0, b""), "a COPY"),
            (Gap(0, 1), "a GAP"),
            (Mark(0, 1), "a MARK"),
            (End(0, 0), "an END"),
        ],
    )
    def test_before_a_format(self, item: Frame | Copy | Gap | Mark | End, name: str) -> None:
        decoder = RecordDecoder()
        with pytest.raises(RemoteProtocolError, match=f"^{name} came before FORMAT$"):
            decoder.feed(ENCODER.encode(item))
        assert not decoder.ended

    def test_a_sign_of_life_and_a_notice_need_no_format(self) -> None:
        assert decode(b"\0" + ENCODER.notice(Notice("{}"))) == [Keepalive(), Notice("{}")]

    def test_bytes_after_end_in_a_later_run(self) -> None:
        decoder = RecordDecoder()
        decoder.feed(FORMAT + ENCODER.end(End(0, 0)))
        assert decoder.ended
        assert decoder.feed(b"") == []
        with pytest.raises(RemoteProtocolError, match="a record came after END"):
            decoder.feed(b"\0")

    def test_a_broken_end_is_no_end(self) -> None:
        decoder = RecordDecoder()
        with pytest.raises(RemoteProtocolError):
            decoder.feed(FORMAT + record(7, b"\1"))
        assert not decoder.ended

    def test_a_stream_that_is_cut_never_looks_finished(self) -> None:
        data = FORMAT + ENCODER.frame(Frame(0, b"abcd", 1)) + ENCODER.end(End(1, 300))
        for size in range(len(data)):
            decoder = RecordDecoder()
            decoder.feed(data[:size])
            assert not decoder.ended

    def test_once_broken_it_stays_broken_and_does_not_grow(self) -> None:
        decoder = RecordDecoder()
        with pytest.raises(RemoteProtocolError) as first:
            decoder.feed(b"\x02\x02\0\0")
        depths = set()
        for _ in range(5):
            with pytest.raises(RemoteProtocolError) as again:
                decoder.feed(FORMAT)
            assert again.value is first.value
            depths.add(len(again.traceback))
            assert decoder.buffered == 0
        assert len(depths) == 1


def survives(data: bytes, cuts: list[int], note: Callable[[], str]) -> None:
    """Feeds hostile bytes: only records or a typed error, and little is held."""
    decoder = RecordDecoder()
    try:
        records = feed(decoder, chop(data, cuts))
    except RemoteProtocolError:
        assert decoder.buffered == 0, note()
    except Exception as fault:
        raise AssertionError(note()) from fault
    else:
        # What was accepted is well formed: it survives its own round trip.
        for item in records:
            if isinstance(item, Frame):
                assert len(item.payload) == item.samples * (len(item.payload) // item.samples)


class TestFuzz:
    @given(data=st.binary(max_size=300), cuts=st.lists(st.integers(0, 300), max_size=4))
    def test_any_bytes(self, data: bytes, cuts: list[int]) -> None:
        survives(FORMAT + data, cuts, data.hex)
        survives(data, cuts, data.hex)

    @pytest.mark.parametrize("seed", range(20))
    def test_mutated_streams(self, seed: int) -> None:
        rng = random.Random(seed)
        valid = (
            FORMAT
            + ENCODER.keepalive()
            + b"".join(ENCODER.frame(Frame(n, b"abcdefgh", 2, (n,))) for n in range(4))
            + ENCODER.gap(Gap(4, 7))
            + ENCODER.copy(Copy(3, 0, b"abcdefgh"))
            + ENCODER.notice(Notice('{"code": "draining"}'))
            + record(77, b"later")
            + ENCODER.end(End(11, 8))
        )
        for round in range(300):
            data = bytearray(valid)
            for _ in range(rng.randint(1, 4)):
                place = rng.randrange(len(data))
                match rng.randrange(4):
                    case 0:
                        data[place] = rng.randrange(256)
                    case 1:
                        data[place] ^= 1 << rng.randrange(8)
                    case 2:
                        del data[place : place + rng.randint(1, 5)]
                    case _:
                        data[place:place] = rng.randbytes(rng.randint(1, 5))
                data = data or bytearray(valid)
            cuts = [rng.randrange(200) for _ in range(rng.randrange(4))]
            survives(bytes(data), cuts, lambda: f"seed {seed}, round {round}")  # noqa: B023

    @pytest.mark.parametrize("seed", range(10))
    def test_random_records_of_random_bodies(self, seed: int) -> None:
        rng = random.Random(seed)
        for round in range(300):
            records = [record(rng.randrange(10), rng.randbytes(rng.randrange(14))) for _ in "12345"]
            data = FORMAT + b"".join(records)
            survives(data, [rng.randrange(99)], lambda: f"seed {seed}, round {round}")  # noqa: B023

    def test_an_incomplete_record_is_all_that_is_held(self) -> None:
        decoder = RecordDecoder()
        body = record(3, bytes(MAX_BODY_SIZE))
        decoder.feed(FORMAT + body[:-1])
        assert decoder.buffered == len(body) - 1 < BUFFER_BOUND
        assert len(decoder.feed(body[-1:] + body[:-1])) == 1
        assert decoder.buffered == len(body) - 1


def test_truncation_and_extension_undo_each_other_along_a_stream() -> None:
    sequence = 65_530
    for step in (1, 1, 10, 32_767, 1, 32_767, 5):
        assert extend(truncate(sequence + step), sequence) == sequence + step
        sequence += step
