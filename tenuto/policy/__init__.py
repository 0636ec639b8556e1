"""Who gets QUIC, and when a client comes back: pure functions for every door, client, report."""

from tenuto.policy.retry import Retries, RetryPolicy
from tenuto.policy.rollout import GREYING_FOR, OFFERED_FOR, Decision, QuicShare, alt_svc, decide

__all__ = [
    "GREYING_FOR",
    "OFFERED_FOR",
    "Decision",
    "QuicShare",
    "Retries",
    "RetryPolicy",
    "alt_svc",
    "decide",
]
