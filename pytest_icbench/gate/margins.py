# SPDX-License-Identifier: BSD-3-Clause
"""The figures that are compared with a baseline, and the margin of each. Pure.

The main figure of a dimension is always compared, with the tolerances ``max_drop`` or ``max_rise`` and ``allowance``.
Another figure is compared where one of these names it: ``max_rise_rtt_p99_ns``, ``max_rise_cycles_per_packet``. Where a
rate tells nothing about the switch, because it is "at least" or was given, the switch's cycles a frame are compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal

from pytest_icbench.model.measurement import MAIN_FIGURES
from pytest_icbench.stats.noninferiority import DEFAULT_ALLOWANCE, Better, Margin

#: Figures that can be compared with a baseline, with their dimension and their better direction.
COMPARED: Mapping[str, tuple[str, Better]] = MappingProxyType(
    {
        "throughput_pps": ("throughput", "higher"),
        "cycles_per_packet": ("throughput", "lower"),
        "operations_per_second": ("application", "higher"),
        "response_p50_ns": ("application", "lower"),
        "response_p99_ns": ("application", "lower"),
        "response_p99_9_ns": ("application", "lower"),
        "server_cpu_ns_per_operation": ("application", "lower"),
        "birth_ns": ("birth", "lower"),
        "rtt_p50_ns": ("latency", "lower"),
        "rtt_mean_ns": ("latency", "lower"),
        "rtt_p90_ns": ("latency", "lower"),
        "rtt_p99_ns": ("latency", "lower"),
        "rtt_p99_9_ns": ("latency", "lower"),
    }
)
#: The figure of each dimension that is always compared.
MAIN: Mapping[str, str] = MAIN_FIGURES
#: The figure that tells about a switch where its rate does not.
CYCLES = "cycles_per_packet"
#: The key of the tolerated worsening in ``thresholds.toml``, by the figure's better direction.
TOLERANCE: Mapping[Better, str] = MappingProxyType({"higher": "max_drop", "lower": "max_rise"})
ALLOWANCE = "allowance"
#: All keys about a baseline.
KEYS = tuple(
    key
    for name, (_, better) in COMPARED.items()
    for base in (TOLERANCE[better], ALLOWANCE)
    for key in (base, f"{base}_{name}")
)


@dataclass(frozen=True, slots=True)
class Allowed:
    """The margin of one figure against the baseline. ``source``: the keys that set it, with their file."""

    name: str
    kind: Literal["drop", "rise"]
    margin: Margin
    source: str


@dataclass(frozen=True, slots=True)
class Margins:
    """The keys about baselines that hold for a case: key to value and source."""

    values: Mapping[str, tuple[float, str]] = field(default_factory=dict)

    def of(self, dimension: str) -> list[Allowed]:
        """Returns the margins of the compared figures, the main figure first."""
        margins = []
        for name, (owner, better) in COMPARED.items():
            if owner != dimension:
                continue
            named = [self.values.get(f"{base}_{name}") for base in (TOLERANCE[better], ALLOWANCE)]
            if name == MAIN[dimension] or any(named):
                margins.append(self._allowed(name, better, *named))
        return margins

    def of_cycles(self) -> Allowed:
        """Returns the margin of the cycles a frame: as named, else the rate's. ``max_rise`` is of times."""
        rate = self.of("throughput")[0]
        cost, source = rate.margin.of_cost, rate.source
        tolerated, allowance = (self.values.get(f"{base}_{CYCLES}") for base in (TOLERANCE["lower"], ALLOWANCE))
        if tolerated is not None:
            cost, source = replace(cost, tolerated=tolerated[0]), tolerated[1]
        if allowance is not None:
            cost, source = replace(cost, allowance=allowance[0]), f"{source} and {allowance[1].rpartition(': ')[2]}"
        return Allowed(CYCLES, "rise", cost, source)

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
    """Returns the end of a message that names the key for the opposite direction, if that one exists; else empty."""
    for base, other, word in (("max_drop_", "max_rise_", "lower"), ("max_rise_", "max_drop_", "higher")):
        name = key.removeprefix(base)
        if name != key and other + name in KEYS:
            return f": {name} is better when {word}; give {other}{name}"
    return ""


def refusal(key: str, value: float) -> str | None:
    """Returns why a value is refused; None if it is accepted."""
    if value < 0:
        return "is negative; give a share such as 0.05"
    if value >= 1 and not key.startswith("max_rise"):
        return "is no share below 1; give 0.05 for 5 %"
    return None
