# SPDX-License-Identifier: BSD-3-Clause
"""Computes the figures about frames from launches. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any, Literal, TypeVar

from pytest_icbench.measure.launch import hops
from pytest_icbench.measure.summary.bottleneck import role_busy_share
from pytest_icbench.measure.summary.launch_log import over
from pytest_icbench.model.case import Case
from pytest_icbench.model.figures import FrameFigures, kept
from pytest_icbench.model.launch import DirectionResult, Launch, PairCounts, PairResult, Window
from pytest_icbench.model.path import Direction
from pytest_icbench.model.trace import LoadChange
from pytest_icbench.model.traffic import l1_gbps, l2_gbps
from pytest_icbench.stats.quantiles import Estimate, median

OfFrames = TypeVar("OfFrames", bound=FrameFigures)

#: The share of a change that has to arrive.
ARRIVED = 0.95
#: The smallest change, as a share of the greater rate: less is in the noise of a window.
LEAST_CHANGE = 0.05
#: Counters of launches that pairs and directions have, too, and the other ones.
_OF_ACCOUNTS = ("scheduled", "sent", "refused", "received", "lost", "acl_drops")
_OF_LAUNCHES = ("duplicated", "reordered", "late", "foreign", "corrupted")


def frame_figures(case: Case, launches: Sequence[Launch]) -> FrameFigures:
    """Returns the figures about frames of launches of the workload."""
    pps = over(launches, [launch.throughput_pps for launch in launches]) if launches else None
    effort = _Effort(launches)
    pairs = _per_pair(launches)
    totals: dict[str, Any] = {name: _total(launches, name) for name in (*_OF_ACCOUNTS, *_OF_LAUNCHES)}
    scheduled, sent = totals["scheduled"], totals["sent"]
    frames = FrameFigures(
        fairness=_fairness([pair.throughput_pps for pair in pairs]),
        offered_pps=median([launch.offered_pps for launch in launches]) if launches else None,
        **totals,
        frame_loss_ratio=totals["lost"] / sent if sent else None,
        trial_loss_ratio=(scheduled - totals["received"] - totals["acl_drops"]) / scheduled if scheduled else None,
        cycles_per_packet=effort.median([launch.cycles_per_packet for launch in launches]),
        sender_cycles_per_packet=effort.cycles("sender", "sent"),
        receiver_cycles_per_packet=effort.cycles("receiver", "received"),
        sender_busy_share=role_busy_share(launches, "sender"),
        receiver_busy_share=role_busy_share(launches, "receiver"),
        sender_cpu_share=effort.cpu_share("sender"),
        receiver_cpu_share=effort.cpu_share("receiver"),
        vectors_per_call=effort.vectors_per_call,
        frames_by_core=effort.frames_by_core,
        core_imbalance=effort.core_imbalance,
        hardware=effort.hardware,
        followed=followed(case, launches),
        per_pair=pairs,
        per_direction=_per_direction(case, launches),
        chains=hops.over_launches(launches),
    )
    return with_rate(frames, case, pps, _mean_frame_bytes(case, launches))


def with_rate(figures: OfFrames, case: Case, pps: Estimate | None, mean_bytes: float | None = None) -> OfFrames:
    """Returns the figures with those that follow from the frames per second over all pairs; None without a number.

    ``mean_bytes``: mean length of the frames received; None: that of the frames sent.
    """
    mean_bytes = case.traffic.mean_bytes if mean_bytes is None else mean_bytes
    return replace(
        figures,
        throughput_pps=kept(pps),
        throughput_per_pair_pps=kept(pps, 1 / case.pairs),
        throughput_gbps=kept(pps, l2_gbps(mean_bytes)),
        throughput_l1_gbps=kept(pps, l1_gbps(mean_bytes)),
        mean_frame_bytes=None if pps is None else float(mean_bytes),
    )


def as_kind(kind: type[OfFrames], frames: FrameFigures) -> OfFrames:
    """Returns figures of a kind with those about frames."""
    return kind(**{item.name: getattr(frames, item.name) for item in fields(FrameFigures) if item.name != "kind"})


def _total(launches: Sequence[Launch], counter: str) -> int:
    return sum(launch.total(counter) for launch in launches)


def _mean_frame_bytes(case: Case, launches: Sequence[Launch]) -> float | None:
    """Returns the mean length of a mix's frames received: a path may lose long ones more often than short ones."""
    frames = _total(launches, "received") + _total(launches, "duplicated")
    octets = _total(launches, "received_bytes")
    return octets / frames if case.traffic.mix is not None and octets and frames else None


def _per_pair(launches: Sequence[Launch]) -> tuple[PairResult, ...]:
    counted = [launch.pairs for launch in launches if launch.pairs]
    return tuple(
        PairResult(pair=account[0].pair, direction=account[0].direction, **_account([(counts,) for counts in account]))
        for account in zip(*counted, strict=True)
    )


def _per_direction(case: Case, launches: Sequence[Launch]) -> tuple[DirectionResult, ...]:
    """Returns the figures of each direction over all pairs; none where there is one."""
    ways: tuple[Direction, ...] = ("ab", "ba") if case.directions > 1 else ()
    counted = [launch.pairs for launch in launches if launch.pairs]
    return tuple(
        DirectionResult(
            direction=way, **_account([[one for one in pairs if one.direction == way] for pairs in counted])
        )
        for way in ways
        if counted
    )


def _account(launches: Sequence[Sequence[PairCounts]]) -> dict[str, Any]:
    """Returns rates (medians over launches) and totals of the counters of each launch that belong together."""

    def totals(name: str) -> list[Any]:
        return [sum(getattr(counts, name) for counts in launch) for launch in launches]

    rates = {name: median(totals(name)) for name in ("throughput_pps", "offered_pps")}
    return rates | {name: sum(totals(name)) for name in _OF_ACCOUNTS}


def _fairness(rates: Sequence[float]) -> float | None:
    return max(rates) / min(rates) if rates and min(rates) > 0 else None


@dataclass(frozen=True, slots=True)
class _Effort:
    """Busy cycles per frame of the switch, the senders and the receivers, and hardware events per frame."""

    launches: Sequence[Launch]

    def cycles(self, role: Literal["sender", "receiver"], counter: str) -> Estimate | None:
        """Returns the busy cycles of a role's loops over the frames that it sent or received."""
        busy = [launch.total_known(f"{role}_busy_cycles") for launch in self.launches]
        frames = [launch.total(counter) for launch in self.launches]
        return self.median(
            [cycles / n if cycles is not None and n else None for cycles, n in zip(busy, frames, strict=True)]
        )

    def cpu_share(self, role: Literal["sender", "receiver"]) -> float | None:
        """Returns the CPU time of a role's processes over the time measured; None unless every launch has it."""
        used = [launch.total_known(f"{role}_cpu_ns") for launch in self.launches]
        measured_ns = sum(launch.duration_s * len(launch.pairs) for launch in self.launches) * 1e9
        known = [cpu_ns for cpu_ns in used if cpu_ns is not None]
        return sum(known) / measured_ns if measured_ns and len(known) == len(used) else None

    @property
    def vectors_per_call(self) -> float | None:
        batches = [launch.vectors_per_call for launch in self.launches if launch.vectors_per_call is not None]
        return median(batches) if batches else None

    @property
    def core_imbalance(self) -> float | None:
        """How evenly the switch's workers shared the frames, where it tells."""
        ratios = [max(by.values()) * len(by) / total for by in self._by_core if (total := sum(by.values())) > 0]
        return median(ratios) if ratios else None

    @property
    def frames_by_core(self) -> dict[str, int] | None:
        if self.core_imbalance is None:
            return None
        together = Counter[str]()
        for frames in self._by_core:
            together.update(frames)
        return dict(together)

    @property
    def _by_core(self) -> list[dict[str, int]]:
        return [dict(launch.frames_by_core) for launch in self.launches if launch.frames_by_core]

    def median(self, values: Sequence[float | None]) -> Estimate | None:
        """Returns the median of the launches that have a value."""
        known = [(launch, value) for launch, value in zip(self.launches, values, strict=True) if value is not None]
        if not known:
            return None
        return kept(over([launch for launch, _ in known], [value for _, value in known]))

    @property
    def hardware(self) -> dict[str, Any]:
        """The medians of the hardware events that every launch counted."""
        counted = [launch.hardware for launch in self.launches if launch.hardware]
        if not counted or len(counted) < len(self.launches):
            return {}
        return {
            part: {event: median([events[part][event] for events in counted]) for event in counted[0][part]}
            for part in counted[0]
            if all(part in events for events in counted)
        }


def followed(case: Case, launches: Sequence[Launch]) -> tuple[LoadChange, ...] | None:
    """Returns the changes of each pair, in their order; None for a load that does not change.

    A frame belongs to the window in which it was scheduled. So the frames of a window show the load of its time,
    whenever they arrive. The arrival of the last one says when the path had delivered that load. The path follows a
    change with the first window whose frames arrive at 95 % of it. A path that loses or refuses a part of a greater
    load, or still delivers earlier frames, follows later.
    """
    trace = case.rate.trace
    if trace is None or not launches:
        return None
    results = []
    for pair in case.path.numbers:
        rates = trace.due(pair, case.pairs)
        changes = [place for place in range(1, len(rates)) if _differ(rates[place - 1], rates[place])]
        for place, until in pairwise([*changes, len(rates)]):
            if trace.freezes and not rates[place]:
                continue  # what waits in a frozen function arrives, in the windows in which it was sent
            spans = [list(_between(launch, pair, place, until)) for launch in launches]
            if not all(spans):
                continue
            before, behind = rates[place - 1], rates[place]
            times = [_time(span, before, behind) for span in spans]
            late = median([math.inf if time is None else time for time in times])
            sent, received = ([sum(getattr(w, name) for w in span) for span in spans] for name in ("sent", "received"))
            seconds = [sum(window.duration_ns for window in span) / 1e9 for span in spans]
            results.append(
                LoadChange(
                    pair,
                    place,
                    before,
                    behind,
                    median([count / time for count, time in zip(sent, seconds, strict=True)]),
                    median([count / time for count, time in zip(received, seconds, strict=True)]),
                    late if math.isfinite(late) else None,
                )
            )
    return tuple(results)


def _differ(before: int, behind: int) -> bool:
    return abs(behind - before) > LEAST_CHANGE * max(before, behind)


def _between(launch: Launch, pair: int, second: int, until: int) -> Iterator[Window]:
    """Yields a pair's windows that begin in some seconds of the measured time."""
    of_pair = sorted((w for w in launch.windows if w.pair == pair and w.kept), key=lambda w: w.number)
    for window in of_pair:
        begin_s = (window.start_ns - of_pair[0].start_ns) / 1e9 + (of_pair[0].number - 1) * window.duration_ns / 1e9
        if second - 1e-3 <= begin_s < until - 1e-3:
            yield window


def _time(windows: Sequence[Window], before: int, behind: int) -> float | None:
    """Returns the seconds from the change until a window's frames had arrived that show it; None if none did."""
    due = before + ARRIVED * (behind - before)
    for window in windows:
        first_ns, last_ns = window.first_ns or 0, window.last_ns or 0
        # The frames of a window may take longer than it to arrive: then the path is slower than the load.
        rate = window.handled * 1e9 / max(window.duration_ns, last_ns - first_ns)
        if rate >= due if behind > before else rate <= due:
            return (max(window.start_ns + window.duration_ns, last_ns) - windows[0].start_ns) / 1e9
    return None
