# SPDX-License-Identifier: BSD-3-Clause
"""Detection: versions side by side are told apart where they differ, and are not where they are the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from pytest_icbench.errors import Unsupported
from pytest_icbench.stats.noninferiority import Margin
from pytest_icbench.stats.paired import factor
from pytest_icbench.stats.quantiles import Estimate
from validation import drawing
from validation.model import Found, Row, Settings
from validation.pools.detection import FILE, LENGTHS, RIGS, ROUNDS, UNITS, Pool, Unit, host, record

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Six launches a side show a version that is 10 % slower, and accuse none that is the same"
CLAIM = (
    "Of 60 comparisons of six launches with six, half a second each, none of the same version ends in REGRESSED, and"
    " at least 59 of a version that is 10 % slower do. Of 10,000 comparisons drawn from the recorded launches of the"
    " same version at most 1 % do."
)
METHOD = """
The forwarder (`forward:costN`) spends N cycles on each frame; two rigs have the same cost, one costs 5 % of the rate,
one 10 %. Their launches take turns in one pool: 720 of the same version (on two rigs), 360 at each slow-down, in 60
units of six rounds each. Each unit is a comparison at each level, of neighbours in time: (a, b), (a, 5 %), (b, 10 %),
in alternating order. Rigs are built anew for every block of seven units. The interval is the plugin's own (95 %, of
pairs), and so is the margin, with the default allowance of 3 %. It is one look by one pair of rigs: a session takes
three pairs or more, and a second look before it accuses anything, so it takes longer
([what rigs differ by](#what-a-rig-draws-when-it-is-built-accuses-no-version) has a claim of its own).

The rule, the costs, and the share of a launch for which the forwarder may wait for its CPU before the launch is
repeated (another process of the host ran there; the value itself is not looked at) were fixed on a pilot of 14 units
that is not part of the pool. The drawn comparisons take six of all rounds at random, one rig as the new version in
all six. Others take six and six of all launches, neighbours or not.

The pool takes 23 minutes of the whole machine and is recorded beforehand (`benchmarks/README.md`), in blocks; another
host begins a new pool. The claim refers to that record.
"""
SECONDS = 5.0
FIGURES = {
    "intervals": "The interval of each comparison, by the version's slow-down. Dashed: the allowance.",
    "power": "Part of the comparisons at 5 % that find the slower version, against their time, by allowance.",
}

MARGIN = Margin("higher")
LEAST_FOUND, MOST_FALSE, DRAWN = 59, 0.01, 10_000
#: By how much the slow-down of the whole pool may miss what was injected, in parts of the rate.
SHIFT = 0.005
#: Allowances of the curve, and how many neighbouring units make one comparison.
ALLOWANCES, JOINED = (0.03, 0.04, 0.045, 0.0475), (1, 2, 3, 6)
LEVELS = {"0 %": ("a", "b"), "5 %": ("a", "slow5"), "10 %": ("b", "slow10")}


def check(settings: Settings) -> Found:
    if not settings.quick:
        pool = Pool.read(FILE)
        if pool is None or len(pool.units) < UNITS or pool.host != host():
            raise Unsupported("no whole pool of this host is recorded: python -m validation.pools.detection")
        return assemble(pool, settings)
    with TemporaryDirectory() as directory:
        return assemble(record(Path(directory) / "pool.jsonl", 2, settings), settings)


def compared(unit: Sequence[Unit], level: str) -> Estimate:
    """The ratio of the slower version (or the same) over the other, of one or several units."""
    before, now = LEVELS[level]
    own, other = ([value for each in unit for value in each.pps[name]] for name in (now, before))
    return factor(own, other)


def assemble(pool: Pool, settings: Settings) -> Found:
    """The figures out of a recorded pool."""
    units = pool.units
    full = len(units) == UNITS
    rows: list[Row] = []
    for level, (before, now) in LEVELS.items():
        launches = len(units) * ROUNDS
        told = f"{2 * launches} launches" if level == "0 %" else f"{launches} launches, {launches} beside them"
        found = compared(units, level)
        wanted = (1 - RIGS[now]) / (1 - RIGS[before])
        bound = f"{wanted - SHIFT:g} to {wanted + SHIFT:g}"
        rows.append(
            Row.of(
                f"rate at {level} slow-down over the base's, {told}",
                found,
                bound,
                held=abs(found.value - wanted) <= SHIFT,
            )
        )
    intervals: dict[str, list[list[float | None]]] = {}
    for level in LEVELS:
        each = [compared([unit], level) for unit in units]
        regressed = sum(MARGIN.change(one) == "worse" for one in each)
        bounds = {"0 %": ("0", regressed == 0), "10 %": (f"at least {LEAST_FOUND}", regressed >= LEAST_FOUND)}
        bound, held = bounds.get(level, ("", True)) if full else ("", True)
        rows.append(Row(f"REGRESSED of {len(each)} comparisons at {level}", regressed, bound, held))
        intervals[level] = [[one.value, one.low, one.high] for one in each]
    settings.tell("drawn comparisons")
    rows += drawn(units, settings)
    curve = power(units)
    for point in curve:
        if point["allowance"] == ALLOWANCES[0]:
            rows.append(Row(f"REGRESSED at 5 %, {point['seconds']:.0f} s a comparison", point["found"]))
    return Found(tuple(rows), {"intervals": intervals, "power": curve}, notes(pool))


def drawn(units: Sequence[Unit], settings: Settings) -> list[Row]:
    """False alarms among comparisons drawn from the launches of the same version."""
    random, times = Random(settings.seed), settings.count(DRAWN, 200)
    rounds = [pair for unit in units for pair in zip(unit.pps["a"], unit.pps["b"], strict=True)]
    rigs = list(zip(*rounds, strict=True))
    rows = []
    for name, bound in (("neighbours", True), ("launches of any time", False)):
        alarms = {0.03: 0, 0.0: 0}
        for _ in range(times):
            if bound:
                pairs = [random.choice(rounds) for _ in range(ROUNDS)]
            else:
                pairs = list(zip(*(random.sample(rig, ROUNDS) for rig in rigs), strict=True))
            # One rig is the new version in all pairs: what the rigs differ by must not cancel.
            new, old = random.sample((0, 1), 2)
            found = factor([pair[new] for pair in pairs], [pair[old] for pair in pairs])
            for allowance in alarms:
                alarms[allowance] += Margin("higher", allowance=allowance).change(found) == "worse"
        for allowance, count in alarms.items():
            share = count / times
            limited = f"at most {MOST_FALSE:.0%}" if allowance else ""
            what = f"REGRESSED of {times} comparisons drawn from the same version, {name}, allowance {allowance:.0%}"
            rows.append(Row(what, f"{share:.2%}", limited, not limited or share <= MOST_FALSE))
    return rows


def power(units: Sequence[Unit]) -> list[dict[str, Any]]:
    """Part of the comparisons at 5 % that end in REGRESSED, by allowance and by how long each takes."""
    found = []
    for joined in JOINED:
        groups = [
            units[begin : begin + joined]
            for begin in range(0, len(units) - joined + 1, joined)
            if units[begin].block == units[begin + joined - 1].block
        ]
        if not groups:
            continue
        # Of the four launches of a round two are compared.
        seconds = sum(unit.seconds for group in groups for unit in group) / len(groups) / 2
        ratios = [compared(group, "5 %") for group in groups]
        for allowance in ALLOWANCES:
            margin = Margin("higher", allowance=allowance)
            regressed = sum(margin.change(ratio) == "worse" for ratio in ratios)
            found.append(
                {
                    "allowance": allowance,
                    "seconds": round(seconds, 1),
                    "share": regressed / len(groups),
                    "found": f"{regressed} of {len(groups)}",
                }
            )
    return found


def notes(pool: Pool) -> tuple[str, ...]:
    units = pool.units
    repeated = sum(unit.repeated for unit in units)
    launches = len(units) * ROUNDS * len(RIGS)
    seconds = sum(unit.seconds for unit in units)
    took = (
        f"{launches} launches of {LENGTHS.duration_s:g} s in {units[-1].block + 1} blocks took {seconds / 60:.0f}"
        f" minutes; {repeated} more were repeated because another process ran on the forwarder's CPU."
    )
    stolen = max(unit.steal for unit in units)
    return took, f"Greatest share of an endpoint's CPU time in a launch that the hypervisor took: {stolen:.1%}."


def draw(name: str, figure: Figure, data: Mapping[str, Any]) -> None:
    axes = figure.subplots()
    if name == "power":
        for place, allowance in enumerate(ALLOWANCES):
            points = [point for point in data["power"] if point["allowance"] == allowance]
            axes.plot(
                [point["seconds"] for point in points],
                [100 * point["share"] for point in points],
                marker="o",
                color=drawing.COLOURS[place],
                label=f"allowance {allowance * 100:g} %",
            )
        axes.set(xlabel="seconds a comparison", ylabel="found, %", ylim=(-3, 103))
        axes.legend(fontsize=7)
        return
    for place, (level, intervals) in enumerate(data["intervals"].items()):
        for number, (value, low, high) in enumerate(intervals):
            axes.plot([number, number], [low, high], color=drawing.COLOURS[place], linewidth=1)
            axes.plot([number], [value], ".", color=drawing.COLOURS[place], label=level if number == 0 else None)
    axes.axhline(MARGIN.limit, **drawing.LIMIT)
    axes.set(xlabel="comparison", ylabel="rate over the base's")
    axes.legend(fontsize=7)
