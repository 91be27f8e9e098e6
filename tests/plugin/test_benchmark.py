# SPDX-License-Identifier: BSD-3-Clause
"""pytest-benchmark on our cases: its table, its files, its choice of tests; and without it. No host is needed."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from pytest_icbench.model.case import Case
from pytest_icbench.model.load import Startup
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.plugin.collector import seconds
from pytest_icbench.stats.quantiles import Estimate
from tests.baselines import LAUNCHES, measured
from tests.measurements import measurement
from tests.plugin.conftest import Runner
from tests.plugin.fakes import FakeTestbed

WITH = ("-p", "pytest_benchmark.plugin")
CASES = """
@pytest.mark.icbench(switch="ovs", packet_size=[64, 1500])
def test_a(icbench):
    icbench.gate(icbench.throughput())

def test_plain(): pass
"""


@pytest.fixture
def launches(bench: type[FakeTestbed]) -> type[FakeTestbed]:
    """A bench whose measurements have launches."""
    pytest.importorskip("pytest_benchmark")
    bench.behaviour = staticmethod(lambda case: measured(case))
    return bench


def saved(path: Path) -> dict[str, dict[str, Any]]:
    return {one["name"]: one for one in json.loads(path.read_text())["benchmarks"]}


def test_a_round_is_a_launch_and_ops_are_packets_per_second(inner: Runner, launches: type[FakeTestbed]) -> None:
    inner.write(test_x=CASES)
    result = inner.run(*WITH, "--benchmark-json=b.json")
    result.assert_outcomes(passed=3)
    found = saved(inner.path / "b.json")
    assert set(found) == {"test_a[ovs-64B-b32-1vs1-Rmax]", "test_a[ovs-1500B-b32-1vs1-Rmax]"}
    one = found["test_a[ovs-64B-b32-1vs1-Rmax]"]
    assert one["stats"]["data"] == [1 / pps for pps in LAUNCHES]
    assert one["stats"]["rounds"] == len(LAUNCHES)
    assert one["stats"]["iterations"] == 1
    assert one["stats"]["ops"] == pytest.approx(5e6, rel=0.001)
    assert one["params"]["packet_size"] == 64
    assert one["extra_info"]["icbench.verdict"] == "NO_BASELINE"
    assert one["extra_info"]["icbench.metric"] == "frmol"
    result.stdout.fnmatch_lines(["*benchmark 'throughput: seconds per packet': 2 tests*", "Name * Median *Rounds*"])
    assert "OPS (" not in result.stdout.str()  # 1 / mean of the times: another value than that of our table


@pytest.mark.parametrize(
    ("arguments", "ini", "shown"),
    [
        ((), "", False),
        (("--benchmark-disable",), "", False),
        (("--benchmark-only",), "", True),
        (("--benchmark-columns=ops",), "", True),
        ((), "icbench_benchmark = yes", True),
        ((), "addopts = --benchmark-autosave", True),
    ],
)
def test_its_table_comes_only_when_it_is_asked_for(
    inner: Runner, launches: type[FakeTestbed], arguments: tuple[str, ...], ini: str, shown: bool
) -> None:
    inner.ini(ini)
    inner.write(test_x=CASES)
    text = inner.run(*WITH, *arguments).stdout.str()
    assert ("benchmark 'throughput" in text) is shown
    assert ("OPS (" in text) is ("--benchmark-columns=ops" in arguments)


def test_compare(inner: Runner, launches: type[FakeTestbed]) -> None:
    inner.write(test_x=CASES)
    inner.run(*WITH, "--benchmark-save=one").assert_outcomes(passed=3)
    launches.behaviour = staticmethod(lambda case: measured(case, launches=[pps / 2 for pps in LAUNCHES]))
    result = inner.run(*WITH, "--benchmark-compare", "--benchmark-compare-fail=mean:10%")
    text = result.stdout.str() + result.stderr.str()
    assert "(0001_one)" in text
    assert "Performance has regressed" in text


def test_histogram(inner: Runner) -> None:
    """In a process of its own: what pygal imports replaces importlib's finder of distributions for good."""
    if importlib.util.find_spec("pygal") is None:
        pytest.skip("pygal is missing")
    inner.write(test_x=CASES)
    before = "from tests.baselines import measured\nTestbed.behaviour = staticmethod(measured)"
    inner.spawn_with_bench(*WITH, "--benchmark-histogram=h", before=before).assert_outcomes(passed=3)
    assert list(inner.path.glob("h*.svg"))


def test_only_skip_and_disable(inner: Runner, launches: type[FakeTestbed]) -> None:
    inner.write(test_x=CASES)
    inner.run(*WITH, "--benchmark-only").assert_outcomes(passed=2, skipped=1)
    launches.log.clear()
    inner.run(*WITH, "--benchmark-skip").assert_outcomes(passed=1, skipped=2)
    assert launches.log == []  # the host is not even taken
    result = inner.run(*WITH, "--benchmark-disable")
    result.assert_outcomes(passed=3)
    assert "OPS" not in result.stdout.str()


def test_a_users_own_marker_and_fixture_are_kept(inner: Runner, launches: type[FakeTestbed]) -> None:
    inner.write(
        test_x="""
@pytest.mark.benchmark(group="mine")
@pytest.mark.icbench(switch="ovs")
def test_a(icbench):
    icbench.gate(icbench.throughput())

@pytest.mark.icbench(switch="ovs")
def test_own(icbench, benchmark):
    icbench.throughput()
    benchmark.pedantic(lambda: None, rounds=3)

def test_plain(benchmark):
    benchmark.pedantic(lambda: None, rounds=2)
"""
    )
    inner.run(*WITH, "--benchmark-json=b.json").assert_outcomes(passed=3)
    found = saved(inner.path / "b.json")
    assert found["test_a[ovs-64B-b32-1vs1-Rmax]"]["group"] == "mine"
    assert found["test_own[ovs-64B-b32-1vs1-Rmax]"]["stats"]["rounds"] == 3
    assert found["test_plain"]["stats"]["data"] != [1 / pps for pps in LAUNCHES][:2]


def test_latency_counts_round_trips(inner: Runner, launches: type[FakeTestbed]) -> None:
    launches.behaviour = staticmethod(lambda case: measurement(case))
    inner.write(
        test_x="""
@pytest.mark.icbench(switch="ovs", dimension="latency", rate=1000)
def test_a(icbench):
    icbench.gate(icbench.latency())
"""
    )
    inner.run(*WITH, "--benchmark-json=b.json").assert_outcomes(passed=1)
    (one,) = saved(inner.path / "b.json").values()
    assert one["stats"]["data"] == [20e-6]
    assert one["group"] == "latency: median round-trip time"


def _broken(case: Case) -> Measurement:
    return measurement(case, verdict="INVALID", reason="died", evidence="gone")


def test_what_is_no_number_is_not_in_the_table(inner: Runner, launches: type[FakeTestbed]) -> None:
    launches.behaviour = staticmethod(_broken)
    inner.write(test_x=CASES)
    result = inner.run(*WITH, "--benchmark-json=b.json")
    result.assert_outcomes(failed=2, passed=1)
    assert "not used at all" not in result.stdout.str() + result.stderr.str()
    assert not (inner.path / "b.json").exists() or saved(inner.path / "b.json") == {}


def test_a_regressed_case_is_in_the_table(inner: Runner, launches: type[FakeTestbed]) -> None:
    (inner.path / "thresholds.toml").write_text('["*"]\nmin_throughput_pps = 9e9\n')
    inner.write(test_x=CASES)
    inner.run(*WITH, "--benchmark-json=b.json").assert_outcomes(failed=2, passed=1)
    assert {one["extra_info"]["icbench.verdict"] for one in saved(inner.path / "b.json").values()} == {"REGRESSED"}


def test_switched_off(inner: Runner, launches: type[FakeTestbed]) -> None:
    inner.write(test_x=CASES)
    result = inner.run("-p", "no:benchmark", "-p", "no:pytest_benchmark.plugin")
    result.assert_outcomes(passed=3)
    assert "OPS" not in result.stdout.str()


def test_not_installed(inner: Runner) -> None:
    """In a process in which importing it fails."""
    inner.write(test_x=CASES)
    blocked = "import sys; sys.modules['pytest_benchmark'] = None"
    inner.spawn_with_bench(before=blocked).assert_outcomes(passed=3)


def test_containers_count_by_the_time_of_each() -> None:
    case = Case("veth", Startup("netns:100"), dimension="startup")
    assert seconds(measurement(case, startup_ns=Estimate(30_000_000.0), throughput_pps=None)) == (0.03,)
