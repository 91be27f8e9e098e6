# SPDX-License-Identifier: BSD-3-Clause
"""What a host of two CPUs can show of functions that share a machine, and what it cannot. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import NamedTuple

from pytest_icbench.model.case import Case
from pytest_icbench.model.figures import Startup
from pytest_icbench.model.result import Result

#: The most CPUs of a host of which this is said.
FEW = 2


class _Kind(NamedTuple):
    """A kind of cases: whether a result is of it, its experiment, what few CPUs show of it, and what they do not."""

    of: Callable[[Result], bool]
    name: str
    shown: str
    not_shown: str


_KINDS = (
    _Kind(
        lambda result: result.point.chain > 1,
        "chains",
        "what a hop adds and at which hop frames are lost",
        "what a chain carries whose functions have a core each; the 99th percentile is the scheduler's",
    ),
    _Kind(
        lambda result: bool(result.point.cpu_allocations),
        "parts of a CPU",
        "how functions split one CPU",
        "what they do beside I/O on cores of its own, since all senders share the other CPU",
    ),
    _Kind(
        lambda result: result.point.mixed and not result.point.cpu_allocations,
        "different functions on one CPU",
        "who gets the CPU and how long a ping waits",
        "that at the published rates, since all senders share the other CPU",
    ),
    _Kind(
        lambda result: _alike(result.point),
        "functions side by side",
        "what each further one takes from the total",
        "what they pass on cores of their own, since their senders and receivers share these CPUs",
    ),
    _Kind(
        lambda result: result.point.rate.trace is not None,
        "loads that change",
        "how soon a path follows a change",
        "how much it follows on more cores",
    ),
    _Kind(
        lambda result: result.point.noisy_neighbour is not None,
        "noisy neighbours",
        "what memory and caches that are shared cost",
        "a noisy neighbour in another L3 domain, or beside a path of several cores",
    ),
    _Kind(
        lambda result: isinstance(result.figures, Startup),
        "creation of containers",
        "the time of each and its growth with their number",
        "these times without clients and containers on the CPUs that create them",
    ),
    _Kind(
        lambda result: (result.point.function or "").startswith("subscribers"),
        "subscribers",
        "how evenly clients are served and what many of them add to a round trip",
        "the greatest total, since the senders take as much of the CPUs as the firewalls",
    ),
)


def sentences(results: Sequence[Result]) -> list[str]:
    """Returns a sentence for each kind of cases that two CPUs can show in part; none for hosts with more."""
    few = [result for result in results if _cpus(result) <= FEW]
    return [
        f"two CPUs show of {kind.name} {kind.shown}; not {kind.not_shown}."
        for kind in _KINDS
        if any(kind.of(result) for result in few)
    ]


def _alike(case: Case) -> bool:
    """Whether equal functions stand side by side, a pair each, without parts of a CPU, at a load that stays."""
    several = case.function is not None and case.pairs > 1 and case.chain == 1
    return several and not case.one_cpu and case.rate.trace is None


def _cpus(result: Result) -> float:
    cpus = result.identity.get("cpus")
    return cpus if isinstance(cpus, int) and cpus > 0 else inf
