# SPDX-License-Identifier: BSD-3-Clause
"""Workers of pytest-xdist, as the controller of a run sees them: one on a host, their results in one run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_icbench.caseids import host_key, sends
from pytest_icbench.errors import UsageError
from pytest_icbench.options import Options
from pytest_icbench.report.bundle import TestRecord
from pytest_icbench.report.merge import Merge


class Workers:
    """Args:
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
