# SPDX-License-Identifier: BSD-3-Clause
"""``icbench get`` with packages and a repository that are made here; apt, dpkg-deb and gpg are the host's."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_icbench.cli import get
from pytest_icbench.cli.main import main
from pytest_icbench.config import values
from pytest_icbench.errors import UsageError
from pytest_icbench.model import switch_tree

pytestmark = pytest.mark.skipif(
    not all(map(shutil.which, ("dpkg-deb", "apt-get", "gpg"))), reason="packages are made with dpkg-deb, apt and gpg"
)

VERSION = "26.06-release"
#: What a maintainer's script of each made package would do.
_SCRIPT = '#!/bin/sh\ntouch "{}"\n'


@pytest.fixture(autouse=True)
def patchelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Puts a patchelf first on PATH that writes down its arguments; returns what it has written."""
    calls, tools = tmp_path / "patchelf.txt", tmp_path / "tools"
    tools.mkdir()
    (tools / "patchelf").write_text(f'#!/bin/sh\necho "$@" >>{calls}\n')
    (tools / "patchelf").chmod(0o755)
    monkeypatch.setenv("PATH", str(tools), prepend=":")
    return calls


def deb(directory: Path, name: str, version: str, depends: str = "") -> Path:
    """Makes a package as VPP's are: a program, a library below /lib, and a script that must not run."""
    root = directory / f"{name}.root"
    (root / "DEBIAN").mkdir(parents=True)
    fields = {"Package": name, "Version": version, "Architecture": "amd64", "Maintainer": "x <x@y.z>"}
    fields |= {"Description": "made up"} | ({"Depends": depends} if depends else {})
    (root / "DEBIAN/control").write_text("".join(f"{key}: {value}\n" for key, value in fields.items()))
    (root / "DEBIAN/postinst").write_text(_SCRIPT.format(directory / "script-ran"))
    (root / "DEBIAN/postinst").chmod(0o755)
    if name == "vpp":
        (root / "usr/bin").mkdir(parents=True)
        shutil.copy("/usr/bin/true", root / "usr/bin/vpp")
        (root / "usr/bin/vpp").chmod(0o4755)
    (root / "lib" / name).mkdir(parents=True)
    (root / "lib" / name / "plugin.so").write_bytes(b"no ELF")
    file = directory / f"{name}_{version}_amd64.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "--build", root, file], check=True, capture_output=True)
    shutil.rmtree(root)
    return file


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    (tmp_path / "debs").mkdir()
    return [str(deb(tmp_path / "debs", name, VERSION)) for name in ("vpp", "vpp-plugin-core")]


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Returns a function that makes a repository of versions of VPP, and the words that name it and its key."""
    (tmp_path / "apt.conf").write_text('Dir::Etc::sourcelist "none";\nDir::Etc::sourceparts "/dev/null";\n')
    monkeypatch.setenv("APT_CONFIG", str(tmp_path / "apt.conf"))
    home, place = tmp_path / "gpg", tmp_path / "repository"
    home.mkdir(mode=0o700)
    place.mkdir()

    def gpg(*words: str) -> None:
        subprocess.run(["gpg", "--homedir", home, "--batch", "--quiet", *words], check=True, capture_output=True)

    def make(*versions: str) -> list[str]:
        made = [deb(place, "patchelf", "1")]
        for version in versions:
            made += [deb(place, "vpp", version, "libvppinfra"), deb(place, "vpp-plugin-core", version, "vpp")]
        made.append(deb(place, "libvppinfra", "1"))
        packages = b"\n".join(map(_stanza, made))
        (place / "Packages").write_bytes(packages)
        index = f" {hashlib.sha256(packages).hexdigest()} {len(packages)} Packages\n"
        (place / "Release").write_text(f"Date: Sat, 01 Nov 2025 00:00:00 UTC\nSHA256:\n{index}")
        gpg("--passphrase", "", "--quick-generate-key", "x@y.z", "ed25519", "sign", "never")
        gpg("--armor", "--output", str(tmp_path / "key.asc"), "--export")
        gpg("--clearsign", "--output", str(place / "InRelease"), str(place / "Release"))
        return ["--source", f"deb file:{place} ./", "--key", str(tmp_path / "key.asc")]

    return make


def _stanza(file: Path) -> bytes:
    control = subprocess.run(["dpkg-deb", "--field", file], check=True, capture_output=True).stdout
    content = file.read_bytes()
    rest = f"Filename: ./{file.name}\nSize: {len(content)}\nSHA256: {hashlib.sha256(content).hexdigest()}\n"
    return control + rest.encode()


def test_files_are_unpacked_and_no_script_of_theirs_runs(tmp_path: Path, files: list[str], patchelf: Path) -> None:
    prefix = tmp_path / "prefix"
    assert main(["get", "vpp", *files, "--prefix", str(prefix), "--dry-run"]) == 0
    assert not prefix.exists()
    assert main(["get", "vpp", *files, "--prefix", str(prefix)]) == 0
    tree = prefix / f"vpp-{VERSION}"
    program = tree / "usr/bin/vpp"
    assert program.stat().st_mode & 0o7777 == 0o755
    assert (tree / "lib").readlink() == Path("usr/lib")
    assert (tree / "usr/lib/vpp-plugin-core/plugin.so").is_file()
    assert not (tmp_path / "debs/script-ran").exists()
    assert f"--force-rpath --set-rpath {tree}/usr/lib/x86_64-linux-gnu:{tree}/usr/lib" in patchelf.read_text()
    assert switch_tree.unpacked_tree(program) == tree
    before = patchelf.read_text()
    assert main(["get", "vpp", *files, "--prefix", str(prefix)]) == 0
    assert patchelf.read_text() == before  # it is there


def test_a_signed_repository_gives_several_versions_and_they_are_removed_again(
    tmp_path: Path, repository: Callable[..., list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    common = [*repository("26.02-release", VERSION), "--prefix", str(tmp_path / "p")]
    assert main(["get", "vpp", "--dry-run", *common]) == 0
    assert f"vpp {VERSION} and 3 packages" in capsys.readouterr().out
    assert sorted(path.name for path in (tmp_path / "p").iterdir()) == [".apt"]
    for version in ("26.02", "26.06"):
        assert main(["get", "vpp", version, *common]) == 0
    assert sorted(path.name for path in (tmp_path / "p").glob("vpp-*")) == ["vpp-26.02-release", f"vpp-{VERSION}"]
    assert not list((tmp_path / "p").rglob("*.deb"))
    assert not (tmp_path / "repository/script-ran").exists()
    capsys.readouterr()
    assert main(["get", "vpp", "26.02", "--remove", "--prefix", str(tmp_path / "p")]) == 0
    assert main(["get", "--list", "--prefix", str(tmp_path / "p")]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith(f"vpp-{VERSION}: ")
    assert main(["get", "vpp", "--remove", "--prefix", str(tmp_path / "p")]) == 0
    assert list((tmp_path / "p").iterdir()) == []


def test_a_repository_that_nobody_has_signed_is_refused(
    tmp_path: Path, repository: Callable[..., list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    words = repository(VERSION)
    (tmp_path / "repository/InRelease").unlink()
    assert main(["get", "vpp", *words, "--prefix", str(tmp_path / "p")]) == 1
    assert "is not signed" in capsys.readouterr().err
    assert not list((tmp_path / "p").glob("vpp-*"))


@pytest.mark.parametrize("how", ["as it is", "by Windows", "in binary"])
def test_a_key_is_the_same_however_it_was_saved(tmp_path: Path, how: str) -> None:
    text, key = b"-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nx\n", tmp_path / "key"
    binary = b"\x99\r\n\xff"
    saved = {"as it is": text, "by Windows": b"\xef\xbb\xbf" + text.replace(b"\n", b"\r\n"), "in binary": binary}
    key.write_bytes(saved[how])
    assert get._read_key(key) == (binary if how == "in binary" else text)


@pytest.mark.parametrize(("key", "status"), [("file:///nowhere/key", 1), ("/nowhere/key", 2), ("/dev/zero", 2)])
def test_a_key_that_cannot_be_had_is_named(
    tmp_path: Path, repository: Callable[..., list[str]], capsys: pytest.CaptureFixture[str], key: str, status: int
) -> None:
    words = [*repository(VERSION)[:-1], key]
    assert main(["get", "vpp", *words, "--prefix", str(tmp_path / "p")]) == status
    assert key in capsys.readouterr().err


def test_a_package_that_was_changed_is_refused(
    tmp_path: Path, repository: Callable[..., list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    words = repository(VERSION)
    with (tmp_path / f"repository/vpp_{VERSION}_amd64.deb").open("r+b") as file:
        file.write(b"?")
    assert main(["get", "vpp", *words, "--prefix", str(tmp_path / "p")]) == 1
    assert "apt refuses" in capsys.readouterr().err
    assert not list((tmp_path / "p").glob("vpp-*"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "name what to get"),
        (["vpp", "26.06", "26.02"], "neither a version"),
        (["vpp", "New!"], "neither a version"),
        (["vpp", "gone.deb"], "there is no file gone.deb"),
        (["vpp", "--remove"], "has no vpp"),
    ],
)
def test_what_cannot_be_got_is_refused_in_a_sentence(
    tmp_path: Path, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["get", *words, "--prefix", str(tmp_path / "p")]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "p").exists()


def test_packages_without_the_program_are_refused(tmp_path: Path, files: list[str]) -> None:
    assert main(["get", "vpp", files[1], "--prefix", str(tmp_path / "p")]) == 2
    assert not (tmp_path / "p").exists()


def test_a_program_is_named_by_its_tree_or_by_its_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(switch_tree, "PREFIX", tmp_path / "icbench")
    monkeypatch.setattr(switch_tree, "_INSTALLED", tmp_path)
    names = ("icbench/vpp-26.02-release/usr/bin/vpp", "icbench/vpp-26.10-release/usr/bin/vpp", "vpp/bin/vpp")
    old, new, installed = (tmp_path / name for name in names)
    for path in (old, new, installed):
        path.parent.mkdir(parents=True)
        path.write_text("")
        path.chmod(0o755)
    assert switch_tree.installed_programs("vpp") == [new, old, installed]
    named = {word: values.program("vpp", word, "here", tmp_path) for word in ("26.02", str(tmp_path / "vpp"))}
    assert list(named.values()) == [old, installed]
    with pytest.raises(UsageError, match=r"there is no file .*/27\.02"):
        values.program("vpp", "27.02", "here", tmp_path)
    with pytest.raises(UsageError, match=r"has no program of vpp .*: name the program"):
        values.program("vpp", str(tmp_path / "icbench"), "here", tmp_path)
