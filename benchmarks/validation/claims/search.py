# SPDX-License-Identifier: BSD-3-Clause
"""Search: a rate that is looked for is the one that is there, soon."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from statistics import linear_regression, median
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import search_simulation

from pytest_icbench.host.host_session import HostSession
from pytest_icbench.kinds.runs import measure
from pytest_icbench.kinds.search.mlrsearch import find_bounds
from pytest_icbench.measure.reference import reference_case
from pytest_icbench.measure.side import Side
from pytest_icbench.model.case import Case
from pytest_icbench.model.load import Frames
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.search_goal import goal_of
from pytest_icbench.model.settings import Settings as Lengths
from pytest_icbench.testbed.case_rig import Rig
from pytest_icbench.testbed.undo_kinds import UNDO_KINDS
from validation import drawing, rigs
from validation.model import Found, Row, Settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.figure import Figure

TITLE = "A search finds the rate that is there"
CLAIM = (
    "Behind a forwarder that dominates the path, with five costs a frame, the rate at which 0.5 % are lost is found in"
    " under 60 s each, and the slope of 1/rate against the cost is 1/f of the TSC within 3 %. On a simulated device"
    " with noise a search ends within its goal's width in 95 % of 1,000."
)
METHOD = """
The forwarder (`forward:costN`) spends N cycles on each frame, so that its rate is f / (N + what forwarding itself
costs). Each cost is searched for `pdr:0.5%` with the preset `csit` in trials of 0.2 s: on this kind of machine
something takes a CPU for some milliseconds once a second, which is half a per cent. The slope is a least-squares line.

The simulated device forwards a random rate between 0.1 and 9 Mpps; from trial to trial it differs by 0.05 % (standard
deviation), and in a tenth of the trials an interruption of up to 2 ms costs it frames. A search is right if its
relevant lower bound is no further than the goal's width (0.5 %) from the true rate. It is compared with the plain
search: halve the interval, one trial at each load, believe it. Both run on the same devices, and at one cost on the
same forwarder, in turn. The forwarder's true rate is unknown, and on a shared machine it changes from minute to minute.
So the spread of five searches' rates has no bound. It is shown beside the spread of the same forwarder's rates flat
out, each taken in the second after a search.
"""
SECONDS = 200.0
FIGURES = {"slope": "Time a frame at the rate found, against the cycles that the forwarder adds."}

COSTS = (2000, 4000, 6000, 8000, 10000)
PDR = Rate(loss_ratio=0.005)
NDR = Rate(loss_ratio=0.0)
LENGTHS = Lengths(search_trial_s=0.2, ring=1024)
TOLERANCE = 0.03
LONGEST_S = 60.0
RIGHT = 0.95
SEARCHES = 1000
NOISE: dict[str, Any] = {"jitter": 0.0005, "stall_share": 0.1}
#: More of it, to be known: what such a device does is no longer one rate.
MORE_NOISE: dict[str, Any] = {"jitter": 0.0005, "stall_share": 0.2}
#: The cost at which both searches run, and how often each does.
COMPARED, TIMES, PLAIN_TIMES = COSTS[1], 5, 2


def check(settings: Settings) -> Found:
    rows, notes = [], []
    data: dict[str, Any] = {"costs": [], "rates_pps": []}
    for cost in COSTS[:: settings.count(1, 4)]:
        settings.tell(f"a cost of {cost} cycles")
        with forwarder(cost, settings) as (rig, reference, case):
            data["tsc_hz"] = tsc_hz(rig, case)
            found = search(rig, reference, case)
            rows += figures(f"cost {cost}", found)
            if found.frames.throughput_pps is not None:
                data["costs"].append(cost)
                data["rates_pps"].append(found.frames.throughput_pps)
            if found.searched.search is not None and found.searched.search.evidence is not None:
                notes.append(f"Cost {cost}: {found.searched.search.evidence}.")
            if cost == COMPARED:
                settings.tell("beside a plain search")
                rows += compared(rig, reference, case, found, settings)
    rows.append(slope(data))
    settings.tell("simulated devices")
    rows += simulated(settings.count(SEARCHES, 50))
    return Found(tuple(rows), data, tuple(notes))


@contextmanager
def forwarder(cost: int, settings: Settings) -> Iterator[tuple[Rig, Rig, Case]]:
    """The forwarder with its reference link on the same CPUs, and the case."""
    case = Case("forward", Frames(rate=PDR), mode=f"cost{cost}")
    beside = reference_case(case, "vhost-user", family="dpdk")
    assert beside is not None
    with HostSession(UNDO_KINDS) as session:
        where = rigs.placement(session, case)
        without = replace(where, switch=())
        with rigs.built(session, case, settings, where) as rig:
            rig.pause()
            with rigs.built(session, replace(beside, port=None), settings, without) as reference:
                reference.pause()
                rig.resume()
                yield rig, reference, case


def tsc_hz(rig: Rig, case: Case) -> int:
    """The TSC's frequency, as the workload knows it."""
    _, outputs = rigs.launch(rig, case.sending(rate=Rate(10_000)), Lengths(duration_s=0.1, warmup_s=0.0))
    hello = outputs[0].hello
    assert hello is not None
    return hello.tsc_hz


def search(rig: Rig, reference: Rig, case: Case) -> Measurement:
    return measure(Side(rig, case), LENGTHS, Side(reference, replace(case, switch="direct", mode=None)))


def figures(what: str, found: Measurement) -> list[Row]:
    """The rate, whose limit it is, and the time."""
    seconds = Row(f"{what}: time, s", found.duration_s, f"under {LONGEST_S:.0f}", found.duration_s < LONGEST_S)
    if found.frames.throughput_pps is None:
        return [Row(f"{what}: PDR 0.5 %", f"{found.reason}: {found.evidence}", "a rate", held=False), seconds]
    bracket = {"low": found.frames.throughput_pps.low, "high": found.frames.throughput_pps.high}
    pps = found.frames.throughput_pps.value
    rate = Row(f"{what}: PDR 0.5 %, pps", pps, "the forwarder's", not found.lower_bound, **bracket)
    return [rate, seconds]


def slope(data: Mapping[str, Any]) -> Row:
    """Seconds a cycle, times the TSC's frequency: 1 if the rate is what the cost makes it."""
    bound = f"{1 - TOLERANCE:g} to {1 + TOLERANCE:g}"
    if len(data["costs"]) < 2:
        return Row("slope of 1/rate against the cost, times f", "too few rates", bound, held=False)
    line = linear_regression(data["costs"], [1 / rate for rate in data["rates_pps"]])
    found = line.slope * data["tsc_hz"]
    return Row("slope of 1/rate against the cost, times f", found, bound, abs(found - 1) <= TOLERANCE)


def compared(rig: Rig, reference: Rig, case: Case, first: Measurement, settings: Settings) -> list[Row]:
    """Both searches on the same forwarder, in turn: rates, how far apart they lie, times. ``first`` is ours already.

    Each of ours stands beside the rate that the same forwarder passes flat out in the second after it.
    """
    ours, plain, flat_out = [first], [], [greatest(rig, case)]
    for number in range(settings.count(TIMES, 1)):
        if number:
            ours.append(search(rig, reference, case))
            flat_out.append(greatest(rig, case))
        if number < PLAIN_TIMES:
            with patch("pytest_icbench.kinds.search.search_run.find_bounds", search_simulation.plain_binary_search):
                plain.append(search(rig, reference, case))
    rows = []
    for name, found in (("MLRsearch", ours), ("plain search", plain)):
        rates = [each.frames.throughput_pps or 0.0 for each in found]
        seconds = [each.duration_s for each in found]
        rows.append(Row(f"{name}, {case.mode}: rates, pps", " / ".join(f"{rate:,.0f}" for rate in rates)))
        rows.append(Row(f"{name}, {case.mode}: greatest rate over least", spread(rates)))
        limit = f"under {LONGEST_S:.0f}"
        rows.append(Row(f"{name}: median time, s", median(seconds)))
        rows.append(Row(f"{name}: longest time, s", max(seconds), limit, max(seconds) < LONGEST_S))
    rows.append(Row(f"flat out beside them, {case.mode}: greatest rate over least", spread(flat_out)))
    return rows


def greatest(rig: Rig, case: Case) -> float:
    """What passes in a second at the maximum rate, frames per second."""
    return rigs.launch(rig, case.sending(rate=Rate()), Lengths(ring=LENGTHS.ring))[0].throughput_pps


def spread(rates: Sequence[float]) -> str:
    """By how much the greatest exceeds the least."""
    return f"{max(rates) / min(rates) - 1:.2%} more" if min(rates) > 0 else "not every search found a rate"


def simulated(searches: int) -> list[Row]:
    """Both searches on the same simulated devices."""
    rows = []
    for rate in (PDR, NDR):
        goal = goal_of(rate, "csit")
        ours = search_simulation.score(find_bounds, goal, searches, **NOISE)
        plain = search_simulation.score(search_simulation.plain_binary_search, goal, searches, **NOISE)
        what = f"{rate.typed}, {searches} simulated devices"
        worse = search_simulation.score(find_bounds, goal, searches, **MORE_NOISE)
        rows += [
            Row(f"{what}: within the width, MLRsearch", ours.right, f"at least {RIGHT:g}", ours.right >= RIGHT),
            Row(f"{what}: within the width, plain search", plain.right),
            Row(f"{what}: within the width, MLRsearch, a fifth of the trials interrupted", worse.right),
            Row(f"{what}: median time, MLRsearch / plain, s", f"{ours.seconds:.0f} / {plain.seconds:.0f}"),
        ]
    return rows


def draw(_name: str, figure: Figure, data: Mapping[str, Any]) -> None:
    axes = figure.subplots()
    times_ns = [1e9 / rate for rate in data["rates_pps"]]
    line = linear_regression(data["costs"], times_ns)
    ends = [0, max(data["costs"], default=1)]
    axes.plot(data["costs"], times_ns, "o", color=drawing.COLOURS[0], label="found")
    axes.plot(ends, [line.intercept + line.slope * end for end in ends], color=drawing.COLOURS[0], linewidth=1)
    ideal = [line.intercept + end * 1e9 / data["tsc_hz"] for end in ends]
    axes.plot(ends, ideal, ":", color=drawing.COLOURS[1], label="1/f of the TSC")
    axes.set(xlabel="cycles added", ylabel="ns a frame")
    axes.legend(fontsize=7)
