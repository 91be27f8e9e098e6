# SPDX-License-Identifier: BSD-3-Clause
"""The settings by which a case is measured: lengths, numbers, stopping. The Case says what is measured."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from types import MappingProxyType
from typing import Any

from pytest_icbench.errors import UsageError
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.search_goal import PRESETS, Goal, goal_of
from pytest_icbench.model.trace import Trace
from pytest_icbench.stats.warmup import FEWEST_WINDOWS

#: Warm-up of an adaptive launch of throughput: before its first window, and at most until the rate is stationary.
LEAST_WARMUP_S, MOST_WARMUP_S = 0.1, 2.0
#: Least warm-up of a launch of latency if that of throughput is adaptive.
LATENCY_WARMUP_S = 0.25


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a case, with lengths in seconds.

    Attributes:
        precision: launches go on until the interval of the main figure is within ± this share of it.
        max_duration_s: time for one case, after which launches end whatever the interval is.
        min_launches: the fewest launches; the range of six is a 95 % interval of the median.
        repeats: a fixed number of launches; precision and max_duration_s then have no effect.
        warmup_s: time of traffic before the first window, which is not counted.
        max_warmup_s: longest warm-up of a launch that waits until its rate, or its median round trip, is stationary; up
            to ``warmup_s`` (and with ``skip_s`` or ``keep_s``) the warm-up is fixed.
        duration_s: measured time of a launch.
        window_s: length of a window.
        drain_s: how long a receiver waits for frames under way after the sender's end. RFC 2544 asks for 2 s; a path
            within one host holds frames for milliseconds. A receiver that has received all frames ends at once.
        skip_s, keep_s: of the measured time, discard ``skip_s`` first, then keep ``keep_s`` (None: the rest).
        ring: descriptors of an endpoint's ring (DPDK), or frames of its socket buffer.
        reference: whether the reference link is measured beside the case.
        rebuild: whether the rig is built anew for each launch.
        debug: whether every window is logged while it runs.
        catch_up: frames with which a late sender may catch up at once; the rest is not offered. 0 is no limit.
        search_preset: name of the goals of a search, one of ``PRESETS``.
        search_width, search_trial_s, search_sum_s: values that replace the preset's width, length of the final trials,
            and duration sum.
        search_time_s: limit of a search; None for the preset's.
        stream: file to which windows are appended while they run.
        train: one train per window instead of a stream: ``FROM:TO:STEPS`` as the workload's ``--train`` takes it.
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
    rebuild: bool = False
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
        self._check_windows()

    def _check_windows(self) -> None:
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

    def following(self, trace: Trace | None) -> Settings:
        """Returns the settings for a changing load: a launch is as long as the load; its warm-up is fixed."""
        if trace is None:
            return self
        whole = replace(self, max_warmup_s=0.0, duration_s=float(trace.seconds), skip_s=0.0, keep_s=None)
        return replace(whole, warmup_s=max(self.warmup_s, LATENCY_WARMUP_S))

    @property
    def for_histograms(self) -> Settings:
        """The same settings for histograms, which are not counted by window.

        The skipped time is sent as warm-up, and nothing is sent after the kept time. A launch with too few windows to
        be judged has a fixed warm-up.
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
        """The longest time for which a sender sends after the warm-up that no window counts."""
        if not self.settles:
            return self.duration_s
        fewest_s = max(self.duration_s, FEWEST_WINDOWS * self.window_s)
        return fewest_s + self.max_warmup_s - self.warmup_s

    @property
    def launch_s(self) -> float:
        """The time of one launch if its rate is stationary at once, without starting and ending it."""
        return self.warmup_s + self.duration_s + self.drain_s

    def with_protocol(self, name: str) -> Settings:
        """Returns the settings with the lengths of a published experiment. Raises UsageError for an unknown one."""
        if name not in PROTOCOLS:
            raise UsageError(f"unknown protocol {name!r}; known: {', '.join(sorted(PROTOCOLS))}")
        return replace(self, **PROTOCOLS[name])

    def goal(self, rate: Rate) -> Goal:
        """Returns the goal of a search for ``rate``. Raises UsageError if the preset does not allow such a rate."""
        return goal_of(
            rate, self.search_preset, width=self.search_width, trial_s=self.search_trial_s, sum_s=self.search_sum_s
        )

    @property
    def search_limit_s(self) -> float:
        """The time limit of one search."""
        return PRESETS[self.search_preset].time_s if self.search_time_s is None else self.search_time_s

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


#: Settings by name: of a first look, and of the experiments that scenarios reproduce.
PROTOCOLS: MappingProxyType[str, dict[str, Any]] = MappingProxyType(
    {
        # The least whose intervals say something. scenarios/test_demo.py has what the lengths rest on.
        "quick": {"repeats": 6, "warmup_s": 0.1, "duration_s": 0.2, "drain_s": 0.05, "reference": False},
        # A run of a minute, sampled every second, without its first and last sample.
        "thesis": {"duration_s": 60.0, "window_s": 1.0, "skip_s": 1.0, "keep_s": 58.0, "repeats": 1, "drain_s": 2.0},
        # Such a run, with 20 s kept after the first 20.
        "paper": {"duration_s": 60.0, "window_s": 1.0, "skip_s": 20.0, "keep_s": 20.0, "repeats": 1, "drain_s": 2.0},
    }
)
