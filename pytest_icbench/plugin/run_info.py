# SPDX-License-Identifier: BSD-3-Clause
"""Gathers what ``run.json`` says of a run: its options, its files, its programs and its host."""

from __future__ import annotations

import hashlib
import platform
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress

import pytest

from pytest_icbench.config.options import Options
from pytest_icbench.host.host_facts import sha256
from pytest_icbench.plugin.items import BENCHMARK, ORDER_SEED, benchmarks, count_judged_cases
from pytest_icbench.plugin.pytest_reports import hide_names
from pytest_icbench.store.run_json import RunInfo
from pytest_icbench.testbed.testbed import Testbed

#: A longer file is replaced by its hash in the facts of a run.
MOST_BYTES = 1_000_000


def gather_info(
    config: pytest.Config, options: Options, items: Sequence[pytest.Item], name: str, testbed: Testbed
) -> RunInfo:
    """Returns the facts of the run of this name. ``items``: those that will run."""
    invocation = config.invocation_params
    identity, treatment = testbed.facts
    return RunInfo(
        run=name,
        started_at=time.time(),
        argv=tuple(hide_names(str(argument), options) for argument in invocation.args),
        directory=str(invocation.dir),
        rootdir=str(config.rootpath),
        options=dict.fromkeys(options.given),
        versions={"pytest": pytest.__version__, "python": platform.python_version()},
        files={path: hide_names(text, options) for path, text in _files(config, options, items)},
        binaries={
            name: {"path": path and str(path), "sha256": path and sha256(path), "version": version}
            for name, (path, version) in testbed.programs.items()
        },
        identity=dict(identity),
        treatment=dict(treatment),
        resumed=options.resume,
        baseline=options.compare,
        must_match=options.must_match,
        order_seed=config.stash.get(ORDER_SEED, None),
        judged=count_judged_cases(benchmarks(items)),
    )


def _files(config: pytest.Config, options: Options, items: Sequence[pytest.Item]) -> Iterable[tuple[str, str]]:
    """Yields path and text of each file that determines the run; for a large one the hash."""
    scenarios = dict.fromkeys(item.path for item in items)
    for path in (*([] if config.inipath is None else [config.inipath]), *scenarios):
        with suppress(OSError):  # it was removed while the tests were collected
            yield str(path), _shown(path.read_bytes())
    limits = [item.stash[BENCHMARK].thresholds.file for item in items]
    for file in (*limits, *options.switch_config.values(), *(candidate.config for candidate in options.candidate)):
        if file is not None:
            yield str(file.path), _shown(file.text.encode())


def _shown(content: bytes) -> str:
    text = content.decode("utf-8", "replace")
    return text if len(content) <= MOST_BYTES else f"sha256:{hashlib.sha256(content).hexdigest()}"
