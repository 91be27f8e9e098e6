# SPDX-License-Identifier: BSD-3-Clause
"""Runs a lane of tests after ``make install``: python scripts/lanes.py test|test-all|test-ci [options for pytest].

Three sequences of parts run side by side:

* what computes: the tests of the package, which pytest-xdist spreads over the CPUs, then the C tests and lint;
* the tests on this host, one after the other, since a host has one session at a time;
* the tests marked ``own_host``, on a host of their own (scripts/own_host.sh).

The tests marked ``alone`` follow: they assert times and rates. At last each test that failed runs once more with
nothing beside it. If it passes then, the lane passes and names it: it does not hold beside other work, which is a
defect of the test or of what it tests. More than ``MOST_RETRIED`` failures are no chance and are not tried again.

The sequences are processes of their own: no group of pytest-xdist can choose a worker that runs on another host, and
pytest-rerunfailures runs a test again while other tests run.
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
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).parents[1]
#: The marks that select the tests of each lane. The first two lanes together have all tests, as the third has.
LANES = {"test": "not slow", "test-all": "slow", "test-ci": ""}
#: The tests that use this host, and those that use hosts of their own.
ON_HOST = ("tests/host", *sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("tests/plugin/test_*end_to_end.py")))
#: Workers for what computes. Names of the package's tests look like those of benchmarks, and icbench's own plugin would
#: refuse several workers for them.
WORKERS = ("-n2", "--dist=loadfile", "-p", "no:icbench")
#: What computes has a lower priority, so that packets that have to be on time find a CPU.
NICE = ("nice", "-n", "5")
#: pytest's exit statuses.
TESTS_FAILED, NOTHING_SELECTED = 1, 5
MOST_RETRIED = 3
#: What pytest keeps of each part: which tests failed.
CACHE = ROOT / "build" / "lanes"
PROGRESS_S = 30.0


@dataclass(frozen=True)
class Part:
    """A command of a lane.

    Attributes:
        workers: options by which pytest spreads the tests over workers; not used for tests that run again.
        tests: whether the command is pytest's.
    """

    name: str
    command: tuple[str, ...]
    workers: tuple[str, ...] = ()
    tests: bool = True

    @property
    def cache(self) -> Path:
        return CACHE / self.name.replace(" ", "-")

    def argv(self, *, again: bool = False) -> tuple[str, ...]:
        """Returns the command, or the one that runs only the tests that failed."""
        if not self.tests:
            return self.command
        return (*self.command, *(("--last-failed",) if again else self.workers), "-o", f"cache_dir={self.cache}")

    def failed_tests(self) -> list[str]:
        with suppress(OSError, ValueError):
            return sorted(json.loads((self.cache / "v/cache/lastfailed").read_text()))
        return []


@dataclass(frozen=True)
class Lane:
    """Sequences of parts that run side by side, and the part that follows them alone."""

    beside: Sequence[Sequence[Part]]
    alone: Part


def lane(name: str, options: Sequence[str]) -> Lane:
    """Returns the lane of a name; ``options`` go to pytest after its own."""
    pytest = str(Path(sys.executable).with_name("pytest"))
    detail = () if name == "test" else ("-v", "--durations=40")

    def marked(*marks: str) -> tuple[str, ...]:
        return ("-m", " and ".join(filter(None, (LANES[name], *marks))), *detail, *options)

    package = ("tests/unit", "tests/plugin", *(f"--ignore={path}" for path in ON_HOST[1:]))
    computes = [Part("package", (*NICE, pytest, *package, *marked()), WORKERS)]
    if name != "test-all":
        make = (*NICE, "make", "--no-print-directory", "-o", "install")
        computes += [Part(target, (*make, target), tests=False) for target in ("test-c", "lint")]
    own_host = Part("own host", ("scripts/own_host.sh", pytest, *ON_HOST, *marked("own_host")))
    host = Part("host", (pytest, *ON_HOST, *marked("not own_host", "not alone")))
    return Lane((computes, [host], [own_host]), Part("alone", (pytest, *ON_HOST, *marked("alone"))))


@dataclass
class Run:
    """A lane at work.

    Attributes:
        failed: tests that failed, and parts that are no tests.
        unsteady: tests that failed beside other work and passed by themselves.
        stopped_by: the signal that ended the lane.
    """

    failed: list[str] = field(default_factory=list)
    unsteady: list[str] = field(default_factory=list)
    any_selected: bool = False
    stopped_by: int | None = None
    _children: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict, init=False)
    _suspects: list[Part] = field(default_factory=list, init=False)

    def stop(self, number: int, _frame: FrameType | None) -> None:
        """Ends with what runs. The terminal sends SIGINT to that by itself."""
        self.stopped_by = number
        if number != signal.SIGINT:
            for child in list(self._children.values()):
                child.send_signal(number)

    def run(self, lane: Lane) -> None:
        """Runs all parts and tries again what failed."""
        self.run_beside(lane.beside)
        self.run_alone(lane.alone)
        self.retry()

    def run_beside(self, sequences: Sequence[Sequence[Part]]) -> None:
        """Runs sequences of parts side by side, and tells how far they are."""
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="lane-") as logs, ThreadPoolExecutor() as pool:
            running = {pool.submit(self._run_sequence, parts, Path(logs)) for parts in sequences}
            while running:
                done, running = wait(running, PROGRESS_S)
                for sequence in done:
                    sequence.result()  # raises what went wrong in its thread
                if running:
                    say(f"-- {time.monotonic() - began:.0f} s: {'; '.join(self._progress(Path(logs)))}")

    def _run_sequence(self, parts: Sequence[Part], logs: Path) -> None:
        for part in parts:
            if self.stopped_by is None:
                since, log = time.monotonic(), logs / part.name
                with log.open("wb") as output:
                    status = self._execute(part.name, part.argv(), output.fileno())
                say(f"== {part.name}, {duration(time.monotonic() - since)}:\n{read(log)}")
                self._judge(part, status)

    def _progress(self, logs: Path) -> Iterator[str]:
        """Yields for each part that runs the last percentage of pytest, or the last line."""
        for name in list(self._children):
            text = read(logs / name)
            percents = re.findall(r"\[ *(\d+%)\]", text)
            yield f"{name}: {percents[-1] if percents else text.rpartition(chr(10))[2].strip()[:60]}"

    def run_alone(self, part: Part) -> None:
        """Runs a part with nothing beside it."""
        if self.stopped_by is None:
            say(f"== {part.name}")
            self._judge(part, self._execute(part.name, part.argv()))

    def retry(self) -> None:
        """Runs the tests that failed once more, unless they are too many."""
        number = sum(len(part.failed_tests()) for part in self._suspects)
        for part in self._suspects:
            tests = part.failed_tests()
            if self.stopped_by is None and tests and number <= MOST_RETRIED:
                say(f"== {part.name}: once more, by themselves: {', '.join(tests)}")
                self._execute(part.name, part.argv(again=True))
                self.unsteady += sorted(set(tests) - set(part.failed_tests()))
            self.failed += part.failed_tests() or ([] if tests else [part.name])

    def _execute(self, name: str, argv: Sequence[str], output: int | None = None) -> int:
        """Runs a command. Returns its exit status."""
        errors = None if output is None else subprocess.STDOUT
        child = subprocess.Popen(argv, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=output, stderr=errors)
        self._children[name] = child
        if self.stopped_by is not None:  # meanwhile
            child.send_signal(self.stopped_by)
        status = child.wait()
        del self._children[name]
        return status

    def _judge(self, part: Part, status: int) -> None:
        """Keeps what the exit status of a part says."""
        self.any_selected |= part.tests and status in (0, TESTS_FAILED)
        if part.tests and status == TESTS_FAILED:
            self._suspects.append(part)
        elif status not in (0, NOTHING_SELECTED):
            self.failed.append(part.name)


def duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.1f} min"


def read(log: Path) -> str:
    with suppress(OSError):
        return log.read_text(errors="replace").rstrip()
    return ""


def say(text: str) -> None:
    print(text, flush=True)


def main(name: str, options: Sequence[str]) -> int:
    """Runs a lane. Returns the exit status."""
    run, began = Run(), time.monotonic()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # else each pytest of a test compiles every module anew
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, run.stop)
    shutil.rmtree(CACHE, ignore_errors=True)
    run.run(lane(name, options))
    say(f"make {name}: {duration(time.monotonic() - began)}")
    if run.stopped_by is not None:
        return 128 + run.stopped_by
    for test in run.unsteady:
        say(f"make {name}: failed beside other work, passed by itself: {test}")
    if run.failed:
        say("\n".join([f"make {name}: {len(run.failed)} failed:", *run.failed]))
        return 1
    if not run.any_selected:
        say(f"make {name}: no test was selected")
        return NOTHING_SELECTED
    return 0


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in LANES:
        sys.exit(f"usage: {sys.argv[0]} {'|'.join(LANES)} [options for pytest]")
    sys.exit(main(sys.argv[1], sys.argv[2:]))
