# SPDX-License-Identifier: BSD-3-Clause
"""Results as tables of at most 100 columns. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_icbench.display.case_names import host_legend, hosts_apart
from pytest_icbench.display.table import In
from pytest_icbench.kinds.registry import KINDS, kind_of
from pytest_icbench.model.result import Result
from pytest_icbench.report.columns import columns
from pytest_icbench.report.line import label, shared
from pytest_icbench.report.notes import notes as all_notes
from pytest_icbench.report.plain import with_plain
from pytest_icbench.report.reported_intervals import with_sessions
from pytest_icbench.wording import printable, wrapped

#: Widest line of a table.
WIDTH = 100
#: Least width of the names of rows. With less room each name gets a separate line above its values.
_LEAST_NAME, _INDENT = 24, 2
#: The title of a dimension's table, which says what its columns mean.
_TITLES = {table: title for kind in KINDS for table, title in kind.titles.items()}


def table(results: Sequence[Result]) -> list[str]:
    """Returns a table for each dimension and metric, one host after the other, then notes on their results.

    A kind can have several tables.
    """
    apart = with_plain(with_sessions(hosts_apart(results)))
    hosts = list(dict.fromkeys(result.host for result in apart))
    groups: dict[tuple[str, str, str | None], list[Result]] = {}
    for result in sorted(apart, key=lambda result: hosts.index(result.host)):
        key = kind_of(result).table(result), result.metric, result.host
        groups.setdefault(key, []).append(result)
    lines: list[str] = []
    for (kind, metric, host), group in groups.items():
        if lines:
            lines.append("")
        on = f" on {host}" if host else ""
        title = _TITLES[kind].format(kind=kind, metric=metric)
        own = kind_of(group[0])
        lines += _group(title + on, metric, group, own.shown)
        for further, has, shown in own.further:
            if having := list(filter(has, group)):
                lines += ["", *_group(f"{further}{on}", metric, having, shown)]
    legend = [line for text in host_legend(results) for line in wrapped(text, WIDTH)]
    notes = [line for note in all_notes(apart) for line in wrapped(printable(note), WIDTH)]
    below = [*notes, *legend]
    return [*lines, *([""] if below else []), *below] if lines else []


def _group(name: str, metric: str, group: Sequence[Result], where: In) -> list[str]:
    common = () if where is In.STARTUP else _common(group)
    title = name + (f", all with {' '.join(common)}" if common else "")
    kept = [("case", [_name(result, common) for result in group], False)]
    for column in columns(where):
        cells = [column.text(result) for result in group]
        if where in column.always or any(cells):
            kept.append((column.head(metric=metric), cells, column.number))
    texts = [[head, *cells] for head, cells, _ in kept]
    widths = [max(map(len, text)) for text in texts]
    room = WIDTH - sum(widths[1:]) - 2 * (len(widths) - 1)
    apart = room < min(widths[0], _LEAST_NAME)
    widths[0] = _INDENT if apart else min(widths[0], room)
    lines = [_cut(title, WIDTH)]
    for name, *cells in zip(*texts, strict=True):
        if apart:
            lines.append(_middle(name, WIDTH))
        row = ["" if apart else name, *cells]
        shown = [
            _middle(text, width).rjust(width) if number else _middle(text, width).ljust(width)
            for text, width, (_, _, number) in zip(row, widths, kept, strict=True)
        ]
        lines.append("  ".join(shown).rstrip())
    return lines


def _name(result: Result, common: Sequence[str]) -> str:
    """Returns the name of a row; for containers the part of the case's id that distinguishes them."""
    return printable(result.point.load.row or label(result.case, common))


def _common(group: Sequence[Result]) -> tuple[str, ...]:
    """Returns those of burst, pairs and rate that all rows share, so that the title has them instead of each row."""
    return () if any(result.point.remote for result in group) else shared([result.case for result in group])


def _middle(text: str, width: int) -> str:
    """Shortens a text to ``width`` by leaving out its middle, since both ends of a case's id matter."""
    if len(text) <= width:
        return text
    head = (width - 1) // 2
    return text[:head] + "…" + text[len(text) - (width - 1 - head) :]


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
