"""The loss lab: network conditions as profiles, applied to any program."""

__all__: list[str] = []
