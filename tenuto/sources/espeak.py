"""Speech by espeak-ng, an optional extra (GPL-3): English, Mandarin and a hundred others."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass

from tenuto.media import AudioFormat
from tenuto.sources.base import Mark
from tenuto.sources.clauses import Clause, clauses_from, clean_text, cut_clauses
from tenuto.sources.espeak_child import RATE
from tenuto.sources.espeak_engine import Engine, Manner, Utterance, shared_engine
from tenuto.sources.parameters import refuse
from tenuto.sources.speech import DEFAULT_PITCH, DEFAULT_SPEED
from tenuto.sources.voices import pick_voice

__all__ = ["SpeechSource", "open_speech"]

# With this many items left (60 ms or less each) the next clause is asked for: early enough
# for the others in the queue, and late enough not to hold two clauses at a time.
_PREFETCH = 16


@dataclass(frozen=True, slots=True)
class SpeechSource:
    """`text` spoken in this `manner`; marks are offsets into this text.

    It holds one clause of audio at most (`MAX_CLAUSE_AUDIO` bytes) and the start of the
    next; a listener who does not read keeps neither the engine nor anybody else waiting.
    """

    text: str
    manner: Manner
    engine: Engine
    offset: int = 0
    """The clause that holds this character is the first one."""

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
        clauses = clauses_from(cut_clauses(self.text), self.offset)
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
        return self.engine.speak(clause, self.manner) if clause is not None else None


async def open_speech(
    text: str,
    language: str | None = None,
    *,
    voice: str | None = None,
    speed: int = DEFAULT_SPEED,
    pitch: int = DEFAULT_PITCH,
    offset: int = 0,
) -> SpeechSource:
    """Check text and voice; the first call of a process takes 60 ms to start the engine.

    Raises `RequestError`: BAD_TEXT, TOO_LARGE, UNKNOWN_VOICE, BAD_REQUEST where language and
    voice contradict each other or the text ends before `offset`, or NO_VOICE where the extra
    is missing.
    """
    cleaned = clean_text(text)
    if offset >= len(cleaned):
        refuse(
            f"offset={offset} lies behind the text's {len(cleaned)} characters",
            f"give 0 to {len(cleaned) - 1}",
        )
    engine = shared_engine()
    found = pick_voice(await engine.voices(), await engine.variants(), language, voice)
    return SpeechSource(cleaned, Manner(found, speed, pitch), engine, offset)
