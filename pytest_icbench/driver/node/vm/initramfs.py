# SPDX-License-Identifier: BSD-3-Clause
"""The kernel of a virtual machine, and the initramfs with the workload as its only program."""

from __future__ import annotations

import gzip
import lzma
import os
import re
import stat
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_icbench.errors import Unsupported
from pytest_icbench.host.process import run
from pytest_icbench.host.root import Root
from pytest_icbench.model.text_files import open_regular

OPTION = "--icbench-vm-kernel"
#: The driver by which DPDK takes a device: a machine has no IOMMU.
DPDK_DRIVER = "uio_pci_generic"
#: Modules of the kernel that every machine loads unless they are built in.
MODULES = ("virtio_pci", "virtio_console", "virtio_net", DPDK_DRIVER)
_DIRECTORIES = ("dev", "proc", "sys", "run", "tmp", "var/run", "modules")
_RELEASE = re.compile(rb"\S+")
_LDD_S = 20.0
#: The path of a shared library, or of the loader, in a line of ldd.
_LIBRARY = re.compile(r"(?:=>\s+)?(/\S+)\s+\(0x")
_DEPENDS = re.compile(rb"\0depends=([^\0]*)\0")


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel that a machine boots.

    Attributes:
        image: its bzImage.
        release: as ``uname -r`` prints it.
        modules: directory of its modules; None: it has none, so everything has to be built in.
    """

    image: Path
    release: str
    modules: Path | None

    @classmethod
    def find(cls, given: Path | None, root: Root | None = None) -> Kernel:
        """Returns the given kernel, else the running one's image, else the newest of the host's.

        Raises Unsupported with the remedy if there is none, or the file is no kernel.
        """
        if given is not None:
            return cls.read(given)
        root = root or Root()
        found = sorted(map(root.path, root.glob("/boot/vmlinuz-*")), key=lambda path: path.stat().st_mtime)
        running = [path for path in found if path.name == f"vmlinuz-{os.uname().release}"]
        if not found:
            raise Unsupported(
                f"node vm has no kernel to boot: there is no /boot/vmlinuz-*; name one with {OPTION} FILE (Debian's"
                " package linux-image-cloud-amd64 has one)"
            )
        return cls.read((running or found)[-1])

    @classmethod
    def read(cls, image: Path) -> Kernel:
        """Returns the kernel of a file. Raises Unsupported if it is none."""
        try:
            with open_regular(image) as file:
                release = read_release(file.read(65536))
        except OSError as error:
            raise Unsupported(f"the kernel {image} of node vm cannot be read ({error.strerror})") from None
        if release is None:
            raise Unsupported(f"{image} is no bzImage of Linux on x86-64: name one with {OPTION} FILE")
        places = [base / "lib/modules" / release for base in (image.absolute().parent.parent, Path("/"), Path("/usr"))]
        return cls(image, release, next((place for place in places if place.is_dir()), None))

    def load_order(self, wanted: Sequence[str]) -> list[Path]:
        """Returns the files of the wanted modules and of those they need, in an order for loading.

        Raises Unsupported with the name of a module that the kernel lacks.
        """
        if self.modules is None:
            return []
        listed = self.modules / "modules.builtin"
        built_in = {_module(line) for line in listed.read_text("ascii").splitlines()} if listed.exists() else set()
        files = {_module(path.name): path for path in self.modules.rglob("*.ko*")}
        order: dict[str, Path] = {}
        for name in wanted:
            self._add(name, files, built_in, order)
        return list(order.values())

    def _add(self, name: str, files: dict[str, Path], built_in: set[str], order: dict[str, Path]) -> None:
        if name in order or name in built_in:
            return
        if name not in files:
            raise Unsupported(
                f"the kernel {self.release} of node vm has no module {name}: name another one with {OPTION} FILE"
            )
        for other in parse_needs(plain_module(files[name])):
            self._add(other, files, built_in, order)
        order[name] = files[name]


def read_release(head: bytes) -> str | None:
    """Returns the release in the first 64 KiB of a bzImage; None if it is none (Linux's boot protocol, 2.00)."""
    if len(head) < 0x210 or head[0x202:0x206] != b"HdrS":
        return None
    (offset,) = struct.unpack_from("<H", head, 0x20E)
    match = _RELEASE.match(head[0x200 + offset :].partition(b"\0")[0]) if offset else None
    return None if match is None else match[0].decode("ascii", "replace")


def _module(path: str) -> str:
    return Path(path).name.partition(".ko")[0].replace("-", "_")


def plain_module(path: Path) -> bytes:
    """Returns a module without its compression. Raises Unsupported for one that Python cannot read."""
    with open_regular(path) as file:
        data = file.read()
    if path.suffix == ".xz":
        return lzma.decompress(data)
    if path.suffix == ".gz":
        return gzip.decompress(data)
    if path.suffix != ".ko":
        raise Unsupported(
            f"the module {path} of node vm is compressed in another way than xz and gzip: name another kernel with"
            f" {OPTION} FILE"
        )
    return data


def parse_needs(module: bytes) -> list[str]:
    """Returns the names of the modules that a module needs, from its own description."""
    match = _DEPENDS.search(module)
    return [] if match is None else [name.replace("-", "_") for name in match[1].decode("ascii").split(",") if name]


class Archive:
    """A cpio archive in the format ``newc``, as the kernel unpacks it."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._names: set[str] = set()

    def add(self, name: str, mode: int, data: bytes = b"") -> None:
        """Adds a file or directory by its whole mode, after the directories above it. A known name is ignored."""
        parent = name.rpartition("/")[0]
        if name in self._names:
            return
        if parent:
            self.add(parent, stat.S_IFDIR | 0o755)
        self._names.add(name)
        self._append(name, mode, data)

    def add_file(self, path: Path) -> None:
        """Adds a program or library of this host at its path. A link becomes a file."""
        self.add(str(path).lstrip("/"), stat.S_IFREG | 0o755, path.read_bytes())

    def _append(self, name: str, mode: int, data: bytes) -> None:
        encoded = name.encode() + b"\0"
        # inode, mode, uid, gid, links, mtime, size, device and special device (major, minor), name's length, check
        fields = (len(self._names), mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(encoded), 0)
        header = b"070701" + b"".join(b"%08X" % field for field in fields)
        self._parts += [_padded(header + encoded), _padded(data)]

    def image(self) -> bytes:
        """Returns the whole archive, with its end."""
        self._append("TRAILER!!!", 0, b"")
        return b"".join(self._parts)


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % 4)


def parse_ldd(text: str) -> list[Path]:
    """Returns the paths of a program's libraries and of its loader in the output of ldd."""
    return list(dict.fromkeys(Path(match[1]) for match in map(_LIBRARY.search, text.splitlines()) if match))


def needed_files(program: Path) -> list[Path]:
    """Returns a program with its shared libraries and its loader. Raises ProvisionError if ldd fails."""
    listed = run(["ldd", program], timeout_s=_LDD_S, check=False)
    return [program, *parse_ldd(listed.stdout)]


def build(programs: Iterable[Path], modules: Sequence[Path]) -> bytes:
    """Returns an initramfs.

    Args:
        programs: programs and libraries.
        modules: files of modules, in the order in which they are loaded.
    """
    archive = Archive()
    for name in _DIRECTORIES:
        archive.add(name, stat.S_IFDIR | 0o755)
    for number, path in enumerate(modules):
        archive.add(f"modules/{number:02}-{_module(path.name)}.ko", stat.S_IFREG | 0o644, plain_module(path))
    for path in programs:
        archive.add_file(path)
    return archive.image()
