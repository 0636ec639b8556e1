"""The shell around sessions: the tick, the producers, the registry. One per process."""

from tenuto.host.admission import Admission
from tenuto.host.host import SessionHost
from tenuto.host.nodes import is_tag
from tenuto.host.reader import Reader
from tenuto.host.tally import Tally
from tenuto.host.tick import Tick

__all__ = ["Admission", "Reader", "SessionHost", "Tally", "Tick", "is_tag"]
