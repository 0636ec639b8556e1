"""espeak-ng at arm's length: one process speaks for all sessions, one clause at a time.

The library is global, not re-entrant and, above all, not safe: a dozen emoji in German end
the process that holds it (docs/decisions/). So it lives in a child process; what it does
there to itself costs the one clause, and the next one finds a new child. A worker thread
talks to the child, so that no event loop owns it and every loop may use it.
"""

from __future__ import annotations

import asyncio
import atexit
import json
import struct
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache

from tenuto.errors import ErrorCode, RequestError, SourceError, TenutoError
from tenuto.sources.base import Mark
from tenuto.sources.clauses import Clause
from tenuto.sources.espeak_child import RATE
from tenuto.sources.espeak_process import BROKEN, Child, ChildDiedError
from tenuto.sources.speech import DEFAULT_PITCH, DEFAULT_SPEED

__all__ = ["MAX_CLAUSE_AUDIO", "Engine", "Manner", "Utterance", "Voice", "shared_engine"]

_BYTES_PER_SECOND = 2 * RATE

MAX_CLAUSE_AUDIO = 96 * _BYTES_PER_SECOND
"""Bytes one utterance buffers at most (4,233,600): wrong languages spell every letter."""


@dataclass(frozen=True, slots=True)
class Voice:
    """A voice by its identifier; `languages` are (priority, name), the lowest the best."""

    identifier: str
    languages: tuple[tuple[int, str], ...]
    name: str = ""


@dataclass(frozen=True, slots=True)
class Manner:
    """Who speaks and how: `voice` may end in +variant, `speed` is in words a minute."""

    voice: str
    speed: int = DEFAULT_SPEED
    pitch: int = DEFAULT_PITCH


class Utterance:
    """One clause being spoken: its runs and marks as they come, and how it ended.

    The worker thread appends to `items` and sets `finished`, in this order; the event loop
    reads them in the other. `rest` is what remains of a clause that grew too long.
    """

    def __init__(self, clause: Clause, manner: Manner, loop: asyncio.AbstractEventLoop) -> None:
        self.clause = clause
        self.manner = manner
        self.items: deque[bytes | Mark] = deque()
        self.finished = False
        self.cancelled = False
        self.error: TenutoError | None = None
        self.rest: Clause | None = None
        self.size = 0
        self._loop = loop
        self._changed = asyncio.Event()
        self._told = False

    async def changed(self) -> None:
        """Wait until there may be more than at the last call."""
        await self._changed.wait()
        self._changed.clear()
        self._told = False

    def cancel(self) -> None:
        """Stop at the next run; returns at once, from any thread."""
        self.cancelled = True
        self.items.clear()

    def append(self, item: bytes | Mark) -> None:
        if not self.cancelled:
            self.items.append(item)
            self._tell()

    def finish(self, error: TenutoError | None = None) -> None:
        self.error = error
        self.finished = True
        self._tell()

    def _tell(self) -> None:
        # One wake-up serves all that comes before the loop gets round to it.
        if self._told:
            return
        self._told = True
        try:
            self._loop.call_soon_threadsafe(self._changed.set)
        except RuntimeError:  # The loop is closed: nobody listens any more.
            self.cancelled = True


class Engine:
    """Speaks clauses in the order in which they were asked for, whoever asked.

    No utterance holds more than `max_audio` bytes. From a quarter of it on (24 s) the next
    word becomes the `rest`, so that only one endless word can reach it, and is an error.
    """

    def __init__(self, max_audio: int = MAX_CLAUSE_AUDIO) -> None:
        self._max_audio = max_audio
        # One worker is the queue and the lock: FIFO, and joined when the interpreter ends.
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="espeak-ng")
        self._child: Child | None = None
        self._voices: tuple[Voice, ...] = ()
        self._variants: tuple[str, ...] = ()
        atexit.register(self.close)

    @property
    def pid(self) -> int | None:
        """The child process, None before the first clause."""
        return self._child.pid if self._child else None

    async def voices(self) -> tuple[Voice, ...]:
        """All voices; the first call starts the child (60 ms), later ones only remember.

        Raises `RequestError(NO_VOICE)` where the extra is not installed or does not work.
        """
        if not self._voices:
            loop = asyncio.get_running_loop()
            listed = await loop.run_in_executor(self._worker, self._list_voices)
            self._voices, self._variants = listed
        return self._voices

    async def variants(self) -> tuple[str, ...]:
        """What any voice takes behind a plus; raises as `voices` does."""
        await self.voices()
        return self._variants

    def speak(self, clause: Clause, manner: Manner) -> Utterance:
        """Ask for a clause; call it on the event loop that will listen."""
        utterance = Utterance(clause, manner, asyncio.get_running_loop())
        self._worker.submit(self._work, utterance)
        return utterance

    def close(self) -> None:
        """End the child at once; whoever is speaking gets an error, the next a new child."""
        if self._child:
            self._child.close()
            self._child = None

    def _list_voices(self) -> tuple[tuple[Voice, ...], tuple[str, ...]]:
        try:
            child = self._living_child()
            child.send(b"L")
            _, _, body = child.receive()
        except (ChildDiedError, RequestError) as error:
            self.close()
            if isinstance(error, RequestError):
                raise
            raise RequestError(
                ErrorCode.NO_VOICE, f"espeak-ng ended {error} at its start", remedy=BROKEN
            ) from error
        voices, variants = json.loads(body)
        return (
            tuple(
                Voice(identifier, tuple((priority, tag) for priority, tag in languages), name)
                for identifier, name, languages in voices
            ),
            tuple(variants),
        )

    def _work(self, utterance: Utterance) -> None:
        try:
            try:
                self._speak(utterance)
            except ChildDiedError:
                self.close()
                if utterance.size:
                    raise
                # Its state may have been another session's doing: once more, in a new child.
                self._speak(utterance)
        except ChildDiedError as death:
            self.close()
            utterance.finish(_died(utterance.clause, str(death)))
        except TenutoError as error:
            utterance.finish(error)
        except (OSError, ValueError, struct.error) as error:
            # No process to be had, or one closed under us as the interpreter ends.
            self.close()
            utterance.finish(SourceError(f"espeak-ng cannot be reached: {error!r}"))
        else:
            utterance.finish()

    def _speak(self, utterance: Utterance) -> None:
        if utterance.cancelled:
            return
        clause = utterance.clause
        child = self._living_child()
        manner, pause = utterance.manner, "1" if clause.pause else "0"
        words = (manner.voice, str(manner.speed), str(manner.pitch), pause, clause.text)
        child.send(b"S", "\0".join(words).encode())
        taker = _Taker(utterance, self._max_audio)
        aborted = False
        while True:
            kind, number, body = child.receive()
            if kind == b"E":
                break
            if not aborted and not taker.take(kind, number, body):
                aborted = True
                child.send(b"A")
        if taker.error:
            raise taker.error
        if number and not aborted:
            status = struct.unpack("<i", struct.pack("<I", number))[0]
            raise SourceError(f"espeak-ng answered {status} to {_where(clause)}")

    def _living_child(self) -> Child:
        if self._child is None:
            self._child = Child()
        return self._child


class _Taker:
    """What of the child's answers reaches the utterance, and when it is enough."""

    def __init__(self, utterance: Utterance, max_audio: int) -> None:
        self._utterance = utterance
        self._most = max_audio
        self._last_mark = -1
        self.error: SourceError | None = None

    def take(self, kind: bytes, number: int, body: bytes) -> bool:
        """Hand one run or word on; False when no more is wanted."""
        utterance = self._utterance
        if utterance.cancelled:
            return False
        if kind == b"M":
            return self._take_word(number)
        if utterance.size + len(body) > self._most:
            seconds = self._most // _BYTES_PER_SECOND
            self.error = SourceError(
                f"espeak-ng speaks for more than {seconds} s on {_where(utterance.clause)}"
            )
            return False
        utterance.size += len(body)
        utterance.append(body)
        return True

    def _take_word(self, position: int) -> bool:
        clause = self._utterance.clause
        # The library's count is off by a little where it rewrites numbers and symbols.
        index = min(max(position - 1, 0), len(clause.text) - 1)
        # The second word of an emoji's name is placed on the space behind it.
        if index <= self._last_mark or clause.text[index].isspace():
            return True
        if index and self._utterance.size >= self._most // 4:
            self._utterance.rest = Clause(clause.offset + index, clause.text[index:], clause.pause)
            return False
        self._last_mark = index
        self._utterance.append(Mark(clause.offset + index))
        return True


@cache
def shared_engine() -> Engine:
    """The one engine of this process."""
    return Engine()


def _where(clause: Clause) -> str:
    return f"the {len(clause.text)} characters from character {clause.offset} of the text"


def _died(clause: Clause, how: str) -> SourceError:
    return SourceError(
        f"espeak-ng ended {how} on {_where(clause)}", remedy="leave out unusual symbols"
    )
