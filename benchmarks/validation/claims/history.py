# SPDX-License-Identifier: BSD-3-Clause
"""History: a change of the level is distinguished from a noise of the host that outlasts some runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import islice
from random import Random
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from pytest_icbench.stats import change_points
from pytest_icbench.stats.change_points import FALSE_ALARMS, LEAST_EFFECT, levels
from validation import drawing
from validation.machines import HALVES, Machine, banded, dependent, heavy, normal, sticky
from validation.model import Found, Row, Settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHORT, LONG = 50, 200
SERIES, LONG_SERIES, POWER_SERIES = 2000, 300, 200
#: Losses of which the power is reported, how many results there are after them, and how near a change has to lie.
DROPS, AFTER, NEAR = (0.05, 0.1), (4, 25), 2
TITLE = "A history separates a change from host noise"
CLAIM = (
    f"Of series of {SHORT} and {LONG} results without a change at most {FALSE_ALARMS:.0%} have a change point: where"
    " results are independent, have heavy tails or one of two bands, and where neighbours correlate by 0.3, 0.6 or 0.9."
)
METHOD = f"""
Each machine has {SERIES:,} series of {SHORT} results, and those that a history takes most for changes {LONG_SERIES} of
{LONG}. `stats.change_points` finds the changes, with the default least effect of {LEAST_EFFECT:.0%}. Each share is
compared with that of the same rule where it takes results as independent.

Bands that a result keeps from the one before have no bound. While such a band lasts it is a level of its own, and
nothing in a series of two levels tells whether the host or the software changed.

Power is that of {POWER_SERIES} series of {SHORT} results of which the last are slower, by a change at most {NEAR}
results away.
"""
SECONDS = 210.0
FIGURES = {
    "alarms": "Series without a change that have a change point.",
    "power": "Series with a change that have a change point there, by the number of results after it.",
}

MACHINES = (
    *(normal(deviation) for deviation in (2, 5)),
    *(heavy(deviation) for deviation in (1, 4)),
    *(HALVES, banded(0.8, 6, 0.5)),
    *(dependent(correlation, deviation) for correlation in (0.3, 0.6, 0.9) for deviation in (2, 5)),
)
LONG_MACHINES = (normal(5), HALVES, *(dependent(correlation, 5) for correlation in (0.3, 0.6, 0.9)))
REPORTED = tuple(sticky(correlation, 6, 0.5) for correlation in (0.3, 0.6, 0.9))
POWERFUL = (*(normal(deviation) for deviation in (1, 2)), *(dependent(rho, 1) for rho in (0.6, 0.9)), dependent(0.6, 2))


@dataclass(frozen=True, slots=True)
class Task:
    """So many series of one machine, of which the last ``after`` results are slower by ``drop``."""

    machine: Machine
    length: int
    series: int
    drop: float = 0.0
    after: int = 0

    def drawn(self, random: Random) -> list[float]:
        """One series."""
        values = list(islice(self.machine.course(random), self.length))
        first = self.length - self.after
        return [value * (1 - self.drop) if place >= first else value for place, value in enumerate(values)]

    def reports(self, values: Sequence[float]) -> bool:
        """Whether a change is found: any, or the one that is there."""
        found = [level.first for level in levels(values)[1:]]
        return any(abs(first - self.length + self.after) <= NEAR for first in found) if self.after else bool(found)


def tasks(settings: Settings) -> list[Task]:
    """Everything that is simulated: series without a change, then those with one."""
    short, long, power = settings.count(SERIES, 20), settings.count(LONG_SERIES, 3), settings.count(POWER_SERIES, 4)
    return [
        *(Task(machine, SHORT, short) for machine in (*MACHINES, *REPORTED)),
        *(Task(machine, LONG, long) for machine in LONG_MACHINES),
        *(Task(m, SHORT, power, drop, after) for m in POWERFUL for drop in DROPS for after in AFTER),
    ]


def check(settings: Settings) -> Found:
    simulated = tasks(settings)
    rows: list[Row] = []
    data: dict[str, Any] = {"machines": [], "power": []}
    with ProcessPoolExecutor() as pool:
        # A machine is made of functions, which no process can be sent: each finds its task by the place.
        shares = pool.map(reported, [settings] * len(simulated), range(len(simulated)))
        for task, (now, before) in zip(simulated, shares, strict=True):
            settings.tell(f"{task.machine.name}, {task.length}, {task.drop:.0%}: {now:.1%} (before: {before:.1%})")
            value = f"{now:.1%} (results taken as independent: {before:.1%})"
            name = f"{task.machine.name}, {task.length} results"
            if task.after:
                rows.append(
                    Row(f"{name}, the last {task.after} {task.drop:.0%} slower: series with that change", value)
                )
                data["power"].append(
                    {"name": name, "drop": task.drop, "after": task.after, "now": now, "before": before}
                )
                continue
            bound = "" if task.machine in REPORTED else f"at most {FALSE_ALARMS:.0%}"
            what = f"{name}: of {task.series:,} series those with a change point"
            rows.append(Row(what, value, bound, not bound or now <= FALSE_ALARMS))
            data["machines"].append({"name": name, "now": now, "before": before})
    return Found(tuple(rows), data)


def reported(settings: Settings, place: int) -> tuple[float, float]:
    """Shares of a task's series with a change: by the rule, and where it takes results as independent."""
    task, random = tasks(settings)[place], Random(f"{settings.seed} history {place}")
    now = before = 0
    for _ in range(task.series):
        values = task.drawn(random)
        now += task.reports(values)
        with patch.object(change_points, "CORRELATIONS", (0.0,)):
            before += task.reports(values)
    return now / task.series, before / task.series


def draw(name: str, figure: Figure, data: Mapping[str, Any]) -> None:
    axes = figure.subplots()
    shown = data["machines"] if name == "alarms" else data["power"]
    labels = [each["name"] if name == "alarms" else named(each) for each in shown]
    places = range(len(shown))
    axes.plot([each["now"] * 100 for each in shown], places, "o", label="now")
    axes.plot([each["before"] * 100 for each in shown], places, "x", label="results taken as independent")
    if name == "alarms":
        axes.axvline(FALSE_ALARMS * 100, **drawing.LIMIT)
    axes.set(xlabel="series, %")
    axes.set_yticks(places, labels, fontsize=6)
    axes.invert_yaxis()
    axes.legend()


def named(task: Mapping[str, Any]) -> str:
    """A series with a change, in a few words."""
    return f"{task['name']}, the last {task['after']} {task['drop']:.0%} slower"
