# SPDX-License-Identifier: BSD-3-Clause
"""What a run waits for, by kind: seconds of the demo, or of what other options select, and their share.

python benchmarks/time_by_kind.py [pytest's options; default: scenarios/test_demo.py]. Needs root and a quiet machine.
Each second belongs to the innermost kind that is under way. Ends with pytest's exit status.
"""

from __future__ import annotations

import functools
import sys
import time
from collections.abc import Callable, Generator
from typing import Any

import pytest

from pytest_icbench.measure.launch.launcher import Run
from pytest_icbench.measure.repetition import Strategy
from pytest_icbench.plugin.fitness_check import HostCheck
from pytest_icbench.plugin.session import Session
from pytest_icbench.testbed.case_rig import Rig

#: The kinds, in the order of a run, and what each is.
KINDS = {
    "collect": "pytest's start, the selection of cases, what the host has",
    "fitness": "whether the host is fit to be measured on",
    "rig": "containers, switch and links of a case are made",
    "preflight": "frames of each pair pass before anything is measured",
    "start": "processes of a launch, until all are ready",
    "warm-up": "frames are sent and not counted",
    "windows": "frames are counted",
    "drain": "frames under way arrive, processes write their summaries",
    "stop": "processes of a launch end, the switch's counters are read",
    "turn": "the other rig of a case is paused or goes on",
    "undo": "containers, switch and links are unmade",
    "write": "results and reports",
    "rest": "statistics, judgement, pytest",
}


class Kinds:
    """A pytest plugin that attributes each second to one kind."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(KINDS, 0.0)
        self.launches = self.rigs = 0
        self._under_way = ["collect"]
        self._since = time.monotonic()

    def turn(self) -> None:
        """Books the time since the last turn."""
        now = time.monotonic()
        self.seconds[self._under_way[-1]] += now - self._since
        self._since = now

    def during(self, kind: str, step: Callable[..., Any]) -> Callable[..., Any]:
        """Returns the step, whose time is of this kind but for the kinds within. A preflight is of one kind."""

        @functools.wraps(step)
        def timed(*arguments: Any, **keywords: Any) -> Any:
            if "preflight" in self._under_way:
                return step(*arguments, **keywords)
            self.turn()
            self._under_way.append(kind)
            try:
                return step(*arguments, **keywords)
            finally:
                self.turn()
                self._under_way.pop()

        return timed

    def watch(self) -> None:
        """Puts the steps of the harness under watch."""
        until_over, build = Run._until_over, Rig.build

        def launched(run: Run, asked_ns: int) -> float:
            begin, over = time.monotonic(), until_over(run, asked_ns)
            if "preflight" not in self._under_way:
                self._split(run, asked_ns / 1e9, begin, over)
            return over

        def counted(rig: Rig) -> None:
            self.rigs += 1
            build(rig)

        for owner, name, kind in (
            (HostCheck, "run", "fitness"),
            (Rig, "close", "undo"),
            (Rig, "pause", "turn"),
            (Rig, "resume", "turn"),
            (Strategy, "_preflight", "preflight"),
            (Run, "run", "start"),
            (Run, "_count", "stop"),
            (Rig, "end", "stop"),
            (Run, "_judged", "rest"),
            (Session, "finish", "write"),
        ):
            setattr(owner, name, self.during(kind, getattr(owner, name)))
        setattr(Run, "_until_over", self.during("drain", launched))  # noqa: B010  (mypy would have it be a method)
        setattr(Rig, "build", self.during("rig", counted))  # noqa: B010

    def _split(self, run: Run, asked_s: float, begin: float, over: float) -> None:
        """Books what of a launch is warm-up and windows, which would else be the drain's."""
        first = min(max(asked_s + run.settings.warmup_s, begin), over)
        last = asked_s + run.settings.warmup_s + run.settings.sending_s
        last = max(min(last, run.ended_early_s or last, over), first)
        for kind, seconds in (("warm-up", first - begin), ("windows", last - first)):
            self.seconds[kind] += seconds
            self.seconds["drain"] -= seconds
        self.launches += 1

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self) -> Generator[None, object, object]:
        self.turn()
        self._under_way[0] = "rest"
        return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self) -> Generator[None, object, object]:
        self.turn()
        self._under_way[0] = "write"
        return (yield)

    def pytest_unconfigure(self) -> None:
        self.turn()
        whole = sum(self.seconds.values())
        print(f"\n{whole:.1f} s, {self.rigs} rigs, {self.launches} launches")
        for kind, meaning in KINDS.items():
            print(f"{kind:10}{self.seconds[kind]:7.1f} s {self.seconds[kind] / whole:6.1%}  {meaning}")


def main() -> int:
    kinds = Kinds()
    kinds.watch()
    return int(pytest.main(sys.argv[1:] or ["scenarios/test_demo.py", "-q"], plugins=[kinds]))


if __name__ == "__main__":
    sys.exit(main())
