# SPDX-License-Identifier: BSD-3-Clause
"""How a session's tests ended, so that a CI tells regressed from undecided from broken. Pure but for pytest's types."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_icbench.errors import Regression
from pytest_icbench.model.verdict import EXIT_STATUS, UNDECIDED, Outcome, Verdict

if TYPE_CHECKING:
    import pytest

    from pytest_icbench.model.measurement import Measurement

#: JUnit property.
PROPERTY = "icbench.outcome"


def outcome_of(outcome: str, error: BaseException | None, results: Sequence[Measurement]) -> Outcome:
    """How one test ended.

    Args:
        outcome: pytest's: passed, failed or skipped.
        error: what ended it, None for one that passed.
        results: what it measured.
    """
    if outcome == "skipped":
        return "skipped"
    if outcome == "failed":
        if isinstance(error, Regression):
            return Verdict[error.verdict].outcome
        return "broken"
    verdicts = [result.verdict for result in results if not result.waiver]
    return "undecided" if any(verdict in UNDECIDED for verdict in verdicts) else "passed"


def note_outcome(
    item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport, results: Sequence[Measurement]
) -> None:
    """Puts the outcome into a benchmark's report, for the tally, and among its JUnit properties.

    JUnit takes the properties of the last report of a test, that of its teardown.
    """
    report.icbench_case = True  # type: ignore[attr-defined]
    if call.when != "call" and report.outcome == "passed":
        return
    error = call.excinfo.value if call.excinfo is not None else None
    found = outcome_of(report.outcome, error, results)
    report.icbench_outcome = found  # type: ignore[attr-defined]
    for properties in (item.user_properties, report.user_properties):
        properties[:] = [one for one in properties if one[0] != PROPERTY] + [(PROPERTY, found)]


@dataclass(slots=True)
class Outcomes:
    """Outcomes of all tests.

    Attributes:
        skipped: benchmarks that did not run, with the reason.
        failed: benchmarks that failed, with the first line of what they say.
    """

    outcomes: dict[str, int] = field(default_factory=dict)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    failed: list[tuple[str, str]] = field(default_factory=list)

    def add(self, report: pytest.TestReport) -> None:
        """Counts a phase of a test: its call, or whatever went wrong before or after."""
        if report.when != "call" and report.outcome == "passed":
            return
        found: str = getattr(report, "icbench_outcome", "broken" if report.outcome == "failed" else report.outcome)
        self.outcomes[found] = self.outcomes.get(found, 0) + 1
        if not getattr(report, "icbench_case", None):
            return
        if report.outcome == "skipped":
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
            self.skipped.append((report.nodeid, reason.removeprefix("Skipped: ")))
        elif report.outcome == "failed":
            self.failed.append((report.nodeid, _first_line(report)))

    def exit_status(self, status: int) -> int:
        """pytest's exit status made to tell; ``status`` is what it would be, and stays where it is neither 0 nor 1."""
        if status not in (0, 1) or self.outcomes.get("broken"):
            return status
        return next((code for outcome, code in EXIT_STATUS.items() if self.outcomes.get(outcome)), status)


def _first_line(report: pytest.TestReport) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    text = str(crash.message) if crash is not None else str(report.longrepr)
    return text.strip().splitlines()[0] if text.strip() else "failed"


def skip_reason(longrepr: Any) -> str:
    """Of a skipped report's ``longrepr``: file, line, ``Skipped: reason``."""
    return str(longrepr[2]).removeprefix("Skipped: ")
