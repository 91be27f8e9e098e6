# SPDX-License-Identifier: BSD-3-Clause
"""Puts aside inherited settings of a process with which a session cannot work. Its children do not inherit them."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import ExitStack, suppress


def put_aside() -> ExitStack:
    """Puts aside the parent's settings, as far as this process may. Closing the result restores them.

    An ignored SIGCHLD hides how children end. Blocked signals end nothing. Under a real-time policy no control group
    accepts a process. Under an idle policy, or with niceness, a process does not get its CPU. With a umask that removes
    the owner's rights, no container can enter new directories.
    """
    undo = ExitStack()
    mask = os.umask(0o077)
    os.umask(mask & 0o077)
    undo.callback(os.umask, mask)
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        undo.callback(signal.signal, signal.SIGCHLD, signal.SIG_IGN)
    undo.callback(signal.pthread_sigmask, signal.SIG_SETMASK, signal.pthread_sigmask(signal.SIG_SETMASK, ()))
    policy, parameter, niceness = os.sched_getscheduler(0), os.sched_getparam(0), os.getpriority(os.PRIO_PROCESS, 0)
    with suppress(OSError):  # no right to it
        if policy & ~os.SCHED_RESET_ON_FORK != os.SCHED_OTHER:
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
            undo.callback(_quietly_schedule, policy, parameter)
        if niceness:
            os.setpriority(os.PRIO_PROCESS, 0, 0)
            undo.callback(os.setpriority, os.PRIO_PROCESS, 0, niceness)
    return undo


def _quietly_schedule(policy: int, parameter: os.sched_param) -> None:
    with suppress(OSError):  # its control group has no time for it any more
        os.sched_setscheduler(0, policy, parameter)
