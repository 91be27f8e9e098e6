# SPDX-License-Identifier: BSD-3-Clause
"""What an interrupted run had finished, for ``--icbench-resume``: its measurements are not made again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from pytest_icbench.errors import UsageError
from pytest_icbench.gate.thresholds import FILE_NAME as LIMITS_FILE
from pytest_icbench.model.case import Case
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.verdict import Verdict
from pytest_icbench.store.read import StoredResult, StoredRun, read_run, with_windows
from pytest_icbench.store.results import FILE_NAME
from pytest_icbench.store.run import RunInfo

#: Outcomes of a test whose measurements are whole: it came to its end by itself.
_FINISHED = ("passed", "failed")
#: Options with a value that bear on no result.
_SHOWING = (
    *("--icbench-resume", "--html", "--junitxml", "--junit-xml", "--basetemp", "--color", "--tb"),
    *("--durations",),
)


def find_run(text: str, reports: Path) -> Path:
    """The directory that a user names: a run's name, or a path. ``latest`` is what it points to now.

    Raises UsageError if there is none.
    """
    for path in (reports / text, Path(text).expanduser()):
        if (path / FILE_NAME).is_file() or (path / "run.json").is_file():
            return path.resolve()
    raise UsageError(f"--icbench-resume: there is no run {text!r} below {reports}: name one of its directories")


class Taken:
    """Results of an interrupted run, by test; each is given once.

    Args:
        directory: of that run.

    Raises UsageError and DamagedData if it cannot be read, or is too old to be resumed.
    """

    def __init__(self, directory: Path) -> None:
        self.run: StoredRun = read_run(directory)
        if self.run.info is None:
            raise UsageError(f"--icbench-resume: {directory} has no run.json: it cannot be resumed")
        self.info: RunInfo = self.run.info
        finished = {test.nodeid for test in self.run.tests if test.outcome in _FINISHED}
        invalid = {each.test for each in self.run.results if each.measurement.verdict == Verdict.INVALID}
        self._left: dict[str, list[StoredResult]] = {}
        for each in self.run.results:
            if each.test in finished - invalid and each.raw is not None:
                self._left.setdefault(each.test, []).append(each)

    @property
    def name(self) -> str:
        """Of the run that measured."""
        return self.run.name

    def check(self, now: RunInfo, limits: Path | None) -> None:
        """Raises UsageError if that run was another one than this."""
        refuse_other(self.info, now, limits)

    def take(self, test: str, case: Case) -> Measurement | None:
        """What the test measured of the case, windows included; None if it has to be measured."""
        for place, each in enumerate(self._left.get(test, ())):
            if (each.measurement.case, each.measurement.dimension) == (case.id, case.dimension):
                del self._left[test][place]
                return with_windows(each)
        return None

    def rest(self, test: str) -> Iterator[Measurement]:
        """What else the test's measurements stand on, as the search for a rate."""
        for each in self._left.pop(test, ()):
            yield with_windows(each)

    def rates(self) -> dict[Case, Measurement]:
        """Rates that were looked for: loads of other tests are parts of them."""
        found = {}
        for results in self._left.values():
            for each in results:
                case = Case.from_dict(each.measurement.axes)
                if case.rate.is_search:
                    found[case] = each.measurement
        return found


def arguments_of(argv: Sequence[str]) -> list[str]:
    """Those that bear on what is measured: without what resumes, and what only shows or writes it."""
    kept: list[str] = []
    skip_next = False
    for each in argv:
        if skip_next:
            skip_next = False
            continue
        name, equals, _ = each.partition("=")
        if name in _SHOWING:
            skip_next = not equals
            continue
        if each in ("-v", "-vv", "-vvv", "-q", "-qq", "-s", "-x", "--verbose", "--quiet", "--self-contained-html"):
            continue
        kept.append(each)
    return kept


def refuse_other(before: RunInfo, now: RunInfo, limits: Path | None) -> None:
    """Raises UsageError with one sentence if a run is not the same run again: nothing of it could be taken.

    Args:
        limits: the file that the user named.
    """

    def refuse(what: str, old: object, new: object) -> None:
        raise UsageError(
            f"--icbench-resume: {what} of {before.run} was {old!r}, now it is {new!r}: start a run of its own instead"
        )

    if (old := arguments_of(before.argv)) != (new := arguments_of(now.argv)):
        refuse("the command line", " ".join(old), " ".join(new))
    for what, one, two in (("host", before.identity, now.identity), ("treatment", before.treatment, now.treatment)):
        for key in sorted({*one, *two}):
            if one.get(key) != two.get(key):
                refuse(f"the {what}'s {key}", one.get(key), two.get(key))
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
