# SPDX-License-Identifier: BSD-3-Clause
"""Workers of pytest-xdist: one on a host, the same package on all, their results in one run of the controller's."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from pytest_icbench.config.options import Options
from pytest_icbench.errors import UsageError
from pytest_icbench.store.merge import Merge
from pytest_icbench.store.run import TestRecord
from pytest_icbench.version import package_version

#: Under this name a worker's output has why it refused to begin.
REFUSAL = "icbench_refusal"
#: How the traceback of a worker that did not even come to collecting ends.
_USAGE = re.compile(r"^[\w.]*UsageError: (.+)\Z", re.MULTILINE | re.DOTALL)


def replaces_workers(config: pytest.Config, *, given: bool) -> bool:
    """Whether xdist replaces workers that it loses: one that is alone, unless the user says otherwise.

    xdist connects again to the host of a lost worker, whatever became of it, and ends with a traceback if that fails.
    So where other hosts can go on it is asked not to. Called before it looks at its options.

    Args:
        given: an option or ini value of this plugin was set.
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
    """Before any host is connected to, if benchmarks are going to run there. Returns whether they are.

    Args:
        given: an option or ini value of this plugin was set.

    Raises UsageError for a host that ssh does not get to, or that has another package, and for a word that xdist would
    stumble over.
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
    """A plan of what workers would run is made on this host: distributing is off. How many hosts they are.

    Raises UsageError if they are workers of this one.
    """
    from xdist.workermanage import parse_tx_spec_config

    specs = parse_tx_spec_config(config)
    if any(spec == "popen" for spec in specs):
        raise UsageError("--icbench-plan runs nothing, so there is nothing to distribute: leave -n out")
    config.option.dist = "no"
    return len(specs)


def host_key(spec: Any) -> str:
    """What tells the hosts of two workers apart: ssh's destination, or the gateway that leads there, or this host."""
    for name in ("ssh", "vagrant_ssh", "socket", "via"):
        if value := getattr(spec, name, None):
            return f"{name}={value}"
    return "here"


def sends(node: Any) -> bool:
    """Whether a worker's files are not this host's, so that it has to send them."""
    spec = node.gateway.spec
    return host_key(spec) != "here" or bool(spec.chdir)


def refusal(node: Any, error: object) -> str | None:
    """Why a worker that has ended refused to begin, in a sentence that names it; None if that is not how it ended."""
    reason = getattr(node, "workeroutput", {}).get(REFUSAL)
    if reason is None and (found := _USAGE.search(str(getattr(error, "formatted", "")).strip())) is not None:
        reason = found[1]
    return None if reason is None else f"worker {node.gateway.id}: {reason}"


def worker_input(node: Any, run: str) -> dict[str, Any]:
    """What a worker is told: which run it is part of, whether it has to send its files, which package is here, and how
    many hosts share the cases.
    """
    each_runs_all = node.config.getoption("dist") == "each"
    return {
        "icbench_run": run,
        "icbench_sends": sends(node),
        "icbench_package": package_version(),
        "icbench_hosts": 1 if each_runs_all else node.workerinput["workercount"],
    }


def compare_packages(workerinput: Mapping[str, Any]) -> None:
    """In a worker that has benchmarks. Raises UsageError if its host has another package than the controller's."""
    own, theirs = package_version(), workerinput.get("icbench_package", "an older one")
    if own != theirs:
        raise UsageError(
            f"its host has pytest-icbench {own}, the one where pytest was called {theirs}: install the same"
        )


class Workers:
    """The workers of a run, and what they send.

    Args:
        directory: of the run.
        argv: pytest's arguments, as results may keep them.
        options: of the controller.
    """

    def __init__(self, directory: Path, argv: Sequence[str], options: Options) -> None:
        self._hosts: dict[str, set[str]] = {}
        self._merge = Merge(directory, argv, options.history, options.incomparable)

    def refuse_second(self, node: Any) -> None:
        """A worker has collected benchmarks. Raises UsageError if another one of its host has, too."""
        self._hosts.setdefault(host_key(node.gateway.spec), set()).add(str(node.gateway.id))
        if any(len(workers) > 1 for workers in self._hosts.values()):
            raise UsageError(
                "benchmarks cannot share a host: leave -n out, or give each worker a host of its own (--tx ssh=...)"
            )

    def forget(self, node: Any) -> None:
        """A worker has ended; another one may take its place."""
        self._hosts.get(host_key(node.gateway.spec), set()).discard(str(node.gateway.id))

    def take(self, report: pytest.TestReport) -> bool:
        """Whether the report is of a worker that sends; its results are in the run's files then.

        Raises ProvisionError if they cannot be written.
        """
        node = getattr(report, "node", None)
        if node is None or not sends(node):
            return False
        if (sent := getattr(report, "icbench_parcel", None)) is not None:
            self._merge.add(report.nodeid, getattr(report, "icbench", []), sent)
        return True

    def note(self, record: TestRecord) -> None:
        """A test of such a worker is over. Raises ProvisionError."""
        self._merge.note(record)
