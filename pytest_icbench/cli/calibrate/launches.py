# SPDX-License-Identifier: BSD-3-Clause
"""The launches of a calibration: one version beside itself, and beside a known slower one, on rigs built anew now and
then, since what a rig draws when it is built is part of what differs between two runs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pytest_icbench.config.options import Options
from pytest_icbench.errors import Invalid, UsageError
from pytest_icbench.measure.summary.summarize import main_figure
from pytest_icbench.model.candidate import Candidate
from pytest_icbench.model.case import Case
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.settings import Settings
from pytest_icbench.model.verdict import Verdict
from pytest_icbench.stats.noninferiority import Margin
from pytest_icbench.stats.quantiles import quotients
from pytest_icbench.testbed.rig_pool import RigPool

if TYPE_CHECKING:
    from pytest_icbench.measure.progress import OnProgress
    from pytest_icbench.testbed.testbed import Testbed

#: The switch whose slowness is known: the workload's own forwarder, and what it adds to each frame, in cycles.
KNOWN, COST = "forward", 4000
#: Names of the candidates.
SAME, SLOWER = "same", "slower"
#: Part of the time for the injected slow-down, and by how much it costs cycles.
INJECTING, INJECTED = 0.2, 0.05
#: Pairs on the same two rigs.
BLOCK = 12
#: Nothing is judged here: no ratio is beyond this.
_ANY = Margin("higher", allowance=0.999)

Tell = Callable[[str], None]


@dataclass(slots=True)
class Recorded:
    """What was measured.

    Attributes:
        same: quotients of the version beside itself, a list for each two rigs.
        slower: quotients of the slower one, likewise; empty where none can be injected.
        expected: what the median of the latter should be, from the version's cycles a frame; None where unknown.
        pairs, seconds: of all, without building.
        surroundings: placement, identity, treatment and conditions of a result.
    """

    same: list[list[float]] = field(default_factory=list)
    slower: list[list[float]] = field(default_factory=list)
    expected: float | None = None
    pairs: int = 0
    seconds: float = 0.0
    surroundings: dict[str, Any] = field(default_factory=dict)

    @property
    def pair_s(self) -> float:
        """What a pair takes."""
        return self.seconds / self.pairs if self.pairs else 0.0


def candidates(case: Case) -> tuple[Candidate, ...]:
    """The version beside itself, and the slower one."""
    same = Candidate(case.switch, SAME, "variant", case.mode or "")
    if case.switch != KNOWN:
        return (same,)
    return same, Candidate(case.switch, SLOWER, "variant", slowed(case.mode or "", INJECTED))


def slowed(mode: str, by: float) -> str:
    """The forwarder's mode with this part more cycles a frame. Raises UsageError if it has no cost to raise."""
    parts = mode.split("+")
    costs = [part for part in parts if part.startswith("cost")]
    if not costs:
        raise UsageError(
            f"icbench calibrate: {KNOWN}:{mode} costs no cycles that could be raised; give --variant cost{COST}"
        )
    more = f"cost{round(int(costs[0].removeprefix('cost')) / (1 - by))}"
    return "+".join(more if part == costs[0] else part for part in parts)


def calibrate(bench: Testbed, case: Case, settings: Settings, budget_s: float, tell: Tell) -> Recorded:
    """Measures until the time is up; at least one block of each kind.

    Args:
        bench: holds the host; knows the candidates.
        tell: progress, a line each.

    Raises Unsupported, ProvisionError, WorkloadError, and Invalid if no frames pass.
    """
    found = Recorded()
    began = time.monotonic()

    def told(text: str) -> None:
        tell(f"{text}, {max(budget_s - (time.monotonic() - began), 0) / 60:.1f} min left")

    injecting = case.switch == KNOWN
    kinds = [(SAME, budget_s * (1 - INJECTING if injecting else 1))] + ([(SLOWER, budget_s)] if injecting else [])
    for name, until_s in kinds:
        while True:
            block_began = time.monotonic()
            _block(bench, replace(case, candidate=name), settings, found, told)
            now = time.monotonic()
            if now - began + (now - block_began) > until_s:
                break
    return found


def _block(bench: Testbed, case: Case, settings: Settings, found: Recorded, tell: Tell) -> None:
    with _rigs(bench, case, settings) as rigs:
        began = time.monotonic()
        tell(f"{case.candidate}, block {len(_of(found, case)) + 1}")
        now, base = bench.measure_versions(rigs, case, replace(settings, repeats=BLOCK), _ANY, 1, _progress(tell))
        took = time.monotonic() - began
    if now.verdict == Verdict.INVALID:
        raise Invalid(now.reason or "unknown", now.evidence or "no evidence was kept")
    _of(found, case).append(_quotients(case, now, base))
    found.pairs += BLOCK
    found.seconds += took
    if case.candidate == SLOWER and found.expected is None:
        found.expected = expected(case, base)
    found.surroundings = {
        name: getattr(base, name) for name in ("placement", "identity", "treatment", "conditions", "settings")
    }


def _of(found: Recorded, case: Case) -> list[list[float]]:
    return found.same if case.candidate == SAME else found.slower


def _progress(tell: Tell) -> OnProgress:
    def show(progress: Any) -> None:
        if progress.receive_mpps is None and progress.launch:
            tell(f"{progress.case}: pair {progress.launch} of {progress.launches}")

    return show


@contextmanager
def _rigs(bench: Testbed, case: Case, settings: Settings) -> Iterator[tuple[Any, Any]]:
    pool: RigPool[Any] = RigPool(bench.make_rig)
    try:
        got = pool.acquire(bench.need(case, settings))
        if got.reference is None:
            raise Invalid("died", got.trouble or "the second rig could not be built")
        yield got.rig, got.reference
    finally:
        pool.close()


def _quotients(case: Case, now: Measurement, base: Measurement) -> list[float]:
    """Speed of the candidate over the base's: of latency, the base's time over the candidate's."""
    own, other = ([main_figure(case, launch) for launch in each.per_launch] for each in (now, base))
    return quotients(own, other) if case.dimension == "throughput" else quotients(other, own)


def expected(case: Case, base: Measurement) -> float | None:
    """The ratio of rates that the added cycles should make, where the forwarder limits both: cycles a frame are the
    clock over the rate.
    """
    clock = next((launch.tsc_hz for launch in base.per_launch if launch.tsc_hz), None)
    if case.dimension != "throughput" or clock is None or not base.throughput_pps:
        return None
    cost = int((case.mode or "").rpartition("cost")[2].partition("+")[0])
    more = round(cost / (1 - INJECTED)) - cost
    cycles = clock / base.throughput_pps
    return cycles / (cycles + more)


def options_for(options: Options, case: Case) -> Options:
    """The options with what is compared."""
    return replace(options, variant=candidates(case))
