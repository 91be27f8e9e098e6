# SPDX-License-Identifier: BSD-3-Clause
"""The output of the processes of one launch so far."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from pytest_icbench.driver.workload.command import WorkloadCommand, exit_meaning
from pytest_icbench.driver.workload.output import Hello, Ready, Summary, WindowLine, parse_line
from pytest_icbench.errors import WorkloadError
from pytest_icbench.measure.launch.commands import pair_of
from pytest_icbench.model.path import Direction
from pytest_icbench.model.rig import Polled

#: Exit codes of faults that would happen again: bad usage, set-up failed, no link.
_LASTING = (2, 3, 5)


@dataclass(slots=True)
class ProcessOutput:
    """The output of one process, with its command.

    Attributes:
        windows: by number; a final line replaces a provisional one.
        exit_code: None while it runs.
    """

    index: int
    command: WorkloadCommand
    hello: Hello | None = None
    ready: Ready | None = None
    windows: dict[int, WindowLine] = field(default_factory=dict)
    summary: Summary | None = None
    exit_code: int | None = None
    told_to_stop: bool = False

    @property
    def name(self) -> str:
        """Its name in messages: ``dpdk-recv of pair 1``, ``duplex b of pair 1``."""
        twin, name = "dpdk-" if self.command.uses_dpdk else "", self.command.application
        return f"{twin}{name}{f' {self.direction[0]}' if self.direction else ''} of pair {self.pair}"

    @property
    def pair(self) -> int:
        """The number of its pair, from its stream."""
        return pair_of(self.command.stream)

    @property
    def direction(self) -> Direction | None:
        """The way of the frames that it sends, where its peer sends too."""
        return self.command.direction

    @property
    def over(self) -> bool:
        """Whether its output is complete. The process may stay with its port until the switch's counters are read."""
        return self.summary is not None

    @property
    def leads(self) -> bool:
        """Whether it sends frames of its own, and ends by itself."""
        return self.command.application in ("send", "client", "duplex")

    @property
    def asks(self) -> bool:
        """Whether it measures round trips."""
        return self.command.application == "client"

    @property
    def receives(self) -> bool:
        """Whether frames end here: at a receiver, at a client that has its own back, or at an end that also sends."""
        return self.command.application in ("recv", "client", "duplex")

    def take(self, text: str) -> WindowLine | None:
        """Takes a line of output; returns it if it is a window. Raises DamagedData."""
        line = parse_line(text, self.name)
        match line:
            case Hello():
                self.hello = line
            case Ready():
                self.ready = line
            case Summary():
                self.summary = line
            case WindowLine():
                self.windows[line.window] = line
                return line
        return None

    @property
    def crashed(self) -> bool:
        """Whether it ended in a way that need not happen again: by a signal, an error of its port, or silently."""
        if self.summary is not None:
            return self.summary.reason == "error"
        return self.exit_code is not None and self.exit_code not in _LASTING

    def failure(self) -> str | None:
        """Returns one sentence if it ended in an unexpected way, else None."""
        if self.summary is not None:
            if self.summary.reason in ("duration", "count"):
                return None
            if self.summary.reason == "stop" and (self.told_to_stop or not self.leads):
                return None
            if self.summary.reason == "end" and not self.leads:
                return None
            if self.summary.reason != "error":
                return f"{self.name} ended before its time (reason: {self.summary.reason})"
            return f"{self.name} ended by an error of its port"
        if self.exit_code is None:
            return None
        if self.exit_code != 0:
            return f"{self.name} {exit_meaning(self.exit_code)}"
        return f"{self.name} ended without a summary"


class LaunchOutput:
    """The output of all processes of a launch."""

    def __init__(self, commands: Mapping[int, WorkloadCommand]) -> None:
        self.outputs = {index: ProcessOutput(index, command) for index, command in sorted(commands.items())}

    def take(self, polled: Polled) -> list[WindowLine]:
        """Takes the result of ``rig.poll``; returns its windows. Raises DamagedData."""
        windows = [self.outputs[index].take(text) for index, text in polled.lines]
        for index, code in polled.exited.items():
            self.outputs[index].exit_code = code
        return [window for window in windows if window is not None]

    def failed(self) -> ProcessOutput | None:
        """Returns the first process that ended in an unexpected way."""
        return next((output for output in self.outputs.values() if output.failure()), None)

    def stop_early(self) -> None:
        """Notes that all processes are told to stop early, so that this end is no failure."""
        for output in self.outputs.values():
            output.told_to_stop = True

    @property
    def ready(self) -> bool:
        return all(output.ready is not None for output in self.outputs.values())

    @property
    def over(self) -> bool:
        return all(output.over for output in self.outputs.values())

    @property
    def leaders_over(self) -> bool:
        """Whether the output of every sender or client is complete."""
        return all(output.over for output in self.outputs.values() if output.leads)

    @property
    def only_servers(self) -> bool:
        """Whether the output of all but servers is complete."""
        return all(output.over for output in self.outputs.values() if output.command.application != "server")

    def missing(self, line: Literal["ready", "summary"]) -> list[ProcessOutput]:
        """Returns the processes that have not written this line."""
        return [output for output in self.outputs.values() if getattr(output, line) is None]


def both_ways(couples: Iterable[tuple[ProcessOutput, ProcessOutput]]) -> list[tuple[ProcessOutput, ProcessOutput]]:
    """Returns the leader and the follower of each account: two a pair where its ends both send."""
    return [way for a, b in couples for way in (((a, b), (b, a)) if b.leads else ((a, b),))]


def workload_error(sentence: str, tail: str, *, crashed: bool = False) -> WorkloadError:
    """Returns an error with one sentence, and the end of the process' log beneath."""
    return WorkloadError(f"{sentence}\n{tail}" if tail else f"{sentence} (it wrote no log)", crashed=crashed)
