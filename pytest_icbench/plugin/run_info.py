# SPDX-License-Identifier: BSD-3-Clause
"""How this run is made, as ``run.json`` keeps it: enough to repeat it, to judge it elsewhere, and to resume it."""

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
from pytest_icbench.gate.thresholds import FILE_NAME
from pytest_icbench.plugin.anonymous import hidden
from pytest_icbench.store.run import RunInfo

#: A file that bears on a run and is longer is named by its hash alone.
MOST_BYTES = 1_000_000


def gather(
    config: pytest.Config,
    options: Options,
    items: Sequence[pytest.Item],
    name: str,
    facts: tuple[Mapping[str, Any], Mapping[str, Any]],
    programs: Mapping[str, tuple[Path | None, str | None]],
) -> RunInfo:
    """Args:
    items: those that will run.
    name: of the run.
    facts: identity of the host and treatment, as far as they are the same for all cases.
    programs: path and version of what runs, as far as known.
    """
    called = config.invocation_params
    identity, treatment = facts
    return RunInfo(
        run=name,
        started_at=time.time(),
        argv=tuple(hidden(str(each), options) for each in called.args),
        directory=str(called.dir),
        rootdir=str(config.rootpath),
        options=dict.fromkeys(options.given),
        versions={"pytest": pytest.__version__, "python": platform.python_version()},
        files={path: hidden(text, options) for path, text in _texts(_files(config, options, items)).items()},
        binaries={
            name: {"path": path and str(path), "sha256": path and _hash(path), "version": version}
            for name, (path, version) in programs.items()
        },
        identity=dict(identity),
        treatment=dict(treatment),
        resumed=options.resume,
        baseline=options.compare,
        incomparable=options.incomparable,
    )


def _files(config: pytest.Config, options: Options, items: Sequence[pytest.Item]) -> Iterable[Path]:
    if config.inipath is not None:
        yield config.inipath
    scenarios = dict.fromkeys(item.path for item in items)
    yield from scenarios
    if options.thresholds is not None:
        yield options.thresholds
    else:
        yield from dict.fromkeys(path.parent / FILE_NAME for path in scenarios)
    yield from options.switch_config.values()
    yield from (each.path for each in options.variant if each.kind == "config")


def _texts(paths: Iterable[Path]) -> dict[str, str]:
    found: dict[str, str] = {}
    for path in paths:
        with suppress(OSError):  # there is none: limits are optional
            content = path.read_bytes()
            text = content.decode("utf-8", "replace")
            found[str(path)] = text if len(content) <= MOST_BYTES else f"sha256:{hashlib.sha256(content).hexdigest()}"
    return found


def _hash(path: Path) -> str | None:
    with suppress(OSError), path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
    return None
