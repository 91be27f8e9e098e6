# SPDX-License-Identifier: BSD-3-Clause
"""The finished measurements of an interrupted run, which ``--icbench-resume`` takes instead of measuring again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from pytest_icbench.errors import UsageError
from pytest_icbench.gate.file_names import LIMITS_FILE
from pytest_icbench.model.case import Case
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.verdict import Verdict
from pytest_icbench.store.run_files import FILE_NAME, RunInfo
from pytest_icbench.store.stored_run import StoredResult, StoredRun, read_run, with_windows

#: Outcomes of a test that came to its end, so that its measurements are complete.
_FINISHED = ("passed", "failed")
#: Options with a value that do not affect results.
_SHOWING = (
    *("--icbench-resume", "--html", "--junitxml", "--junit-xml", "--basetemp", "--color", "--tb"),
    *("--durations",),
)


def find_run(text: str, reports: Path) -> Path:
    """Returns the run's directory that a user names by the run's name or by a path. ``latest`` is resolved.

    Raises UsageError if there is none.
    """
    for path in (reports / text, Path(text).expanduser()):
        if (path / FILE_NAME).is_file() or (path / "run.json").is_file():
            return path.resolve()
    raise UsageError(f"--icbench-resume: there is no run {text!r} below {reports}: name one of its directories")


class Taken:
    """The results of an interrupted run, by test; each is given once.

    Args:
        directory: the run's directory.

    Raises UsageError or DamagedData if it cannot be read, or is too old to be resumed.
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
        """Raises UsageError if that run differs from this one; see ``refuse_other``."""
        refuse_other(self.info, now, limits)

    def take(self, test: str, case: Case) -> Measurement | None:
        """Returns the test's measurement of the case with its windows; None if it has to be measured."""
        for place, result in enumerate(self._left.get(test, ())):
            if (result.measurement.case, result.measurement.dimension) == (case.id, case.dimension):
                del self._left[test][place]
                return with_windows(result)
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
            yield with_windows(result)

    def rates(self) -> dict[Case, Measurement]:
        """Returns the rates that were searched for: loads of other tests are parts of them."""
        rates = {}
        for results in self._left.values():
            for result in results:
                case = Case.from_dict(result.measurement.axes)
                if case.rate.is_search:
                    rates[case] = result.measurement
        return rates


def arguments_of(argv: Sequence[str]) -> list[str]:
    """Returns the arguments that affect results, without those of resuming, of showing and of writing reports."""
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
        if argument in ("-v", "-vv", "-vvv", "-q", "-qq", "-s", "-x", "--verbose", "--quiet", "--self-contained-html"):
            continue
        kept.append(argument)
    return kept


def refuse_other(before: RunInfo, now: RunInfo, limits: Path | None) -> None:
    """Raises UsageError with one sentence if the runs differ, so that no result could be taken.

    Args:
        before: the interrupted run.
        now: this run.
        limits: the file of limits that the user named; it may differ, since verdicts are made anew.
    """

    def refuse(fact: str, old: object, new: object) -> None:
        raise UsageError(
            f"--icbench-resume: {fact} of {before.run} was {old!r}, now it is {new!r}: start a run of its own instead"
        )

    if (old := arguments_of(before.argv)) != (new := arguments_of(now.argv)):
        refuse("the command line", " ".join(old), " ".join(new))
    groups = (("host", before.identity, now.identity), ("treatment", before.treatment, now.treatment))
    for group, old_facts, new_facts in groups:
        for key in sorted({*old_facts, *new_facts}):
            if old_facts.get(key) != new_facts.get(key):
                refuse(f"the {group}'s {key}", old_facts.get(key), new_facts.get(key))
    for key in sorted({*before.binaries, *now.binaries}):
        if before.binaries.get(key) != now.binaries.get(key):
            refuse(f"the binary {key}", before.binaries.get(key), now.binaries.get(key))
    # Verdicts are made anew, so limits may have changed.
    for path in sorted({*before.files, *now.files}):
        about_limits = Path(path).name == LIMITS_FILE or path == str(limits)
        if not about_limits and before.files.get(path) != now.files.get(path):
            raise UsageError(
                f"--icbench-resume: {path} is not what it was in {before.run}: start a run of its own instead"
            )
