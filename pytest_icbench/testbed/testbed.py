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
from pytest_icbench.driver.node.idle_polling import poll_idle
from pytest_icbench.driver.node.precedence import precede
from pytest_icbench.driver.node.registry import has_machine
from pytest_icbench.driver.node.vm.node import KERNEL as VM_KERNEL
from pytest_icbench.driver.switch.protocol import Switch
from pytest_icbench.driver.workload.executable import workload_path
from pytest_icbench.errors import IcbenchError, ProvisionError, WorkloadError
from pytest_icbench.host import host_facts
from pytest_icbench.host.host_session import HostSession, SessionOptions
from pytest_icbench.host.process import allow_files
from pytest_icbench.host.resource.frequency import prepare_cpus
from pytest_icbench.kinds.runs import OWN_METHODS, Measuring, measure_versions
from pytest_icbench.measure.case_progress import OnProgress
from pytest_icbench.measure.measured_rig import MeasuredRig
from pytest_icbench.measure.reference import reference_case
from pytest_icbench.measure.repetition import Part
from pytest_icbench.measure.side import Side
from pytest_icbench.measure.stopping import Allowances, Criteria
from pytest_icbench.measure.summary.summarize import Environment
from pytest_icbench.model.candidate import WORKLOAD, Candidate, OldVersion, candidate_key
from pytest_icbench.model.case import CANDIDATE_KEY, Case
from pytest_icbench.model.fitness import Fitness, Link
from pytest_icbench.model.function_facts import function_key
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.placement import Placement
from pytest_icbench.model.settings import Settings
from pytest_icbench.testbed.candidate_catalogue import Candidates
from pytest_icbench.testbed.case_rig import BuildOptions, EmptyRig, Rig
from pytest_icbench.testbed.feasibility import Feasibility, Hosts
from pytest_icbench.testbed.host_fitness import measure_link, wait_quiet
from pytest_icbench.testbed.host_rig import HostPart, HostRig
from pytest_icbench.testbed.noisy_neighbour_load import open_views
from pytest_icbench.testbed.probe import add_application
from pytest_icbench.testbed.remote.remote_host import RemoteHost
from pytest_icbench.testbed.remote.remote_rig import TwoHostRig
from pytest_icbench.testbed.remote.uplinks import explain_no_reference, find_uplinks
from pytest_icbench.testbed.rig_pool import BuildRequest, SetupRequest
from pytest_icbench.testbed.treatment import (
    add_ports,
    common_treatment,
    function_treatment,
    kind_treatment,
    read_software,
    rig_treatment,
)
from pytest_icbench.testbed.undo_kinds import UNDO_KINDS

DEFAULT_HUGEPAGE_KIB = 2048
#: The reason why a case is not compared with the link without its switch.
ONE_CPU_REFERENCE = "no reference link: both of its ends would share one CPU, while the case's frames change CPUs"


class Testbed:
    """The host of a run. Nothing is changed and no root is needed until ``hold`` takes the host.

    Args:
        cases: the cases of the run: ``auto`` placement resolves to what every case can have.
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
        #: The user's paths by switch, candidate or tool. A retest adds the paths of an old version.
        self._binaries: dict[str, Path] = dict(options.binaries)
        if options.vm_kernel is not None:
            self._binaries[VM_KERNEL] = options.vm_kernel
        self._hugepage_kib = options.hugepage_size_kib or DEFAULT_HUGEPAGE_KIB
        self._user = configs
        #: The user's endpoints; None for the default ones.
        self.user_topology = options.topology
        #: The alternatives to the bases. Its binaries go by the names of its cases.
        self.candidates = Candidates(catalogue, options, configs)
        self._binaries |= self.candidates.binaries
        self._warnings: list[str] = []
        self._fitness: Fitness | None = None
        self._hosts = Hosts(HostSession.probing(replace(self._session_options, configs={})), self._remote_host())
        self._feasibility = Feasibility(
            catalogue, options, self._cases, self._hosts, unsupported=unsupported, candidates=self.candidates
        )

    @property
    def session(self) -> HostSession:
        """This host: for questions only, until the run holds it."""
        return self._hosts.session

    @property
    def remote(self) -> RemoteHost | None:
        """The second host; None for a run on one."""
        return self._hosts.remote

    def show_progress(self, show: Callable[[str], None]) -> None:
        """Lets long steps of building show how far they are, as a few words."""
        self.session.progress = show

    @property
    def _session_options(self) -> SessionOptions:
        return SessionOptions(
            self._hugepage_kib,
            {name: str(path) for name, path in self._binaries.items()},
            self.options.pf,
            {key: dict(config.values) for key, config in self._user.items()},
            self.options.node_memory,
            self.options.node_pids,
        )

    def hold(self) -> None:
        """Takes the host for this run, and the second one.

        Raises what opening a HostSession raises, for a busy host or unclean remains. Without the second host it raises
        only if all cases need it; otherwise the cases that need it fail one by one.
        """
        needed = bool(self._cases) and all(case.remote for case in self._cases)
        if self.remote is not None and needed:
            self.remote.check()
        allow_files(max((case.path.wires_count for case in self._cases), default=0))
        self._hosts.session = HostSession(UNDO_KINDS, self._session_options)
        self._warnings = list(self.session.warnings)
        try:
            if self.remote is not None and needed:
                self.remote.hold()
            if self.options.frequency == "fix":
                cpus = self._feasibility.measuring_cpus()
                self._warnings += prepare_cpus(self.session, cpus).warnings
                poll_idle(self.session, cpus)
            if self.options.precedence == "all":
                self._warnings += precede(self.session)
        except BaseException:
            self.session.close()
            raise

    def examine(self, limit_s: float = 0.0, on_wait: Callable[[Fitness, float], None] | None = None) -> Fitness:
        """Returns the host's fitness; waits at most ``limit_s`` seconds until other processes leave its CPUs idle."""
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
        return measure_link(requested.case, self.make_rig(requested), api, settings)

    def take_fitness(self, fitness: Fitness) -> None:
        """Keeps what was found for the conditions of all results."""
        self._fitness = fitness

    def _remote_host(self) -> RemoteHost | None:
        if self.options.remote is None or not any(case.remote for case in self._cases):
            return None
        return RemoteHost.of_run(self.options, self._session_options, lambda: self._feasibility.measuring_cpus_there())

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
        if has_machine(self.options.node_of(case)):
            return None  # no link joins two machines, or a machine and a container, without a switch
        twin = reference_case(case, case.resolved_port(cls), family=cls.family)
        if twin is None or twin.switch not in self.catalogue:
            return None
        other = self.catalogue[twin.switch]
        # A VF has no twin in shared memory: the reference of such a port is the natural one.
        return replace(twin, port=None) if twin.port not in other.ports[1:] else twin

    def _why_no_reference(self, case: Case, reference: Case) -> str | None:
        if not case.remote:
            return ONE_CPU_REFERENCE if self._crosses_alone(case) else None
        return explain_no_reference(case, reference, self.catalogue, self.options)

    def _crosses_alone(self, case: Case) -> bool:
        """Whether a case's frames change CPUs at its maximum, and would not on the link without its switch."""
        if not case.one_way or not case.rate.is_max or case.function is not None:
            return False
        with suppress(IcbenchError):  # the reason is reported when the case is due
            placement = self.placement(case)
            return bool(placement.switch) and len(set(placement.endpoints)) == 1
        return False

    def add_old(self, case: Case, candidate: Candidate) -> Case:
        """Returns the case of a baseline's version, with which the present one can be paired.

        Raises UsageError if it is no longer a workload.
        """
        old = self.candidates.add_old(case, candidate)
        self._binaries |= self.candidates.binaries
        self.session.binaries = dict(self._binaries)
        return old

    def need(self, case: Case, settings: Settings, base: Case | None = None) -> SetupRequest:
        """Returns the rigs that a case needs. Raises Unsupported as ``placement`` does.

        ``base``: what the case is measured side by side with; None: a candidate's base, and nothing for other cases.
        """
        placement = self.placement(case)
        if base is not None or case.candidate is not None:
            base = base or case.base
            return SetupRequest(
                BuildRequest(case, placement, (case.rig_key, placement)),
                BuildRequest(base, placement, (base.rig_key, placement)),
            )
        rig = BuildRequest(case, placement, (case.rig_key, placement))
        # Launches without a noisy neighbour use the same rig as those with it.
        reference = self._twin(case) if settings.reference and case.noisy_neighbour is None else None
        if reference is None:
            return SetupRequest(rig, None)
        if (missing := self._why_no_reference(case, reference)) is not None:
            return SetupRequest(rig, None, missing)
        # The endpoints have the same CPUs as in the case, and there is no switch.
        there = None if placement.there is None else replace(placement.there, switch=())
        without = replace(placement, switch=(), there=there)
        if case.function is not None:
            # A reference with a function has the function's CPU exclusively; other references have no function.
            cpus, ends = placement.functions, placement.endpoints[: len(reference.path.endpoints)]
            without = replace(
                placement, functions=cpus[: reference.pairs] if reference.function else (), endpoints=ends
            )
        return SetupRequest(rig, BuildRequest(reference, without, (reference.rig_key, without)))

    def make_rig(self, request: BuildRequest) -> Rig:
        """Returns a rig, not yet built."""
        case, replaced = self.candidates.resolve(request.case), self.candidates.find_replacements(request.case)
        endpoint_specs = None if self.user_topology is None else self.user_topology.endpoint_specs_of(case)
        kind = EmptyRig if case.kind in OWN_METHODS else Rig
        options = BuildOptions(self.catalogue, endpoint_specs, self._two_hosts(case), replaced, self.options.ring)
        return kind(case, request.placement, self.session, self.options.node_of(case), options)

    def _two_hosts(self, case: Case) -> Callable[[], HostPart] | None:
        if not case.remote:
            return None
        uplinks = find_uplinks(self.options, self.catalogue[case.switch])
        second = self._feasibility.second()

        def make() -> HostPart:
            there = second.rig()
            here = HostRig(self.session, self.catalogue, wake=there.connection.wake)
            return TwoHostRig(here, there, uplinks.here, uplinks.there)

        return make

    @cached_property
    def _identity(self) -> Mapping[str, Any]:
        return host_facts.identity(self.session.root)

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

        ``part``: the present round; the measurement covers all rounds so far.
        """
        rig, reference_rig = rigs
        if (method := OWN_METHODS.get(case.kind)) is not None:
            return method.measure(rig, settings, self._around(rig), on_progress)
        if case.noisy_neighbour is not None:
            reference = case.undisturbed
        with open_views(rig, reference_rig, case, self.options.node_of(case)) as seen:
            return self._measuring(rig, seen, case, reference, settings, on_progress).run(part)

    def measuring(
        self,
        rigs: tuple[Rig, Rig | None],
        case: Case,
        reference: Case | None,
        settings: Settings,
        on_progress: OnProgress,
    ) -> Measuring:
        """Begins a case whose turns others follow: one without a noisy neighbour, on one host."""
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

        ``seen``: the rigs as the launches see them: with a noisy neighbour, and without it.
        """
        around = self._around(rig)
        if self.remote is not None and case.remote:
            around = self.remote.around(around, rig, self.options.remote if self.options.host_names else None)
        launch, around = add_application(case, around)
        api = case.resolved_api(self.catalogue[case.switch])
        link = reference or case
        return Measuring(
            Side(seen[0], case, api=api, around=around, launch=launch),
            settings,
            None if seen[1] is None else Side(seen[1], link, api=link.api or api, launch=launch),
            on_progress,
            complete=partial(add_ports, rig=rig),
        )

    def measure_versions(
        self,
        rigs: tuple[Rig, Rig],
        sides: tuple[Case, Case],
        settings: Settings,
        allowed: Allowances,
        cases: int,
        on_progress: OnProgress,
    ) -> tuple[Measurement, Measurement]:
        """Measures a candidate side by side with its base; returns both results. Raises as ``measure`` does.

        Args:
            rigs: the candidate's and the base's.
            sides: the candidate's case and the base's.
            allowed: the slowdown that the candidate may have.
            cases: number of comparisons of the run.
        """
        case, _ = sides
        cls = self.catalogue[case.switch]
        launch, now_around = add_application(case, self._around(rigs[0]))
        _, base_around = add_application(case, self._around(rigs[1]))
        candidate, base = (
            Side(
                rig,
                each,
                self.candidates.resolve(each).resolved_api(cls),
                self.candidates.workload(each),
                around,
                launch,
            )
            for rig, each, around in zip(rigs, sides, (now_around, base_around), strict=True)
        )
        criteria = Criteria(allowed, cases)
        now, then = measure_versions(candidate, base, settings, criteria, on_progress)
        return add_ports(now, rigs[0]), add_ports(then, rigs[1])

    def _around(self, rig: Rig) -> Environment:
        return Environment(
            placement=rig.placement.policy,
            endpoints=tuple(rig.endpoints),
            identity=self._identity,
            treatment=self._treatment(rig),
            conditions={
                **host_facts.conditions(self.session.root, {*rig.placement.switch, *rig.placement.local}),
                **rig.switch_facts.conditions,
                **self._found_fit(),
                **({"host": platform.node()} if self.options.host_names else {}),
            },
            software=self._software(rig),
        )

    def _software(self, rig: Rig) -> OldVersion:
        key, candidate = candidate_key(rig.case), self.candidates.find(rig.case)
        configs = {**self._user, **({rig.case.switch: self._user[key]} if key in self._user else {})}
        if candidate is not None and candidate.component is not None and candidate.key in self._user:
            configs[function_key(candidate.component)] = self._user[candidate.key]
        return read_software(
            rig,
            {**self._binaries, **self.candidates.find_replacements(rig.case).programs},
            self.programs.get(key, (None, None))[0],
            self.candidates.workload(rig.case),
            configs,
        )

    def _found_fit(self) -> dict[str, Any]:
        """The fitness at the beginning of the run, for the conditions of a result."""
        if (fitness := self._fitness) is None:
            return {"warnings": self._warnings}
        warnings = [] if fitness.fit else [f"{fitness.line[:1].upper()}{fitness.line[1:]}"]
        return {"warnings": [*self._warnings, *warnings], "fitness": fitness.condition()}

    @cached_property
    def facts(self) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """Identity of the host, and the treatment of all cases whose kind of nodes is the session's."""
        return self._identity, {**self._common_treatment, **kind_treatment(self.options.node)}

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings from taking the host, one sentence each."""
        return tuple(self._warnings)

    @property
    def programs(self) -> dict[str, tuple[Path | None, str | None]]:
        """Path and version, as far as known, of the workload, the user's binaries and the probed switches.

        Names are binaries' names (``ovs``, ``ovs:new``).
        """
        programs: dict[str, tuple[Path | None, str | None]] = {
            name: (path, None) for name, path in self._binaries.items()
        }
        with suppress(WorkloadError):  # without a workload nothing can run
            programs[WORKLOAD] = (workload_path(), None)
        for name, probed in self._feasibility.switch_facts.items():
            program = None if probed.program is None else Path(probed.program)
            versions = ", ".join(map(str, filter(None, (probed.version, *probed.config.values()))))
            programs[name] = (program, versions or None)
        return programs

    @cached_property
    def _common_treatment(self) -> dict[str, Any]:
        return common_treatment(self.session.root, self.options, self._hugepage_kib, self.user_topology)

    def _treatment(self, rig: Rig) -> dict[str, Any]:
        key = candidate_key(rig.case)
        user, (program, _) = self._user.get(key), self.programs.get(key, (None, None))
        candidate = self.candidates.find(rig.case)
        functions = dict(self.options.function_config)
        if candidate is not None and candidate.component is not None and candidate.config is not None:
            functions[candidate.component] = candidate.config
        return {
            **self._common_treatment,
            **kind_treatment(self.options.node_of(rig.case)),
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
