"""A session: one stream of speech, one ring, any number of listeners. Pure."""

from tenuto.session.cursor import Cursor, Departure
from tenuto.session.formats import Formats, Span
from tenuto.session.lifecycle import Lifecycle, State, Trigger
from tenuto.session.limits import DEFAULT_LEAD, LIVE_LEAD, MAX_LEAD, MIN_LEAD, SessionLimits
from tenuto.session.pace import PlayoutEstimate
from tenuto.session.ring import Ring
from tenuto.session.session import Session

__all__ = [
    "DEFAULT_LEAD",
    "LIVE_LEAD",
    "MAX_LEAD",
    "MIN_LEAD",
    "Cursor",
    "Departure",
    "Formats",
    "Lifecycle",
    "PlayoutEstimate",
    "Ring",
    "Session",
    "SessionLimits",
    "Span",
    "State",
    "Trigger",
]
