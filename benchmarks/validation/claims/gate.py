# SPDX-License-Identifier: BSD-3-Clause
"""The gate's two methods: whom they flag without a change, and what they find in how much time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from random import Random
from statistics import median
from typing import TYPE_CHECKING, Any

from pytest_icbench.stats.verdict_rule import (
    SESSION_ERROR,
    Allowance,
    Outcome,
    decide_pairs,
    decide_session,
    fewest,
    is_narrow,
)
from validation import drawing
from validation.claims.gate_before import BEFORE
from validation.hosts import APART, LAUNCH_S, PAIR_S, Host, States
from validation.model import Found, Row, Settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "The gate flags nothing without cause"
CASES = 5
#: Minutes of a session, and by how much a case is slower of which the power is reported.
MINUTES, LOSSES = (5, 10, 20), (0.03, 0.05, 0.1, 0.2)
#: Sessions of a baseline.
KEPT = (5, 10, 20)
SESSIONS, POWER = 2_000, 500
CLAIM = (
    f"At most 1 % of sessions without a change have any REGRESSED, by pairs and over {KEPT[0]} to {KEPT[-1]} sessions:"
    " where launches differ by 2, 8 and 30 %, sessions by 1 and 5 %, a host has two states, tails are heavy, and"
    " launches depend on each other. A candidate exactly as bad as allowed passes in at most 4 %."
)
METHOD = f"""
Each host has {SESSIONS:,} sessions of {CASES} cases, decided by the gate's own functions (`stats.verdict_rule`) with
the default allowance. A pair of launches takes {PAIR_S:g} s with its rigs, so a case has {MINUTES[0] * 60 // CASES} s
in {MINUTES[0]} minutes. States last as they were sampled on a virtual machine (medians near 5 s, far 21 s); far is
half as fast. Pairs that met two states are dropped, and sessions are compared within a state.

By sessions, a fifth of the time is for measuring again, with the session's own level as it was, which is the worst.
Alarms are the most with any of these baselines; power is that with {KEPT[1]} sessions.

Power is that of one case among {CASES}, by {POWER} sessions. "Before" is the gate of 28 November on the same hosts
(`gate_before.py`): its comparison of versions, and its rule over sessions.

Not bound is what no session can tell from a change: a host that loses for good where the control does not notice
("blind"), and levels of the case alone with heavy tails, that stay when it is measured again ("steady control").
"""
SECONDS = 900.0
FIGURES = {
    "alarms": "Sessions without a change that flag anything, the worst of all lengths.",
    "power": "Slower cases that are found in ten minutes. Dotted: before.",
}

ALLOWANCE = Allowance("higher")
#: Greatest share of PASS at the allowance: 2.5 % of a fixed number of pairs, and what ending by their sizes adds.
MOST_PASSED = 0.04
#: Launches of a state that make a value.
FEWEST_LAUNCHES = 3

HOSTS = (
    *(Host(f"launches {sd * 100:g} %", launch=sd) for sd in (0.02, 0.08, 0.3)),
    Host("sessions 1 %", shared=0.01, own=0.01),
    Host("sessions 5 %, shared", shared=0.05),
    Host("sessions 5 %, own", own=0.05),
    Host("launches 8 %, two states", launch=0.08, shared=0.01, states=True),
    Host("launches 3 %, two states", launch=0.03, own=0.01, states=True),
    Host("launches 8 %, heavy tails", launch=0.08, tails=True),
    Host("sessions 1 %, own, heavy tails", own=0.01, own_tails=True),
    Host("sessions 5 %, own, heavy tails", own=0.05, own_tails=True),
    *(Host(f"launches 8 %, correlated by {rho:g}", launch=0.08, correlation=rho) for rho in (0.6, 0.9)),
    Host("rigs 3 %", rig=0.03),
    Host("launches 8 %, two states, blind control", launch=0.08, shared=0.01, states=True, blind=True),
    Host("sessions 5 %, blind control", shared=0.05, blind=True),
    Host("the host loses 5 %", own=0.01, step=-0.05),
    Host("the second loses 5 %", second=0.05),
)
#: Told, not bound: no session tells these from a change.
UNBOUND = (
    Host("the host loses 5 %, blind control", own=0.01, step=-0.05, blind=True),
    Host("sessions 5 %, own, heavy tails, steady control", own=0.05, own_tails=True, steady=True),
)
#: Those whose power is reported.
_REPORTED = (
    *("launches 2 %", "launches 8 %", "launches 30 %", "sessions 1 %", "sessions 5 %, shared", "sessions 5 %, own"),
    *("launches 8 %, two states", "launches 8 %, heavy tails", "sessions 1 %, own, heavy tails"),
)
REPORTED = tuple(host for host in HOSTS if host.name in _REPORTED)


def check(settings: Settings) -> Found:
    sessions, power = settings.count(SESSIONS, 20), settings.count(POWER, 10)
    hosts = (*HOSTS, *UNBOUND)
    # What sessions differ by cancels within a pair.
    alone = tuple({host.within: host for host in reversed(hosts)}.values())[::-1]
    found: dict[str, dict[str, Any]] = {host.name: {} for host in hosts}
    with ProcessPoolExecutor() as pool:
        for method, shares, of in (("pairs", shares_by_pairs, alone), ("sessions", shares_over_sessions, hosts)):
            seeds = [Random(f"{settings.seed} {method} {host.name}") for host in of]
            results = pool.map(shares, of, [sessions] * len(of), [power] * len(of), seeds)
            for host, each in zip(of, results, strict=True):
                settings.tell(f"{host.name}, by {method}: {each}")
                found[host.name][method] = each
    rows = [*alarm_rows(found, sessions)]
    for host in REPORTED:
        rows += power_rows(host.name, {method: each["power"] for method, each in found[host.name].items()})
    series = [
        {"name": name, **{method: max(each["alarms"]) for method, each in methods.items()}}
        for name, methods in found.items()
    ]
    curves = [
        {"name": host.name, **{method: each["power"] for method, each in found[host.name].items()}} for host in REPORTED
    ]
    return Found(tuple(rows), {"hosts": series, "power": curves, "most": SESSION_ERROR, "losses": list(LOSSES)})


def alarm_rows(found: Mapping[str, Mapping[str, Any]], sessions: int) -> Iterator[Row]:
    """A row a host and method; a share of so many sessions may exceed its bound by chance, in one of a hundred."""
    most = SESSION_ERROR + 2.33 * math.sqrt(SESSION_ERROR * (1 - SESSION_ERROR) / sessions)
    unbound = {host.name for host in UNBOUND}
    for name, methods in found.items():
        for method, each in methods.items():
            worst = max(each["alarms"])
            bound = "" if name in unbound else f"{SESSION_ERROR:.0%}, by chance at most {most:.1%}"
            what = f"{name}, by {method}: of {sessions:,} sessions those that flag anything"
            yield Row(what, f"{worst:.2%}", bound, not bound or worst <= most)
    passed = [each["pairs"]["passed"] for each in found.values() if "pairs" in each]
    middle = sum(passed) / len(passed)
    bound = f"at most {MOST_PASSED:.0%}"
    yield Row("candidates as bad as allowed that pass, of all hosts", f"{middle:.1%}", bound, middle <= MOST_PASSED)


def power_rows(name: str, methods: Mapping[str, Mapping[str, Sequence[float]]]) -> list[Row]:
    """A row a method: what was found of 3, 5, 10 and 20 %, in 5, 10 and 20 minutes, and in ten before."""
    losses, rows = ", ".join(f"{loss * 100:g}" for loss in LOSSES), []
    for method, power in methods.items():
        reported = "; ".join(per_cent(power[str(minutes)]) for minutes in MINUTES)
        earlier = BEFORE.get(name, {}).get(method)
        before = f" (before, 10 minutes: {per_cent(earlier)})" if earlier else ""
        what = f"{name}: found by {method} of {losses} % slower, in 5; 10; 20 minutes"
        rows.append(Row(what, f"{reported} %{before}"))
    return rows


def per_cent(shares: Sequence[float]) -> str:
    return ", ".join(f"{share * 100:.0f}" for share in shares)


def shares_by_pairs(host: Host, sessions: int, power: int, random: Random) -> dict[str, Any]:
    """The shares of sessions that flag, of candidates that pass at the allowance, and of slower ones, by length."""
    seconds = MINUTES[-1] * 60.0
    flagged = [0] * len(MINUTES)
    for _ in range(sessions):
        states = States(random, seconds) if host.states else None
        cases = [by_pairs(host, random, 0.0, states, case * seconds / CASES) for case in range(CASES)]
        for place in range(len(MINUTES)):
            flagged[place] += any(case[place] == "worse" for case in cases)
    found = {
        loss: [
            by_pairs(host, random, loss, States(random, seconds) if host.states else None, 0.0) for _ in range(power)
        ]
        for loss in LOSSES
    }
    return {
        "alarms": [number / sessions for number in flagged],
        "passed": sum(each[-1] == "same" for each in found[ALLOWANCE.share]) / power,
        "power": {
            str(minutes): [sum(each[place] == "worse" for each in found[loss]) / power for loss in LOSSES]
            for place, minutes in enumerate(MINUTES)
        },
    }


def shares_over_sessions(host: Host, sessions: int, power: int, random: Random) -> dict[str, Any]:
    """The shares of sessions that flag, by the sessions before, and of slower cases, by length."""
    worse = [over_sessions(host, random, KEPT, MINUTES[1], CASES) for _ in range(sessions)]
    alarms = [sum(any(case[place][0] for case in each) for each in worse) / sessions for place in range(len(KEPT))]
    found = {minutes: [over_sessions(host, random, KEPT[1:2], minutes, 1) for _ in range(power)] for minutes in MINUTES}
    reported = {str(minutes): [each[0][0] for each in found[minutes]] for minutes in MINUTES}
    reported |= {f"10, {kept} sessions": [each[0][place] for each in worse] for place, kept in enumerate(KEPT)}
    return {
        "alarms": alarms,
        "power": {
            key: [sum(case[place] for case in cases) / len(cases) for place in range(1, len(LOSSES) + 1)]
            for key, cases in reported.items()
        },
    }


def by_pairs(host: Host, random: Random, loss: float, states: States | None, begin: float) -> list[Outcome]:
    """The decisions on a case that is slower by a share, for each length of a session."""
    noise, ratios, spent, narrow = host.noise(random), list[float](), 0.0, 0
    outcomes: list[Outcome] = []
    for minutes in MINUTES:
        drawn = len(ratios)
        while narrow < 2 and spent + PAIR_S <= minutes * 60 / CASES:
            pair = measured_pair(host, random, noise, states, begin + spent)
            spent += PAIR_S
            if pair is None:
                continue
            ratios.append(math.exp(pair) * (1 - loss))
            enough = len(ratios) >= fewest(CASES) and is_narrow(ratios, ALLOWANCE)
            narrow = narrow + 1 if enough else 0
        if outcomes and len(ratios) == drawn:
            outcomes.append(outcomes[-1])
        else:
            outcomes.append(decide_pairs(ratios, ALLOWANCE, CASES).outcome if ratios else "open")
    return outcomes


def measured_pair(host: Host, random: Random, noise: Iterator[float], states: States | None, at: float) -> float | None:
    """The logarithm of a pair's ratio; None if it met two states."""
    first, second = next(noise), next(noise) - host.second
    if states is not None:
        middle = at + PAIR_S / 2
        if len({states.at(time) for start in (at, middle) for time in (start, start + LAUNCH_S)}) > 1:
            return None
        first += slowed(states.far(at, at + LAUNCH_S))
        second += slowed(states.far(middle, middle + LAUNCH_S))
    return first - second if random.random() < 0.5 else second - first


def slowed(far: float) -> float:
    """What a launch adds that was far for a share of its time."""
    return math.log1p(-far * (1 - math.exp(-APART)))


#: The value of a case and that of its control, by state, with the number of launches.
Values = dict[int, tuple[float, float, int]]


def over_sessions(host: Host, random: Random, kept: Sequence[int], minutes: int, cases: int) -> list[list[list[bool]]]:
    """Whether each case is flagged, by the number of sessions before, without a change and at each loss."""
    launches = round(minutes * 60 / CASES / PAIR_S)
    first, again = round(0.8 * launches), max(launches // 5, 5)
    before = [measured_session(host, random, levels(host, random, cases), first) for _ in range(max(kept))]
    today = levels(host, random, cases, host.step)
    looks = [measured_session(host, random, today, count) for count in (first, again)]
    return [
        [
            [
                all(is_outside(look[case], [session[case] for session in before[:number]], loss) for look in looks)
                for loss in (0.0, *LOSSES)
            ]
            for number in kept
        ]
        for case in range(cases)
    ]


def levels(host: Host, random: Random, cases: int, step: float = 0.0) -> list[tuple[float, float]]:
    """The levels of the cases of a session and of their controls."""
    shared = random.gauss(0, host.shared) + math.log1p(step)
    found = []
    for _ in range(cases):
        control = 0.0 if host.steady else host.level(random)
        found.append((shared + host.level(random), control + (0.0 if host.blind else shared)))
    return found


def measured_session(host: Host, random: Random, at: Sequence[tuple[float, float]], launches: int) -> list[Values]:
    """The values of a session's cases, whose launches take turns."""
    states = States(random, (launches + 1) * CASES * PAIR_S) if host.states else None
    return [measured_case(host, random, level, launches, states, case) for case, level in enumerate(at)]


def measured_case(
    host: Host, random: Random, level: tuple[float, float], launches: int, states: States | None, case: int
) -> Values:
    noise, beside = host.noise(random), host.noise(random)
    by_state: dict[int, list[tuple[float, float]]] = {}
    for launch in range(launches):
        value, control, state = next(noise), next(beside), 0
        if states is not None:
            at = (launch * CASES + case) * PAIR_S
            state = states.at(at)
            if states.at(at + LAUNCH_S) != state:
                continue
            far = slowed(states.far(at, at + LAUNCH_S))
            value, control = value + far, control + (0.0 if host.blind else far)
        by_state.setdefault(state, []).append((value, control))
    return {
        state: (level[0] + median(v for v, _ in each), level[1] + median(c for _, c in each), len(each))
        for state, each in by_state.items()
        if len(each) >= FEWEST_LAUNCHES
    }


def is_outside(now: Values, before: Sequence[Values], loss: float) -> bool:
    """Whether a value lies below those before in its state, and so does its ratio to the control."""
    if not now:
        return False
    state = max(now, key=lambda state: now[state][2])
    value, control, _ = now[state]
    known = [each[state] for each in before if state in each]
    if not known:
        return False
    values = [math.exp(each[0]) for each in known]
    ratios = [math.exp(each[0] - each[1]) for each in known]
    slower = 1 - loss
    return all(
        decide_session(math.exp(today) * slower, [earlier], ALLOWANCE, CASES).outcome == "worse"
        for today, earlier in ((value, values), (value - control, ratios))
    )


def draw(name: str, figure: Figure, data: Mapping[str, Any]) -> None:
    if name == "power":
        draw_power(figure, data)
        return
    axes = figure.subplots()
    places = range(len(data["hosts"]))
    for key, mark in (("pairs", "o"), ("sessions", "x")):
        reported = [place for place, host in enumerate(data["hosts"]) if key in host]
        axes.plot([data["hosts"][place][key] * 100 for place in reported], reported, mark, label=f"by {key}")
    axes.axvline(data["most"] * 100, **drawing.LIMIT)
    axes.set(xlabel="sessions that flag, %")
    axes.set_yticks(places, [host["name"] for host in data["hosts"]], fontsize=7)
    axes.invert_yaxis()
    axes.legend()


def draw_power(figure: Figure, data: Mapping[str, Any]) -> None:
    losses = [loss * 100 for loss in data["losses"]]
    panels = figure.subplots(1, 2, sharey=True)
    for axes, method in zip(panels, ("pairs", "sessions"), strict=True):
        for place, curve in enumerate(data["power"]):
            look: dict[str, Any] = {"color": drawing.COLOURS[place % len(drawing.COLOURS)], "markersize": 4}
            if method not in curve:
                continue
            axes.plot(losses, [share * 100 for share in curve[method]["10"]], "o-", label=curve["name"], **look)
            if before := BEFORE.get(curve["name"], {}).get(method):
                axes.plot(losses, [share * 100 for share in before], "x:", **look)
        axes.set(xlabel="slower by, %", title=f"by {method}")
    panels[0].set(ylabel="cases flagged, %")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=7)
    figure.set_size_inches(8, 4.6)
