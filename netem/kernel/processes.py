"""What ties one process to the life of another."""

import os
import signal
import sys
import threading

from netem.kernel.libc import prctl

__all__ = ["PRIORITY", "die_with_parent", "parent_outlives_threads", "run_first", "sharpen_timers"]

PR_SET_PDEATHSIG = 1
PR_SET_TIMERSLACK = 29

PRIORITY = 10
"""Of SCHED_FIFO: above everything ordinary, below the kernel's own threads."""


def die_with_parent() -> None:
    """In a child: be killed when the thread that made it ends, however that happens.

    For `preexec_fn`. It holds across `exec`, but not for the child's own children.
    """
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def parent_outlives_threads() -> bool:
    """Whether a child of this thread may die with it: the main thread ends with the process."""
    return threading.current_thread() is threading.main_thread()


def sharpen_timers() -> None:
    """Sleeps of this thread end when asked, not up to 50 us later so as to share a wake-up."""
    prctl(PR_SET_TIMERSLACK, 1)


def run_first(thread: int = 0, priority: int = PRIORITY) -> str | None:
    """Let this process, or a thread, run before all ordinary ones; the kernel's reason if not."""
    if sys.platform != "linux":
        return "Linux only"
    try:
        os.sched_setscheduler(thread, os.SCHED_FIFO, os.sched_param(priority))
    except OSError as error:
        return error.strerror
    return None
