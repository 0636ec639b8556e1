"""A session: one stream of speech, one ring, any number of listeners. Pure."""

from tenuto.session.cursor import Cursor, Departure
from tenuto.session.lifecycle import Lifecycle, State, Trigger
from tenuto.session.limits import MAX_LEAD, MIN_LEAD, SessionLimits
from tenuto.session.pace import PlayoutEstimate
from tenuto.session.ring import Ring
from tenuto.session.session import Session

__all__ = [
    "MAX_LEAD",
    "MIN_LEAD",
    "Cursor",
    "Departure",
    "Lifecycle",
    "PlayoutEstimate",
    "Ring",
    "Session",
    "SessionLimits",
    "State",
    "Trigger",
]
