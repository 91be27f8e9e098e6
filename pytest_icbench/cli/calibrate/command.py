# SPDX-License-Identifier: BSD-3-Clause
"""``icbench calibrate``: arguments, the run on the host, the table and the file."""

from __future__ import annotations

import argparse
import json
import sys
import time
from contextlib import ExitStack
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pytest_icbench.cli.calibrate.curve import FALSE_ALARMS, lengths, point, sentence, table
from pytest_icbench.cli.calibrate.launches import COST, INJECTED, KNOWN, Recorded, calibrate, options_for
from pytest_icbench.config import values
from pytest_icbench.config.options import Options
from pytest_icbench.config.switch_names import mode_misfit
from pytest_icbench.errors import UsageError
from pytest_icbench.measure.comparing import confirming
from pytest_icbench.model.case import Case
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.settings import LEAST_WARMUP_S, MOST_WARMUP_S, Settings
from pytest_icbench.model.traffic import Traffic
from pytest_icbench.stats.paired import factor
from pytest_icbench.wording import printable, suggestion

#: The version of the file's format.
SCHEMA = 1
TIME_S = (60.0, 86_400.0)
#: The least time in seconds between two lines of progress in a pipe.
PLAIN_INTERVAL_S = 10.0


def add_to(commands: Any) -> None:
    """Adds the subcommand."""
    command = commands.add_parser(
        "calibrate", help="measure which change a comparison of versions detects on this host, and how fast (root)"
    )
    command.add_argument("--time", metavar="T", default="10m", help="how long to measure (default: %(default)s)")
    command.add_argument(
        "--switch",
        metavar="NAME",
        default=KNOWN,
        help="the switch to compare with itself; only forward gets an injected slow-down (default: %(default)s)",
    )
    command.add_argument(
        "--variant", metavar="NAME", help=f"the switch's variant; {KNOWN} needs one with a cost (default: cost{COST})"
    )
    command.add_argument("--packet-size", metavar="N", default="64", help="frame in bytes (default: %(default)s)")
    command.add_argument("--api", metavar="API", help="technique of the endpoints (default: the switch's)")
    command.add_argument("--latency", action="store_true", help="round-trip times instead of rates")
    command.add_argument("--rate", metavar="R", default="max", help="load: max or frames per second (default: max)")
    command.add_argument(
        "--duration", metavar="S", default="1", help="measured part of a launch (default: %(default)s)"
    )
    command.add_argument("--node", metavar="KIND", default=Options().node, help="default: %(default)s")
    command.add_argument("--binary", metavar="PATH", help="the switch's binary, if it is not on PATH")
    command.add_argument(
        "--target",
        metavar="T",
        default="20m",
        help="the duration of the comparison in the final sentence (default: %(default)s)",
    )
    command.add_argument("--out", metavar="FILE", help="the file for the values (default: calibration-TIME.json)")
    command.set_defaults(command=run)


def run(arguments: argparse.Namespace) -> int:
    """Measures, prints and saves. Raises UsageError before the host is changed."""
    case, options, settings = plan(arguments)
    budget_s = values.Seconds(*TIME_S)(arguments.time, "--time")
    target_s = values.Seconds(1.0, 604_800.0)(arguments.target, "--target")
    out = Path(arguments.out or f"calibration-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.json")
    if out.is_dir() or not out.absolute().parent.is_dir():
        raise UsageError(f"--out: {out} cannot be written: name a file in a directory that exists")
    recorded = measured(case, options, settings, budget_s)
    document = evaluate(case, recorded, target_s)
    try:
        out.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--out: {out} cannot be written ({error.strerror})") from None
    for line in [*document["text"], f"saved: {out}"]:
        print(line)
    return 0


def plan(arguments: argparse.Namespace) -> tuple[Case, Options, Settings]:
    """Returns the case to measure, with its options and settings. Raises UsageError."""
    from pytest_icbench.driver.node.registry import node_kind
    from pytest_icbench.driver.switch.registry import builtin_switches

    catalogue = builtin_switches()
    node_kind(arguments.node, "--node")
    name = arguments.switch
    if name not in catalogue:
        raise UsageError(f"--switch: there is no switch '{name}'{suggestion(name, tuple(catalogue))}")
    mode = arguments.variant or (f"cost{COST}" if name == KNOWN else None)
    if mode is not None and (reason := mode_misfit(catalogue[name], mode)):
        raise UsageError(f"--variant: {reason}")
    if arguments.api is not None and arguments.api not in catalogue[name].apis:
        raise UsageError(f"--api: {name} has no API {arguments.api}; it has {' '.join(catalogue[name].apis)}")
    size, *more = values.packet_sizes(arguments.packet_size, "--packet-size")
    if more:
        raise UsageError(f"--packet-size: '{arguments.packet_size}' is not one size")
    load, *others = values.rates(arguments.rate, "--rate")
    rate = load if isinstance(load, Rate) else load.at(Traffic(size), "--rate")
    if others or not (rate.is_max or rate.pps):
        raise UsageError(f"--rate: '{arguments.rate}' is not one load; give max, frames or bits per second")
    case = Case(
        name,
        traffic=Traffic(size),
        rate=rate,
        mode=mode,
        api=arguments.api,
        dimension="latency" if arguments.latency else "throughput",
    )
    binaries = {}
    if arguments.binary is not None:
        if not Path(arguments.binary).is_file():
            raise UsageError(f"--binary: there is no file {arguments.binary}")
        binaries[name] = Path(arguments.binary)
    options = options_for(Options(node=arguments.node, binaries=binaries), case)
    duration = values.Seconds(0.05, 3600.0)(arguments.duration, "--duration")
    settings = Settings(
        warmup_s=LEAST_WARMUP_S,  # as the launches of a comparison, whose noise and time it tells
        max_warmup_s=MOST_WARMUP_S,
        duration_s=duration,
        window_s=min(0.1, duration / 5),
        reference=False,
        ring=options.ring,
    )
    return case, options, settings


def measured(case: Case, options: Options, settings: Settings, budget_s: float) -> Recorded:
    """Measures the launches. The host is held and restored as by a run of benchmarks."""
    from pytest_icbench.driver.switch.registry import builtin_switches
    from pytest_icbench.host.signals import SignalGuard
    from pytest_icbench.plugin.run import check_root
    from pytest_icbench.testbed.testbed import Testbed

    check_root()
    cases = [replace(case, candidate=candidate.name) for candidate in options.variant]
    testbed = Testbed(builtin_switches(), options, cases, {})
    for candidate in options.variant:
        testbed.placement(replace(case, candidate=candidate.name))
    progress = _Progress()
    with ExitStack() as undo:
        undo.enter_context(SignalGuard())
        testbed.hold()
        undo.callback(testbed.close)
        undo.callback(progress.clear)
        return calibrate(testbed, case, settings, budget_s, progress.show)


def evaluate(case: Case, recorded: Recorded, target_s: float) -> dict[str, Any]:
    """Returns the figures as JSON data, with the text that shows them. Pure.

    Args:
        target_s: duration of the comparison in the final sentence.
    """
    longest = int(target_s / recorded.pair_s / 2) if recorded.pair_s else 0
    points = [point(recorded.same, pairs, recorded.pair_s) for pairs in lengths(min(longest, 200))]
    text = [
        f"{case.id}, {sum(map(len, recorded.same))} pairs of the same version, {recorded.pair_s:.1f} s a pair",
        *table(points),
    ]
    injected = None
    if recorded.slower:
        ratios = [value for block in recorded.slower for value in block]
        estimate = factor(ratios, [1.0] * len(ratios))
        injected = {
            "cycles": INJECTED,
            "expected": recorded.expected,
            "ratio": estimate.value,
            "low": estimate.low,
            "high": estimate.high,
        }
        text.append(_injected(injected))
    text.append(sentence(points, target_s))
    return {
        "schema": SCHEMA,
        "case": case.id,
        "axes": case.to_dict(),
        "at": time.time(),
        "pair_s": recorded.pair_s,
        "false_alarms": FALSE_ALARMS,
        "confirming": confirming(1),
        "points": [asdict(item) for item in points],
        "injected": injected,
        "same": recorded.same,
        "slower": recorded.slower,
        **recorded.surroundings,
        "text": [printable(line) for line in text],
    }


def _injected(figures: dict[str, Any]) -> str:
    """Returns the sentence about the injected slow-down."""
    ratio = f"{(figures['ratio'] - 1) * 100:+.1f} %"
    if figures["low"] is not None:
        ratio += f" ({(figures['low'] - 1) * 100:+.1f} % to {(figures['high'] - 1) * 100:+.1f} %)"
    text = f"injected slow-down: measured {ratio}"
    return text if figures["expected"] is None else f"{text}, its cycles make {(figures['expected'] - 1) * 100:+.1f} %"


class _Progress:
    """The display of progress: a line that is overwritten on a terminal, a line now and then in a pipe."""

    def __init__(self) -> None:
        self._live = sys.stderr.isatty()
        self._last: float | None = None

    def show(self, text: str) -> None:
        """Shows a text, in a pipe at most every ``PLAIN_INTERVAL_S``."""
        now = time.monotonic()
        if self._live:
            sys.stderr.write(f"\r{text[:99]}\x1b[K")
            sys.stderr.flush()
        elif self._last is None or now - self._last >= PLAIN_INTERVAL_S:
            self._last = now
            print(text, file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Clears the line on a terminal."""
        if self._live:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
