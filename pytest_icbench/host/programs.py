# SPDX-License-Identifier: BSD-3-Clause
"""The parts of a program besides its file: its shared libraries, and the package that installed it."""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from pytest_icbench.errors import ProvisionError
from pytest_icbench.host.host_facts import sha256
from pytest_icbench.host.process import run
from pytest_icbench.model.old_version import Program

_TOOL_S = 10.0
_LIBRARY = re.compile(r"(?:=> )?(/\S+) \(0x")
#: DPDK loads its drivers from a directory next to its libraries; programs do not link them.
_DPDK, _DPDK_DRIVERS = "librte_eal.so", "dpdk/pmds-*/*.so*"


def program_at(path: Path | None, version: str | None = None, *, own_libraries: bool = True) -> Program | None:
    """Returns a program as it is now; None without a path.

    Args:
        version: as the program says it.
        own_libraries: whether its libraries are a part of what is tested.
    """
    if path is None:
        return None
    return Program(str(path), sha256(path), libraries(path) if own_libraries else None, package(path), version)


def libraries(path: Path) -> str | None:
    """Returns a digest of a program's shared libraries; None for a script, or a program that has none.

    It is computed once for each file: a session that outlives an upgrade has still mapped the old libraries.
    """
    try:
        return _digest(path, path.stat().st_mtime_ns)
    except OSError:  # it is gone
        return None


@lru_cache
def _digest(path: Path, _mtime_ns: int) -> str | None:
    digests = sorted({digest for file in _libraries(path) if (digest := sha256(file)) is not None})
    return hashlib.sha256("".join(digests).encode()).hexdigest() if digests else None


def _libraries(path: Path) -> Iterator[Path]:
    try:
        shown = run(["ldd", path], timeout_s=_TOOL_S, check=False).stdout
    except ProvisionError:
        return
    for name in _LIBRARY.findall(shown):
        file = Path(name)
        yield file
        if file.name.startswith(_DPDK):
            yield from file.parent.glob(_DPDK_DRIVERS)


@lru_cache
def package(path: Path) -> str | None:
    """Returns the Debian package that installed a file, with its version; None for a file of no package."""
    if shutil.which("dpkg-query") is None:
        return None
    # With /usr merged, a package may know its file by the path of before.
    real = path.resolve()
    for name in dict.fromkeys((real, path, Path("/", *real.parts[2:]))):
        try:
            found = run(["dpkg-query", "--search", name], timeout_s=_TOOL_S, check=False).stdout
            owner = found.partition(": ")[0].partition(",")[0]
            if owner and not owner.startswith("diversion"):
                command = ["dpkg-query", "--show", "--showformat", "${Package} ${Version}", owner]
                return run(command, timeout_s=_TOOL_S, check=False).stdout.strip() or None
        except ProvisionError:
            return None
    return None
