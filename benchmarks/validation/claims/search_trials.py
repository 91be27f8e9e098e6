# SPDX-License-Identifier: BSD-3-Clause
"""Searches among trials that depend on each other."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import search_simulation

from pytest_icbench.kinds.search.mlrsearch import find_bounds
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.search_goal import goal_of
from validation import drawing
from validation.model import Found, Row, Settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SEARCHES = 1000
JITTER, STALLED = 0.0005, 0.1
TITLE = "A search holds where trials are unlike"
CLAIM = (
    "On a simulated device whose trials are disturbed for some time, neighbours correlate by 0.3, 0.6 or 0.9, or with"
    " heavy tails, at least 90 % of the searches end within the goal's width."
)
METHOD = f"""
The device is that of the claim above: its rate differs by {JITTER:.2%} from trial to trial, and {STALLED:.0%} of the
trials are interrupted. Here what disturbs a trial still disturbs the next.

A device that differs by as much as the width (0.5 %) or more has no rate to that width, and no search can find one. So
the share within the width has no bound there. Nor has the share of brackets, from the rate to the upper bound, that
hold the true rate, as a bracket is no interval (Concepts, "Searches").
"""
SECONDS = 60.0
FIGURES = {"shares": "Searches within the width."}

GOALS = {rate.typed: goal_of(rate, "csit") for rate in (Rate(loss_ratio=0.005), Rate(loss_ratio=0.0))}
LEAST_RIGHT = 0.90


@dataclass(frozen=True, slots=True)
class Trials:
    """How a device is disturbed; ``bound`` where it differs by less than the width."""

    name: str
    noise: Mapping[str, Any] = field(default_factory=dict)
    bound: bool = True


def correlated(correlation: float, jitter: float = JITTER, *, bound: bool = True) -> Trials:
    """Trials whose neighbours correlate."""
    name = f"trials correlate by {correlation:g}, {jitter * 100:g} %"
    return Trials(name, {"jitter": jitter, "stall_share": STALLED, "correlation": correlation}, bound)


TRIALS = (
    *(correlated(correlation) for correlation in (0.0, 0.3, 0.6, 0.9)),
    Trials("Student's t3, 0.05 %", {"jitter": JITTER, "stall_share": STALLED, "heavy": True}),
    *(correlated(correlation, 0.02, bound=False) for correlation in (0.0, 0.9)),
)


def check(settings: Settings) -> Found:
    searches = settings.count(SEARCHES, 30)
    rows: list[Row] = []
    shown: list[dict[str, Any]] = []
    with ProcessPoolExecutor() as pool:
        for trials in TRIALS:
            for name, result in zip(GOALS, pool.map(pooled, [trials] * 2, GOALS, [searches] * 2), strict=True):
                right, held = result
                settings.tell(f"{name}, {trials.name}: {right:.1%} right, {held:.1%} of the brackets hold")
                bound = f"at least {LEAST_RIGHT:.0%}" if trials.bound else ""
                what = f"{name}, {trials.name}: of {searches:,} searches those"
                rows.append(Row(f"{what} within the width", f"{right:.1%}", bound, not bound or right >= LEAST_RIGHT))
                rows.append(Row(f"{what} whose bracket holds the rate", f"{held:.1%}"))
                shown.append({"name": f"{name}, {trials.name}", "right": right})
    return Found(tuple(rows), {"machines": shown})


def pooled(trials: Trials, goal: str, searches: int) -> tuple[float, float]:
    """Shares of searches within the width, and of brackets that hold the rate."""
    right = held = 0
    for bounds, device in search_simulation.searched(find_bounds, GOALS[goal], searches, **trials.noise):
        true = device.true_rate(GOALS[goal].loss_ratio)
        right += search_simulation.within_width(bounds, true, GOALS[goal].width)
        if bounds.conditional_pps is not None and bounds.upper_pps is not None:
            held += bounds.conditional_pps <= true <= bounds.upper_pps
    return right / searches, held / searches


def draw(_name: str, figure: Figure, data: Mapping[str, Any]) -> None:
    axes = figure.subplots()
    shown = data["machines"]
    axes.plot([each["right"] * 100 for each in shown], range(len(shown)), "v")
    axes.axvline(LEAST_RIGHT * 100, **drawing.LIMIT)
    axes.set(xlabel="searches within the width, %")
    axes.set_yticks(range(len(shown)), [each["name"] for each in shown], fontsize=6)
    axes.invert_yaxis()
