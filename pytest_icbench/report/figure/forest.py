# SPDX-License-Identifier: BSD-3-Clause
"""Forest plots of changes: a row a case with its change, its interval and its verdict, the worst first. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from pytest_icbench.display import theme
from pytest_icbench.display.case_names import short
from pytest_icbench.display.chart import CASE, HAS_INTERVAL, RATIO_AS_CHANGE, Column, Figure
from pytest_icbench.model.verdict import Verdict
from pytest_icbench.report.value_changes import Change, Comparison, in_units
from pytest_icbench.wording import grouped

#: The most rows that a chart draws; its table has all rows.
MOST = 60
#: Height of a row: a line of text, and the interval below it.
_STEP = 40
#: Width in pixels below which there is no room for a label, the change and its interval in one line.
_NARROW = 440
#: The axis is logarithmic if a ratio exceeds this or is less than its inverse.
_WIDE = 2.0
#: The parts of an id that a title can name for all rows.
_AXIS = re.compile(r"\d+B|b\d+|\d+vs\d+|R.+|c\d+|remote|blocking|interrupt|adaptive|touch")

_COLUMNS = (
    CASE,
    Column("label", "row"),
    Column("place", "place"),
    Column("verdict", "verdict"),
    Column("ratio", "now over before"),
    Column("low", "low"),
    Column("high", "high"),
    Column("text", "change"),
    Column("before", "before"),
    Column("now", "now"),
    Column("note", "remark"),
)

#: Marks by verdict, which repeat the information of colour and text.
_SHAPES = {Verdict.REGRESSED: "diamond", Verdict.IMPROVED: "triangle-up", Verdict.PASS: "circle"}
_OTHER_SHAPE = "square"


def forest_figures(comparisons: Sequence[Comparison]) -> list[Figure]:
    """Returns a chart for each value of each comparison: a rate is worse to the left, a time to the right."""
    figures = []
    for place, comparison in enumerate(comparisons):
        for name, changes in grouped(comparison.changes, lambda change: change.name).items():
            if any(change.ratio is not None for change in changes):
                figures.append(_figure(f"change-{place}-{name}", comparison, name, changes))
    return figures


def without_common(cases: Sequence[str]) -> tuple[list[str], str]:
    """Returns the ids without the parts that all share, and these parts as a text."""
    split = [case.split("-") for case in cases]
    if len(set(cases)) < 2:
        return list(cases), ""
    common = [part for part in split[0][1:] if _AXIS.fullmatch(part) and all(part in parts[1:] for parts in split)]
    labels = ["-".join(part for at, part in enumerate(parts) if not at or part not in common) for parts in split]
    return labels, " ".join(common)


def _figure(id_: str, comparison: Comparison, name: str, changes: Sequence[Change]) -> Figure:
    labels, common = without_common([change.case for change in changes])
    title, unit, factor = in_units(name)
    rows = tuple(
        _row(place, label, change, factor) for place, (label, change) in enumerate(zip(labels, changes, strict=True))
    )
    worse = "to the right" if changes[0].less_is_better else "to the left"
    of = f"{comparison.title}: change" if comparison.title else "Change"
    more = f" The {MOST} worst of {len(rows)} are drawn; the table has all." if len(rows) > MOST else ""
    return Figure(
        id=re.sub(r"\W", "-", id_),
        kind="change",
        title=f"{of} of the {title}" + (f", all with {common}" if common else ""),
        text=f"{_finding(changes)} {_facts(comparison)}Bars: intervals; grey: the allowance; worse is {worse}.{more}",
        spec=_spec(changes[:MOST], f"change of the {title}"),
        columns=tuple(
            Column(column.name, f"{column.title}, {unit}") if column.name in ("before", "now") else column
            for column in _COLUMNS
        ),
        rows=rows,
        height=_STEP * min(len(rows), MOST),
    )


def _facts(comparison: Comparison) -> str:
    """Returns the facts of a comparison as sentences. The case of letters in a candidate's name is kept."""
    facts = (fact if re.match(r"\S+:\S", fact) else fact[:1].upper() + fact[1:] for fact in comparison.facts)
    return "".join(f"{fact}. " for fact in facts)


def _finding(changes: Sequence[Change]) -> str:
    """Returns the worst changes, and the improved cases, as a sentence each."""
    sentences = []
    for verdict in (Verdict.REGRESSED, Verdict.IMPROVED):
        named = [change for change in changes if change.verdict == verdict]
        if named:
            shown = "; ".join(
                ", ".join(filter(None, (f"{change.case} {change.text}", change.values))) for change in named[:5]
            )
            rest = f"; and {len(named) - 5} more" if len(named) > 5 else ""
            sentences.append(f"{verdict}: {shown}{rest}.")
    return " ".join(sentences) or f"None of {len(changes)} is {Verdict.REGRESSED} or {Verdict.IMPROVED}."


def _row(place: int, label: str, change: Change, factor: float) -> tuple[Any, ...]:
    before, now = (
        None if value is None else float(short(value * factor).replace(",", ""))
        for value in (change.before, change.now)
    )
    text = f"{change.text or 'no value'}  {change.verdict}"
    ends = (change.ratio, change.low, change.high)
    return change.case, label, place, change.verdict, *ends, text, before, now, change.note


def _spec(changes: Sequence[Change], title: str) -> dict[str, Any]:
    bands = sorted({(change.limit, change.gain) for change in changes if change.limit is not None}, key=str)
    x = _scale(changes, title)
    y = {"field": "place", "type": "ordinal", "axis": None, "scale": {"paddingInner": 0, "paddingOuter": 0}}
    tooltip = [
        {"field": column.name, "title": column.title} for column in _COLUMNS if column.name not in ("place", "label")
    ]
    known = [{"filter": "isValid(datum.ratio)"}]
    verdicts = list(dict.fromkeys(change.verdict for change in changes))
    colour = {
        "field": "verdict",
        "type": "nominal",
        "legend": None,
        "scale": {"domain": verdicts, "range": [theme.VERDICTS[_colour(verdict)] for verdict in verdicts]},
    }
    shape = {
        "field": "verdict",
        "type": "nominal",
        "legend": None,
        "scale": {"domain": verdicts, "range": [_SHAPES.get(verdict, _OTHER_SHAPE) for verdict in verdicts]},  # type: ignore[call-overload]
    }
    text_mark = {"type": "text", "baseline": "middle", "dy": -9, "fontSize": 12}
    layers: list[dict[str, Any]] = [_band(bands[0], x)] if len(bands) == 1 else []
    if len(bands) > 1:
        layers += [_own_band(change, place, x, y) for place, change in enumerate(changes) if change.limit is not None]
    layers += [
        {"data": {"values": [{"ratio": 1}]}, "mark": {"type": "rule", "color": theme.DIM}, "encoding": {"x": x}},
        {
            "transform": [*known, HAS_INTERVAL],
            "mark": {"type": "rule", "strokeWidth": 3, "yOffset": 9},
            "encoding": {"x": {**x, "field": "low"}, "x2": {"field": "high"}, "y": y, "color": colour},
        },
        {
            "transform": known,
            "mark": {"type": "point", "filled": True, "size": 110, "opacity": 1, "yOffset": 9},
            "encoding": {"x": x, "y": y, "color": colour, "shape": shape, "tooltip": tooltip},
        },
        {
            "mark": {
                **text_mark,
                "align": "left",
                "limit": {"expr": f"max(width - (width < {_NARROW} ? 165 : 265), 90)"},
                "dx": 4,
            },
            "encoding": {"x": {"value": 0}, "y": y, "text": {"field": "label"}, "tooltip": tooltip},
        },
        {
            "mark": {**text_mark, "align": "right", "fontWeight": "bold", "dx": -4},
            "encoding": {"x": {"value": "width"}, "y": y, "text": {"field": "shown"}, "color": colour},
        },
    ]
    return {
        "transform": [
            {"filter": f"datum.place < {MOST}"},
            # On a narrow screen the interval is drawn, but not written.
            {"calculate": f"width < {_NARROW} ? replace(datum.text, / [(].*[)]/, '') : datum.text", "as": "shown"},
        ],
        "layer": layers,
    }


def _colour(verdict: str) -> str:
    return next((known.colour for known in Verdict if known == verdict), "ink")


def _scale(changes: Sequence[Change], title: str) -> dict[str, Any]:
    """Returns the axis of ratios, with changes in percent on it; far changes make it logarithmic."""
    ratios = [value for change in changes for value in (change.ratio, change.low, change.high) if value is not None]
    ends = [*ratios, *(value for change in changes for value in (change.limit, change.gain) if value is not None), 1.0]
    low, high = min(ends), max(ends)
    axis = {"title": title, "labelExpr": RATIO_AS_CHANGE, "tickCount": 5}
    if low > 0 and (high > _WIDE or low < 1 / _WIDE):
        scale: dict[str, Any] = {"type": "log", "nice": True, "domain": [low / 1.05, high * 1.05]}
    else:
        span = max(high - low, 0.04)
        scale = {"zero": False, "nice": True, "domain": [low - span * 0.05, high + span * 0.05]}
    return {"field": "ratio", "type": "quantitative", "scale": scale, "axis": axis}


def _ends(limit: float, gain: float | None) -> tuple[float, float]:
    """Returns the ends of the allowance band; without a known gain it ends at no change."""
    other = 1.0 if gain is None else gain
    return min(limit, other), max(limit, other)


def _band(band: tuple[float | None, float | None], x: dict[str, Any]) -> dict[str, Any]:
    low, high = _ends(band[0] or 1.0, band[1])
    return {
        "data": {"values": [{"ratio": low, "end": high}]},
        "mark": {"type": "rect", "color": theme.DIM, "opacity": 0.16},
        "encoding": {"x": x, "x2": {"field": "end"}},
    }


def _own_band(change: Change, place: int, x: dict[str, Any], y: dict[str, Any]) -> dict[str, Any]:
    """Returns the band of one row, for charts whose rows have different bands."""
    low, high = _ends(change.limit or 1.0, change.gain)
    return {
        "data": {"values": [{"ratio": low, "end": high, "place": place}]},
        "mark": {"type": "rect", "color": theme.DIM, "opacity": 0.16},
        "encoding": {"x": x, "x2": {"field": "end"}, "y": y},
    }
