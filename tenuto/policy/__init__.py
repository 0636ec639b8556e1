"""Who gets QUIC, and when a client comes back: pure functions for every door, client, report."""

from tenuto.policy.rate import MAX_WAIT, AttachRate, Refused
from tenuto.policy.retry import Retries, RetryPolicy
from tenuto.policy.rollout import GREYING_FOR, OFFERED_FOR, Decision, QuicShare, alt_svc, decide

__all__ = [
    "GREYING_FOR",
    "MAX_WAIT",
    "OFFERED_FOR",
    "AttachRate",
    "Decision",
    "QuicShare",
    "Refused",
    "Retries",
    "RetryPolicy",
    "alt_svc",
    "decide",
]
