# SPDX-License-Identifier: BSD-3-Clause
"""What a marker says that its test measures, and what the test measures."""

from __future__ import annotations

import pytest

from tests.plugin.conftest import Runner

pytestmark = pytest.mark.usefixtures("bench")

TEST = """
@pytest.mark.icbench(switch="ovs", {marker})
def test_a(icbench):
    icbench.gate(icbench.{call})
"""
OTHERWISE = "*PytestWarning: test_x.py::test_a: the marker does not announce icbench.{}, so the time*; {} in the marker"


@pytest.mark.parametrize(
    ("marker", "call"),
    [
        ("", "throughput()"),
        ("", "latency()"),
        ("dimension='latency'", "measure()"),
        ("rate='ndr'", "throughput()"),
        ("rate='ndr'", "search('pdr:1%')"),
        ("rate='mfr'", "sweep()"),
        ("measure='search'", "search('ndr')"),
        ("measure='sweep'", "sweep('1M..1M..3M')"),
        ("measure='sweep', rate='mfr'", "sweep()"),
        ("measure='soak'", "soak()"),
        ("measure='soak'", "soak(20)"),
        ("measure='soak', soak_duration=90", "soak()"),
        ("measure='soak', soak_duration='2m'", "soak(duration=120)"),
    ],
)
def test_who_measures_as_the_marker_says_is_reported_nothing(inner: Runner, marker: str, call: str) -> None:
    inner.write(test_x=TEST.format(marker=marker, call=call))
    inner.run("-W", "error").assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("marker", "call", "reported", "remedy"),
    [
        ("", "soak()", "soak()", "say measure='soak'"),
        ("", "soak(90)", "soak()", "say measure='soak', soak_duration=90"),
        ("measure='soak'", "soak(90)", "soak()", "say measure='soak', soak_duration=90"),
        ("measure='soak', soak_duration=30", "soak(7.5)", "soak()", "say measure='soak', soak_duration=7.5"),
        ("measure='sweep'", "search('ndr')", "search()", "say measure='search'"),
        ("rate='ndr'", "sweep()", "sweep()", "say measure='sweep'"),
        ("measure='soak'", "throughput()", "throughput()", "leave out measure='soak'"),
        ("measure='back_to_back'", "latency()", "latency()", "leave out measure='back_to_back'"),
    ],
)
def test_who_measures_otherwise_is_reported_in_one_sentence(
    inner: Runner, marker: str, call: str, reported: str, remedy: str
) -> None:
    inner.write(test_x=TEST.format(marker=marker, call=call))
    result = inner.run()
    result.assert_outcomes(passed=1, warnings=1)
    result.stdout.fnmatch_lines([OTHERWISE.format(reported, remedy)])
    inner.run("-W", "error").assert_outcomes(failed=1)


def test_a_sentence_is_reported_once_a_test(inner: Runner) -> None:
    inner.write(test_x=TEST.format(marker="", call="soak()") + "    icbench.gate(icbench.soak())\n")
    inner.run().assert_outcomes(passed=1, warnings=1)


def test_the_option_for_the_length_of_long_runs_wins_and_nothing_is_reported(inner: Runner) -> None:
    inner.write(test_x=TEST.format(marker="measure='soak', soak_duration=30", call="soak(90)"))
    inner.run("-W", "error", "--icbench-soak-duration=10").assert_outcomes(passed=1)


def test_a_long_run_takes_as_long_as_the_marker_says(inner: Runner) -> None:
    measured = TEST.replace("icbench.gate(icbench.{call})", "assert icbench.soak({call}).settings['duration_s'] == {s}")
    inner.write(
        test_x=measured.format(marker="measure='soak', soak_duration=90", call="", s=90.0),
        test_y=measured.format(marker="measure='soak'", call="", s=20.0),
        test_z=measured.format(marker="measure='soak', soak_duration=90", call="30", s=30.0),
    )
    inner.run().assert_outcomes(passed=3, warnings=1)


def test_queues_that_no_flow_can_be_in_are_said_once(inner: Runner) -> None:
    inner.write(test_x=TEST.format(marker="queues=4, flows=3", call="throughput()"))
    result = inner.run()
    result.assert_outcomes(passed=1, warnings=1)
    reported = (
        "*PytestWarning: test_x.py::test_a: ovs-64B-f3-q4-*: 3 flows leave 1 or more of 4 queues empty: take more*"
    )
    result.stdout.fnmatch_lines([reported])
