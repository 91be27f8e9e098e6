# SPDX-License-Identifier: BSD-3-Clause
"""Functions of the workload's own forwarder, a process in a node: ``wire``, ``costN``, ``swap``, ``delayNus``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import ClassVar

from pytest_icbench.driver.function.process_function import ProcessFunction
from pytest_icbench.driver.function.proof import pass_both_ways, swap_macs
from pytest_icbench.driver.function.protocol import VETH, Ends, FunctionSpec, Probe
from pytest_icbench.driver.switch.common.daemon import Daemon
from pytest_icbench.driver.switch.common.userspace_ports import MEMIF, VHOST_USER, VHOST_USER_PACKED
from pytest_icbench.driver.switch.dpdk import dpdk_process
from pytest_icbench.driver.switch.forward import Forwarder, mode_options
from pytest_icbench.driver.workload.eal import eal_arguments, virtual_device
from pytest_icbench.driver.workload.executable import workload_path
from pytest_icbench.driver.workload.workload_version import workload_version
from pytest_icbench.errors import Unsupported, WorkloadError
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.model.endpoint import Endpoint, Pci, Veth
from pytest_icbench.model.function_facts import FunctionCounters, FunctionFacts
from pytest_icbench.model.switch_traits import Kind
from pytest_icbench.model.traffic import MAX_FRAME_BYTES, carries_jumbo

_WIRE = "wire"
#: Impairments: parts of the forwarder's modes that lose, double or reorder frames. No network function has them.
_IMPAIRMENTS = ("drop", "dup", "reorder")
#: Descriptors of a ring, the workload's default.
_RING = 256
_NO_YIELD = "noyield"
#: Parts that say how a function runs, not what it does. A ring's size is a power of two.
_HOW = re.compile(rf"{_NO_YIELD}|ring(?P<ring>{'|'.join(str(1 << power) for power in range(6, 13))})")


class ForwarderFunction(ProcessFunction):
    """A forwarder between two ports, over vhost-user, memif or raw sockets on kernel interfaces."""

    name = "forwarder"
    ports = (VHOST_USER, VHOST_USER_PACKED, MEMIF, VETH)
    polls = True
    help = (
        "wire, or parts joined by +, each once: costN (TSC cycles a frame), swap (of MAC addresses), delayNus; with any"
        " of them noyield, and over DPDK's ports ringN (descriptors, 64 to 4096)"
    )
    chains = True
    hugepages_mib = 160
    memory_mib = 16
    any_frame = True
    config_keys: ClassVar[Mapping[str, Kind]] = {"arguments": "texts"}

    def __init__(self) -> None:
        super().__init__()
        self._forwarder: Forwarder | None = None
        self._arguments: list[str] = []

    @classmethod
    def has(cls, function: str) -> bool:
        parts, how = _parts(function)
        if len({part.rstrip("0123456789") for part in how}) < len(how):
            return False
        impaired = any(part.startswith(_IMPAIRMENTS) for part in parts)
        return parts == [_WIRE] or (not impaired and mode_options("+".join(parts)) is not None)

    @classmethod
    def usable_ports(cls, function: str) -> tuple[str, ...]:
        """Returns ``ports``; with a ring size only DPDK's ports, because sockets have no rings."""
        return tuple(port for port in cls.ports if port != VETH) if _ring(function) else cls.ports

    @classmethod
    def mode(cls, function: str) -> str | None:
        """Returns the forwarder's mode that makes a function; None for a wire. Pure."""
        parts, _ = _parts(function)
        return None if parts == [_WIRE] else "+".join(parts)

    @classmethod
    def proof(cls, function: str, ends: Ends) -> Sequence[Sequence[Probe]]:
        """Returns frames in both directions, which pass unchanged or with their MAC addresses swapped."""
        swaps = cls.changes_addresses(function, ends.hops)
        words = "with its MAC addresses swapped" if swaps else "unchanged"
        return pass_both_ways(ends, swap_macs if swaps else bytes, words)

    @classmethod
    def changes_addresses(cls, function: str, hops: int) -> bool:
        """Whether the functions of a chain swap the addresses an odd number of times."""
        return "swap" in (cls.mode(function) or "").split("+") and hops % 2 == 1

    @classmethod
    def least_cycles(cls, function: str) -> int:
        parts = (cls.mode(function) or "").split("+")
        costs = [part.removeprefix("cost") for part in parts if part.startswith("cost")]
        return int(costs[0]) if costs else 0

    def probe(self, session: HostSession, function: str) -> FunctionFacts:  # noqa: ARG002 - as ``Function``
        """Returns the workload's version. Raises Unsupported without it."""
        try:
            return FunctionFacts(self.name, workload_version().workload)
        except WorkloadError as error:
            raise Unsupported(str(error)) from None

    def start(self, session: HostSession, spec: FunctionSpec) -> None:  # noqa: ARG002
        """Starts the forwarder in the node. Raises ProvisionError."""
        node, inner, outer = spec.require_ports()
        argv = self._argv(spec, inner, outer)
        self._spec = spec
        self._daemon = Daemon(spec.label, node.spawn(argv, cpus=[spec.cpu], log=spec.log))
        self._forwarder = Forwarder(self._daemon)
        self._arguments = argv[1:]

    def await_started(self) -> None:
        """Waits until the forwarder forwards. Raises ProvisionError with the log's tail."""
        _, forwarder = self._live()
        hello = forwarder.await_ready(dpdk_process.START_S)
        version = ", ".join(str(hello[name]) for name in ("version", "dpdk") if hello[name])
        self._facts = FunctionFacts(self.name, version, {"arguments": self._arguments})

    def _argv(self, spec: FunctionSpec, inner: Endpoint, outer: Endpoint) -> list[str]:
        options = ["--supervised", *(mode_options(self.mode(spec.function)) or [])]
        yields = 0 if _NO_YIELD in _parts(spec.function)[1] else min(spec.yield_every, 1)
        options += ["--yield", str(yields), *spec.config.get("arguments", ())]
        options += ["--accounts"] if spec.counts_control else []
        jumbo = carries_jumbo(spec.mtu)
        options += ["--packet-size", str(MAX_FRAME_BYTES)] if jumbo else []
        program = str(workload_path())
        if isinstance(inner, Veth) and isinstance(outer, Veth):
            return [program, "forward", *options, "--mmsg", "-R", inner.interface, "-R", outer.interface]
        asked = _ring(spec.function)
        if asked and any(getattr(port, "role", None) not in ("front-end", "client") for port in (inner, outer)):
            raise Unsupported(
                f"{spec.function}: the switch or endpoint at the other end sets the ring size of these ports: use"
                " --icbench-ring, or measure over a switch"
            )
        ring = asked or _RING
        devices = [
            virtual_device(port, "dpdk", ring=ring, jumbo=jumbo, number=number)
            for number, port in enumerate((inner, outer))
            if not isinstance(port, Veth | Pci)
        ]
        eal = eal_arguments(inner, "dpdk", cpu=spec.cpu, ring=ring, jumbo=jumbo)
        eal[eal.index("-m") + 1] = str(ForwarderFunction.hugepages_mib)
        return [program, "dpdk-forward", *options, "--", *eal[:-1], *(f"--vdev={device}" for device in devices)]

    def _live(self) -> tuple[FunctionSpec, Forwarder]:
        spec, _ = self.live()
        assert self._forwarder is not None  # made with the process
        return spec, self._forwarder

    def counters(self) -> FunctionCounters:
        """Returns the forwarder's counters; nothing is dropped on purpose."""
        spec, forwarder = self._live()
        counters = forwarder.counters()
        inner, outer = counters.ports
        return FunctionCounters(
            spec.pair,
            taken=inner.rx,
            given=outer.tx,
            taken_back=outer.rx,
            acl_drops=0,
            busy_cycles=counters.busy_cycles,
            idle_cycles=counters.idle_cycles,
            busy_polls=counters.polls - counters.empty_polls,
            hop=spec.hop,
            control_taken=inner.control,
            control_given=outer.tx_control,
        )


def _parts(function: str) -> tuple[list[str], list[str]]:
    """Returns the parts that say what a function does, then those that say how it runs."""
    parts = function.split("+")
    return [part for part in parts if not _HOW.fullmatch(part)], [part for part in parts if _HOW.fullmatch(part)]


def _ring(function: str) -> int | None:
    """Returns the ring size in descriptors; None if the name has none."""
    found = [match["ring"] for part in function.split("+") if (match := _HOW.fullmatch(part)) and match["ring"]]
    return int(found[0]) if found else None
