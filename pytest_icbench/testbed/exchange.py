# SPDX-License-Identifier: BSD-3-Clause
"""The exchange of any frames between a rig's endpoints, by a ``replay --step --capture`` at each.

It is for tests of switches: a test gives the frames that go in at each endpoint, and gets those that come out at each.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from pytest_icbench.driver.workload.command import exit_meaning
from pytest_icbench.driver.workload.eal import eal_arguments, endpoint_ring
from pytest_icbench.driver.workload.executable import workload_path
from pytest_icbench.errors import ProvisionError, WorkloadError
from pytest_icbench.host import node_files
from pytest_icbench.measure.launch.commands import Command, commands, launch_plan
from pytest_icbench.measure.launch.culprit import look_at_the_switch
from pytest_icbench.measure.measured_rig import MeasuredRig
from pytest_icbench.model.api_techniques import NETDEV_APIS
from pytest_icbench.model.case import Case
from pytest_icbench.model.codec import DamagedData, from_json
from pytest_icbench.model.endpoint import Address, Endpoint, Tap, Veth
from pytest_icbench.model.placement import Placement
from pytest_icbench.model.rig import LaunchPlan, Polled, node_directory
from pytest_icbench.model.settings import Settings
from pytest_icbench.model.traffic import Traffic

_MAGIC = 0xA1B23C4D
_HEADER = struct.Struct("<IHHiIII")
_RECORD = struct.Struct("<IIII")
_ETHERNET = 1
_SNAP_BYTES = 65535


def pcap_bytes(frames: Iterable[bytes]) -> bytes:
    """Returns a file of these Ethernet frames without FCS, all at time 0."""
    parts = [_HEADER.pack(_MAGIC, 2, 4, 0, 0, _SNAP_BYTES, _ETHERNET)]
    for frame in frames:
        parts += [_RECORD.pack(0, 0, len(frame), len(frame)), frame]
    return b"".join(parts)


class PcapFollower:
    """Parses a growing file part by part.

    ``feed`` returns the frames that are complete. The rest is kept for the next call.
    """

    def __init__(self) -> None:
        self._rest = b""
        self._begun = False

    def feed(self, data: bytes) -> list[bytes]:
        """Returns the frames that ``data`` completes. Raises DamagedData for another file, and for an odd frame."""
        data = self._rest + data
        offset = 0
        frames = []
        if not self._begun and len(data) >= _HEADER.size:
            magic, _, _, _, _, _, link = _HEADER.unpack_from(data)
            if (magic, link) != (_MAGIC, _ETHERNET):
                raise DamagedData(f"a capture begins with {magic:#x} and link type {link}, not as a capture should")
            self._begun, offset = True, _HEADER.size
        while self._begun and len(data) - offset >= _RECORD.size:
            _, _, captured, length = _RECORD.unpack_from(data, offset)
            if captured != length:
                raise DamagedData(f"a frame of {length} bytes was captured in part: only {captured} are there")
            if captured > _SNAP_BYTES:
                raise DamagedData(f"a capture has a frame of {captured} bytes, and none is longer than {_SNAP_BYTES}")
            if len(data) - offset - _RECORD.size < captured:
                break
            frames.append(data[offset + _RECORD.size : offset + _RECORD.size + captured])
            offset += _RECORD.size + captured
        self._rest = data[offset:]
        return frames


#: Rate at which frames go in: slow enough that none is dropped if a poller loses its CPU for 100 ms.
RATE_PPS = 2000
#: How long processes may take until they are ready, in seconds: a vhost library looks for its first connection once a
#: second.
READY_S = 20.0
#: How long frames may be under way, in seconds.
PATIENCE_S = 1.5
#: After so long without a frame no more are expected, in seconds.
QUIET_S = 0.06
#: More frames than this at an endpoint are without end: there is a loop, or a process of its node writes them.
MOST_FRAMES = 1_000_000
_POLL_S = 0.01
_HELLO_S = 10.0


class ExchangeTarget(Protocol):
    """The part of a rig that an exchange uses."""

    @property
    def endpoints(self) -> Sequence[Endpoint]: ...
    @property
    def placement(self) -> Placement: ...
    @property
    def files(self) -> Path: ...
    def launch(self, plan: LaunchPlan) -> str: ...
    def tell(self, launch_id: str, text: str, index: int | None = None) -> None: ...
    def poll(self, launch_id: str, timeout_s: float) -> Polled: ...
    def log_tail(self, launch_id: str, index: int) -> str: ...
    def end(self, launch_id: str) -> None: ...
    def check(self) -> None: ...
    def set_ageing(self, seconds: float) -> None: ...


@dataclass(frozen=True, slots=True)
class ReplayCommand:
    """A process of an exchange, or with ``captures_only`` one that only listens.

    Attributes:
        traffic: the traffic with the longest frames.
        api: technique of the case; a kernel interface gets a raw socket, unless it is one of ``NETDEV_APIS``.
        sends: file of the frames that it sends, read again for each step.
        captures: file of the frames that arrived.
    """

    endpoint: Endpoint
    peer: Address
    api: str | None
    cpu: int
    traffic: Traffic
    ring: int
    yield_every: int
    sends: Path
    captures: Path
    captures_only: bool = False

    @property
    def _dpdk_api(self) -> str | None:
        if isinstance(self.endpoint, Tap):
            return None
        if not isinstance(self.endpoint, Veth):
            return "dpdk"
        return self.api if self.api in NETDEV_APIS else None

    def argv(self, executable: Path) -> list[str]:
        """Returns the whole command line."""
        me, api = self.endpoint.address, self._dpdk_api
        application = "capture" if self.captures_only else "replay"
        file = self.captures if self.captures_only else self.sends
        argv = [str(executable), application if api is None else f"dpdk-{application}", str(file)]
        argv += [me.ip, me.mac, self.peer.ip, self.peer.mac, "--supervised", *self.traffic.options]
        argv += ["--ring", str(self.ring if api is None else endpoint_ring(api, self.ring))]
        argv += ["--yield", str(self.yield_every)] if self.yield_every else []
        if not self.captures_only:
            argv += ["--step", "--capture", str(self.captures), "-r", str(RATE_PPS), "-b", "4"]
        if api is None:
            if isinstance(self.endpoint, Tap):
                return [*argv, "--io", "tap", "-R", self.endpoint.device]
            assert isinstance(self.endpoint, Veth)
            return [*argv, "-R", self.endpoint.interface]
        ring = endpoint_ring(api, self.ring)
        return [*argv, "--", *eal_arguments(self.endpoint, api, cpu=self.cpu, ring=ring, jumbo=self.traffic.jumbo)]


def replay_commands(
    rig: ExchangeTarget, case: Case, *, ring: int = 256, tag: str = "x", indexes: Sequence[int] | None = None
) -> dict[int, ReplayCommand]:
    """Returns a command for each endpoint of a rig, by index.

    Args:
        ring: descriptors of a ring.
        tag: beginning of the files' names.
        indexes: endpoints that only listen; None for all, which send, too.
    """
    placement = rig.placement
    return {
        index: ReplayCommand(
            endpoint=endpoint,
            peer=rig.endpoints[case.path.peer(index)].address,
            api=case.api,
            cpu=placement.endpoints[index],
            traffic=Traffic(case.traffic.port_frame_bytes),
            ring=ring,
            yield_every=min(placement.yield_every, 1),
            sends=node_directory(rig.files, index) / f"{tag}{index}.in",
            captures=node_directory(rig.files, index) / f"{tag}{index}.out",
            captures_only=indexes is not None,
        )
        for index, endpoint in enumerate(rig.endpoints)
        if indexes is None or index in indexes
    }


class Captured:
    """The frames that a process captures, read from the growing file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._follower = PcapFollower()
        node_files.remove(path.parent, path.name)

    def fresh(self) -> list[bytes]:
        """Returns the frames since the last call.

        Raises ProvisionError if a process of the node replaced the file, WorkloadError if it wrote something else.
        """
        data = node_files.read_file(self._path.parent, self._path.name, self._offset) or b""
        self._offset += len(data)
        try:
            return self._follower.feed(data)
        except DamagedData as error:
            raise WorkloadError(f"{self._path}: {error}") from None


def _parse(index: int, text: str) -> Mapping[str, Any]:
    """Returns a line of a process, which has a type. Raises WorkloadError for another one."""
    with suppress(DamagedData):
        line = from_json(text, "")
        if isinstance(line, dict) and isinstance(line.get("type"), str):
            numbers = (line.get(key, 0) for key in ("step", "received"))
            if all(type(number) is int and number >= 0 for number in numbers):
                return line
    raise WorkloadError(f"the process of endpoint {index} wrote {text[:80]!r}, and no line of the workload")


class Exchange:
    """The processes at all endpoints of a rig, started by the constructor, for one exchange after the other.

    Attributes:
        addresses: the endpoints' addresses, by index.
        broken: whether a process or the switch has died, after which it cannot be used.

    Raises WorkloadError with the log's tail if a process does not get ready.
    """

    def __init__(self, rig: ExchangeTarget, case: Case, *, ring: int = 256) -> None:
        self._rig = rig
        self.addresses = [endpoint.address for endpoint in rig.endpoints]
        self._steps: dict[int, int] = {}
        commands = replay_commands(rig, case, ring=ring)
        self._sends = {index: command.sends for index, command in commands.items()}
        self._captured = {index: Captured(command.captures) for index, command in commands.items()}
        self._ready: set[int] = set()
        self.broken = False
        self._launch = rig.launch(launch_plan(commands, workload_path(), _HELLO_S))
        try:
            self._hear_until(lambda: len(self._ready) == len(commands), READY_S, "said that it is ready")
        except BaseException:
            self.end()
            raise

    def _hear_until(self, done: Callable[[], bool], timeout_s: float, goal: str) -> None:
        deadline = time.monotonic() + timeout_s
        while not done():
            if time.monotonic() > deadline:
                self.broken = True
                self._rig.check()
                silent = sorted(set(self._sends) - self._ready) or sorted(self._sends)
                tails = "\n".join(self._rig.log_tail(self._launch, index) for index in silent)
                raise WorkloadError(f"endpoint {silent[0]} has not {goal} within {timeout_s:g} s; log:\n{tails}")
            self._hear(_POLL_S)

    def _hear(self, timeout_s: float) -> None:
        self.broken = True  # unless this ends well
        self._take_in(timeout_s)
        self.broken = False

    def _take_in(self, timeout_s: float) -> None:
        polled = self._rig.poll(self._launch, timeout_s)
        for index, text in polled.lines:
            line = _parse(index, text)
            if line["type"] == "ready":
                self._ready.add(index)
            elif line["type"] == "sent":
                self._steps[index] = line.get("step", 0)
        for index, code in polled.exited.items():
            look_at_the_switch(self._rig)
            tail = self._rig.log_tail(self._launch, index)
            raise WorkloadError(f"replay at endpoint {index} {exit_meaning(code)}; the end of its log:\n{tail}")

    def exchange(
        self, sent: Mapping[int, Sequence[bytes]], expected: Mapping[int, int] | None = None
    ) -> dict[int, list[bytes]]:
        """Sends frames into endpoints and waits for what arrives anywhere.

        Args:
            sent: Ethernet frames without FCS by the index of the endpoint that sends them, at ``RATE_PPS`` each.
            expected: how many frames to wait for at an endpoint, ``PATIENCE_S`` at most; then it has to become quiet.

        Returns the frames that arrived at each endpoint, by index, in order of arrival.

        Raises WorkloadError or ProvisionError if a process or the switch has died.
        """
        arrived = {index: captured.fresh() for index, captured in self._captured.items()}
        for stragglers in arrived.values():
            stragglers.clear()
        target = dict(self._steps)
        for index, frames in sent.items():
            path = self._sends[index]
            node_files.write_file(path.parent, path.name, pcap_bytes(frames))
            target[index] = self._steps.get(index, 0) + 1
            self._rig.tell(self._launch, "go\n", index)
        slowest = max((len(frames) for frames in sent.values()), default=0)
        self._hear_until(lambda: self._steps == target, READY_S + slowest / RATE_PPS, "sent its frames")
        counts = expected or {}
        now = time.monotonic()
        deadline, quiet_since = now + PATIENCE_S, now
        while True:
            self._hear(_POLL_S)
            now = time.monotonic()
            for index, captured in self._captured.items():
                fresh = captured.fresh()
                if fresh:
                    arrived[index] += fresh
                    quiet_since = now
            enough = all(len(arrived[index]) >= count for index, count in counts.items())
            if (enough or now > deadline) and now - quiet_since >= QUIET_S:
                return arrived
            if now > deadline + PATIENCE_S or max(map(len, arrived.values())) > MOST_FRAMES:
                return arrived

    def set_ageing(self, seconds: float) -> None:
        """Sets the switch's ageing time: see ``Switch.set_ageing``."""
        self._rig.set_ageing(seconds)

    def end(self) -> None:
        """Ends the processes. Idempotent."""
        with suppress(ProvisionError):  # the rig is closed, and they ended with it
            # All at once: over memif without a switch, an end fails if the other one ends first.
            self._rig.tell(self._launch, "stop\n")
            self._rig.end(self._launch)


TIMEOUT_S = 30.0
_SETTINGS = Settings(warmup_s=0.1, duration_s=0.5, drain_s=0.3, repeats=1)
#: The window of a control frame, which announces an endpoint before the switch has learned it: the second half-word of
#: the stamp with which the payload begins.
_CONTROL = b"\xff\xff"


@dataclass(frozen=True, slots=True)
class WatchedLaunch:
    """The number of frames at the receiver, and the frames that arrived elsewhere, without control frames."""

    received: int
    leaked: list[bytes]


def watched_launch(rig: MeasuredRig, case: Case) -> WatchedLaunch:
    """Sends over pair 1 as fast as it can. Raises WorkloadError if a process does not get ready, or does not end."""
    path = case.path
    listeners = [index for index in path.endpoints if path.pair(index) != 1]
    listening = replay_commands(rig, case, tag="leak", indexes=listeners)
    launched: dict[int, Command] = {**commands(rig, replace(case, pairs=1), _SETTINGS), **listening}
    captured = [Captured(command.captures) for command in listening.values()]
    watch = _Watch(rig, rig.launch(launch_plan(launched, workload_path(), TIMEOUT_S)), set(launched), path.ends(1))
    try:
        while not watch.over:
            watch.step()
    finally:
        rig.end(watch.launch)
    frames = [frame for capture in captured for frame in capture.fresh()]
    window = slice(case.traffic.headers_bytes + 2, case.traffic.headers_bytes + 4)
    return WatchedLaunch(watch.received, [frame for frame in frames if frame[window] != _CONTROL])


class _Watch:
    """The course of a watched launch: all processes get ready, pair 1 sends, the rest are stopped."""

    def __init__(self, rig: MeasuredRig, launch: str, indexes: set[int], pair: tuple[int, int]) -> None:
        self.launch = launch
        self._rig, self._indexes, self._pair = rig, indexes, pair
        self._ready: set[int] = set()
        self._summaries: dict[int, int] = {}
        self._began = self._stopped = False
        self._sender_over: float | None = None
        self._deadline = time.monotonic() + TIMEOUT_S

    @property
    def over(self) -> bool:
        """Whether every process has written its summary."""
        return self._summaries.keys() >= self._indexes

    @property
    def received(self) -> int:
        """The number of frames at the receiver."""
        return self._summaries[self._pair[1]]

    def step(self) -> None:
        """Reads new lines, and begins or stops the launch when it is time. Raises WorkloadError."""
        polled = self._rig.poll(self.launch, 0.05)
        for index, text in polled.lines:
            line = _parse(index, text)
            if line["type"] == "ready":
                self._ready.add(index)
            elif line["type"] == "summary":
                self._summaries[index] = line.get("received", 0)
        if self._ready >= self._indexes and not self._began:
            self._rig.start(self.launch)
            self._began = True
            self._deadline = time.monotonic() + TIMEOUT_S  # the time before was for the start
        if self._sent and not self._stopped:
            self._rig.tell(self.launch, "stop\n")
            self._stopped = True
        gone = [index for index in polled.exited if index not in self._summaries]
        if gone or time.monotonic() > self._deadline:
            look_at_the_switch(self._rig)
            index = gone[0] if gone else min(self._indexes - self._summaries.keys())
            raise WorkloadError(
                f"endpoint {index} has not finished; the end of its log:\n{self._rig.log_tail(self.launch, index)}"
            )

    @property
    def _sent(self) -> bool:
        """Whether pair 1 has finished.

        On a busy host a receiver that got none of the marks at the flow's end does not notice it: then time decides.
        """
        sender, receiver = self._pair
        if sender not in self._summaries:
            return False
        self._sender_over = self._sender_over or time.monotonic()
        return receiver in self._summaries or time.monotonic() - self._sender_over > 2 * _SETTINGS.drain_s
