# SPDX-License-Identifier: BSD-3-Clause
"""The launches of a calibration: a version compared with itself, and with one that is slower by a known amount.

New rigs are built now and then, because the random properties of a rig are part of the difference between two runs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pytest_icbench.config.options import Options
from pytest_icbench.errors import Invalid, UsageError
from pytest_icbench.measure.comparing import Allowance
from pytest_icbench.measure.summary.gathered import main_figure
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

#: The switch whose slow-down is known, the workload's forwarder, and the cycles that it adds to each frame.
KNOWN, COST = "forward", 4000
#: Names of the candidates.
SAME, SLOWER = "same", "slower"
#: The share of the time for the injected slow-down, and the share of cycles that it adds.
INJECTING, INJECTED = 0.2, 0.05
#: The number of pairs of a comparison, which builds its rigs anew as every comparison.
BLOCK = 12
#: A margin that no ratio exceeds, because nothing is judged here.
_ANY = Allowance.of(Margin("higher", allowance=0.999))

Tell = Callable[[str], None]


@dataclass(slots=True)
class Recorded:
    """The record of a calibration's launches.

    Attributes:
        same: quotients of the version over itself, a list for each two rigs.
        slower: quotients of the slower version, likewise; empty if no slow-down can be injected.
        expected: the expected median of ``slower``, from the version's cycles per frame; None if unknown.
        pairs: number of all pairs.
        seconds: time that they took, with building rigs anew.
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
        """The time that a pair takes, in seconds."""
        return self.seconds / self.pairs if self.pairs else 0.0


def candidates(case: Case) -> tuple[Candidate, ...]:
    """Returns the version itself, and the slower one if the switch is ``KNOWN``."""
    same = Candidate(case.switch, SAME, "variant", case.mode or "")
    if case.switch != KNOWN:
        return (same,)
    return same, Candidate(case.switch, SLOWER, "variant", slowed(case.mode or "", INJECTED))


def slowed(mode: str, share: float) -> str:
    """Returns the forwarder's mode with more cycles per frame. Raises UsageError if it has no cost to raise.

    Args:
        share: the share of the new cycles that is added, 0 to 1.
    """
    parts = mode.split("+")
    costs = [part for part in parts if part.startswith("cost")]
    if not costs:
        raise UsageError(
            f"icbench calibrate: {KNOWN}:{mode} costs no cycles that could be raised; give --variant cost{COST}"
        )
    raised = f"cost{round(int(costs[0].removeprefix('cost')) / (1 - share))}"
    return "+".join(raised if part == costs[0] else part for part in parts)


def calibrate(testbed: Testbed, case: Case, settings: Settings, budget_s: float, tell: Tell) -> Recorded:
    """Measures until the time is up, and at least one block of each kind.

    Args:
        testbed: holds the host, and knows the candidates.
        budget_s: the time to measure, in seconds.
        tell: called with each line of progress.

    Raises Unsupported, ProvisionError, WorkloadError, and Invalid if no frames pass.
    """
    recorded = Recorded()
    began = time.monotonic()

    def tell_with_time_left(text: str) -> None:
        tell(f"{text}, {max(budget_s - (time.monotonic() - began), 0) / 60:.1f} min left")

    injecting = case.switch == KNOWN
    kinds = [(SAME, budget_s * (1 - INJECTING if injecting else 1))] + ([(SLOWER, budget_s)] if injecting else [])
    for name, until_s in kinds:
        while True:
            block_began = time.monotonic()
            _block(testbed, replace(case, candidate=name), settings, recorded, tell_with_time_left)
            now = time.monotonic()
            if now - began + (now - block_began) > until_s:
                break
    return recorded


def _block(testbed: Testbed, case: Case, settings: Settings, recorded: Recorded, tell: Tell) -> None:
    """Measures a block and adds it to ``recorded``. Raises Invalid if it has no result."""
    with _rigs(testbed, case, settings) as rigs:
        began = time.monotonic()
        tell(f"{case.candidate}, after {len(_of(recorded, case))} pairs of rigs")
        now, base = testbed.measure_versions(rigs, case, replace(settings, repeats=BLOCK), _ANY, 1, _progress(tell))
        elapsed_s = time.monotonic() - began
    if now.verdict == Verdict.INVALID:
        raise Invalid(now.reason or "unknown", now.evidence or "no evidence was kept")
    _of(recorded, case).extend(_quotients(case, now, base))
    recorded.pairs += BLOCK
    recorded.seconds += elapsed_s
    if case.candidate == SLOWER and recorded.expected is None:
        recorded.expected = expected(case, base)
    recorded.surroundings = {
        name: getattr(base, name) for name in ("placement", "identity", "treatment", "conditions", "settings")
    }


def _of(recorded: Recorded, case: Case) -> list[list[float]]:
    """Returns the blocks of a case's candidate."""
    return recorded.same if case.candidate == SAME else recorded.slower


def _progress(tell: Tell) -> OnProgress:
    """Returns a function that shows the number of the present pair."""

    def show(progress: Any) -> None:
        if progress.receive_mpps is None and progress.launch:
            tell(f"{progress.case}: pair {progress.launch} of {progress.launches}")

    return show


@contextmanager
def _rigs(testbed: Testbed, case: Case, settings: Settings) -> Iterator[tuple[Any, Any]]:
    """Builds the two rigs of a comparison for the block. Raises Invalid if the second fails."""
    pool: RigPool[Any] = RigPool(testbed.make_rig)
    try:
        rigs = pool.acquire(testbed.need(case, settings))
        if rigs.reference is None:
            raise Invalid("died", rigs.trouble or "the second rig could not be built")
        yield rigs.rig, rigs.reference
    finally:
        pool.close()


def _quotients(case: Case, now: Measurement, base: Measurement) -> list[list[float]]:
    """Returns the speed of the candidate over that of the base, a list for each two rigs.

    For latency, the speed is the inverse of the time.
    """
    candidate_figures, base_figures = (
        [main_figure(case, launch) for launch in measurement.per_launch] for measurement in (now, base)
    )
    ratios = (
        quotients(candidate_figures, base_figures)
        if case.dimension == "throughput"
        else quotients(base_figures, candidate_figures)
    )
    by_rigs: dict[int | None, list[float]] = {}
    for launch, ratio in zip(now.per_launch, ratios, strict=True):
        by_rigs.setdefault(launch.round, []).append(ratio)
    return list(by_rigs.values())


def expected(case: Case, base: Measurement) -> float | None:
    """Returns the ratio of rates to expect from the added cycles if the forwarder limits both; None if unknown.

    The cycles per frame are the clock over the rate.
    """
    clock = next((launch.tsc_hz for launch in base.per_launch if launch.tsc_hz), None)
    if case.dimension != "throughput" or clock is None or not base.throughput_pps:
        return None
    cost = int((case.mode or "").rpartition("cost")[2].partition("+")[0])
    added = round(cost / (1 - INJECTED)) - cost
    cycles = clock / base.throughput_pps
    return cycles / (cycles + added)


def options_for(options: Options, case: Case) -> Options:
    """Returns the options with the candidates to compare."""
    return replace(options, variant=candidates(case))
