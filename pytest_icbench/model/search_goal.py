# SPDX-License-Identifier: BSD-3-Clause
"""How hard a search looks before it believes a load: the goals of the publications that define searches. Pure.

A trial is good if its loss ratio is not above the goal's. A load is a lower bound when enough of its trials are good,
an upper bound when too many are not: the exceed ratio is the part of the duration sum that bad trials may take (terms:
RFC 9971).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any

from pytest_icbench.errors import UsageError
from pytest_icbench.model.rate import Rate, exact_percent


@dataclass(frozen=True, slots=True)
class Preset:
    """Durations in seconds.

    Attributes:
        width: the search ends when the bounds are this close, as a part of the upper one.
        initial_trial_s, final_trial_s: the shortest trial, by which it comes near, and the one by which it decides.
        duration_sum_s: a load is measured for this long at most, in trials of the final length.
        exceed_ratio: part of the duration sum that bad trials may take below a lower bound.
        steps: coarser searches that come before the final one.
        overheads_count: whether a trial counts towards the duration sum with all the time that it took, as in CSIT;
            otherwise with the time for which it sent.
        time_s: limit of a search unless the user sets one.
        drain_s: how long frames under way are waited for.
        loss_ratio: the only one that this preset is about; None for any.
        source: where it comes from.
    """

    width: float
    initial_trial_s: float
    final_trial_s: float
    duration_sum_s: float
    exceed_ratio: float
    steps: int
    overheads_count: bool
    time_s: float
    drain_s: float
    loss_ratio: float | None
    source: str


PRESETS: MappingProxyType[str, Preset] = MappingProxyType(
    {
        "csit": Preset(0.005, 1.0, 1.0, 21.0, 0.5, 2, True, 120.0, 0.5, None, "FD.io CSIT, its goals for MLRsearch"),
        "rfc2544": Preset(0.005, 1.0, 60.0, 60.0, 0.0, 2, False, 3600.0, 2.0, 0.0, "RFC 2544 26.1: 60 s without loss"),
        "tst009": Preset(
            *(0.005, 1.0, 60.0, 120.0, 0.5, 2, False, 7200.0, 2.0, None),
            "ETSI GS NFV-TST 009 12.3.3: binary search with loss verification, r = 2",
        ),
        "icpe2018": Preset(
            *(0.005, 1.0, 60.0, 60.0, 0.0, 2, False, 3600.0, 2.0, 0.0001),
            "Pitaev and others, ICPE 2018: at most 0.01 % lost in 60 s",
        ),
    }
)


@dataclass(frozen=True, slots=True)
class Goal:
    """What one search looks for; see ``Preset``, and ``loss_ratio``: the greatest that a good trial may have."""

    preset: str
    loss_ratio: float
    exceed_ratio: float
    width: float
    initial_trial_s: float
    final_trial_s: float
    duration_sum_s: float
    steps: int
    overheads_count: bool

    def accepts(self, loss_ratio: float) -> bool:
        """Whether a trial with this loss ratio is good."""
        return loss_ratio <= self.loss_ratio

    def falls_short(self, unsent: int, intended: int) -> bool:
        """Whether so many frames that were not offered count as lost: more than the goal's width.

        RFC 9971 would count each. Fewer make a load that the search does not tell from the one intended: they are not
        the device's loss, and are taken off the rate that is reported (``search_summary``).
        """
        return unsent > self.width * intended

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def goal_of(
    rate: Rate,
    preset: str,
    *,
    width: float | None = None,
    trial_s: float | None = None,
    sum_s: float | None = None,
) -> Goal:
    """The goal of a search for ``rate``; what is given replaces the preset's.

    Raises:
        UsageError: the preset is not about this loss ratio, or the lengths contradict each other.
    """
    found = PRESETS[preset]
    assert rate.loss_ratio is not None
    if found.loss_ratio is not None and rate.loss_ratio != found.loss_ratio:
        wanted = "ndr" if found.loss_ratio == 0 else f"pdr:{exact_percent(found.loss_ratio)}%"
        raise UsageError(
            f"the search preset {preset} is about rate {wanted}, not {rate.typed}; take another --icbench-search-preset"
        )
    final = found.final_trial_s if trial_s is None else trial_s
    if sum_s is not None and sum_s < final:
        raise UsageError(f"a search cannot measure a load for {sum_s:g} s in trials of {final:g} s; raise the sum")
    # A preset's sum is so many trials; with trials of another length it stays that many.
    total = found.duration_sum_s / found.final_trial_s * final if sum_s is None else sum_s
    return Goal(
        preset=preset,
        loss_ratio=rate.loss_ratio,
        exceed_ratio=found.exceed_ratio,
        width=found.width if width is None else width,
        initial_trial_s=min(found.initial_trial_s, final),
        final_trial_s=final,
        duration_sum_s=total,
        steps=found.steps,
        overheads_count=found.overheads_count,
    )
