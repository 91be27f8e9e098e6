# SPDX-License-Identifier: BSD-3-Clause
"""``icbench history``: the trends of a history file as text or data."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from pytest_icbench.config import values
from pytest_icbench.report.trends import Change, Trend, trends
from pytest_icbench.stats.change_points import LEAST_EFFECT
from pytest_icbench.store import history_file
from pytest_icbench.wording import counted, plain_name, printable, quantity

#: The version of the format of ``--json``.
SCHEMA = 1
#: The most changes of a trend that the text shows.
SHOWN = 5


def add_to(commands: Any) -> None:
    """Adds the subcommand."""
    command = commands.add_parser("history", help="show trends by case and host, and where they changed")
    command.add_argument("file", metavar="FILE", help="a file written with --icbench-history")
    command.add_argument(
        "--case", metavar="PATTERN", default="*", help="only cases whose id matches (*, ?, [...]; default: all)"
    )
    command.add_argument(
        "--least-effect",
        metavar="P",
        default=f"{LEAST_EFFECT:.0%}",
        help="ignore changes of the level by less than this (default: %(default)s)".replace("3%", "3%%"),
    )
    command.add_argument("--all-figures", action="store_true", help="show p99 and cycles per packet too")
    command.add_argument("--json", action="store_true", help="print every point, level and change as JSON")
    command.set_defaults(command=run)


def run(arguments: argparse.Namespace) -> int:
    """Prints the trends. The exit code is 1 if a line of the file could not be read; each such line is named."""
    least_effect = values.precision(arguments.least_effect, "--least-effect")
    entries, troubles = history_file.read(Path(arguments.file))
    selected = [entry for entry in entries if fnmatchcase(entry.case, arguments.case)]
    shown = trends(selected, least_effect=least_effect, every_figure=arguments.all_figures)
    if arguments.json:
        document = {"schema": SCHEMA, "least_effect": least_effect, "trends": [trend.to_dict() for trend in shown]}
        print(json.dumps(document, indent=1))
    else:
        for line in render(shown) or ["no result"]:
            print(line)
    for trouble in (*troubles, *backwards(selected)):
        print(f"icbench: {trouble}", file=sys.stderr)
    return int(bool(troubles))


def backwards(entries: Sequence[history_file.Entry]) -> list[str]:
    """Returns a sentence for each host whose clock went back between two consecutive runs of the file."""
    sentences, last = [], dict[str, history_file.Entry]()
    for entry in entries:
        before = last.get(entry.host)
        if before is not None and before.run != entry.run and entry.at < before.at:
            sentences.append(
                f"the clock of host {entry.host} went back between runs {before.run} and {entry.run}: results stand in"
                f" the order of their times, {_day(entry.at)} before {_day(before.at)}"
            )
        last[entry.host] = entry
    return [printable(sentence) for sentence in sentences]


def render(shown: Sequence[Trend]) -> list[str]:
    """Returns the trends as text, host by host: a line for each, and one for each of its last changes."""
    lines: list[str] = []
    hosts = dict.fromkeys((trend.host, trend.machine) for trend in shown)
    for host, machine in hosts:
        lines += [*([""] if lines else []), f"host {host}: {printable(machine)}"]
        for trend in shown:
            if trend.host == host:
                lines += _trend(trend)
    return lines


def _trend(trend: Trend) -> list[str]:
    """Returns the lines of a trend."""
    first, last = trend.points[0], trend.points[-1]
    level = trend.levels[-1]
    count = len(trend.points)
    text = (
        f"  {printable(trend.case)}  {plain_name(trend.figure)} ({trend.metric}): {quantity(trend.figure, last.value)},"
        f" level {quantity(trend.figure, level.value)} since {_day(trend.points[level.first].at)},"
        f" {counted(count, 'result')} since {_day(first.at)}"
    )
    lines = [text]
    hidden = len(trend.changes) - SHOWN
    if hidden > 0:
        lines.append(f"    {counted(hidden, 'earlier change')}")
    return lines + [f"    {_change(change, trend.figure)}" for change in trend.changes[-SHOWN:]]


def _change(change: Change, figure: str) -> str:
    """Returns the line of a change."""
    word = "better" if change.better else "worse"
    before, after = quantity(figure, change.before), quantity(figure, change.after)
    text = f"{_day(change.at)}  {change.relative:+.1%} ({word}): {before} to {after}"
    if change.version_before != change.version_after:
        text += f", version {change.version_before or 'unknown'} to {change.version_after or 'unknown'}"
    text += f"; between runs {change.run_before} and {change.run_after}"
    if change.apart_s > history_file.GAP_S:
        text += f", {change.apart_s / 86400:.0f} days apart"
    return printable(text)


def _day(at: float) -> str:
    """Formats a time, in seconds since the epoch, as day and minute in UTC."""
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M}"
