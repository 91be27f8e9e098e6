# SPDX-License-Identifier: BSD-3-Clause
"""What is built from this tree: the wheel and the sdist hold what git knows and nothing else, with and without DPDK."""

from __future__ import annotations

import email
import os
import shutil
import stat
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PACKAGED = ("pytest_icbench", "scenarios")
EXECUTABLE = "pytest_icbench/bin/icbench-workload"
#: Where nothing is asked about the program but what it is linked with: its optimization takes most of a build.
QUICK = ("-Doptimization=0", "-Dfuzz=disabled")
#: Where not even that is asked.
BARE = (*QUICK, "-Ddpdk=disabled", "-Dxdp=disabled")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("git") is None, reason="git is missing: install it"),
]


def git(*arguments: str, at: Path) -> str:
    identity = ("-c", "user.name=test", "-c", "user.email=test@example.org")
    return subprocess.run(("git", *identity, *arguments), cwd=at, check=True, capture_output=True, text=True).stdout


def tracked(at: Path, *paths: str) -> list[str]:
    return git("ls-files", "-z", "--", *paths, at=at).rstrip("\0").split("\0")


def build(hook: str, at: Path, out: Path, *options: str, **environment: str) -> Path:
    """Calls a hook of the build backend as pip does, in a process of its own, with options for Meson's set-up.

    Returns the file it made.
    """
    out.mkdir(parents=True, exist_ok=True)
    script = f"import mesonpy, sys; print(mesonpy.{hook}(sys.argv[1], {{'setup-args': sys.argv[2:]}}))"
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        (sys.executable, "-c", script, str(out), *options),
        cwd=at,
        env={**os.environ, "PATH": path, **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
    return out / done.stdout.splitlines()[-1]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A commit of the tracked files as they stand in the working tree."""
    pytest.importorskip("mesonpy", reason="meson-python is missing: pip install 'pytest-icbench[dev]'")
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout, so there is no list of files to compare with")
    copy = tmp_path_factory.mktemp("checkout")
    for name in tracked(ROOT):
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy / name)
    git("init", "-q", at=copy)
    git("add", "-A", "-f", at=copy)
    git("commit", "-q", "-m", "tree", at=copy)
    # What a session or a test run leaves behind must not get into the wheel.
    for package in PACKAGED:
        for directory in [copy / package, *(d for d in (copy / package).iterdir() if d.is_dir())]:
            (directory / "__pycache__").mkdir()
            (directory / "__pycache__" / "left.cpython-311.pyc").write_bytes(b"left over")
    return copy


@pytest.fixture(scope="module")
def wheel(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("build_wheel", checkout, tmp_path_factory.mktemp("wheel"), *QUICK)


def test_wheel_holds_what_git_knows_and_nothing_else(checkout: Path, wheel: Path) -> None:
    files = tracked(checkout, *PACKAGED)
    expected = {name if name.startswith("pytest_icbench/") else f"pytest_icbench/{name}" for name in files}
    found = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert found == expected | {EXECUTABLE}


def test_wheel_serves_every_later_python_on_this_platform(wheel: Path) -> None:
    python, abi, platform = wheel.stem.split("-")[2:]
    assert (python[:3], abi) == ("cp3", "abi3")
    assert platform.startswith("linux_")


def test_executable_is_executable_and_runs(wheel: Path, tmp_path: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    assert archive.getinfo(EXECUTABLE).external_attr >> 16 & stat.S_IXUSR
    executable = tmp_path / "icbench-workload"
    executable.write_bytes(archive.read(EXECUTABLE))
    executable.chmod(0o755)
    version = subprocess.run((executable, "--version"), check=True, capture_output=True, text=True).stdout
    assert f"icbench-workload {metadata(wheel)['Version']}" in version


def test_the_scenarios_are_found_by_the_name_of_their_package(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    (tmp_path / "work").mkdir()
    argv = ("-m", "pytest", "-p", "pytest_icbench.plugin.hooks", "--collect-only", "-q", "-k", "64B and ovs")
    done = subprocess.run(
        (sys.executable, *argv, "--pyargs", "pytest_icbench.scenarios"),
        cwd=tmp_path / "work",
        env={**os.environ, "PYTHONPATH": str(tmp_path / "site"), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    for test in ("test_demo.py::test_rate[ovs-64B-b32-1vs1-Rmax]", "test_soak.py::"):
        assert test in done.stdout


def test_entry_points_name_modules_of_the_wheel(wheel: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = zipfile.ZipFile(wheel).namelist()
    for target in (*project["entry-points"]["pytest11"].values(), *project["scripts"].values()):
        assert target.partition(":")[0].replace(".", "/") + ".py" in names


def test_metadata_has_every_extra_and_the_licence(wheel: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    data = metadata(wheel)
    assert set(data.get_all("Provides-Extra", [])) == set(project["optional-dependencies"])
    assert data["License-Expression"] == "BSD-3-Clause"
    assert any(name.endswith("licenses/LICENSE") for name in zipfile.ZipFile(wheel).namelist())


def test_core_does_not_require_what_only_extras_bring(wheel: Path) -> None:
    required = [line for line in metadata(wheel).get_all("Requires-Dist", []) if "extra ==" not in line]
    assert {line.split(">")[0].strip() for line in required} == {
        *("MLRsearch", "msgspec", "prometheus-client", "pyroute2", "pytest"),
    }


def test_without_dpdk_the_socket_applications_are_built(checkout: Path, tmp_path: Path) -> None:
    empty = tmp_path / "pkgconfig"
    empty.mkdir()
    made = build("build_wheel", checkout, tmp_path / "out", *QUICK, PKG_CONFIG_LIBDIR=str(empty), PKG_CONFIG_PATH="")
    executable = tmp_path / "icbench-workload"
    executable.write_bytes(zipfile.ZipFile(made).read(EXECUTABLE))
    executable.chmod(0o755)
    linked = subprocess.run(("ldd", executable), check=True, capture_output=True, text=True).stdout
    assert "librte_" not in linked
    usage = subprocess.run((executable, "send", "--help"), capture_output=True, text=True)
    assert usage.returncode == 0
    ends = ("198.18.1.1", "02:00:00:00:01:01", "198.18.1.2", "02:00:00:00:01:02")
    refused = subprocess.run((executable, "dpdk-send", *ends), capture_output=True, text=True)
    assert refused.returncode == 3
    assert "DPDK" in refused.stderr


def test_sdist_holds_the_tree_and_builds(checkout: Path, wheel: Path, tmp_path: Path) -> None:
    sdist = build("build_sdist", checkout, tmp_path / "sdist", *BARE)
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames() if "/" in name}
        assert set(tracked(checkout)) <= names
    subprocess.run(("tar", "-xf", sdist, "-C", tmp_path), check=True)
    made = build("build_wheel", tmp_path / sdist.name.removesuffix(".tar.gz"), tmp_path / "again", *BARE)
    assert sorted(zipfile.ZipFile(made).namelist()) == sorted(zipfile.ZipFile(wheel).namelist())


def metadata(wheel: Path) -> email.message.Message:
    archive = zipfile.ZipFile(wheel)
    name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
    return email.message_from_bytes(archive.read(name))
