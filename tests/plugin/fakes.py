# SPDX-License-Identifier: BSD-3-Clause
"""A bench without a host, for order and error paths that real switches do not show on demand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from pytest_icbench.config.options import Options
from pytest_icbench.errors import ProvisionError, Unsupported
from pytest_icbench.measure.case_progress import Progress
from pytest_icbench.measure.repetition import Part
from pytest_icbench.measure.stopping import Allowances
from pytest_icbench.model.candidate import Candidate, candidate_key
from pytest_icbench.model.case import Case
from pytest_icbench.model.fitness import Fitness, Link
from pytest_icbench.model.interference import Interference
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.placement import Placement
from pytest_icbench.model.settings import Settings
from pytest_icbench.testbed.rig_pool import BuildRequest, SetupRequest
from tests.measurements import measurement

Behaviour = Callable[[Case], Measurement | BaseException]


class FakeRig:
    """Writes down what is done to it."""

    def __init__(self, name: str, log: list[str]) -> None:
        self.name, self._log, self.preflighted = name, log, False

    def build(self) -> None:
        if self.name in FakeTestbed.broken:
            raise ProvisionError(f"{self.name} does not start")
        self._log.append(f"build {self.name}")

    def pause(self) -> None:
        pass

    def resume(self) -> None:
        pass

    def check(self) -> None:
        if self.name in FakeTestbed.dead:
            FakeTestbed.dead.remove(self.name)
            raise ProvisionError(f"{self.name} was killed")

    def close(self) -> None:
        self._log.append(f"close {self.name}")


class FakeTestbed:
    """Has the methods of ``pytest_icbench.testbed.testbed.Testbed``.

    Attributes:
        log: what happened, over all instances.
        behaviour: what measuring gives, a measurement or an exception to raise; a plain measurement by default.
        unsupported: reasons by switch.
        hold_error: raised by ``hold``; ``close_error`` by ``close``.
        broken: switches that cannot be built. dead: those that die once, before the next case.
        compared: what measuring a candidate beside its base gives.
        detail: what a measurement's progress tells instead of its launch.
        turns: of a case that takes turns.
        fitness: what examining the host finds; controlled: what measuring a control link gives.
    """

    log: ClassVar[list[str]] = []
    behaviour: ClassVar[Behaviour] = staticmethod(lambda case: measurement(case))
    compared: ClassVar[Callable[[Case], tuple[Measurement, Measurement]]]
    unsupported: ClassVar[dict[str, str]] = {}
    hold_error: ClassVar[BaseException | None] = None
    broken: ClassVar[set[str]] = set()
    dead: ClassVar[set[str]] = set()
    close_error: ClassVar[BaseException | None] = None
    turns: ClassVar[int] = 1
    detail: ClassVar[str | None] = None
    fitness: ClassVar[Fitness] = Fitness(Interference(2, 0.5, taken=0.02, stolen=0.0), 2900.0)
    controlled: ClassVar[Link | str | None] = None

    policy = "cooperative"
    warnings: tuple[str, ...] = ()

    def __init__(
        self, catalogue: Mapping[str, Any], options: Options, cases: Sequence[Case], *known: Mapping[Any, Any]
    ) -> None:
        self.catalogue = catalogue
        self.options = options

    def hold(self) -> None:
        if self.hold_error is not None:
            raise self.hold_error
        self.log.append("hold")

    def examine(self, limit_s: float = 0.0, on_wait: Any = None) -> Fitness:
        if limit_s and on_wait is not None and not self.fitness.quiet:
            on_wait(self.fitness, limit_s)
        return self.fitness

    def show_progress(self, show: Callable[[str], None]) -> None:
        """Its rigs take no time."""

    def take_fitness(self, fitness: Fitness) -> None:
        self.log.append(f"fitness {fitness.sentence}")

    def control(self, case: Case, _settings: Settings) -> Link | str | None:
        self.placement(case)
        self.log.append(f"control {case.id}")
        return self.controlled

    @property
    def facts(self) -> tuple[dict[str, Any], dict[str, Any]]:
        return {"machine": "fake"}, {"kernel": "6.1"}

    @property
    def programs(self) -> dict[str, tuple[Any, str | None]]:
        binaries = {each.key: each.path for each in self.options.candidate if each.kind == "binary"}
        return {name: (path, None) for name, path in binaries.items()}

    def placement(self, case: Case) -> Placement:
        if case.switch in self.unsupported:
            raise Unsupported(self.unsupported[case.switch])
        return Placement("cooperative", (1,), (0, 0), (0,), 0, 128)

    def measure_versions(
        self,
        rigs: tuple[FakeRig, FakeRig],
        sides: tuple[Case, Case],
        settings: Any,
        allowed: Allowances,
        cases: int,
        on_progress: Callable[[Progress], None],
    ) -> tuple[Measurement, Measurement]:
        case, _ = sides
        self.log.append(f"versions {case.id} of {cases}, {allowed.main.share:g}")
        on_progress(Progress(case.id, "case", 1, 7, 5.25, 0.5, 4.0, self.detail))
        return type(self).compared(case)

    def reference(self, case: Case) -> Case | None:
        if case.switch in ("veth", "direct"):
            return None
        return replace(case, switch="direct", switch_cores=None)

    def add_old(self, case: Case, candidate: Candidate) -> Case:
        self.log.append(f"old {candidate.key}: {candidate.value}")
        return replace(case, candidate=candidate.name)

    def need(self, case: Case, settings: Settings, base: Case | None = None) -> SetupRequest:
        self.placement(case)
        if base is not None or case.candidate is not None:
            both = case, base or case.base
            now, then = (BuildRequest(each, None, each.rig_key) for each in both)  # type: ignore[arg-type]
            return SetupRequest(now, then)
        reference = self.reference(case) if settings.reference else None
        beside = None if reference is None else BuildRequest(reference, None, reference.rig_key)  # type: ignore[arg-type]
        return SetupRequest(BuildRequest(case, None, case.rig_key), beside)  # type: ignore[arg-type]

    def make_rig(self, wanted: BuildRequest) -> FakeRig:
        return FakeRig(candidate_key(wanted.case), self.log)

    def measure(
        self,
        rigs: tuple[FakeRig, FakeRig | None],
        case: Case,
        reference: Case | None,
        settings: Any,
        on_progress: Callable[[Progress], None],
        part: Part | None = None,
    ) -> Measurement:
        self.log.append(f"measure {case.dimension} {case.id}" + (f" round {part.number}" if part else ""))
        on_progress(Progress(case.id, "case", 1, 7, 5.25, 0.5, 4.0, self.detail))
        found = type(self).behaviour(case)
        if isinstance(found, BaseException):
            raise found
        return replace(found, settings=settings.to_dict())

    def measuring(self, *arguments: Any) -> FakeMeasuring:
        return FakeMeasuring(self, *arguments)

    def close(self) -> None:
        self.log.append("give back")
        if self.close_error is not None:
            raise self.close_error


class FakeMeasuring:
    """A case in turns; the last of ``FakeTestbed.turns`` measures it."""

    def __init__(self, bench: FakeTestbed, *arguments: Any) -> None:
        self._bench, self._arguments, self._turns = bench, arguments, 0
        self.case: Case = arguments[1]

    def take_turn(self) -> Measurement | None:
        if self._turns + 1 == self._bench.turns:
            return self._bench.measure(*self._arguments)
        self._turns += 1
        self._bench.log.append(f"turn {self.case.dimension} {self.case.id}")
        return None

    def interrupted(self) -> Measurement | None:
        return replace(measurement(self.case), ended_by="interrupted") if self._turns else None
