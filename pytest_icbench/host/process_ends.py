# SPDX-License-Identifier: BSD-3-Clause
"""Sentences on how a process ended, and on why one could not be started."""

from __future__ import annotations

import errno
import signal
from collections.abc import Sequence

from pytest_icbench.errors import NotStarted, ProvisionError


def exit_sentence(code: int) -> str:
    """Returns how a process ended, as the end of a sentence, from its exit code."""
    if code < 0:
        return f"was killed by signal {-code} ({signal.strsignal(-code)})"
    return f"ended with exit code {code}"


def stopped_sentence(name: str, pid: int) -> str:
    """Returns that someone else has stopped a process, so that it runs on only after SIGCONT."""
    return f"{name} (process {pid}) was stopped by a signal, as SIGSTOP does"


def refused_process(error: OSError) -> str:
    """Returns why the kernel makes no further process, with the remedy."""
    if error.errno == errno.EAGAIN:
        return "no further process is allowed: raise the pids cgroup's pids.max, kernel.pid_max or kernel.threads-max"
    if error.errno == errno.ENOMEM:
        return "no memory is left for a further process: free some"
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return "no further file may be opened: raise the limit (ulimit -n), or fs.file-max"
    return error.strerror or str(error)


def not_started(argv: Sequence[str], error: OSError) -> ProvisionError:
    """Returns why a program cannot be started: ``NotStarted`` unless the host lacks room for any process."""
    if error.errno in (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE):
        return ProvisionError(f"{argv[0]} cannot be started: {refused_process(error)}")
    return NotStarted(f"{argv[0]} cannot be started ({error.strerror}): install it or give its path")
