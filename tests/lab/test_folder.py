"""Where results go: refused before anything is measured, and never half a file."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from bench.lab.folder import RESULTS, Folder
from bench.lab.interruption import Interruption
from tenuto.errors import OperatorError


def folder(path: Path, *, fresh: bool = True) -> Folder:
    return Folder(path, Interruption(), fresh=fresh)


def test_a_folder_is_made_and_left_without_a_trace_if_nothing_came_to_be(tmp_path: Path) -> None:
    made = folder(tmp_path / "a" / "b")
    assert list((tmp_path / "a" / "b").iterdir()) == []
    made.leave()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_was_there_stays(tmp_path: Path) -> None:
    folder(tmp_path).leave()
    assert tmp_path.is_dir()


def test_what_is_written_replaces_what_was_there(tmp_path: Path) -> None:
    made = folder(tmp_path)
    made.write("a", "one")
    assert made.write("a", "two").read_text(encoding="utf-8") == "two"
    assert [each.name for each in tmp_path.iterdir()] == ["a"]
    made.leave()
    assert (tmp_path / "a").exists()


def test_another_runs_results_are_not_written_over(tmp_path: Path) -> None:
    (tmp_path / RESULTS).write_text("precious", encoding="utf-8")
    with pytest.raises(OperatorError, match="holds the results of another run already"):
        folder(tmp_path)
    assert (tmp_path / RESULTS).read_text(encoding="utf-8") == "precious"
    folder(tmp_path, fresh=False)


def test_two_runs_do_not_share_a_folder(tmp_path: Path) -> None:
    with folder(tmp_path / "run"):
        with pytest.raises(OperatorError, match="another run is about to write there"):
            folder(tmp_path / "run")
        folder(tmp_path / "run", fresh=False)
    folder(tmp_path / "run")


def test_what_is_no_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    for path in (tmp_path / "file", tmp_path / "file" / "below", tmp_path / "nul\0"):
        with pytest.raises(OperatorError, match="cannot write .*: ") as refused:
            folder(path)
        assert "--output" in str(refused.value)


def test_a_disk_that_is_full_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = folder(tmp_path)
    made.write(RESULTS, "one")

    def full(fd: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("bench.lab.folder.os.fsync", full)
    with pytest.raises(OperatorError, match=r"results\.json: No space left on device"):
        made.write(RESULTS, "two")
    assert (tmp_path / RESULTS).read_text(encoding="utf-8") == "one"
    assert [each.name for each in tmp_path.iterdir()] == [RESULTS]
