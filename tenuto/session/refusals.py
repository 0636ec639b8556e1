"""Why an attach is refused, each case distinct, with the facts by which a client goes on."""

from __future__ import annotations

from tenuto.errors import ErrorCode, RequestError
from tenuto.session.limits import MAX_LEAD, MIN_LEAD
from tenuto.session.stock import Stock

__all__ = ["check_epoch", "check_lead", "check_start", "expired", "full"]

Facts = dict[str, int | float | str]


def expired(id: str, stock: Stock) -> RequestError:
    last = stock.end - 1
    return RequestError(
        ErrorCode.EXPIRED_SESSION,
        f"session {id} has expired",
        remedy="start a new one",
        detail={"last": last, **_offset(stock, last)},
    )


def full(id: str, most: int) -> RequestError:
    return RequestError(
        ErrorCode.AT_CAPACITY,
        f"session {id} has {most} listeners already",
        remedy="try again later or start another session",
    )


def check_lead(lead: float | None) -> None:
    if lead is not None and not MIN_LEAD <= lead <= MAX_LEAD:
        raise RequestError(
            ErrorCode.BAD_REQUEST,
            f"a lead of {lead:g} s",
            remedy=f"declare {MIN_LEAD:g} to {MAX_LEAD:g} seconds, or max",
        )


def check_epoch(epoch: int | None, stock: Stock) -> None:
    if epoch is None or epoch == stock.epoch:
        return
    if epoch > stock.epoch:
        raise RequestError(
            ErrorCode.FAR_AHEAD,
            f"epoch {epoch} lies ahead of epoch {stock.epoch}, the present one",
            remedy=f"ask for epoch {stock.epoch}",
            detail=_held(stock),
        )
    raise RequestError(
        ErrorCode.OLD_EPOCH,
        f"epoch {epoch} of this session is over",
        remedy=f"go on in epoch {stock.epoch}, from frame {stock.first}",
        detail={"epoch": stock.epoch, "first": stock.first, "base": stock.base},
    )


def check_start(start: int | None, stock: Stock, *, live: bool) -> None:
    """None begins wherever there is something; a `live` listener is not after what is gone."""
    if start is None:
        return
    if start < stock.first and not live:
        raise RequestError(
            ErrorCode.TOO_OLD,
            f"frame {start} is no longer held",
            remedy=f"go on from frame {stock.first}",
            # Whoever speaks the text again from there leaves out no word that was not heard.
            detail={**_held(stock), **_offset(stock, start)},
        )
    if start > stock.end:
        raise RequestError(
            ErrorCode.FAR_AHEAD,
            f"frame {start} lies ahead of frame {stock.end}, the next to come",
            remedy=f"ask for {stock.end} or less",
            detail=_held(stock),
        )


def _held(stock: Stock) -> Facts:
    return {"first": stock.first, "end": stock.end, "epoch": stock.epoch}


def _offset(stock: Stock, sequence: int) -> Facts:
    """Where the text is in that frame, if anybody knows."""
    text_offset = stock.text_offset(sequence)
    return {} if text_offset is None else {"text_offset": text_offset}
