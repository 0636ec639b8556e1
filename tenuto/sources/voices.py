"""Which voice is meant by a language, by a name, or by both. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import get_close_matches

from tenuto.errors import ErrorCode, RequestError
from tenuto.sources.espeak_engine import Voice
from tenuto.sources.parameters import refuse
from tenuto.sources.speech import DEFAULT_LANGUAGE

__all__ = ["choose_voice", "find_voice", "pick_voice", "speaks"]

# BCP 47 allows 35 characters for what anybody needs (RFC 5646 section 4.4.1).
_MAX_LANGUAGE = 35

_MAX_NAME = 64


def pick_voice(
    voices: tuple[Voice, ...],
    variants: tuple[str, ...],
    language: str | None = None,
    name: str | None = None,
) -> str:
    """What the engine calls the voice that a request asks for, its +variant included.

    Raises `RequestError`: UNKNOWN_VOICE with what comes near; BAD_REQUEST where the voice
    that is named does not speak the language that is asked for beside it.
    """
    if name is None:
        return choose_voice(voices, DEFAULT_LANGUAGE if language is None else language)
    base, plus, variant = name.partition("+")
    voice = find_voice(voices, base)
    if language is not None:
        choose_voice(voices, language)
        if not speaks(voice, voices, language):
            refuse(
                f"lang={language[:_MAX_LANGUAGE]!r} and voice={name[:_MAX_NAME]!r} contradict "
                f"each other: that voice speaks {_tags(voice)}",
                "give one of them",
            )
    return voice.identifier + (f"+{_find_variant(variants, variant)}" if plus else "")


def choose_voice(voices: tuple[Voice, ...], language: str) -> str:
    """The best voice for a language tag, found by RFC 4647 section 3.4 (`zh-CN`: `zh`).

    Raises `RequestError(UNKNOWN_VOICE)` that names what comes near.
    """
    known = _by_tag(voices)
    for tag in _truncated(language):
        if tag in known:
            return known[tag].identifier
    shown = language.replace("_", "-").lower()[:_MAX_LANGUAGE]
    near = get_close_matches(shown, known, n=4, cutoff=0.5)
    raise RequestError(
        ErrorCode.UNKNOWN_VOICE,
        f"no voice speaks {language[:_MAX_LANGUAGE]!r}",
        remedy=f"choose one of {len(known)} languages, such as "
        + ", ".join(near or ["en", "cmn", "de", "es", "fr"]),
    )


def find_voice(voices: tuple[Voice, ...], name: str) -> Voice:
    """The voice of this identifier, name or language tag, whatever its case.

    Raises `RequestError(UNKNOWN_VOICE)` that names what comes near.
    """
    known = dict(_by_tag(voices))
    for voice in voices:
        for each in _names(voice):
            known[each] = voice
    wanted = name.replace("_", " ").lower()
    found = known.get(wanted) or known.get(wanted.replace(" ", "-"))
    if found is not None:
        return found
    raise _unknown("voice", name, known, ["en-us", "en-gb", "cmn", "de"])


def speaks(voice: Voice, voices: tuple[Voice, ...], language: str) -> bool:
    """Whether the tag by which `choose_voice` finds the best is one of its, or begins one."""
    known = _by_tag(voices)
    matched = next((tag for tag in _truncated(language) if tag in known), None)
    return any(f"{tag.lower()}-".startswith(f"{matched}-") for _, tag in voice.languages)


def _find_variant(variants: tuple[str, ...], name: str) -> str:
    known = {variant.lower(): variant for variant in variants}
    if name.lower() in known:
        return known[name.lower()]
    raise _unknown("variant", name, known, ["f3", "m3", "whisper", "croak"])


def _unknown(what: str, name: str, known: Iterable[str], usual: list[str]) -> RequestError:
    near = get_close_matches(name.lower()[:_MAX_NAME], known, n=4, cutoff=0.5)
    return RequestError(
        ErrorCode.UNKNOWN_VOICE,
        f"there is no {what} {name[:_MAX_NAME]!r}",
        remedy=f"take one of those that tenuto sources --voices lists, such as "
        f"{', '.join(near or usual)}",
    )


def _by_tag(voices: tuple[Voice, ...]) -> dict[str, Voice]:
    """For every language tag the voice that likes it best, the first of equals."""
    best: dict[str, tuple[int, Voice]] = {}
    for voice in voices:
        for priority, tag in voice.languages:
            if tag.lower() not in best or priority < best[tag.lower()][0]:
                best[tag.lower()] = (priority, voice)
    return {tag: voice for tag, (_, voice) in best.items()}


def _truncated(language: str) -> Iterator[str]:
    """The tag, and what is left of it as subtags are taken off its end."""
    wanted = language.replace("_", "-").lower()
    subtags = wanted.split("-") if len(wanted) <= _MAX_LANGUAGE else []
    while subtags:
        yield "-".join(subtags)
        subtags.pop()
        if subtags and len(subtags[-1]) == 1:  # An extension's or private use's singleton.
            subtags.pop()


def _names(voice: Voice) -> tuple[str, ...]:
    identifier = voice.identifier.lower()
    return voice.name.lower(), identifier.rpartition("/")[2], identifier


def _tags(voice: Voice) -> str:
    return ", ".join(tag for _, tag in voice.languages)
