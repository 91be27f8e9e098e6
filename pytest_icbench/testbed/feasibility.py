# SPDX-License-Identifier: BSD-3-Clause
"""The cases that a host can run, and their CPUs, by its switches, NICs and CPUs, the topology and the second host."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Literal

from pytest_icbench.config.capabilities import unsupported_reason
from pytest_icbench.config.options import Options
from pytest_icbench.config.topology.model import Topology as UserTopology
from pytest_icbench.config.topology.model import explain_missing_topology
from pytest_icbench.driver.function.protocol import Function
from pytest_icbench.driver.function.registry import component_behind
from pytest_icbench.driver.guard import make_function, make_switch, probe_node, switch_needs
from pytest_icbench.driver.switch.protocol import Switch, SwitchFacts
from pytest_icbench.errors import ProvisionError, Unsupported, UsageError
from pytest_icbench.host.resource.cpu import Topology
from pytest_icbench.host.session import HostSession
from pytest_icbench.measure.versions import check_comparable
from pytest_icbench.model.candidate import candidate_key
from pytest_icbench.model.case import Case
from pytest_icbench.model.existing import ATTACH
from pytest_icbench.model.neighbour_kinds import L3
from pytest_icbench.model.placement import Placement
from pytest_icbench.model.uplink import Uplink
from pytest_icbench.testbed.application_probe import probed
from pytest_icbench.testbed.attached import why_not_attached
from pytest_icbench.testbed.candidates import Candidates
from pytest_icbench.testbed.function_fit import misfit
from pytest_icbench.testbed.neighbour import neighbour_cpus, why_not_isolated
from pytest_icbench.testbed.placement import joined, plan, plan_given, resolve_auto, with_neighbour
from pytest_icbench.testbed.probe import probe, why_no_crowd, why_not
from pytest_icbench.testbed.remote.host import RemoteHost
from pytest_icbench.testbed.remote.uplinks import check as check_uplink
from pytest_icbench.testbed.remote.uplinks import uplinks_of
from pytest_icbench.testbed.room import HostRoom, RigMemory
from pytest_icbench.wording import counted


class Feasibility:
    """The cases that this host can run. Nothing is changed, no root is needed, and each answer is kept.

    Args:
        catalogue: switches by name.
        cases: those of the run: ``auto`` placement resolves to what every case can have. Where a baseline is saved or
            compared with, it resolves for each case by itself: which others are selected must not matter then.
        binaries: the user's paths by switch, candidate or tool.
        unsupported: why no host can run a case, as far as that is known.
        user_topology: the user's endpoints; None for the default ones.
        remote: the second host, where one is named.
        candidates: what is compared with the bases; None for a run without.

    Attributes:
        policy: the placement of all cases, resolved; ``auto`` if none of them can run, or if they differ.
        session: for looking at the host; a run puts its session here once it holds the host.
        switch_facts: facts of each probed switch, by the names of binaries.
    """

    def __init__(
        self,
        catalogue: Mapping[str, type[Switch]],
        options: Options,
        cases: Sequence[Case],
        *,
        binaries: Mapping[str, Path],
        unsupported: Mapping[Case, str | None],
        user_topology: UserTopology | None,
        remote: RemoteHost | None,
        session: HostSession,
        candidates: Candidates | None = None,
    ) -> None:
        self.catalogue = catalogue
        self.options = options
        self.session = session
        self._cases = cases
        self._binaries = binaries
        self._user_topology = user_topology
        self._remote = remote
        self._candidates = candidates
        self._topology = Topology.read(session.root)
        self._room = HostRoom.read(session.root)
        self.switch_facts: dict[str, SwitchFacts] = {}
        self._unsupported = dict(unsupported)
        # Each is found out once, before anything is made: later the rigs of this run would be in the way.
        self._host_reason = cache(self._why_no_host)
        self._switch_reason = cache(self._why_no_switch)
        self._pairs_reason = cache(self._why_no_pairs)
        self._function_reason = cache(self._why_no_function)
        self._uplink_reason = cache(self._why_no_uplink)
        self._application_reason = cache(_why_no_application)
        self._answers: dict[Case, Placement | str] = {}
        self._by_case = options.save is not None or options.compare is not None
        self.policy = self._resolve_policies(cases)

    def placement(self, case: Case) -> Placement:
        """Returns where the threads of a case run, the same at each call.

        Raises Unsupported with the reason and its remedy if this host cannot run it. Raises ProvisionError if the
        second host does not answer; the next call asks it again.
        """
        if case not in self._answers:
            try:
                self._answers[case] = self._find_placement(case)
            except Unsupported as error:
                self._answers[case] = str(error)
        answer = self._answers[case]
        if isinstance(answer, str):
            raise Unsupported(answer)
        return answer

    def _find_placement(self, case: Case) -> Placement:
        _refuse(self._host_reason(case))
        if case.candidate is not None:
            self._check_candidates(case)
        self._probe(case)
        if case.switch == ATTACH and self._user_topology is not None:
            _refuse(why_not_attached(case, self.catalogue[ATTACH], self._user_topology, self.session))
        if case.app is not None:
            _refuse(self._application_reason(case.app))
        if case.birth is not None:
            _refuse(why_no_crowd(case.birth, self.session))
        _refuse(self._pairs_reason(case.switch, case.path.wires_count))
        placement = self._place(case, self._resolve_policy([case]) if self._by_case else self.policy)
        _refuse(why_not_isolated(case, placement, self.session.root))
        _refuse(self._room.shortage(self._memory(case, placement)))
        return placement

    def _memory(self, case: Case, placement: Placement) -> RigMemory:
        """Returns what a case's rig takes of this host's memory."""
        return RigMemory.of(
            case,
            self.catalogue[case.switch],
            workers=len(placement.switch),
            nodes=len(placement.local),
            made=0 if case.switch == ATTACH else len(placement.local),
            uplink=case.remote,
        )

    def measuring_cpus(self) -> set[int]:
        """Returns this host's CPUs on which switches and endpoints of the run's cases work."""
        cpus: set[int] = set()
        for case in self._cases:
            with suppress(Unsupported, ProvisionError):
                placement = self.placement(case)
                cpus |= {*placement.switch, *placement.local}
        return cpus

    def measuring_cpus_there(self) -> set[int]:
        """Returns the second host's CPUs for them, if their frequency is to be fixed; else none."""
        cpus: set[int] = set()
        if self.options.frequency == "fix":
            for case in self._cases:
                with suppress(Unsupported, ProvisionError):
                    if (there := self.placement(case).there) is not None:
                        cpus |= {*there.switch, *(there.endpoints[index] for index in self._away(case))}
        return cpus

    def second(self) -> RemoteHost:
        """Returns the second host. Raises Unsupported if the user named none."""
        if self._remote is None:
            raise Unsupported("the case needs a second host: name it with --icbench-remote")
        return self._remote

    def _why_no_host(self, case: Case) -> str | None:
        """Returns why no host can run a case, None if one can."""
        if case not in self._unsupported:
            self._unsupported[case] = unsupported_reason(case, self.catalogue[case.switch], self.options.ring)
        reason = self._unsupported[case]
        if reason is None and self._user_topology is not None:
            reason = self._user_topology.unsupported_reason(case)
        elif reason is None and case.switch == ATTACH:
            reason = explain_missing_topology()
        return reason

    def _check_candidates(self, case: Case) -> None:
        """Raises Unsupported if a case cannot be compared launch by launch, or this host cannot run its base."""
        if case.remote:
            raise Unsupported(
                "versions side by side would need one NIC twice: leave out --icbench-variant over two hosts"
            )
        try:
            check_comparable(case)
        except UsageError as error:
            raise Unsupported(str(error)) from None
        self._probe(case.base)
        candidate = None if self._candidates is None else self._candidates.of(case)
        if candidate is None:
            return
        if candidate.kind == "node" and os.geteuid() == 0:  # else it is a plan, for a run with root
            _refuse(why_not(lambda: probe_node(candidate.value, self.session)))
        if candidate.component is not None:
            made_by = {self._component(case, function).name for function in case.functions}
            if candidate.component not in made_by:
                raise Unsupported(f"its function is made by {' and '.join(made_by)}, not by {candidate.component}")

    def _resolve_policies(self, cases: Sequence[Case]) -> Literal["auto", "dedicated", "cooperative"]:
        if not self._by_case:
            return self._resolve_policy(cases)
        policies = {self._resolve_policy([case]) for case in cases} - {"auto"}
        return policies.pop() if len(policies) == 1 else "auto"

    def _resolve_policy(self, cases: Sequence[Case]) -> Literal["auto", "dedicated", "cooperative"]:
        if self.options.placement != "auto":
            return self.options.placement
        if self._user_topology is not None and self._user_topology.cpus(1):
            return self._policy_of_given(cases)
        here, there = set(), set()
        for case in cases:
            try:
                _refuse(self._host_reason(case))
                self._probe(case)
                workers, pollers = self._workers(case), self._function_pollers(case)
            except (Unsupported, ProvisionError):
                continue  # a case that cannot run does not count
            away = len(self._away(case))
            here.add((workers + neighbour_cpus(case), len(case.path.endpoints) - away + pollers))
            if away:
                there.add((workers, away))
        if not here:
            return "auto"
        policy = resolve_auto(self._topology, sorted(here))
        if there and self._remote is not None and policy == "dedicated":
            policy = self._remote.resolve_auto(sorted(there))
        return policy

    def _policy_of_given(self, cases: Sequence[Case]) -> Literal["auto", "dedicated", "cooperative"]:
        """Returns the policy that every case can have on the CPUs that the topology gives."""
        policies: set[Literal["dedicated", "cooperative"]] = set()
        for case in cases:
            with suppress(Unsupported, ProvisionError):
                _refuse(self._host_reason(case))
                self._probe(case)
                policies.add(self._place(case, "auto").policy)
        return "cooperative" if "cooperative" in policies else "dedicated" if policies else "auto"

    def _place(self, case: Case, policy: Literal["auto", "dedicated", "cooperative"]) -> Placement:
        """Places a case's threads on the topology's CPUs, or on the best. Raises Unsupported."""
        count, apart = neighbour_cpus(case), case.isolation == L3
        if not count:
            return self._place_path(case, policy)
        with suppress(Unsupported):
            placement = with_neighbour(self._topology, self._place_path(case, policy), count, apart=apart)
            if placement is not None:
                return placement
        if apart:
            raise Unsupported(
                "isolation l3 puts the neighbour on CPUs of another L3 cache, and no unused core of one is left on this"
                " host: take cat:11-1, or none"
            )
        self._place_path(case, policy)  # a path without room for itself says so
        try:
            # The neighbour has its CPUs as a switch has those of its workers, and the endpoints share the rest.
            here = self._place_path(case, policy, count)
        except Unsupported:
            raise Unsupported(
                f"neighbour {case.neighbour} takes {counted(count, 'CPU')} that nothing else of the case has, and this"
                " host has fewer beside the path's: take a neighbour of fewer CPUs, or a larger machine"
            ) from None
        return replace(here, switch=here.switch[:-count], neighbour=here.switch[-count:])

    def _place_path(self, case: Case, policy: Literal["auto", "dedicated", "cooperative"], more: int = 0) -> Placement:
        """Places a case without its neighbour, with ``more`` workers after the switch's own. Raises Unsupported."""
        workers = self._workers(case) + more
        given = {} if self._user_topology is None else self._user_topology.cpus(case.pairs)
        away = self._away(case)
        pollers = self._function_pollers(case)
        count = len(case.path.endpoints) - len(away)
        if cpus := [cpu for index, cpu in given.items() if index not in away]:
            here = plan_given(self._topology, workers=workers, endpoints=cpus, policy=policy)
        elif case.one_cpu:
            try:
                here = plan(self._topology, workers=workers + 1, endpoints=count, policy=policy)
            except Unsupported as error:
                raise Unsupported(f"functions on one CPU count as a switch worker more: {error}") from None
            here = replace(here, switch=here.switch[:-1], functions=here.switch[-1:] * case.pairs)
        else:
            here = plan(self._topology, workers=workers, endpoints=count + pollers, policy=policy)
            here = replace(here, endpoints=here.endpoints[:count], functions=here.endpoints[count:])
        if not away:
            return here
        cpus = [cpu for index, cpu in given.items() if index in away]
        return joined(here, self.second().plan(workers, len(away), policy, cpus), away)

    def _away(self, case: Case) -> tuple[int, ...]:
        """Returns the indexes of the endpoints on the second host."""
        if not case.remote:
            return ()
        if self._user_topology is None:
            return tuple(case.path.followers)
        hosts = self._user_topology.hosts(case.pairs)
        return tuple(index for index, host in enumerate(hosts) if host == "remote")

    def _workers(self, case: Case) -> int:
        cls = self.catalogue[case.switch]
        return switch_needs(cls, case.path.wires_count, case.resolved_cores(cls), case.traffic).pollers

    def _function_pollers(self, case: Case) -> int:
        """Returns how many network functions of a case poll, each on its CPU. Raises Unsupported."""
        if case.function is None:
            return 0
        made_by = {self._component(case, function): function for function in dict.fromkeys(case.functions)}
        component, *others = made_by
        if others:
            raise Unsupported(
                "functions side by side on one CPU are made by one component, and"
                f" {' and '.join(f'{name} is of {cls.name}' for cls, name in made_by.items())}"
            )
        if case.rate.trace is not None and case.rate.trace.freezes and not component.polls:
            raise Unsupported(f"{component.name} has no processes that could be frozen: take wire or costN")
        if case.one_cpu:
            if not component.polls:
                raise Unsupported(f"{component.name} has no processes that could share a CPU, or have a part of it")
            return 1  # they share one CPU, which nobody else has
        return case.pairs * case.chain if component.polls else 0

    def _component(self, case: Case, function: str) -> type[Function]:
        """Returns what makes a case's function. Raises Unsupported if nothing can here."""
        cls = self.catalogue[case.switch]
        # A driver from elsewhere may be no Switch. One that takes frames to their addresses need not keep ports apart.
        by_address = getattr(cls, "unknown_unicast", None) == "none" and cls.hops is None
        if not by_address and not getattr(cls, "segments", False):
            raise Unsupported(f"{case.switch} cannot keep the ports of a network function apart: choose another switch")
        if case.remote or self._user_topology is not None:
            where = "two hosts" if case.remote else "a topology's endpoints"
            raise Unsupported(
                f"network functions in the path are for the default endpoints on one host, not for {where}"
            )
        component = component_behind(cls, case.resolved_port(cls), function)
        if by_address and not component.has_addresses(function):
            raise Unsupported(
                f"{case.switch} carries frames to the addresses of its ports alone, and function {function} has none of"
                " its own: take one that routes, or another switch"
            )
        _refuse(misfit(component, function, case, case.resolved_api(cls)))
        _refuse(self._function_reason(component, function))
        return component

    def _why_no_function(self, component: type[Function], function: str) -> str | None:
        return why_not(lambda: make_function(component).probe(self.session, function))

    def _probe(self, case: Case) -> None:
        """Raises Unsupported if this host, or the second one of a case on two, lacks what the case takes."""
        cls = self.catalogue[case.switch]
        built = case if self._candidates is None else self._candidates.built(case)
        port, api = built.resolved_port(cls), built.resolved_api(cls)
        if built.api != case.api and api not in cls.port_apis(port):
            raise Unsupported(f"{case.switch} has no API {api} over port kind {port}: leave {case.candidate} out")
        _refuse(self._switch_reason(case.switch, port, api, candidate_key(case)))
        if case.remote:
            second = self.second()
            uplinks = uplinks_of(self.options, cls)
            _refuse(self._uplink_reason(uplinks.here))
            second.unsupported_reason(case.switch, port, api, uplinks.there)
            _refuse(self._uplink_reason(uplinks.here, second.client))

    def _why_no_switch(self, switch: str, port: str, api: str, name: str) -> str | None:
        def find() -> None:
            cls, binary = self.catalogue[switch], self._binaries.get(name)
            self.switch_facts[name] = probe(cls, port, api, self.session, node=self.options.node, binary=binary)

        return why_not(find)

    def _why_no_pairs(self, switch: str, pairs: int) -> str | None:
        return why_not(lambda: make_switch(self.catalogue[switch]).probe_pairs(self.session, pairs))

    @staticmethod
    def _why_no_uplink(uplink: Uplink, client: str = "") -> str | None:
        """Returns why an uplink cannot be used, None if it can.

        Args:
            client: this host's address of the connection to the second one, once there is a connection.
        """
        return why_not(lambda: check_uplink(uplink, client))


def _why_no_application(label: str) -> str | None:
    return why_not(lambda: probed(label))


def _refuse(reason: str | None) -> None:
    """Raises Unsupported for a reason."""
    if reason is not None:
        raise Unsupported(reason)
