# SPDX-License-Identifier: BSD-3-Clause
"""The finished measurements of an interrupted run, which ``--icbench-resume`` reuses."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_icbench.errors import UsageError
from pytest_icbench.model.case import Case
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.text_files import LIMITS_FILE
from pytest_icbench.model.verdict import Verdict
from pytest_icbench.store.run_directory import FILE_NAME
from pytest_icbench.store.run_json import RUN_FILE, RunInfo
from pytest_icbench.store.stored_run import StoredResult, StoredRun, read_run, read_with_windows

#: Outcomes of finished tests, whose measurements are complete.
_FINISHED = ("passed", "failed")
#: Options with a value that do not affect results.
_SHOWING = {"--icbench-resume", "--html", "--junitxml", "--junit-xml", "--basetemp", "--color", "--tb", "--durations"}
#: Options without a value that do not affect results.
_FLAGS = {"-v", "-vv", "-vvv", "-q", "-qq", "-s", "-x", "--verbose", "--quiet", "--self-contained-html"}


def find_run(text: str, reports: Path) -> Path:
    """Returns the run's directory that a user names by the run's name or by a path. ``latest`` is resolved.

    Raises UsageError for an unknown run.
    """
    for path in (reports / text, Path(text).expanduser()):
        directory = path.parent if path.name == FILE_NAME else path
        if (directory / FILE_NAME).is_file() or (directory / RUN_FILE).is_file():
            return directory.resolve()
    raise UsageError(f"--icbench-resume: there is no run {text!r} below {reports}: name one of its directories")


class ResumedRun:
    """The results of an interrupted run by test. Each result is returned once. ``directory``: the run's directory.

    Raises UsageError or DamagedData if the run cannot be read or is too old to be resumed.
    """

    def __init__(self, directory: Path) -> None:
        self.run: StoredRun = read_run(directory)
        if self.run.info is None:
            raise UsageError(f"--icbench-resume: {directory} has no run.json: it cannot be resumed")
        self.info: RunInfo = self.run.info
        finished = {test.nodeid for test in self.run.tests if test.outcome in _FINISHED}
        invalid = {result.test for result in self.run.results if result.measurement.verdict == Verdict.INVALID}
        self._left: dict[str, list[StoredResult]] = {}
        for result in self.run.results:
            if result.test in finished - invalid and result.raw is not None:
                self._left.setdefault(result.test, []).append(result)

    @property
    def name(self) -> str:
        """The name of the run that measured."""
        return self.run.name

    def check(self, now: RunInfo, limits: Path | None) -> None:
        """Raises UsageError if that run differs from this one; see ``check_same_run``."""
        check_same_run(self.info, now, limits)

    def take(self, test: str, case: Case) -> Measurement | None:
        """Returns the test's measurement of the case with its windows; None if it has to be measured."""
        for place, result in enumerate(self._left.get(test, ())):
            if (result.measurement.case, result.measurement.dimension) == (case.id, case.dimension):
                del self._left[test][place]
                return read_with_windows(result)
        return None

    def has(self, test: str, case: Case) -> bool:
        """Whether ``take`` has a measurement of the case for the test."""
        return any(
            (result.measurement.case, result.measurement.dimension) == (case.id, case.dimension)
            for result in self._left.get(test, ())
        )

    def rest(self, test: str) -> Iterator[Measurement]:
        """Yields the test's remaining measurements, such as the search whose rate its load refers to."""
        for result in self._left.pop(test, ()):
            yield read_with_windows(result)

    def rates(self) -> dict[Case, Measurement]:
        """Returns the searched rates, to which the loads of other tests refer."""
        rates = {}
        for results in self._left.values():
            for result in results:
                case = Case.from_dict(result.measurement.axes)
                if case.rate.is_search:
                    rates[case] = result.measurement
        return rates


def filter_arguments(argv: Sequence[str]) -> list[str]:
    """Returns the arguments that affect results. Options of resuming, display and reports do not."""
    kept: list[str] = []
    skip_next = False
    for argument in argv:
        if skip_next:
            skip_next = False
            continue
        name, equals, _ = argument.partition("=")
        if name in _SHOWING:
            skip_next = not equals
            continue
        if argument not in _FLAGS:
            kept.append(argument)
    return kept


def check_same_run(before: RunInfo, now: RunInfo, limits: Path | None) -> None:
    """Raises UsageError in one sentence if the runs differ, so that their results do not belong together.

    ``limits``: the user's file of limits; it may differ, since results are judged again.
    """

    old_argv, new_argv = filter_arguments(before.argv), filter_arguments(now.argv)
    differences = itertools.chain(
        [("the command line", " ".join(old_argv), " ".join(new_argv))] if old_argv != new_argv else [],
        _differing("the host's", before.identity, now.identity),
        _differing("the treatment's", before.treatment, now.treatment),
        _differing("the binary", before.binaries, now.binaries),
    )
    for fact, old, new in differences:
        raise UsageError(
            f"--icbench-resume: {fact} of {before.run} was {old!r}, now it is {new!r}: start a new run instead"
        )
    # Results are judged again, so limits may have changed.
    for fact, _, _ in _differing("the file", before.files, now.files):
        path = fact.removeprefix("the file ")
        if Path(path).name != LIMITS_FILE and path != str(limits):
            raise UsageError(f"--icbench-resume: {path} has changed since {before.run}: start a new run instead")


def _differing(group: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Yields differing facts: the name with its group as a prefix, the old and the new value."""
    for name in sorted({*before, *now}):
        if before.get(name) != now.get(name):
            yield f"{group} {name}", before.get(name), now.get(name)
