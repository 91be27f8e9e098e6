# SPDX-License-Identifier: BSD-3-Clause
"""The parts of reports for each kind of measurement. A new kind is a folder, and a row here and in ``runs``. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pytest_icbench.display.chart import Figure
from pytest_icbench.display.table import Column, In
from pytest_icbench.kinds.application import application_columns as application
from pytest_icbench.kinds.latency import latency_columns as latency
from pytest_icbench.kinds.startup import startup_columns as startup
from pytest_icbench.kinds.startup.startup_chart import startup_charts
from pytest_icbench.model.figures import Application, Figures, Latency, Startup
from pytest_icbench.model.result import Result


def _nothing(_result: Result) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class Charts:
    """The charts of a kind.

    Attributes:
        section, heading: their anchor and their heading on a page.
        draw: returns the charts of all results of a page, and all its series.
    """

    section: str
    heading: str
    draw: Callable[[Sequence[Result], Sequence[str]], list[Figure]]


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """The parts of reports for a kind of measurement.

    Attributes:
        figures: the type of its figures.
        columns: its own columns.
        value: returns the main value of a result with its unit.
        shown: the columns of its tables in the terminal.
        titles: the titles of its tables; ``{kind}`` is the table's name, ``{metric}`` the metric.
        table: returns the name of a result's table.
        sentence: returns the sentence on a result for the answer; may be empty.
        question: the title of a report with results of this kind only; ``{paths}`` are the paths. None: the title
            follows from the comparison.
        charts: its charts; None if a section of ``report.figure`` draws them.
    """

    figures: type[Figures]
    columns: Sequence[Column]
    value: Callable[[Result], str]
    shown: In
    titles: Mapping[str, str]
    table: Callable[[Result], str] = lambda result: result.dimension
    sentence: Callable[[Result], str] = _nothing
    question: str | None = None
    charts: Charts | None = None


KINDS = (
    Kind(
        figures=Latency,
        columns=latency.COLUMNS,
        value=latency.value,
        shown=In.LATENCY,
        titles={"latency": "{kind}"},
    ),
    Kind(
        figures=Application,
        columns=application.COLUMNS,
        value=application.value,
        shown=In.APPLICATION,
        titles={"application": "{kind} ({metric})"},
    ),
    Kind(
        figures=Startup,
        columns=startup.COLUMNS,
        value=startup.value,
        shown=In.STARTUP,
        titles=startup.TITLES,
        table=startup.table_of,
        sentence=startup.sentence,
        question="How long does another container take to start? {paths}",
        charts=Charts("startups", "Creation of containers", startup_charts),
    ),
)


def kind_of(result: Result) -> Kind | None:
    """Returns the kind of a result; None for a kind without a row."""
    return next((kind for kind in KINDS if kind.figures is type(result.figures)), None)
