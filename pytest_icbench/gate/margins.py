# SPDX-License-Identifier: BSD-3-Clause
"""Which figures are compared with a baseline, and how much worse each may be. Pure.

The main figure of a dimension is always compared, with the tolerances ``max_drop`` or ``max_rise`` and ``allowance``.
Another figure is compared where one of these names it: ``max_rise_rtt_p99_ns``, ``max_rise_cycles_per_packet``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from pytest_icbench.stats.noninferiority import DEFAULT_ALLOWANCE, Better, Margin

#: Figures that can be compared with a baseline: the dimension that has them, and which way they are better.
COMPARED: Mapping[str, tuple[str, Better]] = MappingProxyType(
    {
        "throughput_pps": ("throughput", "higher"),
        "cycles_per_packet": ("throughput", "lower"),
        "rtt_p50_ns": ("latency", "lower"),
        "rtt_mean_ns": ("latency", "lower"),
        "rtt_p90_ns": ("latency", "lower"),
        "rtt_p99_ns": ("latency", "lower"),
        "rtt_p99_9_ns": ("latency", "lower"),
    }
)
#: The figure by which a dimension is judged unless more are named.
MAIN: Mapping[str, str] = MappingProxyType({"throughput": "throughput_pps", "latency": "rtt_p50_ns"})
#: What ``thresholds.toml`` calls the tolerated worsening, by which way a figure is better.
TOLERANCE: Mapping[Better, str] = MappingProxyType({"higher": "max_drop", "lower": "max_rise"})
ALLOWANCE = "allowance"
#: All keys that are about a baseline.
KEYS = tuple(
    key
    for name, (_, better) in COMPARED.items()
    for base in (TOLERANCE[better], ALLOWANCE)
    for key in (base, f"{base}_{name}")
)


@dataclass(frozen=True, slots=True)
class Allowed:
    """How much worse than the baseline one figure may be, and where that is written."""

    name: str
    kind: Literal["drop", "rise"]
    margin: Margin
    source: str


@dataclass(frozen=True, slots=True)
class Margins:
    """The keys about baselines that hold for a case, each with its value and where it is written."""

    values: Mapping[str, tuple[float, str]] = field(default_factory=dict)

    def of(self, dimension: str) -> list[Allowed]:
        """What is compared, the main figure first."""
        found = []
        for name, (owner, better) in COMPARED.items():
            own = [self.values.get(f"{base}_{name}") for base in (TOLERANCE[better], ALLOWANCE)]
            if owner == dimension and (name == MAIN[dimension] or any(own)):
                found.append(self._allowed(name, better, *own))
        return found

    def _allowed(
        self, name: str, better: Better, tolerated: tuple[float, str] | None, allowance: tuple[float, str] | None
    ) -> Allowed:
        if tolerated is None:
            tolerated = self.values.get(TOLERANCE[better])
        if allowance is None:
            allowance = self.values.get(ALLOWANCE, (DEFAULT_ALLOWANCE, "the default allowance"))
        source = allowance[1]
        if tolerated is not None:
            source = f"{tolerated[1]} and {allowance[1].rpartition(': ')[2]}"
        margin = Margin(better, tolerated[0] if tolerated else 0.0, allowance[0])
        return Allowed(name, "drop" if better == "higher" else "rise", margin, source)


def other_way(key: str) -> str:
    """The end of a message about a drop of what is better when lower, or the other way round; else empty."""
    for base, other, word in (("max_drop_", "max_rise_", "lower"), ("max_rise_", "max_drop_", "higher")):
        name = key.removeprefix(base)
        if name != key and other + name in KEYS:
            return f": {name} is better when {word}; give {other}{name}"
    return ""


def refusal(key: str, value: float) -> str | None:
    """Why a value cannot be; None if it can."""
    if value < 0:
        return "is negative; give a share such as 0.05"
    if value >= 1 and not key.startswith("max_rise"):
        return "is no share below 1; give 0.05 for 5 %"
    return None
