# SPDX-License-Identifier: BSD-3-Clause
"""How long the gate takes for thousands of cases: reading limits and baseline, judging each; saving beside it."""

from __future__ import annotations

import sys
import tempfile
import time
from datetime import date
from pathlib import Path
from random import Random

sys.path.append(str(Path(__file__).parents[1]))

from pytest_icbench.gate.against import Comparer
from pytest_icbench.gate.entry import entry_of
from pytest_icbench.gate.judge import Policy, judge
from pytest_icbench.gate.thresholds import parse
from pytest_icbench.model.case import Case
from pytest_icbench.model.launch import Launch
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.rate import Rate
from pytest_icbench.stats.intervals import median_over_launches
from pytest_icbench.store.baselines import load, save
from tests.measurements import measurement

CASES = 5000
LAUNCHES = 8
#: Reading limits and baseline and judging all cases have to be done in this time.
MOST_S = 2.0

IDENTITY = {"machine": "9bce71e4d26cf90d", "cpu_model": "Example CPU", "cores": 32, "memory_gib": 256}


def treatment(version: str) -> dict[str, object]:
    """About as many facts as a real result has."""
    parameters = {f"parameter_{number}": "value" for number in range(20)}
    threads = {"switch": [2, 3], "endpoints": [4, 5], "service": [0], "ports": {"p1": 2, "p2": 3}}
    switch = {"version": version, "config": {}}
    return {"kernel": "6.1.0", "kernel_parameters": parameters, "switch": switch, "node": "lxc", "cpus": threads}


def measured(case: Case, random: Random, factor: float, version: str) -> Measurement:
    """A measurement of a case with as many launches as usual."""
    rates = [5e6 * factor * random.gauss(1, 0.01) for _ in range(LAUNCHES)]
    found = median_over_launches(rates)
    launches = tuple(Launch(index, 0.0, 1.0, 0.1, rate, rate, 0.0, False, ()) for index, rate in enumerate(rates))
    return measurement(
        case,
        throughput_pps=found,
        per_launch=launches,
        launches=LAUNCHES,
        duration_s=12.0,
        started_at=1.7e9,
        identity=dict(IDENTITY),
        treatment=treatment(version),
        settings={"duration_s": 1.0},
    )


def cases() -> list[Case]:
    switches = ("ovs", "vpp", "testpmd", "linux-bridge", "veth")
    every = [Case(switch, rate=Rate(pps)) for switch in switches for pps in range(1000, 1000 + CASES // len(switches))]
    return every[:CASES]


def thresholds() -> str:
    """General limits, and one table for each of a thousand cases."""
    lines = ['["*"]', "max_drop = 0.02", "max_duplicated = 0", '["*-64B-*"]', "min_throughput_pps = 1"]
    for case in cases()[:1000]:
        lines += [f'["{case.id}"]', "min_throughput_pps = 1_000_000"]
    return "\n".join(lines)


def main() -> int:
    random = Random(1)
    before = [measured(case, random, 1.0, "3.1") for case in cases()]
    now = [measured(case, random, random.choice((0.9, 1.0, 1.0, 1.1)), "3.2") for case in cases()]
    with tempfile.TemporaryDirectory() as directory:
        began = time.perf_counter()
        entries = [entry for each in before if (entry := entry_of(each)) is not None]
        files = save(Path(directory), "main", entries)
        saved_s = time.perf_counter() - began
        size = sum(path.stat().st_size for path in files)

        text = thresholds()
        began = time.perf_counter()
        limits = parse(text, "thresholds.toml")
        comparer = Comparer(load(Path(directory), "main"))
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
    print(f"{len(entries)} cases of {LAUNCHES} launches, {len(limits.tables)} tables of limits: {verdicts}")
    print(f"saved in {saved_s:.2f} s, {size / 1e6:.1f} MB in {len(files)} files")
    print(f"limits and baseline read in {read_s:.2f} s, judged in {judged_s:.2f} s")
    held = read_s + judged_s <= MOST_S
    print(f"{'PASS' if held else 'FAIL'} {read_s + judged_s:.2f} s; wanted: at most {MOST_S:.0f} s")
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
