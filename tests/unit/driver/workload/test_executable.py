# SPDX-License-Identifier: BSD-3-Clause
"""Where the workload is found: in the package, built in a checkout, or installed while the sources hide it."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import SimpleNamespace

import pytest

from pytest_icbench.driver.workload import executable
from pytest_icbench.errors import WorkloadError

#: Below the place of the package that is imported, and that of the installed one, in the order of preference.
PLACES = (
    "checkout/pytest_icbench/bin/icbench-workload",
    "checkout/build/workload/icbench-workload",
    "site/pytest_icbench/bin/icbench-workload",
)


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As ``python -m pytest`` in a checkout finds them: the sources come first."""
    monkeypatch.delenv(executable.VARIABLE, raising=False)
    monkeypatch.setattr(executable, "files", lambda _name: tmp_path / "checkout" / "pytest_icbench")
    monkeypatch.setattr(executable, "_SOURCES", tmp_path / "checkout" / "pytest_icbench")
    installed = SimpleNamespace(locate_file=(tmp_path / "site").joinpath)
    monkeypatch.setattr(executable, "distribution", lambda _name: installed)


def make(path: Path, mode: int = 0o755) -> Path:
    path.parent.mkdir(parents=True)
    path.touch(mode)
    return path


@pytest.mark.parametrize("place", PLACES)
def test_it_is_found_at_each_place(tmp_path: Path, place: str) -> None:
    made = make(tmp_path / place)
    assert executable.workload_path() == made


def test_the_first_place_wins_and_the_variable_over_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = [make(tmp_path / place) for place in PLACES]
    assert executable.workload_path() == made[0]
    monkeypatch.setenv(executable.VARIABLE, str(made[2]))
    assert executable.workload_path() == made[2]


def test_none_is_a_sentence_with_every_place_and_a_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(WorkloadError) as caught:
        executable.workload_path()
    assert [place for place in PLACES if str(tmp_path / place) not in str(caught.value)] == []
    assert executable.REBUILD in str(caught.value)

    def absent(_name: str) -> None:
        raise PackageNotFoundError

    monkeypatch.setattr(executable, "distribution", absent)
    with pytest.raises(WorkloadError, match=r"is in none of .*checkout"):
        executable.workload_path()


def test_one_that_may_not_be_executed_is_named(tmp_path: Path) -> None:
    path = make(tmp_path / PLACES[2], 0o644)
    with pytest.raises(WorkloadError, match=f"{path} may not be executed"):
        executable.workload_path()
