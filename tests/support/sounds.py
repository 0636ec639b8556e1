"""The files of the matrix: what each holds, and what must be heard of it.

The truth is either what ffmpeg makes of the same file, or the samples the file was made from:
where the file lies and ffmpeg believes it, `TRUTH` says so beside the case.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.wavs import chunk, encode, extensible, fmt, riff, signal, wav

__all__ = ["Sound", "decode", "make", "sounds"]

PCM = encode("s16", signal())
STEREO = encode("s16", signal(channels=2))


@dataclass(frozen=True, slots=True)
class Sound:
    """One file.

    `content` is its bytes, or the arguments by which ffmpeg makes it from a WAV of 16 bits
    (`source`). `truth` is what must be heard (None: what ffmpeg hears), `refusal` words of
    the answer, `like` a bound for the correlation where a decoder is free in the last bit.
    `ask` are parameters of the request; `rate` and `channels` are what must come.
    """

    name: str
    content: bytes | tuple[str, ...]
    truth: bytes | None = None
    refusal: str = ""
    like: float = 0.0
    source: bytes = b""
    ask: dict[str, str] = field(default_factory=dict)
    rate: int = 48000
    channels: int = 1

    @property
    def judged_by(self) -> str:
        """How it is judged, for the count."""
        if self.refusal:
            return "refused"
        if self.like:
            return "alike"
        return "equal to ffmpeg" if self.truth is None else "equal to the truth"

    @property
    def needs_ffmpeg(self) -> bool:
        return isinstance(self.content, tuple) or (self.truth is None and not self.refusal)


def run(*arguments: str, stdin: bytes | None = None) -> bytes:
    done = subprocess.run(
        ["ffmpeg", "-v", "error", "-nostdin" if stdin is None else "-y", *arguments],
        input=stdin, capture_output=True, timeout=30, check=False,
    )  # fmt: skip
    assert done.returncode == 0, (arguments, done.stderr.decode())
    return done.stdout


def make(sound: Sound, folder: Path) -> Path:
    """Write the file."""
    path = folder / sound.name
    if isinstance(sound.content, bytes):
        path.write_bytes(sound.content)
    else:
        run("-i", "-", *sound.content, str(path), stdin=sound.source or wav())
    return path


def decode(some: list[Sound], folder: Path) -> dict[str, bytes]:
    """What ffmpeg hears of these, by name, in the rate and channels that were asked for.

    One process for many files: its start costs more than they do.
    """
    inputs, outputs = [], []
    for number, sound in enumerate(some):
        to = [] if not sound.like else ["-ar", str(sound.rate), "-ac", str(sound.channels)]
        inputs += ["-i", str(folder / sound.name)]
        outputs += ["-map", str(number), "-f", "s16le", "-c:a", "pcm_s16le", *to]
        outputs.append(str(folder / f"{sound.name}.heard"))
    run(*inputs, *outputs)
    return {sound.name: (folder / f"{sound.name}.heard").read_bytes() for sound in some}


def upper(data: bytes) -> bytes:
    """The upper halves of 32-bit words."""
    return b"".join(data[place : place + 2] for place in range(2, len(data), 4))


def sounds() -> list[Sound]:
    """All of them."""
    return [
        *_encodings(), *_chunks(), *_lengths(), *_rates(), *_lossless(), *_lossy(), *_refused(),
    ]  # fmt: skip


def _encodings() -> list[Sound]:
    found = []
    for kind in ("u8", "s16", "s24", "s32", "f32", "f64", "alaw", "mulaw"):
        found += [
            Sound(f"{kind}-mono.wav", wav(kind)),
            Sound(f"{kind}-stereo.wav", wav(kind, channels=2), channels=2),
        ]
    for kind in ("s16", "s24", "f32"):
        found.append(Sound(f"{kind}-six.wav", wav(kind, channels=6), channels=6))
    for kind, channels, valid in (
        ("s16", 2, 16), ("s24", 6, 24), ("s24", 2, 20), ("s32", 2, 24), ("f32", 2, 32),
        ("mulaw", 1, 8),
    ):  # fmt: skip
        data = encode(kind, signal(channels=channels))
        content = riff(extensible(kind, 48000, channels, valid), chunk(b"data", data))
        # ffmpeg takes 24 valid bits of 32 for packed ones: TRUTH.
        truth = upper(data) if (kind, valid) == ("s32", 24) else None
        name = f"extensible-{kind}-{valid}.wav"
        found.append(Sound(name, content, truth, channels=channels))
    twelve = riff(fmt(bits=12), chunk(b"data", PCM))
    twenty = riff(fmt("s24", bits=20), chunk(b"data", encode("s24", signal())))
    return [*found, Sound("12-of-16.wav", twelve), Sound("20-of-24.wav", twenty)]


def _chunks() -> list[Sound]:
    data = chunk(b"data", PCM)
    listed = chunk(b"LIST", b"INFOISFT\x05\0\0\0tests")
    bext = chunk(b"bext", b"\x01" * 603)
    forgot = chunk(b"LIST", b"INFOISFT\x05\0\0\0tests", pad=False)
    ds64 = chunk(b"ds64", _long(28 + 8 + 24 + len(data), len(PCM), len(PCM) // 2))
    return [
        Sound("odd-list.wav", riff(listed, fmt(), listed, data)),
        Sound("odd-bext-fact.wav", riff(bext, fmt(), chunk(b"fact", b"\1\2\3"), data)),
        Sound("unknown-odd.wav", riff(chunk(b"odd ", b"123"), fmt(), data)),
        # ffmpeg steps over the padding that is not there and finds nothing: TRUTH.
        Sound("no-padding.wav", riff(fmt(), forgot, data), truth=PCM),
        Sound("no-padding-fmt.wav", riff(forgot, fmt(), data), truth=PCM),
        Sound("rf64.wav", riff(ds64, fmt(), chunk(b"data", PCM, 0xFFFFFFFF),
                               size=0xFFFFFFFF, tag=b"RF64")),
        Sound("rf64-and-more.wav", riff(ds64, fmt(), chunk(b"data", PCM, 0xFFFFFFFF), listed,
                                        size=0xFFFFFFFF, tag=b"RF64")),
        Sound("bw64.wav", riff(ds64, fmt(), chunk(b"data", PCM, 0xFFFFFFFF), listed,
                               size=0xFFFFFFFF, tag=b"BW64"), truth=PCM),
        Sound("rf64-plain-size.wav", riff(ds64, fmt(), data, size=0xFFFFFFFF, tag=b"RF64")),
        Sound("rf64-by-ffmpeg.wav", ("-rf64", "always")),
    ]  # fmt: skip


def _long(*sizes: int) -> bytes:
    return b"".join(size.to_bytes(8, "little") for size in sizes) + bytes(4)


def _lengths() -> list[Sound]:
    listed = chunk(b"LIST", b"INFO")

    def lying(size: int, riff_size: int | None = None) -> bytes:
        return riff(fmt(), chunk(b"data", PCM, size), size=riff_size)

    return [
        Sound("pipe-zeros.wav", lying(0, 0), truth=PCM),
        Sound("pipe-ffmpeg.wav", lying(0xFFFFFFFF, 0xFFFFFFFF)),
        Sound("pipe-sox.wav", lying(0x7FFFF000, 0x7FFFF024)),
        Sound("pipe-arecord.wav", lying(0x7FFFFFFF, 0x80000023)),
        Sound("pipe-2gib.wav", lying(0x80000000, 0x80000024)),
        Sound("size-too-large.wav", lying(len(PCM) + 5000)),
        Sound("riff-too-small.wav", lying(len(PCM), 40), truth=PCM),
        Sound("riff-too-large.wav", lying(len(PCM), 10**9)),
        Sound("truncated.wav", wav()[:-3000]),
        Sound("truncated-in-sample.wav", wav("s24", channels=2)[:-3001], channels=2),
        Sound("junk-behind.wav", riff(fmt(), chunk(b"data", PCM), listed) + b"junk" * 99),
        Sound("stray-byte.wav", riff(fmt(channels=2), chunk(b"data", STEREO + b"\x55")),
              channels=2, truth=STEREO),
        Sound("stray-bytes-24.wav", riff(fmt("s24", channels=2), chunk(b"data", bytes(6003))),
              channels=2, truth=bytes(4000)),
        Sound("no-samples.wav", riff(fmt(), chunk(b"data", b"")), truth=b""),
        Sound("no-samples-24.wav", riff(fmt("s24"), chunk(b"data", b""), listed), truth=b""),
        Sound("one-sample.wav", riff(fmt(), chunk(b"data", b"\x12\x34"))),
    ]  # fmt: skip


def _rates() -> list[Sound]:
    near = 0.99
    return [
        Sound("8000.wav", wav(rate=8000), rate=8000),
        Sound("22050.wav", wav(rate=22050), rate=22050),
        Sound("96000.wav", wav(rate=96000), rate=96000),
        Sound("11025.wav", wav(rate=11025), rate=12000, like=near),
        Sound("44056.wav", wav("s24", rate=44056), rate=44100, like=near),
        Sound("48000-as-16000.wav", wav(), rate=16000, like=near, ask={"rate": "16000"}),
        Sound("11025-as-48000.wav", wav(rate=11025), rate=48000, like=near, ask={"rate": "48000"}),
        Sound("six-as-two.wav", wav(channels=6), channels=2, like=near, ask={"channels": "2"}),
        Sound("384000-as-24000.wav", wav("f32", 384000, 2), rate=24000, channels=1, like=near,
              ask={"rate": "24000", "channels": "1"}),
    ]  # fmt: skip


def _lossless() -> list[Sound]:
    stereo, six = wav(channels=2), wav(channels=6)
    deep = wav("s24", channels=2)
    flac = ("-c:a", "flac")
    return [
        Sound("mono.flac", flac),
        Sound("stereo.flac", flac, source=stereo, channels=2),
        Sound("six.flac", flac, source=six, channels=6),
        Sound("deep.flac", (*flac, "-sample_fmt", "s32"), source=deep, channels=2),
        Sound("flac-named.wav", (*flac, "-f", "flac")),
        Sound("11025.flac", flac, source=wav(rate=11025), rate=12000, like=0.99),
        Sound("stereo.aiff", (), source=stereo, channels=2),
        Sound("deep.aiff", ("-c:a", "pcm_s24be"), source=deep, channels=2),
        Sound("small.aiff", ("-c:a", "pcm_s8"), source=wav("u8")),
        Sound("float.aifc", ("-c:a", "pcm_f32be", "-f", "aiff"), source=wav("f32")),
        Sound("stereo.au", (), source=stereo, channels=2),
        Sound("mulaw.au", ("-c:a", "pcm_mulaw"), source=wav("mulaw")),
        Sound("float.au", ("-c:a", "pcm_f64be"), source=wav("f64")),
        Sound("stereo.caf", (), source=stereo, channels=2),
        Sound("deep.caf", ("-c:a", "pcm_s24le"), source=deep, channels=2),
        Sound("float.caf", ("-c:a", "pcm_f32le"), source=wav("f32", channels=2), channels=2),
        Sound("stereo.w64", (), source=stereo, channels=2),
        Sound("rifx.wav", _rifx(), truth=PCM),
    ]


def _rifx() -> bytes:
    swapped = bytearray(PCM)
    swapped[::2], swapped[1::2] = PCM[1::2], PCM[::2]
    head = b"RIFX" + (36 + len(PCM)).to_bytes(4, "big") + b"WAVEfmt \0\0\0\x10\0\1\0\1"
    rates = (48000).to_bytes(4, "big") + (96000).to_bytes(4, "big")
    return head + rates + b"\0\2\0\x10data" + len(PCM).to_bytes(4, "big") + bytes(swapped)


def _lossy() -> list[Sound]:
    stereo = wav(channels=2)
    return [
        Sound("mono.mp3", ("-c:a", "libmp3lame", "-b:a", "128k"), like=0.99),
        Sound("stereo.mp3", ("-c:a", "libmp3lame", "-b:a", "256k"), like=0.99,
              source=stereo, channels=2),
        Sound("mp3-named.wav", ("-c:a", "libmp3lame", "-f", "mp3"), like=0.99),
        Sound("untagged.mp3", ("-c:a", "libmp3lame", "-id3v2_version", "0", "-write_xing", "0"),
              like=0.99),
        Sound("stereo.ogg", ("-c:a", "libvorbis"), like=0.99, source=stereo, channels=2),
        Sound("mono.opus", ("-c:a", "libopus", "-b:a", "128k"), like=0.99),
        Sound("stereo.opus", ("-c:a", "libopus", "-b:a", "192k"), like=0.99,
              source=stereo, channels=2),
    ]  # fmt: skip


def _refused() -> list[Sound]:
    data = chunk(b"data", PCM)

    def bad(name: str, refusal: str, content: bytes) -> Sound:
        return Sound(name, content, refusal=refusal)

    return [
        bad("empty.wav", "an empty file", b""),
        bad("header-only.wav", "without a data chunk", riff(fmt())),
        bad("half-header.wav", "short format chunk", riff(fmt())[:30]),
        bad("text.wav", "is text", "größer\n".encode() * 99),
        bad("jpeg.wav", "a JPEG image", b"\xff\xd8\xff\xe0\0\x10JFIF" + PCM),
        bad("avi.wav", "not WAVE", b"RIFF\x04\0\0\0AVI "),
        bad("aac.wav", "AAC data", b"\xff\xf1\x50\x80" + PCM),
        bad("video.mp4", "MP4 data", b"\0\0\0\x20ftypM4A " + PCM),
        bad("noise.bin", "no known audio format", b"\x01\x02\xfe" + PCM),
        bad("adpcm.wav", "Microsoft ADPCM", riff(fmt(tag=2, bits=4), data)),
        bad("ima.wav", "IMA ADPCM", riff(fmt(tag=0x11, bits=4), data)),
        bad("mp3-inside.wav", "of MP3", riff(fmt(tag=0x55), data)),
        bad("gsm.wav", "GSM 6.10", riff(fmt(tag=0x31), data)),
        bad("unknown-tag.wav", "format 0x1234", riff(fmt(tag=0x1234), data)),
        bad("half-float.wav", "16-bit float", riff(fmt(tag=3), data)),
        bad("align.wav", "in blocks of 4 bytes", riff(fmt(align=4), data)),
        bad("no-channels.wav", "0 channels", riff(fmt(channels=0), data)),
        bad("no-rate.wav", "0 Hz", riff(fmt(rate=0), data)),
        bad("absurd-rate.wav", "4000000000 Hz", riff(fmt(rate=4_000_000_000), data)),
        bad(
            "too-large-frames.wav",
            "ask for less with rate= or channels=",
            wav(rate=192000, channels=6),
        ),
        Sound("alac.caf", ("-c:a", "alac"), refusal="(CAF) that cannot be decoded"),
        bad("false.mp3", "MP3 data that cannot be decoded", b"\xff\xfb\x90\x64" + PCM[:5000]),
        bad("false.flac", "FLAC data that cannot be decoded", b"fLaC" + PCM[:5000]),
        bad("false.ogg", "Ogg data that cannot be decoded", b"OggS" + PCM[:5000]),
    ]
