# SPDX-License-Identifier: BSD-3-Clause
"""Functions of DPDK's testpmd, by its forwarding modes: ``io``, ``macswap``, ``tupleswap`` and ``noisyN``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from pytest_icbench.driver.function.process_function import DpdkFunction, check_ports, port_statistics
from pytest_icbench.driver.function.proof import pass_both_ways, swap_ends, swap_macs
from pytest_icbench.driver.function.protocol import Ends, FunctionSpec, Probe
from pytest_icbench.driver.switch.dpdk import dpdk_process
from pytest_icbench.driver.switch.dpdk.dpdk_process import query, telemetry_socket
from pytest_icbench.errors import ProvisionError, Unsupported
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.model import flows
from pytest_icbench.model.function_facts import FunctionCounters
from pytest_icbench.model.switch_traits import Kind

_PART = re.compile(r"io|macswap|tupleswap|noisy(?P<lookups>[1-9]\d{0,3})", re.ASCII)
#: Forwarding modes whose names differ from the functions'.
_MODES = {"tupleswap": "5tswap"}
_BUFFERS = 4096
#: Memory for the lookups of ``noisyN``, in MiB.
_NOISY_MIB = 64
_UP = "UP"


class TestpmdFunction(DpdkFunction):
    """A testpmd, whose telemetry has the counters."""

    __test__ = False  # no class of tests
    name = "testpmd"
    help = "io, macswap, tupleswap (MAC, IP and UDP ports), noisyN (N random reads and writes a frame, to 9999)"
    hugepages_mib = 160  # its buffers and the memory for noisy lookups
    any_frame = True
    main_apart = True
    telemetry = True
    config_keys: ClassVar[Mapping[str, Kind]] = {"arguments": "texts"}

    def __init__(self) -> None:
        super().__init__()
        self._runtime = Path()

    @classmethod
    def program(cls, session: HostSession) -> Path:
        """Returns Debian's program. Raises Unsupported with the remedy."""
        remedy = "run `icbench get dpdk`, or install Debian's package dpdk-dev"
        return dpdk_process.find_binary(session, cls.name, None, ["dpdk-testpmd"], remedy)

    @classmethod
    def has(cls, function: str) -> bool:
        return _PART.fullmatch(function) is not None

    @classmethod
    def changes_addresses(cls, function: str, hops: int) -> bool:  # noqa: ARG003 - as ``Function``
        return function in ("macswap", "tupleswap")

    @classmethod
    def proof(cls, function: str, ends: Ends) -> Sequence[Sequence[Probe]]:
        """Returns frames in both directions, which pass unchanged or with their addresses swapped."""
        change = {"macswap": swap_macs, "tupleswap": swap_ends}.get(function, bytes)
        words = {"macswap": "with its MAC addresses swapped", "tupleswap": "with its addresses and ports swapped"}
        return pass_both_ways(ends, change, words.get(function, "unchanged"))

    def start(self, session: HostSession, spec: FunctionSpec) -> None:
        """Starts it in the node and waits until both ports are up. Raises ProvisionError with the log's tail."""
        check_ports(spec, self.name)
        if spec.function == "tupleswap" and flows.differ_by_port(spec.flows):
            raise Unsupported(
                "tupleswap sends flows that differ by port to as many ports, and a receiver listens on one: choose"
                " flows that differ by address"
            )
        self._runtime = spec.directory
        options = [*_options(spec.function), *spec.config.get("arguments", ())]
        # It ends at the end of its input, so it does not outlive a killed harness.
        daemon = self.start_process(session, spec, options)
        daemon.wait_until(self._ready, failure="does not see its ports up", timeout_s=2 * dpdk_process.START_S)
        self.record_facts(session, {"arguments": options})

    def _ready(self) -> bool:
        path = telemetry_socket(self._runtime)
        if path is None:
            return False
        try:
            links = query(path, *(f"/ethdev/link_status,{port}" for port in (0, 1)))
        except ProvisionError:  # the socket exists before the process listens
            return False
        return all(link is not None and link.get("status") == _UP for link in links)

    def counters(self) -> FunctionCounters:
        """Returns the ports' counters; nothing is dropped on purpose."""
        spec, _ = self.live()
        inner, outer = port_statistics(self._runtime, 2)
        taken, back = inner["ipackets"], outer["ipackets"]
        return FunctionCounters(
            spec.pair, taken=taken, given=outer["opackets"], taken_back=back, acl_drops=0, hop=spec.hop
        )


def _options(function: str) -> list[str]:
    """Returns testpmd's own options for a function. Pure."""
    match = _PART.fullmatch(function)
    lookups = match["lookups"] if match else None
    mode = _MODES.get(function, function) if lookups is None else "noisy"
    options = [f"--forward-mode={mode}", "--port-topology=paired", "--nb-cores=1", f"--total-num-mbufs={_BUFFERS}"]
    if lookups is not None:
        options += [f"--noisy-lkup-memory={_NOISY_MIB}", f"--noisy-lkup-num-reads-writes={lookups}"]
    return options
