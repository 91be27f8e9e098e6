# SPDX-License-Identifier: BSD-3-Clause
"""The record of whether a host was fit for measurements when a run began, and what disturbed a result. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_icbench.model.interference import Interference, named
from pytest_icbench.stats.quantiles import median, quantile
from pytest_icbench.wording import counted, percent

if TYPE_CHECKING:  # collecting reads the record of a run, and needs no results
    from pytest_icbench.model.measurement import Measurement

#: CPU time of others, and of the hypervisor, from which a host is busy, as a share of the time of its measuring CPUs.
TAKEN_LIMIT, STOLEN_LIMIT = 0.05, 0.02
#: A control link is off if all its launches lie by more than this share beyond those of the baseline's sessions.
CONTROL_LIMIT = 0.1
#: A CPU below this share of its greatest frequency is slow.
FREQUENCY_LIMIT = 0.9
#: With a greater share of disturbed launches no REGRESSED is claimed.
MOST_DISTURBED = 0.25
TOO_DISTURBED = "others disturbed more than a quarter of its launches; measure again on a quiet host"


@dataclass(frozen=True, slots=True)
class Control:
    """A control link, measured when the run began: the case's endpoints with no switch between.

    Attributes:
        case: the link's case.
        baseline: the baseline that has a figure of it.
        ratios: the link's figure in each launch, over the baseline's median.
        sessions: the first and the ninth decile of the baseline's sessions, over their median. They are deciles, so
            that one bad session does not widen the range.
    """

    case: str
    baseline: str
    ratios: tuple[float, ...]
    sessions: tuple[float, float] = (1.0, 1.0)

    @property
    def off(self) -> bool:
        """Whether every launch lies too far from what sessions had, all in the same direction."""
        low, high = (1 - CONTROL_LIMIT) * self.sessions[0], (1 + CONTROL_LIMIT) * self.sessions[1]
        return bool(self.ratios) and (max(self.ratios) < low or min(self.ratios) > high)

    @property
    def sentence(self) -> str:
        low, high = (f"{end:.0%}" for end in self.sessions)
        lay = f" ({low} to {high} in its sessions)" if low != high else ""
        return f"control link {self.case} is at {median(self.ratios):.0%} of baseline {self.baseline}{lay}"


@dataclass(frozen=True, slots=True)
class Link:
    """A reference link, measured when the run began.

    Attributes:
        case: the link's case.
        switch: its kind, ``veth`` or ``direct``.
        launches: frames per second of each launch; there is at least one.
    """

    case: str
    switch: str
    launches: tuple[float, ...]

    @property
    def pps(self) -> float:
        """The median over launches."""
        return median(self.launches)

    def beside(self, baseline: str, sessions: Sequence[float]) -> Control:
        """Returns the link with its figures in a baseline's sessions, of which there is at least one."""
        middle = median(sessions)
        ratios = tuple(round(launch / middle, 4) for launch in self.launches)
        low, high = (round(quantile(sessions, part) / middle, 4) for part in (0.1, 0.9))
        return Control(self.case, baseline, ratios, (low, high))


@dataclass(frozen=True, slots=True)
class Fitness:
    """What was found when a run began.

    Attributes:
        interference: what other processes took from the CPUs that will measure.
        frequency_mhz: least frequency of these CPUs; None where it is not known.
        frequency_share: that over the greatest frequency that the CPU can have; None where that is not known.
        controls: control links beside the baseline's.
        waited_s: seconds that the run waited for a quiet host.
        missing: facts that this host does not report.
    """

    interference: Interference
    frequency_mhz: float | None = None
    frequency_share: float | None = None
    controls: tuple[Control, ...] = ()
    waited_s: float = 0.0
    missing: tuple[str, ...] = ()

    @property
    def quiet(self) -> bool:
        """Whether other processes leave the CPUs idle. An unknown fact does not count against a host."""
        taken, stolen, cpus = self.interference.taken, self.interference.stolen, self.interference.cpus
        return (taken or 0.0) <= TAKEN_LIMIT * cpus and (stolen or 0.0) <= STOLEN_LIMIT * cpus

    @property
    def slow(self) -> bool:
        return self.frequency_share is not None and self.frequency_share < FREQUENCY_LIMIT

    @property
    def fit(self) -> bool:
        """Whether values can be compared with those of other sessions."""
        return self.quiet and not self.slow and not any(control.off for control in self.controls)

    @property
    def sentence(self) -> str:
        """What was found: ``other processes took 0.02 of 2 CPUs, 0.0 % was stolen, 2900 MHz``."""
        seen = self.interference
        count = counted(seen.cpus, "CPU")
        parts = []
        if seen.taken is not None:
            parts.append(f"other processes took {seen.taken:.2f} of {count}{named(seen.takers)}")
        if seen.stolen is not None:
            parts.append(f"{percent(seen.stolen / max(seen.cpus, 1))} was stolen")
        if self.frequency_mhz is not None:
            of_greatest = f" ({self.frequency_share:.0%} of the greatest)" if self.slow else ""
            parts.append(f"{self.frequency_mhz:.0f} MHz{of_greatest}")
        parts += [control.sentence for control in self.controls]
        return ", ".join(parts) or "nothing is known about other processes"

    def condition(self) -> dict[str, Any]:
        """Returns what a result keeps of it among its conditions."""
        said = {"fit": self.fit, "sentence": self.sentence, "waited_s": self.waited_s}
        return {**said, "missing": list(self.missing)}

    @property
    def line(self) -> str:
        """The line for the terminal: whether values can be compared with those of other sessions, and why not."""
        waited = f" after {self.waited_s:.0f} s" if self.waited_s else ""
        if self.fit:
            return f"quiet host{waited}: {self.sentence}"
        advice = "" if self.waited_s else "; --icbench-wait-quiet 10m waits for a quiet host"
        off = "" if self.quiet else "busy host" if not self.slow else "busy, slow host"
        why = off or ("slow host" if self.slow else "other host state than the baseline's")
        return f"{why}{waited}, compare within this session only: {self.sentence}{advice if not self.quiet else ''}"


def too_disturbed(result: Measurement) -> bool:
    """Whether too many launches of the figures were disturbed to claim REGRESSED; False if not known."""
    return (result.disturbed_launches or 0) > MOST_DISTURBED * result.launches


def share(result: Measurement) -> str:
    """Returns ``5 of 6 launches``: how many of the figures' launches were disturbed; empty for none."""
    return f"{result.disturbed_launches} of {counted(result.launches, 'launch')}" if result.disturbed_launches else ""


def disturbance(result: Measurement) -> str:
    """Returns ``disturbed: 5 of 6 launches, other processes took 0.52 of 2 CPUs (stress-ng-cpu 0.48)``; empty if
    nothing did.
    """
    again = result.disturbed_repeated
    repeated = f"{again} disturbed launch{'' if again == 1 else 'es'} repeated" if again else ""
    if result.disturbed_launches:
        worst = "in the worst " if result.disturbed_launches > 1 else ""
        parts = [f"disturbed: {share(result)}"]
        parts += [f"{worst}{result.disturbance}"] if result.disturbance else []
        return ", ".join([*parts, *([repeated] if repeated else [])])
    return f"{repeated}: {result.disturbance}" if repeated and result.disturbance else repeated


def unfit(result: Measurement) -> str:
    """Returns what hindered comparisons when the run began; empty for a quiet host, or if it is not known."""
    fitness: Any = result.conditions.get("fitness")
    if not isinstance(fitness, dict) or fitness.get("fit") is not False:
        return ""
    return f"when the run began {fitness.get('sentence') or 'the host was busy'}"
