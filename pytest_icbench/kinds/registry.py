# SPDX-License-Identifier: BSD-3-Clause
"""What reports show of each kind of measurement. A new kind is a folder, and a row here and in ``runs``. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pytest_icbench.display.chart import Figure
from pytest_icbench.display.table import Column, In
from pytest_icbench.kinds.startup import chart, columns
from pytest_icbench.model.figures import Figures, Startup
from pytest_icbench.model.result import Result


@dataclass(frozen=True, slots=True)
class Kind:
    """What reports show of a kind of measurement.

    Attributes:
        figures: the type of its figures.
        columns: its own columns.
        value: returns the main value of a result with its unit.
        sentence: returns what a result says; empty if nothing.
        question: the question that a report answers in which nothing else was measured; ``{paths}`` are the paths.
        tables: the titles of its tables in the terminal, by table.
        table: returns the table of a result.
        shown: the columns of its tables.
        section, heading, charts: anchor and heading of its charts, and what makes them of all results and all series.
    """

    figures: type[Figures]
    columns: Sequence[Column]
    value: Callable[[Result], str]
    sentence: Callable[[Result], str]
    question: str
    tables: Mapping[str, str]
    table: Callable[[Result], str]
    shown: In
    section: str
    heading: str
    charts: Callable[[Sequence[Result], Sequence[str]], list[Figure]]


KINDS = (
    Kind(
        figures=Startup,
        columns=columns.COLUMNS,
        value=columns.value,
        sentence=columns.sentence,
        question="How fast does one container more appear? {paths}",
        tables=columns.TITLES,
        table=columns.table_of,
        shown=In.STARTUP,
        section="births",
        heading="Creation of containers",
        charts=chart.startup_charts,
    ),
)


def kind_of(result: Result) -> Kind | None:
    """Returns the kind of a result; None for one that reports show by themselves."""
    return next((kind for kind in KINDS if kind.figures is type(result.figures)), None)
