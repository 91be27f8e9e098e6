# SPDX-License-Identifier: BSD-3-Clause
"""The processes of one launch. They are started in stages, get the moment to begin, are read and ended."""

from __future__ import annotations

import fcntl
import os
import select
import selectors
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from signal import SIGKILL, SIGTERM
from typing import IO

from pytest_icbench.driver.node.protocol import Node
from pytest_icbench.driver.switch.protocol import Switch
from pytest_icbench.driver.workload.executable import workload_path
from pytest_icbench.errors import ProvisionError, WorkloadError
from pytest_icbench.host import node_files
from pytest_icbench.host.journal import process_start_time
from pytest_icbench.host.net.sockets import is_listening, received_counters
from pytest_icbench.host.process import Process, realtime, stopped_sentence, wait_until
from pytest_icbench.model.rig import FILES, LOCAL_WORKLOAD, LaunchPlan, PlannedProcess, Polled, Usage, node_directory

#: How long processes may take to end after a request, in seconds.
END_S = 1.0
_STAGE_POLL_S = 0.002
_EXIT_POLL_S = 0.002
#: How long the init of a node that is being ended may take, in seconds.
_INIT_ENDS_S = 0.5
_HELLO = '"hello"'
#: Capacity of a pipe in bytes: lines of a process for several seconds without a reader.
_PIPE_BYTES = 2**20
_CHUNK = 65536
#: What a process may write: in a line, in a launch, and besides in each second of it. All of it is kept in memory.
_LINE_MAX_BYTES, _LAUNCH_MAX_BYTES, _SECOND_MAX_BYTES = 4 * 2**20, 64 * 2**20, 8 * 2**20


def fill_in_workload(process: PlannedProcess) -> PlannedProcess:
    """Puts this host's workload in the place that a command line keeps for it."""
    if LOCAL_WORKLOAD not in process.argv:
        return process
    program = str(workload_path())
    return replace(process, argv=tuple(program if word == LOCAL_WORKLOAD else word for word in process.argv))


@dataclass(slots=True)
class _Speaker:
    """One process and its output that has not been fetched yet."""

    index: int
    process: Process
    socket: Path | None
    stdout: IO[bytes]
    listens: str | None = None
    partial: bytes = b""
    began: float = field(default_factory=time.monotonic)
    heard: int = 0
    said_hello: bool = False
    silent: bool = False
    exit_reported: bool = False
    lines: list[str] = field(default_factory=list)

    @property
    def log(self) -> str:
        tail = self.process.tail() or "\n".join(self.lines[-5:])
        return f"; the end of its log:\n{tail}" if tail else "; its log is empty"

    @property
    def waits(self) -> bool:
        """Whether its peers start only once it serves."""
        return self.socket is not None or self.listens is not None

    @property
    def serves(self) -> bool:
        """Whether it serves its socket, or listens at its port."""
        if self.listens is not None:
            return is_listening(self.process.pid, self.listens)
        return self.said_hello or (self.socket is not None and self.socket.is_socket())

    def hear(self) -> None:
        """Reads the lines in the pipe, as much as it holds: its writer may never pause.

        A line without an end does not count: its writer was killed. Raises WorkloadError for a writer without end.
        """
        for _ in range(_PIPE_BYTES // _CHUNK):
            try:
                data = self.stdout.read(_CHUNK)
            except OSError:
                data = b""
            if data is None:
                return
            if not data:
                self.silent = True
                return
            *whole, self.partial = (self.partial + data).split(b"\n")
            self.heard += len(data)
            allowed = _LAUNCH_MAX_BYTES + _SECOND_MAX_BYTES * (time.monotonic() - self.began)
            if self.heard > allowed or len(self.partial) > _LINE_MAX_BYTES:
                raise WorkloadError(
                    f"{self.process.name} of endpoint {self.index} writes without end: {self.heard >> 20} MiB so far,"
                    f" {len(self.partial) >> 20} MiB of them without an end of line"
                )
            for line in whole:
                text = line.decode(errors="replace")
                self.said_hello = self.said_hello or _HELLO in text
                self.lines.append(text)


def _gone_sentence(node: str) -> str:
    return f"node {node} is gone: something outside this session has ended it"


def check_switch(switch: Switch, nodes: Mapping[int, Node], inits: Mapping[int, int]) -> None:
    """Raises ProvisionError if a switch is broken; names the node if its end broke the switch's link."""
    try:
        switch.check()
    except ProvisionError:
        for index, init in inits.items():
            if process_start_time(init) is None:
                raise ProvisionError(_gone_sentence(nodes[index].spec.name)) from None
        raise


@dataclass(frozen=True, slots=True)
class LaunchSite:
    """The nodes, CPUs and directories of a rig's launches.

    Attributes:
        nodes: by endpoint index.
        cpus: CPU of each endpoint.
        logs: directory for standard error; a file's name ends with the endpoint's index.
        inits: process that stays in each node, by endpoint index.
        files: directory with a directory for each node, for files of processes.
        wake: descriptor that ends a ``poll`` when it becomes readable; it is not read here.
    """

    nodes: Mapping[int, Node]
    cpus: Sequence[int]
    logs: Path
    inits: Mapping[int, int] = field(default_factory=dict)
    files: Path | None = None
    wake: int | None = None


class RunningLaunch:
    """The processes of one launch. ``prefix``: beginning of the log files' names."""

    def __init__(self, site: LaunchSite, prefix: str) -> None:
        self._site = site
        self._nodes, self._inits, self._prefix = site.nodes, site.inits, prefix
        self._speakers: dict[int, _Speaker] = {}
        self._selector = selectors.DefaultSelector()
        if site.wake is not None:
            self._selector.register(site.wake, selectors.EVENT_READ)
        self._ended = False

    def begin(self, plan: LaunchPlan) -> None:
        """Starts the processes of a plan, stage by stage.

        Raises WorkloadError with the log's tail if a process dies or opens no socket in time, after ending all.
        """
        stages = sorted({process.stage for process in plan.processes})
        for process in plan.processes:
            if process.socket is not None:
                # An endpoint that was killed leaves it, and the next one could not bind.
                path = Path(process.socket)
                node_files.remove(path.parent, path.name)
        try:
            for stage in stages:
                started = [self._start(process) for process in plan.processes if process.stage == stage]
                last = stage == stages[-1]
                # If all have sockets, only the switch connects, after they are there.
                needed = not last or all(process.socket is not None for process in plan.processes)
                awaited = [speaker for speaker in started if speaker.waits and (speaker.listens or needed)]
                self._wait_for_sockets(awaited, plan.hello_timeout_s)
        except BaseException:
            self.end()
            raise

    def _start(self, process: PlannedProcess) -> _Speaker:
        index = process.index
        socket = None if process.socket is None else Path(process.socket)
        if process.listens is not None and is_listening(self._inits[index], process.listens):
            raise WorkloadError(
                f"{process.listens} is in use in the node of endpoint {index}: end what listens there, or leave the"
                f" application of {Path(process.argv[0]).name} out"
            )
        log = self._site.logs / f"{self._prefix}-{index}.log"
        try:
            child = self._nodes[index].spawn(self._with_files(process), cpus=[self._site.cpus[index]], log=log)
        except ProvisionError as error:
            if self._gone(index):
                raise ProvisionError(f"{_gone_sentence(self._nodes[index].spec.name)}; {error}") from None
            raise
        assert child.stdin is not None
        assert child.stdout is not None
        for pipe in (child.stdin, child.stdout):
            os.set_blocking(pipe.fileno(), False)
        with suppress(OSError):  # the workload keeps what does not fit, and writes it later
            fcntl.fcntl(child.stdout, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        speaker = _Speaker(index, child, socket, child.stdout, process.listens)
        self._speakers[index] = speaker
        self._selector.register(child.stdout, selectors.EVENT_READ, speaker)
        return speaker

    def _with_files(self, process: PlannedProcess) -> list[str]:
        """Writes a process' files and returns its command line with their directory."""
        if process.files is None or self._site.files is None:
            return list(process.argv)
        own = node_directory(self._site.files, process.index)
        directory = own / "files"
        node_files.make_directory(own, directory.name)
        for name, content in process.files:
            node_files.write_file(own, f"{directory.name}/{name}", content.replace(FILES, str(directory)))
        return [word.replace(FILES, str(directory)) for word in process.argv]

    def _wait_for_sockets(self, speakers: Sequence[_Speaker], timeout_s: float) -> None:
        """Waits until each process serves. A serving front-end prints its hello only once its peer is connected."""
        deadline = time.monotonic() + timeout_s
        waiting = list(speakers)
        while waiting:
            for speaker in list(waiting):
                sought = f"opened {speaker.socket}" if speaker.listens is None else f"listened at {speaker.listens}"
                speaker.hear()
                if speaker.serves:
                    waiting.remove(speaker)
                    continue
                code = speaker.process.poll()
                if code is not None:
                    raise WorkloadError(
                        f"{speaker.process.name} of endpoint {speaker.index} ended with exit code {code} before it"
                        f" {sought}{speaker.log}"
                    )
                if time.monotonic() > deadline:
                    raise WorkloadError(
                        f"{speaker.process.name} of endpoint {speaker.index} has not {sought} within"
                        f" {timeout_s:g} s{speaker.log}"
                    )
            if waiting:
                time.sleep(_STAGE_POLL_S)

    def tell(self, text: str, index: int | None = None) -> None:
        """Writes to one standard input, or to all. An ended process is skipped; ``poll`` reports its end.

        Raises WorkloadError if one reads nothing, or another process of its node has filled its input.
        """
        data = text.encode()
        for speaker in self._speakers.values():
            pipe = speaker.process.stdin
            if pipe is not None and not pipe.closed and index in (None, speaker.index):
                with suppress(OSError):
                    if pipe.write(data) != len(data):
                        raise WorkloadError(
                            f"{speaker.process.name} of endpoint {speaker.index} does not read its input, which is full"
                        )

    def start(self, delay_s: float) -> int:
        """Makes all processes begin ``delay_s`` seconds from now; returns that moment, CLOCK_MONOTONIC in ns."""
        with realtime():  # the first of them may send before the last has read its line
            moment = time.monotonic_ns() + round(delay_s * 1e9)
            self.tell(f"start {moment}\n")
        return moment

    def poll(self, timeout_s: float, *, quiet: bool = False) -> Polled:
        """Returns the lines since the last call, and the exits, each once and after the last lines of its process.

        It returns as soon as there is any, or after ``timeout_s`` seconds. If ``quiet``, it is not woken by lines.
        """
        deadline = time.monotonic() + timeout_s
        if quiet and not self._ending:
            self._rest(timeout_s)
            deadline = 0.0
        while True:
            woken = self._hear(max(0.0, deadline - time.monotonic()))
            lines = [(speaker.index, line) for speaker in self._speakers.values() for line in speaker.lines]
            for speaker in self._speakers.values():
                speaker.lines = []
            exited = self._exits()
            if lines or exited or woken or time.monotonic() >= deadline:
                return Polled(tuple(lines), exited)

    @property
    def _ending(self) -> bool:
        """Whether a process has closed its pipe, so that it is about to end."""
        return any(speaker.silent and not speaker.exit_reported for speaker in self._speakers.values())

    def _rest(self, timeout_s: float) -> None:
        """Waits until a process closes its pipe or ``wake`` becomes readable. Lines wait in the pipes."""
        ends = select.poll()
        for key in self._selector.get_map().values():
            ends.register(key.fd, select.POLLIN if key.data is None else 0)  # 0: nothing but POLLHUP
        ends.poll(timeout_s * 1000)

    def _hear(self, timeout_s: float) -> bool:
        """Reads the lines that come within a time. Returns whether ``wake`` became readable."""
        if self._ending:
            timeout_s = min(timeout_s, _EXIT_POLL_S)
        if not self._selector.get_map():
            time.sleep(timeout_s)
            return False
        woken = False
        for key, _ in self._selector.select(timeout_s):
            speaker: _Speaker | None = key.data
            if speaker is None:
                woken = True
                continue
            speaker.hear()
            if speaker.silent:
                self._selector.unregister(speaker.stdout)
        return woken

    def _exits(self) -> dict[int, int]:
        exited = {}
        for speaker in self._speakers.values():
            if speaker.silent and not speaker.exit_reported:
                code = speaker.process.poll()
                if code is not None:
                    speaker.exit_reported = True
                    exited[speaker.index] = code
        return exited

    @property
    def live(self) -> bool:
        """Whether a process still runs."""
        return not self._ended and any(speaker.process.poll() is None for speaker in self._speakers.values())

    def pids(self) -> dict[int, int]:
        """Returns the process ids on the host, by endpoint index; in a virtual machine, that of the machine."""
        return {index: self._pid(index, speaker.process.pid) for index, speaker in self._speakers.items()}

    def _pid(self, index: int, pid: int) -> int:
        return self._inits[index] if getattr(self._nodes[index], "machine", False) else pid

    def usage(self) -> dict[int, Usage]:
        """Returns what each process used, and what the interfaces of its node counted, by endpoint index."""
        return {
            index: Usage(speaker.process.cpu_ns, *received_counters(self._inits[index]))
            for index, speaker in self._speakers.items()
        }

    def log_tail(self, index: int) -> str:
        """Returns the last lines of a process' log, after a sentence if its node is gone, or if someone has stopped it.

        It is empty for one that was never started.
        """
        speaker = self._speakers.get(index)
        tail = speaker.process.tail() if speaker is not None else ""
        if speaker is not None and speaker.process.poll() is None and speaker.process.is_stopped:
            return f"{stopped_sentence(speaker.process.name, speaker.process.pid)}\n{tail}".rstrip()
        if speaker is not None and speaker.process.poll() == -SIGKILL and self._gone(index):
            return f"its {_gone_sentence(self._nodes[index].spec.name)}\n{tail}".rstrip()
        return tail

    def _gone(self, index: int) -> bool:
        """Whether a node's init has ended, which it does only after the processes that ended with it are reaped."""
        init = self._inits.get(index)
        return init is not None and wait_until(lambda: process_start_time(init) is None, _INIT_ENDS_S)

    def end(self) -> None:
        """Closes the inputs, asks running processes to end and kills those that remain after a second. Idempotent."""
        if self._ended:
            return
        self._ended = True
        speakers = list(self._speakers.values())
        for speaker in speakers:
            if speaker.process.stdin is not None:
                with suppress(OSError):
                    speaker.process.stdin.close()
        for speaker in speakers:
            if speaker.process.poll() is None:
                speaker.process.signal(SIGTERM)
        deadline = time.monotonic() + END_S
        for speaker in speakers:
            with suppress(ProvisionError):
                speaker.process.wait(max(0.0, deadline - time.monotonic()))
        self._selector.close()
        for speaker in speakers:
            speaker.process.stop(term_s=0.0)

    def remove_logs(self) -> None:
        """Deletes the log files of an ended launch."""
        for index in self._speakers:
            (self._site.logs / f"{self._prefix}-{index}.log").unlink(missing_ok=True)
