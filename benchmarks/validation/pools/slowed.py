# SPDX-License-Identifier: BSD-3-Clause
"""Sessions over switches that are really slower: whom both methods of the gate find, miss and flag.

A session is pytest of its own over one case. The changes are what a release may bring: further actions in the flows of
Open vSwitch, testpmd that looks up memory for each frame (``noisy``), rules of nftables on a bridge, a debug build of
basicfwd, another build of the workload at both ends. Each comes in steps, and the step 0 changes nothing.

* ``--method pairs``: the changed one beside the installed one (``--icbench-candidate``).
* ``--method sessions``: five sessions without a change make a baseline, and later ones are held against it, where the
  changed one has taken the place of the old one.

``python -m validation.pools.slowed --switches ovs,testpmd --steps 0,1,2 --load compiler --sessions 3`` appends to the
record of this host in `slowed_records/`. ``--load compiler`` runs two loops of gcc at nice 19 meanwhile.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pytest_icbench.model.measurement import Measurement
from pytest_icbench.stats.quantiles import Estimate
from pytest_icbench.store.stored_run import read_run
from validation.facts import host_facts
from validation.pools.filtered_bridge import VARIABLE as RULES

ROOT = Path(__file__).parents[3]
RECORDS = Path(__file__).with_name("slowed_records")
CASES = Path(__file__).with_name("slowed_cases.py")
#: Facts that name a host.
HOST = ("processor", "CPUs", "memory, GiB", "hypervisor", "kernel", "DPDK")
SAVED = 5
METHODS = ("pairs", "sessions")
#: What runs meanwhile: nothing, two loops of gcc, or whatever other people of the host happen to run.
LOADS = ("none", "compiler", "others")
#: CPUs of a cache lie closer, others farther apart, on every machine seen so far.
NEAR_NS = 170
#: Seconds of a case.
CASE_S = 60

STEPS = 3
#: What each step changes; step 0 changes nothing. Actions of the tables of Open vSwitch that a frame passes
#: before NORMAL.
OVS_TABLES = (
    (),
    ("set_field:8->ip_dscp",),
    ("set_field:8->ip_dscp", "set_field:9->nw_ttl", "set_field:9->udp_src", "set_field:9->udp_dst"),
)
#: What testpmd's mode `noisy` does at a random place in a MiB of memory for each frame.
NOISY = ("reads=0", "reads=5", "reads=9")
#: Rules that a frame on the bridge passes.
NFT_RULES = (0, 8, 16)
#: Checks of each frame's buffer in basicfwd's debug build.
CHECKS = (0, 5, 6)
#: Flags of the compiler for the workload.
FLAGS = (
    "",
    "-fsanitize=undefined -fno-sanitize=alignment -fsanitize-undefined-trap-on-error",
    "-fsanitize=undefined -fsanitize-undefined-trap-on-error",
)
SWITCHES = {
    "ovs": "ovs",
    "testpmd": "testpmd",
    "basicfwd": "basicfwd",
    "bridge": "filtered-bridge",
    "endpoint": "workload",
}


@dataclass(frozen=True)
class Change:
    """A change as pytest is reported.

    Attributes:
        what: behind ``SWITCH:slow=``.
        inplace, environment: options and variables that put it in the place of the old one.
    """

    what: str
    inplace: tuple[str, ...] = ()
    environment: Mapping[str, str] | None = None


def change(switch: str, step: int, work: Path, *, place: str = "now") -> Change:
    """Makes what is slower by a step; its files are ``place.*`` below ``work``, over those of another step."""
    file = work / f"{place}-{switch}"
    match switch:
        case "ovs":
            tables = OVS_TABLES[step]
            flows = [
                f"table={place},priority=10,udp,in_port={port},actions={action}goto_table:{place + 1}"
                for place, action in enumerate(f"{action}," for action in tables)
                for port in (1, 2)
            ]
            flows += [f"table={len(tables)},priority=10,in_port={port},actions=NORMAL" for port in (1, 2)]
            file = file.with_suffix(".toml")
            file.write_text(f"flows = {json.dumps(flows)}\n")
            return Change(f"config:{file}", (f"--icbench-switch-config=ovs={file}",))
        case "testpmd":
            noisy = f"--forward-mode=noisy --noisy-lkup-memory=1 --noisy-lkup-num-{NOISY[step]}"
            _script(file, f'exec dpdk-testpmd "$@" {noisy}')
            return Change(str(file), (f"--icbench-binary=testpmd={file}",))
        case "basicfwd":
            _basicfwd(file, CHECKS[step])
            return Change(str(file), (f"--icbench-binary=basicfwd={file}",))
        case "bridge":
            return Change(f"mode:rules{NFT_RULES[step]}", environment={RULES: str(NFT_RULES[step])})
        case _:
            shutil.copy2(_workload(work, step), file)
            return Change(str(file), environment={"ICBENCH_WORKLOAD": str(file)})


def _script(file: Path, line: str) -> None:
    file.write_text(f"#!/bin/sh\n{line}\n")
    file.chmod(0o755)


def _basicfwd(file: Path, checks: int) -> None:
    """Builds basicfwd as the package does, or without optimization and with checks of each frame's buffer."""
    sources = file.parent / "examples"
    shutil.rmtree(sources, ignore_errors=True)
    shutil.copytree("/usr/share/dpdk/examples/skeleton", sources / "skeleton")
    subprocess.run(f"gzip -df {sources}/skeleton/*.gz", shell=True, check=False, stderr=subprocess.DEVNULL)
    source = sources / "skeleton" / "basicfwd.c"
    received = "if (unlikely(nb_rx == 0))\n\t\t\t\tcontinue;\n"
    text = source.read_text()
    if received not in text:
        raise SystemExit(f"{source} has no '{received}'")
    check = f"for (int i = 0; i < {checks} * nb_rx; i++)\n\trte_mbuf_sanity_check(bufs[i % nb_rx], 1);\n"
    source.write_text(text.replace(received, received + check if checks else received))
    compiler = file.with_suffix(".cc")
    _script(compiler, f'exec cc "$@"{" -O0 -g" if checks else ""}')
    out = file.with_suffix(".out")
    environment = {**os.environ, "EXAMPLES": str(sources), "CC": str(compiler)}
    (out / "icbench-basicfwd").unlink(missing_ok=True)
    subprocess.run([ROOT / "scripts" / "build-example.sh", "basicfwd", out], check=True, env=environment)
    shutil.copy2(out / "icbench-basicfwd", file)


def _workload(work: Path, step: int) -> Path:
    """Builds the workload with the flags of a step, once."""
    build = work / f"workload-{step}"
    program = build / "workload" / "icbench-workload"
    if not program.exists():
        tools = Path(sys.executable).parent
        environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "CFLAGS": FLAGS[step]}
        for words in (["setup", str(build), str(ROOT)], ["compile", "-C", str(build)]):
            subprocess.run(["meson", *words], check=True, env=environment, stdout=subprocess.DEVNULL)
    return program


@dataclass(frozen=True)
class Session:
    """One session.

    Attributes:
        step: of the change; 0 is none.
        decision, reason: of the gate; ``no result`` where there was none.
        ratio: changed over old, with its interval's ends.
        pairs: launches of the changed one.
        cycles: of a frame, in the changed and in the old switch; null where it counts none.
        rates: of the changed and of the old one.
        disturbed: launches that other processes disturbed.
        distance_ns: between the CPUs, which is the state of the host; null if it is not known.
    """

    switch: str
    step: int
    method: str
    load: str
    at: float
    seconds: float
    decision: str
    reason: str
    ratio: list[float | None] | None
    pairs: int
    cycles: list[float | None]
    rates: list[float | None]
    disturbed: int
    commit: str
    distance_ns: float | None = None

    @property
    def changed(self) -> str:
        """What was changed, and the state of the host."""
        state = "" if self.distance_ns is None else ", CPUs near" if self.distance_ns < NEAR_NS else ", CPUs far"
        return f"{self.switch}, step {self.step}{state}"


@dataclass(frozen=True)
class Record:
    """The sessions of one host."""

    file: Path
    host: dict[str, Any]
    sessions: list[Session]

    @classmethod
    def read(cls, file: Path) -> Record:
        first, *lines = file.read_text().splitlines()
        return cls(file, json.loads(first), [Session(**json.loads(line)) for line in lines])

    def append(self, session: Session) -> None:
        """Adds a session, and the facts of the host before the first one."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        if not self.file.exists():
            self.file.write_text(json.dumps(self.host) + "\n")
        with self.file.open("a") as stream:
            stream.write(json.dumps(asdict(session)) + "\n")
        self.sessions.append(session)


def records(directory: Path = RECORDS) -> list[Record]:
    """All records, of whatever host."""
    return [Record.read(file) for file in sorted(directory.glob("*.jsonl"))]


@contextmanager
def beside(load: str) -> Iterator[None]:
    """Compiles the workload again and again meanwhile, twice at once, as a host's other jobs do."""
    if load != "compiler":
        yield
        return
    flags = subprocess.run(["pkg-config", "--cflags", "libdpdk"], capture_output=True, text=True, check=True).stdout
    each = "gcc -O2 -c -o /dev/null -D_GNU_SOURCE -DICBENCH_VERSION='\"0\"' -DICBENCH_BUILD='\"0\"'"
    each = f"{each} -I{ROOT}/workload/src {flags.strip()} $f"
    loop = f"while :; do for f in {ROOT}/workload/src/*/*.c; do {each}; done; done"
    jobs = [
        subprocess.Popen(
            ["nice", "-n", "19", "sh", "-c", loop],
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for _ in range(2)
    ]
    try:
        yield
    finally:
        for job in jobs:
            os.killpg(job.pid, signal.SIGTERM)
            job.wait()


def command(switch: str, work: Path, options: Sequence[str], seconds: int) -> list[str]:
    """The command of a session, with its baselines and runs below ``work``."""
    argv = [sys.executable, "-m", "pytest", f"{CASES}::test_{switch}", "-p", "no:cacheprovider"]
    argv += ["-p", "validation.pools.filtered_bridge", f"--icbench-max-duration={seconds}", *options]
    return [*argv, f"--icbench-baselines={work / 'baselines'}", f"--icbench-reports={work / 'runs'}"]


def run(argv: Sequence[str], work: Path, environment: Mapping[str, str] | None = None) -> list[Measurement]:
    """The results of a session."""
    path = f"{ROOT / 'benchmarks'}:{ROOT}"
    variables = {**os.environ, "PYTHONPATH": path, **(environment or {})}
    runs = work / "runs"
    before = set(runs.glob("*Z-*"))
    ended = subprocess.run(argv, cwd=work, capture_output=True, text=True, check=False, env=variables)
    (work / "last.log").write_text(ended.stdout + ended.stderr)
    return [stored.measurement for new in set(runs.glob("*Z-*")) - before for stored in read_run(new).results]


def by_pairs(switch: str, step: int, work: Path, seconds: int) -> list[Measurement]:
    """Measures a change beside what is installed."""
    changed = change(switch, step, work)
    old = change(switch, 0, work, place="old")
    return run(
        command(switch, work, [f"--icbench-candidate={SWITCHES[switch]}:slow={changed.what}", *old.inplace], seconds),
        work,
        old.environment,
    )


def by_sessions(switch: str, step: int, work: Path, seconds: int) -> list[Measurement]:
    """Holds a change against the sessions before, which it saves first if they are not there."""
    baseline = f"{switch}-before"
    for _ in range(SAVED if not (work / "baselines" / baseline).exists() else 0):
        old = change(switch, 0, work)
        saved = [f"--icbench-save={baseline}", *old.inplace]
        run(command(switch, work, saved, seconds), work, old.environment)
    changed = change(switch, step, work)
    compared = [f"--icbench-compare={baseline}", *changed.inplace]
    return run(command(switch, work, compared, seconds), work, changed.environment)


def session(switch: str, step: int, method: str, load: str, work: Path, case_s: int = CASE_S) -> Session:
    """One session."""
    work.mkdir(parents=True, exist_ok=True)
    at = time.time()
    with beside(load):
        if method == "sessions":
            found = by_sessions(switch, step, work, case_s)
        else:
            found = by_pairs(switch, step, work, case_s)
    seconds = round(time.time() - at, 1)
    now = next((each for each in found if each.side_by_side or method == "sessions"), None)
    base = next((each for each in found if each is not now), None)
    if now is None:
        print(f"no result: see {work / 'last.log'}", file=sys.stderr)
    ratio = None
    if now is not None:
        ratio = now.ratio_to_baseline if method == "sessions" else speed(now)
    return Session(
        switch,
        step,
        method,
        load,
        round(at, 1),
        seconds,
        "no result" if now is None else now.decision or now.verdict or "no verdict",
        "" if now is None else now.reason or "",
        rounded(ratio),
        0 if now is None else now.launches,
        [value(each.frames.cycles_per_packet) if each else None for each in (now, base)],
        [value(each.frames.throughput_pps) if each else None for each in (now, base)],
        0 if now is None else now.disturbed_launches or 0,
        commit(),
        None if now is None else value(now.distance_ns),
    )


def speed(now: Measurement) -> Estimate | None:
    """The ratio of speeds to the base; where cycles a frame decide, the reciprocal of theirs."""
    ratio = now.ratio_to_base
    if ratio is None or now.side_by_side is None or now.side_by_side.figure != "cycles_per_packet":
        return ratio
    return Estimate(1 / ratio, ratio.high and 1 / ratio.high, ratio.low and 1 / ratio.low)


def value(number: float | None) -> float | None:
    return None if number is None else round(float(number), 1)


def rounded(estimate: Estimate | None) -> list[float | None] | None:
    """Value, low and high."""
    if estimate is None:
        return None
    return [None if each is None else round(each, 4) for each in (estimate.value, estimate.low, estimate.high)]


def commit() -> str:
    reported = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    return reported.stdout.strip()


def chosen(known: Sequence[str]) -> Any:
    """A reader of some of these with commas between."""

    def read(text: str) -> list[str]:
        asked = text.split(",")
        if unknown := [each for each in asked if each not in known]:
            raise argparse.ArgumentTypeError(f"no {', '.join(unknown)}: choose from {', '.join(known)}")
        return asked

    return read


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--switches", type=chosen(tuple(SWITCHES)), default=list(SWITCHES), metavar="NAME,...")
    steps = [str(step) for step in range(STEPS)]
    parser.add_argument("--steps", type=chosen(steps), default=steps, metavar="N,...")
    parser.add_argument("--method", choices=METHODS, default="pairs")
    parser.add_argument("--load", choices=LOADS, default="none")
    parser.add_argument("--sessions", type=int, default=1, help="of each switch and step (default: %(default)s)")
    parser.add_argument("--seconds", type=int, default=CASE_S, help="of a case in a session (default: %(default)s)")
    parser.add_argument("--record", type=Path, help="the file (default: this host's in slowed_records/)")
    parser.add_argument("--work", type=Path, default=Path("/tmp/icbench-slowed"), help="builds, baselines and runs")
    options = parser.parse_args(arguments)
    facts = {name: fact for name, fact in host_facts().items() if name in HOST}
    name = re.sub(r"\W+", "-", f"{facts['processor']} {facts['kernel']}").strip("-").lower()
    file = (options.record or RECORDS / f"{name}.jsonl").absolute()
    record = Record.read(file) if file.exists() else Record(file, facts, [])
    for _ in range(options.sessions):
        for switch in options.switches:
            for step in map(int, options.steps):
                found = session(switch, step, options.method, options.load, options.work.absolute(), options.seconds)
                record.append(found)
                print(json.dumps(asdict(found)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
