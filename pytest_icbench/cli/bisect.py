# SPDX-License-Identifier: BSD-3-Clause
"""``icbench bisect``: finds the first slower version of a switch by measuring versions side by side."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pytest_icbench.cli.scenarios import packaged_scenarios
from pytest_icbench.errors import IcbenchError, ProvisionError, UsageError
from pytest_icbench.host.process import run as run_command
from pytest_icbench.model.text_files import read_text
from pytest_icbench.model.verdict import EXIT_STATUS
from pytest_icbench.wording import counted, printable

#: Time for building one version, and for listing revisions, in seconds.
BUILD_S, LIST_S = 7200.0, 60.0
#: The name of the version that is compared.
CANDIDATE = "candidate"


class BisectionResult(NamedTuple):
    """The result of a bisection: the change came after version ``good``, at the latest with ``bad``.

    Attributes:
        good: index of the last version that is not slower; -1 for the one before the first.
        bad: index of the first slower version.
        undecided: indexes between both whose measurement decided nothing.
    """

    good: int
    bad: int
    undecided: tuple[int, ...] = ()


def add_to(commands: Any) -> None:
    """Adds the subcommand."""
    command = commands.add_parser("bisect", help="find the first version of a switch that is slower, side by side")
    command.usage = "icbench bisect SWITCH BEFORE AFTER [--build SCRIPT] [options of pytest, such as -k 64B]"
    command.add_argument("switch", metavar="SWITCH", help="the switch, such as ovs")
    command.add_argument("before", metavar="BEFORE", help="the version that is fast: a binary; with --build a revision")
    command.add_argument("after", metavar="AFTER", help="the version that is slow, likewise")
    command.add_argument(
        "--build", metavar="SCRIPT", help="called with a revision; the last line of output is the binary's path"
    )
    command.add_argument("--between", metavar="FILE", help="versions between both, the oldest first, one a line")
    command.add_argument("--scenario", metavar="PATH", help="what is measured (default: the packaged test_gate.py)")
    command.set_defaults(command=run, takes_others=True)


def run(arguments: argparse.Namespace) -> int:
    """Prints the version that made the switch slower. The exit code is 1 if AFTER is not significantly slower.

    Raises UsageError, ProvisionError.
    """
    script = None if arguments.build is None else _executable(arguments.build, "--build")
    binary_of = _binary if script is None else lambda version: _built(script, version)
    scenario = _scenario(arguments.scenario)
    versions = [*_between(arguments), arguments.after]
    before = binary_of(arguments.before)

    def compare(fast: Path, slow: Path) -> bool | None:
        return side_by_side(arguments.switch, fast, slow, scenario, arguments.others)

    def is_worse(index: int) -> bool | None:
        try:
            binary = binary_of(versions[index])
        except IcbenchError as error:
            if index == len(versions) - 1:
                raise
            print(printable(f"icbench: {versions[index]}: left out: {error}"), flush=True)
            return None
        worse = compare(before, binary)
        verdict = "undecided" if worse is None else "slower" if worse else "not slower"
        print(printable(f"icbench: {versions[index]}: {verdict} than {arguments.before}"), flush=True)
        return worse

    if not is_worse(len(versions) - 1):
        outcome = f"{arguments.after} is not significantly slower than {arguments.before}"
        print(printable(f"icbench: {outcome}: there is nothing to find"))
        return 1
    for line in sentences(first_worse(len(versions), is_worse), arguments.before, versions):
        print(printable(f"icbench: {line}"))
    return 0


def first_worse(versions: int, is_worse: Callable[[int], bool | None]) -> BisectionResult:
    """Returns where a series of versions became slower, by bisection.

    Args:
        versions: their number, at least 1. The last one is known to be slower than the one before the first.
        is_worse: whether the version at an index is slower; None if undecided, and the next versions are tried.
    """
    good, bad = -1, versions - 1
    undecided: set[int] = set()
    while candidates := [index for index in range(good + 1, bad) if index not in undecided]:
        middle = (good + bad) / 2
        index = min(candidates, key=lambda candidate: abs(candidate - middle))
        worse = is_worse(index)
        if worse is None:
            undecided.add(index)
        elif worse:
            bad = index
        else:
            good = index
    return BisectionResult(good, bad, tuple(sorted(index for index in undecided if good < index < bad)))


def sentences(bisected: BisectionResult, before: str, versions: Sequence[str]) -> list[str]:
    """Returns the result of a search as text."""
    good = before if bisected.good < 0 else versions[bisected.good]
    if not bisected.undecided:
        return [f"{versions[bisected.bad]} is the first that is slower; {good} is not"]
    named = ", ".join(versions[index] for index in bisected.undecided)
    undecided = f"{counted(len(bisected.undecided), 'version')} in between could not be decided: {named}"
    return [f"it became slower after {good}, at the latest with {versions[bisected.bad]}; {undecided}"]


def side_by_side(switch: str, fast: Path, slow: Path, scenario: Path, others: Sequence[str]) -> bool | None:
    """Compares two binaries with pytest. Returns whether the second one is slower; None if nothing was decided.

    Raises ProvisionError if pytest failed otherwise.
    """
    import pytest

    argv = [
        *(str(scenario), f"--rootdir={scenario.parent}", "-c", os.devnull, f"--icbench-switch={switch}"),
        *(f"--icbench-binary={switch}={fast}", f"--icbench-candidate={switch}:{CANDIDATE}={slow}", *others),
    ]
    status = int(pytest.main(argv))
    decided = {0: False, EXIT_STATUS["regressed"]: True, EXIT_STATUS["undecided"]: None}
    if status not in decided:
        raise ProvisionError(f"pytest ended with status {status}, and compared nothing: its output says why")
    return decided[status]


def _scenario(text: str | None) -> Path:
    if text is None:
        return packaged_scenarios() / "test_gate.py"
    path = Path(text).resolve()
    if not path.exists():
        raise UsageError(f"bisect: --scenario: there is no {printable(text)}")
    return path


def _between(arguments: argparse.Namespace) -> list[str]:
    """Returns the versions between BEFORE and AFTER: as a file lists them, or git; none for two binaries."""
    if arguments.between is not None:
        lines = read_text(Path(arguments.between), name=f"bisect: --between: {arguments.between}").splitlines()
        return [line.strip() for line in lines if line.strip()]
    if arguments.build is None:
        return []
    revisions = _git("rev-list", "--reverse", "--first-parent", f"{arguments.before}..{arguments.after}")
    if not revisions:
        raise UsageError(f"bisect: git knows no revision after {arguments.before} up to {arguments.after}")
    return revisions[:-1]  # the last one is AFTER itself


def _git(*words: str) -> list[str]:
    try:
        return run_command(["git", *words], timeout_s=LIST_S).stdout.split()
    except ProvisionError as error:
        raise UsageError(f"bisect: {error}; run it in the repository, or list the versions with --between") from None


def _built(script: Path, revision: str) -> Path:
    """Builds a revision. Returns its binary. Raises ProvisionError, UsageError."""
    print(printable(f"icbench: building {revision}"), flush=True)
    lines = run_command([script, revision], timeout_s=BUILD_S).stdout.split("\n")
    path = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return _executable(path, f"{script} {revision}: the last line of its output")


def _binary(text: str) -> Path:
    return _executable(text, "a version without --build")


def _executable(text: str, where: str) -> Path:
    path = Path(text).resolve() if text else Path()
    if not text or not path.is_file() or not os.access(path, os.X_OK):
        raise UsageError(f"bisect: {where}: '{printable(text)}' is not a program: name an executable file")
    return path
