# SPDX-License-Identifier: BSD-3-Clause
"""Gathers the facts of a run for ``run.json``: enough to repeat it, to judge it on another host, and to resume it."""

from __future__ import annotations

import hashlib
import platform
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from pytest_icbench.config.options import Options
from pytest_icbench.host.host_facts import sha256
from pytest_icbench.plugin.anonymous import hidden
from pytest_icbench.plugin.items import BENCHMARK, ORDER_SEED, benchmarks, judged_cases
from pytest_icbench.store.run_directory import RunInfo

#: A longer file is replaced by its hash.
MOST_BYTES = 1_000_000


def gather(
    config: pytest.Config,
    options: Options,
    items: Sequence[pytest.Item],
    name: str,
    facts: tuple[Mapping[str, Any], Mapping[str, Any]],
    programs: Mapping[str, tuple[Path | None, str | None]],
) -> RunInfo:
    """Returns the facts of a run.

    Args:
        items: those that will run.
        name: the name of the run.
        facts: identity of the host and treatment, as far as they are the same for all cases.
        programs: path and version of each program that runs, as far as known.
    """
    invocation = config.invocation_params
    identity, treatment = facts
    return RunInfo(
        run=name,
        started_at=time.time(),
        argv=tuple(hidden(str(argument), options) for argument in invocation.args),
        directory=str(invocation.dir),
        rootdir=str(config.rootpath),
        options=dict.fromkeys(options.given),
        versions={"pytest": pytest.__version__, "python": platform.python_version()},
        files={path: hidden(text, options) for path, text in _files(config, options, items)},
        binaries={
            name: {"path": path and str(path), "sha256": path and sha256(path), "version": version}
            for name, (path, version) in programs.items()
        },
        identity=dict(identity),
        treatment=dict(treatment),
        resumed=options.resume,
        baseline=options.compare,
        incomparable=options.incomparable,
        order_seed=config.stash.get(ORDER_SEED, None),
        judged=judged_cases(benchmarks(items)),
    )


def _files(config: pytest.Config, options: Options, items: Sequence[pytest.Item]) -> Iterable[tuple[str, str]]:
    """Yields path and text of each file that determines the run; for a large one the hash."""
    scenarios = dict.fromkeys(item.path for item in items)
    for path in (*([] if config.inipath is None else [config.inipath]), *scenarios):
        with suppress(OSError):  # it was removed while the tests were collected
            yield str(path), _shown(path.read_bytes())
    limits = [item.stash[BENCHMARK].thresholds.file for item in items]
    for file in (*limits, *options.switch_config.values(), *(candidate.config for candidate in options.variant)):
        if file is not None:
            yield str(file.path), _shown(file.text.encode())


def _shown(content: bytes) -> str:
    text = content.decode("utf-8", "replace")
    return text if len(content) <= MOST_BYTES else f"sha256:{hashlib.sha256(content).hexdigest()}"
