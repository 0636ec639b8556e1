"""What can stand in the way of a link, in one line for whoever asked for it."""

<<<<<<< HEAD
__all__ = ["ImpairmentError", "NetemError"]
=======
__all__ = ["CannotImpair", "NetemError"]
>>>>>>> 0f9785637a417661cfa450a414cedd0a0d56e078


class NetemError(Exception):
    """Its text is one line: what is wrong, and what to do."""


<<<<<<< HEAD
class ImpairmentError(NetemError):
=======
class CannotImpair(NetemError):
>>>>>>> 0f9785637a417661cfa450a414cedd0a0d56e078
    """The conditions asked for cannot be made here, or no longer are: nothing was measured."""
