# SPDX-License-Identifier: BSD-3-Clause
"""Measures the distance between CPUs by the workload's ``distance``, in one process that sleeps between requests."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pytest_icbench.errors import IcbenchError
from pytest_icbench.host.answers import read_answer
from pytest_icbench.host.process import Process, Spawner
from pytest_icbench.model.codec import DamagedData, decode, from_json
from pytest_icbench.model.placement import CpuPair, CpuState
from pytest_icbench.stats.states import geometric_mean

#: Time limit of an answer in seconds, and its increase for each pair: three times the program's own limit.
ANSWER_S, PAIR_S = 0.5, 0.06
#: A program that failed this often in a row gets no more requests: waiting for it could delay every launch too long.
MOST_FAILURES = 3


@dataclass(frozen=True, slots=True)
class _Pair:
    """The program's figures of a pair, in ns."""

    ns: float
    work_ns: tuple[float, float]


@dataclass(frozen=True, slots=True)
class _Answer:
    """A line of the program; null for a pair with a CPU that could not be used, or that other processes kept busy."""

    pairs: tuple[_Pair | None, ...]


def format_question(pairs: Sequence[CpuPair]) -> str:
    """Returns the program's input for these pairs."""
    return ", ".join(f"{first} {second}" for first, second in pairs) + "\n"


def parse_answer(answer: str, pairs: Sequence[CpuPair]) -> tuple[CpuState, str | None]:
    """Returns the state in the program's answer, and the reason if it has no figures.

    Raises DamagedData if it does not answer the question.
    """
    reported = decode(_Answer, from_json(answer, "its answer"), "its answer").pairs
    if len(reported) != len(pairs):
        raise DamagedData(f"its answer: expected {len(pairs)} pairs, found {len(reported)}")
    work: dict[int, list[float]] = {}
    for cpus, pair in zip(pairs, reported, strict=True):
        if pair is None:
            named = " and ".join(map(str, cpus))
            return CpuState(), f"CPUs {named} cannot be measured: one is offline, not allowed, or kept busy"
        if min(pair.ns, *pair.work_ns) <= 0:
            raise DamagedData("its answer: a time is not positive")
        for cpu, time_ns in zip(cpus, pair.work_ns, strict=True):
            work.setdefault(cpu, []).append(time_ns)
    distance_ns = geometric_mean([pair.ns for pair in reported if pair is not None])
    return CpuState(distance_ns, geometric_mean([min(times) for times in work.values()])), None


class CpuMeter:
    """Reads the state of CPUs. Its process starts with the first question; it runs on the CPUs that it measures.

    ``log``: file for its standard error. ``fault``: why the newest reading has no figures, in one sentence; None if it
    has.
    """

    def __init__(self, spawner: Spawner, log: Path) -> None:
        self._spawner, self._log = spawner, log
        self._process: Process | None = None
        self._failures = 0
        self.fault: str | None = None

    def read(self, program: Path, pairs: Sequence[CpuPair]) -> CpuState:
        """Returns the state of the CPUs of these pairs; without figures if they cannot be had. Never raises.

        ``program``: the workload.
        """
        if not pairs or self._failures >= MOST_FAILURES:
            return CpuState()
        try:
            answer = self._ask(program, format_question(pairs), ANSWER_S + PAIR_S * len(pairs))
            state, self.fault = parse_answer(answer, pairs)
            self._failures = 0
        except (IcbenchError, OSError) as error:
            state, self.fault = CpuState(), f"{program.name} distance: {error}"
            self._failures += 1
            self.close()
        return state

    def _ask(self, program: Path, text: str, timeout_s: float) -> str:
        """Returns the answer to a line. Raises OSError if none arrives in time, ProvisionError without the program."""
        deadline = time.monotonic() + timeout_s
        process = self._process = self._process or self._spawner.start([program, "distance"], log=self._log, pipes=True)
        assert process.stdin is not None
        assert process.stdout is not None
        with suppress(BrokenPipeError):  # the reason shows when its end is read
            process.stdin.write(text.encode())
        try:
            answer = read_answer(process.stdout, lambda came: came.endswith(b"\n"), deadline)
        except TimeoutError:
            raise TimeoutError(f"no answer within {timeout_s:g} s") from None
        if not answer.endswith(b"\n"):
            raise BrokenPipeError(f"it has ended ({process.tail(1) or 'its log is empty'})")
        return answer.decode(errors="replace")

    def close(self) -> None:
        """Ends the process. Idempotent."""
        process, self._process = self._process, None
        if process is not None:
            process.stop(term_s=0.0)
