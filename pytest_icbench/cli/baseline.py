# SPDX-License-Identifier: BSD-3-Clause
"""``icbench accept``, ``waive`` and ``compare``: work with baselines between runs."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from shutil import get_terminal_size
from typing import Any

from pytest_icbench.config import values
from pytest_icbench.errors import UsageError
from pytest_icbench.gate.entry import Baseline, Entry, make_entry
from pytest_icbench.gate.judge import Waiver
from pytest_icbench.model import comparability
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.verdict import Verdict
from pytest_icbench.report.html.compare import compare_page
from pytest_icbench.report.markdown import compare_markdown
from pytest_icbench.report.side_comparison import WIDTH, compare_sides
from pytest_icbench.store import waiver_file
from pytest_icbench.store.baselines import read_measurements, read_source, save
from pytest_icbench.store.thresholds import Thresholds, load
from pytest_icbench.wording import printable

#: The default paths, relative to the current directory. Pytest's defaults are the same below its root directory.
BASELINES, NEWEST = "baselines", "reports/latest"


def add_commands(commands: Any) -> None:
    """Declares the subcommands; each sets ``command``."""
    accept = commands.add_parser("accept", help="make a run's values the baseline of the named cases")
    accept.add_argument("name", metavar="NAME", help="the name of the baseline, which is created if missing")
    accept.add_argument("case", metavar="CASE", nargs="*", help="pattern (*, ?, [...]) over case ids")
    accept.add_argument("--all", action="store_true", help="all cases of the run")
    accept.add_argument("--run", metavar="RUN", default=NEWEST, help=f"directory or results.jsonl (default: {NEWEST})")
    accept.add_argument(
        "--unchanged", action="store_true", help="another session of unchanged software; earlier sessions stay valid"
    )
    accept.set_defaults(command=accept_command)

    waive = commands.add_parser("waive", help="keep a case's verdict from failing tests until a day")
    waive.add_argument("case", metavar="CASE", nargs="?", help="pattern (*, ?, [...]) over case ids")
    waive.add_argument("--reason", help="the reason, shown with every waived verdict")
    waive.add_argument("--until", metavar="DATE", help="the last day on which it holds, such as 2026-01-31 (UTC)")
    waive.add_argument("--remove", action="store_true", help="remove the waivers of exactly this CASE")
    waive.set_defaults(command=waive_command)

    compare = commands.add_parser("compare", help="compare two runs or baselines in a table: B now with A before")
    compare.add_argument("a", metavar="A", help="a run's directory or results.jsonl, or a baseline's name")
    compare.add_argument("b", metavar="B", help="the same; it is judged against A")
    compare.add_argument("--case", metavar="CASE", help="only cases whose id matches this pattern")
    compare.add_argument("--thresholds", metavar="FILE", help="tolerances (default: only an allowance of 3 %%)")
    compare.add_argument("--must-match", metavar="LIST", help="see the option --icbench-must-match")
    compare.add_argument("--html", metavar="FILE", help="write the changes as a page with charts, the worst first")
    compare.add_argument("--markdown", metavar="FILE", help="write the changes as a table in Markdown, the worst first")
    compare.set_defaults(command=compare_command)
    for command in (accept, waive, compare):
        command.add_argument("--baselines", metavar="DIR", default=BASELINES, help=f"(default: {BASELINES})")


def accept_command(arguments: argparse.Namespace) -> int:
    """Saves figures as a baseline. The exit code is 1 if a named case was refused. Raises UsageError."""
    name = values.baseline_name(arguments.name, "accept")
    if bool(arguments.case) == arguments.all:
        raise UsageError("accept: name the cases (patterns over their ids), or give --all")
    source = Path(arguments.run)
    results = read_measurements(source)
    patterns = ["*"] if arguments.all else arguments.case
    for pattern in patterns:
        if not any(fnmatchcase(measurement.case, pattern) for measurement in results):
            raise UsageError(f"accept: {source} has no case '{pattern}'")
    chosen = [one for one in results if any(fnmatchcase(one.case, pattern) for pattern in patterns)]
    accepted, refused = _accept(chosen, unchanged=arguments.unchanged)
    files = save(Path(arguments.baselines), name, accepted, accepted=not arguments.unchanged)
    for entry in accepted:
        print(printable(f"{entry.key}: {'added' if arguments.unchanged else 'accepted'}"))
    for line in refused:
        print(printable(line))
    for path in files:
        print(printable(f"written: {path}"))
    return int(bool(refused) and not arguments.all)


def _accept(measurements: Iterable[Measurement], *, unchanged: bool) -> tuple[list[Entry], list[str]]:
    """Returns the entries of measurements, and a sentence for each refused measurement.

    ``unchanged``: leave out regressions, even if the case was measured again.
    """
    accepted: dict[tuple[str, ...], Entry] = {}
    refused = []
    for measurement in measurements:
        entry, name = make_entry(measurement), f"{measurement.dimension} {measurement.case}"
        if entry is not None and unchanged and measurement.verdict == Verdict.REGRESSED:
            accepted.pop((str(entry.identity), entry.key), None)
            refused.append(f"{name}: not added: a {Verdict.REGRESSED} case is not unchanged software")
        elif entry is not None:
            accepted[(str(entry.identity), entry.key)] = entry
        elif measurement.verdict == Verdict.INVALID:
            refused.append(f"{name}: not accepted: {measurement.reason}")
        else:
            refused.append(f"{name}: not accepted: long runs and trains are not compared")
    return list(accepted.values()), refused


def waive_command(arguments: argparse.Namespace) -> int:
    """Adds, removes or lists waivers. Raises UsageError."""
    directory, today = Path(arguments.baselines), datetime.now(UTC).date()
    present = waiver_file.load(directory)
    if arguments.case is None:
        if arguments.reason or arguments.until or arguments.remove:
            raise UsageError("waive: name the case, or a pattern over case ids")
        for waiver in present:
            state = f"until {waiver.until}" if waiver.holds(today) else f"expired on {waiver.until}"
            print(printable(f"{waiver.case}: {state}: {waiver.reason}"))
        return 0
    kept = [waiver for waiver in present if waiver.case != arguments.case]
    if arguments.remove:
        if len(kept) == len(present):
            raise UsageError(f"waive: nothing is waived for '{arguments.case}'")
        print(printable(f"written: {waiver_file.save(directory, kept)}"))
        return 0
    if not (arguments.reason or "").strip() or not arguments.until:
        raise UsageError("waive: a waiver needs --reason TEXT and --until DATE")
    day = waiver_file.parse_day(arguments.until, "waive: --until")
    if day < today:
        raise UsageError(f"waive: --until: {day} has passed; give a day to come")
    added = Waiver(arguments.case, arguments.reason.strip(), day.isoformat())
    print(printable(f"written: {waiver_file.save(directory, [*kept, added])}"))
    return 0


def compare_command(arguments: argparse.Namespace) -> int:
    """Prints a comparison and writes its files. The exit code is 1 if a case REGRESSED. Raises UsageError."""
    directory = Path(arguments.baselines)
    before, now = (read_source(text, directory) for text in (arguments.a, arguments.b))
    thresholds = load(Path(arguments.thresholds)) if arguments.thresholds else Thresholds()
    patterns: Sequence[str] = comparability.DEFAULT
    if arguments.must_match:
        patterns = comparability.parse_patterns(arguments.must_match, "compare: --must-match")
    if arguments.case is not None:
        before, now = (_only(side, arguments.case) for side in (before, now))
        if not before.entries and not now.entries:
            raise UsageError(f"compare: neither {arguments.a} nor {arguments.b} has a case '{arguments.case}'")
    sides = compare_sides(before, now, thresholds, patterns, get_terminal_size((WIDTH, 0)).columns)
    for line in sides.lines:
        print(line)
    for name, content in ((arguments.html, compare_page), (arguments.markdown, compare_markdown)):
        if name:
            write_text(Path(name), content(sides.comparison))
    return int(sides.regressed)


def write_text(path: Path, content: str) -> None:
    """Writes a text file and the directories above it. Raises UsageError if it cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path} cannot be written ({error.strerror}): choose another place") from None


def _only(side: Baseline, pattern: str) -> Baseline:
    """Returns the side with only the matching cases."""
    return replace(side, entries=tuple(entry for entry in side.entries if fnmatchcase(entry.case, pattern)))
