# SPDX-License-Identifier: BSD-3-Clause
"""The parts of reports that each kind of measurement brings. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from pytest_icbench.display import case_names
from pytest_icbench.display.chart import Figure
from pytest_icbench.display.table import Column, In
from pytest_icbench.model.figures import Figures
from pytest_icbench.model.measurement import Result

#: The place of a section of charts: on the first screen after the answer, or below it.
Place = Literal["first", "charts"]


class Charts(NamedTuple):
    """A section of charts.

    Attributes:
        section, heading: its anchor and its heading on a page.
        draw: returns the charts of all results of a page, and all its series.
        place: where it stands.
    """

    section: str
    heading: str
    draw: Callable[[Sequence[Result], Sequence[str]], Sequence[Figure]]
    place: Place = "charts"


class Ranked(NamedTuple):
    """The section of the first screen that ranks the paths; see ``Charts``."""

    section: str
    heading: str


class InPart(NamedTuple):
    """Cases on a host with few CPUs: their name, what it shows about them, and what not."""

    name: str
    shown: str
    not_shown: str


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
        short: formats the main value in its unit.
        mark: returns the text next to a mark of the first screen for a value, and the value of a second mark.
        legend: the meaning of its columns, each with a predicate for the results that have it.
        remarks: returns the remarks on a result below tables; empty texts are none.
        facts: returns names and texts of the facts about a result; empty texts are none.
        ways: returns the texts at both arrows of the path under test, given what was refused.
        limiting_ends: the ends that are the limit if an endpoint is; empty: the evidence names the end.
        sentence: returns the sentence on a result for the answer; may be empty.
        question: the title of a report with results of this kind only; ``{paths}`` are the paths. None: the title
            follows from the comparison.
        ranked: the ranking of its paths on the first screen; None without one.
        charts: its sections of charts.
        in_part: what a host with few CPUs shows; None if it shows all.
    """

    figures: type[Figures]
    columns: Sequence[Column]
    value: Callable[[Result], str]
    shown: In
    titles: Mapping[str, str]
    table: Callable[[Result], str] = lambda result: result.dimension
    short: Callable[[float], str] = case_names.short
    mark: Callable[[Result, str], tuple[Any, ...]] = lambda _result, value: (value,)
    legend: Sequence[tuple[Callable[[Result], object], str]] = ()
    remarks: Callable[[Result], Sequence[str]] = lambda _result: ()
    facts: Callable[[Result], Sequence[tuple[str, str]]] = lambda _result: ()
    ways: Callable[[Result, str], tuple[str, str]] = lambda _result, _refused: ("", "")
    limiting_ends: tuple[str, ...] = ()
    sentence: Callable[[Result], str] = lambda _result: ""
    question: str | None = None
    ranked: Ranked | None = None
    charts: Sequence[Charts] = ()
    in_part: InPart | None = None
