# SPDX-License-Identifier: BSD-3-Clause
"""When the changes of a load arrived. Pure.

A frame belongs to the window in which it was scheduled, so a window's frames show the load of its time, whenever they
arrive, and the arrival of the last one says when that was. A change is followed by the first window whose frames arrive
at 95 % of it: a path that loses or refuses some of a greater load, or still delivers late what it was sent before, does
not follow until then.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

from pytest_icbench.model.case import Case
from pytest_icbench.model.launch import Launch, Window
from pytest_icbench.model.trace import LoadChange
from pytest_icbench.stats.quantiles import median

#: The share of a change that has to arrive.
ARRIVED = 0.95
#: The smallest change, as a share of the greater rate: less is in the noise of a window.
LEAST_CHANGE = 0.05


def followed(case: Case, launches: Sequence[Launch]) -> tuple[LoadChange, ...] | None:
    """Returns the changes of each pair, in their order; None for a load that does not change."""
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
