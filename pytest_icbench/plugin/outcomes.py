# SPDX-License-Identifier: BSD-3-Clause
"""How the tests of a session ended, so that a CI can tell regressed, undecided and broken ones apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from pytest_icbench.errors import IcbenchError, Invalid, Regression
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.verdict import EXIT_STATUS, UNDECIDED, WEAK_STATUS, Outcome, Verdict

#: The name of the JUnit property.
PROPERTY = "icbench.outcome"


def classify_outcome(outcome: str, error: BaseException | None, results: Sequence[Measurement]) -> Outcome:
    """Returns how a test ended.

    Args:
        outcome: pytest's outcome: passed, failed or skipped.
        error: the exception that ended the test; None if it passed.
        results: the measurements of the test.
    """
    if outcome == "skipped":
        return "skipped"
    if outcome == "failed":
        if isinstance(error, Regression):
            return Verdict[error.verdict].outcome
        return "broken"
    verdicts = [result.verdict for result in results if not result.waiver]
    return "undecided" if any(verdict in UNDECIDED for verdict in verdicts) else "passed"


def is_undecided(report: pytest.TestReport) -> bool:
    """Whether a test passed without a verdict that was asked for, against a baseline or a limit."""
    if report.outcome != "passed" or getattr(report, "icbench_outcome", None) != "undecided":
        return False
    lines: Any = getattr(report, "icbench", [])
    return isinstance(lines, list) and any(
        line.get("verdict") in UNDECIDED and (line["verdict"] != Verdict.NO_BASELINE or line.get("baseline"))
        for line in lines
        if isinstance(line, dict)  # a worker's report can hold anything
    )


def note_outcome(
    item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport, results: Sequence[Measurement]
) -> None:
    """Puts the outcome into a benchmark's report, where ``Outcomes`` counts it, and among its JUnit properties.

    JUnit takes the properties of the last report of a test, that of its teardown.
    """
    report.icbench_case = True  # type: ignore[attr-defined]
    if call.when != "call" and report.outcome == "passed":
        return
    error = call.excinfo.value if call.excinfo is not None else None
    outcome = classify_outcome(report.outcome, error, results)
    report.icbench_outcome = outcome  # type: ignore[attr-defined]
    for properties in (item.user_properties, report.user_properties):
        properties[:] = [(name, value) for name, value in properties if name != PROPERTY] + [(PROPERTY, outcome)]


@dataclass(slots=True)
class Outcomes:
    """The outcomes of all tests.

    Attributes:
        outcomes: number of tests by outcome.
        skipped: benchmarks that did not run, with the reason.
        failed: benchmarks that failed, with the first line of the error.
    """

    outcomes: dict[str, int] = field(default_factory=dict)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    failed: list[tuple[str, str]] = field(default_factory=list)

    def add(self, report: pytest.TestReport) -> None:
        """Counts a test: by its call, and by a set-up or teardown that did not pass."""
        if report.when != "call" and report.outcome == "passed":
            return
        outcome: str = getattr(report, "icbench_outcome", "broken" if report.outcome == "failed" else report.outcome)
        self.outcomes[outcome] = self.outcomes.get(outcome, 0) + 1
        if not getattr(report, "icbench_case", None):
            return
        if report.outcome == "skipped":
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
            self.skipped.append((report.nodeid, reason.removeprefix("Skipped: ")))
        elif report.outcome == "failed":
            self.failed.append((report.nodeid, first_line(report)))

    def exit_status(self, status: int, *, distinct: bool = True, weak: bool = False) -> int:
        """Returns the exit status.

        Args:
            status: pytest's, which stays if it is neither 0 nor 1 or a test is broken.
            distinct: whether regressed and undecided tests change the status.
            weak: whether the session is weak, and fails by that.
        """
        if status not in (0, 1) or self.outcomes.get("broken"):
            return status
        if weak and not self.outcomes.get("regressed"):
            return WEAK_STATUS
        codes = EXIT_STATUS if distinct else {}
        return next((code for outcome, code in codes.items() if self.outcomes.get(outcome)), status)


def first_line(report: pytest.TestReport) -> str:
    """Returns the first line of a failed report's error."""
    crash = getattr(report.longrepr, "reprcrash", None)
    text = str(crash.message) if crash is not None else str(report.longrepr)
    return text.strip().splitlines()[0] if text.strip() else "failed"


def show_message_only(call: pytest.CallInfo[None], report: pytest.TestReport, style: str) -> None:
    """Makes the sentence of an error of this package all that pytest shows of it, in its short summary, too.

    A traceback, and the name of the error's class, would bury the sentence. ``style``: the option ``--tb``; with
    another than ``auto`` and ``no`` the traceback stays.
    """
    if call.excinfo is None or not isinstance(call.excinfo.value, IcbenchError | Regression):
        return
    error = call.excinfo.value
    message = f"{Verdict.INVALID}: {error}" if isinstance(error, Invalid) else str(error)
    if style in ("auto", "no"):
        representation: Any = call.excinfo.getrepr(style="value")
        for entry in representation.reprtraceback.reprentries:
            entry.lines[:] = message.splitlines()
        report.longrepr = representation
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is not None:
        crash.message = message.partition("\n")[0]


def skip(reason: str, *, strict: bool) -> Any:
    """Skips the test, or fails it if ``strict``."""
    __tracebackhide__ = True
    if strict:
        pytest.fail(f"would be skipped, and --icbench-strict is on: {reason}", pytrace=False)
    pytest.skip(reason)


def skip_reason(longrepr: Any) -> str:
    """Returns the reason in a skipped report's ``longrepr``: file, line, ``Skipped: reason``."""
    return str(longrepr[2]).removeprefix("Skipped: ")
