# SPDX-License-Identifier: BSD-3-Clause
"""Makes faults of the table in sessions, and checks that each ends as the table says and leaves the host as before."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from pytest_icbench.errors import IcbenchError
from pytest_icbench.store.stored_run import read_run
from tests.host import snapshot
from tests.torture import host, lives
from tests.torture.fault_table import FAULTS, SHORT, Fault
from tests.torture.lives import Life

_SESSION_MAX_S = 60.0
#: How long a launch is and how far into it a fault comes, in seconds.
_LAUNCH_S = 1.0
_INTO_S = 0.4
#: What a session says while another one has the host, and how long that is waited for, in seconds.
_BUSY = re.compile(r"another session|this host is used by")
_OTHERS_S = 60.0
#: Where sessions have their state; gone from the host when none is left.
_SESSIONS = Path("/run/icbench")

#: What the session says of the case that met the fault.
_SENTENCE = re.compile(r"^E +(\S.*)$", re.MULTILINE)

TEST = """
import pytest

SETTINGS = dict(switch={switch!r}, repeats=2, warmup=0.05, drain=0.2, rate="20k", burst=8, reference=False,
                max_duration=1{more})

@pytest.mark.icbench(**SETTINGS, packet_size=128, duration={duration})
def test_meets(icbench):
    icbench.gate(icbench.throughput())

@pytest.mark.icbench(**SETTINGS, packet_size=512, duration=0.5)
def test_follows(icbench):
    icbench.gate(icbench.throughput())
"""


def selected(seed: int, names: str = "", short: bool = False) -> list[Fault]:
    """Returns the faults whose name has a text, in an order drawn by the seed.

    Args:
        short: only those of the short form, in its order.
    """
    if short:
        table = {fault.name: fault for fault in FAULTS}
        return [table[name] for name in SHORT if names in name]
    chosen = [fault for fault in FAULTS if names in fault.name]
    random.Random(seed).shuffle(chosen)
    return chosen


def run(chosen: Sequence[Fault], enough: Callable[[], bool], tell: Callable[[str], None]) -> Iterator[str | None]:
    """Tries faults. Yields None for each that ends as the table says, else the difference."""
    possible = {(life.switch, life.node) for life in lives.lives()}
    with TemporaryDirectory(prefix="torture-") as top:
        for number, fault in enumerate(chosen):
            if enough():
                return
            if (fault.switch, fault.node) not in possible:
                tell(f"{fault.name}: this host cannot run the switch in such a node")
                continue
            directory = Path(top) / f"f{number}"
            directory.mkdir()
            trouble = _met(fault, directory, tell)
            if trouble is not None and _BUSY.search(trouble):
                tell(f"{fault.name}: somebody else has the host, so it is tried again")
                time.sleep(_OTHERS_S)
                trouble = _met(fault, directory, tell)
            yield trouble


def _met(fault: Fault, directory: Path, tell: Callable[[str], None]) -> str | None:
    before = host.take()
    life = Life(fault.name, fault.switch, fault.node, fault.more)
    test = TEST.format(switch=fault.switch, more=fault.more, duration=_LAUNCH_S)
    wrapped: list[str] = []
    if fault.when == "before the session":
        wrapped = ["unshare", "--mount", "sh", "-c", f'{fault.action} && exec "$@"', "sh"]
    point = None if _SESSIONS.exists() or str(_SESSIONS) not in fault.action else _SESSIONS
    process = lives.start(life, directory, before=wrapped, test=test)
    trouble = None
    try:
        if fault.when != "before the session":
            trouble = _act(fault, process)
        status = process.wait(_SESSION_MAX_S)
    except subprocess.TimeoutExpired:
        process.kill()
        status, trouble = process.wait(), "the session does not end"
    finally:
        if process.poll() is None:
            process.kill()
    if point is not None:
        with suppress(OSError):
            point.rmdir()  # the action made it on the host, to mount over it; the session sees only what is mounted
    said = lives.output(directory)
    wrong = [] if trouble is None else [trouble]
    wrong += _judged(fault, status, said)
    wrong += [] if "No space left" in said else _unreadable(directory)
    wrong += host.left_since(before, 8.0)
    if wrong:
        subprocess.run(lives.recovery(), env=lives.environment(), capture_output=True, timeout=60, check=False)
    words = re.search(fault.says, said)
    sentence = _SENTENCE.search(said)
    tell(
        f"{fault.name}: {repr(words[0]) if words and not wrong else 'NOT as the table says'}"
        + (f"; it says: {sentence[1][:300]}" if sentence else "")
    )
    return None if not wrong else f"{fault.name}: {'; '.join(wrong)}\n{said[-3000:]}"


def _unreadable(directory: Path) -> list[str]:
    """Returns why the runs of a session cannot be read."""
    wrong = []
    for path in directory.glob("reports/2*/run.json"):
        try:
            read_run(path.parent)
        except IcbenchError as error:
            wrong.append(f"the run cannot be read: {error}")
    return wrong


def _judged(fault: Fault, status: int, said: str) -> list[str]:
    wrong = []
    expected = {"fails": (1,), "passes": (0,), "refused": (4,), "either": (0, 1), "ended": (2,)}[fault.end]
    if status not in expected:
        wrong.append(f"exit status {status}, not {' or '.join(map(str, expected))}")
    if re.search(fault.says, said) is None:
        wrong.append(f"it does not say '{fault.says}'")
    if "INTERNALERROR" in said or re.search(r"^Traceback \(most recent", said, re.MULTILINE):
        wrong.append("a traceback")
    passes = re.search(r"^PASSED \S*::test_follows", said, re.MULTILINE)
    if status == 1 and fault.end in ("fails", "either") and not fault.stays and passes is None:
        wrong.append("the other case does not pass")
    return wrong


def _act(fault: Fault, process: subprocess.Popen[bytes]) -> str | None:
    """Does the fault's action at its moment. Returns None, or the reason why it could not be done."""
    environment = {**os.environ, "SESSION": str(process.pid)}
    if "$NETNS" in fault.action:  # looked for before a launch, which lasts no longer than that on a busy machine
        found_netns = _netns()
        if not isinstance(found_netns, str):
            return f"the switch has no namespace with two ports: {found_netns}"
        environment["NETNS"] = found_netns
    if fault.when == "in a launch":
        if not _await(
            lambda: _victims(process.pid, "icbench-workload", besides=(" pause", " forward", "dpdk-forward"))
        ):
            return "no launch began"
        time.sleep(_INTO_S)
    victims: list[int] = []

    def found() -> bool:
        # Not the program that is asked for its version before.
        victims[:] = _victims(process.pid, fault.victim, (" --version", " --help")) if fault.victim else [process.pid]
        return bool(victims) and process.poll() is None

    if not _await(lambda: _rig_began(process.pid) and found()):
        return f"there is no {fault.victim}"
    if fault.action.startswith("SIG"):
        with suppress(ProcessLookupError):
            os.kill(victims[0], signal.Signals[fault.action])
        return None
    return _done(fault.action, {**environment, "VICTIM": str(victims[0])})


def _netns() -> str | list[str]:
    """Returns the namespace of a switch, once its bridge has both ports; what there is if that takes too long."""
    names: list[str] = []

    def joined() -> bool:
        names[:] = [path.name for path in Path("/run/netns").glob("icb*-br")]
        links = subprocess.run(
            ["ip", "-n", names[0] if names else "none", "-br", "link", "show", "type", "veth"],
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        )
        return len(links.stdout.splitlines()) >= 2

    return names[0] if _await(joined) else names


def _done(action: str, environment: dict[str, str]) -> str | None:
    """Runs a shell command. Returns None, or why it failed."""
    done = subprocess.run(
        ["sh", "-c", action], env=environment, capture_output=True, text=True, timeout=20, check=False
    )
    return None if done.returncode == 0 else f"the action failed: {done.stderr}"


def _rig_began(session: int) -> bool:
    """Whether a rig is being made, which comes after the examination of the host."""
    for journal in _SESSIONS.glob("*/journal"):
        with suppress(OSError):
            if f'"pid":{session},' in journal.read_text(encoding="utf-8") and any(journal.parent.glob("r*")):
                return True
    return False


def _await(reached: Callable[[], object], timeout_s: float = 30.0) -> bool:
    deadline = time.monotonic() + timeout_s
    while not reached():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True


def _victims(session: int, words: str, besides: tuple[str, ...] = ()) -> list[int]:
    """Returns the processes of sessions with some words in their command line, oldest first, without the harness."""
    pids = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == session:
            continue
        with suppress(OSError):
            line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            program = line.split(" ", 1)[0].rsplit("/", 1)[-1] + " " + line.partition(" ")[2]
            if not program.startswith(words) or any(word in f" {program}" for word in besides):
                continue
            if b"ICBENCH_SESSION=" in (entry / "environ").read_bytes() and not snapshot.elsewhere(int(entry.name)):
                pids.append(int(entry.name))
    return sorted(pids)
