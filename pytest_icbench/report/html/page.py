# SPDX-License-Identifier: BSD-3-Clause
"""The report within pytest-html's page: its content, and the lines in the rows of tests.

All foreign text (ids, versions, reasons, logs) passes ``text`` on its way into markup, or is in JSON in which ``<`` is
escaped and which the script shows as text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pytest_icbench.display.chart import Figure
from pytest_icbench.display.table import In
from pytest_icbench.errors import UsageError
from pytest_icbench.model.measurement import Result
from pytest_icbench.report.columns import columns
from pytest_icbench.report.figure.series import Windows
from pytest_icbench.report.headline import question
from pytest_icbench.report.reported_intervals import with_sessions
from pytest_icbench.wording import printable


@dataclass
class Page:
    """The content of a page. ``results``, ``tests``, ``windows`` and ``anchors`` have one entry for each result.

    Attributes:
        tests: ids of the tests that the results belong to.
        anchors: the place of each result on the page.
        repeats: the command that repeats a test, by the test's id.
        skipped: ids of skipped tests with their reasons.
        failed: ids of failed tests with the first lines of their messages.
        taken: the run from which a result was taken, by the result's index.
        history: charts of the history.
        runs: names of the runs.
        sources: sentences on the origin of the results.
        media: whether a row has a picture or a film of another plugin.
    """

    results: list[Result] = field(default_factory=list)
    tests: list[str] = field(default_factory=list)
    windows: list[Windows | None] = field(default_factory=list)
    anchors: list[str] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    failed: list[tuple[str, str]] = field(default_factory=list)
    repeats: dict[str, str] = field(default_factory=dict)
    taken: dict[int, str] = field(default_factory=dict)
    history: list[Figure] = field(default_factory=list)
    runs: list[str] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)
    media: bool = False
    _places: dict[str, list[int]] = field(default_factory=dict)
    _anchored: dict[str, int] = field(default_factory=dict)
    _skipped: set[str] = field(default_factory=set)
    _seen: int = 0

    def add(self, test: str, result: Result, windows: Windows | None = None) -> None:
        """Adds a result of a test."""
        self._places.setdefault(test, []).append(len(self.results))
        self.results += with_sessions([result])
        self.tests.append(test)
        self.windows.append(windows)
        anchor = f"case-{result.dimension}-{result.case}"
        count = self._anchored[anchor] = self._anchored.get(anchor, 0) + 1
        self.anchors.append(anchor if count == 1 else f"{anchor}--{count}")

    def __bool__(self) -> bool:
        return bool(self.results or self.skipped or self.failed)

    def places_of(self, test: str) -> list[int]:
        """Returns the indices of a test's results."""
        return self._places.get(test, [])

    def is_skipped(self, test: str) -> bool:
        """Whether a test is among the skipped ones, which the page shows by reason."""
        new = self.skipped[self._seen :]
        self._seen += len(new)
        self._skipped.update(name for name, _ in new)
        return test in self._skipped

    @property
    def title(self) -> str:
        """The question that the page answers."""
        return question(self.results)


def add_history(page: Page, file: Path) -> None:
    """Adds charts of the history of the page's cases. Errors are shown on the page and do not stop the report."""
    from pytest_icbench.report.figure.history_charts import history_of

    try:
        page.history, troubles = history_of(file, {result.case for result in page.results})
        page.sources += troubles
    except UsageError as error:
        page.sources.append(f"no history: {error}")


def lines_place(places: Sequence[int]) -> str:
    """Returns the element below a test's id that the page's script fills with the lines of its results."""
    # Without quotes and lines: pytest-html keeps each row twice, in an attribute, in which a quote takes five bytes.
    return f"<ul class=ic-lines data-places={','.join(map(str, places))}></ul>" if places else ""


def line(page: Page, place: int, result: Result) -> list[str]:
    """Returns the phrases of a result's line in the row of its test; the verdict comes before them."""
    phrases = [printable(phrase) for column in columns(In.PAGE) if (phrase := column.say(result))]
    return [*phrases, f"taken from {printable(page.taken[place])}"] if place in page.taken else phrases
