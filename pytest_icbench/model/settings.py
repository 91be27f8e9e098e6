# SPDX-License-Identifier: BSD-3-Clause
"""How a case is measured: lengths, numbers, stopping. What is measured stands in the Case."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from types import MappingProxyType
from typing import Any

from pytest_icbench.errors import UsageError
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.search_goal import PRESETS, Goal, goal_of
from pytest_icbench.stats.warmup import FEWEST_WINDOWS

#: What an adaptive launch of throughput sends before its first window, and how long it may wait for a stationary rate.
LEAST_WARMUP_S, MOST_WARMUP_S = 0.1, 2.0
#: Least warm-up of a launch of latency where that of throughput is adaptive.
LATENCY_WARMUP_S = 0.25


@dataclass(frozen=True, slots=True)
class Settings:
    """Lengths in seconds.

    Attributes:
        precision: launches go on until the interval of the main figure is within ± this part of it.
        max_duration_s: time for one case, after which launches end whatever the interval is.
        min_launches: fewest launches; six is the fewest whose range is a 95 % interval of the median.
        repeats: a fixed number of launches instead; then neither precision nor max_duration_s matter.
        warmup_s: sent before the first window, not counted.
        max_warmup_s: longest warm-up of a launch that waits until its rate, or its median round trip, is stationary; up
            to ``warmup_s`` (and with ``skip_s`` or ``keep_s``) the warm-up is fixed.
        duration_s: measured time of a launch.
        window_s: length of a window.
        drain_s: how long a receiver waits for frames under way after the sender's end. RFC 2544 asks for 2 s; a path
            within one host holds frames for milliseconds. A receiver that has everything ends at once.
        skip_s, keep_s: of the measured time, discard this much at first, then keep this much (None: the rest).
        ring: descriptors of an endpoint's ring (DPDK), frames of socket buffer.
        reference: measure the reference link beside the case.
        fresh: build the rig anew for each launch.
        debug: log every window while it runs.
        catch_up: frames with which a late sender may catch up at once, the rest is not offered; 0 is no limit.
        search_preset: name of the goals of a search, one of ``PRESETS``.
        search_width, search_trial_s, search_sum_s: replace the preset's width and its final trial's and load's length.
        search_time_s: limit of a search; None for the preset's.
        stream: file to which windows are appended while they run.
        train: one train a window instead of a stream: ``FROM:TO:STEPS`` as the workload's ``--train`` takes it.
    """

    precision: float = 0.03
    max_duration_s: float = 60.0
    min_launches: int = 6
    repeats: int | None = None
    warmup_s: float = 0.25
    max_warmup_s: float = 0.0
    duration_s: float = 1.0
    window_s: float = 0.1
    drain_s: float = 0.5
    skip_s: float = 0.0
    keep_s: float | None = None
    ring: int = 256
    reference: bool = True
    fresh: bool = False
    debug: bool = False
    catch_up: int = 0
    search_preset: str = "csit"
    search_width: float | None = None
    search_trial_s: float | None = None
    search_sum_s: float | None = None
    search_time_s: float | None = None
    stream: str | None = None
    train: str | None = None

    def __post_init__(self) -> None:
        for name in ("precision", "max_duration_s", "duration_s", "window_s"):
            if not getattr(self, name) > 0:
                raise UsageError(f"{name} is {getattr(self, name)}; give a number above 0")
        for name in ("warmup_s", "max_warmup_s", "drain_s", "skip_s"):
            if getattr(self, name) < 0:
                raise UsageError(f"{name} is {getattr(self, name)}; give 0 or more")
        if self.min_launches < 1 or (self.repeats is not None and self.repeats < 1):
            raise UsageError("the number of launches is below 1; give 1 or more")
        if self.keep_s is not None and self.keep_s <= 0:
            raise UsageError(f"keep_s is {self.keep_s}; give a number above 0, or leave it out to keep the rest")
        if self.window_s > self.duration_s:
            raise UsageError(
                f"a window of {self.window_s:g} s does not fit into a duration of {self.duration_s:g} s; "
                "make the window shorter"
            )
        if self.skip_s + (self.keep_s or self.window_s) > self.duration_s + 1e-9:
            kept = f" and keeping {self.keep_s:g} s" if self.keep_s else ""
            raise UsageError(
                f"skipping {self.skip_s:g} s{kept} leaves nothing of {self.duration_s:g} s; make the duration longer"
            )

    def keeps(self, number: int) -> bool:
        """Whether window ``number`` (1 is the first) counts."""
        begin = (number - 1) * self.window_s
        end = self.duration_s if self.keep_s is None else self.skip_s + self.keep_s
        return begin >= self.skip_s - 1e-9 and begin + self.window_s <= end + 1e-9

    @property
    def for_histograms(self) -> Settings:
        """The same discarding for what is not counted by window: what is skipped is sent as warm-up, what follows the
        kept time is not sent at all.

        A launch that has too few windows to be judged has a fixed warm-up.
        """
        keep_s = self.duration_s - self.skip_s if self.keep_s is None else self.keep_s
        warmup_s = max(self.warmup_s, LATENCY_WARMUP_S) if self.settles else self.warmup_s
        judged = replace(self, warmup_s=warmup_s)
        if judged.settles and self.duration_s >= (FEWEST_WINDOWS - 0.5) * self.window_s:
            return judged
        return replace(
            self, warmup_s=warmup_s + self.skip_s, max_warmup_s=0.0, duration_s=keep_s, skip_s=0.0, keep_s=None
        )

    @property
    def settles(self) -> bool:
        """Whether a launch's measured part begins where its rate, or its median round trip, is stationary."""
        return self.max_warmup_s > self.warmup_s and not self.skip_s and self.keep_s is None

    @property
    def sending_s(self) -> float:
        """Longest time that a sender sends after the warm-up that no window counts."""
        if not self.settles:
            return self.duration_s
        fewest_s = max(self.duration_s, FEWEST_WINDOWS * self.window_s)
        return fewest_s + self.max_warmup_s - self.warmup_s

    @property
    def launch_s(self) -> float:
        """Time that one launch should take if its rate is stationary at once, without starting and ending it."""
        return self.warmup_s + self.duration_s + self.drain_s

    def with_protocol(self, name: str) -> Settings:
        """The discarding of a published experiment. Raises UsageError for an unknown one."""
        if name not in PROTOCOLS:
            raise UsageError(f"unknown protocol {name!r}; known: {', '.join(sorted(PROTOCOLS))}")
        return replace(self, **PROTOCOLS[name])

    def goal(self, rate: Rate) -> Goal:
        """What a search for ``rate`` looks for. Raises UsageError if the preset is not about such a rate."""
        return goal_of(
            rate, self.search_preset, width=self.search_width, trial_s=self.search_trial_s, sum_s=self.search_sum_s
        )

    @property
    def search_limit_s(self) -> float:
        """Time for one search."""
        return PRESETS[self.search_preset].time_s if self.search_time_s is None else self.search_time_s

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


#: How the experiments that scenarios reproduce were measured: one run of a minute each, sampled every second.
PROTOCOLS: MappingProxyType[str, dict[str, Any]] = MappingProxyType(
    {
        # First and last samples discarded.
        "thesis": {"duration_s": 60.0, "window_s": 1.0, "skip_s": 1.0, "keep_s": 58.0, "repeats": 1, "drain_s": 2.0},
        # First 20 s discarded, 20 s kept.
        "paper": {"duration_s": 60.0, "window_s": 1.0, "skip_s": 20.0, "keep_s": 20.0, "repeats": 1, "drain_s": 2.0},
    }
)
