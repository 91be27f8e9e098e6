# SPDX-License-Identifier: BSD-3-Clause
"""``icbench baseline``: lists, drops and thins the sessions of a baseline."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from pytest_icbench.cli.baseline import BASELINES
from pytest_icbench.config import values
from pytest_icbench.errors import UsageError
from pytest_icbench.gate.baseline_comparison import compute_power
from pytest_icbench.gate.entry import Entry, newest
from pytest_icbench.gate.margins import MAIN, Margins
from pytest_icbench.model.measurement import CYCLES
from pytest_icbench.stats.intervals import estimate_spread
from pytest_icbench.stats.verdict_rule import ENOUGH_SESSIONS
from pytest_icbench.store.baselines import host_name, known_names, put
from pytest_icbench.store.baselines import load as load_baseline
from pytest_icbench.store.thresholds import Thresholds, load
from pytest_icbench.wording import percent, plain_name, printable


def add_to(commands: Any) -> None:
    """Adds the subcommand."""
    command = commands.add_parser("baseline", help="list, drop and thin the sessions that a baseline keeps")
    command.add_argument("name", metavar="NAME", nargs="?", help="the baseline; without it the names are listed")
    command.add_argument("case", metavar="CASE", nargs="*", help="pattern (*, ?, [...]) over case ids; default: all")
    command.add_argument("--thresholds", metavar="FILE", help="tolerances (default: only an allowance of 3 %%)")
    command.add_argument("--keep", metavar="N", help="thin: keep only the newest N sessions of each case")
    command.add_argument("--drop", action="store_true", help="drop the cases, or with --session one session of each")
    command.add_argument("--session", metavar="TIME", help="the time of a session, or its beginning: 2026-01-31T12")
    command.add_argument("--baselines", metavar="DIR", default=BASELINES, help=f"(default: {BASELINES})")
    command.set_defaults(command=run)


def run(arguments: argparse.Namespace) -> int:
    """Lists a baseline, or changes it. Raises UsageError."""
    directory = Path(arguments.baselines)
    _check(arguments)
    if arguments.name is None:
        for name in known_names(directory):
            print(printable(name))
        return 0
    name = values.baseline_name(arguments.name, "baseline")
    entries = load_baseline(directory, name).entries
    chosen = [entry for entry in entries if _named(entry, arguments.case)]
    if not chosen:
        raise UsageError(f"baseline: {name} has no case '{arguments.case[0] if arguments.case else '*'}'")
    if arguments.keep is not None:
        most = _number(arguments.keep)
        thinned = {id(entry): replace(entry, earlier=newest(entry.earlier, most - 1)) for entry in chosen}
        return _change(directory, name, entries, thinned)
    if arguments.drop:
        return _change(directory, name, entries, {id(entry): _without(entry, arguments.session) for entry in chosen})
    thresholds = load(Path(arguments.thresholds)) if arguments.thresholds else Thresholds()
    for line in listing(chosen, entries, thresholds):
        print(printable(line))
    return 0


def _check(arguments: argparse.Namespace) -> None:
    """Raises UsageError for arguments that do not fit together."""
    if arguments.name is None and (arguments.drop or arguments.keep or arguments.session):
        raise UsageError("baseline: name the baseline")
    if arguments.drop and arguments.keep:
        raise UsageError("baseline: --drop and --keep exclude each other; give one of them")
    if arguments.session is not None and not arguments.drop:
        raise UsageError("baseline: --session names a session to drop; add --drop")
    if arguments.drop and not arguments.case:
        raise UsageError("baseline: --drop: name the cases (patterns over their ids; '*' is all)")


def listing(chosen: Sequence[Entry], entries: Sequence[Entry], thresholds: Thresholds) -> list[str]:
    """Returns the lines of a listing, host by host: each case with its sessions, their spread and its power.

    ``entries``: all entries, since the cases of a host share the error rate of a session.
    """
    lines: list[str] = []
    for host in dict.fromkeys(host_name(entry.identity) for entry in chosen):
        cases = sum(host_name(entry.identity) == host for entry in entries)
        lines += ([""] if lines else []) + [f"host {host}"]
        for entry in chosen:
            if host_name(entry.identity) == host:
                lines += [f"  {entry.key}", *(f"    {line}" for line in _sessions(entry, cases, thresholds))]
    return lines


def _sessions(entry: Entry, cases: int, thresholds: Thresholds) -> list[str]:
    first = next(iter(entry.earlier), entry.measured)
    count = len(entry.sessions)
    text = f"{count} session{'' if count == 1 else 's'}, {first} to {entry.measured}" if count > 1 else entry.measured
    lines = [text if count > 1 else f"1 session, {text}"]
    margins = thresholds.margins(entry.case)
    lines += [line for name in (MAIN[entry.dimension], CYCLES) if (line := _power(entry, name, cases, margins))]
    alike = sum(session.level == entry.level for session in entry.sessions)
    if alike < count:
        lines.append(f"{count - alike} of them before a change that was accepted")
    if alike < ENOUGH_SESSIONS:
        lines.append(f"{ENOUGH_SESSIONS - alike} more would improve the estimate of their spread (--icbench-save)")
    return lines


def _power(entry: Entry, name: str, cases: int, margins: Margins) -> str:
    """Returns the spread of sessions and the loss that is detected; empty if a figure has too few sessions."""
    allowed = margins.for_cycles() if name == CYCLES else margins.of(entry.dimension)[0]
    sides = entry.collect_levels(name, entry.distance_ns)
    spreads = [percent(spread.deviation) for levels in sides if (spread := estimate_spread(levels)) is not None]
    if not spreads:
        return ""
    text = f"{plain_name(name)}: sessions {spreads[0]} apart"
    text += f", {spreads[1]} relative to the reference link" if len(spreads) > 1 else ""
    power = compute_power(sides, allowed.allowance, cases)
    return f"{text}; finds a loss of {percent(power.finds or 0.0)} nine times of ten{', which is weak' * power.weak}"


def _named(entry: Entry, patterns: Sequence[str]) -> bool:
    return not patterns or any(fnmatchcase(entry.case, pattern) for pattern in patterns)


def _number(text: str) -> int:
    if not re.fullmatch("0{0,9}[1-9][0-9]{0,8}", text):
        raise UsageError(f"baseline: --keep: '{printable(text)}' is not a number of sessions: give 1 or more")
    return int(text)


def _without(entry: Entry, session: str | None) -> Entry | None:
    """Returns the entry without one session; None if no session is named, to drop the whole entry."""
    if session is None:
        return None
    matching = [time for time in entry.earlier if time.startswith(session)]
    if entry.measured.startswith(session):
        raise UsageError(
            f"baseline: {entry.key}: {entry.measured} is the newest session, which has every launch; save another one"
            " first, or drop the case"
        )
    if len(matching) != 1:
        several = f"{len(matching)} sessions begin with" if matching else "no session begins with"
        raise UsageError(f"baseline: {entry.key}: {several} '{session}'; name one of those that icbench baseline lists")
    return replace(entry, earlier={time: kept for time, kept in entry.earlier.items() if time != matching[0]})


def _change(directory: Path, name: str, entries: Sequence[Entry], changed: Mapping[int, Entry | None]) -> int:
    """Writes a baseline with changed entries; an entry that became None is dropped."""
    kept = [entry for old in entries if (entry := changed.get(id(old), old)) is not None]
    for path in put(directory, name, entries, kept):
        print(printable(f"written: {path}"))
    return 0
