# SPDX-License-Identifier: BSD-3-Clause
"""Checks a case's network functions by proofs before and after its launches and by counters; a router by proofs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median

from pytest_icbench.errors import Invalid
from pytest_icbench.measure.launch.launcher import run_launch
from pytest_icbench.measure.measured_rig import MeasuredRig
from pytest_icbench.measure.summary.launch_log import over
from pytest_icbench.model import flows
from pytest_icbench.model.case import Case
from pytest_icbench.model.cpu_allocation import CpuAllocation
from pytest_icbench.model.function_facts import FunctionCounters, FunctionTerms, FunctionWork
from pytest_icbench.model.launch import Launch, Window
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.settings import Settings

#: Frames of a train beyond the burst, as a multiple of it, and the longest train.
_BEYOND, _LONGEST = 4, 20_000
#: A window has room for a train at this rate, and the bucket has so many times the time that it needs to fill.
_SLOW_PPS, _REST = 200_000, 4
_WINDOW_S, _TRAINS = 0.05, 4
#: A policer looks at the clock as seldom as this, in seconds (that of OVS counts milliseconds).
_TICK_S = 0.001


def burst_settings(settings: Settings, terms: Sequence[FunctionTerms]) -> Settings | None:
    """Returns the settings of the launch; None if no function has a burst."""
    policers = [one for one in terms if one.burst and one.set_pps]
    if not policers:
        return None
    frames = min(_BEYOND * max(one.burst or 0 for one in policers), _LONGEST)
    fill_s = max((one.burst or 0) / (one.set_pps or 1) for one in policers)
    window_s = max(_WINDOW_S, frames / _SLOW_PPS + _REST * fill_s)
    return replace(
        settings,
        warmup_s=0.0,
        max_warmup_s=0.0,
        duration_s=_TRAINS * window_s,
        window_s=window_s,
        skip_s=0.0,
        keep_s=None,
        stream=None,
        train=f"{frames}:{frames}:1",
    )


def wrong_burst(terms_by_pair: Sequence[FunctionTerms], launch: Launch) -> str | None:
    """Returns a sentence if a policer let more of a train pass than its burst and its rate allow, or less; else None.

    All of a train is policed between the beginning of its window and the last arrival. One good train is enough: a host
    that was busy may spoil others.
    """
    for pair, terms in enumerate(terms_by_pair, start=1):
        trains = [window for window in launch.windows if window.pair == pair and window.sent]
        if not terms.burst or not terms.set_pps or not trains:
            continue
        most = min(trains, key=lambda window: window.received - _allowed(window, terms))
        least = max(trains, key=lambda window: window.received - min(window.sent, terms.burst or 0))
        where = f"function {terms.function} of pair {pair}: of {{sent:,}} frames at once {{passed:,}} passed, and"
        if most.received > _allowed(most, terms):
            allowed = f" its burst of {terms.burst:,} and its rate allow {_allowed(most, terms):,.0f}"
            return where.format(sent=most.sent, passed=most.received) + allowed
        if least.received < min(least.sent, terms.burst) * (1 - terms.tolerance):
            return where.format(sent=least.sent, passed=least.received) + f" its burst is {terms.burst:,}"
    return None


def _allowed(window: Window, terms: FunctionTerms) -> float:
    """Returns how many frames of a train may pass."""
    span_s = max((window.last_ns or window.start_ns) - window.start_ns, 0) / 1e9 + _TICK_S
    return (terms.burst or 0) * (1 + terms.tolerance) + (terms.set_pps or 0) * (1 + terms.tolerance) * span_s + 1


#: A sender that is later than this leaves a gap that a policer's burst does not make up for.
LATE_NS = 2_000_000
#: Launches of trains, at most, until one is valid.
_TRIES = 3


class FunctionTrack:
    """The functions of one case's rig, or its router, during its launches.

    ``work``: what each function did, by pair, once the launches are over; None for a case without functions.
    """

    def __init__(self, rig: MeasuredRig, case: Case) -> None:
        self._rig, self._case = rig, case
        self._before: Sequence[FunctionCounters] | None = None
        self._policed = False
        self.work: tuple[FunctionWork, ...] | None = None

    def begin(self) -> None:
        """Proves the functions, once; a rig has to run. Raises Invalid."""
        # Cases without functions have a proof if their switch routes.
        if (self._case.function is None and self._case.ip_version is None) or self._before is not None:
            return
        self._prove("before the first launch")
        self._before = () if self._case.function is None else self._rig.functions()

    def police(self, settings: Settings, executable: Path | None) -> None:
        """Proves the bursts of policers by a separate launch, once. Raises Invalid, and as ``run_launch``."""
        case = self._case
        if self._policed or case.function is None or not case.one_way or case.directions > 1:
            return
        self._policed = True
        trains = burst_settings(settings, self._rig.terms)
        if trains is None or case.blocking:
            return
        for left in reversed(range(_TRIES)):
            # Trains leave as fast as the port takes them.
            launch = run_launch(self._rig, case.sending(rate=Rate()), trains, executable=executable)
            if launch.invalid is None:
                break
            if not left:
                raise Invalid(launch.invalid, launch.evidence or "")
        if (fault := wrong_burst(self._rig.terms, launch)) is not None:
            raise Invalid("function", fault)

    def finish(self, launches: Sequence[Launch]) -> None:
        """Proves the functions again and judges what they did in the launches. Raises Invalid."""
        if self._before is None:
            return
        if self._case.function is None:
            self._prove("after the last launch")
            return
        after = self._rig.functions()
        active = flows.number(self._case.traffic.flows)
        self.work = tuple(FunctionWork.between(*readings, active) for readings in zip(self._before, after, strict=True))
        terms = self._rig.terms
        fault = too_cheap(terms, self.work)
        if fault is None and self._case.one_way:
            fault = wrong_rate(terms, self._case, launches)
        if fault is not None:
            raise Invalid("function", fault)
        self._prove("after the last launch")

    def _prove(self, when: str) -> None:
        fault = self._rig.prove()
        if fault is not None:
            raise Invalid("function", f"{fault}, {when}")


def too_cheap(terms: Sequence[FunctionTerms], work: Sequence[FunctionWork]) -> str | None:
    """Returns a sentence if frames cost a function fewer cycles than they have to; None otherwise or if unknown."""
    for function in work:
        cycles, due = function.cycles_per_frame, terms[function.pair - 1]
        if due.least_cycles and cycles is not None and cycles < due.least_cycles:
            return (
                f"function {due.function} of pair {function.pair}: a frame cost it {cycles:,.0f} cycles, and has to"
                f" cost {due.least_cycles:,}"
            )
    return None


def wrong_rate(terms_by_pair: Sequence[FunctionTerms], case: Case, launches: Sequence[Launch]) -> str | None:
    """Returns a sentence if frames did not arrive at the rate that a function is set to; None if they did.

    Frames that wait in the function's queue arrive after the window in which they were sent. So the time runs to the
    last arrival. A sender that lost its CPU offered nothing meanwhile. So only windows with a punctual sender can show
    a rate that is too low.
    """
    for pair, terms in zip(case.path.numbers, terms_by_pair if launches else (), strict=False):
        if terms.set_pps is None:
            continue
        of_pair = [[w for w in launch.windows if w.pair == pair and w.kept] for launch in launches]
        offered = _rate(
            sum(w.scheduled for ws in of_pair for w in ws), sum(w.duration_ns for ws in of_pair for w in ws)
        )
        where = f"function {terms.function} of pair {pair}"
        if offered < terms.set_pps * (1 + terms.tolerance):
            return (
                f"{where}: {offered:,.0f} frames/s were offered, and it is set to let {terms.set_pps:,.0f} pass, so it"
                " never limited any: set a lower rate"
            )
        passed = _rate(sum(w.received for ws in of_pair for w in ws), sum(map(_arriving_ns, of_pair)))
        # The windows in which nothing kept the sender from offering its frames in time.
        calm = [w for ws in of_pair for w in ws if not w.disturbed and w.lateness_p99_ns <= LATE_NS]
        if 2 * len(calm) >= sum(map(len, of_pair)):
            kept = _rate(sum(window.received for window in calm), sum(window.duration_ns for window in calm))
            passed = min(passed, kept) if kept < terms.set_pps * (1 - terms.tolerance) else passed
        else:
            passed = max(passed, terms.set_pps)
        if abs(passed / terms.set_pps - 1) > terms.tolerance:
            return (
                f"{where}: {passed:,.0f} frames/s passed, which is not within {terms.tolerance:.0%} of the"
                f" {terms.set_pps:,.0f} that it is set to"
            )
    return None


def _rate(frames: int, duration_ns: int) -> float:
    return frames * 1e9 / duration_ns if duration_ns else 0.0


def _arriving_ns(windows: Sequence[Window]) -> int:
    """Returns the time over which the frames of a launch's windows arrived: at least that of the windows."""
    spans = [(window.first_ns, window.last_ns) for window in windows if window.first_ns and window.last_ns]
    lasting = sum(window.duration_ns for window in windows)
    return max(lasting, max(last for _, last in spans) - min(first for first, _ in spans)) if spans else lasting


def by_cpu_allocation(
    works: Sequence[FunctionWork] | None, case: Case, launches: Sequence[Launch], alone: Sequence[Launch]
) -> tuple[FunctionWork, ...] | None:
    """Returns the work of functions with what each got of their CPU; unchanged for functions that share none.

    Args:
        launches: those of the case.
        alone: launches of the first function with the CPU for itself, in turn with the case's. They have no effect on
            functions of another kind, nor without allocations.
    """
    if works is None or not case.one_cpu or not launches:
        return None if works is None else tuple(works)
    if not case.cpu_allocations or case.rate.varies:
        alone = ()  # its launches are of another path, or at other loads
    cpu_ns = sum(work.cpu_ns or 0 for work in works)
    cpu_allocations = case.cpu_allocations or (CpuAllocation(),) * len(works)
    judged = []
    for work, function, cpu_allocation in zip(works, case.functions, cpu_allocations, strict=True):
        cpu_used_share = work.cpu_ns / cpu_ns if work.cpu_ns is not None and cpu_ns else None
        work = replace(
            work, cpu_used_share=cpu_used_share, cpu_share=cpu_allocation.cpu_share, cpu_quota=cpu_allocation.cpu_quota
        )
        if case.one_way:
            work = _with_goodput(work, cpu_allocation, launches, alone if function == case.functions[0] else ())
        judged.append(work)
    return tuple(judged)


def _with_goodput(
    work: FunctionWork, cpu_allocation: CpuAllocation, launches: Sequence[Launch], alone: Sequence[Launch]
) -> FunctionWork:
    rates = [counts.throughput_pps for launch in launches for counts in launch.pairs if counts.pair == work.pair]
    due = [cpu_allocation.part * launch.throughput_pps for launch in alone]
    reported = [(launch, rate / part) for launch, rate, part in zip(launches, rates, due, strict=False) if part]
    # The unit is the ratio, which is never negative: rounds have a geometric mean, and no error is below -100 %.
    ratio = over([launch for launch, _ in reported], [value for _, value in reported]) if reported else None
    return replace(
        work,
        goodput_pps=median(rates),
        alone_pps=median(launch.throughput_pps for launch in alone) if alone else None,
        goodput_error=None if ratio is None else ratio.value - 1,
        goodput_error_low=None if ratio is None or ratio.low is None else ratio.low - 1,
        goodput_error_high=None if ratio is None or ratio.high is None else ratio.high - 1,
    )
