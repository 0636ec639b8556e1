"""Profiles by name or by path: the built-in ones, and those of the user's own folder.

A name is looked for in the folder given by `--profiles` or `NETEM_PROFILES`, then among the
built-in ones. What holds a slash or ends in `.toml` is a path. A profile of a file may extend its
neighbours in the same folder, and names its traces relative to it.
"""

import errno
import os
import stat
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final

from netem.profile.conditions import Profile
from netem.profile.document import Document, parse_document
from netem.profile.errors import ProfileError
from netem.profile.reading import read_profile
from netem.profile.units import BadValueError

__all__ = ["ENVIRONMENT", "LARGEST_PROFILE", "LARGEST_TRACE", "Catalogue"]

ENVIRONMENT: Final = "NETEM_PROFILES"
"""The variable that names the user's folder of profiles."""
LARGEST_PROFILE: Final = 1_000_000
"""Bytes of one profile."""
LARGEST_TRACE: Final = 20_000_000
"""Bytes of one trace."""
SUFFIX: Final = ".toml"


class Catalogue:
    """`folder` holds the user's own profiles; they go before built-in ones of the same name."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._built_in = files("netem") / "profiles"

    @classmethod
    def from_environment(cls, folder: Path | None = None) -> "Catalogue":
        """With `folder`, or else the one that `NETEM_PROFILES` names, or none."""
        named = os.environ.get(ENVIRONMENT)
        return cls(folder or (Path(named) if named else None))

    def names(self) -> list[str]:
        """Every profile that can be named, in order. Raises `ProfileError` for a bad folder."""
        return sorted({*_stems(self._built_in.iterdir()), *self._own_names()})

    def load(self, name: str) -> Profile:
        """The profile of a name or a path. Raises `ProfileError`, and nothing else."""
        return read_profile(self._document(name, None), self._document)

    def _document(self, name: str, asking: Document | None) -> Document:
        beside = None if asking is None else _folder_of(asking)
        if _is_path(name):
            return _from_path(Path(name) if beside is None else beside / name, asking)
        own = () if asking is not None and beside is None else (beside, self._folder)
        for folder in own:
            # One that leads nowhere is the user's own all the same, and to be told of.
            if folder is not None and os.path.lexists(folder / f"{name}{SUFFIX}"):
                return _from_path(folder / f"{name}{SUFFIX}", asking)
        if name not in _stems(self._built_in.iterdir()):
            raise self._unknown(name, asking)
        return _from_package(self._built_in, name)

    def _unknown(self, name: str, asking: Document | None) -> ProfileError:
        near = get_close_matches(name.lower(), self.names(), n=1, cutoff=0.5)
        guess = f' (did you mean "{near[0]}"?)' if near else ""
        remedy = "list them with python -m netem list, or give the path of a .toml file"
        if asking is None:
            return ProfileError(name, f"there is no profile of this name{guess}", remedy)
        what = f'there is no profile "{name}"{guess}'
        return ProfileError(asking.file, what, remedy, key="extends")

    def _own_names(self) -> set[str]:
        if self._folder is None:
            return set()
        try:
            return _stems(self._folder.iterdir())
        except OSError as error:
            raise ProfileError(
                str(self._folder),
                f"cannot list this folder of profiles: {error.strerror}",
                f"correct --profiles or {ENVIRONMENT}",
            ) from error


def _is_path(name: str) -> bool:
    return "/" in name or os.sep in name or name.endswith(SUFFIX)


def _stems(entries: Iterable[Traversable]) -> set[str]:
    return {entry.name.removesuffix(SUFFIX) for entry in entries if entry.name.endswith(SUFFIX)}


def _folder_of(document: Document) -> Path | None:
    """Where a user's own file lies; a built-in one has no neighbours but the built-in ones."""
    return None if document.file.startswith(BUILT_IN) else Path(document.file).parent


BUILT_IN: Final = "built-in profile "


def _from_package(folder: Traversable, name: str) -> Document:
    return parse_document(
        (folder / f"{name}{SUFFIX}").read_text(encoding="utf-8"),
        name=name,
        file=f"{BUILT_IN}{name}",
        text_of=lambda trace: (folder / trace).read_text(encoding="utf-8"),
    )


def _from_path(path: Path, asking: Document | None) -> Document:
    try:
        text = _read(path, LARGEST_PROFILE, "a profile")
    except BadValueError as error:
        if asking is None:
            raise ProfileError(str(path), error.what, error.remedy) from error
        what = f"{path}: {error.what}"
        raise ProfileError(asking.file, what, error.remedy, key="extends") from error
    return parse_document(
        text, name=path.name.removesuffix(SUFFIX), file=str(path), text_of=_traces_beside(path)
    )


def _traces_beside(path: Path) -> Callable[[str], str]:
    def text_of(name: str) -> str:
        trace = path.parent / name
        try:
            return _read(trace, LARGEST_TRACE, "a trace")
        except BadValueError as error:
            raise BadValueError(f"{trace}: {error.what}", error.remedy) from error

    return text_of


def _read(path: Path, most: int, noun: str) -> str:
    """The text of a file, never more than `most` bytes of it. Raises `BadValueError`."""
    try:
        # A FIFO would make us wait for a writer.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        with open(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise BadValueError("it is not a plain file", f"give the path of {noun}")
            data = file.read(most + 1)
    except (OSError, ValueError) as error:
        if isinstance(error, BadValueError):
            raise
        raise BadValueError(f"cannot read it: {_why(error)}", f"give the path of {noun}") from error
    if len(data) > most:
        raise BadValueError(
            f"it is larger than {most // 1_000_000} MB", f"is it {noun}? Cut a piece of it out"
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadValueError(
            f"it is not UTF-8 text (byte {error.start})", "save it as UTF-8"
        ) from error


def _why(error: OSError | ValueError) -> str:
    if isinstance(error, OSError):
        if error.errno == errno.ENOENT:
            return "there is no such file"
        return error.strerror or str(error)
    return str(error)  # a name with a null byte
