# SPDX-License-Identifier: BSD-3-Clause
"""The set-up script refuses in one message, before it changes anything, and resolves the extras of pyproject.toml."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "scripts", tmp_path / "scripts")
    shutil.copy2(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def setup(at: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return subprocess.run(
        (at / "scripts" / "setup.sh",),
        env={**kept, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )


def release(at: Path, text: str) -> str:
    file = at / "os-release"
    file.write_text(text)
    return str(file)


@pytest.mark.parametrize(
    "system", ['ID=fedora\nVERSION_ID=44\nPRETTY_NAME="Fedora 44"\n', "ID=debian\nVERSION_ID=11\n", ""]
)
def test_another_distribution_is_reported_what_is_needed(checkout: Path, system: str) -> None:
    done = setup(checkout, OS_RELEASE=release(checkout, system))
    assert done.returncode == 1
    needs = re.findall(r'^\t"(.+?)\|', (ROOT / "scripts" / "setup" / "packages.sh").read_text(), flags=re.M)
    assert len(needs) > 5
    assert [need for need in needs if need not in done.stderr] == []
    assert not (checkout / ".venv").exists()


def test_a_missing_python_is_one_sentence(checkout: Path) -> None:
    done = setup(checkout, PACKAGES="no", PYTHON=str(checkout / "nowhere"))
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert f"{checkout}/nowhere does not run" in done.stderr


def test_a_python_that_is_too_old_is_one_sentence(checkout: Path) -> None:
    old = checkout / "python3"
    old.write_text("#!/bin/sh\necho 3.9 False\n")
    old.chmod(0o755)
    done = setup(checkout, PACKAGES="no", PYTHON=str(old))
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "Python 3.9" in done.stderr


def test_extras_are_resolved_through_each_other() -> None:
    module = requirements_module()
    found = module.requirements(ROOT / "pyproject.toml", ["dev"])
    names = {re.split(r"[<>=\[]", requirement)[0] for requirement in found}
    assert {"pytest", "pyroute2", "mypy", "ruff", "hypothesis", "scapy", "pytest-html"} <= names
    assert "pytest-icbench" not in names
    assert "lxc" not in names


def test_an_unknown_extra_is_refused() -> None:
    with pytest.raises(KeyError):
        requirements_module().requirements(ROOT / "pyproject.toml", ["nonesuch"])


def requirements_module() -> ModuleType:
    spec = importlib.util.spec_from_file_location("requirements", ROOT / "scripts" / "setup" / "requirements.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
