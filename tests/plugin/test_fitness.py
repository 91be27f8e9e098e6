# SPDX-License-Identifier: BSD-3-Clause
"""What a session says about its host when it begins, and what results and verdicts keep of it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from pytest_icbench.model.case import Case
from pytest_icbench.model.fitness import Fitness, Link
from pytest_icbench.model.interference import Interference, Taker
from pytest_icbench.model.launch import Launch
from tests.measurements import measurement
from tests.plugin.conftest import Runner
from tests.plugin.fakes import FakeTestbed

TEST = "@pytest.mark.icbench(switch='ovs', packet_size=64)\ndef test_a(icbench): icbench.gate(icbench.throughput())\n"
BUSY = Fitness(Interference(2, 0.5, taken=1.2, takers=(Taker("stress-ng-cpu", 0.98),), missing=("no steal",)))
BUSY = replace(BUSY, missing=("no steal is counted",))


def info(inner: Runner) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((inner.path / "reports/latest/run.json").read_text())
    return data


def test_the_session_begins_with_one_line(inner: Runner, bench: type[FakeTestbed]) -> None:
    inner.write(test_x=TEST)
    result = inner.run()
    result.stdout.fnmatch_lines(["icbench: quiet host: other processes took 0.02 of 2 CPUs, 0 % was stolen, 2900 MHz"])
    assert info(inner)["fitness"]["interference"]["taken"] == 0.02


def test_a_busy_host_is_named_and_kept(inner: Runner, bench: type[FakeTestbed]) -> None:
    bench.fitness = BUSY
    inner.write(test_x=TEST)
    result = inner.run()
    text = " ".join(line.strip() for line in result.stdout.lines)
    assert (
        "icbench: busy host, compare within this session only: other processes took 1.20 of 2 CPUs (stress-ng-cpu"
        in text
    )
    assert "icbench: no steal is counted" in text
    assert "waiting" not in text
    assert info(inner)["fitness"]["interference"]["takers"] == [{"name": "stress-ng-cpu", "share": 0.98}]


def test_a_wait_shows_its_progress_and_goes_on_when_its_time_is_over(inner: Runner, bench: type[FakeTestbed]) -> None:
    bench.fitness = BUSY
    inner.write(test_x=TEST)
    result = inner.run("--icbench-wait-quiet", "10m")
    text = " ".join(line.strip() for line in result.stdout.lines)
    assert (
        "icbench: waiting for a quiet host, 10:00 left: other processes took 1.20 of 2 CPUs (stress-ng-cpu 0.98)"
        in text
    )
    assert "icbench: the host did not become quiet within 10 min; the run goes on" in text
    result.assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("soon", "--icbench-wait-quiet: 'soon' is not a time; write seconds"),
        ("-5", "--icbench-wait-quiet: '-5' is not a time; write seconds"),
        ("30h", "--icbench-wait-quiet: 108000 s is outside 0 to 86400 s"),
    ],
)
def test_a_bad_time_is_one_sentence(inner: Runner, bench: type[FakeTestbed], value: str, sentence: str) -> None:
    inner.write(test_x=TEST)
    result = inner.run(f"--icbench-wait-quiet={value}")
    result.stderr.fnmatch_lines([f"*{sentence}*"])
    assert bench.log == []


def test_a_control_link_stands_beside_the_baselines(inner: Runner, bench: type[FakeTestbed]) -> None:

    plain = bench.behaviour
    link = Launch(0, 0.0, 1.0, 0.0, 14.8e6, 15e6, 0.0, False, ())
    with_reference = replace(
        measurement(Case("ovs")), per_reference_launch=(link,), placement="cooperative", identity={"machine": "fake"}
    )
    bench.behaviour = staticmethod(lambda case: with_reference)
    inner.write(test_x=TEST)
    inner.run("--icbench-save", "main").assert_outcomes(passed=1)
    bench.controlled = Link("direct-64B", "direct", (0.6 * 14.8e6, 0.62 * 14.8e6, 0.61 * 14.8e6))
    result = inner.run("--icbench-compare", "main")
    bench.behaviour = plain
    text = " ".join(line.strip() for line in result.stdout.lines)
    assert "control link direct-64B is at 61% of baseline main" in text
    assert "other host state than the baseline's, compare within this session only" in text
    assert "control ovs-64B-b32-1vs1-Rmax" in bench.log
    assert info(inner)["fitness"]["controls"][0]["ratios"] == [0.6, 0.62, 0.61]


def test_a_control_link_is_off_only_beyond_what_the_baselines_sessions_had(
    inner: Runner, bench: type[FakeTestbed]
) -> None:
    """At 11.5 of 14 and 10 million: the newest alone would have it 15 % off. (Deciles of two lie between them.)"""
    plain = bench.behaviour
    inner.write(test_x=TEST)
    for number, pps in enumerate((14e6, 10e6)):
        link = Launch(0, 0.0, 1.0, 0.0, pps, pps, 0.0, False, ())
        of_session = replace(
            measurement(Case("ovs")),
            started_at=1.7e9 + 3600 * number,
            per_reference_launch=(link,),
            placement="cooperative",
            identity={"machine": "fake"},
        )
        bench.behaviour = staticmethod(lambda case, of_session=of_session: of_session)
        inner.run("--icbench-save", "main").assert_outcomes(passed=1)
    bench.controlled = Link("direct-64B", "direct", (11.5e6,) * 3)
    result = inner.run("--icbench-compare", "main")
    bench.behaviour = plain
    found = info(inner)["fitness"]["controls"][0]
    assert (found["ratios"], found["sessions"]) == ([0.9583] * 3, [0.8667, 1.1333])
    assert "makes little sense" not in result.stdout.str()
