# Sourced by the scripts beside it: runs the house with a Python that is new enough.
# shellcheck shell=sh

# Prints the real path of the given interpreter if it is 3.11 or newer and older than $1.
probe() {
    below=$1
    shift
    # Started rather than looked up: version managers and Windows leave stand-ins on the PATH.
    "$@" -c "import os, sys
if not (3, 11) <= sys.version_info[:2] < (3, $below): sys.exit(1)
os.write(1, os.fsencode(sys.executable))" 2>/dev/null
}

find_python() {
    if [ -n "${TENUTO_PYTHON:-}" ]; then
        probe 99 "$TENUTO_PYTHON" && return
        echo "error: TENUTO_PYTHON=$TENUTO_PYTHON is no Python 3.11 or newer." >&2
        return 1
    fi
    # The tested versions first, then whatever is newer.
    for newest in 14 99; do
        for name in python3 python3.13 python3.12 python3.11 python; do
            probe $newest "$name" && return
        done
        probe $newest py -3 && return
    done
    cat >&2 <<'HELP'
error: Python 3.11 or newer was not found (looked for python3, python3.13, python3.12,
python3.11, python and py).

  Debian, Ubuntu   sudo apt install python3 python3-venv
  Fedora           sudo dnf install python3
  macOS            brew install python@3.13
  Windows          winget install Python.Python.3.13

Where it is installed under another name: TENUTO_PYTHON=/path/to/python3.
HELP
    return 1
}

# $1: the folder of the scripts; the rest: the command and its arguments.
run_house() {
    scripts=$1
    shift
    python=$(find_python) || exit 1
    exec "$python" -X utf8 "$scripts/house" "$@"
}
