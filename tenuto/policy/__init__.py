"""Who gets QUIC, how many may attach, when a client comes back: for all who need to know."""

from tenuto.policy.rate import MAX_WAIT, AttachRate, Refused
from tenuto.policy.retry import Retries, RetryPolicy
from tenuto.policy.rollout import GREYING_FOR, OFFERED_FOR, Decision, QuicShare, alt_svc, decide
from tenuto.policy.switching import LateShare, Switches
from tenuto.policy.watchdog import Alarm, Watchdog, WatchPolicy

__all__ = [
    "GREYING_FOR",
    "MAX_WAIT",
    "OFFERED_FOR",
    "Alarm",
    "AttachRate",
    "Decision",
    "LateShare",
    "QuicShare",
    "Refused",
    "Retries",
    "RetryPolicy",
    "Switches",
    "WatchPolicy",
    "Watchdog",
    "alt_svc",
    "decide",
]
