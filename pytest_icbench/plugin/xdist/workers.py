# SPDX-License-Identifier: BSD-3-Clause
"""The workers of pytest-xdist: one per host, all with the same package, and their results in the controller's run."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from pytest_icbench.config.options import Options
from pytest_icbench.errors import UsageError
from pytest_icbench.store.run_directory import TestRecord
from pytest_icbench.store.transfer import RunMerger
from pytest_icbench.version import package_version

#: The key of a worker's output with the reason why it refused to begin.
REFUSAL = "icbench_refusal"
#: The end of the traceback of a worker that failed before it collected tests.
_USAGE = re.compile(r"^[\w.]*UsageError: (.+)\Z", re.MULTILINE | re.DOTALL)


def replaces_workers(config: pytest.Config, *, given: bool) -> bool:
    """Decides whether xdist replaces workers that it loses, before it reads its options.

    xdist connects again to the host of a lost worker, and ends with a traceback if that fails. So it replaces none
    if there are other hosts that can go on, unless the user says otherwise.

    Args:
        given: whether an option or ini value of this plugin was set.
    """
    from xdist.workermanage import parse_tx_spec_config

    from pytest_icbench.plugin.xdist import ssh

    option = config.option
    if option.maxworkerrestart is not None or option.dist != "load":
        return True
    specs = parse_tx_spec_config(config)
    if len(specs) < 2 or not any("ssh=" in spec for spec in specs) or not (given or ssh.about_benchmarks(config.args)):
        return True
    option.maxworkerrestart = "0"
    return False


def prepare(config: pytest.Config, specs: Sequence[Any], *, given: bool) -> bool:
    """Checks hosts and arguments before any host is connected to, if benchmarks are going to run there.

    Args:
        specs: the specifications of the workers.
        given: whether an option or ini value of this plugin was set.

    Returns:
        Whether benchmarks are going to run there.

    Raises:
        UsageError: ssh does not reach a host, a host has another package, or xdist would misread an argument.
    """
    from pytest_icbench.config.option_table import TABLE
    from pytest_icbench.plugin.xdist import ssh

    words = config.invocation_params.args
    files = {row.option for row in TABLE if row.path}
    for option, word in pairwise(words):
        if option in files and Path(word).exists():
            raise UsageError(f"{option} {word}: xdist takes a word of its own for a test to copy: {option}={word}")
    if not (given or ssh.about_benchmarks(config.args)):
        return False
    ssh.prepare(specs)
    return True


def plan_here(config: pytest.Config) -> int:
    """Turns distribution off, so that a plan is made on this host. Returns the number of the workers' hosts.

    Raises:
        UsageError: a worker is on this host.
    """
    from xdist.workermanage import parse_tx_spec_config

    specs = parse_tx_spec_config(config)
    if any(spec == "popen" for spec in specs):
        raise UsageError("--icbench-plan runs nothing, so there is nothing to distribute: leave -n out")
    config.option.dist = "no"
    return len(specs)


def host_key(spec: Any) -> str:
    """Returns what tells the hosts of workers apart: the destination of ssh, or the gateway to it, or this host."""
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


def worker_input(node: Any, run: str) -> dict[str, Any]:
    """Returns the input of a worker: its run, whether it sends its files, the package here, and the number of hosts."""
    each_runs_all = node.config.getoption("dist") == "each"
    return {
        "icbench_run": run,
        "icbench_sends": sends(node),
        "icbench_package": package_version(),
        "icbench_hosts": 1 if each_runs_all else node.workerinput["workercount"],
    }


def refuse_rounds(options: Options) -> None:
    """Raises UsageError for cases that are to be measured in rounds and were given to workers."""
    if options.rounds > 1:
        raise UsageError("--icbench-rounds: a round has all cases, but workers of xdist are given one each; drop -n")


def compare_packages(workerinput: Mapping[str, Any]) -> None:
    """Compares packages in a worker that has benchmarks. Raises UsageError if its controller has another one."""
    installed, expected = package_version(), workerinput.get("icbench_package", "an older one")
    if installed != expected:
        raise UsageError(
            f"its host has pytest-icbench {installed}, the one where pytest was called {expected}: install the same"
        )


class Workers:
    """The workers of a run, and the results that they send.

    Args:
        directory: the directory of the run.
        argv: the arguments of pytest, as results may keep them.
        options: the options of the controller.
    """

    def __init__(self, directory: Path, argv: Sequence[str], options: Options) -> None:
        self._hosts: dict[str, set[str]] = {}
        self._merge = RunMerger(directory, argv, options.history, options.incomparable)

    def refuse_second(self, node: Any) -> None:
        """Registers a worker that has collected benchmarks. Raises UsageError if its host has two of them."""
        self._hosts.setdefault(host_key(node.gateway.spec), set()).add(str(node.gateway.id))
        if any(len(workers) > 1 for workers in self._hosts.values()):
            raise UsageError(
                "benchmarks cannot share a host: leave -n out, or give each worker a host of its own (--tx ssh=...)"
            )

    def forget(self, node: Any) -> None:
        """Forgets a worker that has ended: another one may take its place."""
        self._hosts.get(host_key(node.gateway.spec), set()).discard(str(node.gateway.id))

    def take(self, report: pytest.TestReport) -> bool:
        """Writes the results of a worker that sends into the run's files. Returns whether the report is from one.

        Raises:
            ProvisionError: they cannot be written.
        """
        node = getattr(report, "node", None)
        if node is None or not sends(node):
            return False
        if (sent := getattr(report, "icbench_parcel", None)) is not None:
            self._merge.add(report.nodeid, getattr(report, "icbench", []), sent)
        return True

    def note(self, record: TestRecord) -> None:
        """Writes the line of a test of such a worker. Raises ProvisionError."""
        self._merge.note(record)
