# SPDX-License-Identifier: BSD-3-Clause
"""The command that repeats one test of a run."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from pytest_icbench.config.option_table import TABLE

_FLAGS = frozenset(row.option for row in TABLE if row.flag)
#: pytest's own options that decide what a test is; those that select, report or repeat are left out.
_KEPT = {"-o", "--override-ini", "-c", "--config-file", "-p", "--rootdir", "--import-mode"}
#: Options of this package that concern the session and not the case, or write what a repetition must not change.
_SESSION = frozenset(
    f"--icbench-{name}" for name in ("budget", "plan", "resume", "reports", "save", "history", "order")
)


def repeat_command(nodeid: str, arguments: Sequence[str], directory: str | None = None) -> str:
    """Returns ``pytest`` with the test's id and the arguments of the run that bear on it, quoted for a shell.

    Args:
        arguments: the arguments of pytest, as they were given.
        directory: the directory to change to first, if ids are not relative to the directory of the call.
    """
    command = shlex.join(["pytest", nodeid, *_bearing(arguments)])
    return command if directory is None else f"cd {shlex.quote(directory)} && {command}"


def resume_command(run: str, arguments: Sequence[str]) -> str:
    """Returns the command that goes on with an interrupted run, quoted for a shell."""
    kept: list[str] = []
    for place, argument in enumerate(arguments):
        if argument == "--icbench-resume" or (place and arguments[place - 1] == "--icbench-resume"):
            continue
        if not argument.startswith("--icbench-resume="):
            kept.append(argument)
    return shlex.join(["pytest", *kept, f"--icbench-resume={run}"])


def _takes_next(argument: str) -> bool:
    """Whether the next argument is the value of this one."""
    is_ours = argument.startswith("--icbench-")
    return "=" not in argument and (argument in _KEPT or (is_ours and argument not in _FLAGS))


def _bearing(arguments: Sequence[str]) -> list[str]:
    kept: list[str] = []
    place = 0
    while place < len(arguments):
        argument = arguments[place]
        name = argument.partition("=")[0]
        is_ours = name.startswith("--icbench-")
        words = arguments[place : place + 2] if _takes_next(argument) else [argument]
        attached = argument[:2] in ("-o", "-p", "-c") and not argument.startswith("--") and len(argument) > 2
        ini = words[-1].removeprefix("--override-ini=").removeprefix("-o").partition("=")[0]
        session = name in _SESSION or f"--{ini.replace('_', '-')}" in _SESSION
        if not session and (is_ours or name in _KEPT or attached):
            kept += words
        place += len(words)
    return kept
