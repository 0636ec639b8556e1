"""An archive of the "newc" format of cpio, which Linux unpacks as its first root file system.

Pure: names and bytes in, bytes out (Documentation/driver-api/early-userspace/buffer-format.rst).
"""

import stat
from dataclasses import dataclass, field

__all__ = ["Archive"]

_ALIGNMENT = 4
_END = "TRAILER!!!"


@dataclass(slots=True)
class Archive:
    """Files are added with the directories they need; all belong to root and have no date."""

    _out: bytearray = field(default_factory=bytearray)
    _directories: set[str] = field(default_factory=set)
    _number: int = 0

    def add_directory(self, path: str) -> None:
        parent, _, name = path.strip("/").rpartition("/")
        if parent:
            self.add_directory(parent)
        whole = f"{parent}/{name}".strip("/")
        if whole and whole not in self._directories:
            self._directories.add(whole)
            self._add(whole, stat.S_IFDIR | 0o755, b"")

    def add_file(self, path: str, data: bytes, *, executable: bool = False) -> None:
        whole = path.strip("/")
        self.add_directory(whole.rpartition("/")[0])
        self._add(whole, stat.S_IFREG | (0o755 if executable else 0o644), data)

    def add_link(self, path: str, target: str) -> None:
        whole = path.strip("/")
        self.add_directory(whole.rpartition("/")[0])
        self._add(whole, stat.S_IFLNK | 0o777, target.encode())

    def finish(self) -> bytes:
        """The whole archive; nothing can be added after."""
        self._add(_END, 0, b"")
        return bytes(self._out)

    def _add(self, name: str, mode: int, data: bytes) -> None:
        self._number += 1
        encoded = name.encode() + b"\0"
        # inode, mode, uid, gid, links, mtime, size, four device numbers, name's size, checksum
        fields = (self._number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(encoded), 0)
        self._out += b"070701" + b"".join(b"%08x" % value for value in fields)
        self._out += encoded
        self._pad()
        self._out += data
        self._pad()

    def _pad(self) -> None:
        self._out += bytes(-len(self._out) % _ALIGNMENT)
