"""Who gets QUIC, and how many may attach a second: for every door, client and report."""

from tenuto.policy.rate import MAX_WAIT, AttachRate, Refused
from tenuto.policy.rollout import GREYING_FOR, OFFERED_FOR, Decision, QuicShare, alt_svc, decide

__all__ = [
    "GREYING_FOR",
    "MAX_WAIT",
    "OFFERED_FOR",
    "AttachRate",
    "Decision",
    "QuicShare",
    "Refused",
    "alt_svc",
    "decide",
]
