# SPDX-License-Identifier: BSD-3-Clause
"""Coverage: an interval holds the truth as often as it says, stopping rule included."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import TYPE_CHECKING, Any

from pytest_icbench.measure.stopping import confidence
from pytest_icbench.model.settings import Settings as Lengths
from pytest_icbench.stats.bands import FALSE_ALARMS, best_cut, critical_ratio
from pytest_icbench.stats.intervals import over_launches
from validation import drawing
from validation.machines import BANDED, MACHINES, TOLD, Machine
from validation.model import Found, Row, Settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "A 95 % interval holds the truth in 95 of 100 sessions"
CLAIM = (
    "On simulated machines whose true level is known (independent launches, two bands, drift) an interval of 95 %, "
    "stopping rule included, holds the truth in 93 to 97 % of the sessions."
)
SESSIONS = 10_000
METHOD = f"""
Each machine has {SESSIONS:,} sessions, which tell a share to within 0.4 or 0.5 points. A session draws launches and
asks the plugin's own stopping rule after each, with the default precision (3 %) and time (40 launches). The truth is
the median over launches at the machine's level halfway through the session. Sizes of the noise are chosen so that
sessions stop at once, after many looks, and at the end of their time.

Where launches fall into two bands of the same size, any value between the bands is a median; how often the interval
holds the middle is told without a bound: such a result says that there are two bands.

How many sessions on a banded machine name the bands is told too. Bands that lie six deviations of a launch apart, or
four, mostly go unnamed before the session ends. Its interval then reaches across the gap as if there were none, and
where the bands are nearly of the same size it holds the truth a little less often than it should: two such machines are
told without a bound.

The rate of false alarms of the test for two bands is simulated for flat, normal and skewed distributions.
"""
SECONDS = 100.0
FIGURES = {"machines": "Part of the sessions whose interval holds the truth, and the launches they took."}

LEAST, MOST = 0.93, 0.97
#: Three standard deviations of the rate of alarms in so many series are below this.
ALARM_SLACK = 0.003


def check(settings: Settings) -> Found:
    sessions = settings.count(SESSIONS, 300)
    rows: list[Row] = []
    series: list[dict[str, Any]] = []
    for machine in (*MACHINES, *TOLD):
        settings.tell(f"{machine.family}: {machine.name}")
        share, launches, named = covered(machine, sessions, settings.seed)
        of = f"{machine.family}, {machine.name}: of {sessions:,} sessions those"
        bound = f"{LEAST:.0%} to {MOST:.0%}" if machine not in TOLD else ""
        rows.append(
            Row(f"{of} whose interval holds the truth", f"{share:.1%}", bound, not bound or LEAST <= share <= MOST)
        )
        if machine.family == BANDED:
            rows.append(Row(f"{of} that name the bands", f"{named:.1%}"))
        series.append({"family": machine.family, "name": machine.name, "share": share, "launches": round(launches, 1)})
    settings.tell("false alarms of two bands")
    rows += [alarms(name, draw, sessions, settings.seed) for name, draw in ONE_BAND.items()]
    return Found(tuple(rows), {"least": LEAST, "most": MOST, "machines": series})


def covered(machine: Machine, sessions: int, seed: int) -> tuple[float, float, float]:
    """Part of the sessions whose interval holds the truth, launches of a session, part that names two bands."""
    random, lengths = Random(f"{seed} {machine.name}"), Lengths()
    hits = launches = named = 0
    for _ in range(sessions):
        values, truth = machine.session(random, lengths)
        result = over_launches(values, confidence(lengths))
        found = result.estimate
        assert found.low is not None
        assert found.high is not None
        hits += found.low <= truth <= found.high
        launches += len(values)
        named += result.bands is not None
    return hits / sessions, launches / sessions, named / sessions


ONE_BAND: dict[str, Callable[[Random], float]] = {
    "normal": lambda random: random.gauss(0, 1),
    "flat": lambda random: random.random(),
    "skewed": lambda random: random.expovariate(1),
}


def alarms(name: str, draw: Callable[[Random], float], series: int, seed: int) -> Row:
    """The number of launches, of 6 to 40, at which one band is most often taken for two."""
    random = Random(f"{seed} {name}")
    rates = {}
    for n in (6, 7, 8, 10, 13, 17, 22, 30, 40):
        critical = critical_ratio(n)
        rates[n] = sum(best_cut(sorted(draw(random) for _ in range(n)))[1] > critical for _ in range(series)) / series
    worst = max(rates, key=lambda n: rates[n])
    what = f"{name} launches in one band taken for two, at worst (with {worst} launches)"
    bound = FALSE_ALARMS + ALARM_SLACK
    return Row(what, f"{rates[worst]:.2%}", f"at most {bound:.1%}", rates[worst] <= bound)


def draw(name: str, figure: Figure, data: Mapping[str, Any]) -> None:
    del name  # there is only one
    axes = figure.subplots()
    names = [f"{machine['name']}  ({machine['launches']:.0f})" for machine in data["machines"]]
    families = list(dict.fromkeys(machine["family"] for machine in data["machines"]))
    for family in families:
        places = [place for place, machine in enumerate(data["machines"]) if machine["family"] == family]
        axes.plot([data["machines"][place]["share"] * 100 for place in places], places, "o", label=family)
    for limit in (data["least"], data["most"]):
        axes.axvline(limit * 100, **drawing.LIMIT)
    axes.set(xlabel="sessions whose interval holds the truth, %  (in brackets: launches on average)")
    axes.set_yticks(range(len(names)), names, fontsize=7)
    axes.invert_yaxis()
    axes.legend()
