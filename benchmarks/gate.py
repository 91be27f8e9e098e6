# SPDX-License-Identifier: BSD-3-Clause
"""How long the gate takes for thousands of cases: reading limits and baseline, judging each; saving beside it.

The baseline is a CI's: each case has several sessions with a control, so that verdicts of all kinds are found.
"""

from __future__ import annotations

import gc
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from random import Random

sys.path.append(str(Path(__file__).parents[1]))

from pytest_icbench.gate.baseline_comparison import Comparer
from pytest_icbench.gate.entry import Entry, Figure, make_entry
from pytest_icbench.gate.judge import Policy, judge
from pytest_icbench.model.case import Case
from pytest_icbench.model.launch import Launch
from pytest_icbench.model.load import Frames
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.traffic import MIN_FRAME_BYTES, Traffic
from pytest_icbench.stats.intervals import over_launches
from pytest_icbench.store.baselines import load, save
from pytest_icbench.store.thresholds import parse
from tests.measurements import measurement

CASES = 5000
LAUNCHES = 8
#: Sessions of a baseline, how far apart they lie by nature (standard deviation, a share), and their host with them.
SESSIONS, APART, HOST_APART = 6, 0.002, 0.01
#: What the new version makes of a rate: some cases are far slower, some within noise of the margin, some faster.
FACTORS = (0.6, 0.93, 1.0, 1.0, 1.0, 1.1)
#: Reading limits and baseline and judging all cases have to be done in this time.
MOST_S = 2.0

IDENTITY = {"machine": "9bce71e4d26cf90d", "cpu_model": "Example CPU", "cores": 32, "memory_gib": 256}


def treatment(version: str) -> dict[str, object]:
    """About as many facts as a real result has."""
    parameters = {f"parameter_{number}": "value" for number in range(20)}
    threads = {"switch": [2, 3], "endpoints": [4, 5], "service": [0], "ports": {"p1": 2, "p2": 3}}
    switch = {"version": version, "config": {}}
    return {"kernel": "6.1.0", "kernel_parameters": parameters, "switch": switch, "node": "lxc", "cpus": threads}


def launches_at(pps: float, random: Random) -> tuple[Launch, ...]:
    """As many launches as usual at about a rate."""
    rates = [pps * random.gauss(1, 0.005) for _ in range(LAUNCHES)]
    return tuple(Launch(index, 0.0, 1.0, 0.1, rate, rate, 0.0, False, ()) for index, rate in enumerate(rates))


def measured(case: Case, random: Random, factor: float, version: str, session: int) -> Measurement:
    """A measurement of a case, and of the reference link beside it."""
    host = random.gauss(1, HOST_APART)
    launches = launches_at(5e6 * factor * host * random.gauss(1, APART), random)
    return measurement(
        case,
        throughput_pps=over_launches([launch.throughput_pps for launch in launches]),
        per_launch=launches,
        per_reference_launch=launches_at(8e6 * host, random),
        launches=LAUNCHES,
        duration_s=12.0,
        started_at=1.7e9 + 86_400 * session,
        identity=dict(IDENTITY),
        treatment=treatment(version),
        settings={"duration_s": 1.0},
    )


def of_a_session(entry: Entry, session: int, random: Random) -> Entry:
    """The same case as another session measured it."""
    host = random.gauss(1, HOST_APART)

    def moved(figure: Figure, factor: float) -> Figure:
        low, high = (None if end is None else end * factor for end in (figure.low, figure.high))
        return Figure(figure.value * factor, low, high, tuple(value * factor for value in figure.launches))

    assert entry.control is not None
    return replace(
        entry,
        measured=f"2023-11-{session + 1:02}T00:00:00Z",
        figures={name: moved(figure, host * random.gauss(1, APART)) for name, figure in entry.figures.items()},
        control=moved(entry.control, host),
    )


def in_baseline(measurements: list[Measurement], random: Random) -> Iterator[tuple[Entry, Entry]]:
    """Yields each case's entry with the sessions but the newest, and that of the newest session."""
    for each in measurements:
        newest = make_entry(each)
        assert newest is not None
        kept = of_a_session(newest, 0, random)
        for session in range(1, SESSIONS - 1):
            kept = of_a_session(newest, session, random).after(kept)
        yield kept, newest


def cases() -> list[Case]:
    switches = ("ovs", "vpp", "testpmd", "linux-bridge", "veth")
    sizes = range(MIN_FRAME_BYTES, MIN_FRAME_BYTES + CASES // len(switches))
    return [Case(switch, Frames(Traffic(size))) for switch in switches for size in sizes]


def thresholds() -> str:
    """General limits, and one table for each of a thousand cases."""
    lines = ['["*"]', "allowance = 0.02", "max_duplicated = 0", '["*-64B-*"]', "min_throughput_pps = 1"]
    for case in cases()[:1000]:
        lines += [f'["{case.id}"]', "min_throughput_pps = 1_000_000"]
    return "\n".join(lines)


def main() -> int:
    random = Random(1)
    before = [measured(case, random, 1.0, "3.1", SESSIONS) for case in cases()]
    now = [measured(case, random, random.choice(FACTORS), "3.2", SESSIONS + 1) for case in cases()]
    with tempfile.TemporaryDirectory() as directory:
        kept, newest = zip(*in_baseline(before, random), strict=True)
        save(Path(directory), "main", kept)
        began = time.perf_counter()
        files = save(Path(directory), "main", newest)
        saved_s = time.perf_counter() - began
        size = sum(path.stat().st_size for path in files)

        del before, kept, newest
        gc.collect()
        gc.freeze()  # a session measures case by case: thousands of measurements are this program's own

        text = thresholds()
        began = time.perf_counter()
        limits = parse(text, "thresholds.toml")
        comparer = Comparer(load(Path(directory), "main"), cases=CASES)
        read_s = time.perf_counter() - began
        began = time.perf_counter()
        policy = Policy(today=date(2026, 1, 1))
        verdicts: dict[str, int] = {}
        for each in now:
            against = comparer.compare(each, limits.margins(each.case))
            judgement = judge(each, limits.for_case(each.case), against=against, policy=policy)
            judgement.fields()
            verdicts[str(judgement.verdict)] = verdicts.get(judgement.verdict, 0) + 1
        judged_s = time.perf_counter() - began
    reported = ", ".join(f"{number} {verdict}" for verdict, number in sorted(verdicts.items()))
    print(
        f"{len(now)} cases of {LAUNCHES} launches against {SESSIONS} sessions, {len(limits.tables)} tables: {reported}"
    )
    print(f"a session saved beside {SESSIONS - 1} in {saved_s:.2f} s, {size / 1e6:.1f} MB in {len(files)} files")
    print(f"limits and baseline read in {read_s:.2f} s, judged in {judged_s:.2f} s")
    held = read_s + judged_s <= MOST_S
    print(f"{'PASS' if held else 'FAIL'} {read_s + judged_s:.2f} s; wanted: at most {MOST_S:.0f} s")
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
