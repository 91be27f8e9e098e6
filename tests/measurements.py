# SPDX-License-Identifier: BSD-3-Clause
"""Makes measurements for tests of gates, reports and stores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields as fields_of
from dataclasses import replace
from types import MappingProxyType
from typing import Any, TypeVar

from pytest_icbench.model import load
from pytest_icbench.model.case import Case
from pytest_icbench.model.figures import AnyFigures, Application, Latency, Search, Startup, Throughput
from pytest_icbench.model.finding import SideBySide
from pytest_icbench.model.launch import Launch, PairCounts, Window
from pytest_icbench.model.measurement import ESTIMATES, FLAT_FIELDS, Measurement, Result
from pytest_icbench.stats.quantiles import Estimate

M = TypeVar("M", bound=Measurement)
NAMES = frozenset(field.name for field in fields_of(Measurement))

#: Frames of a measurement without any trouble: 5 Mpps, 4.9 to 5.1.
_FRAMES: dict[str, Any] = {
    "throughput_pps": Estimate(5e6, 4.9e6, 5.1e6),
    "throughput_per_pair_pps": Estimate(5e6, 4.9e6, 5.1e6),
    "fairness": 1.0,
    "throughput_gbps": Estimate(2.56, 2.51, 2.61),
    "throughput_l1_gbps": Estimate(3.36, 3.29, 3.43),
    "offered_pps": 5.05e6,
    "scheduled": 30_300_000,
    "sent": 30_300_000,
    "received": 30_000_000,
    "lost": 300_000,
    "frame_loss_ratio": 300 / 30_300,
    "trial_loss_ratio": 300 / 30_300,
}
_PLAIN = Measurement(
    case="",
    dimension="throughput",
    metric="frmol",
    switch="",
    port=None,
    mode=None,
    placement="dedicated",
    verdict=None,
    reason=None,
    bottleneck="switch",
    generator_bound=False,
    figures=Throughput(**_FRAMES),
    launches=6,
    windows=60,
)


def figures(case: Case, changed: Mapping[str, Any] = MappingProxyType({})) -> AnyFigures:
    """The figures of a valid measurement of a case."""
    if isinstance(case.load, load.Application):
        return Application()
    if isinstance(case.load, load.Startup):
        return Startup()
    if case.dimension == "latency":
        return Latency(**_FRAMES, rtt_p50_ns=Estimate(20_000.0, 19_000.0, 21_000.0), rtt_samples=6000)
    searched = case.rate.is_search or any(name.startswith("search") for name in changed)
    return Search(**_FRAMES) if searched else Throughput(**_FRAMES)


def measurement(case: Case | None = None, **changed: Any) -> Measurement:
    """A valid measurement of a case; ``changed`` are fields of Measurement, or keys of its line: ``rtt_p50_ns_low``."""
    case = case or Case("ovs")
    found = replace(
        _PLAIN,
        case=case.id,
        dimension=case.dimension,
        metric=case.rate.metric,
        switch=case.switch,
        port=case.port,
        mode=case.mode,
        axes=case.to_dict(),
        figures=figures(case, changed),
    )
    return with_values(found, changed)


def result(case: Case | None = None, **changed: Any) -> Result:
    """Returns the same as a result of reports."""
    return Result.of(measurement(case, **changed))


def with_values(found: M, changed: Mapping[str, Any]) -> M:
    """The measurement with other values, given as fields, figures or keys of a flat record: ``x``, ``x_low``."""
    values = {name: value for name, value in changed.items() if name in FLAT_FIELDS or name == "figures"}
    for name in ESTIMATES:
        ends = [f"{name}{end}" for end in ("", "_low", "_high")]
        if not any(end in changed for end in ends) or isinstance(changed.get(name), Estimate):
            continue
        before = found.estimate(name)
        parts = (None, None, None) if before is None else (before.value, before.low, before.high)
        value, low, high = (changed.get(end, part) for end, part in zip(ends, parts, strict=True))
        values[name] = None if value is None else Estimate(value, low, high)
    own = {name: value for name, value in values.items() if name in NAMES}
    changes = {name: value for name, value in values.items() if name not in NAMES}
    absent = {name for name, value in changes.items() if value is None and not hasattr(found.figures, name)}
    return replace(found, **own).with_figures(**{name: changes[name] for name in changes.keys() - absent})


def side_by_side(case: Case, decision: str, ratio: float, **more: Any) -> SideBySide:
    """Returns the comparison of a candidate. ``more`` are other fields."""
    low, high = ratio - 0.01, ratio + 0.01
    facts: dict[str, Any] = {
        "base": case.base.id,
        "figure": "throughput_pps",
        "decision": decision,
        "reason": "spread" if decision == "INCONCLUSIVE" else None,
        "ratio": ratio,
        "ratio_low": low,
        "ratio_high": high,
        "finds": 0.04,
        "weak": False,
        "base_value": 5e6,
        "allowance": 0.03,
        "pairs": 9,
        "dropped": 0,
        "more_pairs": 27 if decision == "INCONCLUSIVE" else None,
        "cases": 2,
        "error_rate": 0.01,
    }
    return SideBySide(**{**facts, **more})


def launch(index: int = 0, windows: int = 10, **changed: Any) -> Launch:
    """Returns a valid launch of one pair: 100,000 frames in each window of 100 ms. ``changed`` are fields of Launch."""
    every = tuple(
        Window(
            pair=1,
            number=number,
            start_ns=number * 100_000_000,
            duration_ns=100_000_000,
            scheduled=100_000,
            sent=100_000,
            refused=0,
            received=100_000,
            received_bytes=6_400_000,
            duplicated=0,
            reordered=0,
            not_offered=0,
            tx_full=0,
            polls=4000,
            empty_polls=10,
            catch_up_max=32,
            lateness_p99_ns=100,
            lateness_max_ns=200,
            involuntary_switches=0,
        )
        for number in range(1, windows + 1)
    )
    frames = 100_000 * windows
    counts = PairCounts(
        pair=1,
        scheduled=frames,
        sent=frames,
        refused=0,
        not_offered=0,
        tx_full=0,
        received=frames,
        lost=0,
        duplicated=0,
        reordered=0,
        late=0,
        foreign=0,
        corrupted=0,
        polls=4000 * windows,
        empty_polls=10 * windows,
        throughput_pps=1e6,
        offered_pps=1e6,
    )
    made = Launch(
        index=index,
        started_at=1_000.0 + 2 * index,
        duration_s=windows / 10,
        overhead_s=0.1,
        throughput_pps=1e6,
        offered_pps=1e6,
        steal_share=0.0,
        generator_bound=False,
        pairs=(counts,),
        windows=every,
    )
    return replace(made, **changed)
