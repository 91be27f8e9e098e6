# SPDX-License-Identifier: BSD-3-Clause
"""The goals of searches, with presets from the publications that define them. Pure.

A trial is good if its loss ratio is not above the goal's. A load is a lower bound when enough of its trials are good,
an upper bound when too many are not. The exceed ratio is the share of the duration sum that bad trials may take. The
terms are those of RFC 9971.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any

from pytest_icbench.errors import UsageError
from pytest_icbench.model.rate import Rate, exact_percent


@dataclass(frozen=True, slots=True)
class Preset:
    """The goals of a publication, with durations in seconds.

    Attributes:
        width: the search ends when the bounds are this close, as a share of the upper one.
        initial_trial_s, final_trial_s: length of the shortest trials, which narrow the range, and of the final ones.
        duration_sum_s: longest time for which a load is measured, in trials of the final length.
        exceed_ratio: share of the duration sum that bad trials may take below a lower bound.
        steps: number of coarser searches before the final one.
        overheads_count: whether a trial counts towards the duration sum with all the time that it took, as in CSIT;
            otherwise with the time for which it sent.
        time_s: limit of a search unless the user sets one.
        drain_s: how long a receiver waits for frames under way.
        loss_ratio: the only loss ratio that the preset allows; None for any.
        source: the publication.
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
    """The goal of one search, as in ``Preset``; ``loss_ratio`` is the greatest of a good trial."""

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
        """Whether unsent frames count as lost: if their share of the intended frames exceeds the goal's width.

        RFC 9971 would count each. With fewer the search cannot tell the load from the intended one. They are not lost
        by the device, and are subtracted from the reported rate (``kinds.search.search_run``).
        """
        return unsent > self.width * intended

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def goal_of(
    rate: Rate, preset: str, *, width: float | None = None, trial_s: float | None = None, sum_s: float | None = None
) -> Goal:
    """Returns the goal of a search for ``rate``; ``width``, ``trial_s`` and ``sum_s`` replace the preset's values.

    Args:
        preset: a key of ``PRESETS``.
        width: of the final bounds, as a share of the upper one.
        trial_s: length of the final trials, in seconds.
        sum_s: longest time for which a load is measured, in seconds.

    Raises UsageError: the preset does not allow this loss ratio, or the lengths contradict each other.
    """
    defaults = PRESETS[preset]
    assert rate.loss_ratio is not None
    if defaults.loss_ratio is not None and rate.loss_ratio != defaults.loss_ratio:
        allowed = "ndr" if defaults.loss_ratio == 0 else f"pdr:{exact_percent(defaults.loss_ratio)}%"
        raise UsageError(
            f"the search preset {preset} is about rate {allowed}, not {rate.typed}; "
            "take another --icbench-search-preset"
        )
    final = defaults.final_trial_s if trial_s is None else trial_s
    if sum_s is not None and sum_s < final:
        raise UsageError(f"a search cannot measure a load for {sum_s:g} s in trials of {final:g} s; raise the sum")
    # The number of trials in the preset's sum stays the same if the trials have another length.
    total = defaults.duration_sum_s / defaults.final_trial_s * final if sum_s is None else sum_s
    return Goal(
        preset=preset,
        loss_ratio=rate.loss_ratio,
        exceed_ratio=defaults.exceed_ratio,
        width=defaults.width if width is None else width,
        initial_trial_s=min(defaults.initial_trial_s, final),
        final_trial_s=final,
        duration_sum_s=total,
        steps=defaults.steps,
        overheads_count=defaults.overheads_count,
    )
