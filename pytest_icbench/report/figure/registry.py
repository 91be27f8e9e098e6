# SPDX-License-Identifier: BSD-3-Clause
"""The charts of the page: a row for each section, and one for each chart of a single case. Pure.

A new chart is a function in a new module, and a row here. A section's function takes the page's ``Content`` and returns
its charts in order, none if there is nothing to draw; ``order`` is all series of the page. A case's function takes one
result and returns its chart or None. Charts of cases may repeat their specification: the page keeps equal ones once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from pytest_icbench.display.case_names import disambiguated, have_two_sizes, hosts_apart, of_kind
from pytest_icbench.display.chart import Figure
from pytest_icbench.kinds.kind import Charts, Place, Ranked
from pytest_icbench.kinds.registry import KINDS
from pytest_icbench.model.figures import Search, Throughput
from pytest_icbench.model.measurement import Result
from pytest_icbench.report.figure import dots, heatmap, launches, losses, rate_charts, scaling, shares
from pytest_icbench.report.figure.forest import forest_figures
from pytest_icbench.report.figure.load_changes import following_figures
from pytest_icbench.report.figure.noisy_neighbour_ratios import noisy_neighbour_figures
from pytest_icbench.report.figure.path_chart import path_chart
from pytest_icbench.report.value_changes import comparisons


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
    def rates(self) -> list[Result]:
        """The results of throughput."""
        return of_kind(self.results, Throughput) + of_kind(self.results, Search)


class Section(NamedTuple):
    """A section of charts.

    Attributes:
        name: the ``kind`` of its charts, and its anchor on the page.
        place: where it stands. Within a place sections keep the order of the table.
    """

    name: str
    heading: str
    charts: Callable[[Content], Sequence[Figure]]
    place: Place = "charts"


def _charts(charts: Charts) -> Section:
    return Section(charts.section, charts.heading, lambda page: charts.draw(page.results, page.order), charts.place)


def _ranks(ranked: Ranked, dimension: str) -> Section:
    return Section(
        ranked.section, ranked.heading, lambda page: dots.dot_charts(page.results, page.order, dimension), "first"
    )


#: All sections in their order.
SECTIONS = (
    Section("change", "Before and after", lambda page: forest_figures(comparisons(page.results)), "first"),
    *(_ranks(kind.ranked, kind.figures.DIMENSION) for kind in KINDS if kind.ranked is not None),
    Section(
        "load",
        "Received against offered rate",
        lambda page: (
            *rate_charts.by_load(page.rates, page.order),
            *rate_charts.bursts_by_load(page.rates, page.order),
            *rate_charts.one_load(page.rates, page.order),
        ),
    ),
    Section(
        "size",
        "Rate against packet size",
        lambda page: (
            *(() if have_two_sizes(page.rates) else scaling.by_size(page.rates, page.order)),
            *rate_charts.one_size(page.rates, page.order),
        ),
    ),
    Section("heat", "Packet size and burst", lambda page: heatmap.heat_maps(page.results, page.order)),
    Section("pairs", "Several pairs: mean and total", lambda page: scaling.by_pairs(page.rates, page.order)),
    Section("cores", "Worker cores", lambda page: scaling.by_cores(page.rates, page.order)),
    Section(
        "shares",
        "Parts of a CPU",
        lambda page: (*shares.share_figures(page.rates, page.order), *shares.totals_by_number(page.rates, page.order)),
    ),
    Section("chains", "Chains: rate against length", lambda page: scaling.rates_by_length(page.rates, page.order)),
    *(_charts(charts) for kind in KINDS for charts in kind.charts),
    Section("noisy_neighbours", "Noisy neighbours", lambda page: noisy_neighbour_figures(page.results, page.order)),
    Section("followed", "Loads that change", lambda page: following_figures(page.results, page.order)),
    Section("losses", "Losses of long runs", lambda page: losses.loss_figures(page.results, page.order)),
    Section("launches", "Launches", lambda page: launches.launch_figures(page.results, page.order)),
    Section("history", "History", lambda page: page.history),
)

#: All charts of a single case in their order, which the page shows below its facts. The title of each is its heading.
CASE_CHARTS: tuple[Callable[[Result], Figure | None], ...] = (path_chart,)


def section_charts(page: Content) -> list[tuple[Section, list[Figure]]]:
    """Returns the sections that have charts, with their charts."""
    drawn = [(section, list(section.charts(page))) for section in SECTIONS]
    return [(section, charts) for section, charts in drawn if charts]


def case_charts(result: Result) -> list[Figure]:
    """Returns the charts of a single case."""
    return [drawn for chart in CASE_CHARTS if (drawn := chart(result)) is not None]
