# SPDX-License-Identifier: BSD-3-Clause
"""The guest's state before and after: VFs, drivers, links, modules, cgroups, mounts, namespaces, huge pages.

Usage: python -m tests.sriov.state save FILE | compare FILE. ``compare`` prints a line a difference and exits with 1.
"""

from __future__ import annotations

import json
import sys
import time
from contextlib import suppress
from pathlib import Path

from tests.host import snapshot

#: What the kernel does in the background may take this long, in seconds.
SETTLE_S = 15.0
_NAMESPACES = ("net", "mnt", "pid", "uts", "ipc", "cgroup")


def take() -> snapshot.Snapshot:
    """What the host tests compare, and what only a machine of one's own can be compared by."""
    return {**snapshot.take(), "kernel module": _modules(), "namespace": _namespaces(), "control group": _groups()}


def _modules() -> dict[str, str]:
    return {line.split()[0]: "" for line in Path("/proc/modules").read_text(encoding="ascii").splitlines()}


def _groups() -> dict[str, str]:
    top = Path("/sys/fs/cgroup")
    found = {str(path): "" for path in top.rglob("*") if path.is_dir()}
    with suppress(OSError):
        found["controllers"] = (top / "cgroup.subtree_control").read_text(encoding="ascii").strip()
    return found


def _namespaces() -> dict[str, str]:
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        for kind in _NAMESPACES:
            with suppress(OSError):
                found[str((process / "ns" / kind).readlink())] = ""
    return found


def main() -> int:
    """Does what the arguments say."""
    command, file = sys.argv[1], Path(sys.argv[2])
    if command == "save":
        file.write_text(json.dumps(take()), encoding="utf-8")
        return 0
    before = json.loads(file.read_text(encoding="utf-8"))
    deadline = time.monotonic() + SETTLE_S
    while (left := snapshot.difference(before, take())) and time.monotonic() < deadline:
        time.sleep(0.5)
    for line in left:
        print(f"icbench-guest: not as before: {line}")
    return int(bool(left))


if __name__ == "__main__":
    sys.exit(main())
