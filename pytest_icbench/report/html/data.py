# SPDX-License-Identifier: BSD-3-Clause
"""The data of the page's script: charts, cases and their windows, as JSON. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from pytest_icbench.display import theme
from pytest_icbench.display.case_names import interval_text, limit, main_figure, main_unit, three
from pytest_icbench.display.chart import LOG_RATIO, MEASURED, Figure
from pytest_icbench.display.points import scaled
from pytest_icbench.kinds.registry import kind_of
from pytest_icbench.kinds.search.search_columns import bounds
from pytest_icbench.model.measurement import Result
from pytest_icbench.model.verdict import NOTABLE, Verdict
from pytest_icbench.report import host_states, remarks
from pytest_icbench.report.columns import of_plain, shown_verdict
from pytest_icbench.report.figure.registry import Content, case_charts, section_charts
from pytest_icbench.report.figure.series import WINDOWS, Windows, for_page
from pytest_icbench.report.html.page import Page, line
from pytest_icbench.report.overview import figure_text
from pytest_icbench.report.plain import with_plain
from pytest_icbench.report.reported_intervals import deciding, sessions_of
from pytest_icbench.report.value_changes import change_of
from pytest_icbench.wording import printable

#: The content of a column: its values, or ``{"runs": [value, number, value, number, ...]}``.
Packed = list[Any] | dict[str, list[Any]]
#: The most cases on a page with charts of the single case, which take a kilobyte each.
MOST_DRAWN = 500


def packed(values: Sequence[Any]) -> Packed:
    """Returns the values, or the runs of equal ones if there are few; ``unpacked`` of ``charts.js`` is the inverse.

    Most columns of a chart repeat: the case and the path of a percentile curve, the source, "at least".
    """
    # 1, 1.0 and True are equal, but no two of them are the same text.
    runs = [(value, len(list(run))) for (_, value), run in groupby(values, lambda value: (type(value), value))]
    return {"runs": [part for run in runs for part in run]} if 2 * len(runs) < len(values) else list(values)


def page_data(page: Page) -> str:
    """Returns JSON that is safe in a script element: it can contain neither the element's end nor a comment."""
    return json.dumps(_data(page), allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


def _data(page: Page) -> dict[str, Any]:
    results = with_plain(deciding(page.results))
    content = Content.of(results, page.history)
    charts, with_charts = Charts(), drawn_cases(results)
    sections = [
        {
            "name": section.name,
            "heading": section.heading,
            "place": section.place,
            "charts": list(map(charts.add, drawn)),
        }
        for section, drawn in section_charts(content)
    ]
    return {
        **chart_settings(content.order),
        "media": page.media,
        "plain": ["", Verdict.PASS],
        "sections": sections,
        "windows": charts.add(WINDOWS),
        "cases": [
            _case(page, place, result, charts, drawn=place in with_charts)
            for place, result in enumerate(content.results)
        ],
        "series": [None if windows is None else _packed_windows(windows) for windows in for_page(page.windows)],
        "specs": charts.specs,
    }


def chart_settings(order: Sequence[str]) -> dict[str, Any]:
    """Returns the settings with which the script draws charts; ``order`` has all series of the page."""
    scales = theme.series_scales(order, order)
    looks = zip(scales["color"]["range"], scales["shape"]["range"], strict=True)
    return {
        "config": theme.CONFIG,
        "log_ratio": LOG_RATIO,
        "measured": MEASURED,
        "looks": dict(zip(order, looks, strict=True)),
    }


def _packed_windows(windows: Windows) -> dict[str, Any]:
    fields = windows.to_dict()
    fields["launches"] = [[*times, packed(points)] for *times, points in fields["launches"]]
    return fields if any(fields["disturbed"]) else {**fields, "disturbed": []}


def drawn_cases(results: Sequence[Result]) -> set[int]:
    """Returns the indices of the results with charts of the single case: at most ``MOST_DRAWN``, notable ones first."""
    order = sorted(range(len(results)), key=lambda place: results[place].verdict not in NOTABLE)
    return set(order[:MOST_DRAWN])


def _case(page: Page, place: int, result: Result, charts: Charts, *, drawn: bool) -> dict[str, Any]:
    main = main_figure(result)
    _, factor = main_unit(result)
    ends = (None, None, None) if main is None else (main.value, main.low, main.high)
    value, low, high = (scaled(end, factor) for end in ends)
    facts = facts_of(result, page.repeats.get(page.tests[place]))
    if place in page.taken:
        facts.insert(0, ("taken from", page.taken[place]))
    known = {
        "anchor": _own_anchor(page, place, result),
        "search": result.figures.BRACKETED,
        "charts": [charts.add(chart) for chart in case_charts(result)] if drawn else [],
    }
    return {
        "test": printable(page.tests[place].rpartition("::")[2]),
        "case": printable(result.case),
        "apart": printable(", ".join(filter(None, (result.host, result.run, result.apart)))),
        "dimension": result.dimension,
        "verdict": shown_verdict(result) or "",
        "line": line(page, place, result),
        "cells": _cells(result),
        "value": value,
        "low": low,
        "high": high,
        "facts": [[name, printable(fact)] for name, fact in facts],
        **{name: fact for name, fact in known.items() if fact},
    }


def _cells(result: Result) -> list[str]:
    """Returns the texts of a case in the table of all cases: value, unit, interval, change, limit."""
    main, (unit, factor), change = main_figure(result), main_unit(result), change_of(result)
    value = "" if main is None else three(main * factor)
    ends = bounds(result) if result.figures.BRACKETED else interval_text(result)
    limited = limit(result) if result.figures.HAS_LIMIT else ""
    return [value, unit if value else "", ends, "" if change is None else change.text, limited]


def _own_anchor(page: Page, place: int, result: Result) -> str:
    """Returns the anchor of a result; empty if the script can derive it from dimension and case."""
    anchor = page.anchors[place]
    return "" if anchor == f"case-{result.dimension}-{result.case}" else printable(anchor).replace(" ", "_")


class Charts:
    """The charts of a page as JSON data; equal specifications are kept once.

    ``specs``: the specifications; a chart's ``spec`` is an index.
    """

    def __init__(self) -> None:
        self.specs: list[Mapping[str, Any]] = []
        self._places: dict[str, int] = {}

    def add(self, chart: Figure) -> dict[str, Any]:
        """Returns the data of a chart."""
        place = self._places.setdefault(json.dumps(chart.spec, sort_keys=True), len(self.specs))
        if place == len(self.specs):
            self.specs.append(chart.spec)
        columns = [packed([row[column] for row in chart.rows]) for column in range(len(chart.columns))]
        return chart.to_dict() | {"spec": place, "rows": columns}


def facts_of(result: Result, repeat: str | None = None) -> list[tuple[str, str]]:
    """Returns names and texts; facts without a value are left out. ``repeat``: the command that repeats the case."""
    treatment, identity = result.treatment, result.identity
    switch: dict[str, Any] = dict(treatment.get("switch") or {})
    facts: list[tuple[str, object]] = [
        ("verdict", _joined(result.verdict, result.reason)),
        ("evidence", result.evidence),
        ("value", (figure := figure_text(result)) and _joined(figure, result.metric)),
        *kind_of(result).facts(result),
        ("losses", remarks.describe_losses(result)),
        ("lost by hop", remarks.lost_by_hop(result)),
        ("chain", remarks.crowding(result)),
        ("functions on one CPU", remarks.side_by_side(result)),
        ("noisy neighbour", remarks.noisy_neighbour_effect(result)),
        ("changes of the load", remarks.load_changes(result)),
        ("limited by", _joined(result.bottleneck, result.bottleneck_evidence)),
        ("disturbed", remarks.disturbance(result)),
        ("table", remarks.table(result)),
        ("clock", remarks.clock_step(result)),
        ("not known", remarks.not_known(result)),
        ("states", host_states.levels(result)),
        ("dependence", remarks.dependence(result)),
        ("drift", remarks.drift(result)),
        ("launches", _joined(result.launches, remarks.rounds(result), f"ended by {result.ended_by}")),
        ("interval", (sessions := sessions_of(result)) and f"includes the spread of {sessions}"),
        ("reference", _reference(result)),
        ("no reference", result.reference_evidence),
        ("frames", _frames(result) if result.frames.scheduled else ""),
        ("switch version", switch.get("version")),
        ("DPDK", treatment.get("dpdk")),
        ("kernel", treatment.get("kernel")),
        ("host", _joined(result.host, identity.get("cpu_model"), identity.get("cpus") and f"{identity['cpus']} CPUs")),
        ("placement", _joined(result.placement, treatment.get("cpus") and _cpus(treatment["cpus"]))),
        ("repeat with", repeat),
    ]
    return [(name, str(value)) for name, value in facts if value not in (None, "", 0)]


def _reference(result: Result) -> str:
    if result.point.function is not None:
        return of_plain(result)
    ratio = result.ratio_to_reference
    return "" if ratio is None else f"{ratio:.3g} of the reference link"


def _joined(*parts: object) -> str:
    return ", ".join(str(part) for part in parts if part not in (None, "", "None"))


def _frames(result: Result) -> str:
    counters = {
        "scheduled": result.frames.scheduled,
        "sent": result.frames.sent,
        "refused": result.frames.refused,
        "received": result.frames.received,
        "lost": result.frames.lost,
        **({"acl_drops": result.frames.acl_drops} if result.frames.acl_drops else {}),
        "duplicated": result.frames.duplicated,
        "reordered": result.frames.reordered,
    }
    return ", ".join(f"{name} {count:,}" for name, count in counters.items())


def _cpus(cpus: dict[str, Any]) -> str:
    parts = [f"{who} on CPU {' '.join(map(str, cpus[who]))}" for who in ("switch", "endpoints") if cpus.get(who)]
    return ", ".join([*parts, *filter(None, [cpus.get("where")])])
