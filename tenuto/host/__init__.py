"""The shell around sessions: the tick, the producers, the registry. One per process."""

from tenuto.host.admission import Admission
from tenuto.host.host import Reader, SessionHost, Tally
from tenuto.host.tick import Tick

__all__ = ["Admission", "Reader", "SessionHost", "Tally", "Tick"]
