"""What is too large for a message: a file in memory, of which only the descriptor is sent."""

import os

__all__ = ["open_parcel", "parcel"]


def parcel(data: bytes) -> int:
    """A descriptor, which the caller closes, that the data can be read from."""
    fd = os.memfd_create("netem-parcel")
    with open(fd, "wb", closefd=False) as file:
        file.write(data)
    return fd


def open_parcel(fd: int) -> bytes:
    """All of it, whatever was read before; the descriptor is closed."""
    with open(fd, "rb") as file:
        file.seek(0)
        return file.read()
