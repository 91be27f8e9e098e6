# SPDX-License-Identifier: BSD-3-Clause
"""The host as the plugin uses it: examined for what it can run, or held by a session for measurements."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from pytest_icbench.config.options import Options
from pytest_icbench.config.switches import SwitchConfig
from pytest_icbench.driver.guard import node_treatment
from pytest_icbench.driver.node.precedence import precede
from pytest_icbench.driver.switch.protocol import Switch
from pytest_icbench.driver.workload.executable import workload_path
from pytest_icbench.errors import IcbenchError, ProvisionError, WorkloadError
from pytest_icbench.host import facts
from pytest_icbench.host.limits import allow_files
from pytest_icbench.host.resource.frequency import prepare_cpus
from pytest_icbench.host.session import HostSession
from pytest_icbench.measure.comparing import Allowances
from pytest_icbench.measure.measure import Measuring
from pytest_icbench.measure.part import Part
from pytest_icbench.measure.progress import OnProgress
from pytest_icbench.measure.reference import reference_case
from pytest_icbench.measure.rig import MeasuredRig
from pytest_icbench.measure.summary.summarize import Surroundings
from pytest_icbench.measure.versions import measure_versions
from pytest_icbench.model.candidate import WORKLOAD, Candidate, candidate_key
from pytest_icbench.model.case import CANDIDATE_KEY, Case
from pytest_icbench.model.fitness import Fitness, Link
from pytest_icbench.model.function_facts import function_key
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.old_version import OldVersion
from pytest_icbench.model.placement import Placement
from pytest_icbench.model.settings import Settings
from pytest_icbench.testbed.application_probe import with_application
from pytest_icbench.testbed.births import BirthRig, measure_births
from pytest_icbench.testbed.candidates import Candidates
from pytest_icbench.testbed.feasibility import Feasibility
from pytest_icbench.testbed.fitness import ControlLink, measure_link, wait_quiet
from pytest_icbench.testbed.host_rig import HostPart
from pytest_icbench.testbed.neighbour import beside
from pytest_icbench.testbed.remote.host import RemoteHost
from pytest_icbench.testbed.remote.reference import why_none
from pytest_icbench.testbed.remote.rig import SecondHost
from pytest_icbench.testbed.remote.uplinks import uplinks_of
from pytest_icbench.testbed.rig import ExclusiveRig, Rig
from pytest_icbench.testbed.rig_pool import RigRequest, RigRequests
from pytest_icbench.testbed.software import software_of
from pytest_icbench.testbed.treatment import common_treatment, function_treatment, rig_treatment, with_ports
from pytest_icbench.testbed.undo_kinds import UNDO_KINDS

DEFAULT_HUGEPAGE_KIB = 2048
#: Why a case is not held against the link without its switch.
ONE_CPU_REFERENCE = "no reference link: both of its ends would share one CPU, while the case's frames change CPUs"


class Testbed:
    """The host of a run. Nothing is changed and no root is needed until ``hold`` takes the host.

    Args:
        catalogue: switches by name.
        cases: those of the run: ``auto`` placement resolves to what every case can have.
        configs: the user's configurations, by switch and candidate.
        unsupported: why no host can run a case, as far as that is known; None for a case that some host can run.
    """

    #: pytest takes a class of such a name in a test file for tests.
    __test__ = False

    def __init__(
        self,
        catalogue: Mapping[str, type[Switch]],
        options: Options,
        cases: Sequence[Case],
        configs: Mapping[str, SwitchConfig],
        unsupported: Mapping[Case, str | None] = MappingProxyType({}),
    ) -> None:
        self.catalogue = catalogue
        self.options = options
        self._cases = tuple(cases)
        self._arguments: dict[str, Any] = {
            "binaries": dict(options.binaries),
            "hugepage_size_kib": options.hugepage_size_kib or DEFAULT_HUGEPAGE_KIB,
            "pf": options.pf,
        }
        self._user = configs
        self._configs = {key: dict(config.values) for key, config in configs.items()}
        #: The user's endpoints; None for the default ones.
        self.user_topology = options.topology
        #: What is compared with the bases. Its binaries go by the names of its cases.
        self.candidates = Candidates(catalogue, options, configs)
        self._arguments["binaries"] |= self.candidates.binaries
        self.remote = self._remote_host()
        self.session = HostSession.probing(**self._arguments)
        self._warnings: list[str] = []
        self._fitness: Fitness | None = None
        self._feasibility = Feasibility(
            catalogue,
            options,
            self._cases,
            binaries=self._arguments["binaries"],
            unsupported=unsupported,
            user_topology=self.user_topology,
            remote=self.remote,
            session=self.session,
            candidates=self.candidates,
        )

    def hold(self) -> None:
        """Takes the host for this run, and the second one.

        Raises what opening a HostSession raises, for a busy host or unclean remains. Without the second host it raises
        only if all cases need it; else those that do fail one by one.
        """
        needed = bool(self._cases) and all(case.remote for case in self._cases)
        if self.remote is not None and needed:
            self.remote.check()
        allow_files(max((case.path.wires_count for case in self._cases), default=0))
        self.session = self._feasibility.session = HostSession(UNDO_KINDS, **self._arguments, configs=self._configs)
        self._warnings = list(self.session.warnings)
        try:
            if self.remote is not None and needed:
                self.remote.hold()
            if self.options.frequency == "fix":
                self._warnings += prepare_cpus(self.session, self._feasibility.measuring_cpus()).warnings
            if self.options.precedence == "all":
                self._warnings += precede(self.session)
        except BaseException:
            self.session.close()
            raise

    def examine(self, limit_s: float = 0.0, on_wait: Callable[[Fitness, float], None] | None = None) -> Fitness:
        """Returns whether this host is fit now; waits at most ``limit_s`` seconds until others leave it alone."""
        cpus = self._feasibility.measuring_cpus() or os.sched_getaffinity(0)
        fitness = wait_quiet(self.session, cpus, limit_s, on_wait)
        self.take_fitness(fitness)
        return fitness

    def control(self, case: Case, settings: Settings) -> Link | str | None:
        """Measures the reference link of a case.

        Returns a sentence if that fails, None for a case without such a link on one host. Raises as ``placement`` does.
        """
        requested = self.need(case, settings).reference
        if requested is None or requested.case.remote:
            return None
        api = case.resolved_api(self.catalogue[case.switch])
        return measure_link(ControlLink(requested.case, lambda: self.make_rig(requested), api, settings))

    def take_fitness(self, fitness: Fitness) -> None:
        """Keeps what was found for the conditions of all results."""
        self._fitness = fitness

    def _remote_host(self) -> RemoteHost | None:
        if self.options.remote is None or not any(case.remote for case in self._cases):
            return None
        arguments = {**self._arguments, "configs": self._configs}
        return RemoteHost.of_run(self.options, arguments, lambda: self._feasibility.measuring_cpus_there())

    @property
    def policy(self) -> Literal["auto", "dedicated", "cooperative"]:
        """The placement of all cases, resolved; ``auto`` if none of them can run."""
        return self._feasibility.policy

    def placement(self, case: Case) -> Placement:
        """Returns where the threads of a case run. Raises Unsupported with the remedy if this host cannot run it."""
        return self._feasibility.placement(case)

    def reference(self, case: Case) -> Case | None:
        """Returns the case whose rig is the reference link, None if there is none."""
        twin = self._twin(case)
        return None if twin is None or self._why_no_reference(case, twin) is not None else twin

    def _twin(self, case: Case) -> Case | None:
        """Returns the case without any switch, whether or not this host can run it; None if there is none."""
        cls = self.catalogue[case.switch]
        twin = reference_case(case, case.resolved_port(cls), family=cls.family)
        if twin is None or twin.switch not in self.catalogue:
            return None
        other = self.catalogue[twin.switch]
        # A VF has no twin in shared memory: the reference of such a port is the natural one.
        return replace(twin, port=None) if twin.port not in other.ports[1:] else twin

    def _why_no_reference(self, case: Case, reference: Case) -> str | None:
        if not case.remote:
            return ONE_CPU_REFERENCE if self._crosses_alone(case) else None
        return why_none(case, reference, self.catalogue, self.options)

    def _crosses_alone(self, case: Case) -> bool:
        """Whether a case's frames change CPUs at its maximum, and those of the link without its switch would not."""
        if case.dimension != "throughput" or not case.rate.is_max or case.function is not None:
            return False
        with suppress(IcbenchError):  # why it cannot run is said when it shall
            placement = self.placement(case)
            return bool(placement.switch) and len(set(placement.endpoints)) == 1
        return False

    def add_old(self, case: Case, candidate: Candidate) -> Case:
        """Returns the case of a baseline's version, beside which the present one can be measured.

        Raises UsageError if it is no workload any more.
        """
        old = self.candidates.add_old(case, candidate)
        self._arguments["binaries"] |= self.candidates.binaries
        self.session.binaries = dict(self._arguments["binaries"])
        return old

    def need(self, case: Case, settings: Settings, base: Case | None = None) -> RigRequests:
        """Returns the rigs that a case needs. Raises Unsupported as ``placement`` does.

        Args:
            base: what the case is measured side by side with; None: a candidate's base, and nothing for other cases.
        """
        placement = self.placement(case)
        if base is not None or case.candidate is not None:
            base = base or case.base
            return RigRequests(
                RigRequest(case, placement, (case.rig_key, placement)),
                RigRequest(base, placement, (base.rig_key, placement)),
            )
        rig = RigRequest(case, placement, (case.rig_key, placement))
        # Launches without a neighbour are on the same rig as those beside it.
        reference = self._twin(case) if settings.reference and case.neighbour is None else None
        if reference is None:
            return RigRequests(rig, None)
        if (missing := self._why_no_reference(case, reference)) is not None:
            return RigRequests(rig, None, missing)
        # The endpoints have the same CPUs as in the case, and there is no switch.
        there = None if placement.there is None else replace(placement.there, switch=())
        without = replace(placement, switch=(), there=there)
        if case.function is not None:
            # A function of several on one CPU has it for itself; other references have none.
            cpus, ends = placement.functions, placement.endpoints[: len(reference.path.endpoints)]
            without = replace(
                placement, functions=cpus[: reference.pairs] if reference.function else (), endpoints=ends
            )
        return RigRequests(rig, RigRequest(reference, without, (reference.rig_key, without)))

    def make_rig(self, request: RigRequest) -> Rig:
        """Returns a rig, not yet built."""
        case, replaced = self.candidates.built(request.case), self.candidates.replaced(request.case)
        endpoint_specs = None if self.user_topology is None else self.user_topology.endpoint_specs_of(case)
        kind = BirthRig if case.birth is not None else ExclusiveRig if case.remote else Rig
        return kind(
            case,
            request.placement,
            self.session,
            self.options,
            switches=self.catalogue,
            endpoint_specs=endpoint_specs,
            host_part=self._two_hosts(case),
            replaced=replaced,
        )

    def _two_hosts(self, case: Case) -> Callable[[], HostPart] | None:
        if not case.remote:
            return None
        uplinks = uplinks_of(self.options, self.catalogue[case.switch])
        second = SecondHost(self._feasibility.second().rig, uplinks.here, uplinks.there)
        return lambda: second.joined(self.session, self.catalogue)

    @cached_property
    def _identity(self) -> Mapping[str, Any]:
        return facts.identity(self.session.root)

    def measure(
        self,
        rigs: tuple[Rig, Rig | None],
        case: Case,
        reference: Case | None,
        settings: Settings,
        on_progress: OnProgress,
        part: Part | None = None,
    ) -> Measurement:
        """Measures a case on its rigs, the case's and the reference's. Raises WorkloadError and ProvisionError.

        Args:
            part: the round that this is; the measurement is that of all rounds so far.
        """
        rig, reference_rig = rigs
        if case.birth is not None:
            return measure_births(rig, settings, self._around(rig), on_progress)
        if case.neighbour is not None:
            reference = case.undisturbed
        with beside(rig, reference_rig, case, self.options.node) as seen:
            return self._measuring(rig, seen, case, reference, settings, on_progress).run(part)

    def measuring(
        self,
        rigs: tuple[Rig, Rig | None],
        case: Case,
        reference: Case | None,
        settings: Settings,
        on_progress: OnProgress,
    ) -> Measuring:
        """Begins a case whose turns others follow: one without a neighbour, on one host."""
        return self._measuring(rigs[0], rigs, case, reference, settings, on_progress)

    def _measuring(
        self,
        rig: Rig,
        seen: tuple[MeasuredRig, MeasuredRig | None],
        case: Case,
        reference: Case | None,
        settings: Settings,
        on_progress: OnProgress,
    ) -> Measuring:
        """Begins a case on its rig.

        Args:
            seen: the rigs as the launches see them: beside a neighbour, and without it.
        """
        around = self._around(rig)
        if self.remote is not None and case.remote:
            around = self.remote.around(around, rig, self.options.remote if self.options.host_names else None)
        application, around = with_application(case, around)
        return Measuring(
            seen,
            case,
            settings,
            on_progress,
            around=around,
            reference=reference,
            api=case.resolved_api(self.catalogue[case.switch]),
            application=application,
            complete=partial(with_ports, rig=rig),
        )

    def measure_versions(
        self,
        rigs: tuple[Rig, Rig],
        case: Case,
        settings: Settings,
        allowed: Allowances,
        cases: int,
        on_progress: OnProgress,
        base: Case | None = None,
    ) -> tuple[Measurement, Measurement]:
        """Measures a candidate side by side with its base; returns both results. Raises as ``measure`` does.

        Args:
            rigs: the candidate's and the base's.
            allowed: how much worse the candidate may be.
            cases: number of comparisons of the run.
            base: another base than the candidate's own.
        """
        base = base or case.base
        cls = self.catalogue[case.switch]
        apis = tuple(self.candidates.built(each).resolved_api(cls) for each in (case, base))
        application, now_around = with_application(case, self._around(rigs[0]))
        _, base_around = with_application(case, self._around(rigs[1]))
        now, then = measure_versions(
            rigs,
            case,
            settings,
            allowed,
            cases,
            (now_around, base_around),
            application=application,
            base=base,
            apis=(apis[0], apis[1]),
            on_progress=on_progress,
            executables=(self.candidates.workload(case), self.candidates.workload(base)),
        )
        return with_ports(now, rigs[0]), with_ports(then, rigs[1])

    def _around(self, rig: Rig) -> Surroundings:
        return Surroundings(
            placement=rig.placement.policy,
            endpoints=tuple(rig.endpoints),
            identity=self._identity,
            treatment=self._treatment(rig),
            conditions={
                **facts.conditions(self.session.root, {*rig.placement.switch, *rig.placement.local}),
                **self._found_fit(),
                **({"host": platform.node()} if self.options.host_names else {}),
            },
            software=self._software(rig),
        )

    def _software(self, rig: Rig) -> OldVersion:
        key, candidate = candidate_key(rig.case), self.candidates.of(rig.case)
        configs = {**self._user, **({rig.case.switch: self._user[key]} if key in self._user else {})}
        if candidate is not None and candidate.component is not None and candidate.key in self._user:
            configs[function_key(candidate.component)] = self._user[candidate.key]
        return software_of(
            rig,
            {**self._arguments["binaries"], **self.candidates.replaced(rig.case).programs},
            self.programs.get(key, (None, None))[0],
            self.candidates.workload(rig.case),
            configs,
        )

    def _found_fit(self) -> dict[str, Any]:
        """What was found when the run began, for the conditions of a result."""
        if (fitness := self._fitness) is None:
            return {"warnings": self._warnings}
        warnings = [] if fitness.fit else [f"{fitness.line[:1].upper()}{fitness.line[1:]}"]
        return {"warnings": [*self._warnings, *warnings], "fitness": fitness.condition()}

    @cached_property
    def facts(self) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """Identity of the host, and the treatment as far as it is the same for all cases."""
        return self._identity, self._common_treatment

    @property
    def warnings(self) -> tuple[str, ...]:
        """What was not as it should be when the host was taken, one sentence each."""
        return tuple(self._warnings)

    @property
    def programs(self) -> dict[str, tuple[Path | None, str | None]]:
        """Path and version, as far as known, of the workload, the user's binaries and the probed switches.

        Names are those of binaries (``ovs``, ``ovs:new``).
        """
        programs: dict[str, tuple[Path | None, str | None]] = {
            name: (path, None) for name, path in self._arguments["binaries"].items()
        }
        with suppress(WorkloadError):  # without a workload nothing can run
            programs[WORKLOAD] = (workload_path(), None)
        for name, switch_facts in self._feasibility.switch_facts.items():
            program = None if switch_facts.program is None else Path(switch_facts.program)
            versions = ", ".join(map(str, filter(None, (switch_facts.version, *switch_facts.config.values()))))
            programs[name] = (program, versions or None)
        return programs

    @cached_property
    def _common_treatment(self) -> dict[str, Any]:
        return common_treatment(
            self.session.root, self.options, self._arguments["hugepage_size_kib"], self.user_topology
        )

    def _treatment(self, rig: Rig) -> dict[str, Any]:
        key = candidate_key(rig.case)
        user, (program, _) = self._user.get(key), self.programs.get(key, (None, None))
        candidate, node = self.candidates.of(rig.case), self.candidates.replaced(rig.case).node
        functions = dict(self.options.function_config)
        if candidate is not None and candidate.component is not None and candidate.config is not None:
            functions[candidate.component] = candidate.config
        return {
            **self._common_treatment,
            **({} if node is None else {**node_treatment(node), "node": node}),
            **self.candidates.workload_treatment(rig.case),
            **rig_treatment(rig, None if user is None else user.treatment(), program),
            **function_treatment(rig, functions),
            CANDIDATE_KEY: self.candidates.treatment(rig.case),
        }

    def close(self) -> None:
        """Gives both hosts back. Idempotent. Raises ProvisionError with what could not be undone."""
        failures = []
        for close in (*([] if self.remote is None else [self.remote.close]), self.session.close):
            try:
                close()
            except ProvisionError as error:
                failures.append(str(error))
        if failures:
            raise ProvisionError("\n".join(failures))
