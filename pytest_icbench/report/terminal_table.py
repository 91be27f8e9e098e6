# SPDX-License-Identifier: BSD-3-Clause
"""Results as tables for terminals: one for each size of frames, rates and round trips side by side. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from typing import NamedTuple

from pytest_icbench.display.case_names import (
    disambiguated,
    host_legend,
    hosts_apart,
    label,
    main_figure,
    number,
    path_of,
    shared,
    traffic,
)
from pytest_icbench.display.table import Cells, Column, In, grid, listing
from pytest_icbench.kinds.registry import KINDS, kind_of
from pytest_icbench.model.measurement import Result
from pytest_icbench.model.verdict import Verdict
from pytest_icbench.report.columns import columns
from pytest_icbench.report.notes import notes as all_notes
from pytest_icbench.report.overview import REFERENCES, in_common_states, verdict_named
from pytest_icbench.report.plain import with_plain
from pytest_icbench.report.remarks import programs, shares_cpus
from pytest_icbench.report.reported_intervals import with_sessions
from pytest_icbench.report.value_changes import change_of
from pytest_icbench.wording import counted, grouped, printable, wrapped

#: Widest line where the width of the terminal is not known.
WIDTH = 100
#: The most rows of a table, and of all tables, without ``-v``.
MOST_ROWS, MOST_IN_ALL = 40, 120
#: The title of a dimension's table, which says what its columns mean.
_TITLES = {table: title for kind in KINDS for table, title in kind.titles.items()}
#: Metrics that stand in the head; the title has the load of any other.
_NAMED = ("ndr", "pdr", "mfr", "trace")
#: Kinds whose values stand side by side in the row of a path.
_OF_FRAMES = In.THROUGHPUT | In.LATENCY | In.VARIATION


class _Block(NamedTuple):
    """Columns of one kind and metric: the results by the names of their rows, and what all of them share."""

    where: In
    metric: str
    rows: dict[str, Result]
    load: str


def table(results: Sequence[Result], width: int = WIDTH, *, verbose: bool = False) -> list[str]:
    """Returns the tables, the best row first, then notes on their results.

    Args:
        width: the most columns of a line.
        verbose: whether to show all columns, rows and notes.
    """
    apart = disambiguated(with_plain(with_sessions(in_common_states(hosts_apart(results)))))
    lines: list[str] = []
    left, hidden = (len(apart) if verbose else MOST_IN_ALL), 0
    for title, blocks in _sections(apart, verbose=verbose):
        number_of_rows = len({name for block in blocks for name in block.rows})
        if left <= 0:
            hidden += number_of_rows
            continue
        most = number_of_rows if verbose else min(MOST_ROWS, left)
        lines += [*([""] if lines else []), *_section(title, blocks, width, most, verbose=verbose)]
        left -= most
    if hidden:
        lines += ["", f"{counted(hidden, 'more row')}: -v shows all, and so does the page"]
    legend = [line for text in host_legend(results) for line in wrapped(text, width)]
    notes = [line for note in all_notes(apart, brief=not verbose) for line in wrapped(printable(note), width)]
    below = [*notes, *legend]
    return [*lines, *([""] if below else []), *below] if lines else []


def _sections(results: Sequence[Result], *, verbose: bool) -> list[tuple[str, list[_Block]]]:
    """Returns the title of each table with its blocks.

    A table has the paths of one size of frames, or the sizes of one path where there are more sizes than paths.
    """
    of_frames = [result for result in results if _where(result) in _OF_FRAMES]
    sizes, paths = {traffic(result).size for result in of_frames}, set(map(path_of, of_frames))
    by_path = len(sizes) > len(paths)
    out = []
    for (_, _, title), group in grouped(_in_order(results), lambda result: _key(result, by_path=by_path)).items():
        kinds = grouped(group, _where)
        blocks = [_block(where, of_kind, by_path=by_path) for where, of_kind in kinds.items()]
        if verbose and (varied := _varied(group)):
            blocks.append(_block(In.VARIATION, varied, by_path=by_path)._replace(load=""))
        out.append((title, blocks))
    return out


def _varied(group: Iterable[Result]) -> list[Result]:
    return [result for result in group if number(result, result.round_trips.pdv_p50_ns) is not None]


def _key(result: Result, *, by_path: bool) -> tuple[str, In, str]:
    host = result.host or ""
    on = f" on {host}" if host else ""
    where = _where(result)
    if where not in _OF_FRAMES:
        title = _TITLES[kind_of(result).table(result)]
        return host, where, title.format(kind=result.dimension, metric=result.metric) + on
    return host, _OF_FRAMES, printable(path_of(result) if by_path else traffic(result).size) + on


def _where(result: Result) -> In:
    return kind_of(result).shown


def _in_order(results: Sequence[Result]) -> list[Result]:
    """Returns the results of each host together, with short frames first."""
    hosts = list(dict.fromkeys(result.host for result in results))
    return sorted(results, key=lambda result: (hosts.index(result.host), result.point.traffic.mean_bytes))


def _block(where: In, group: Sequence[Result], *, by_path: bool) -> _Block:
    """Returns a block whose rows are named by what distinguishes them, the best first unless they go by size."""
    loads = [traffic(result) for result in group]
    of_frames = where in _OF_FRAMES
    kept = [name for name in _LOAD if of_frames and len({getattr(load, name) for load in loads}) > 1]
    end = "" if of_frames else shared([result.case for result in group])
    rows: dict[str, Result] = {}
    for result in sorted(group, key=_rank) if of_frames and not by_path else group:
        of = ", ".join(filter(None, (result.run, result.apart)))
        name = (result.point.load.row or label(result.case, end)) + (f" ({of})" if of else "")
        if of_frames:
            case = result.case.removesuffix("-remote").removesuffix(f"-{result.point.node}")
            parts = dict(zip(_LOAD, case.rsplit("-", len(_LOAD))[1:], strict=False))
            first = result.point.traffic.label if by_path else path_of(result)
            name = "-".join([first, *(parts.get(part, "") for part in kept)])
        name = printable(name)
        # Names have to differ, whatever a later version writes.
        rows[next(each for each in _numbered(name) if each not in rows)] = result
    one = ("pairs",) if loads[0].pairs == 1 else ()
    hidden = ("packet_size", "header", "flows", "direction", "queues", "routes", *kept, *one)
    load = loads[0].say(*hidden) if of_frames else ""
    metrics = {result.metric for result in group} & {*_NAMED}
    return _Block(
        where,
        metrics.pop() if len(metrics) == 1 and not kept else "",
        rows,
        f"{group[0].figures.NOUN} with {load}" if load else "",
    )


#: The axes at the end of an id, in its order.
_LOAD = ("burst", "pairs", "rate")


def _numbered(name: str) -> Iterator[str]:
    yield name
    yield from (f"{name} (no. {number})" for number in count(2))


def _rank(result: Result) -> tuple[bool, float]:
    value = float(main_figure(result) or 0.0)
    return main_figure(result) is None, value if result.figures.LESS_IS_BETTER else -value


def _section(title: str, blocks: Sequence[_Block], width: int, most: int, *, verbose: bool) -> list[str]:
    """Returns the lines of a table; blocks that share no row follow each other."""
    several = len({name for block in blocks for name in block.rows}) > 1
    alike = [_cells(block, (), several=several, verbose=verbose)[1] for block in blocks]
    main = [texts for block, texts in zip(blocks, alike, strict=True) if block.where is not In.VARIATION] or alike
    of_all = [text for text in main[0] if all(text in texts for texts in main)]
    about = [_about(block, texts, of_all) for block, texts in zip(blocks, alike, strict=True)]
    about = [*filter(None, about), *([f"all {', '.join(of_all)}"] if of_all else [])]
    lines = wrapped(f"{title}{': ' if about else ''}{'; '.join(about)}", width)
    joined = bool(set.intersection(*(set(block.rows) for block in blocks)))
    for part in [blocks] if joined else [[block] for block in blocks]:
        lines += _rows(part, width, most, several=several, verbose=verbose)
    return lines


def _about(block: _Block, alike: Sequence[str], of_all: Sequence[str]) -> str:
    """Returns a block's load, and what its rows alone have in common."""
    own = ", ".join(text for text in alike if text not in of_all)
    return f"{block.load} ({own})" if own and block.load else block.load or own


def _rows(blocks: Sequence[_Block], width: int, most: int, *, several: bool, verbose: bool) -> list[str]:
    """Returns the rows of blocks side by side; one block after the other if the width is too small for that."""
    names = list(dict.fromkeys(name for block in blocks for name in block.rows))
    cells = [column for block in blocks for column in _cells(block, names, several=several, verbose=verbose)[0]]
    marks = _marks([next(block.rows[name] for block in blocks if name in block.rows) for name in names])
    cells += [Cells("", marks, number=False)] if len(set(marks)) > 1 else []
    cells = [column._replace(texts=column.texts[:most]) for column in cells]
    lines = grid(names[:most], cells, width)
    if lines is None and len(blocks) > 1:
        return [line for block in blocks for line in _rows([block], width, most, several=several, verbose=verbose)]
    more = [f"and {counted(len(names) - most, 'more row')}: -v shows all, and so does the page"]
    return [*(lines or listing(names[:most], cells, width)), *(more if len(names) > most else [])]


def _cells(block: _Block, names: Sequence[str], *, several: bool, verbose: bool) -> tuple[list[Cells], list[str]]:
    """Returns a block's columns, and the texts that stand in the title because they are the same in all rows."""
    marks = set(_marks(list(block.rows.values())))
    kept, alike = [], [mark for mark in marks if mark and several and len(marks) == 1]
    for column in columns(block.where):
        if In.MORE in column.shown and not verbose:
            continue
        texts = {name: column.text(result) for name, result in block.rows.items()}
        if not any(texts.values()) and block.where not in column.always:
            continue
        if several and len(set(texts.values())) == 1 and not column.main:
            alike += _alike(column, next(iter(texts.values())), compared=any(map(change_of, block.rows.values())))
        else:
            kept.append(
                Cells(
                    column.head(metric=block.metric),
                    [texts.get(name, "") for name in names],
                    column.number,
                )
            )
    return kept, alike


def _alike(column: Column, text: str, *, compared: bool) -> list[str]:
    """Returns what the title says in place of a column; nothing for verdicts that nobody asked for.

    A PASS without a comparison is about limits. Alone it would look like an answer beside an undecided ranking.
    """
    if text == Verdict.PASS and not compared:
        return [f"within limits ({text})"]
    named = text if verdict_named(text) else f"{column.name} {text} {column.unit}".strip()
    return [] if text == "-" else [named]


def _marks(results: Sequence[Result]) -> list[str]:
    """Returns what distinguishes each row's path: programs of another kind, no switch, or endpoints that share CPUs."""
    mixed = len({programs(result) for result in results} - {""}) > 1

    def marks(result: Result) -> Iterator[str]:
        if mixed and (kind := programs(result)):
            yield kind
        if result.switch in REFERENCES and _where(result) in _OF_FRAMES:
            yield "no switch"
        if shares_cpus(result):
            yield "shared CPU"

    return [", ".join(marks(result)) for result in results]


#: Widths that keep the lines of a run aligned, by the column's name; longer texts push the rest to the right.
_WIDTHS = {"rate": 13, "p50": 13, "interval": 14, "p99": 14, "loss": 14, "limit": 8, "verdict": 4}
#: Columns that keep their width even if a result has no text for them.
_KEPT = {True: ("rate", "interval", "loss", "limit"), False: ("p50", "interval", "p99", "loss")}


def result_line(result: Result, left_out: str = "", width: int = 0) -> str:
    """Returns a result on one line.

    Args:
        left_out: the end of ids that all cases of the run share.
        width: room for the id.
    """
    (result,) = with_sessions([result])
    cells = [label(result.case, left_out).ljust(width)]
    for column in columns(In.LINE):
        text = column.say(result)
        if text or (result.is_number and column.name in _KEPT[result.figures.SAYS_METRIC]):
            right = column.name in ("rate", "p50")
            room = _WIDTHS.get(column.name, 0)
            cells.append(text.rjust(room) if right else text.ljust(room))
    return "  ".join(cells).rstrip()
