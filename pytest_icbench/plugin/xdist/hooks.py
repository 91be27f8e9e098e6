# SPDX-License-Identifier: BSD-3-Clause
"""Hooks of xdist in its controller. They are registered only if xdist distributes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import pytest

from pytest_icbench.config.options import Options
from pytest_icbench.errors import UsageError
from pytest_icbench.model.case_id import is_case
from pytest_icbench.plugin.run_files import RunFiles
from pytest_icbench.plugin.usage import usage_errors
from pytest_icbench.plugin.xdist.workers import Workers, prepare, refusal, refuse_rounds, replaces_workers, worker_input


class ControllerSession(Protocol):
    """The part of the session that the hooks need."""

    options: Options
    files: RunFiles

    @property
    def run_name(self) -> str: ...

    @property
    def workers(self) -> Workers: ...

    def worker_ended(self, node: Any) -> None: ...


class ControllerHooks:
    """Spreads cases over the workers of xdist."""

    def __init__(self, config: pytest.Config, session: ControllerSession) -> None:
        self._session = session
        self._given = bool(session.options.given)
        self._benchmarks = False
        self._replaces = replaces_workers(config, given=self._given)

    def pytest_xdist_setupnodes(self, config: pytest.Config, specs: Sequence[Any]) -> None:
        """Checks the hosts and the arguments before any host is connected to."""
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
        node.workerinput.update(worker_input(node, self._session.run_name))

    def pytest_xdist_node_collection_finished(self, node: Any, ids: Sequence[str]) -> None:
        """Refuses rounds, and two workers on one host, before a worker has a test.

        A worker refuses rounds, too. Its controller hears of that after the other workers' collections, or before.
        """
        with usage_errors():
            if any(map(is_case, ids)):
                refuse_rounds(self._session.options)
                self._session.workers.refuse_second(node)

    def pytest_testnodedown(self, node: Any, error: object) -> None:
        """Forgets a worker that has ended. Ends the session if it refused to begin or its host is out of reach."""
        self._session.worker_ended(node)
        if (reason := refusal(node, error)) is not None:
            raise pytest.UsageError(reason)
        if error and self._benchmarks and self._replaces:
            from pytest_icbench.plugin.xdist.ssh import out_of_reach

            if (reason := out_of_reach(node.gateway.spec)) is not None:
                pytest.exit(reason)

    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> Any:
        """Returns the scheduler that sends benchmarks to hosts by their rigs, unless ``--dist`` asks for another."""
        if config.getoption("dist") != "load":
            return None
        from pytest_icbench.plugin.xdist.scheduler import HostScheduling

        return HostScheduling(config, log, replaces=self._replaces)
