# SPDX-License-Identifier: BSD-3-Clause
"""Decides which cases a host can run, and on which CPUs: by its switches, NICs, CPUs, topology and second host."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from pytest_icbench.config.capabilities import unsupported_reason
from pytest_icbench.config.options import Options
from pytest_icbench.config.topology import Topology as UserTopology
from pytest_icbench.config.topology import explain_missing_topology
from pytest_icbench.driver.function.protocol import Function
from pytest_icbench.driver.function.registry import component_behind
from pytest_icbench.driver.guard import make_function, make_switch, switch_needs
from pytest_icbench.driver.switch.attach import resolve_endpoints
from pytest_icbench.driver.switch.protocol import Switch, SwitchFacts
from pytest_icbench.errors import ProvisionError, Unsupported, UsageError
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.resource.cpu import Topology
from pytest_icbench.kinds.runs import check_comparable
from pytest_icbench.model import flows
from pytest_icbench.model.candidate import candidate_key
from pytest_icbench.model.case import Case
from pytest_icbench.model.endpoint import ATTACH
from pytest_icbench.model.load import Application, Startup
from pytest_icbench.model.noisy_neighbour import L3
from pytest_icbench.model.placement import Placement
from pytest_icbench.model.traffic import FCS_BYTES, STAMP_BYTES
from pytest_icbench.testbed.candidate_catalogue import Candidates, check_image
from pytest_icbench.testbed.cpu_placement import add_noisy_neighbour, join_placements, plan, plan_given, resolve_auto
from pytest_icbench.testbed.memory_budget import FreeMemory, MemoryDemand
from pytest_icbench.testbed.noisy_neighbour_load import (
    explain_missing_program,
    explain_no_isolation,
    noisy_neighbour_cpus,
)
from pytest_icbench.testbed.probe import (
    explain_machine_misfit,
    explain_missing_kind,
    find_refusal,
    probe,
    probe_application,
)
from pytest_icbench.testbed.remote.remote_host import RemoteHost
from pytest_icbench.testbed.remote.uplinks import check_uplink, find_uplinks
from pytest_icbench.wording import counted


def explain_unattachable(case: Case, driver: type[Switch], topology: UserTopology, session: HostSession) -> str | None:
    """Returns why a case cannot use the existing containers, None if it can. Without root nothing is examined."""
    if os.geteuid() != 0:
        return None
    ends = [(spec.attached, spec.address) for spec in topology.endpoint_specs(case.pairs) if spec.attached is not None]
    raw = case.resolved_api(driver).startswith("raw")
    try:
        resolve_endpoints(ends, port=case.resolved_port(driver), raw=raw, mtu=case.traffic.mtu, root=session.root)
    except ProvisionError as error:
        return str(error)
    return None


#: The beginning of APIs whose sockets take only frames for the address of their interface.
_UDP = "udp"


def explain_misfit(component: type[Function], function: str, case: Case, api: str) -> str | None:
    """Returns a sentence if a component cannot do a function for a case, or could not prove it; None if it can.

    Args:
        function: one of the case's.
        api: the case's, resolved.
    """
    return next(_misfits(component, function, case, api), None)


def _misfits(component: type[Function], function: str, case: Case, api: str) -> Iterator[str]:
    if case.chain > 1 and not component.chains:
        yield (
            f"{component.name} makes no chains of its function '{function}': take --icbench-chain 1, or a function"
            " in containers"
        )
    if api.startswith(_UDP) and component.changes_addresses(function, case.chain):
        yield (
            f"function {function} swaps MAC addresses, and UDP sockets take frames for their own address alone: take"
            " --icbench-api raw, raw-mmsg or xdp"
        )
    if case.traffic.header is not None and not component.any_frame:
        yield (
            f"function {function} is for IPv4 and UDP without a VLAN tag, not for {case.traffic.header}:"
            " leave --icbench-header out"
        )
    number = flows.number(case.traffic.flows)
    most = component.most_flows(function)
    if most is not None and most < number and case.traffic.flows != flows.NEW:
        yield (
            f"function {function} has {most:,} ports for flows at its pool's address, not for {number:,}:"
            f" take at most {most:,} with --icbench-flows"
        )
    if case.traffic.both:
        yield from _both_ways(component, function, case)
    if case.one_way:
        yield from _idle_limits(component, function, case)
        yield from _nothing_acl_drops(component, function, case, number)


def _both_ways(component: type[Function], function: str, case: Case) -> Iterator[str]:
    """Yields why both ends of a case cannot send through a function at once."""
    remedy = "leave --icbench-direction out"
    if case.chain > 1 or case.new_flows:
        what = "a chain" if case.chain > 1 else "new flows"
        yield f"function {function} accounts for the frames of {what} from side a to side b only: {remedy}"
    if case.one_cpu:
        yield f"functions that share a CPU are compared by the frames from side a to side b: {remedy}"
    if component.rate_limit(function, case.traffic.mean_bytes) is not None:
        yield f"function {function} limits the frames of side a alone, and all would be judged by its rate: {remedy}"
    if case.traffic.flows is not None and component.only_answers(function):
        yield f"function {function} would deny all of side b's flows: leave --icbench-flows out"


def _idle_limits(component: type[Function], function: str, case: Case) -> Iterator[str]:
    limit, rate = component.rate_limit(function, case.traffic.mean_bytes), case.rate.pps
    if limit is not None and case.rate.loss_ratio is not None:
        yield (
            f"function {function} lets {limit.pps:,.0f} frames/s pass, and a search ends below that, where it limits"
            f" none: take a rate above it, or max, not {case.rate.typed}"
        )
    if limit is not None and rate is not None and rate < limit.pps * (1 + limit.tolerance):
        yield (
            f"function {function} lets {limit.pps:,.0f} frames/s pass, and {rate:,} are sent, so it would never limit"
            " any: set a lower limit, or a greater rate"
        )


def _nothing_acl_drops(component: type[Function], function: str, case: Case, number: int) -> Iterator[str]:
    acl_drop = component.acl_drop(function)
    if acl_drop is None:
        return
    if acl_drop.unasked:
        if not case.traffic.both:
            yield (
                f"function {function} denies frames of side b, which sends none, so their accounts would prove nothing:"
                " take --icbench-direction both"
            )
        return
    if case.traffic.flows is None:
        return
    if not acl_drop.of_flows(number):
        yield (
            f"function {function} denies none of {counted(number, 'flow')}, so their accounts would prove nothing:"
            f" take {acl_drop.least_flows} or more with --icbench-flows"
        )
    needed = case.traffic.headers_bytes + STAMP_BYTES + acl_drop.text_bytes + FCS_BYTES
    if acl_drop.text_bytes and min(case.traffic.sizes) < needed:
        yield (
            f"function {function} looks for a text that {min(case.traffic.sizes)} bytes do not hold after headers and"
            f" stamp: take frames of {needed} or more"
        )


@dataclass(slots=True)
class Hosts:
    """The hosts of a run.

    Attributes:
        session: for questions about this host, until the run holds it; then the session that holds it.
        remote: the second host; None for a run on one.
    """

    session: HostSession
    remote: RemoteHost | None = None


class Feasibility:
    """The cases that this host can run. Nothing is changed, no root is needed, and each answer is kept.

    Args:
        cases: the cases of the run: ``auto`` placement resolves to what every case can have. With a baseline that is
            saved or compared, it resolves for each case alone, so that the selection of cases does not matter.
        unsupported: why no host can run a case, as far as that is known.
        candidates: the alternatives to the bases; None for a run without.

    Attributes:
        policy: the placement of all cases, resolved; ``auto`` if none of them can run, or if they differ.
        switch_facts: facts of each probed switch, by the names of binaries.
    """

    def __init__(
        self,
        catalogue: Mapping[str, type[Switch]],
        options: Options,
        cases: Sequence[Case],
        hosts: Hosts,
        *,
        unsupported: Mapping[Case, str | None],
        candidates: Candidates | None = None,
    ) -> None:
        self.catalogue = catalogue
        self.options = options
        self._cases = cases
        self._hosts = hosts
        self._user_topology = options.topology
        self._candidates = candidates
        self._topology = Topology.read(hosts.session.root)
        self._room = FreeMemory.read(hosts.session.root)
        self.switch_facts: dict[str, SwitchFacts] = {}
        self._unsupported = dict(unsupported)
        #: Reasons by check and arguments, from before anything is made: later the rigs of this run would be in the way.
        self._reasons: dict[Hashable, str | None] = {}
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
        self._check_once(self._check_host, case)
        nodes = dict.fromkeys(map(self.options.node_of, (case, case.base)))
        for node in nodes:
            _refuse(explain_machine_misfit(case, self.catalogue[case.switch], node))
        if case.candidate is not None:
            self._check_candidates(case)
        self._probe(case)
        if case.switch == ATTACH and self._user_topology is not None:
            _refuse(explain_unattachable(case, self.catalogue[ATTACH], self._user_topology, self._hosts.session))
        if (check := self._load_checks.get(type(case.load))) is not None:
            for node in nodes:
                check(case.load.label or "", node)
        self._check_once(self._check_pairs, case.switch, case.path.wires_count)
        placement = self._place(case, self._resolve_policy([case]) if self._by_case else self.policy)
        _refuse(self._explain_no_rate(case, placement))
        _refuse(explain_no_isolation(case, placement, self._hosts.session.root))
        _refuse(explain_missing_program(case.noisy_neighbour))
        _refuse(self._room.shortage(self._memory(case, placement)))
        return placement

    @property
    def _load_checks(self) -> Mapping[type, Callable[[str, str], None]]:
        """Checks of the loads that have further requirements on this host, by the load's type."""
        return {
            Application: lambda label, node: self._check_once(probe_application, label, node),
            Startup: lambda label, _: _refuse(explain_missing_kind(label, self._hosts.session)),
        }

    def _memory(self, case: Case, placement: Placement) -> MemoryDemand:
        """Returns the memory that a case's rig needs on this host."""
        return MemoryDemand.of(
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
        if self._hosts.remote is None:
            raise Unsupported("the case needs a second host: name it with --icbench-remote")
        return self._hosts.remote

    def _check_once(self, check: Callable[..., object], *arguments: Hashable) -> None:
        """Makes a check that raises Unsupported, but only once for its arguments. Raises what the check raises."""
        key = check, arguments
        if key not in self._reasons:
            self._reasons[key] = find_refusal(partial(check, *arguments))
        _refuse(self._reasons[key])

    def _check_host(self, case: Case) -> None:
        """Raises Unsupported if no host can run a case."""
        if case not in self._unsupported:
            self._unsupported[case] = unsupported_reason(case, self.catalogue[case.switch], self.options.ring)
        _refuse(self._unsupported[case])
        if self._user_topology is not None:
            _refuse(self._user_topology.unsupported_reason(case))
        elif case.switch == ATTACH:
            _refuse(explain_missing_topology())

    def _check_candidates(self, case: Case) -> None:
        """Raises Unsupported if a case cannot be compared launch by launch, or this host cannot run its base."""
        if case.remote:
            raise Unsupported(
                "versions side by side would need one NIC twice: leave out --icbench-candidate over two hosts"
            )
        candidate = None if self._candidates is None else self._candidates.find(case)
        try:
            check_comparable(case)
            if candidate is not None:
                check_image(candidate, self.options.node_of(case), candidate.key)
        except UsageError as error:
            raise Unsupported(str(error)) from None
        self._probe(case.base)
        if candidate is not None and candidate.component is not None:
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
                self._check_once(self._check_host, case)
                self._probe(case)
                workers, pollers = self._workers(case), self._function_pollers(case)
            except (Unsupported, ProvisionError):
                continue  # a case that cannot run does not count
            away = len(self._away(case))
            here.add((workers + noisy_neighbour_cpus(case), len(case.path.endpoints) - away + pollers))
            if away:
                there.add((workers, away))
        if not here:
            return "auto"
        policy = resolve_auto(self._topology, sorted(here))
        if there and self._hosts.remote is not None and policy == "dedicated":
            policy = self._hosts.remote.resolve_auto(sorted(there))
        return policy

    def _policy_of_given(self, cases: Sequence[Case]) -> Literal["auto", "dedicated", "cooperative"]:
        """Returns the policy that every case can have on the CPUs that the topology gives."""
        policies: set[Literal["dedicated", "cooperative"]] = set()
        for case in cases:
            with suppress(Unsupported, ProvisionError):
                self._check_once(self._check_host, case)
                self._probe(case)
                policies.add(self._place(case, "auto").policy)
        return "cooperative" if "cooperative" in policies else "dedicated" if policies else "auto"

    def _place(self, case: Case, policy: Literal["auto", "dedicated", "cooperative"]) -> Placement:
        """Places a case's threads on the topology's CPUs, or on the best. Raises Unsupported."""
        count, apart = noisy_neighbour_cpus(case), case.isolation == L3
        if not count:
            return self._place_path(case, policy)
        with suppress(Unsupported):
            placement = add_noisy_neighbour(self._topology, self._place_path(case, policy), count, apart=apart)
            if placement is not None:
                return placement
        if apart:
            raise Unsupported(
                "isolation l3 puts the noisy neighbour on CPUs of another L3 cache, and no unused core of one is"
                " left on this host: take cat:11-1, or none"
            )
        self._place_path(case, policy)  # its message comes first if the path alone has too few CPUs
        try:
            # The noisy neighbour gets CPUs as workers of a switch do, and the endpoints share the rest.
            here = self._place_path(case, policy, count)
        except Unsupported:
            raise Unsupported(
                f"noisy neighbour {case.noisy_neighbour} needs {counted(count, 'CPU')} that the rest of the case does"
                " not use, and this host has too few: take a noisy neighbour of fewer CPUs, or a larger machine"
            ) from None
        return replace(here, switch=here.switch[:-count], noisy_neighbour=here.switch[-count:])

    def _place_path(self, case: Case, policy: Literal["auto", "dedicated", "cooperative"], more: int = 0) -> Placement:
        """Places a case without its noisy neighbour, with ``more`` workers after the switch's. Raises Unsupported."""
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
                raise Unsupported(f"functions on one CPU count as one more switch worker: {error}") from None
            here = replace(here, switch=here.switch[:-1], functions=here.switch[-1:] * case.pairs)
        else:
            here = plan(self._topology, workers=workers, endpoints=count + pollers, policy=policy)
            here = replace(here, endpoints=here.endpoints[:count], functions=here.endpoints[count:])
        if not away:
            return here
        cpus = [cpu for index, cpu in given.items() if index in away]
        return join_placements(here, self.second().plan(workers, len(away), policy, cpus), away)

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
        """Returns the number of a case's network functions that poll, each on its CPU. Raises Unsupported."""
        if case.function is None:
            return 0
        made_by = {self._component(case, function): function for function in dict.fromkeys(case.functions)}
        component, *others = made_by
        if others:
            raise Unsupported(
                "functions side by side on one CPU have to be of one component, but"
                f" {' and '.join(f'{name} is of {cls.name}' for cls, name in made_by.items())}"
            )
        if case.rate.trace is not None and case.rate.trace.freezes and not component.polls:
            raise Unsupported(f"{component.name} has no processes that could be frozen: take wire or costN")
        if case.one_cpu:
            if not component.polls:
                raise Unsupported(f"{component.name} has no processes that could share a CPU, or have a part of it")
            return 1  # they share one CPU, which no other thread has
        return case.pairs * case.chain if component.polls else 0

    def _explain_no_rate(self, case: Case, placement: Placement) -> str | None:
        """Returns a sentence if a function would share its CPU without ever yielding; else None."""
        threads = Counter((*placement.switch, *placement.local, *placement.functions))
        greedy = [name for name in dict.fromkeys(case.functions) if not self._component(case, name).yields]
        if not greedy or case.one_cpu or all(threads[cpu] == 1 for cpu in placement.functions):
            return None
        return (
            f"function {' and '.join(greedy)} never gives its CPU away, and here it would share it with other threads"
            f" of the case, which then have no rate: take a host with {counted(threads.total() + 1, 'CPU')}"
        )

    def _component(self, case: Case, function: str) -> type[Function]:
        """Returns the component that makes a case's function. Raises Unsupported if none can here."""
        cls = self.catalogue[case.switch]
        # A third-party driver may be no Switch. One that forwards by address need not separate ports.
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
                f"{case.switch} carries frames to the addresses of its ports alone, and function {function} has none:"
                " take one that routes, or another switch"
            )
        _refuse(explain_misfit(component, function, case, case.resolved_api(cls)))
        self._check_once(self._check_function, component, function)
        return component

    def _check_function(self, component: type[Function], function: str) -> None:
        make_function(component).probe(self._hosts.session, function)

    def _probe(self, case: Case) -> None:
        """Raises Unsupported if this host, or the second host of the case, lacks a requirement of the case."""
        cls = self.catalogue[case.switch]
        built = case if self._candidates is None else self._candidates.resolve(case)
        port, api = built.resolved_port(cls), built.resolved_api(cls)
        if built.api != case.api and api not in cls.port_apis(port):
            raise Unsupported(f"{case.switch} has no API {api} over port kind {port}: leave {case.candidate} out")
        node = self.options.node_of(case)
        self._check_once(self._check_switch, case.switch, port, api, candidate_key(case), node)
        if case.remote:
            second = self.second()
            uplinks = find_uplinks(self.options, cls)
            self._check_once(check_uplink, uplinks.here)
            second.unsupported_reason(case.switch, port, api, node, uplinks.there)
            # From here on the address of the connection to the second host is known.
            self._check_once(check_uplink, uplinks.here, second.client)

    def _check_switch(self, switch: str, port: str, api: str, name: str, node: str) -> None:
        cls, binary = self.catalogue[switch], self._hosts.session.binaries.get(name)
        self.switch_facts[name] = probe(cls, port, api, self._hosts.session, node=node, binary=binary)

    def _check_pairs(self, switch: str, pairs: int) -> None:
        make_switch(self.catalogue[switch]).probe_pairs(self._hosts.session, pairs)


def _refuse(reason: str | None) -> None:
    """Raises Unsupported for a reason."""
    if reason is not None:
        raise Unsupported(reason)
