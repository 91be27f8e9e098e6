# SPDX-License-Identifier: BSD-3-Clause
"""Sessions of the gate as a CI runs them, each of its own process: what shows whom it accuses, and what it finds.

A session is pytest over the cases of `gate_cases.py`, in rounds as the gate's recipes have them, within five minutes.
A host begins with six that make a baseline. Blocks of eight follow, each in an order of its own: without a change,
alone and beside ``stress-ng``, which is there for twenty seconds of forty, and with a forwarder that is 10 % slower,
alone and beside a busy CPU, or 5 %: another program under the same name, as a new version is. A session without a
change and without load adds to the baseline, as a CI's run of its main branch does. Those beside load do not: they
would widen what the quiet ones are held against.

A session of the baseline has four minutes, since it compares nothing: as much for its cases as those that keep a fifth
back for a second look. There is no option for less. The fewest launches of the cases take 3:09, and in less than five
minutes no suspect finds the time to be measured again, so that nothing could be accused, and nothing be shown.

``--full`` records the gate itself, with the cases and the budget of its recipes, without a slower forwarder.

``python -m validation.pools.gate_sessions`` appends fourteen sessions, an hour, to the record of this host. Each host
has its own, in `gate_records/`, and the claim is about all of them. A record is never begun anew: where the baseline is
lost that its sessions were compared with, ``--new`` begins another one. Whatever else runs on the host meanwhile is
part of what is shown: what others took stands in each session's line.
"""

from __future__ import annotations

import argparse
import hashlib
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
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pytest_icbench.driver.workload.executable import workload_path
from pytest_icbench.errors import IcbenchError
from pytest_icbench.gate.session_values import MOST_SESSIONS
from pytest_icbench.host.facts import identity
from pytest_icbench.model.launch import Launch
from pytest_icbench.stats.quantiles import Estimate, quantile
from pytest_icbench.store.baselines import load as load_baseline
from pytest_icbench.store.read import read_run
from validation.pools.detection import cost_of, host

ROOT = Path(__file__).parents[3]
RECORDS = Path(__file__).with_name("gate_records")
CASES = Path(__file__).with_name("gate_cases.py")
GATE, GATE_BUDGET = ROOT / "scenarios" / "test_gate.py", "9m"
#: Stands in the names of the records of the gate itself.
FULL = "full"
BASELINE, ALONE = "baseline", "same"
#: What a kind of session has beside it, and by how much its forwarder is slower.
BESIDE = {
    "same-beside-cpu": ["--cpu", "1"],
    "same-beside-memory": ["--stream", "1"],
    "slower-10-beside-cpu": ["--cpu", "1"],
}
SLOWER = {"slower-10": 0.10, "slower-10-beside-cpu": 0.10, "slower-5": 0.05}
UNCHANGED = tuple(kind for kind in (ALONE, *BESIDE) if kind not in SLOWER)
BASELINE_SESSIONS = 6
#: Sessions of each kind in a block.
BLOCK = {
    ALONE: 2,
    "same-beside-cpu": 1,
    "same-beside-memory": 1,
    "slower-10": 2,
    "slower-10-beside-cpu": 1,
    "slower-5": 1,
}
BUDGET = {True: "4m", False: "5m"}  # of a session of the baseline, and of any other
ROUNDS = 3
AN_HOUR = BASELINE_SESSIONS + sum(BLOCK.values())
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
    """One session.

    Attributes:
        at, seconds: since the epoch when it began, and what it took.
        load: load average before and after.
        exit: pytest's exit status.
        taken, stolen: share of the measuring CPUs that other processes and the hypervisor took, at most in nine
            launches of ten; None where it is not known.
        commit: that of the sources, by which it was judged; empty outside a repository.
    """

    kind: str
    at: float
    seconds: float
    load: list[float]
    exit: int
    taken: float | None
    stolen: float | None
    commit: str
    cases: dict[str, Judged]

    @classmethod
    def read(cls, line: str) -> Session:
        data = json.loads(line)
        return cls(**{**data, "cases": {case: Judged(**each) for case, each in data["cases"].items()}})


@dataclass(frozen=True)
class Record:
    """The sessions of one host that share a baseline, those of the baseline first."""

    file: Path
    host: dict[str, Any]
    sessions: list[Session]

    @classmethod
    def read(cls, file: Path) -> Record:
        first, *lines = file.read_text().splitlines()
        return cls(file, json.loads(first), [Session.read(line) for line in lines])

    @property
    def work(self) -> Path:
        """Where baselines and runs are."""
        return self.file.with_suffix(".work")

    @property
    def full(self) -> bool:
        """Whether its sessions are the gate itself."""
        return f"-{FULL}-" in self.file.name

    @property
    def later(self) -> list[Session]:
        """The sessions that were held against a whole baseline."""
        return [session for session in self.sessions if session.kind != BASELINE]

    def append(self, session: Session) -> None:
        """Adds a session, and the facts of the host before the first one."""
        if not self.sessions:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            self.file.write_text(json.dumps(self.host) + "\n")
        with self.file.open("a") as stream:
            stream.write(json.dumps(asdict(session)) + "\n")
        self.sessions.append(session)


def records(directory: Path = RECORDS) -> list[Record]:
    """All records, of whatever host."""
    return [Record.read(file) for file in sorted(directory.glob("*.jsonl"))]


def host_digest() -> str:
    """The name of this host's records: a hash of its facts and of its machine id, which is confidential itself."""
    facts = json.dumps([host(), identity()], sort_keys=True)
    return hashlib.sha256(facts.encode()).hexdigest()[:12]


def record_of(directory: Path, digest: str, *, new: bool, full: bool = False) -> Record:
    """The newest record of this host, or a new one. Raises SystemExit for one whose baseline is lost."""
    digest = f"{digest}-{FULL}" if full else digest
    files = sorted(directory.glob(f"{digest}-[0-9]*.jsonl"), key=number_of)
    if files and not new:
        known = Record.read(files[-1])
        check_baseline(known)
        return known
    file = directory / f"{digest}-{number_of(files[-1]) + 1 if files else 1}.jsonl"
    return Record(file, host(), [])


def number_of(file: Path) -> int:
    return int(file.stem.rpartition("-")[2])


def check_baseline(record: Record) -> None:
    """Raises SystemExit if the record's baseline lacks sessions: what follows would be compared with less, or nothing.

    A case whose measurements were INVALID may lack some of them, but not every case.
    """
    saved = sum(session.kind in (BASELINE, ALONE) for session in record.sessions)
    if not saved:
        return
    directory = record.work / "baselines"
    try:
        entries = load_baseline(directory, "main").entries
    except IcbenchError as error:
        found = str(error)
    else:
        most = max((len(entry.sessions) for entry in entries), default=0)
        if most >= min(saved, MOST_SESSIONS):
            return
        found = f"{directory / 'main'} has {most} of {saved} sessions"
    raise SystemExit(f"{record.file.name}: its baseline is lost ({found}); --new begins another record of this host")


def order(seed: str) -> Iterator[str]:
    """The kinds of all sessions without end: those of the baseline, then blocks, each in an order of its own."""
    yield from [BASELINE] * BASELINE_SESSIONS
    drawn = random.Random(seed)
    while True:
        block = [kind for kind, number in BLOCK.items() for _ in range(number)]
        drawn.shuffle(block)
        yield from block


def following(done: Sequence[Session], seed: str, kinds: Sequence[str] = tuple(BLOCK)) -> Iterator[str]:
    """The kinds of the sessions to come, without end: of these kinds, and the baseline's if it is not whole."""
    had = Counter(session.kind for session in done)
    for kind in order(seed):
        if had[kind]:
            had[kind] -= 1
        elif kind == BASELINE or kind in kinds:
            yield kind


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


def command(kind: str, work: Path, *, full: bool = False) -> list[str]:
    """The command of a session, with its baselines and runs below ``work``."""
    argv = [sys.executable, "-m", "pytest", str(GATE if full else CASES), "-p", "no:cacheprovider"]
    argv += [f"--icbench-rounds={ROUNDS}", "--icbench-budget", GATE_BUDGET if full else BUDGET[kind == BASELINE]]
    argv += [] if full else ["--icbench-binary", f"forward={work / 'forward'}"]
    argv += ["--icbench-baselines", str(work / "baselines"), "--icbench-reports", str(work / "runs")]
    argv += ["--icbench-compare", "main"] if kind != BASELINE else []
    argv += ["--icbench-save", "all"] if kind in (BASELINE, ALONE) else []
    return argv


def run(kind: str, work: Path, *, full: bool = False) -> Session:
    """One session of that kind."""
    work.mkdir(parents=True, exist_ok=True)
    forwarder(work / "forward", SLOWER.get(kind, 0.0))
    kept, before = work / "baselines" / "all", work / "baselines" / "main"
    shutil.rmtree(kept, ignore_errors=True)  # what a session that was cut off has saved belongs to no line
    if before.exists():
        shutil.copytree(before, kept)
    load, at = os.getloadavg()[0], time.time()
    stress = None
    if kind in BESIDE:
        words = " ".join(BESIDE[kind])
        turns = f"while :; do stress-ng {words} --timeout {STRESS_S} --quiet; sleep {STRESS_S}; done"
        stress = subprocess.Popen(["sh", "-c", turns], start_new_session=True)
    try:
        ended = subprocess.run(command(kind, work, full=full), cwd=work, capture_output=True, text=True, check=False)
    finally:
        if stress is not None:
            os.killpg(stress.pid, signal.SIGTERM)
            stress.wait()
    took = time.time() - at
    told = re.search(r"^reports: (\S+)", ended.stdout, re.MULTILINE)
    if told is None:
        raise SystemExit(f"the session has no results:\n{ended.stdout[-2000:]}{ended.stderr[-2000:]}")
    if kind in (BASELINE, ALONE):
        shutil.rmtree(before, ignore_errors=True)
        shutil.copytree(kept, before)
    loads = [round(load, 2), round(os.getloadavg()[0], 2)]
    cases, taken, stolen = judged(Path(told[1]))
    return Session(kind, round(at, 1), round(took, 1), loads, ended.returncode, taken, stolen, commit(), cases)


def commit() -> str:
    told = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    return told.stdout.strip()


def judged(run_directory: Path) -> tuple[dict[str, Judged], float | None, float | None]:
    """The cases of a run, by id, and the shares of the measuring CPUs that others and the hypervisor took."""
    found: dict[str, Judged] = {}
    taken: list[float] = []
    stolen: list[float] = []
    for stored in read_run(run_directory).results:
        result = stored.measurement
        latency = result.dimension == "latency"
        value = result.rtt_p50_ns if latency else result.throughput_pps
        for launch in result.per_launch:
            seen = launch.interference
            if seen is not None and seen.cpus:
                taken += [] if seen.taken is None else [seen.taken / seen.cpus]
                stolen += [] if seen.stolen is None else [seen.stolen / seen.cpus]
        found[result.case] = Judged(
            result.verdict or "",
            result.reason or "",
            rounded(value, 0),
            rounded(result.ratio_to_baseline, 4),
            [each for launch in result.per_launch if (each := p50(launch) if latency else launch.throughput_pps)],
            result.disturbed_launches or 0,
        )
    shares = [round(quantile(each, 0.9), 4) if each else None for each in (taken, stolen)]
    return found, shares[0], shares[1]


def p50(launch: Launch) -> float | None:
    return launch.rtt.percentile(0.5) if launch.rtt is not None else None


def rounded(estimate: Estimate | None, digits: int) -> list[float | None] | None:
    """Value, low and high."""
    if estimate is None:
        return None
    return [None if each is None else round(each, digits) for each in (estimate.value, estimate.low, estimate.high)]


def kinds_of(text: str) -> list[str]:
    """Kinds of sessions with commas between. Raises ArgumentTypeError."""
    kinds = [kind for kind in text.split(",") if kind]
    unknown = [kind for kind in kinds if kind not in BLOCK]
    if unknown or not kinds:
        raise argparse.ArgumentTypeError(f"no kind {', '.join(unknown) or repr(text)}: choose from {', '.join(BLOCK)}")
    return kinds


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=AN_HOUR, help="append so many (default: %(default)s, an hour)")
    parser.add_argument(
        "--kinds",
        type=kinds_of,
        metavar="KIND,...",
        help=f"some of {', '.join(BLOCK)} (default: all); the baseline comes first whatever is asked for",
    )
    parser.add_argument("--full", action="store_true", help="the gate itself, ten minutes a session")
    parser.add_argument("--new", action="store_true", help="begin another record of this host, with its own baseline")
    parser.add_argument("--records", type=Path, default=RECORDS, help="where records are (default: %(default)s)")
    parser.add_argument("--pause", type=float, default=0.0, help="seconds between two sessions (default: %(default)s)")
    options = parser.parse_args(arguments)
    kinds = options.kinds or list(UNCHANGED if options.full else BLOCK)
    if options.full and not set(kinds) <= set(UNCHANGED):
        parser.error(f"--full has no slower forwarder: choose --kinds from {', '.join(UNCHANGED)}")
    if any(kind in BESIDE for kind in kinds) and shutil.which("stress-ng") is None:
        parser.error("no stress-ng on PATH: install it, or leave out --kinds with 'beside'")
    record = record_of(options.records.absolute(), host_digest(), new=options.new, full=options.full)
    coming = following(record.sessions, record.file.stem, kinds)
    for number in range(options.sessions):
        if number:
            time.sleep(options.pause)
        session = run(next(coming), record.work, full=record.full)
        record.append(session)
        verdicts = ", ".join(f"{verdict} {count}" for verdict, count in counted(session).items())
        told = f"{session.kind}, {session.seconds:.0f} s, exit status {session.exit}: {verdicts}"
        print(f"{record.file.name}: session {len(record.sessions)}: {told}", flush=True)
    return 0


def counted(session: Session) -> Counter[str]:
    """Its verdicts."""
    return Counter(each.verdict or "no verdict" for each in session.cases.values())


if __name__ == "__main__":
    sys.exit(main())
