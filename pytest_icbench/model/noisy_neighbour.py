# SPDX-License-Identifier: BSD-3-Clause
"""A noisy neighbour: load on separate CPUs while a case is measured, its isolation, and its effect. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from pytest_icbench.stats.quantiles import Estimate

#: The kinds of noisy neighbours with the packages of their programs; ``none`` is the control: no noisy neighbour
#: against none.
KINDS: Mapping[str, str] = MappingProxyType(
    {
        "none": "",
        "cpu": "stress-ng",
        "cache": "stress-ng",
        "stream": "stress-ng",
        "memory": "stress-ng",
        "memtester": "memtester",
        "noisy": "dpdk",
    }
)
#: The memory of one process of those that hold much, in MiB.
MEMORY_MIB: Mapping[str, int] = MappingProxyType({"memory": 256, "memtester": 256, "noisy": 512})
#: The most CPUs of a noisy neighbour.
MOST_CPUS = 64
#: Isolation by CPUs of another L3 domain.
L3 = "l3"


_LABEL = re.compile(rf"({'|'.join(KINDS)})(?::([1-9]\d?))?", re.ASCII)
_WAYS = re.compile(r"cat:(\d{1,2}(?:\.\d{1,2}){1,3})", re.ASCII)


@dataclass(frozen=True, slots=True)
class NoisyNeighbour:
    """A noisy neighbour: one of ``KINDS`` on a number of CPUs, each with a separate process."""

    kind: str
    cpus: int = 1

    @classmethod
    def of(cls, label: str) -> NoisyNeighbour | None:
        """Returns the noisy neighbour of ``stream`` or ``stream:2``; None for any other text."""
        match = _LABEL.fullmatch(label)
        if match is None or int(match[2] or 1) > MOST_CPUS:
            return None
        return cls(match[1], int(match[2] or 1))

    @property
    def memory_mib(self) -> int:
        """The memory of all its processes in MiB; 0 for kinds that hold little."""
        return MEMORY_MIB.get(self.kind, 0) * self.cpus

    @property
    def label(self) -> str:
        """The noisy neighbour as ids have it."""
        return self.kind if self.cpus == 1 else f"{self.kind}:{self.cpus}"


def cache_ways(isolation: str | None) -> tuple[int, ...]:
    """Returns the ways of the L3 cache by part of ``cat:11.1``; none for another isolation."""
    match = _WAYS.fullmatch(isolation or "")
    return tuple(map(int, match[1].split("."))) if match else ()


@dataclass(frozen=True, slots=True)
class NoisyNeighbourUse:
    """What a noisy neighbour did in a launch, or in the launches of a case.

    Attributes:
        busy: CPU time over the time of its CPUs; the least of the launches.
        cache_bytes: what each part of the cache held (Cache Monitoring), by its name, at the end of a launch with the
            noisy neighbour; median over launches; null where the CPU does not tell.
    """

    busy: float
    cache_bytes: dict[str, float] | None = None


@dataclass(frozen=True, slots=True)
class NoisyNeighbourEffect:
    """The effect of a noisy neighbour: launches with it over launches without it, in turn on the same rig.

    Attributes:
        pairs: number of pairs of adjacent launches behind the ratios.
        confidence: of each interval. If nothing changed, all intervals hold 1 with a probability of at least 99 %.
        rate_ratio: of frames per second; null for round trips.
        mean_ratio, p99_ratio, maximum_ratio: of round-trip times, by launches; null where a launch has no such figure.
        busy: least CPU time of the noisy neighbour in a launch over the time of its CPUs; null for the control.
        cache_bytes: median of what each part of the L3 cache held beside the noisy neighbour; null where it is not
            known.
    """

    pairs: int
    confidence: float
    rate_ratio: Estimate | None = None
    mean_ratio: Estimate | None = None
    p99_ratio: Estimate | None = None
    maximum_ratio: Estimate | None = None
    busy: float | None = None
    cache_bytes: dict[str, float] | None = None

    @property
    def ratios(self) -> dict[str, Estimate]:
        """The ratios that are known, by what they are of."""
        named = {
            "throughput": self.rate_ratio,
            "mean": self.mean_ratio,
            "p99": self.p99_ratio,
            "maximum": self.maximum_ratio,
        }
        return {name: ratio for name, ratio in named.items() if ratio is not None}


def excludes_one(ratio: Estimate) -> bool:
    """Whether a ratio's interval excludes 1, so that a change is shown."""
    return ratio.low is not None and ratio.high is not None and not ratio.low <= 1 <= ratio.high
