# SPDX-License-Identifier: BSD-3-Clause
"""A noisy neighbour whose program is not installed: told before anything is made, and in the plan."""

from __future__ import annotations

import pytest

from pytest_icbench.testbed import noisy_neighbour_load
from tests.plugin.conftest import Runner
from tests.plugin.fakes import FakeTestbed

TEST = """
@pytest.mark.icbench(switch='veth', api='udp', rate={rate!r}, dimension='latency', noisy_neighbour=['cpu', 'cache'])
def test_beside(icbench):
    icbench.gate(icbench.latency())
"""
MISSING = "noisy neighbour cache cannot be found: stress-nix is not installed (package stress-ng)"


@pytest.fixture(autouse=True)
def programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noisy_neighbour_load, "COMMANDS", {"cpu": ["env", "A=b", "sh"], "cache": ["stress-nix"]})


@pytest.mark.parametrize("rate", ["2k", "ndr*0.5"])
def test_it_is_invalid_before_a_rig_is_made_or_a_rate_searched(
    inner: Runner, bench: type[FakeTestbed], rate: str
) -> None:
    inner.write(test_x=TEST.format(rate=rate))
    found = inner.run("-k", "cache")
    assert f"INVALID: noisy-neighbour: {MISSING}" in " ".join(line.strip() for line in found.stdout.lines)
    found.assert_outcomes(errors=1)
    assert [line for line in bench.log if line.startswith(("build", "measure"))] == []


def test_the_case_beside_another_one_is_measured(inner: Runner, bench: type[FakeTestbed]) -> None:
    inner.write(test_x=TEST.format(rate="2k"))
    inner.run().assert_outcomes(passed=1, errors=1)
    assert [line.partition("beside:")[2][:3] for line in bench.log if line.startswith("measure")] == ["cpu"]


def test_the_plan_says_that_it_would_fail(inner: Runner, bench: type[FakeTestbed]) -> None:
    inner.write(test_x=TEST.format(rate="2k"))
    found = inner.run("--icbench-plan")
    found.stdout.fnmatch_lines(["1 of 2 cases*; 0 would be skipped, 1 would fail"])
    assert MISSING in " ".join(line.strip() for line in found.stdout.lines)
