"""Code, vectors and docs/wire-format.md say the same."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tenuto.errors import RemoteProtocolError
from tenuto.media import AudioFormat, Codec, Frame
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
from tenuto.wire.varint import decode_varint, encode_varint

ROOT = Path(__file__).parents[2]
VECTORS: dict[str, Any] = json.loads((ROOT / "tests/vectors/records.json").read_text("utf-8"))
PAGE = (ROOT / "docs/wire-format.md").read_text("utf-8")
PRELUDE = bytes.fromhex(VECTORS["prelude"])


def vectors(key: str) -> list[Any]:
    return [pytest.param(vector, id=vector.get("name")) for vector in VECTORS[key]]


def meaning(record: Record) -> dict[str, Any]:
    """A record as the vectors write it."""
    match record:
        case Keepalive():
            return {"type": "KEEPALIVE"}
        case Format(audio=audio):
            return {
                "type": "FORMAT",
                "version": VERSION,
                "format_id": record.format_id,
                "codec": audio.codec,
                "channels": audio.channels,
                "frame_milliseconds": 20,
                "chunk_frames": record.chunk_frames,
                "rate": audio.rate,
                "epoch": record.epoch,
                "epoch_base": record.epoch_base,
                "sequence": record.sequence,
            }
        case Frame(sequence=sequence, payload=payload):
            return {"type": "FRAME", "sequence": sequence, "payload": payload.hex()}
        case Copy(sequence=sequence, format_id=format_id, payload=payload):
            return {
                "type": "COPY",
                "sequence": sequence,
                "format_id": format_id,
                "payload": payload.hex(),
            }
        case Gap(sequence=sequence, count=count):
            return {"type": "GAP", "sequence": sequence, "count": count}
        case Mark(sequence=sequence, text_offset=text_offset):
            return {"type": "MARK", "sequence": sequence, "text_offset": text_offset}
        case Notice(json=text):
            return {"type": "NOTICE", "json": text}
        case End(frames=frames, samples=samples):
            return {"type": "END", "frames": frames, "samples": samples}
        case Unknown(type=type, size=size):
            return {"type": type, "size": size}


def write(vector: dict[str, Any]) -> bytes:
    """The bytes of a record as the vectors write it, by the encoder."""
    facts = dict(vector)
    encoder = RecordEncoder()
    match facts.pop("type"):
        case "KEEPALIVE":
            return encoder.keepalive()
        case "FORMAT":
            assert (facts.pop("version"), facts.pop("frame_milliseconds")) == (VERSION, 20)
            audio = AudioFormat(facts.pop("rate"), facts.pop("channels"), Codec(facts.pop("codec")))
            return encoder.format(Format(audio, **facts))
        case "FRAME":
            return encoder.frame(Frame(facts["sequence"], bytes.fromhex(facts["payload"]), 1))
        case "COPY":
            payload = bytes.fromhex(facts.pop("payload"))
            return encoder.copy(Copy(**facts, payload=payload))
        case "GAP":
            return encoder.gap(Gap(**facts))
        case "MARK":
            return encoder.mark(Mark(**facts))
        case "NOTICE":
            return encoder.notice(Notice(**facts))
        case "END":
            return encoder.end(End(**facts))
        case other:
            raise AssertionError(f"this version writes no {other}")


def read(data: bytes) -> list[dict[str, Any]]:
    return [meaning(record) for record in RecordDecoder().feed(data)]


@pytest.mark.parametrize("vector", VECTORS["varints"], ids=lambda vector: vector["hex"])
def test_varints(vector: dict[str, Any]) -> None:
    data = bytes.fromhex(vector["hex"])
    assert decode_varint(data, 0) == (vector["value"], len(data))
    assert (encode_varint(vector["value"]) == data) is vector["canonical"]


@pytest.mark.parametrize("vector", VECTORS["sequences"])
def test_sequences(vector: dict[str, Any]) -> None:
    assert extend(vector["received"], vector["reference"]) == vector["sequence"]
    assert truncate(vector["sequence"]) == vector["received"]


@pytest.mark.parametrize("vector", vectors("records"))
def test_records_read(vector: dict[str, Any]) -> None:
    assert read(PRELUDE + bytes.fromhex(vector["hex"]))[1:] == [vector["record"]]


@pytest.mark.parametrize("vector", [v for v in vectors("records") if v.values[0]["canonical"]])
def test_records_written(vector: dict[str, Any]) -> None:
    assert write(vector["record"]).hex() == vector["hex"]


@pytest.mark.parametrize("vector", vectors("streams"))
def test_streams_read_whole_and_byte_by_byte(vector: dict[str, Any]) -> None:
    data = bytes.fromhex(vector["hex"])
    assert read(data) == vector["records"]
    decoder = RecordDecoder()
    records = [meaning(item) for byte in data for item in decoder.feed(bytes((byte,)))]
    assert records == vector["records"]
    assert decoder.ended is vector["complete"]


@pytest.mark.parametrize("vector", [v for v in vectors("streams") if v.values[0]["canonical"]])
def test_streams_written(vector: dict[str, Any]) -> None:
    assert b"".join(map(write, vector["records"])).hex() == vector["hex"]


@pytest.mark.parametrize("vector", vectors("invalid"))
def test_invalid_streams_are_refused_behind_what_is_good(vector: dict[str, Any]) -> None:
    data = bytes.fromhex(vector["hex"])
    with pytest.raises(RemoteProtocolError):
        RecordDecoder().feed(data)
    decoder = RecordDecoder()
    records: list[dict[str, Any]] = []

    def feed_bytes() -> None:
        for byte in data:
            records.extend(map(meaning, decoder.feed(bytes((byte,)))))

    with pytest.raises(RemoteProtocolError):
        feed_bytes()
    assert records == vector["records"]


def test_every_type_has_a_vector_and_names_are_unique() -> None:
    types = {vector["record"]["type"] for vector in VECTORS["records"]}
    assert types >= {type.name for type in RecordType}
    for key in ("records", "streams", "invalid"):
        names = [vector["name"] for vector in VECTORS[key]]
        assert len(names) == len(set(names))
    assert VECTORS["media_type"] == f"{MEDIA_TYPE}; v={VERSION}"


class TestPage:
    def test_byte_examples_are_true_and_are_vectors(self) -> None:
        blocks = re.findall(r"^```vector\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
        known = {vector["hex"]: vector["record"] for vector in VECTORS["records"]}
        refused = {vector["hex"] for vector in VECTORS["invalid"]}
        checked = 0
        for block in blocks:
            before = PRELUDE
            lines = block.splitlines()
            for line, verdict in zip(lines[::2], lines[1::2], strict=True):
                data = bytes.fromhex(line)
                checked += 1
                if verdict.startswith("!"):
                    with pytest.raises(RemoteProtocolError):
                        read(before + data)
                    assert (PRELUDE + data).hex() in refused
                    continue
                record = json.loads(verdict.removeprefix("= "))
                assert read(before + data)[-1] == record
                assert known.get(data.hex(), record) == record
                before += data
        assert checked == 17

    def test_tables_of_types_numbers_and_sequences_are_true(self) -> None:
        types = re.findall(r"^\| (\d) \| ([A-Z]+) \|", PAGE, re.MULTILINE)
        assert types == [(str(int(type)), type.name) for type in RecordType]
        varints = re.findall(r"^\| ([\d,]+) \| `([0-9a-f ]+)` \|$", PAGE, re.MULTILINE)
        assert len(varints) == 4
        for value, encoded in varints:
            assert encode_varint(int(value.replace(",", ""))) == bytes.fromhex(encoded)
        sequences = re.findall(r"^\| (\d+) \| (\d+) \| (\d+) \|$", PAGE, re.MULTILINE)
        assert len(sequences) == 6
        for received, reference, sequence in sequences:
            assert extend(int(received), int(reference)) == int(sequence)

    def test_bounds_in_the_text_are_those_of_the_code(self) -> None:
        for bound in ("16,383", "16,381", "4,096", "2^24", "2^32", "last 64", "21.8 minutes"):
            assert bound in PAGE
        assert VECTORS["media_type"] in PAGE
