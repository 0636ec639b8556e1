"""What a listener is told of its session beside the audio."""

from __future__ import annotations

from tenuto.policy import CrowdTeller
from tenuto.session import State
from tenuto.web.plan import Plan

__all__ = ["Words"]


class Words:
    """NOTICEs that end nothing: each is said once to each leg, as soon as it is true.

    `paused` comes to whoever attaches to a paused session too, for no KEEPALIVE follows.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._paused = False
        self._crowd = CrowdTeller(plan.host.return_within)

    @property
    def due(self) -> bool:
        """Cheap: asked at every tick of every listener."""
        state = self._plan.session.state
        return (state is State.PAUSED) != self._paused and state is not State.EXPIRED

    def take(self) -> bytes:
        """All that is to be said now; empty where the encoding has no words."""
        said = b""
        if self.due:
            self._paused = not self._paused
            said = self._plan.encoding.word(self._pause() if self._paused else _RESUMED)
        # That can wait for company: it is no reason to wake a radio.
        host = self._plan.host
        if self._crowd.due(host.return_within, host.now()):
            seconds = round(host.return_within, 1)
            said += self._plan.encoding.word({"code": "crowd", "return_within": seconds})
        return said

    def _pause(self) -> dict[str, str | float]:
        session = self._plan.session
        return {
            "code": "paused",
            "message": "the session is paused; nothing is sent until somebody resumes it",
            "expires_in": round(max(0.0, session.deadline - self._plan.host.now()), 3),
        }


_RESUMED: dict[str, str | float] = {
    "code": "resumed",
    "message": "the session goes on",
}
