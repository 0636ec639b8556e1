"""What can be played here, as JSON: made from the table that requests are checked with."""

from __future__ import annotations

from collections.abc import Collection
from typing import TypedDict

from tenuto.errors import RequestError
from tenuto.sources.containers import CONTAINERS, can_decode
from tenuto.sources.espeak_engine import Voice, shared_engine
from tenuto.sources.kinds import KINDS
from tenuto.sources.parameters import Fact, SourceKind
from tenuto.sources.voices import choose_voice, speaks

__all__ = ["ListedFiles", "ListedSource", "ListedVoice", "Listing", "list_sources"]


class ListedSource(TypedDict):
    """One kind. `live` and `pausable` are None where the operator is yet to choose."""

    source: str
    help: str
    implied_by: list[str]
    live: bool | None
    pausable: bool | None
    available: bool
    remedy: str
    needs: str
    for_tests: bool
    parameters: list[dict[str, Fact]]


class ListedVoice(TypedDict):
    voice: str
    name: str
    languages: list[str]


class ListedFiles(TypedDict):
    """Which files can be decoded here, and what to do for more."""

    formats: list[str]
    remedy: str


class Listing(TypedDict, total=False):
    """`voices` and `variants` are there where they were asked for and speech is available."""

    sources: list[ListedSource]
    files: ListedFiles
    voices: list[ListedVoice]
    variants: list[str]


async def list_sources(
    *,
    missing: Collection[str] = (),
    stdin_live: bool | None = None,
    test_sources: bool = False,
    language: str | None = None,
) -> Listing:
    """All kinds, save those in `missing` available; with a `language` its voices ("": all).

    The engine of speech is asked in its own thread, once; later answers are remembered.
    Raises `RequestError` UNKNOWN_VOICE for a language that no voice speaks.
    """
    engine, problem = shared_engine(), ""
    voices: tuple[Voice, ...] = ()
    try:
        voices = await engine.voices()
    except RequestError as error:
        problem = f"{error.message}: {error.remedy}" if error.remedy else error.message
    listing = Listing(
        sources=[
            _listed(
                kind,
                live=stdin_live if kind.live is None else kind.live,
                problem=problem if kind.name == "speech" else _lack(kind, missing),
            )
            for kind in KINDS
            if test_sources or not kind.for_tests
        ],
        files=_files(),
    )
    if language is not None and voices:
        listing["voices"] = _voices(voices, language)
        listing["variants"] = sorted(await engine.variants(), key=str.lower)
    return listing


def _files() -> ListedFiles:
    if can_decode():
        return ListedFiles(formats=["WAV", *CONTAINERS], remedy="")
    more = f"{', '.join(CONTAINERS)}, other rates"
    return ListedFiles(formats=["WAV"], remedy=f"for {more}: pip install 'tenuto[audio]'")


def _lack(kind: SourceKind, missing: Collection[str]) -> str:
    return f"start the server with {kind.needs}" if kind.name in missing else ""


def _listed(kind: SourceKind, *, live: bool | None, problem: str) -> ListedSource:
    return ListedSource(
        source=kind.name,
        help=kind.help,
        implied_by=list(kind.implied_by),
        live=live,
        pausable=None if live is None else not live,
        available=not problem,
        remedy=problem,
        needs=kind.needs,
        for_tests=kind.for_tests,
        parameters=[parameter.facts() for parameter in kind.parameters],
    )


def _voices(voices: tuple[Voice, ...], language: str) -> list[ListedVoice]:
    if language:
        choose_voice(voices, language)
    return [
        ListedVoice(
            voice=voice.identifier.rpartition("/")[2],
            name=voice.name,
            languages=[tag for _, tag in sorted(voice.languages)],
        )
        for voice in voices
        if not language or speaks(voice, voices, language)
    ]
