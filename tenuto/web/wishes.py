"""How a listener wants its audio, whatever the audio is."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from tenuto.session import DEFAULT_LEAD, LIVE_LEAD, Session
from tenuto.web.encodings import Records
from tenuto.web.negotiate import EncodingFactory
from tenuto.web.parameters import Parameters

__all__ = ["Wishes", "read_wishes"]


@dataclass(frozen=True, slots=True)
class Wishes:
    """How far ahead a listener wants its audio, under which name, how much at a time, and
    whether it wants every frame or the present.
    """

    lead: float | None
    leads_by_default: bool
    listener: str
    chunk: int | None
    live: bool | None

    def live_in(self, session: Session, encoding: EncodingFactory) -> bool:
        """A plain player cannot be told that something was left out."""
        return session.live and encoding is Records if self.live is None else self.live

    def lead_in(self, session: Session, encoding: EncodingFactory) -> float | None:
        """What was asked for, else what suits the session and the encoding."""
        if not self.leads_by_default:
            return self.lead
        if encoding is not Records:
            return None  # A plain player paces itself.
        return LIVE_LEAD if session.live else DEFAULT_LEAD


def read_wishes(parameters: Parameters) -> Wishes:
    by_default = "lead" not in parameters.values
    lead, listener = parameters.lead(None), parameters.listener(secrets.token_hex(8))
    return Wishes(lead, by_default, listener, parameters.chunk(), parameters.mode())
