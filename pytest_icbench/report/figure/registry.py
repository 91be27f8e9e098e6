# SPDX-License-Identifier: BSD-3-Clause
"""The charts of the page: a row for each section, and one for each chart of a single case. Pure.

A new chart is a function in a new module, and a row here. A section's function takes the page's ``Content`` and returns
its charts in order, none if there is nothing to draw. A case's function takes one result and returns its
chart or None. Charts of cases may repeat their specification: the page keeps equal ones once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

from pytest_icbench.display.case_names import hosts_apart, of_kind, traffic
from pytest_icbench.display.chart import Figure
from pytest_icbench.kinds.registry import KINDS, Charts
from pytest_icbench.model.figures import FrameFigures, Latency, Search, Throughput
from pytest_icbench.model.result import Result
from pytest_icbench.report.disambiguate import disambiguated
from pytest_icbench.report.figure import (
    delay,
    dots,
    heatmap,
    latency,
    launches,
    losses,
    rate_charts,
    scaling,
    shares,
    single,
)
from pytest_icbench.report.figure.forest import forest_figures
from pytest_icbench.report.figure.load_changes import following_figures
from pytest_icbench.report.figure.noisy_neighbour_ratios import noisy_neighbour_figures
from pytest_icbench.report.figure.path_chart import path_chart
from pytest_icbench.report.figure.series import curve_of
from pytest_icbench.report.value_changes import comparisons

#: The place of a section: on the first screen after the answer, or among the charts below it.
Place = Literal["first", "charts"]


@dataclass(frozen=True)
class Content:
    """The data that sections draw.

    Attributes:
        results: the results of the page, with ``host`` where several machines measured.
        history: charts of the history, which come from a file.
    """

    results: Sequence[Result]
    history: Sequence[Figure] = ()

    @classmethod
    def of(cls, results: Sequence[Result], history: Sequence[Figure] = ()) -> Content:
        """Returns the content of a page, in which results with equal names are distinguished."""
        return cls(disambiguated(hosts_apart(results)), history)

    @cached_property
    def order(self) -> list[str]:
        """All series of the page, in the order in which they were measured."""
        return rate_charts.all_series(self.results)

    @cached_property
    def two_sizes(self) -> bool:
        """Whether frames have two sizes: then the first screen has both, and a line would have two points."""
        return len({traffic(result).packet_size for result in of_kind(self.results, FrameFigures)}) == 2

    @cached_property
    def rates(self) -> list[Result]:
        """The results of throughput."""
        return of_kind(self.results, Throughput) + of_kind(self.results, Search)

    @cached_property
    def curves(self) -> dict[int, latency.Curve]:
        """The percentile curves by a result's index in ``results``."""
        return {
            place: curve_of(result) for place, result in enumerate(self.results) if isinstance(result.figures, Latency)
        }


class Section(NamedTuple):
    """A section of charts.

    Attributes:
        name: the ``kind`` of its charts, and its anchor on the page.
        heading: its heading.
        charts: the function that makes its charts.
        place: where it stands. Within a place sections keep the order of the table.
    """

    name: str
    heading: str
    charts: Callable[[Content], Sequence[Figure]]
    place: Place = "charts"


class CaseChart(NamedTuple):
    """A chart of a single case, which the page shows below the facts of the chosen case.

    Attributes:
        name: the ``kind`` of the chart.
        chart: the function that makes it; its title is the heading.
    """

    name: str
    chart: Callable[[Result], Figure | None]


def _of_kind(charts: Charts) -> Section:
    return Section(charts.section, charts.heading, lambda page: charts.draw(page.results, page.order), "first")


#: All sections in their order.
SECTIONS = (
    Section("change", "Before and after", lambda page: forest_figures(comparisons(page.results)), "first"),
    Section("rates", "Rate", lambda page: dots.dot_charts(page.results, page.order, "throughput"), "first"),
    Section("delays", "Round trip", lambda page: dots.dot_charts(page.results, page.order, "latency"), "first"),
    Section(
        "applications", "Applications", lambda page: dots.dot_charts(page.results, page.order, "application"), "first"
    ),
    Section(
        "load",
        "Received against offered rate",
        lambda page: (
            *rate_charts.by_load(page.rates, page.order),
            *rate_charts.bursts_by_load(page.rates, page.order),
            *single.one_load(page.rates, page.order),
        ),
    ),
    Section(
        "size",
        "Rate against packet size",
        lambda page: (
            *(() if page.two_sizes else scaling.by_size(page.rates, page.order)),
            *single.one_size(page.rates, page.order),
        ),
    ),
    Section("heat", "Packet size and burst", lambda page: heatmap.heat_maps(page.results, page.order)),
    Section("pairs", "Several pairs: mean and total", lambda page: scaling.by_pairs(page.rates, page.order)),
    Section("cores", "Worker cores", lambda page: scaling.by_cores(page.rates, page.order)),
    Section("chains", "Chains: rate against length", lambda page: scaling.rates_by_length(page.rates, page.order)),
    Section(
        "chain-delays",
        "Chains: round trip against length",
        lambda page: latency.by_length(page.results, page.order),
    ),
    Section(
        "shares",
        "Parts of a CPU",
        lambda page: (
            *shares.share_figures(page.rates, page.order),
            *shares.totals_by_number(page.rates, page.order),
        ),
    ),
    Section(
        "latency",
        "Round trip against packet size",
        lambda page: (
            *(() if page.two_sizes else latency.by_size(page.results, page.order)),
            *single.one_time(page.results, page.order),
        ),
    ),
    Section("delay", "Round trip against load", lambda page: delay.delay_figures(page.results, page.order)),
    Section(
        "percentiles",
        "Round trip by percentile",
        lambda page: (
            *latency.cdf_figures(page.results, page.order),
            *latency.by_percentile(page.results, page.order, page.curves),
        ),
    ),
    Section("noisy_neighbours", "Noisy neighbours", lambda page: noisy_neighbour_figures(page.results, page.order)),
    Section("followed", "Loads that change", lambda page: following_figures(page.results, page.order)),
    *(_of_kind(kind.charts) for kind in KINDS if kind.charts is not None),
    Section("losses", "Losses of long runs", lambda page: losses.loss_figures(page.results, page.order)),
    Section("launches", "Launches", lambda page: launches.launch_figures(page.results, page.order)),
    Section("history", "History", lambda page: page.history),
)

#: All charts of a single case in their order.
CASE_CHARTS = (CaseChart("path", path_chart),)


def section_charts(page: Content) -> list[tuple[Section, list[Figure]]]:
    """Returns the sections that have charts, with their charts."""
    drawn = [(section, list(section.charts(page))) for section in SECTIONS]
    return [(section, charts) for section, charts in drawn if charts]


def case_charts(result: Result) -> list[Figure]:
    """Returns the charts of a single case."""
    drawn = (row.chart(result) for row in CASE_CHARTS)
    return [chart for chart in drawn if chart is not None]
