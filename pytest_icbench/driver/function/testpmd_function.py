# SPDX-License-Identifier: BSD-3-Clause
"""Functions of DPDK's testpmd, by its forwarding modes: ``io``, ``macswap``, ``tupleswap`` and ``noisyN``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from pytest_icbench.driver.function.dpdk_function import DpdkFunction, check_ports, port_statistics
from pytest_icbench.driver.function.proof import frame, swapped, turned
from pytest_icbench.driver.function.protocol import Ends, FunctionSpec, Probe
from pytest_icbench.driver.switch.dpdk import dpdk_process
from pytest_icbench.driver.switch.dpdk.dpdk_process import query, telemetry_socket
from pytest_icbench.errors import ProvisionError, Unsupported
from pytest_icbench.host.session import HostSession
from pytest_icbench.model import flows
from pytest_icbench.model.function_facts import FunctionCounters
from pytest_icbench.model.switch_traits import Kind

_PART = re.compile(r"io|macswap|tupleswap|noisy(?P<lookups>[1-9]\d{0,3})", re.ASCII)
#: Its names for modes, where they are other ones.
_MODES = {"tupleswap": "5tswap"}
_BUFFERS = 4096
#: Memory that it looks up if noisy, in MiB.
_NOISY_MIB = 64
_FRAMES, _FIRST_PORT = 20, 1024
_UP = "UP"


class TestpmdFunction(DpdkFunction):
    """A testpmd, whose telemetry has the counters."""

    __test__ = False  # no class of tests
    name = "testpmd"
    help = "io, macswap, tupleswap (MAC, IP and UDP ports), noisyN (N random reads and writes a frame, to 9999)"
    hugepages_mib = 160  # its buffers and, if noisy, the memory that it looks up
    any_frame = True
    main_apart = True
    telemetry = True
    config_keys: ClassVar[Mapping[str, Kind]] = {"arguments": "texts"}

    def __init__(self) -> None:
        super().__init__()
        self._runtime = Path()

    @classmethod
    def program(cls, session: HostSession) -> Path:
        """Returns Debian's. Raises Unsupported with the remedy."""
        remedy = "install it (Debian's package dpdk)"
        return dpdk_process.find_binary(session, cls.name, None, ["dpdk-testpmd"], remedy)

    @classmethod
    def has(cls, function: str) -> bool:
        return _PART.fullmatch(function) is not None

    @classmethod
    def readdresses(cls, function: str, hops: int) -> bool:  # noqa: ARG003 - as ``Function``
        return function in ("macswap", "tupleswap")

    @classmethod
    def proof(cls, function: str, ends: Ends) -> Sequence[Sequence[Probe]]:
        """Returns frames in both directions, which pass as they are or turned round."""
        change = {"macswap": swapped, "tupleswap": turned}.get(function, bytes)
        words = {"macswap": "with its MAC addresses swapped", "tupleswap": "with its addresses and ports swapped"}

        def probes(forth: bool) -> list[Probe]:
            source, target = (ends.leader, ends.follower) if forth else (ends.follower, ends.leader)
            frames = [frame(source, target, _FIRST_PORT + number) for number in range(_FRAMES)]
            says = f"has to pass {words.get(function, 'unchanged')}"
            return [Probe(forth, data, change(data), says) for data in frames]

        return probes(True), probes(False)

    def start(self, session: HostSession, spec: FunctionSpec) -> None:
        """Starts it in the node and waits until both ports are up. Raises ProvisionError with the log's tail."""
        check_ports(spec, self.name)
        if spec.function == "tupleswap" and flows.differ_by_port(spec.flows):
            raise Unsupported(
                "tupleswap leads flows that differ by port to as many ports, of which a receiver hears one: let their"
                " addresses differ"
            )
        spec.directory.mkdir()
        self._runtime = spec.directory
        options = [*_options(spec.function), *spec.config.get("arguments", ())]
        # It ends at the end of its input, so it does not outlive a killed harness.
        daemon = self.start_process(session, spec, options)
        daemon.wait_until(self._ready, failure="does not see its ports up", timeout_s=2 * dpdk_process.START_S)
        self.started(session, {"arguments": options})

    def _ready(self) -> bool:
        path = telemetry_socket(self._runtime)
        if path is None:
            return False
        try:
            links = query(path, *(f"/ethdev/link_status,{port}" for port in (0, 1)))
        except ProvisionError:  # the socket is there before it listens
            return False
        return all(link is not None and link.get("status") == _UP for link in links)

    def counters(self) -> FunctionCounters:
        """Returns what its ports counted; nothing is denied."""
        spec, _ = self.live()
        inner, outer = port_statistics(self._runtime, 2)
        taken, back = inner["ipackets"], outer["ipackets"]
        return FunctionCounters(
            spec.pair, taken=taken, given=outer["opackets"], taken_back=back, denied=0, hop=spec.hop
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
