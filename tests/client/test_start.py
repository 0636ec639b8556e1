"""The console script's first moments: nothing slow is loaded before Ctrl-C is silent."""

from __future__ import annotations

import subprocess
import sys

SLOW = ("click", "rich", "aioquic", "numpy", "cryptography")

PROBE = f"""
import signal, sys
import tenuto.cli.start
print([name for name in {SLOW!r} if name in sys.modules])
during = []
class Watch:
    def find_spec(self, name, path=None, target=None):
        if name == "tenuto.cli.main":
            during.append(signal.getsignal(signal.SIGINT) is signal.SIG_DFL)
sys.meta_path.insert(0, Watch())
sys.argv = ["tenuto", "--version"]
try:
    tenuto.cli.start.main()
except SystemExit:
    pass
print(during, signal.getsignal(signal.SIGINT) is signal.default_int_handler)
"""


def test_ctrl_c_ends_without_a_word_until_the_commands_are_loaded() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROBE], capture_output=True, text=True, timeout=30, check=True
    )
    first, version, last = done.stdout.splitlines()
    assert first == "[]"
    assert version.startswith("tenuto ")
    assert last == "[True] True"


def test_where_ctrl_c_is_ignored_it_stays_ignored() -> None:
    code = (
        "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "import sys; sys.argv = ['tenuto', '--version']\n"
        "import tenuto.cli.start\n"
        "try: tenuto.cli.start.main()\n"
        "except SystemExit: print(signal.getsignal(signal.SIGINT) is signal.SIG_IGN)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout.splitlines()[-1] == "True"


def test_a_file_does_not_wait_for_what_a_loudspeaker_needs() -> None:
    code = "import sys, tenuto.cli.play, tenuto.cli.speak; print('numpy' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout == "False\n"
