# SPDX-License-Identifier: BSD-3-Clause
"""``forward``: the workload's own DPDK forwarder, which changes frames exactly as its mode says; ``forward-raw``.

It is a reference for checks of the tool and a network function for service chains, not a switch to compare.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_icbench.driver.switch.common import kernel, userspace_ports
from pytest_icbench.driver.switch.common.daemon import Daemon, DaemonSwitch
from pytest_icbench.driver.switch.common.userspace_ports import (
    MEMIF,
    VHOST_USER,
    VHOST_USER_PACKED,
    make_endpoint,
    serving_device,
)
from pytest_icbench.driver.switch.dpdk import dpdk_process
from pytest_icbench.driver.switch.protocol import Attachment, Busy, Needs, PortCounters, SwitchFacts, SwitchSpec
from pytest_icbench.driver.workload.executable import REBUILD, workload_path
from pytest_icbench.driver.workload.workload_version import workload_version
from pytest_icbench.errors import ProvisionError, Unsupported, WorkloadError
from pytest_icbench.host.answers import Unanswered, read_answer
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.net import links
from pytest_icbench.host.process import ProcessPlace
from pytest_icbench.model.api_techniques import NETDEV_APIS, SOCKET_APIS
from pytest_icbench.model.endpoint import Endpoint
from pytest_icbench.model.path import FramePath
from pytest_icbench.model.traffic import MAX_FRAME_BYTES, WAITS, carries_jumbo

#: Seconds within which it has to answer. It reads requests after each round of polls.
ANSWER_S = 5.0
_MICROSECONDS = {"us": 1, "ms": 1000}
_PART = re.compile(r"(?P<word>delay|drop|dup|reorder|cost)(?P<number>[1-9]\d{0,8})(?P<unit>us|ms)?")
_OPTIONS = {"drop": "--drop", "dup": "--duplicate", "reorder": "--reorder", "cost": "--cost"}
_LONGEST_DELAY_US = 10_000_000
#: Parts that restrict drop, dup and reorder to one direction, and the port at which its frames arrive.
_ONLY: dict[str, str] = {"ab": "1", "ba": "2"}
#: Parts that are a whole word: what at most one of them may say, and its options.
_WORDS: dict[str, tuple[str, list[str] | None]] = {
    "swap": ("swap", ["--swap"]),
    **{part: ("only", ["--only", port]) for part, port in _ONLY.items()},
    **{part: ("wait", ["--wait", part]) for part in WAITS},
}

#: The parts of a mode, for messages.
MODE_HELP = (
    "parts joined by +, each once: delayNus or delayNms (up to 10000ms), dropN, dupN, reorderN (N from 2), costN, swap,"
    " ab or ba (drop, dup and reorder in this direction alone), interrupt or adaptive (it sleeps where nothing arrives)"
)


def mode_options(mode: str | None) -> list[str] | None:
    """Returns the forwarder's options for a mode: ``delay10us+drop100`` is ``--delay 10 --drop 100``.

    ``delayNus`` (or ``ms``) delays each frame. ``dropN`` drops each N-th frame of a direction, ``dupN`` sends it twice,
    ``reorderN`` sends it after its successor. ``costN`` costs N TSC cycles per frame, ``swap`` swaps MAC addresses.
    ``ab`` and ``ba`` restrict drop, dup and reorder to that direction. ``interrupt`` and ``adaptive`` are how it waits.
    Returns None if it is not a mode: a part is unknown or repeated, a number is out of range, or a direction has no
    part to which it applies.
    """
    options_by_part: dict[str, list[str]] = {}
    for part in mode.split("+") if mode is not None else ():
        match = _PART.fullmatch(part)
        word, option = _WORDS.get(part, (part, None))
        if match is not None:
            word, option = match["word"], _option(match)
        if option is None or word in options_by_part:
            return None
        options_by_part[word] = option
    if "only" in options_by_part and not {"drop", "dup", "reorder"} & {*options_by_part}:
        return None
    return [text for option in options_by_part.values() for text in option]


def _option(match: re.Match[str]) -> list[str] | None:
    word, number, unit = match["word"], int(match["number"]), match["unit"]
    if (unit is not None) != (word == "delay"):
        return None
    if word == "delay":
        delay_us = number * _MICROSECONDS[unit]
        return ["--delay", str(delay_us)] if delay_us <= _LONGEST_DELAY_US else None
    return None if word == "reorder" and number == 1 else [_OPTIONS[word], str(number)]


@dataclass(frozen=True, slots=True)
class ForwarderPort:
    """The counters of a port since the start, see docs/reference/workload.md.

    ``rx + duplicated = dropped + overflow + kept`` of this port ``+ tx + refused`` of its peer.
    """

    port: int
    rx: int
    missed: int
    control: int | None
    dropped: int
    duplicated: int
    reordered: int
    overflow: int
    kept: int
    tx: int
    refused: int
    tx_control: int | None = None


@dataclass(frozen=True, slots=True)
class ForwarderCounters:
    """The forwarder's counters since its start. Cycles are TSC cycles of polls with and without frames."""

    monotonic_ns: int
    busy_cycles: int
    idle_cycles: int
    polls: int
    empty_polls: int
    yields: int
    delay_late_max_ns: int
    ports: tuple[ForwarderPort, ...]


class Forwarder:
    """A running forwarder, started ``--supervised`` with pipes. It ends when this process ends."""

    def __init__(self, daemon: Daemon) -> None:
        self.daemon = daemon
        self._rest = b""

    def await_ready(self, timeout_s: float) -> Mapping[str, Any]:
        """Waits until its ports are set up; returns its ``hello``. Raises ProvisionError with the log's tail."""
        hello = self._line("hello", timeout_s)
        self._line("ready", timeout_s)
        userspace_ports.wake(self.daemon.process.pid)
        return hello

    def counters(self) -> ForwarderCounters:
        """Requests its counters. Raises ProvisionError if it has ended or does not answer in ``ANSWER_S`` seconds."""
        self.daemon.check()
        assert self.daemon.process.stdin is not None
        try:
            self.daemon.process.stdin.write(b"counters\n")
        except OSError:
            self._line("counters", 0.5)  # raises, because it has just ended
        line = self._line("counters", ANSWER_S)
        values = {name: line[name] for name in ForwarderCounters.__slots__ if name != "ports"}
        ports = tuple(ForwarderPort(**port) for port in line["ports"])
        return ForwarderCounters(**values, ports=ports)

    def port_counters(self, indexes: Sequence[int]) -> list[PortCounters]:
        """Returns its counters as those of a switch's ports, by index of the attachments. Raises as ``counters``."""
        return [
            PortCounters(
                index=index,
                rx_packets=port.rx,
                tx_packets=port.tx,
                rx_dropped=port.missed + port.dropped + port.overflow,
                tx_dropped=port.refused,
            )
            for index, port in zip(indexes, self.counters().ports, strict=True)
        ]

    def busy(self) -> Busy:
        """Returns its cycles so far. Raises as ``counters``."""
        counters = self.counters()
        return Busy(busy_cycles=counters.busy_cycles, idle_cycles=counters.idle_cycles)

    def _line(self, kind: str, timeout_s: float) -> dict[str, Any]:
        """Returns its next line of a type and skips others. Raises ProvisionError if there is none."""
        deadline, pipe = time.monotonic() + timeout_s, self.daemon.process.stdout
        assert pipe is not None
        late = False
        while not late:
            late = time.monotonic() >= deadline
            try:
                text = read_answer(pipe, lambda came: b"\n" in came, deadline, self._rest)
            except OSError as error:  # too late, or too long
                self._rest = error.came if isinstance(error, Unanswered) else b""
                break
            head, newline, self._rest = text.partition(b"\n")
            if not newline:
                # Its output ends shortly before the process.
                self.daemon.wait_until(lambda: False, failure="closed its output and did not end", timeout_s=1.0)
            line = json.loads(head)
            if line["type"] == kind:
                return dict(line)
        self.daemon.check()
        raise ProvisionError(self.daemon.late(f"did not say {kind}", timeout_s))


#: Huge pages in MiB: without ports, and for the buffers of a pair in rings and delay lines.
_BASE_MIB = 32
_PAIR_MIB = 112
#: Frames in the delay line of a direction: 1.6 ms at 10 Mpps, fewer with jumbo frames.
_DELAY_QUEUE = 16384
_JUMBO_DELAY_QUEUE = 4096


class ForwarderSwitch(DaemonSwitch):
    """The common part of the forwarder's drivers."""

    scalable = False
    learns = False
    max_pairs = 16  # the forwarder has 32 ports
    by_name_only = True
    segments = True
    mode_help = MODE_HELP

    def __init__(self) -> None:
        self.forwarder: Forwarder | None = None
        self._indexes: list[int] = []

    @classmethod
    def has_mode(cls, mode: str) -> bool:
        """Whether these are parts joined by ``+``, as ``mode_options`` has them."""
        return mode_options(mode) is not None

    def options(self, spec: SwitchSpec) -> list[str]:
        """Returns the options for its mode and its delay line. Raises ProvisionError for an unknown mode."""
        options = mode_options(spec.mode)
        if options is None:
            raise ProvisionError(f"{self.name} has no mode '{spec.mode}'; it takes {MODE_HELP}")
        queue = _JUMBO_DELAY_QUEUE if carries_jumbo(spec.mtu) else _DELAY_QUEUE
        return options + (["--delay-queue", str(queue)] if "--delay" in options else [])

    def run(self, daemon: Daemon, attachments: Sequence[Attachment]) -> None:
        """Waits until it forwards. Raises ProvisionError with the log's tail."""
        self.daemon = daemon
        self.forwarder = Forwarder(daemon)
        self._indexes = [attachment.index for attachment in attachments]
        hello = self.forwarder.await_ready(dpdk_process.START_S)
        version = ", ".join(str(hello[name]) for name in ("version", "dpdk") if hello[name])
        self._facts = SwitchFacts(version=version, config={"argv": list(daemon.process.argv[1:])})

    def _live(self) -> Forwarder:
        self.live()
        assert self.forwarder is not None  # made with the daemon
        return self.forwarder

    def counters(self) -> list[PortCounters] | None:
        """Returns its counters; intended drops are in ``rx_dropped``."""
        return self._live().port_counters(self._indexes)

    def busy(self) -> Busy | None:
        """Returns the cycles of polls with and without frames."""
        return self._live().busy()


class ForwardSwitch(ForwarderSwitch):
    """One process on one core, for all pairs in both directions."""

    name = "forward"
    ports = (VHOST_USER, VHOST_USER_PACKED, MEMIF)

    def probe(self, session: HostSession, spec_binary: Path | None) -> SwitchFacts:
        """Returns the versions of the workload and its DPDK. Raises Unsupported if one is missing."""
        try:
            version = workload_version()
        except WorkloadError as error:
            raise Unsupported(str(error)) from None
        if version.dpdk is None:
            raise Unsupported(
                f"forward needs DPDK, but the workload was built without it: apt install libdpdk-dev, and {REBUILD}"
            )
        program = str(spec_binary or workload_path())
        return SwitchFacts(version=f"{version.workload}, DPDK {version.dpdk}", program=program)

    def needs(self, pairs: int, cores: int, *, jumbo: bool = False) -> Needs:
        """Returns the resources, which are the same for every mode."""
        return Needs(hugepages_mib=_BASE_MIB + pairs * _PAIR_MIB, pollers=1)

    def start(self, session: HostSession, spec: SwitchSpec, attachments: Sequence[Attachment]) -> list[Endpoint]:
        """Starts it; the order of its devices makes the pairs. Raises ProvisionError with the log's tail."""
        argv = self._argv(spec, attachments)
        daemon = dpdk_process.start_daemon(session, spec, self.name, argv, dpdk_process.DaemonOptions(pipes=True))
        self.run(daemon, attachments)
        return [make_endpoint(spec.port, attachment) for attachment in attachments]

    def _argv(self, spec: SwitchSpec, attachments: Sequence[Attachment]) -> list[str]:
        jumbo = carries_jumbo(spec.mtu)
        options = self.options(spec)
        if jumbo:
            options += ["--packet-size", str(MAX_FRAME_BYTES)]
        # A frame is in one memif buffer, whose length the endpoint chooses and this side checks.
        buffer_size = ",bsize=16384" if jumbo and spec.port == MEMIF else ""
        return [
            str(spec.binary or workload_path()),
            "dpdk-forward",
            "--supervised",
            *options,
            "--",
            *dpdk_process.eal_arguments(
                main_cpus=spec.worker_cpus[:1],
                worker_cpus=(),
                hugepages_mib=self.needs(FramePath.over(attachments).pairs, 1).hugepages_mib,
            ),
            "--no-telemetry",
            *(f"--vdev={serving_device(spec.port, attachment)}{buffer_size}" for attachment in attachments),
        ]


class ForwardRawSwitch(ForwarderSwitch):
    """A forwarder in its own network namespace, with raw sockets on the nodes' veth links. It polls on one core."""

    name = "forward-raw"
    family = "kernel"
    ports = (kernel.VETH,)
    # A raw socket would receive a train of datagrams in one piece, which no link carries.
    apis = (*(api for api in SOCKET_APIS if api != "udp-gso"), *NETDEV_APIS)
    default_apis = ("udp-mmsg",)

    def __init__(self) -> None:
        super().__init__()
        self._session: HostSession | None = None
        self._netns: str | None = None
        self._attached: list[Attachment] = []

    def probe(self, session: HostSession, spec_binary: Path | None) -> SwitchFacts:
        """Returns the workload's version. Raises Unsupported without it, or without veth links."""
        kernel.probe_links("veth")
        try:
            return SwitchFacts(version=workload_version().workload, program=str(spec_binary or workload_path()))
        except WorkloadError as error:
            raise Unsupported(str(error)) from None

    def probe_api(self, session: HostSession, api: str) -> None:
        kernel.probe_netdev_api(api)

    def needs(self, pairs: int, cores: int, *, jumbo: bool = False) -> Needs:
        return Needs(pollers=1)

    def start(self, session: HostSession, spec: SwitchSpec, attachments: Sequence[Attachment]) -> list[Endpoint]:
        """Makes a veth port ``pN`` for each attachment and starts the forwarder on them. Raises ProvisionError."""
        options = self.options(spec)
        self._session = session
        self._netns = netns = links.create_netns(session, f"{spec.name}-fw")
        ports = [f"p{attachment.index}" for attachment in attachments]
        for attachment, port in zip(attachments, ports, strict=True):
            self._attached.append(attachment)
            links.create_pair(session, kernel.node_end(attachment), links.End(port, netns), mtu=spec.mtu)
        interfaces = [word for port in ports for word in ("-R", port)]
        process = session.spawner.start(
            [spec.binary or workload_path(), "forward", "--supervised", "--mmsg", *options, *interfaces],
            log=spec.work_dir / f"{self.name}.log",
            cpus=spec.worker_cpus[:1],
            place=ProcessPlace(netns, spec.work_dir),
            pipes=True,
        )
        self.run(Daemon(self.name, process), attachments)
        return [
            kernel.veth_endpoint(attachment, port, spec.mtu)
            for attachment, port in zip(attachments, ports, strict=True)
        ]

    def stop(self) -> None:
        """Ends the forwarder, then removes links and namespace."""
        super().stop()
        kernel.remove_ends(self._attached)
        self._attached.clear()
        if self._session is not None and self._netns is not None:
            links.delete_netns(self._session, self._netns)
            self._netns = None
