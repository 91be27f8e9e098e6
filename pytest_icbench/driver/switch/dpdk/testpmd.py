# SPDX-License-Identifier: BSD-3-Clause
"""``testpmd``: DPDK's test application as a switch, with io forwarding between the ports of a pair."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from pytest_icbench.driver.switch.common.daemon import Daemon, check_cores, divide_ports
from pytest_icbench.driver.switch.common.userspace_ports import MEMIF, serving_device
from pytest_icbench.driver.switch.dpdk import dpdk_process
from pytest_icbench.driver.switch.dpdk.dpdk_process import query, telemetry_socket
from pytest_icbench.driver.switch.protocol import Attachment, Busy, Needs, PortCounters, SwitchSpec
from pytest_icbench.errors import ProvisionError
from pytest_icbench.host.answers import ANSWER_MAX_BYTES
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.model.endpoint import Endpoint
from pytest_icbench.model.switch_traits import Kind
from pytest_icbench.model.traffic import carries_jumbo

#: Huge pages of its pool and ports, in MiB.
_HUGEPAGES_MIB = 256
#: Buffers of its pool. The default is for 32 ports with hardware rings, but these ports hold no buffers.
_BUFFERS = 32768
#: Buffers of its pool if each holds a whole jumbo frame.
_JUMBO_BUFFERS = 16384
_JUMBO_BUFFER_BYTES = 10240
#: Seconds within which its prompt has to answer. It needs a millisecond, more on a busy host.
_ANSWER_S = 5.0
_POLL_S = 0.002
#: Reads of 64 KiB that empty a pipe.
_PIPE_READS = 16
#: Cycles of polls with frames, over all cores, since forwarding began ("total" before DPDK 23.11).
_CYCLES = re.compile(rb"\((?:busy|total) cycles=(\d+) /")
#: Frames that a port did not accept since forwarding began.
_NOT_TAKEN = re.compile(rb"Forward statistics for port (\d+)\b.*\n.*\n +TX-packets: \d+ +TX-dropped: (\d+)")
#: Received frames, of a stream if ports have several queues (idle ones are omitted), else of a port.
_STREAM = re.compile(rb"RX Port= *(\d+)/Queue= *(\d+) .*\n +RX-packets: (\d+)")
_OF_PORT = re.compile(rb"Forward statistics for port (\d+)()\b.*\n +RX-packets: (\d+)")
#: The end of its answer: the last line and the prompt.
_PROMPT = re.compile(rb"\+{70,}\s(?s:.*)testpmd> *$")


class TestPmd(dpdk_process.PortForwarder):
    """A testpmd with ``--forward-mode=io`` and ports paired in order."""

    __test__ = False  # not a class of tests

    name = "testpmd"
    queue_ports = dpdk_process.PortForwarder.ports
    scalable = True
    config_keys: ClassVar[Mapping[str, Kind]] = {"arguments": "texts", "burst": "number"}

    def __init__(self) -> None:
        self._runtime: Path | None = None
        self._indexes: list[int] = []
        self._cpus: Sequence[int] = ()
        self._memif = False
        self._queues = 1
        self._prompts = False

    def binary(self, session: HostSession, given: Path | None) -> Path:
        remedy = "run `icbench get dpdk`, or install Debian's package dpdk-dev"
        return dpdk_process.find_binary(session, self.name, given, ["dpdk-testpmd"], remedy)

    def needs_with_queues(self, pairs: int, cores: int, queues: int, *, jumbo: bool = False) -> Needs:
        check_cores(self.name, cores, pairs, queues, "streams")
        return Needs(hugepages_mib=_HUGEPAGES_MIB, pollers=cores)

    def start(self, session: HostSession, spec: SwitchSpec, attachments: Sequence[Attachment]) -> list[Endpoint]:
        """Starts it and its forwarding. Raises ProvisionError with the log's tail."""
        self._memif = spec.port == MEMIF
        self._indexes = [attachment.index for attachment in attachments]
        self._cpus = spec.worker_cpus
        self._queues = spec.queues
        self._runtime = dpdk_process.runtime_directory(spec)
        # Without it, answers come through a pipe only in blocks of some kilobytes.
        stdbuf = shutil.which("stdbuf")
        self._prompts = stdbuf is not None
        # Its prompt ends at the end of the pipe, so it does not outlive a killed harness.
        argv = self._argv(self.binary(session, spec.binary), spec, attachments)
        wrapper = [stdbuf, "-oL"] if stdbuf else []
        return self.launch(session, spec, attachments, argv, dpdk_process.DaemonOptions(pipes=True, wrapper=wrapper))

    def _argv(self, binary: Path, spec: SwitchSpec, attachments: Sequence[Attachment]) -> list[str]:
        jumbo = carries_jumbo(spec.mtu)
        return [
            str(binary),
            *dpdk_process.eal_arguments(
                main_cpus=spec.service_cpus, worker_cpus=spec.worker_cpus, hugepages_mib=_HUGEPAGES_MIB
            ),
            *dpdk_process.plugin_options(binary),
            *(f"--vdev={serving_device(spec.port, attachment, spec.queues)}" for attachment in attachments),
            "--",
            "--interactive",
            "--auto-start",
            "--forward-mode=io",
            "--port-topology=paired",
            f"--nb-cores={len(spec.worker_cpus)}",
            *([f"--rxq={spec.queues}", f"--txq={spec.queues}"] if spec.queues > 1 else []),
            f"--total-num-mbufs={_JUMBO_BUFFERS if jumbo else _BUFFERS}",
            *([f"--mbuf-size={_JUMBO_BUFFER_BYTES}"] if jumbo else []),
            # Endpoints come and go for hours, which would fill the log.
            "--mask-event=all",
            "--record-core-cycles",
            *([f"--burst={spec.config['burst']}"] if "burst" in spec.config else []),
            *spec.config.get("arguments", ()),
        ]

    def live(self) -> Daemon:
        """Returns the running process after reading its output, so that it never waits for the harness."""
        if self.daemon is not None:
            self._drain(self.daemon)
        return super().live()

    @staticmethod
    def _drain(daemon: Daemon) -> None:
        """Reads its standard output, because a full pipe would stop it."""
        pipe = daemon.process.stdout
        if pipe is not None and not pipe.closed:
            os.set_blocking(pipe.fileno(), False)
            for _ in range(_PIPE_READS):  # it may write without end
                if not pipe.read(65536):
                    break

    def prepare_traffic(self) -> None:
        """Waits for the link of every port. Until then testpmd drops frames. Raises ProvisionError with the log's tail.

        An endpoint is ready once it has sent all its rings, which testpmd may accept later on a busy host.
        """
        daemon, path = self.live(), None if self._runtime is None else telemetry_socket(self._runtime)
        if path is None:
            return
        commands = [f"/ethdev/link_status,{port}" for port in range(len(self._indexes))]

        def up() -> bool:
            return all(link is not None and link.get("status") == "UP" for link in query(path, *commands))

        daemon.wait_until(up, failure="does not see the link of every port", timeout_s=dpdk_process.START_S)

    def counters(self) -> list[PortCounters] | None:
        """Returns the ports' counters from EAL telemetry. Raises ProvisionError if it does not answer."""
        self.live()
        assert self._runtime is not None
        path = telemetry_socket(self._runtime)
        if path is None:
            return None
        ports = range(len(self._indexes))
        stats = query(path, *(f"/ethdev/stats,{port}" for port in ports))
        links = query(path, *(f"/ethdev/link_status,{port}" for port in ports))
        not_taken = {int(port): int(frames) for port, frames in _NOT_TAKEN.findall(self._forwarding() or b"")}
        dropped = [not_taken.get(port) for port in ports]
        return [self._port(*columns) for columns in zip(self._indexes, stats, links, dropped, strict=True)]

    def _port(
        self, index: int, stats: dict[str, int] | None, link: dict[str, str] | None, not_taken: int | None
    ) -> PortCounters:
        """Returns the counters of one port.

        ``not_taken``: frames lost in a full ring. DPDK's ports do not count them, only the forwarding statistics do.
        """
        if stats is None or link is None:
            raise ProvisionError(
                f"testpmd has no counters for the port of endpoint {index}: it may have closed the port"
            )
        if self._memif and link.get("status") != "UP":
            # A memif without a peer shows zeros, and continues its counters with the next peer.
            return PortCounters(index, None, None)
        return PortCounters(
            index=index,
            rx_packets=stats["ipackets"],
            tx_packets=stats["opackets"],
            rx_dropped=stats["imissed"] + stats["ierrors"] + stats["rx_nombuf"],
            tx_dropped=not_taken,
        )

    def busy(self) -> Busy | None:
        """Returns the cycles of polls with frames; None without an answer or for a mode that does not count (noisy)."""
        answer = self._forwarding()
        if answer is None:
            return None
        cycles = _CYCLES.search(answer)  # missing if nothing was forwarded yet
        busy = int(cycles[1]) if cycles else 0
        if cycles and not busy:
            return None
        return Busy(busy_cycles=busy, workers=len(self._cpus), frames=self._frames_by_core(answer))

    def _frames_by_core(self, answer: bytes) -> dict[str, int]:
        """Returns the frames received by each core, by its CPU, from the forwarding statistics."""
        cores, frames = self._cores(), {str(cpu): 0 for cpu in self._cpus}
        for port, queue, count in (_STREAM if self._queues > 1 else _OF_PORT).findall(answer):
            frames[str(cores[int(queue or 0) * len(self._indexes) + int(port)])] += int(count)
        return frames

    def _cores(self) -> list[int]:
        """Returns the CPU of each stream. testpmd assigns blocks of streams, ordered by queue, then by port."""
        return [self._cpus[at] for at in divide_ports(len(self._indexes) * self._queues, len(self._cpus))]

    def _forwarding(self) -> bytes | None:
        """Returns its forwarding statistics; None if it does not answer or did not answer earlier.

        It gets no further request then, because a late answer would be taken for the next one.
        """
        daemon = self.live()
        question, answer = daemon.process.stdin, daemon.process.stdout
        if not self._prompts or question is None or answer is None:
            return None
        question.write(b"show fwd stats all\n")
        question.flush()
        output, deadline = b"", time.monotonic() + _ANSWER_S
        while time.monotonic() < deadline and len(output) < ANSWER_MAX_BYTES:
            output += answer.read(65536) or b""
            if _PROMPT.search(output):
                return output
            time.sleep(_POLL_S)
        self._prompts = False
        return None

    def assignment(self) -> Mapping[int, int] | None:
        """Returns the CPU that polls each port's first queue."""
        return dict(zip(self._indexes, self._cores(), strict=False)) if self._cpus else None
