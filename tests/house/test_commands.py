from pathlib import Path

import pytest

from house.checks import check
from house.commands import main, pytest_arguments
from house.console import Console
from house.environment import Environment
from house.trouble import Trouble

ROOT = Path("/project")


def test_three_workers_unless_the_caller_decides() -> None:
    workers = ["-n", "3", "--dist", "worksteal"]
    assert pytest_arguments([], ROOT, ROOT) == workers
    assert pytest_arguments(["-k", "ring"], ROOT, ROOT) == [*workers, "-k", "ring"]
    for decided in (["-n", "4"], ["-n0"], ["-p", "no:xdist"], ["--pdb"], ["--numprocesses=1"]):
        assert pytest_arguments(decided, ROOT, ROOT) == decided


def test_a_path_means_what_it_means_where_the_caller_is(tmp_path: Path) -> None:
    here = tmp_path / "tests"
    here.mkdir()
    (here / "test_a.py").touch()
    given = ["-n0", "test_a.py::test_b", "test_c.py", "--lf"]
    assert pytest_arguments(given, here, tmp_path) == [
        "-n0",
        f"{here / 'test_a.py'}::test_b",
        "test_c.py",
        "--lf",
    ]
    assert pytest_arguments(given, here, here) == given
    # Elsewhere a folder of the same name is another one's.
    assert pytest_arguments(given, here, ROOT) == given


@pytest.mark.parametrize("arguments", [[], ["dance"]])
def test_an_unknown_command_gets_the_usage(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert "demo|test|check|fix|lock" in capsys.readouterr().err


def test_an_unknown_check_names_the_known_ones() -> None:
    with pytest.raises(Trouble, match="'spelling'") as caught:
        check(["spelling"], Environment(ROOT), Console())
    assert "types" in caught.value.remedy
