# SPDX-License-Identifier: BSD-3-Clause
"""The root file system that all containers of a session share: directories to mount on, and symlinks into /usr."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pytest_icbench.host.session import HostSession
from pytest_icbench.model.candidate import WORKLOAD

#: The mount points of every container.
_DIRECTORIES = ("usr", "proc", "sys", "dev", "etc", "tmp", "run")
#: Symlinks into /usr if /usr is merged, else directories.
_OUTER = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")


@dataclass(frozen=True, slots=True)
class Skeleton:
    """A root file system.

    Attributes:
        path: its directory, which is mounted read-only.
        binds: host directories by the path at which every container sees them, read-only.
    """

    path: Path
    binds: Mapping[Path, Path]


def skeleton(session: HostSession, program: Path, image: Path | None = None) -> Skeleton:
    """Returns the session's skeleton of an image, built at the first call. It is removed with the session's directory.

    Args:
        program: the workload. Its directory, which holds all its files, is bound if it is outside /usr. So are the
            directories of the workloads that are compared with it.
        image: the root directory from which programs and libraries are; None: this host's.
    """
    name = "rootfs" if image is None else f"rootfs-{hashlib.sha256(bytes(image)).hexdigest()[:8]}"
    path, root = session.dir / name, image or Path("/")
    binds = {Path("/usr"): root / "usr"}
    for name in _DIRECTORIES:
        (path / name).mkdir(parents=True, exist_ok=True)
    for name in _OUTER:
        outer, inner = root / name, path / name
        if outer.is_symlink():
            if not inner.is_symlink():
                inner.symlink_to(outer.readlink())
        elif outer.is_dir():
            binds[Path("/", name)] = outer
    if not (path / "etc/ld.so.cache").exists():
        with suppress(OSError):  # lists libraries outside the default directories, such as /usr/local/lib
            shutil.copyfile(root / "etc/ld.so.cache", path / "etc/ld.so.cache")
    # Servers that drop root's rights, or are told to keep them, look their user up.
    (path / "etc/passwd").write_text("root:x:0:0:root:/tmp:/usr/sbin/nologin\n", encoding="ascii")
    (path / "etc/group").write_text("root:x:0:\n", encoding="ascii")
    # NetPIPE looks the number of TCP up.
    (path / "etc/protocols").write_text("ip 0 IP\ntcp 6 TCP\nudp 17 UDP\n", encoding="ascii")
    programs = [program, *(path for name, path in session.binaries.items() if name.startswith(f"{WORKLOAD}:"))]
    # The target of a symlink may be in another directory.
    for directory in (parent for file in programs for parent in (file.parent, file.resolve().parent)):
        if image is not None or not directory.is_relative_to("/usr"):
            binds.setdefault(directory, directory)
    for bind in binds:
        if not bind.is_relative_to("/usr") or bind == Path("/usr"):
            mount_point(path, bind)
    return Skeleton(path, binds)


def mount_point(root: Path, target: Path) -> None:
    """Creates the directory on which ``target`` is mounted. Below /tmp and /run liblxc does, in the container."""
    if not target.is_relative_to("/tmp") and not target.is_relative_to("/run"):
        (root / target.relative_to("/")).mkdir(parents=True, exist_ok=True)
