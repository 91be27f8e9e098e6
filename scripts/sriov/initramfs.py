#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes the guest's initramfs: busybox, ``init``, and the modules that it takes to mount the shares.

Usage: initramfs.py TREE KERNEL INIT OUTPUT. TREE holds busybox and the kernel's modules, with ``modules.dep``.
Standard library only.
"""

from __future__ import annotations

import gzip
import lzma
import stat
import sys
from pathlib import Path

#: What mounts the root; everything else comes from the shares. In the order in which ``init`` loads them.
MODULES = ("virtio_pci", "9pnet_virtio", "9p", "overlay")
_DIRECTORIES = ("bin", "dev", "proc", "sys", "root", "modules")


class Archive:
    """A cpio archive in the format ``newc``."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._count = 0

    def add(self, name: str, mode: int, data: bytes = b"") -> None:
        """A file or directory by its full mode."""
        self._count += 1
        encoded = name.encode() + b"\0"
        # inode, mode, uid, gid, links, mtime, size, device and special device (major, minor), name's length, check
        fields = (self._count, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(encoded), 0)
        header = b"070701" + b"".join(b"%08X" % field for field in fields)
        self._parts += [_padded(header + encoded), _padded(data)]

    def image(self) -> bytes:
        """The archive with its end."""
        self.add("TRAILER!!!", 0)
        return b"".join(self._parts)


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % 4)


def module_name(path: str) -> str:
    """``kernel/fs/9p/9p.ko.xz`` to ``9p``; the kernel's names have no dashes."""
    return Path(path).name.split(".ko")[0].replace("-", "_")


def load_order(dependencies: str, wanted: tuple[str, ...]) -> list[str]:
    """Paths of the wanted modules and of those they need, in an order for loading; what is built in is left out."""
    needs = {}
    for line in dependencies.splitlines():
        path, _, others = line.partition(":")
        needs[module_name(path)] = [path, *others.split()]
    order: dict[str, None] = {}
    for name in wanted:
        # modules.dep names the nearest needs first.
        order.update(dict.fromkeys(reversed(needs.get(name.replace("-", "_"), []))))
    return list(order)


def plain(path: Path) -> bytes:
    """A module without its compression."""
    data = path.read_bytes()
    return lzma.decompress(data) if path.suffix == ".xz" else data


def main() -> int:
    """Builds the image from the arguments."""
    tree, kernel, init, output = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4])
    modules = tree / "usr/lib/modules" / kernel
    archive = Archive()
    for name in _DIRECTORIES:
        archive.add(name, stat.S_IFDIR | 0o755)
    archive.add("bin/busybox", stat.S_IFREG | 0o755, (tree / "usr/bin/busybox").read_bytes())
    archive.add("init", stat.S_IFREG | 0o755, init.read_bytes())
    order = load_order((modules / "modules.dep").read_text(encoding="utf-8"), MODULES)
    for number, path in enumerate(order):
        archive.add(f"modules/{number:02}-{module_name(path)}.ko", stat.S_IFREG | 0o644, plain(modules / path))
    output.write_bytes(gzip.compress(archive.image(), 6))
    return 0


if __name__ == "__main__":
    sys.exit(main())
