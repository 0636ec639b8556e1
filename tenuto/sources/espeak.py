"""Speech by espeak-ng, an optional extra (GPL-3): English, Mandarin and a hundred others."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass
from difflib import get_close_matches

from tenuto.errors import ErrorCode, RequestError
from tenuto.media import AudioFormat
from tenuto.sources.base import Mark
from tenuto.sources.clauses import Clause, clean_text, cut_clauses
from tenuto.sources.espeak_child import RATE
from tenuto.sources.espeak_engine import Engine, Utterance, Voice, shared_engine

__all__ = ["DEFAULT_LANGUAGE", "SpeechSource", "choose_voice", "open_speech"]

DEFAULT_LANGUAGE = "en"

# BCP 47 allows 35 characters for what anybody needs (RFC 5646 section 4.4.1).
_MAX_LANGUAGE = 35

# With this many items left (60 ms or less each) the next clause is asked for: early enough
# for the others in the queue, and late enough not to hold two clauses at a time.
_PREFETCH = 16


@dataclass(frozen=True, slots=True)
class SpeechSource:
    """`text` spoken by `voice`; marks are offsets into this text.

    It holds one clause of audio at most (`MAX_CLAUSE_AUDIO` bytes) and the start of the
    next; a listener who does not read keeps neither the engine nor anybody else waiting.
    """

    text: str
    voice: str
    engine: Engine

    @property
    def kind(self) -> str:
        return "speech"

    @property
    def format(self) -> AudioFormat:
        return AudioFormat(RATE)

    @property
    def pausable(self) -> bool:
        return True

    @property
    def patience(self) -> float | None:
        return 60.0  # Many may stand in the queue before it.

    async def stream(self) -> AsyncGenerator[bytes | Mark, None]:
        clauses = cut_clauses(self.text)
        current = self._ask(clauses)
        following: Utterance | None = None
        try:
            while current is not None:
                # In this order: what came before the end is there when the end is seen.
                finished = current.finished
                if finished and following is None and len(current.items) <= _PREFETCH:
                    following = self._ask(clauses, current)
                if current.items:
                    yield current.items.popleft()
                elif not finished:
                    await current.changed()
                elif current.error is not None:
                    raise current.error
                else:
                    current, following = following, None
        finally:
            for utterance in (current, following):
                if utterance is not None:
                    utterance.cancel()

    def _ask(self, clauses: Iterator[Clause], last: Utterance | None = None) -> Utterance | None:
        if last is not None and last.error is not None:
            return None
        clause = last.rest if last is not None else None
        clause = clause or next(clauses, None)
        return self.engine.speak(clause, self.voice) if clause is not None else None


async def open_speech(text: str, language: str = DEFAULT_LANGUAGE) -> SpeechSource:
    """Check text and language; the first call of a process takes 60 ms to start the engine.

    Raises `RequestError`: BAD_TEXT, TOO_LARGE, UNKNOWN_VOICE, or NO_VOICE where the extra
    is missing.
    """
    cleaned = clean_text(text)
    engine = shared_engine()
    voice = choose_voice(await engine.voices(), language)
    return SpeechSource(cleaned, voice.identifier, engine)


def choose_voice(voices: tuple[Voice, ...], language: str) -> Voice:
    """The best voice for a language tag, found by RFC 4647 section 3.4 (`zh-CN`: `zh`).

    Raises `RequestError(UNKNOWN_VOICE)` that names what comes near.
    """
    known: dict[str, tuple[int, int, Voice]] = {}
    for order, voice in enumerate(voices):
        for priority, name in voice.languages:
            entry = (priority, order, voice)
            known[name.lower()] = min(entry, known.get(name.lower(), entry), key=lambda e: e[:2])
    wanted = language.replace("_", "-").lower()
    subtags = wanted.split("-") if len(wanted) <= _MAX_LANGUAGE else []
    while subtags:
        if best := known.get("-".join(subtags)):
            return best[2]
        subtags.pop()
        if subtags and len(subtags[-1]) == 1:  # An extension's or private use's singleton.
            subtags.pop()
    near = get_close_matches(wanted[:_MAX_LANGUAGE], known, n=4, cutoff=0.5)
    raise RequestError(
        ErrorCode.UNKNOWN_VOICE,
        f"no voice speaks {language[:_MAX_LANGUAGE]!r}",
        remedy=f"choose one of {len(known)} languages, such as "
        + ", ".join(near or ["en", "cmn", "de", "es", "fr"]),
    )
