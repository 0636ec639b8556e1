"""The one error of a profile: whose file, which key, what is wrong with it, what to do."""

from netem.errors import NetemError

__all__ = ["ProfileError"]


class ProfileError(NetemError, ValueError):
    """A profile that cannot be used; its text is one line for whoever wrote the file."""

    def __init__(self, file: str, what: str, remedy: str, *, key: str | None = None) -> None:
        place = file if key is None else f"{file}: {key}"
        super().__init__(_one_line(f"{place}: {what}; {remedy}"))
        self.file = file
        self.key = key
        self.what = what
        self.remedy = remedy


def _one_line(text: str) -> str:
    """What a hostile file name or value may hold must not draw on the reader's terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
