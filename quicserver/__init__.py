"""The HTTP/3 door on aioquic, and the composition root that opens both doors."""

__all__: list[str] = []
