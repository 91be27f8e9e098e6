# SPDX-License-Identifier: BSD-3-Clause
"""The record of what other processes took from the CPUs of a launch, and its words. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pytest_icbench.wording import counted

#: The most processes that a sentence names.
MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class Taker:
    """A process that is not the rig's, by its name alone; ``share`` is its CPU time in CPUs (1.0: all of one)."""

    name: str
    share: float


@dataclass(frozen=True, slots=True)
class Throttled:
    """A control group that used up its CPU quota in some of the periods, and then stood still."""

    group: str
    cpus: float
    throttled: int
    periods: int

    @property
    def words(self) -> str:
        """What happened: ``group /ci was throttled in 37 of 50 periods (quota 1.5 CPUs)``."""
        quota = counted(1, "CPU") if self.cpus == 1 else f"{self.cpus:g} CPUs"
        return f"group {self.group} was throttled in {self.throttled} of {self.periods} periods (quota {quota})"


@dataclass(frozen=True, slots=True)
class Interference:
    """What other processes took from the CPUs that measured, over one launch with its warm-up and drain.

    Attributes:
        cpus: number of CPUs on which the rig's endpoints and the switch's workers ran.
        seconds: the time that was watched.
        taken: CPU time of processes that are not the rig's on these CPUs, in CPUs; None where it is not known.
        stolen: time that the hypervisor took from these CPUs, in CPUs; None where it is not known.
        waited: the longest time that a polling thread waited for a CPU which none of the rig's threads had, over the
            time; None where the kernel does not count it.
        waited_by: that thread: ``endpoint 1``, ``switch``.
        takers: the processes that took most, the greatest first. Those of this host, on any of the watched CPUs.
        missing: facts that this host does not report, and the claims that depend on them.
        throttled: the groups above the rig's processes that used up their CPU quotas.
    """

    cpus: int
    seconds: float
    taken: float | None = None
    stolen: float | None = None
    waited: float | None = None
    waited_by: str = ""
    takers: tuple[Taker, ...] = ()
    missing: tuple[str, ...] = ()
    throttled: tuple[Throttled, ...] = ()

    @property
    def words(self) -> str:
        """What was taken, by whom: ``other processes took 0.52 of 2 CPUs (stress-ng-cpu 0.48)``; a quota instead, if
        any.
        """
        parts = [group.words for group in self.throttled]
        if self.taken is not None and not parts:
            parts.append(f"other processes took {self.taken:.2f} of {_cpus(self.cpus)}{named(self.takers)}")
        if self.waited is not None and self.waited >= 0.01:
            parts.append(f"{self.waited_by} waited {self.waited:.1%} of the time for its CPU")
        if self.stolen is not None and self.stolen >= 0.005:
            parts.append(f"the hypervisor took {self.stolen:.2f}")
        return ", ".join(parts)


def named(takers: Sequence[Taker]) -> str:
    """Returns `` (stress-ng-cpu 0.48, make 0.03)``; empty without takers."""
    shown = ", ".join(f"{taker.name} {taker.share:.2f}" for taker in takers[:MOST_NAMED])
    return f" ({shown})" if shown else ""


def _cpus(number: int) -> str:
    return counted(number, "CPU")


def joined(here: Interference | None, there: Interference | None) -> Interference | None:
    """Returns one record of two hosts: sums, and the longer wait. None where one host does not answer."""
    if here is None or there is None:
        return None
    longer = max((here, there), key=lambda side: -1.0 if side.waited is None else side.waited)
    by_share = sorted((*here.takers, *there.takers), key=lambda taker: -taker.share)
    return replace(
        here,
        cpus=here.cpus + there.cpus,
        taken=None if here.taken is None or there.taken is None else here.taken + there.taken,
        stolen=None if here.stolen is None or there.stolen is None else here.stolen + there.stolen,
        waited=None if here.waited is None or there.waited is None else longer.waited,
        waited_by=longer.waited_by,
        takers=tuple(by_share),
        missing=tuple(dict.fromkeys((*here.missing, *there.missing))),
        throttled=(*here.throttled, *there.throttled),
    )
