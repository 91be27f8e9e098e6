# SPDX-License-Identifier: BSD-3-Clause
"""The memory that a rig needs on one host, summed before anything of it starts, and the memory that is free."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pytest_icbench.driver.function.registry import component_behind
from pytest_icbench.driver.guard import switch_needs
from pytest_icbench.driver.switch.protocol import Switch
from pytest_icbench.driver.workload.eal import endpoint_mib
from pytest_icbench.errors import NoRoom
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.resource import hugepages
from pytest_icbench.host.resource.hugepages import memory_kib
from pytest_icbench.host.root import Root
from pytest_icbench.model.case import Case
from pytest_icbench.model.noisy_neighbour import NoisyNeighbour
from pytest_icbench.wording import counted

#: Ordinary memory of a container with its endpoint (``benchmarks/growth.py`` over kernel switches).
NODE_MIB = 8


@dataclass(frozen=True, slots=True)
class MemoryDemand:
    """The memory of a rig on one host, in MiB.

    Attributes:
        nodes: how many nodes are made for endpoints.
        switch_mib: huge pages of the switch.
        endpoints_mib: huge pages of each endpoint.
        functions: the network functions in words, empty without any.
        functions_mib: huge pages of all of them.
        function_nodes_mib: ordinary memory of the functions and their nodes.
        noisy_neighbour: the noisy neighbour's label, empty without any.
        noisy_neighbour_mib: memory that it holds.
        table_mib: ordinary memory of the routes of a switch that routes.
        routes: their number, 0 without any.
    """

    nodes: int
    switch_mib: int
    endpoints_mib: tuple[int, ...]
    functions: str = ""
    functions_mib: int = 0
    function_nodes_mib: int = 0
    noisy_neighbour: str = ""
    noisy_neighbour_mib: int = 0
    table_mib: int = 0
    routes: int = 0

    @classmethod
    def of(cls, case: Case, driver: type[Switch], *, workers: int, nodes: int, made: int, uplink: bool) -> MemoryDemand:
        """Returns the demand of a case.

        Args:
            workers: polling threads of the switch.
            nodes: endpoints on this host.
            made: endpoints whose nodes are made and do not exist already.
            uplink: whether the switch is connected with a second host.
        """
        port = case.resolved_port(driver)
        dpdk = "dpdk" in driver.port_apis(port)
        routes = case.traffic.routes or 0
        needs = switch_needs(driver, case.path.wires_count, workers, case.traffic)
        noisy_neighbour = None if case.noisy_neighbour is None else NoisyNeighbour.of(case.noisy_neighbour)
        of_ends = cls(
            noisy_neighbour="" if noisy_neighbour is None else noisy_neighbour.label,
            noisy_neighbour_mib=0 if noisy_neighbour is None else noisy_neighbour.memory_mib,
            nodes=made,
            table_mib=routes * getattr(driver, "route_bytes", {}).get(case.ip_version, 0) >> 20,
            routes=routes,
            switch_mib=0 if port in driver.ports_without_hugepages and not uplink else needs.hugepages_mib,
            endpoints_mib=(endpoint_mib(case.traffic.jumbo, case.traffic.queues),) * nodes if dpdk else (),
        )
        if not case.functions:
            return of_ends
        component = component_behind(driver, port, case.functions[0])
        count = case.pairs * case.chain
        return replace(
            of_ends,
            functions=f"{count} functions of {component.name}",
            functions_mib=component.hugepages_mib * count if dpdk else 0,
            function_nodes_mib=case.chain * sum(map(component.required_memory_mib, case.functions)),
        )

    @property
    def claims_mib(self) -> tuple[int, ...]:
        """The huge pages of each claim."""
        return self.switch_mib, *self.endpoints_mib, self.functions_mib

    def shortage(self, pages_mib: int, available_mib: int) -> str | None:
        """Returns why the host has too little memory, None if it has enough.

        Args:
            pages_mib: huge pages for which the host has to give memory.
            available_mib: memory that the host can give.
        """
        nodes_mib = NODE_MIB * self.nodes + self.function_nodes_mib + self.noisy_neighbour_mib + self.table_mib
        if nodes_mib + pages_mib <= available_mib:
            return None
        neighbour = f"noisy neighbour {self.noisy_neighbour}" if self.noisy_neighbour_mib else ""
        table = counted(self.routes, "route") if self.table_mib else ""
        containers = f"{self.nodes} containers" if self.nodes else ""
        who = " and ".join(filter(None, (containers, self.functions, neighbour, table)))
        pages = f" besides {pages_mib} MiB for huge pages" if pages_mib else ""
        return (
            f"{who or 'the processes'} need about {nodes_mib} MiB of memory{pages}, and the host has"
            f" {available_mib} MiB: run fewer pairs or subscribers, take shorter chains"
            f"{' or a noisy neighbour of fewer CPUs' if neighbour else ''}{', fewer routes' if table else ''}, or free"
            " memory"
        )


def check_memory(session: HostSession, numa_node: int, memory: MemoryDemand) -> None:
    """Checks that the host has the memory for a whole rig; changes nothing. Raises NoRoom if it has not."""
    pages_mib = hugepages.check_room(session, numa_node, memory.claims_mib)
    available = memory_kib(session.root).get("MemAvailable")
    shortage = None if available is None else memory.shortage(pages_mib, available // 1024)
    if shortage is not None:
        raise NoRoom(shortage)


@dataclass(frozen=True, slots=True)
class FreeMemory:
    """The memory that a host can give to rigs before the first of them is made, in MiB.

    Attributes:
        available_mib: ordinary memory; None if the kernel does not report it.
        free_pages_mib: unused huge pages of all sizes and NUMA nodes.
    """

    available_mib: int | None
    free_pages_mib: int

    @classmethod
    def read(cls, root: Root) -> FreeMemory:
        """Reads the host's free memory."""
        available = memory_kib(root).get("MemAvailable")
        return cls(None if available is None else available // 1024, hugepages.free_mib(root))

    def shortage(self, memory: MemoryDemand) -> str | None:
        """Returns why the host lacks memory for a rig; None if it has enough. ``check_memory`` agrees later."""
        if self.available_mib is None:
            return None
        return memory.shortage(max(0, sum(memory.claims_mib) - self.free_pages_mib), self.available_mib)
