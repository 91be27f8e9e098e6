# SPDX-License-Identifier: BSD-3-Clause
"""``run.json``, written before the first measurement: how pytest was called, on which host, with which files."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_icbench.model.codec import encode
from pytest_icbench.model.fitness import Fitness
from pytest_icbench.store.run_directory import SCHEMA, parse_record, read_text, replace_file

RUN_FILE = "run.json"


@dataclass(frozen=True, slots=True)
class RunInfo:
    """The environment of a run.

    Attributes:
        run: its name.
        started_at: seconds since the epoch.
        argv: pytest's arguments, as they were given.
        directory: where pytest was called.
        rootdir: the directory that node ids are relative to.
        options: the options and ini values that were set, by the names that the user wrote.
        versions: the versions of pytest, Python and this package.
        files: by path the text of every file that affects results and verdicts: scenarios, limits, ini file,
            configurations of switches; above a megabyte its hash.
        binaries: ``path``, ``sha256`` and ``version`` of ``workload`` and of each switch and candidate (``ovs``,
            ``ovs:new``), also from PATH; null for what is missing.
        identity, treatment: as in a result, where the same for all cases, without facts that only a running switch
            provides; on many testbeds those of the first host that measured.
        hosts: list: ``identity``, ``treatment``, ``versions`` and ``binaries`` of each of several machines; empty for
            one.
        baseline: name of the baseline of the comparison; ``baselines/`` has a copy of it.
        must_match: facts that must match in a comparison.
        resumed: name of the run from which results were taken; null if it resumed no run.
        fitness: whether the host was fit at the start: ``interference`` as in a launch, ``frequency_mhz`` and
            ``frequency_share`` of the slowest CPU, ``controls`` (``case``, ``baseline``, ``ratios``: launches of a
            control link over the baseline's median, ``sessions``: first and ninth decile of its sessions over it),
            ``links`` (``case``, ``switch``, ``launches``: frames per second of links that share no code with paths of
            the other kind), ``waited_s``, ``missing``; null where not examined.
        judged: the number of cases that share the session's error rate.
        order_seed: seed of the random order of the cases; null for that of the files.
    """

    run: str
    started_at: float
    argv: tuple[str, ...]
    directory: str
    rootdir: str
    options: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, Any] = field(default_factory=dict)
    files: dict[str, Any] = field(default_factory=dict)
    binaries: dict[str, Any] = field(default_factory=dict)
    identity: dict[str, Any] = field(default_factory=dict)
    treatment: dict[str, Any] = field(default_factory=dict)
    hosts: tuple[dict[str, Any], ...] = ()
    resumed: str | None = None
    baseline: str | None = None
    must_match: tuple[str, ...] = ()
    fitness: Fitness | None = None
    order_seed: int | None = None
    judged: int = 1


def write_info(run: Path, info: RunInfo, *, replaces: bool = False) -> None:
    """Writes ``run.json``; that of a lost worker of xdist stays unless this ``replaces`` it. Raises ProvisionError."""
    if replaces or not (run / RUN_FILE).exists():
        replace_file(run / RUN_FILE, json.dumps({"schema": SCHEMA, **encode(info)}, allow_nan=False, indent=1) + "\n")


def read_info(run: Path) -> RunInfo | None:
    """Reads ``run.json``; None without the file. Raises UsageError, DamagedData."""
    text = read_text(run / RUN_FILE)
    return None if text is None else parse_record(RunInfo, text, str(run / RUN_FILE))
