# SPDX-License-Identifier: BSD-3-Clause
"""The ssh of pytest-xdist's workers: it asks for no password, and checks first which package each host has.

xdist leaves ssh to execnet, which calls it plainly and whose errors end pytest with a traceback.
"""

from __future__ import annotations

import os
import re
import shlex
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from pytest_icbench.errors import ProvisionError, UsageError
from pytest_icbench.host.process import run
from pytest_icbench.model.text_files import read_bytes
from pytest_icbench.testbed.remote.connection import CONNECT_S, other_package
from pytest_icbench.testbed.remote.ssh_command import OPTIONS, SSH_FAILED, explain

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


def prepare(specs: Sequence[Any]) -> None:
    """Makes execnet's ssh ask for no password, and checks the package of every host.

    Args:
        specs: the specifications of xdist's workers.

    Raises:
        UsageError: a host does not answer or has another package. The sentence names the worker, and nothing has been
            copied to any host.
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
        raise _no_way(spec, f"ssh has not got there within {CONNECT_S:g} s: see that it does by hand") from None
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
