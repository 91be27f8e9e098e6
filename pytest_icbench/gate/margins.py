# SPDX-License-Identifier: BSD-3-Clause
"""The figures that are compared with a baseline, and the loss that is allowed of each. Pure.

The main figure of a dimension is always compared, by ``allowance``. Another figure is compared if a key names it:
``allowance_rtt_p99_ns``, ``allowance_cycles_per_packet``. If a rate says nothing about the switch, because it is a
lower bound or was fixed, the switch's cycles a frame are compared instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from pytest_icbench.model.figures import MAIN_FIGURES, PERCENTILES, time_field
from pytest_icbench.model.measurement import CYCLES
from pytest_icbench.stats.verdict_rule import DEFAULT_ALLOWANCE, Allowance, Better

_ROUND_TRIP: tuple[str, Better] = ("latency", "lower")
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
        "startup_ns": ("startup", "lower"),
        **dict.fromkeys((*(time_field("rtt", name) for name in PERCENTILES), "rtt_mean_ns"), _ROUND_TRIP),
    }
)
#: The figure of each dimension that is always compared.
MAIN: Mapping[str, str] = MAIN_FIGURES
#: The key of the loss that is allowed of all figures, and the beginning of the key of one.
ALLOWANCE = "allowance"
#: All keys about a baseline.
KEYS = (ALLOWANCE, *(f"{ALLOWANCE}_{name}" for name in COMPARED))


@dataclass(frozen=True, slots=True)
class FigureAllowance:
    """The allowance of one figure.

    Attributes:
        source: the key that set it, with its file.
    """

    name: str
    allowance: Allowance
    source: str

    @property
    def kind(self) -> Literal["drop", "rise"]:
        """The direction of a loss."""
        return "drop" if self.allowance.better == "higher" else "rise"


@dataclass(frozen=True, slots=True)
class Margins:
    """The keys about baselines that apply to a case: key to value and source."""

    values: Mapping[str, tuple[float, str]] = field(default_factory=dict)

    def of(self, dimension: str) -> list[FigureAllowance]:
        """Returns the allowances of the compared figures, the main figure first."""
        main = MAIN[dimension]
        owned = [name for name, (owner, _) in COMPARED.items() if owner == dimension]
        return [self._allowed(name) for name in owned if name == main or f"{ALLOWANCE}_{name}" in self.values]

    def for_cycles(self) -> FigureAllowance:
        """Returns the allowance of the cycles a frame: its own, else the equivalent of the rate's."""
        if f"{ALLOWANCE}_{CYCLES}" in self.values:
            return self._allowed(CYCLES)
        rate = self.of("throughput")[0]
        return FigureAllowance(CYCLES, rate.allowance.of_cost, rate.source)

    def _allowed(self, name: str) -> FigureAllowance:
        default = self.values.get(ALLOWANCE, (DEFAULT_ALLOWANCE, "the default allowance"))
        share, source = self.values.get(f"{ALLOWANCE}_{name}", default)
        return FigureAllowance(name, Allowance(COMPARED[name][1], share), source)


def explain_refusal(key: str, value: float) -> str | None:
    """Returns why a value is refused; None if it is accepted.

    A time can grow by more than 100 %, a rate cannot fall by more.
    """
    if value < 0:
        return "is negative; give a share such as 0.05"
    rises = COMPARED.get(key.removeprefix(f"{ALLOWANCE}_"), ("", "higher"))[1] == "lower"
    return "is no share below 1; give 0.05 for 5 %" if value >= 1 and not rises else None
