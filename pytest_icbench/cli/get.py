# SPDX-License-Identifier: BSD-3-Clause
"""``icbench get``: unpacks packages of a switch into a directory of this tool, so that nothing of the host changes.

Apt fetches and checks the packages with their dependencies, down to the C library, as if nothing was installed.
No script of a package is run. The programs are then changed to load the libraries of their tree.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import re
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_icbench.errors import ProvisionError, UsageError
from pytest_icbench.host.process import run as run_command
from pytest_icbench.model.switch_tree import MARK, PREFIX, program_in
from pytest_icbench.model.text_files import MOST_BYTES, open_regular, read_bytes
from pytest_icbench.wording import counted, printable

#: Packages of one version by what is asked for, its main one first, and the switch whose program they have.
_PACKAGES = {
    "ovs": (("openvswitch-switch-dpdk", "openvswitch-switch", "openvswitch-common"), "ovs"),
    "dpdk": (("dpdk-dev",), "testpmd"),
    "vpp": (("vpp", "vpp-plugin-core"), "vpp"),
}
#: Packages besides: DPDK's drivers, which a package with DPDK only recommends, and what changes the programs.
_FURTHER = {"ovs": ("librte-meta-bus", "librte-meta-mempool", "librte-meta-net", "patchelf")}
#: FD.io's repository of releases, and its key. VPP is in no distribution.
_FDIO = "https://packagecloud.io/fdio/release"
_FETCH_S, _TOOL_S, _PROGRESS_S = 3600.0, 120.0, 5.0
_APT_HELPER = "/usr/lib/apt/apt-helper"
_DEBIAN_KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"
_ARMOUR = b"-----BEGIN"
_TARGET = "$(ORIGIN)|$(COMPONENT)|$(CODENAME)|$(REPO_URI)"
#: For the estimate that is printed.
_FETCH_MB_S, _UNPACKED_A_SECOND = 4.0, 10
_LIBRARIES = "usr/lib/x86_64-linux-gnu"
_PATCHELF = "usr/bin/patchelf"
_LOADER = f"{_LIBRARIES}/ld-linux-x86-64.so.2"
#: Directories that are links into /usr. A package may still have files in them.
_MERGED = ("bin", "lib", "lib64", "sbin")
_UNPACK = 'dpkg-deb --fsys-tarfile "$1" | tar -xC "$2" --keep-directory-symlink --no-same-owner --no-same-permissions'
_SUITE, _VERSION = re.compile(r"[a-z]+"), re.compile(r"[0-9][\w.+~-]*", re.ASCII)
_INSTALLED = re.compile(r"^Inst (\S+) \((\S+) ", re.MULTILINE)
_SIZE = re.compile(r"^'.*' \S+ (\d+) ", re.MULTILINE)


def add_to(commands: Any) -> None:
    """Adds the subcommand."""
    command = commands.add_parser(
        "get", help="unpack a switch's packages into a directory of icbench, without installing or starting anything"
    )
    command.add_argument("name", nargs="?", choices=sorted(_PACKAGES), metavar="NAME", help="vpp, ovs or dpdk")
    command.add_argument(
        "what",
        nargs="*",
        metavar="WHAT",
        help="a version or its beginning (26.06), a suite of Debian (trixie), or .deb files, which need no network"
        " (default: the newest version that apt knows here)",
    )
    command.add_argument("--source", metavar="LINE", help="a repository, as a line of apt's sources.list")
    command.add_argument("--key", metavar="FILE", help="the key that signs the repository, a file or a URL")
    command.add_argument("--prefix", metavar="DIR", type=Path, default=PREFIX, help=f"(default: {PREFIX})")
    command.add_argument("--dry-run", action="store_true", help="only say what would be done")
    command.add_argument("--list", action="store_true", help="list what is there")
    command.add_argument("--remove", action="store_true", help="remove NAME, or its versions that begin with VERSION")
    command.set_defaults(command=run)


def run(arguments: argparse.Namespace) -> int:
    """Unpacks, lists or removes. Raises UsageError, and ProvisionError with apt's reason."""
    prefix, version = arguments.prefix.absolute(), " ".join(arguments.what)
    of_files = any(word.endswith(".deb") for word in arguments.what)
    if version and not (of_files or _SUITE.fullmatch(version) or _VERSION.fullmatch(version)):
        raise UsageError(f"get: '{version}' is neither a version nor a suite of Debian nor .deb files")
    if arguments.list:
        for tree in _trees(prefix, arguments.name or "*", version):
            print(printable(f"{tree.name}: {_program(tree)}"))
        return 0
    if arguments.name is None:
        raise UsageError(f"get: name what to get: {', '.join(sorted(_PACKAGES))}")
    if arguments.remove:
        return _remove(prefix, arguments, version)
    _check_place(prefix)
    return _get_files(prefix, arguments) if of_files else _get_packages(prefix, arguments, version)


def _trees(prefix: Path, name: str, version: str = "") -> list[Path]:
    return sorted(path.parent for path in prefix.glob(f"{name}-{version}*/{MARK}"))


def _program(tree: Path) -> Path | None:
    return program_in(_PACKAGES[tree.name.partition("-")[0]][1], tree)


def _remove(prefix: Path, arguments: argparse.Namespace, version: str) -> int:
    trees = _trees(prefix, arguments.name, version)
    if not trees:
        raise UsageError(f"get: {prefix} has no {f'{arguments.name} {version}'.strip()}: icbench get --list shows all")
    for tree in trees:
        print(printable(f"{'would remove' if arguments.dry_run else 'removing'} {tree}"))
        if not arguments.dry_run:
            (tree / MARK).unlink()  # a tree that is half removed is not used
            shutil.rmtree(tree)
    if not arguments.dry_run and not _trees(prefix, "*"):
        shutil.rmtree(prefix / ".apt", ignore_errors=True)
    return 0


def _check_place(prefix: Path) -> None:
    """Raises UsageError if nothing can be unpacked there."""
    if platform.machine() != "x86_64" or shutil.which("dpkg-deb") is None:
        raise UsageError("get: packages are unpacked on Debian and Ubuntu on x86-64 only: install the switch yourself")
    existing = next(path for path in (prefix, *prefix.parents) if path.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK):
        raise UsageError(f"get: {existing} cannot be written: run as root, or name a directory of yours with --prefix")


def _get_files(prefix: Path, arguments: argparse.Namespace) -> int:
    """Unpacks packages that the user names; what they need comes from this host."""
    files = [Path(word) for word in arguments.what]
    versions: dict[str, str] = {}
    for file in files:
        if not file.is_file():
            raise UsageError(f"get: there is no file {file}")
        fields = run_command(["dpkg-deb", "--field", file, "Package", "Version"], timeout_s=_TOOL_S).stdout
        package, version = (line.partition(": ")[2] for line in fields.splitlines())
        versions[package] = version
    main = _PACKAGES[arguments.name][0][0]
    if main not in versions:
        raise UsageError(f"get: none of the files is the package {main}, which has the program of {arguments.name}")
    tree = prefix / _tree_name(arguments.name, versions[main])
    sums = [f"{hashlib.sha256(file.read_bytes()).hexdigest()[:12]} {file.name}" for file in files]
    print(printable(f"unpacking {counted(len(files), 'file')} into {tree}; what they need is taken from this host"))
    print(printable("\n".join(f"  sha256 {line}" for line in sums)), flush=True)
    if arguments.dry_run or _is_there(tree):
        return 0
    with _making(tree) as part:
        _unpack(files, part)
        _localize(part, tree)
        _finish(part, arguments.name, sums)
    return _check(tree, arguments.name)


def _get_packages(prefix: Path, arguments: argparse.Namespace, version: str) -> int:
    """Fetches packages with all that they need, and unpacks them."""
    names = _PACKAGES[arguments.name][0]
    apt = _Apt.prepare(prefix / ".apt" / arguments.name, arguments, version)
    numbered = f"={version}*" if _VERSION.fullmatch(version) else ""
    packages = [*(f"{name}{numbered}" for name in names), *_FURTHER.get(arguments.name, ("patchelf",))]
    chosen = dict(_INSTALLED.findall(apt.run("install", "--simulate", *packages)))
    tree = prefix / _tree_name(arguments.name, chosen[names[0]])
    if _is_there(tree):
        return 0
    fetched = sum(map(int, _SIZE.findall(apt.run("install", "--print-uris", "--yes", *packages)))) / 1e6
    seconds = fetched / _FETCH_MB_S + len(chosen) / _UNPACKED_A_SECOND
    print(
        f"{names[0]} {chosen[names[0]]} and {counted(len(chosen) - 1, 'package')} that it needs, from {apt.origin}:"
        f" {fetched:.1f} MB to fetch, 3 to 4 times that in {tree}, about {max(seconds, 1):.0f} s.\nNothing is installed"
        " or started; a call that is interrupted goes on where it was.",
        flush=True,
    )
    if arguments.dry_run:
        return 0
    with _progress(apt.archives, fetched):
        apt.run("install", "--download-only", "--yes", *packages)
    names_of_files = [f"{name}_{number.replace(':', '%3a')}_*.deb" for name, number in chosen.items()]
    files = [file for name in names_of_files for file in apt.archives.glob(name)]
    with _making(tree) as part:
        _unpack(files, part)
        _localize(part, tree)
        _finish(part, arguments.name, [f"{name} {number}" for name, number in sorted(chosen.items())])
    apt.run("clean")
    return _check(tree, arguments.name)


def _tree_name(name: str, version: str) -> str:
    """Returns ``NAME-VERSION`` without an epoch."""
    return f"{name}-{re.sub(r'[^A-Za-z0-9.+~-]', '_', version.partition(':')[2] or version)}"


def _is_there(tree: Path) -> bool:
    if (tree / MARK).is_file():
        print(printable(f"{tree} is there"))
        return True
    return False


@dataclass(frozen=True, slots=True)
class _Apt:
    """Apt with its own lists, state and cache, for which nothing is installed.

    ``origin``: the repository, for messages.
    """

    root: Path
    options: tuple[str, ...]
    origin: str

    @property
    def archives(self) -> Path:
        return self.root / "cache" / "archives"

    @classmethod
    def prepare(cls, root: Path, arguments: argparse.Namespace, version: str) -> _Apt:
        """Makes apt's directories and reads the lists of the repository. Raises ProvisionError, UsageError."""
        for directory in (root / "lists" / "partial", root / "cache" / "archives" / "partial"):
            directory.mkdir(parents=True, exist_ok=True)
        (root / "status").touch()
        places = {
            "Dir::State": root,
            "Dir::State::Lists": root / "lists",
            "Dir::State::status": root / "status",
            "Dir::Cache": root / "cache",
        }
        added, alone = _source(arguments, version, root)
        if added:
            shown = run_command(["apt-config", "shell", "FILE", "Dir::Etc::SourceList/f"], timeout_s=_TOOL_S).stdout
            own = Path(shown.strip().removeprefix("FILE=").strip("'"))
            lines = [] if alone or not own.is_file() else own.read_text(encoding="utf-8").splitlines()
            (root / "sources.list").write_text("\n".join([*lines, added, ""]), encoding="utf-8")
            places |= {"Dir::Etc::sourcelist": root / "sources.list"}
            places |= {"Dir::Etc::sourceparts": Path(os.devnull)} if alone else {}
        options = (
            *(f"-o{name}={path}" for name, path in places.items()),
            *("-oAPT::Install-Recommends=false", "-oAcquire::Languages=none", "-oDebug::NoLocking=true"),
            *("-oAPT::Architecture=amd64", "-oAPT::Sandbox::User=root"),
        )
        apt = cls(root, options, re.sub(r"^deb |\[.*?\] ", "", added) or "the repositories that apt has on this host")
        print(printable(f"reading the lists of {apt.origin}"), flush=True)
        apt.run("update", "--error-on=any")
        return apt

    def run(self, *words: str, check: bool = True) -> str:
        """Returns the output. Raises ProvisionError with apt's own words."""
        shown = run_command(["apt-get", *self.options, *words], timeout_s=_FETCH_S, check=False)
        if check and shown.returncode != 0:
            lines = [line for line in shown.stderr.splitlines() if line.startswith("E: ")]
            raise ProvisionError("get: apt refuses: " + "; ".join(line[3:] for line in lines or ["(no reason given)"]))
        return shown.stdout


def _source(arguments: argparse.Namespace, version: str, root: Path) -> tuple[str, bool]:
    """Returns a line of ``sources.list`` and whether the host's own are left out. Raises UsageError, ProvisionError."""
    # Apt does not copy what "file:" names into its cache.
    line, key = (arguments.source or "").replace(" file:", " copy:"), arguments.key
    if _SUITE.fullmatch(version) and not line:
        return f"deb [signed-by={_DEBIAN_KEYS}] {_mirror()} {version} main", True
    if arguments.name == "vpp" and not line and _FDIO not in _repositories():
        release = platform.freedesktop_os_release()
        line, key = f"deb {_FDIO}/{release['ID']} {release['VERSION_CODENAME']} main", key or f"{_FDIO}/gpgkey"
    if not line or key is None:
        return line, False
    file = root / "key"
    if "://" in key:
        fetched = run_command([_APT_HELPER, "download-file", key, file], timeout_s=_TOOL_S, check=False)
        if fetched.returncode != 0:
            raise ProvisionError(f"get: the key {key} cannot be fetched: bring it here, and name the file with --key")
    else:
        file.write_bytes(_read_key(Path(key)))
    named = file.rename(root / ("key.asc" if file.read_bytes().startswith(_ARMOUR) else "key.gpg"))
    return re.sub("^deb ", f"deb [signed-by={named}] ", line), False


def _read_key(path: Path) -> bytes:
    """Returns a key; one in text as it was before an editor saved it. Raises UsageError."""
    try:
        text = read_bytes(path)
        with open_regular(path) as file:
            return text if text.startswith(_ARMOUR) else file.read(MOST_BYTES)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise UsageError(f"get: --key: {path} cannot be read ({why})") from None


def _repositories() -> str:
    """Returns origin, component and address of each list of packages that apt has on this host."""
    argv = ["apt-get", "indextargets", "--format", _TARGET, "Created-By: Packages"]
    return run_command(argv, timeout_s=_TOOL_S).stdout


def _mirror() -> str:
    """Returns the address from which apt has Debian. Raises UsageError."""
    for line in _repositories().splitlines():
        origin, component, codename, address = line.split("|")
        if (origin, component) == ("Debian", "main") and "security" not in codename:
            return address
    raise UsageError("get: apt has no repository of Debian on this host: name one with --source")


@contextmanager
def _progress(archives: Path, expected_mb: float) -> Iterator[None]:
    """Prints how much has been fetched, every few seconds."""
    done = threading.Event()

    def show() -> None:
        while not done.wait(_PROGRESS_S):
            there = sum(file.stat().st_size for file in archives.rglob("*.deb*") if file.is_file()) / 1e6
            print(f"fetched {there:.0f} of {expected_mb:.0f} MB", flush=True)

    thread = threading.Thread(target=show, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


@contextmanager
def _making(tree: Path) -> Iterator[Path]:
    """Yields a directory that becomes the tree if the block succeeds, and is removed otherwise."""
    part = tree.with_name(f".{tree.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    try:
        for name in _MERGED:
            (part / "usr" / name).mkdir(parents=True)
            (part / name).symlink_to(f"usr/{name}")
        yield part
        part.rename(tree)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _unpack(files: Sequence[Path], part: Path) -> None:
    for number, file in enumerate(files, 1):
        run_command(["sh", "-c", _UNPACK, "sh", file, part], timeout_s=_TOOL_S)
        if number % 20 == 0 or number == len(files):
            print(f"unpacked {number} of {counted(len(files), 'package')}", flush=True)


def _patchelf(part: Path) -> Callable[..., str | None]:
    """Returns a runner of the tree's or this host's patchelf; the runner returns the output, None for a failure.

    Raises UsageError if there is none.
    """
    loader, own = part / _LOADER, part / _PATCHELF
    if loader.is_file() and own.is_file():
        argv = [str(loader), "--library-path", str(part / _LIBRARIES), str(own)]
    else:
        found = shutil.which("patchelf")
        if found is None:
            raise UsageError("get: patchelf, which lets programs find libraries, is missing: apt install patchelf")
        argv = [found]

    def run_it(*words: str | Path) -> str | None:
        ended = run_command([*argv, *words], timeout_s=_TOOL_S, check=False)
        return None if ended.returncode else ended.stdout.strip()

    return run_it


def _localize(part: Path, tree: Path) -> None:
    """Makes each program, and each library that has a search path, look for libraries in the tree first.

    Programs also get the tree's own loader, if it has one. Raises ProvisionError, UsageError.

    Args:
        part: the tree while it is made.
        tree: its later place.
    """
    patchelf, own = _patchelf(part), (part / _LOADER).resolve()
    path = ":".join(str(tree / place) for place in (_LIBRARIES, "usr/lib"))
    loader = ("--set-interpreter", tree / _LOADER) if own.is_file() else ()
    for file in sorted(part.rglob("*")):
        # Neither the loader nor patchelf, because both run.
        if file.is_symlink() or not file.is_file() or file in (own, part / _PATCHELF):
            continue
        file.chmod(file.stat().st_mode & 0o755)
        with file.open("rb") as content:
            if content.read(4) != b"\x7fELF":
                continue
        # The C library can be executed too.
        if ".so" not in file.name and patchelf("--print-interpreter", file) is not None:
            if patchelf(*loader, "--force-rpath", "--set-rpath", path, file) is None:
                raise ProvisionError(f"get: patchelf cannot change {file.relative_to(part)}")
        elif patchelf("--print-rpath", file):
            patchelf("--set-rpath", path, file)


def _finish(part: Path, name: str, packages: Sequence[str]) -> None:
    """Marks the tree as whole. Raises ProvisionError if it lacks the program."""
    if program_in(_PACKAGES[name][1], part) is None:
        raise ProvisionError(f"get: these packages have no program of {name}: name another version")
    (part / MARK).write_text("\n".join([*packages, ""]), encoding="utf-8")


def _check(tree: Path, name: str) -> int:
    """Prints how the tree is used. Returns 1 if the program lacks libraries, and removes the tree."""
    program = _program(tree)
    shown = run_command(["ldd", str(program)], timeout_s=_TOOL_S, check=False).stdout
    missing = [line.split()[0] for line in shown.splitlines() if line.endswith("not found")]
    if missing:
        shutil.rmtree(tree)
        raise ProvisionError(f"get: {name} needs {', '.join(missing)}, which this host lacks: name its packages too")
    switch, version = _PACKAGES[name][1], tree.name.partition("-")[2]
    print(f"{tree} is ready: used if no other {switch} is installed, else by --icbench-binary {switch}={version}")
    return 0
