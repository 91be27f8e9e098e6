# SPDX-License-Identifier: BSD-3-Clause
"""Runs a lane of tests after ``make install``: python scripts/lanes.py test|test-all|test-ci [options for pytest].

What leaves the host alone runs side by side, since each of it keeps one core busy, and with it those tests on the host
that wait more than they compute and assert no figure: in two parts, since a host has one session at a time, so one
runs on a host of its own. The others on the host come by themselves afterwards. How long it will take is said first,
from last time's durations (build/test-times.json). That no test was selected is an error if no part has one.

A test that fails is run once more by itself, with nothing beside it. If it passes then, the lane passes, and its last
lines name the test: it does not hold beside other work, which is a defect of the test or of what it tests. More than
``SUSPECTS`` failures are no chance, and are not tried again.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).parents[1]
TIMES = ROOT / "build" / "test-times.json"
#: Which tests are a lane's. The first two together are all of them. The third is both at once: what computes in either
#: runs beside what waits in either, and nothing is begun twice.
MARKERS = {"test": "not slow", "test-all": "slow", "test-ci": ""}
#: The plugin on the real host.
END_TO_END = sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("tests/plugin/test_*end_to_end.py"))


def _on_host(*names: str) -> tuple[str, ...]:
    return tuple(f"tests/host/test_{name}.py" for name in names)


#: Of the tests on the host those that mostly wait, for programs to start and to end, and that hold whatever else runs:
#: frames are right or wrong there, and nobody asks how fast they are.
CALM = _on_host(
    *("attach", "births", "both_ways", "conformance", "engines", "hugepages", "journal_real", "lxc", "lxc_killed"),
    *("nodes", "queues", "remote", "rig", "snapshot", "switch_faults", "switches", "torture", "uplinks"),
)
#: More of them, on a host of their own (scripts/own_host.sh), where they meet nobody's sessions: without huge pages,
#: so without DPDK, and without engines of containers.
CALM_APART = (
    "tests/plugin/test_end_to_end.py",
    *_on_host(
        *("applications", "conformance_kernel", "driver_faults", "forward_raw", "function_faults"),
        *("kernel_paths", "links", "outside_switch", "remote_connection", "remote_faults", "remote_workers", "replay"),
        *("second_host", "topology_two_hosts", "workload", "workload_control", "workload_duplex", "workload_headers"),
        *("workload_joined", "workload_program", "workload_traffic", "workload_xdp"),
    ),
)
OWN_HOST = "scripts/own_host.sh"
ALONE_END_TO_END = [path for path in END_TO_END if path not in CALM_APART]
#: Runs or plans what the documents say.
DOCUMENTS = "tests/unit/project/test_documented_commands.py"
#: pytest's exit statuses.
TESTS_FAILED = 1
NOTHING_SELECTED = 5
#: So many tests of a lane are run once more.
SUSPECTS = 3
#: What failed in each part, as pytest keeps it.
CACHE = ROOT / "build" / "lanes"
#: Parts at a time: each keeps one core busy, and a host has two at least.
CORES = 2
#: What computes is nicer than what waits by this: packets that have to be on time then find a CPU.
NICER = 5
#: Between two lines that tell how far it is.
EVERY_S = 10.0
LOOK_S = 0.1


@dataclass(frozen=True)
class Part:
    """A command of a lane, and how long it took on two CPUs that had nothing else to do."""

    name: str
    seconds: float
    command: tuple[str, ...]
    #: It takes no core for itself: it begins at once, beside those that do.
    waits: bool = False

    @property
    def selects(self) -> bool:
        """It runs those tests that pytest's options leave."""
        return self.command[0] != "make"

    @property
    def cache(self) -> Path:
        return CACHE / self.name.replace("/", "-").replace(" ", "-")

    @property
    def argv(self) -> tuple[str, ...]:
        by_pytest = any(Path(word).name == "pytest" for word in self.command)
        return (*self.command, "-o", f"cache_dir={self.cache}") if by_pytest else self.command

    @property
    def suspects(self) -> list[str]:
        """The ids of its tests that failed."""
        with suppress(OSError, ValueError):
            return sorted(json.loads((self.cache / "v" / "cache" / "lastfailed").read_text()))
        return []


@dataclass(frozen=True)
class Lane:
    """Parts that run side by side, each as soon as a core is free (at once what mostly waits), then one alone."""

    beside: tuple[Part, ...]
    alone: Part

    @property
    def parts(self) -> tuple[Part, ...]:
        return (*self.beside, self.alone)

    def seconds(self, times: Mapping[str, float]) -> float:
        ends = [0.0] * CORES
        waits = 0.0
        for part in self.beside:
            if part.waits:
                waits = max(waits, times.get(part.name, part.seconds))
            else:
                ends[ends.index(min(ends))] += times.get(part.name, part.seconds)
        return max(waits, *ends) + times.get(self.alone.name, self.alone.seconds)


def lane(name: str, options: Sequence[str]) -> Lane:
    """The lane of this name; ``options`` go to pytest, after its own."""

    def tests(*arguments: str) -> tuple[str, ...]:
        return (str(Path(sys.executable).with_name("pytest")), "-m", MARKERS[name], *arguments, *options)

    def rule(target: str) -> tuple[str, ...]:
        return ("make", "--no-print-directory", "-o", "install", target)

    unit = tests("tests/unit")
    plugin = tests("tests/plugin", *(f"--ignore={path}" for path in END_TO_END))
    host = tests("tests/host", *ALONE_END_TO_END, *(f"--ignore={path}" for path in (*CALM, *CALM_APART)))
    # Names as well: one test can take a minute.
    told = () if name == "test" else ("-v", "--durations=20")
    calm_s, apart_s, host_s = {"test": (130, 90, 65), "test-all": (500, 510, 470), "test-ci": (620, 600, 530)}[name]
    waits = (
        Part("calm tests on the host", calm_s, (*tests(*CALM), *told), waits=True),
        Part("calm tests on a host of their own", apart_s, (OWN_HOST, *tests(*CALM_APART), *told), waits=True),
    )
    alone = Part("tests on the host", host_s, (*host, *told))
    # Half of the slow unit tests' time goes into what the documents say.
    apart = (*unit, f"--ignore={DOCUMENTS}")
    # In these orders both cores are done at about the same time.
    computes = {
        "test": (
            Part("tests/plugin", 130, plugin),
            Part("tests/unit", 145, unit),
            Part("C tests", 35, rule("test-c")),
            Part("lint", 45, rule("lint")),
        ),
        "test-all": (
            Part("tests/unit", 150, apart),
            Part("documented commands", 110, tests(DOCUMENTS)),
            Part("tests/plugin", 60, plugin),
        ),
        "test-ci": (
            Part("tests/unit", 540, apart),
            Part("tests/plugin", 350, plugin),
            Part("documented commands", 150, tests(DOCUMENTS)),
            Part("C tests", 65, rule("test-c")),
            Part("lint", 65, rule("lint")),
        ),
    }
    return Lane((*waits, *computes[name]), alone)


def forecast(name: str, chosen: Lane, times: Mapping[str, float], options: Sequence[str]) -> str:
    """What is about to run, and how long it takes."""

    def told(part: Part) -> str:
        return f"{part.name} {duration(times.get(part.name, part.seconds))}"

    source = "as last time here" if times else "on two CPUs with nothing else to do"
    beside = ", ".join(told(part) for part in chosen.beside)
    text = f"make {name}: about {duration(chosen.seconds(times))}, {source}"
    text += f"\nmake {name}: side by side {beside}; then {told(chosen.alone)}"
    return f"{text}\nmake {name}: a selection takes less: {' '.join(options)}" if options else text


def duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.1f} min"


def read_times(name: str) -> dict[str, float]:
    with suppress(OSError, ValueError, AttributeError, TypeError):
        return {part: float(seconds) for part, seconds in json.loads(TIMES.read_text()).get(name, {}).items()}
    return {}


def write_times(name: str, times: Mapping[str, float]) -> None:
    kept = {lane_name: read_times(lane_name) for lane_name in MARKERS}
    kept[name].update({part: round(seconds, 1) for part, seconds in times.items()})
    TIMES.write_text(json.dumps(kept, indent=1) + "\n")


def how_far(log: str) -> str:
    """What the output so far tells: pytest's percentage, else its last line."""
    if percents := re.findall(r"\[ *(\d+%)\]", log):
        return str(percents[-1])
    lines = [line for line in log.splitlines() if line.strip()]
    return lines[-1].strip()[:60] if lines else "started"


@dataclass
class Run:
    """A lane at work: what ended how, and after how long."""

    times: dict[str, float] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    #: Tests that failed and then passed by themselves.
    unsteady: list[str] = field(default_factory=list)
    any_selected: bool = False
    stopped_by: int | None = None
    _children: list[subprocess.Popen[bytes]] = field(default_factory=list, init=False)
    _suspected: list[Part] = field(default_factory=list, init=False)

    def stop(self, number: int, _frame: FrameType | None) -> None:
        """Ends with what runs. The terminal's SIGINT reaches that by itself."""
        self.stopped_by = number
        if number != signal.SIGINT:
            for child in self._children:
                child.send_signal(number)

    def side_by_side(self, parts: Sequence[Part]) -> None:
        with tempfile.TemporaryDirectory(prefix="test-lane-") as logs:
            self._side_by_side(parts, Path(logs))

    def _side_by_side(self, parts: Sequence[Part], logs: Path) -> None:
        begin = told = time.monotonic()
        waiting = deque(parts)
        running: list[tuple[Part, float, Path, subprocess.Popen[bytes]]] = []
        while running or (waiting and self.stopped_by is None):
            while waiting and self.stopped_by is None:
                cores = sum(not part.waits for part, *_ in running)
                if cores >= CORES and not waiting[0].waits:
                    break
                part = waiting.popleft()
                log = logs / f"{part.name.replace('/', '-').replace(' ', '-')}.log"
                with log.open("wb") as output:
                    running.append((part, time.monotonic(), log, self._start(part, output.fileno())))
            time.sleep(LOOK_S)
            for entry in list(running):
                part, since, log, child = entry
                if child.poll() is not None:
                    running.remove(entry)
                    say(f"== {part.name}, {duration(time.monotonic() - since)}:\n{read(log)}")
                    self._ended(part, since, child)
            if running and time.monotonic() - told >= EVERY_S:
                told = time.monotonic()
                far = [f"{part.name}: {how_far(read(log))}" for part, _, log, _ in running]
                say(f"-- {told - begin:.0f} s: {'; '.join(far)}")

    def alone(self, part: Part) -> None:
        if self.stopped_by is None:
            say(f"== {part.name}")
            since = time.monotonic()
            child = self._start(part, None)
            while child.poll() is None:
                time.sleep(LOOK_S)
            self._ended(part, since, child)

    def again(self) -> None:
        """Runs the tests that failed once more, each part's by themselves."""
        suspected, self._suspected = self._suspected, []
        number = sum(len(part.suspects) for part in suspected)
        for part in suspected:
            tests = part.suspects
            if self.stopped_by is not None or not tests or number > SUSPECTS:
                self.failed.append(part.name)
                continue
            say(f"== {part.name}: once more, by themselves: {', '.join(tests)}")
            child = self._start(replace(part, command=(*part.command, "--last-failed")), None)
            while child.poll() is None:
                time.sleep(LOOK_S)
            self._children.remove(child)
            if child.returncode == 0:
                self.unsteady += tests
            else:
                self.failed.append(part.name)

    def _start(self, part: Part, output: int | None) -> subprocess.Popen[bytes]:
        child = subprocess.Popen(
            part.argv,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=None if output is None else subprocess.STDOUT,
            env=environment(),
        )
        self._children.append(child)
        if output is not None and not part.waits:
            os.setpriority(os.PRIO_PROCESS, child.pid, os.getpriority(os.PRIO_PROCESS, 0) + NICER)
        if self.stopped_by is not None:  # meanwhile
            child.send_signal(self.stopped_by)
        return child

    def _ended(self, part: Part, since: float, child: subprocess.Popen[bytes]) -> None:
        self._children.remove(child)
        self.times[part.name] = time.monotonic() - since
        if child.returncode in (0, TESTS_FAILED):
            self.any_selected |= part.selects
        if part.selects and child.returncode == TESTS_FAILED:
            self._suspected.append(part)
        elif child.returncode not in (0, NOTHING_SELECTED):
            self.failed.append(part.name)


def environment() -> dict[str, str]:
    """What is compiled is kept: else each pytest that a test starts compiles every module again, for two seconds."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def read(log: Path) -> str:
    return log.read_text(errors="replace").rstrip()


def say(text: str) -> None:
    print(text, flush=True)


def main(name: str, options: Sequence[str]) -> int:
    chosen = lane(name, options)
    say(forecast(name, chosen, read_times(name), options))
    run = Run()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, run.stop)
    begin = time.monotonic()
    shutil.rmtree(CACHE, ignore_errors=True)
    run.side_by_side(chosen.beside)
    run.alone(chosen.alone)
    run.again()
    say(f"make {name}: {duration(time.monotonic() - begin)}")
    if run.stopped_by is not None:
        return 128 + run.stopped_by
    for test in run.unsteady:
        say(f"make {name}: failed beside other work, passed by itself: {test}")
    if run.failed:
        say(f"make {name}: failed: {', '.join(run.failed)}")
        return 1
    if not run.any_selected:
        say(f"make {name}: no test was selected")
        return NOTHING_SELECTED
    if not options:
        write_times(name, run.times)
    return 0


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in MARKERS:
        sys.exit(f"usage: {sys.argv[0]} {'|'.join(MARKERS)} [options for pytest]")
    sys.exit(main(sys.argv[1], sys.argv[2:]))
