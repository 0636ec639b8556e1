"""Who gets QUIC: one pure function for every door, client and report."""

from tenuto.policy.rollout import GREYING_FOR, OFFERED_FOR, Decision, QuicShare, alt_svc, decide

__all__ = ["GREYING_FOR", "OFFERED_FOR", "Decision", "QuicShare", "alt_svc", "decide"]
