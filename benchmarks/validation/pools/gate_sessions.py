# SPDX-License-Identifier: BSD-3-Clause
"""Sessions of the gate as a CI runs them, each of its own process: what shows whom it accuses, and what it finds.

A session is pytest over the cases of `gate_cases.py`, three minutes long. Six build a baseline. Then come, in an order
drawn once, sessions without a change, and sessions whose forwarder is 10 % or 5 % slower: another program under the
same name, as a new version is. Every session without a change adds to the baseline, as a CI's run of its main branch
does; those after it are held against that. Last come sessions beside ``stress-ng``, which is there for twenty seconds
of forty: earlier, they would widen what the quiet ones are held against.

``python -m validation.pools.gate_sessions --sessions N`` appends up to N sessions to a record that wants sixty-one:
three hours in all. A record of another host is begun anew. Whatever else runs on the host meanwhile is part of what is
shown: the load before and after each session stands in its line.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pytest_icbench.driver.workload.executable import workload_path
from pytest_icbench.model.launch import Launch
from pytest_icbench.stats.quantiles import Estimate
from pytest_icbench.store.read import read_run
from validation.pools.detection import cost_of, host

FILE = Path(__file__).with_suffix(".jsonl")
CASES = Path(__file__).with_name("gate_cases.py")
BUDGET = "3m"
#: What a kind of session has beside it, and by how much its forwarder is slower.
BESIDE = {"same beside cpu": ["--cpu", "1"], "same beside memory": ["--stream", "1"]}
SLOWER = {"10 % slower": 0.10, "5 % slower": 0.05}
ALONE = "same"
BASELINE_SESSIONS = 6
#: Sessions of each kind after those of the baseline.
WANTED = {ALONE: 15, "same beside cpu": 8, "same beside memory": 7, "10 % slower": 15, "5 % slower": 10}
#: Seconds for which the stress is there, and for which it is not.
STRESS_S = 20


@dataclass(frozen=True)
class Judged:
    """One case of a session.

    Attributes:
        value: frames per second, or nanoseconds, with the interval's ends; None of an invalid measurement.
        change: the ratio to the baseline, with its interval's ends; None without one.
        launches: the value of each.
        disturbed: how many of them others disturbed.
    """

    verdict: str
    reason: str
    value: list[float | None] | None
    change: list[float | None] | None
    launches: list[float]
    disturbed: int


@dataclass(frozen=True)
class Session:
    """One session: seconds since the epoch and of its length, load average before and after, pytest's exit status."""

    kind: str
    at: float
    seconds: float
    load: list[float]
    exit: int
    cases: dict[str, Judged]

    @classmethod
    def read(cls, line: str) -> Session:
        data = json.loads(line)
        return cls(**{**data, "cases": {case: Judged(**each) for case, each in data["cases"].items()}})


def read(file: Path) -> tuple[dict[str, Any], list[Session]] | None:
    """The host's facts and its sessions; None if there is no file."""
    if not file.exists():
        return None
    first, *lines = file.read_text().splitlines()
    return json.loads(first), [Session.read(line) for line in lines]


def order(seed: int = 1) -> list[str]:
    """The kinds of all sessions, those of the baseline first, those beside load last."""
    drawn = random.Random(seed)
    quiet, beside = (
        [kind for kind, number in WANTED.items() for _ in range(number) if (kind in BESIDE) is loaded]
        for loaded in (False, True)
    )
    drawn.shuffle(quiet)
    drawn.shuffle(beside)
    return [ALONE] * BASELINE_SESSIONS + quiet + beside


def lacking(done: list[Session]) -> list[str]:
    """The kinds of the sessions that lack, in their order."""
    had, found = Counter(session.kind for session in done), []
    for kind in order():
        if had[kind]:
            had[kind] -= 1
        else:
            found.append(kind)
    return found


def forwarder(place: Path, slower: float) -> None:
    """Writes the program that is the workload, but for a forwarder's cost a frame."""
    cost = cost_of(slower)
    place.write_text(f"""#!/bin/sh
# The workload, but a forwarder costs {cost} cycles a frame, whatever its command line says.
for each; do
    shift
    [ "$last" = --cost ] && set -- "$@" {cost} || set -- "$@" "$each"
    last=$each
done
exec "{workload_path()}" "$@"
""")
    place.chmod(0o755)


def run(kind: str, work: Path) -> Session:
    """One session of that kind, with its baselines and runs below ``work``."""
    slower, program = SLOWER.get(kind, 0.0), work / "forward"
    forwarder(program, slower)
    kept, before = work / "baselines" / "all", work / "baselines" / "main"
    argv = [sys.executable, "-m", "pytest", str(CASES), "-p", "no:cacheprovider"]
    argv += ["--icbench-budget", BUDGET, "--icbench-binary", f"forward={program}"]
    argv += ["--icbench-baselines", str(work / "baselines"), "--icbench-reports", str(work / "runs")]
    argv += ["--icbench-compare", "main"] if before.exists() else []
    argv += ["--icbench-save", "all"] if kind not in SLOWER else []
    load, at = os.getloadavg()[0], time.time()
    stress = None
    if kind in BESIDE:
        words = " ".join(BESIDE[kind])
        turns = f"while :; do stress-ng {words} --timeout {STRESS_S} --quiet; sleep {STRESS_S}; done"
        stress = subprocess.Popen(["sh", "-c", turns], start_new_session=True)
    try:
        ended = subprocess.run(argv, cwd=work, capture_output=True, text=True, check=False)
    finally:
        if stress is not None:
            os.killpg(stress.pid, signal.SIGTERM)
            stress.wait()
    took = time.time() - at
    told = re.search(r"^reports: (\S+)", ended.stdout, re.MULTILINE)
    if told is None:
        raise SystemExit(f"the session has no results:\n{ended.stdout[-2000:]}{ended.stderr[-2000:]}")
    if kind not in SLOWER:
        shutil.rmtree(before, ignore_errors=True)
        shutil.copytree(kept, before)
    loads = [round(load, 2), round(os.getloadavg()[0], 2)]
    return Session(kind, round(at, 1), round(took, 1), loads, ended.returncode, judged(Path(told[1])))


def judged(run_directory: Path) -> dict[str, Judged]:
    """The cases of a run, by id."""
    found = {}
    for stored in read_run(run_directory).results:
        result = stored.measurement
        latency = result.dimension == "latency"
        value = result.rtt_p50_ns if latency else result.throughput_pps
        found[result.case] = Judged(
            result.verdict or "",
            result.reason or "",
            rounded(value, 0),
            rounded(result.ratio_to_baseline, 4),
            [each for launch in result.per_launch if (each := p50(launch) if latency else launch.throughput_pps)],
            result.disturbed_launches or 0,
        )
    return found


def p50(launch: Launch) -> float | None:
    return launch.rtt.percentile(0.5) if launch.rtt is not None else None


def rounded(estimate: Estimate | None, digits: int) -> list[float | None] | None:
    """Value, low and high."""
    if estimate is None:
        return None
    return [None if each is None else round(each, digits) for each in (estimate.value, estimate.low, estimate.high)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, nargs="?", default=FILE, help="the record (default: %(default)s)")
    parser.add_argument("--sessions", type=int, help="append so many at most (default: all that lack)")
    parser.add_argument("--work", type=Path, help="where baselines and runs are kept (default: FILE.work)")
    parser.add_argument("--pause", type=float, default=0.0, help="seconds between two sessions (default: %(default)s)")
    options = parser.parse_args()
    file, facts = options.file, host()
    work = (options.work or file.with_suffix(".work")).absolute()
    known = read(file)
    done = known[1] if known is not None and known[0] == facts else []
    if not done:
        shutil.rmtree(work, ignore_errors=True)
        file.write_text(json.dumps(facts) + "\n")
    work.mkdir(parents=True, exist_ok=True)
    for number, kind in enumerate(lacking(done)[: options.sessions]):
        if number:
            time.sleep(options.pause)
        session = run(kind, work)
        with file.open("a") as stream:
            stream.write(json.dumps(asdict(session)) + "\n")
        done.append(session)
        verdicts = ", ".join(f"{verdict} {count}" for verdict, count in counted(session).items())
        told = f"{kind}, {session.seconds:.0f} s, exit status {session.exit}: {verdicts}"
        print(f"session {len(done)}: {told}", flush=True)
    return 0


def counted(session: Session) -> Counter[str]:
    """Its verdicts."""
    return Counter(each.verdict for each in session.cases.values())


if __name__ == "__main__":
    sys.exit(main())
