# SPDX-License-Identifier: BSD-3-Clause
"""The workers of pytest-xdist: one per host, all with the same package, and their results in the controller's run.

xdist leaves ssh to execnet, which calls it plainly and whose errors end pytest with a traceback. So ssh is made to ask
for no password, and each host is asked first which package it has. Each worker is given one case at a time, if possible
of the rig that it has; tests that are no benchmarks are handed out in xdist's order.
"""

from __future__ import annotations

import os
import re
import shlex
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest
from xdist.scheduler import LoadScheduling

from pytest_icbench.config.option_table import TABLE
from pytest_icbench.config.options import Options
from pytest_icbench.errors import ProvisionError, UsageError
from pytest_icbench.host.host_session import RUN_DIR
from pytest_icbench.host.process import run
from pytest_icbench.host.recover import recover
from pytest_icbench.model.case import is_case, rig_group
from pytest_icbench.model.text_files import read_bytes
from pytest_icbench.plugin.pytest_reports import PytestReports, hide_names
from pytest_icbench.plugin.usage import REFUSAL, refuse_rounds, report_errors, usage_errors
from pytest_icbench.store.run_directory import TestRecord
from pytest_icbench.store.transfer import RunMerger
from pytest_icbench.testbed.remote.connection import CONNECT_S, other_package
from pytest_icbench.testbed.remote.ssh_command import OPTIONS, SSH_FAILED, explain
from pytest_icbench.testbed.undo_kinds import UNDO_KINDS
from pytest_icbench.version import package_version
from pytest_icbench.wording import grouped

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController


#: The end of the traceback of a worker that failed before it collected tests.
_USAGE = re.compile(r"^[\w.]*UsageError: (.+)\Z", re.MULTILINE | re.DOTALL)
#: A worker runs a test once it knows the next one: two tests keep it busy, and the rest stays free for other workers.
_AHEAD = 2
#: A lost worker is replaced if ssh reaches its host again within this time.
PATIENCE_S = 5.0
#: The shell's exit status if there is no such Python.
_NO_PYTHON = 127
#: The beginning of the answer: the output of a shell can come before it.
_ANSWER = "icbench-package "
_ASK = (
    "import sys; sys.path[:] = [part for part in sys.path if part]; "
    f"from pytest_icbench.version import package_version; print('{_ANSWER}' + package_version())"
)
_PYTHON_ERROR = re.compile(r"\w+Error: ")
_NO_TESTS = ("venv", "node_modules", "build", "dist", "__pycache__")


def _specs(config: pytest.Config) -> list[str]:
    """Returns the specification of each worker: ``3*popen`` are three."""
    specs: list[str] = []
    for text in config.getvalue("tx") or ():
        number, star, rest = str(text).partition("*")
        specs += [rest] * int(number) if star and number.isdigit() else [str(text)]
    return specs


def replaces_workers(config: pytest.Config, *, given: bool) -> bool:
    """Decides whether xdist replaces lost workers. Called before xdist reads its options.

    To replace a worker, xdist connects to its host again, and ends with a traceback if that fails. So a lost worker is
    not replaced if other hosts can go on, unless the user asks for it. ``given``: whether an option or ini value of
    this plugin was set.
    """
    option = config.option
    if option.maxworkerrestart is not None or option.dist != "load":
        return True
    specs = _specs(config)
    if len(specs) < 2 or not any("ssh=" in spec for spec in specs) or not (given or lead_to_benchmarks(config.args)):
        return True
    option.maxworkerrestart = "0"
    return False


def prepare(config: pytest.Config, specs: Sequence[Any], *, given: bool) -> bool:
    """Checks hosts and arguments before any host is connected to, if benchmarks are going to run there.

    ``given``: whether an option or ini value of this plugin was set. Returns whether benchmarks are going to run there.
    Raises UsageError: ssh does not reach a host, a host has another package, or xdist would misread an argument.
    """
    words = config.invocation_params.args
    files = {row.option for row in TABLE if row.path}
    for option, word in pairwise(words):
        if option in files and Path(word).exists():
            raise UsageError(f"{option} {word}: xdist takes a separate word for a test to copy: {option}={word}")
    if not (given or lead_to_benchmarks(config.args)):
        return False
    check_hosts(specs)
    return True


def plan_here(config: pytest.Config) -> int:
    """Turns distribution off, so that a plan is made on this host. Returns the number of the workers' hosts.

    Raises UsageError: a worker is on this host.
    """
    specs = _specs(config)
    if any(spec == "popen" for spec in specs):
        raise UsageError("--icbench-plan runs nothing, so there is nothing to distribute: leave -n out")
    config.option.dist = "no"
    return len(specs)


def host_key(spec: Any) -> str:
    """Returns the key of a worker's host: the destination of ssh, or the gateway to it, or this host."""
    for name in ("ssh", "vagrant_ssh", "socket", "via"):
        if value := getattr(spec, name, None):
            return f"{name}={value}"
    return "here"


def sends(node: Any) -> bool:
    """Whether a worker has to send its files, since they are not on this host."""
    spec = node.gateway.spec
    return host_key(spec) != "here" or bool(spec.chdir)


def refusal(node: Any, error: object) -> str | None:
    """Returns why a worker that has ended refused to begin, in a sentence that names it; None if it did not refuse."""
    reason = getattr(node, "workeroutput", {}).get(REFUSAL)
    if reason is None and (match := _USAGE.search(str(getattr(error, "formatted", "")).strip())) is not None:
        reason = match[1]
    return None if reason is None else f"worker {node.gateway.id}: {reason}"


def make_worker_input(node: Any, run: str, specs: Sequence[Any]) -> dict[str, Any]:
    """Returns a worker's input: its run, whether it sends its files and shares its host, the package, the hosts."""
    host = host_key(node.gateway.spec)
    each_runs_all = node.config.getoption("dist") == "each"
    return {
        "icbench_run": run,
        "icbench_sends": sends(node),
        "icbench_shares": sum(host_key(spec) == host for spec in specs) > 1,
        "icbench_package": package_version(),
        "icbench_hosts": 1 if each_runs_all else node.workerinput["workercount"],
    }


class Workers:
    """The workers of a run, and the results that they send.

    Args:
        directory: the directory of the run.
        argv: the arguments of pytest, as results may keep them.
        options: the options of the controller.
    """

    def __init__(self, directory: Path, argv: Sequence[str], options: Options) -> None:
        self._merge = RunMerger(directory, argv, options.history, options.must_match)

    def take(self, report: pytest.TestReport) -> bool:
        """Writes the results of a worker that sends into the run's files. Returns whether the report is from one.

        Raises ProvisionError: they cannot be written.
        """
        node = getattr(report, "node", None)
        if node is None or not sends(node):
            return False
        if (sent := getattr(report, "icbench_parcel", None)) is not None:
            self._merge.add(report.nodeid, getattr(report, "icbench", []), sent, f"worker {node.gateway.id}")
        return True

    def note(self, record: TestRecord) -> None:
        """Writes the line of a test of such a worker. Raises ProvisionError."""
        self._merge.note(record)


class Receiver(Protocol):
    """A session that takes reports."""

    def receive(self, report: pytest.TestReport) -> None:
        """Takes a report of a worker."""


class ControllerSession(Protocol):
    """The part of a session that its controller needs."""

    options: Options
    files: PytestReports

    @property
    def run_name(self) -> str: ...

    @property
    def directory(self) -> Path: ...

    @property
    def is_running(self) -> bool: ...

    @property
    def session(self) -> Receiver: ...

    def start(self) -> None:
        """Starts the session, once a worker runs a benchmark."""


class ControllerHooks:
    """Spreads cases over the workers of xdist."""

    def __init__(self, config: pytest.Config, session: ControllerSession) -> None:
        self._config = config
        self._session = session
        self._given = bool(session.options.given)
        self._benchmarks = False
        self._replaces = replaces_workers(config, given=self._given)
        self._workers: Workers | None = None
        self._lost_here = False
        self._specs: Sequence[Any] = ()

    def workers(self) -> Workers:
        """Returns the workers of this controller."""
        if self._workers is None:
            argv = [hide_names(str(word), self._session.options) for word in self._config.invocation_params.args]
            self._workers = Workers(self._session.directory, argv, self._session.options)
        return self._workers

    def pytest_xdist_setupnodes(self, config: pytest.Config, specs: Sequence[Any]) -> None:
        """Checks the hosts and the arguments before any host is connected to."""
        self._specs = specs
        if all(spec.popen and not spec.chdir for spec in specs):
            return
        with usage_errors():
            try:
                self._benchmarks = prepare(config, specs, given=self._given)
            except UsageError:
                self._session.files.drop_unused()
                raise

    def pytest_configure_node(self, node: Any) -> None:
        """Makes every worker write into the controller's run, or send what it has written on another host."""
        node.workerinput.update(make_worker_input(node, self._session.run_name, self._specs))

    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        """Refuses rounds before a worker has a test.

        A worker refuses them, too. Its controller hears of that after the other workers' collections, or before.
        """
        with usage_errors():
            if any(map(is_case, ids)):
                refuse_rounds(self._session.options)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Starts the session with the first benchmark. Sooner, tests would be handed out late to a worker that ends."""
        if not self._session.is_running and is_case(nodeid):
            self._session.start()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Takes the report of a benchmark whose start was lost with its worker; hooks of the session come too late."""
        if not self._session.is_running and is_case(report.nodeid):
            self._session.start()
            self._session.session.receive(report)

    def pytest_testnodedown(self, node: Any, error: object) -> None:
        """Ends the session if a worker refused to begin or its host is out of reach."""
        if self._workers is not None:
            self._lost_here = self._lost_here or (bool(error) and host_key(node.gateway.spec) == "here")
        if (reason := refusal(node, error)) is not None:
            raise pytest.UsageError(reason)
        if not (error and self._benchmarks and self._replaces):
            return
        if (reason := explain_unreachable(node.gateway.spec)) is not None:
            pytest.exit(reason)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """Undoes what a worker that was lost on this host has left, if no successor has done it."""
        # Without a session's directory nothing is left, and the lock is not taken from a session that begins meanwhile.
        if not self._lost_here or os.geteuid() != 0 or not any(path.is_dir() for path in RUN_DIR.glob("*")):
            return
        lines: list[str] = []
        with report_errors(lines.append):
            recovery = recover(RUN_DIR, UNDO_KINDS)
            lines += recovery.sentences() + recovery.failures + recovery.refused
        reporter: Any = self._config.pluginmanager.get_plugin("terminalreporter")
        for line in lines if reporter is not None else ():
            reporter.write_line(f"\nicbench: after a lost worker: {line}")

    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> Any:
        """Returns the scheduler that sends benchmarks to hosts by their rigs, unless ``--dist`` asks for another."""
        if config.getoption("dist") != "load":
            return None
        return HostScheduling(config, log, replaces=self._replaces)


class HostScheduling(LoadScheduling):  # type: ignore[misc]  # xdist has no types
    """Hands out one test at a time: each worker gets tests of the rig that it has, then of one that no worker has.

    So a rig is built on one host, and on a second one only if that were idle otherwise. Since nothing is handed out
    early, all hosts end within the time of a case. ``replaces``: whether xdist replaces a lost worker. If not, it lets
    the remaining workers finish the tests that they were given. So they get all remaining tests then.
    """

    collection: list[str] | None
    pending: list[int]
    node2pending: dict[WorkerController, list[int]]

    def __init__(self, config: Any, log: Any = None, *, replaces: bool = True) -> None:
        super().__init__(config, log)
        self._replaces = replaces
        #: The group of each test by its index; empty if no test is a benchmark.
        self._groups: dict[int, tuple[object, ...] | None] = {}
        self._current: dict[WorkerController, tuple[object, ...] | None] = {}

    def schedule(self) -> None:
        """Hands out the first tests; called again when a worker comes later."""
        collections = list(self.node2collection.values())
        agreed = all(nodeids == collections[0] for nodeids in collections)
        if self.collection is not None or not agreed or not any(is_case(nodeid) for nodeid in collections[0]):
            super().schedule()
            return
        nodeids = collections[0]
        self.collection = nodeids
        self.pending[:] = range(len(nodeids))
        self._groups = {index: rig_group(nodeid) for index, nodeid in enumerate(nodeids)}
        for _ in range(_AHEAD):
            for node in self.nodes:
                self._hand_out(node)
        self._end_idle()

    def check_schedule(self, node: WorkerController, duration: float = 0) -> None:
        """Hands out the next test after one of the node has ended."""
        if not self._groups:
            super().check_schedule(node, duration)
            return
        if node.shutting_down:
            return
        while self.pending and len(self.node2pending[node]) < _AHEAD:
            self._hand_out(node)
        self._end_idle()

    def _end_idle(self) -> None:
        """Shuts down nodes with one test, which then run it. Until then they could take the tests of a lost node."""
        if self.pending:
            return
        for node in self.nodes:
            if len(self.node2pending[node]) < _AHEAD and not node.shutting_down:
                node.shutdown()

    def remove_node(self, node: WorkerController) -> str | None:
        """Removes a worker that has ended. Returns the test that it ran if it was lost."""
        crashed: str | None = super().remove_node(node)
        if self._replaces or (node.shutting_down and crashed is None):
            return crashed
        if self.collection is None:
            pytest.exit(f"worker {node.gateway.id} was lost before the cases were handed out: run it again")
        takers = [other for other in self.nodes if not other.shutting_down]
        while takers and self.pending:
            self._hand_out(min(takers, key=lambda taker: len(self.node2pending[taker])))
        left = len(self.pending)
        self._say(
            f"worker {node.gateway.id} is lost and not replaced: "
            + (
                f"{left} of its tests will not run, the other hosts are done"
                if left
                else "the other hosts have its tests"
            )
        )
        return crashed

    def _say(self, sentence: str) -> None:
        reporter = self.config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            reporter.write_line(f"\n{sentence}")

    def _hand_out(self, node: WorkerController) -> None:
        """Sends the node its next test, if one is pending."""
        if not self.pending:
            return
        index = self.pending.pop(self.pending.index(self._choose(node)))
        self._current[node] = self._groups[index]
        self.node2pending[node].append(index)
        node.send_runtest_some([index])

    def _choose(self, node: WorkerController) -> int:
        """Returns the first pending test of the node's rig, else of the largest group that no other node works on."""
        waiting = grouped(self.pending, self._groups.__getitem__)
        if node in self._current and self._current[node] in waiting:
            return waiting[self._current[node]][0]
        busy = {group for other, group in self._current.items() if other is not node and other in self.node2pending}
        free = [indexes for group, indexes in waiting.items() if group not in busy]
        # Of groups with equally many tests the first.
        return max(free or list(waiting.values()), key=lambda indexes: (len(indexes), -indexes[0]))[0]


def lead_to_benchmarks(arguments: Iterable[str]) -> bool:
    """Whether pytest's arguments lead to benchmarks, as far as a controller, which collects nothing, can tell.

    The ssh of other workers is left alone: it may ask for a password.
    """
    return any(
        "icbench" in argument or any(b"icbench" in _read(file) for file in _sources(argument)) for argument in arguments
    )


def _read(path: Path) -> bytes:
    try:
        return read_bytes(path)
    except (OSError, ValueError):  # no source, so pytest does not read it either
        return b""


def _sources(argument: str) -> Iterator[Path]:
    path = Path(argument.partition("::")[0])
    if path.is_file():
        yield path
    for directory, below, names in os.walk(path):
        below[:] = [name for name in below if not name.startswith(".") and name not in _NO_TESTS]
        yield from (Path(directory, name) for name in names if name.endswith(".py"))


def check_hosts(specs: Sequence[Any]) -> None:
    """Makes execnet's ssh ask for no password, and checks the package of every host.

    Raises UsageError: a host does not answer or has another package. The sentence names the worker, and nothing has
    been copied to any host.
    """
    reached = [spec for spec in specs if spec.ssh]
    for spec in reached:
        spec.ssh = " ".join([*OPTIONS, spec.ssh])  # execnet splits it
    asked = [spec for spec in reached if not spec.via]  # from here
    with ThreadPoolExecutor(max(len(asked), 1)) as pool:
        for answer in [pool.submit(ask, spec) for spec in asked]:
            answer.result()


def ask(spec: Any) -> None:
    """Checks a worker's host. Raises UsageError if ssh does not reach its Python, or that has another package."""
    words = [*(["-F", spec.ssh_config] if spec.ssh_config else []), *spec.ssh.split()]
    python = spec.python or "python"
    try:
        done = run(["ssh", *words, f"{python} -c {shlex.quote(_ASK)}"], timeout_s=CONNECT_S, check=False)
    except ProvisionError:  # it would name the host
        raise _no_way(spec, f"ssh has not connected within {CONNECT_S:g} s: try it by hand") from None
    if done.returncode == SSH_FAILED:
        raise _no_way(spec, explain(done.stderr))
    if done.returncode == _NO_PYTHON:
        raise _no_way(spec, "it has no such Python: name one there with //python=PATH in its --tx")
    theirs = next((line.removeprefix(_ANSWER) for line in done.stdout.splitlines() if line.startswith(_ANSWER)), None)
    last = (done.stderr.strip().splitlines() or [""])[-1]
    why = last if _PYTHON_ERROR.match(last) else "no answer"  # the output of a shell can have the host's name
    if (sentence := other_package(theirs, why, "the Python of --tx")) is not None:
        raise UsageError(f"worker {spec.id}: {sentence}")


def _no_way(spec: Any, why: str) -> UsageError:
    return UsageError(f"worker {spec.id}: no connection to its host: {why}")


def explain_unreachable(spec: Any) -> str | None:
    """Returns why ssh does not reach a worker's host within ``PATIENCE_S``; None if it does, or ssh is not used."""
    if not spec.ssh or spec.via:
        return None
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            ask(spec)
            return None
        except UsageError as error:
            if time.monotonic() >= deadline:
                return str(error)
        time.sleep(1.0)
