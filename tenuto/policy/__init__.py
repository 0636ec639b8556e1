"""Who gets QUIC, how many may attach, when a client comes back: for all who need to know."""

from tenuto.policy.cooldown import FIRST_COOL_DOWN, LONGEST_COOL_DOWN, CoolDown
from tenuto.policy.crowd import TELL_INTERVAL, WORTH_TELLING, CrowdTeller, return_within
from tenuto.policy.rate import MAX_WAIT, AttachRate, Refused
from tenuto.policy.retry import Retries, RetryPolicy
from tenuto.policy.rollout import GREYING_FOR, OFFERED_FOR, Decision, QuicShare, alt_svc, decide
from tenuto.policy.switching import LateShare, Switches
from tenuto.policy.watchdog import Alarm, Watchdog, WatchPolicy

__all__ = [
    "FIRST_COOL_DOWN",
    "GREYING_FOR",
    "LONGEST_COOL_DOWN",
    "MAX_WAIT",
    "OFFERED_FOR",
    "TELL_INTERVAL",
    "WORTH_TELLING",
    "Alarm",
    "AttachRate",
    "CoolDown",
    "CrowdTeller",
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
    "return_within",
]
