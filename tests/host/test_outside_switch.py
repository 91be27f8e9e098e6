# SPDX-License-Identifier: BSD-3-Clause
"""The example of docs/how-to/adding-a-switch.md as it stands there: a package of its own, installed and run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import outside_switch
from tests.host.node_tools import clean

__all__ = ["clean"]  # fixture

LINES_MAX = 60

pytestmark = [
    pytest.mark.own_host,
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="containers and links need root: run pytest with sudo"),
]


@pytest.fixture(scope="module", autouse=True)
def kernel_has_macvlan() -> None:
    """Tried in a namespace that is gone at once."""
    links = "ip link add v0 type veth peer name v1 && ip link add link v0 name m0 type macvlan mode bridge"
    done = subprocess.run(
        ["unshare", "--net", "sh", "-c", links], capture_output=True, text=True, timeout=20, check=False
    )
    if done.returncode != 0:
        pytest.skip(f"this kernel makes no macvlan ({done.stderr.strip()}): load its module (modprobe macvlan)")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the package in it, made without any network."""
    pytest.importorskip("setuptools", reason="setuptools is missing: pip install setuptools")
    files = outside_switch.files()
    assert sorted(files) == ["icbench_macvlan.py", "pyproject.toml"]
    assert len(files["icbench_macvlan.py"].splitlines()) < LINES_MAX
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("target")
    for name, text in files.items():
        (source / name).write_text(text)
    pip = [sys.executable, "-m", "pip", "install", "--no-index", "--no-deps", "--no-build-isolation"]
    done = subprocess.run([*pip, "--target", target, source], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return target


def run(installed: Path, here: Path, *arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    argv = [sys.executable, "-m", "pytest", "--icbench-switch", "my-macvlan", *arguments]
    done = subprocess.run(argv, cwd=here, env=environment, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-1000:]
    return done.stdout


@pytest.mark.usefixtures("clean")
def test_it_does_what_it_declares(installed: Path, tmp_path: Path) -> None:
    said = run(installed, tmp_path, "--pyargs", "pytest_icbench.conformance", "-m", "not icbench_long", "-q")
    assert " passed" in said
    assert "skipped" not in said


def test_an_environment_with_it_runs_pytest_without_the_plugin(installed: Path, tmp_path: Path) -> None:
    """Both entry points are there; one is blocked."""
    (tmp_path / "test_x.py").write_text("def test_plain(): pass")
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    argv = [sys.executable, "-m", "pytest", "-p", "no:icbench", "-v"]
    done = subprocess.run(argv, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert "icbench-macvlan" in done.stdout
    assert "1 passed" in done.stdout, done.stdout + done.stderr


@pytest.mark.usefixtures("clean")
def test_it_is_measured(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "test_x.py").write_text(
        "import pytest\n"
        "@pytest.mark.icbench(switch='all', repeats=2, duration=0.2, warmup=0.05, drain=0.2, max_duration=1)\n"
        "def test_rate(icbench):\n"
        "    measurement = icbench.throughput()\n"
        "    assert measurement.received > 0\n"
        "    assert icbench.gate(measurement)\n"
    )
    assert "1 passed" in run(installed, tmp_path)
