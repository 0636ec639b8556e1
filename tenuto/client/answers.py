"""What becomes of a stream that was cut: from the server's word to what is done next. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto

from tenuto.client.errors import ConnectError, FailureKind, StreamCut
from tenuto.client.events import NoticeReceived
from tenuto.client.problem import error_code
from tenuto.errors import ErrorCode, RequestError

__all__ = [
    "Loss",
    "Step",
    "after_failure",
    "after_loss",
    "after_refusal",
    "as_told",
    "passes",
    "retry_after",
    "return_within",
    "stream_cut",
    "strikes_many",
]


class Step(Enum):
    """What to do next."""

    AGAIN = auto()
    """The same, after a wait."""
    ONWARD = auto()
    """At once, from the frame and in the epoch that the answer names."""
    ANEW = auto()
    """At once, with a new session for what is missing."""
    ELSEWHERE = auto()
    """At once, from the server that the answer names."""
    OVER = auto()


@dataclass(frozen=True, slots=True)
class Loss:
    """How a leg ended. `told` is the server's own code, of a NOTICE or a reset.

    `many`: what ends this listener's leg probably ended others' in the same instant.
    """

    reason: str
    told: ErrorCode | None = None
    remedy: str = ""
    retry_after: float = 0.0
    many: bool = False


def as_told(loss: Loss, notice: NoticeReceived | None) -> Loss:
    """The same, or what the server said last, where that was why it would end."""
    told = None if notice is None else error_code(notice.code)
    if notice is None or told is None:
        return loss
    wait = retry_after(notice.fields)
    return Loss(
        f"{notice.message or notice.code} ({notice.code})",
        told,
        notice.remedy,
        wait,
        many=told is ErrorCode.DRAINING and not wait,
    )


def stream_cut(loss: Loss, session: str | None, epoch: int, next_sequence: int) -> StreamCut:
    """What is raised for a loss after which the stream does not go on by itself."""
    return StreamCut(
        loss.reason,
        session=session,
        epoch=epoch,
        next_sequence=next_sequence,
        code=loss.told or ErrorCode.INTERNAL,
        remedy=loss.remedy,
    )


# Other endings that the server tells of are of the source, of the session or of our own making:
# the next leg would meet the same. A session that ends while it is listened to was closed, or has
# reached its age: whoever closed it wants silence, and no new session.
_PASSING = frozenset(
    {
        ErrorCode.INTERNAL,
        ErrorCode.AT_CAPACITY,
        ErrorCode.DRAINING,
        ErrorCode.TOO_SLOW,
        ErrorCode.REQUEST_TIMEOUT,
    }
)

_LASTING = frozenset({ErrorCode.NO_VOICE, ErrorCode.NOT_CONFIGURED, ErrorCode.HTTP_VERSION})

_STRIKE_MANY = frozenset({FailureKind.REFUSED, FailureKind.CLOSED})


def after_loss(loss: Loss) -> bool:
    """Whether to go on."""
    return loss.told is None or loss.told in _PASSING


def after_failure(error: ConnectError) -> Step:
    """No transport got through: a certificate that is not trusted is no passing trouble."""
    untrusted = any(failure.kind is FailureKind.UNTRUSTED for failure in error.failures)
    return Step.OVER if untrusted else Step.AGAIN


def after_refusal(error: RequestError, *, source_known: bool) -> Step:
    """The server answered, and not with audio."""
    gone = Step.ANEW if source_known else Step.OVER
    match error.code:
        case ErrorCode.TOO_OLD:
            return Step.ANEW if source_known else Step.ONWARD
        case ErrorCode.OLD_EPOCH:
            return Step.ONWARD
        case ErrorCode.EXPIRED_SESSION if error.detail.get("closed") is True:
            return Step.OVER
        case ErrorCode.UNKNOWN_SESSION | ErrorCode.EXPIRED_SESSION:
            return gone
        case ErrorCode.WRONG_NODE:
            return Step.ELSEWHERE if "url" in error.detail else gone
        case _:
            pass
    if error.code is ErrorCode.UNKNOWN_ROUTE:
        # Every server of ours knows the route: this is a proxy that has lost its own, for now.
        return Step.AGAIN
    if error.code in _LASTING:
        return Step.OVER
    status = error.detail.get("status", error.code.status)
    passing = error.code is ErrorCode.REQUEST_TIMEOUT or status in (408, 429)
    return Step.AGAIN if passing or (isinstance(status, int) and status >= 500) else Step.OVER


def passes(refusal: RequestError, parked: bool) -> bool:
    """Whether a command so refused may be done where the stream goes on; `parked`: nowhere yet."""
    if parked:
        return refusal.code is ErrorCode.DRAINING
    if refusal.code is ErrorCode.EXPIRED_SESSION:
        return refusal.detail.get("closed") is not True
    return refusal.code in (ErrorCode.DRAINING, ErrorCode.UNKNOWN_SESSION)


def retry_after(fields: Mapping[str, object]) -> float:
    """Seconds, the exact ones where both are given; 0 where none or nonsense is."""
    for name in ("retry_after", "retry-after"):
        try:
            seconds = float(str(fields.get(name)))
        except ValueError:
            continue
        if math.isfinite(seconds) and seconds > 0:
            return seconds
    return 0.0


def return_within(fields: Mapping[str, object], name: str = "return_within") -> float:
    """Seconds in which all listeners of a server can come back to it; 0 where it tells none."""
    try:
        seconds = float(str(fields.get(name)))
    except ValueError:
        return 0.0
    return seconds if math.isfinite(seconds) and seconds > 0 else 0.0


def strikes_many(kind: FailureKind) -> bool:
    """Whether a leg that ends like this was probably not the only one."""
    return kind in _STRIKE_MANY
