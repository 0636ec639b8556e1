"""What can stand in the way of a link, in one line for whoever asked for it."""

__all__ = ["ImpairmentError", "NetemError"]


class NetemError(Exception):
    """Its text is one line: what is wrong, and what to do."""


class ImpairmentError(NetemError):
    """The conditions asked for cannot be made here, or no longer are: nothing was measured."""
