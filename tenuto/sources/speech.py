"""How a text is to be spoken, whatever engine speaks it."""

from __future__ import annotations

__all__ = [
    "DEFAULT_LANGUAGE",
    "DEFAULT_PITCH",
    "DEFAULT_SPEED",
    "MAX_PITCH",
    "MAX_SPEED",
    "MIN_SPEED",
]

DEFAULT_LANGUAGE = "en"

MIN_SPEED, MAX_SPEED, DEFAULT_SPEED = 80, 450, 175
"""Words a minute."""

MAX_PITCH, DEFAULT_PITCH = 99, 50
