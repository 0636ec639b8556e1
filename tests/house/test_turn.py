import subprocess
import sys
import threading
from pathlib import Path

import pytest

from house.turn import take_turn

HOLDER = """
import sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from house.turn import take_turn
with take_turn(Path(sys.argv[2]), print):
    print("mine", flush=True)
    sys.stdin.read()
"""


def start_holder(lock: Path) -> "subprocess.Popen[str]":
    scripts = Path(__file__).parents[2] / "scripts"
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(scripts), str(lock)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "mine\n"
    return holder


def test_an_open_turn_is_taken_without_a_word(tmp_path: Path) -> None:
    heard: list[str] = []
    for _ in range(2):
        with take_turn(tmp_path / "lock", heard.append):
            pass
    assert heard == []


@pytest.mark.parametrize("ending", ["ended", "killed"])
def test_the_second_waits_and_learns_for_whom(tmp_path: Path, ending: str) -> None:
    lock = tmp_path / "lock"
    heard: list[str] = []
    taken = threading.Event()
    waits = threading.Event()

    def wait_for_turn() -> None:
        def on_wait(who: str) -> None:
            heard.append(who)
            waits.set()

        with take_turn(lock, on_wait):
            taken.set()

    with start_holder(lock) as holder:
        thread = threading.Thread(target=wait_for_turn)
        thread.start()
        assert waits.wait(10)
        assert not taken.is_set()
        if ending == "killed":
            holder.kill()
        else:
            holder.communicate("")
        assert taken.wait(10)
        thread.join()
    if sys.platform != "win32":
        assert heard == [f"process {holder.pid}"]


@pytest.mark.skipif(sys.platform == "win32", reason="locks are not inherited there")
def test_a_child_keeps_the_turn_of_a_killed_parent(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    heard: list[str] = []
    child = None
    with take_turn(lock, heard.append) as turn:
        child = subprocess.Popen(
            [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=(turn,)
        )
    # Our own descriptor is closed, as it is after a kill.
    with child:
        waited = threading.Event()
        taken = threading.Event()

        def wait_for_turn() -> None:
            with take_turn(lock, lambda _: waited.set()):
                taken.set()

        thread = threading.Thread(target=wait_for_turn)
        thread.start()
        assert waited.wait(10)
        assert not taken.is_set()
        child.communicate(b"\n")
        assert taken.wait(10)
        thread.join()
