# SPDX-License-Identifier: BSD-3-Clause
"""The process of the workload's forwarder: the options for a mode, and its counters while it runs."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_icbench.driver.switch.common import userspace_ports
from pytest_icbench.driver.switch.common.daemon import Daemon
from pytest_icbench.driver.switch.protocol import Busy, PortCounters
from pytest_icbench.errors import ProvisionError
from pytest_icbench.host.answers import Unanswered, read_answer
from pytest_icbench.model.traffic import WAITS

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
    ``ab`` and ``ba`` restrict drop, dup and reorder to that direction. ``interrupt`` and ``adaptive`` are how it
    waits.

    Returns:
        None if it is not a mode: a part is unknown or repeated, a number is out of range, or a direction has no part to
        which it applies.
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
