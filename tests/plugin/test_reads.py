# SPDX-License-Identifier: BSD-3-Clause
"""What the user names is read once a session, and what is known of a case is asked once."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pytest_icbench.plugin.fixture
import pytest_icbench.plugin.items
import pytest_icbench.testbed.feasibility
from tests.plugin.conftest import Runner
from tests.plugin.fakes import FakeTestbed
from tests.plugin.test_topology import PAIR
from tests.plugin.test_versions import gives

SCENARIO = """
@pytest.mark.icbench(switch=["veth", "ovs"], packet_size=[64, 128])
def test_rate(icbench):
    icbench.gate(icbench.throughput())

@pytest.mark.icbench(switch="veth", packet_size=[64, 2000])
def test_other(icbench):
    icbench.gate(icbench.throughput())
"""
FILES = {
    "lab.toml": PAIR,
    "ovs.toml": "[other_config]\na = 1\n",
    "new.toml": "[other_config]\na = 2\n",
    "thresholds.toml": '["*"]\nmin_throughput_pps = 1\n',
}
OPTIONS = (
    "--icbench-topology=lab.toml",
    "--icbench-switch-config=ovs=ovs.toml",
    "--icbench-candidate=ovs:new=config:new.toml",
)

#: Names of the files that were opened while a test looks; None while none does. A hook of audit stays for good.
_opened: list[str] | None = None


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open" and _opened is not None and isinstance(arguments[0], str | os.PathLike):
        _opened.append(Path(arguments[0]).name)


@pytest.fixture(scope="module", autouse=True)
def _hook() -> None:
    sys.addaudithook(_note)


@pytest.fixture
def opened() -> Iterator[list[str]]:
    global _opened
    _opened = []
    yield _opened
    _opened = None


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[Any]]:
    """Arguments of the calls of what shall be asked once, by name."""
    calls: dict[str, list[Any]] = {"merge_settings": [], "unsupported_reason": []}
    for module in (pytest_icbench.plugin.items, pytest_icbench.plugin.fixture, pytest_icbench.testbed.feasibility):
        for name, noted in calls.items():
            real = getattr(module, name, None)
            if real is not None:

                def wrapper(*arguments: Any, _real: Any = real, _noted: list[Any] = noted) -> Any:
                    _noted.append(arguments[0])
                    return _real(*arguments)

                monkeypatch.setattr(module, name, wrapper)
    return calls


def written(inner: Runner) -> None:
    inner.write(test_x=SCENARIO)
    for name, text in FILES.items():
        (inner.path / name).write_text(text)


def test_a_plan_reads_and_asks_once(inner: Runner, opened: list[str], asked: dict[str, list[Any]]) -> None:
    """With the host's own bench, which asks what it can run."""
    written(inner)
    opened.clear()
    assert inner.run("--icbench-plan", *OPTIONS).ret == 0
    assert {name: Counter(opened)[name] for name in FILES} == dict.fromkeys(FILES, 1)
    assert len(asked["merge_settings"]) == 2  # one a test, for all its cases
    assert len(asked["unsupported_reason"]) == len(set(asked["unsupported_reason"])) + 1  # veth-64B is in both tests


def test_a_run_reads_and_asks_once(
    inner: Runner, bench: type[FakeTestbed], opened: list[str], asked: dict[str, list[Any]]
) -> None:
    """With what a run writes down of the files."""
    bench.compared = staticmethod(gives("PASS", 1.0))
    written(inner)
    opened.clear()
    inner.run(*OPTIONS).assert_outcomes(passed=6)
    assert {name: Counter(opened)[name] for name in FILES} == dict.fromkeys(FILES, 1)
    assert len(asked["merge_settings"]) == 2


@pytest.mark.usefixtures("bench")
def test_a_file_that_changes_between_two_sessions_is_read_again(inner: Runner) -> None:
    written(inner)
    inner.run("-k", "veth").assert_outcomes(passed=4, deselected=2)
    (inner.path / "thresholds.toml").write_text('["*"]\nmin_throughput_pps = 1e12\n')
    inner.run("-k", "veth").assert_outcomes(failed=4, deselected=2)
