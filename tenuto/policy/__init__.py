"""Who gets QUIC, how many may attach, when a client comes back: for all who need to know."""

from tenuto.policy.crowd import TELL_INTERVAL, WORTH_TELLING, CrowdTeller, return_within
from tenuto.policy.rate import MAX_WAIT, AttachRate, Refused
from tenuto.policy.retry import Retries, RetryPolicy
from tenuto.policy.rollout import GREYING_FOR, OFFERED_FOR, Decision, QuicShare, alt_svc, decide

__all__ = [
    "GREYING_FOR",
    "MAX_WAIT",
    "OFFERED_FOR",
    "TELL_INTERVAL",
    "WORTH_TELLING",
    "AttachRate",
    "CrowdTeller",
    "Decision",
    "QuicShare",
    "Refused",
    "Retries",
    "RetryPolicy",
    "alt_svc",
    "decide",
    "return_within",
]
