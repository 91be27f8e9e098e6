# SPDX-License-Identifier: BSD-3-Clause
"""The host as the plugin uses it: asked what it can run, or held by a session and measured on."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from pytest_icbench.config.options import Options
from pytest_icbench.config.switch_config import SwitchConfig
from pytest_icbench.errors import ProvisionError, WorkloadError
from pytest_icbench.host.session import HostSession
from pytest_icbench.model.candidate import WORKLOAD, candidate_key
from pytest_icbench.model.case import CANDIDATE_KEY, Case
from pytest_icbench.testbed.candidates import Candidates
from pytest_icbench.testbed.feasibility import Feasibility
from pytest_icbench.testbed.remote.uplinks import uplinks_of
from pytest_icbench.testbed.rig_pool import RigRequest, RigRequests
from pytest_icbench.testbed.treatment import common_treatment, rig_treatment
from pytest_icbench.testbed.undo_kinds import UNDO_KINDS

if TYPE_CHECKING:
    from pytest_icbench.driver.switch.protocol import Switch
    from pytest_icbench.measure.progress import OnProgress
    from pytest_icbench.measure.summary.summarize import Surroundings
    from pytest_icbench.model.measurement import Measurement
    from pytest_icbench.model.placement import Placement
    from pytest_icbench.model.settings import Settings
    from pytest_icbench.stats.noninferiority import Margin
    from pytest_icbench.testbed.host_rig import HostPart
    from pytest_icbench.testbed.remote.host import RemoteHost
    from pytest_icbench.testbed.rig import Rig

DEFAULT_HUGEPAGE_KIB = 2048


class Testbed:
    """At first it only asks: nothing is changed and no root is needed. ``hold`` takes the host.

    Args:
        catalogue: switches by name.
        cases: those of the run: ``auto`` placement resolves to what every one of them can have.
        configs: the user's configurations, by switch and candidate.
        unsupported: why no host can run a case, as far as somebody has asked; None for one that some can.
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
        #: Who the endpoints are, where somebody says so.
        self.seating = options.topology
        #: What is compared with what there is: its binaries are known by the names of its cases.
        self.candidates = Candidates(catalogue, options)
        self._arguments["binaries"] |= self.candidates.binaries
        self.remote = self._remote_host()
        self.session = HostSession.probing(**self._arguments)
        self._warnings: list[str] = []
        self._places = Feasibility(
            catalogue,
            options,
            self._cases,
            binaries=self._arguments["binaries"],
            unsupported=unsupported,
            seating=self.seating,
            remote=self.remote,
            session=self.session,
        )

    def hold(self) -> None:
        """Takes the host for this run, and the second one.

        Raises what opening a HostSession raises: busy host, unclean remains. If the second host cannot be had, so if
        no case can do without it; else its cases fail one by one.
        """
        needed = bool(self._cases) and all(case.remote for case in self._cases)
        if self.remote is not None and needed:
            self.remote.check()
        self.session = self._places.session = HostSession(UNDO_KINDS, **self._arguments, configs=self._configs)
        if self.remote is not None and needed:
            try:
                self.remote.hold()
            except BaseException:
                self.session.close()
                raise
        if self.options.frequency == "fix":
            from pytest_icbench.host.resource.frequency import prepare_cpus

            try:
                self._warnings = prepare_cpus(self.session, self._places.measuring_cpus()).warnings
            except BaseException:
                self.session.close()
                raise

    def _remote_host(self) -> RemoteHost | None:
        if self.options.remote is None or not any(case.remote for case in self._cases):
            return None
        from pytest_icbench.testbed.remote.host import RemoteHost

        arguments = {**self._arguments, "configs": self._configs}
        return RemoteHost.of_run(self.options, arguments, lambda: self._places.measuring_cpus_there())

    @property
    def policy(self) -> Literal["auto", "dedicated", "cooperative"]:
        """The placement of all cases, resolved; ``auto`` if none of them can run."""
        return self._places.policy

    def placement(self, case: Case) -> Placement:
        """Where the threads of a case run. Raises Unsupported if this host cannot run it: the reason and its remedy."""
        return self._places.placement(case)

    def reference(self, case: Case) -> Case | None:
        """The case whose rig is the reference link, None if there is none."""
        found = self._twin(case)
        return None if found is None or self._why_no_reference(case, found) is not None else found

    def _twin(self, case: Case) -> Case | None:
        """Without any switch, whether or not it can be had."""
        from pytest_icbench.measure.reference import reference_case

        cls = self.catalogue[case.switch]
        found = reference_case(case, case.resolved_port(cls), family=cls.family)
        if found is None or found.switch not in self.catalogue:
            return None
        other = self.catalogue[found.switch]
        # A VF has no twin in shared memory: the reference of such a port is the natural one.
        return replace(found, port=None) if found.port not in other.ports[1:] else found

    def _why_no_reference(self, case: Case, reference: Case) -> str | None:
        if not case.remote:
            return None
        from pytest_icbench.testbed.remote.reference import why_none

        return why_none(case, reference, self.catalogue, self.options)

    def need(self, case: Case, settings: Settings) -> RigRequests:
        """The rigs of a case. Raises Unsupported as ``placement`` does."""
        placement = self.placement(case)
        if case.candidate is not None:
            base = case.base
            return RigRequests(
                RigRequest(case, placement, (case.rig_key, placement)),
                RigRequest(base, placement, (base.rig_key, placement)),
            )
        rig = RigRequest(case, placement, (case.rig_key, placement))
        reference = self._twin(case) if settings.reference else None
        if reference is None:
            return RigRequests(rig, None)
        if (missing := self._why_no_reference(case, reference)) is not None:
            return RigRequests(rig, None, missing)
        # Exactly the endpoints' CPUs of the case, and no switch.
        there = None if placement.there is None else replace(placement.there, switch=())
        without = replace(placement, switch=(), there=there)
        return RigRequests(rig, RigRequest(reference, without, (reference.rig_key, without)))

    def make_rig(self, wanted: RigRequest) -> Rig:
        """A rig, not yet built."""
        from pytest_icbench.testbed.rig import ExclusiveRig, Rig

        case = self.candidates.built(wanted.case)
        endpoint_specs = None if self.seating is None else self.seating.endpoint_specs(case.pairs)
        kind = ExclusiveRig if case.remote else Rig
        return kind(
            case,
            wanted.placement,
            self.session,
            self.options,
            switches=self.catalogue,
            endpoint_specs=endpoint_specs,
            host_part=self._two_hosts(case),
        )

    def _two_hosts(self, case: Case) -> Callable[[], HostPart] | None:
        if not case.remote:
            return None
        from pytest_icbench.testbed.remote.rig import SecondHost

        uplinks = uplinks_of(self.options, self.catalogue[case.switch])
        second = SecondHost(self._places.second().rig, uplinks.here, uplinks.there)
        return lambda: second.joined(self.session, self.catalogue)

    @cached_property
    def _identity(self) -> Mapping[str, Any]:
        from pytest_icbench.host import facts

        return facts.identity(self.session.root)

    def measure(
        self,
        rigs: tuple[Rig, Rig | None],
        case: Case,
        reference: Case | None,
        settings: Settings,
        on_progress: OnProgress,
    ) -> Measurement:
        """Measures a case on its rigs. Raises WorkloadError and ProvisionError."""
        from pytest_icbench.measure.measure import measure

        rig, beside = rigs
        around = self._around(rig)
        if self.remote is not None and case.remote:
            around = self.remote.around(around, rig, self.options.remote if self.options.host_names else None)
        api = case.resolved_api(self.catalogue[case.switch])
        found = measure(rig, beside, case, settings, on_progress, around=around, reference=reference, api=api)
        return _with_ports(found, rig)

    def measure_versions(
        self,
        rigs: tuple[Rig, Rig],
        case: Case,
        settings: Settings,
        margin: Margin,
        cases: int,
        on_progress: OnProgress,
    ) -> tuple[Measurement, Measurement]:
        """Measures a candidate beside its base, whose rigs these are: both results. Raises as ``measure`` does."""
        from pytest_icbench.measure.strategy.side_by_side import measure_versions

        now, base = measure_versions(
            rigs,
            case,
            settings,
            margin,
            cases,
            (self._around(rigs[0]), self._around(rigs[1])),
            api=case.resolved_api(self.catalogue[case.switch]),
            on_progress=on_progress,
            executables=(self.candidates.workload(case), None),
        )
        return _with_ports(now, rigs[0]), _with_ports(base, rigs[1])

    def _around(self, rig: Rig) -> Surroundings:
        from pytest_icbench.host import facts
        from pytest_icbench.measure.summary.summarize import Surroundings

        return Surroundings(
            placement=rig.placement.policy,
            endpoints=tuple(rig.endpoints),
            identity=self._identity,
            treatment=self._treatment(rig),
            conditions={
                **facts.conditions(self.session.root, {*rig.placement.switch, *rig.placement.own}),
                "warnings": self._warnings,
                **({"host": platform.node()} if self.options.host_names else {}),
            },
        )

    @cached_property
    def facts(self) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """Identity of the host, and the treatment as far as it is the same for all cases."""
        return self._identity, self._common_treatment

    @property
    def programs(self) -> dict[str, tuple[Path | None, str | None]]:
        """Path and version, as far as known, of what runs: the workload, the user's binaries, and what probing found.

        Names are those of binaries (``ovs``, ``ovs:new``).
        """
        from pytest_icbench.driver.workload.executable import workload_path

        found: dict[str, tuple[Path | None, str | None]] = {
            name: (path, None) for name, path in self._arguments["binaries"].items()
        }
        with suppress(WorkloadError):  # there is none, and nothing can run
            found[WORKLOAD] = (workload_path(), None)
        for name, facts in self._places.found.items():
            program = None if facts.program is None else Path(facts.program)
            found[name] = (program, ", ".join(map(str, filter(None, (facts.version, *facts.config.values())))) or None)
        return found

    @cached_property
    def _common_treatment(self) -> dict[str, Any]:
        return common_treatment(self.session.root, self.options, self._arguments["hugepage_size_kib"], self.seating)

    def _treatment(self, rig: Rig) -> dict[str, Any]:
        user = self._user.get(candidate_key(rig.case))
        return {
            **self._common_treatment,
            **self.candidates.workload_treatment(rig.case),
            **rig_treatment(rig, None if user is None else user.treatment()),
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


def _with_ports(found: Measurement, rig: Rig) -> Measurement:
    """Some switches give queues to workers only when endpoints connect."""
    ports = None
    with suppress(ProvisionError):  # the switch died, which the measurement says
        ports = rig.assignment()
    cpus = {**found.treatment["cpus"], "ports": ports}
    return replace(found, treatment={**found.treatment, "cpus": cpus})
