# SPDX-License-Identifier: BSD-3-Clause
"""Rates that are looked for, as a user meets them: ids, options, calls of the fixture, verdicts, times."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

import pytest_icbench.plugin.progress
from pytest_icbench.model.case import Case
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.settings import Settings
from pytest_icbench.model.trials import SearchLog
from tests.measurements import measurement
from tests.plugin.conftest import Runner
from tests.plugin.fakes import FakeTestbed

GATED = """
@pytest.mark.icbench(switch="ovs", rate=["ndr", "pdr:0.5%", "1M"])
def test_a(icbench):
    icbench.gate(icbench.throughput())
"""


def searched(case: Case, **changed: Any) -> Measurement:
    search = SearchLog(
        "csit", case.rate.loss_ratio or 0.0, 0.5, 0.005, 1.0, 1.0, 21.0, 5e3, 5e6, "reference", True, None
    )
    return measurement(case, search=search, search_lower_pps=5e6, search_upper_pps=5.1e6, **changed)


def last_result(inner: Runner) -> dict[str, Any]:
    lines = (inner.path / "reports" / "latest" / "results.jsonl").read_text().splitlines()
    data: dict[str, Any] = json.loads(lines[-1])
    return data


def test_ids_take_part_in_selection(inner: Runner) -> None:
    inner.write(test_x=GATED)
    result = inner.run("--collect-only", "-q", "-k", "pdr:0.5 or ndr")
    result.stdout.fnmatch_lines(
        ["test_x.py::test_a?ovs-64B-b32-1vs1-Rndr?", "test_x.py::test_a?ovs-64B-b32-1vs1-Rpdr:0.5?", "*2/3 tests*"]
    )


def test_the_option_replaces_the_rates(inner: Runner, bench: type[FakeTestbed]) -> None:
    inner.write(test_x=GATED)
    inner.run("--icbench-rate", "pdr:0.01% mfr max").assert_outcomes(passed=3)
    measured = [line.rpartition("-")[2] for line in bench.log if line.startswith("measure")]
    assert measured == ["Rpdr:0.01", "Rmfr", "Rmax"]
    raw = inner.path / "reports" / "latest" / "raw" / "b32" / "ovs" / "64B"
    assert sorted(path.name for path in raw.iterdir()) == ["Rmax", "Rmfr", "Rpdr=0.01"]


def test_settings_of_a_search_reach_it(inner: Runner, bench: type[FakeTestbed]) -> None:
    inner.write(test_x=GATED.replace('rate=["ndr"', 'search_trial=2, search_width="1%", rate=["ndr"'))
    inner.run("-k", "ndr", "--icbench-search-trial", "0.2", "--icbench-max-duration=45").assert_outcomes(passed=1)
    line = (inner.path / "reports" / "latest" / "results.jsonl").read_text()
    settings = Settings(**json.loads(line)["settings"])
    assert (settings.search_trial_s, settings.search_width, settings.search_preset) == (0.2, 0.01, "csit")
    assert settings.search_limit_s == 45


def test_a_search_has_the_time_of_its_preset_unless_the_user_says_otherwise(
    inner: Runner, bench: type[FakeTestbed]
) -> None:
    inner.write(test_x=GATED)
    inner.run("-k", "ndr", "--icbench-search-preset=rfc2544").assert_outcomes(passed=1)
    line = (inner.path / "reports" / "latest" / "results.jsonl").read_text()
    assert Settings(**json.loads(line)["settings"]).search_limit_s == 3600


def test_a_budget_limits_a_search_that_would_take_longer(inner: Runner, bench: type[FakeTestbed]) -> None:
    bench.behaviour = staticmethod(lambda case: searched(case, ended_by="max-duration"))
    inner.write(test_x=GATED)
    inner.run("-k", "ndr", "--icbench-budget=100").assert_outcomes(passed=1)
    data = last_result(inner)
    assert 90 < Settings(**data["settings"]).search_limit_s <= 100
    assert data["ended_by"] == "budget"
    inner.run("-k", "ndr", "--icbench-budget=10m").assert_outcomes(passed=1)
    data = last_result(inner)
    assert (Settings(**data["settings"]).search_limit_s, data["ended_by"]) == (120, "max-duration")


def test_a_test_can_search_and_sweep_whatever_its_rate(inner: Runner, bench: type[FakeTestbed]) -> None:
    inner.write(
        test_x="""
@pytest.mark.icbench(switch="ovs")
def test_a(icbench):
    icbench.search("pdr:1%", search_width="2%")
    icbench.search("ndr")
    icbench.sweep("1M..1M..3M")
    icbench.sweep([500_000, "1M"])
    icbench.sweep()
"""
    )
    inner.run().assert_outcomes(passed=1)
    found = (inner.path / "reports" / "latest" / "results.jsonl").read_text().splitlines()
    metrics = [(data["case"].rpartition("-")[2], data["metric"]) for data in map(json.loads, found)]
    assert metrics == [("Rpdr:1", "pdr"), ("Rndr", "ndr"), *[("Rmfr", "mfr")] * 3]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        ("icbench.search('max')", "test_x.py::test_a: 'max' is nothing to search for; give ndr or pdr:0.5%"),
        ("icbench.search('pdr:5')", "test_x.py::test_a: 'pdr:5' is nothing to search for"),
        ("icbench.search('ndr', search_preset='icpe2018')", "test_x.py::test_a: the search preset icpe2018 is about"),
        ("icbench.search('ndr', search_width='90%')", "test_x.py::test_a: search_width: 0.9 is outside"),
        ("icbench.sweep('fast')", "test_x.py::test_a: sweep: 'fast' is not a number"),
        ("icbench.sweep([0, 5])", "test_x.py::test_a: sweep: 0 is outside 1 to 1000000000"),
        ("icbench.sweep([])", "test_x.py::test_a: sweep: no value given"),
    ],
)
def test_a_mistake_in_a_call_is_one_sentence(inner: Runner, bench: type[FakeTestbed], call: str, sentence: str) -> None:
    inner.write(test_x=f"@pytest.mark.icbench(switch='ovs')\ndef test_a(icbench):\n    {call}")
    result = inner.run()
    result.assert_outcomes(failed=1)
    assert f"\n{sentence}" in result.stdout.str()
    assert not any(line.startswith("measure") for line in bench.log)


def test_latency_at_a_rate_to_look_for_is_refused_before_the_run(inner: Runner, bench: type[FakeTestbed]) -> None:
    inner.write(test_x="@pytest.mark.icbench(dimension='latency', rate='1k pdr:1%')\ndef test_a(icbench): pass")
    result = inner.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["ERROR: test_x.py::test_a: round-trip times are measured at a load, not at rate pdr:1%*"]
    )
    assert bench.log == []


def test_what_a_search_found_stands_in_the_table(inner: Runner, bench: type[FakeTestbed]) -> None:
    bench.behaviour = staticmethod(searched)
    inner.write(test_x=GATED)
    result = inner.run("-k", "pdr")
    result.stdout.fnmatch_lines(["* Mpps pdr * verdict", "ovs * 5.00 *", "pdr: conditional throughput *"])


def test_at_least_is_marked_and_explained(inner: Runner, bench: type[FakeTestbed]) -> None:
    bench.behaviour = staticmethod(
        lambda case: searched(case, lower_bound=True, throughput_pps_high=None, ended_by="generator-bound")
    )
    inner.write(test_x=GATED)
    (inner.path / "thresholds.toml").write_text('["*"]\nmin_throughput_pps = 9e6\n')
    result = inner.run("-k", "ndr")
    result.stdout.fnmatch_lines(["*, 1 undecided in *"])
    result.stdout.fnmatch_lines(["ovs * 5.00 *≥ *INCONCLUSIVE", "≥: *at least*"])


def test_a_device_without_a_lossless_load_fails_its_test(inner: Runner, bench: type[FakeTestbed]) -> None:
    said = "no load passes without loss down to the least, 0.005 Mpps: 14 of 5000 frames lost or refused in 1 s"
    bench.behaviour = staticmethod(
        lambda case: searched(case, verdict="INVALID", reason="lossy", evidence=said, throughput_pps=None)
    )
    inner.write(test_x=GATED)
    result = inner.run("-k", "ndr")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["INVALID: ovs-64B-b32-1vs1-Rndr: lossy: *", "*INVALID lossy", f"*{said[:45]}*"])


def test_the_progress_line_shows_trial_and_bounds(
    inner: Runner, bench: type[FakeTestbed], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pytest_icbench.plugin.progress, "PLAIN_PATIENCE_S", 0.0)
    monkeypatch.setattr(pytest_icbench.plugin.progress, "PLAIN_INTERVAL_S", 0.0)
    bench.detail = "trial 7 at 3.21 Mpps, bounds 3.1..3.4"
    inner.write(test_x=GATED)
    result = inner.run("-k", "ndr")
    result.stdout.fnmatch_lines(
        ["icbench: case 1 of 1  ovs-64B-b32-1vs1-Rndr  trial 7 at 3.21 Mpps, bounds 3.1..3.4 *"]
    )


def test_the_plan_knows_what_searches_take(inner: Runner, bench: type[FakeTestbed]) -> None:
    inner.write(test_x=GATED)
    inner.run("--icbench-plan", "-v").stdout.fnmatch_lines(["*0:4?  test_x.py::test_a?ovs-64B-b32-1vs1-Rndr?"])
    plan = inner.run("--icbench-plan", "-v", "--icbench-search-preset=tst009", "--icbench-rate=ndr")
    plan.stdout.fnmatch_lines(["*4:??  test_x.py::test_a?ovs-64B-b32-1vs1-Rndr?"])


def planned_s(inner: Runner, *options: str) -> dict[str, int]:
    """Seconds of each case in the plan."""
    seconds = {}
    for line in inner.run("--icbench-plan", "-v", *options).outlines:
        found = re.match(r" *(?:(\d+):)?(\d+):(\d\d) +test_x.py::(\S+)", line)
        if found:
            hours, minutes, rest, name = found.groups()
            seconds[name] = int(hours or 0) * 3600 + int(minutes) * 60 + int(rest)
    return seconds


def test_the_plan_knows_what_a_test_measures_by_its_marker(inner: Runner) -> None:
    """A long run, trains, a load of a rate that is looked for once, a sweep: beside plain launches."""
    inner.write(
        test_x="""
import pytest

@pytest.mark.icbench(switch="ovs")
def test_plain(icbench): icbench.gate(icbench.throughput())

@pytest.mark.icbench(switch="ovs", measure="soak")
def test_soak(icbench): icbench.gate(icbench.soak())

@pytest.mark.icbench(switch="ovs", measure="back_to_back")
def test_trains(icbench): icbench.gate(icbench.back_to_back())

@pytest.mark.icbench(switch="ovs", measure="sweep")
def test_sweep(icbench): icbench.gate(icbench.sweep())

@pytest.mark.icbench(switch="ovs", measure="search")
def test_search(icbench): icbench.gate(icbench.search("ndr"))

@pytest.mark.icbench(switch="ovs", rate="ndr")
def test_ndr(icbench): icbench.gate(icbench.throughput())

@pytest.mark.icbench(dimension="latency", switch="ovs", rate=["pdr:0.5%*0.1", "pdr:0.5%*0.9"])
def test_loads(icbench): icbench.gate(icbench.latency())
"""
    )
    plain, soak, trains, sweep, search, ndr, first, second = planned_s(inner, "--icbench-soak-duration=2h").values()
    assert 7200 <= soak < 7210
    assert trains > 30  # with the search by which the buffer time is corrected
    assert sweep > plain / 2 + 10
    assert abs(search - ndr) <= 2  # a rig
    assert first - second > 20  # one search serves both


def test_the_plan_knows_how_long_a_run_a_test_asks_for(inner: Runner) -> None:
    """The option wins."""
    inner.write(
        test_x="""
import pytest

@pytest.mark.icbench(switch="ovs", measure="soak", soak_duration=3 * 3600)
def test_hours(icbench): icbench.gate(icbench.soak())
"""
    )
    (asked,) = planned_s(inner).values()
    (wanted,) = planned_s(inner, "--icbench-soak-duration=2h").values()
    assert 3 * 3600 < asked < 3 * 3600 + 10
    assert 2 * 3600 < wanted < 2 * 3600 + 10
