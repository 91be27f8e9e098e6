# SPDX-License-Identifier: BSD-3-Clause
"""Launches beside a noisy neighbour, held against those without it."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_icbench.config.axes import parse_isolations, parse_noisy_neighbours
from pytest_icbench.config.cases import expand, parse_marker
from pytest_icbench.config.options import Options
from pytest_icbench.driver.switch.registry import builtin_switches
from pytest_icbench.errors import Invalid, UsageError
from pytest_icbench.kinds.runs import check_case, differences, measure, recomputed
from pytest_icbench.measure.noisy_neighbours import ERROR_RATE, FEWEST_PAIRS, effect
from pytest_icbench.measure.reference import reference_case
from pytest_icbench.measure.side import Side
from pytest_icbench.model.case import Case
from pytest_icbench.model.load import Frames
from pytest_icbench.model.measurement import Measurement, Result
from pytest_icbench.model.noisy_neighbour import NoisyNeighbourUse, excludes_one
from pytest_icbench.model.rate import Rate
from pytest_icbench.report.remarks import noisy_neighbour_effect as sentence
from pytest_icbench.testbed.noisy_neighbour_load import NoisyNeighbourView
from tests.unit.scripted_rig import EXECUTABLE, FAST, ScriptedRig

RTT = Case("linux-bridge", Frames(rate=Rate(1000)), api="udp", dimension="latency", noisy_neighbour="stream")


def launches(*times: float) -> Any:
    """Launches whose round trips all have a time."""
    return [
        SimpleNamespace(rtt=SimpleNamespace(mean=time, percentile=lambda _, time=time: 2 * time, maximum=3 * time))
        for time in times
    ]


def test_a_noisy_neighbour_is_an_axis_and_its_reference_the_same_case_without_it() -> None:
    marker = {"switch": "veth", "noisy_neighbour": ["none", "cpu:2"], "isolation": ["none", "cat:11-1"]}
    found = expand(parse_marker((), marker, "x"), Options(), builtin_switches(), "x")
    assert [case.id for case in found] == [
        "veth-beside:none-64B-b32-1vs1-Rmax",
        "veth-beside:none-cat:11.1-64B-b32-1vs1-Rmax",
        "veth-beside:cpu:2-64B-b32-1vs1-Rmax",
        "veth-beside:cpu:2-cat:11.1-64B-b32-1vs1-Rmax",
    ]
    assert [Case.from_dict(case.to_dict()) for case in found] == found
    assert len({case.rig_key for case in found}) == 1
    assert reference_case(found[3], None, family="kernel") == Case("veth")
    replaced = expand(parse_marker((), marker, "x"), Options(noisy_neighbour=("stream",)), builtin_switches(), "x")
    assert {case.noisy_neighbour for case in replaced} == {"stream"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("steam", "there is no noisy neighbour 'steam'; did you mean stream?"),
        ("cpu:0", "'cpu:0' is not a number of CPUs of a noisy neighbour: write cpu:2, 1 to 64"),
        ("cpu:65", "'cpu:65' is not a number of CPUs"),
    ],
)
def test_other_noisy_neighbours_are_refused(text: str, words: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_noisy_neighbours(text, "--icbench-noisy-neighbour")
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("l2", "'l2' is not an isolation: write none, l3, or cat: with the cache ways of two to four parts"),
        ("cat:12", "'cat:12' is not an isolation"),
        ("cat:1-1-1-1-1", "'cat:1-1-1-1-1' is not an isolation"),
        ("cat:11-0", "'cat:11-0' leaves a part without a cache way"),
    ],
)
def test_other_isolations_are_refused(text: str, words: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_isolations(text, "--icbench-isolation")
    assert words in str(error.value)
    assert parse_isolations("none l3 cat:7-4-1", "x") == (None, "l3", "cat:7.4.1")


@pytest.mark.parametrize(
    ("marker", "words"),
    [
        ({"isolation": "l3"}, "isolation is for a noisy neighbour, and there is none"),
        ({"noisy_neighbour": "cpu", "rate": "ndr"}, "need the same load, and rate ndr has several"),
    ],
)
def test_what_does_not_go_with_a_noisy_neighbour_is_refused(marker: dict[str, object], words: str) -> None:
    request = parse_marker((), {"switch": "veth", **marker}, "x")
    with pytest.raises(UsageError, match=words):
        list(map(partial(check_case, settings=FAST), expand(request, Options(), builtin_switches(), "x")))


def test_the_ratios_are_of_adjacent_launches_with_intervals_that_share_an_error_rate() -> None:
    drift = [100.0 * 1.2**n for n in range(FEWEST_PAIRS)]
    found = effect(RTT, launches(*[1.5 * time for time in drift]), launches(*drift), NoisyNeighbourUse(0.9))
    assert found is not None
    assert (found.pairs, found.busy, found.rate_ratio) == (10, 0.9, None)
    assert found.confidence == pytest.approx(1 - 0.01 / 3)
    assert {name: ratio.value for name, ratio in found.ratios.items()} == pytest.approx(
        {"mean": 1.5, "p99": 1.5, "maximum": 1.5}
    )
    assert all(excludes_one(ratio) for ratio in found.ratios.values())
    few = effect(RTT, launches(*drift[1:]), launches(*drift[1:]), None)
    assert few is not None
    assert (few.mean_ratio is not None and few.mean_ratio.low) is None


def test_a_launch_without_a_figure_leaves_none() -> None:
    broken = launches(*[100.0] * 10)
    broken[3].rtt.percentile = lambda _: None
    found = effect(RTT, broken, launches(*[100.0] * 10), None)
    assert found is not None
    assert (list(found.ratios), found.p99_ratio) == (["mean", "maximum"], None)


def test_no_noisy_neighbour_against_none_is_a_change_no_more_often_than_the_gate_errs() -> None:
    """Bands, skew and heavy tails, as launches have them, and a drift from launch to launch."""
    dice, cases, alarms = random.Random(14), 1500, 0
    for _ in range(cases):
        drift = dice.gauss(0, 0.02)

        def time(place: int, drift: float = drift) -> float:
            return (1 + drift) ** place * dice.choice([100, 160]) * dice.lognormvariate(0, 0.5) * dice.paretovariate(2)

        pairs = dice.randint(FEWEST_PAIRS, 14)
        # Which one comes first changes from pair to pair.
        times = [[time(2 * n + (n % 2)), time(2 * n + 1 - (n % 2))] for n in range(pairs)]
        found = effect(RTT, launches(*[a for a, _ in times]), launches(*[b for _, b in times]), None)
        assert found is not None
        alarms += any(excludes_one(ratio) for ratio in found.ratios.values())
    # Twice the standard deviation above the promised rate, which the exact intervals stay below.
    assert alarms <= cases * ERROR_RATE + 2 * (cases * ERROR_RATE) ** 0.5


class Fake:
    """A noisy neighbour that is only told to run and to stop."""

    def __init__(self, log: list[str], fault: str = "") -> None:
        self.log, self.fault = log, fault
        self.use = NoisyNeighbourUse(0.97)

    def begin(self) -> None:
        self.log.append("noisy neighbour runs")

    def end(self) -> None:
        self.log.append("noisy neighbour stops")

    def check(self) -> None:
        if self.fault:
            raise Invalid("noisy-neighbour", self.fault)


def measured(fault: str = "") -> tuple[Measurement, list[str]]:
    rig: Any = ScriptedRig()
    noisy_neighbour: Any = Fake(rig.log, fault)
    case = Case("veth", api="udp", noisy_neighbour="stream")
    disturbed = Side(NoisyNeighbourView(rig, noisy_neighbour), case, executable=EXECUTABLE)
    undisturbed = Side(NoisyNeighbourView(rig), case.undisturbed, executable=EXECUTABLE)
    return measure(disturbed, FAST, undisturbed), rig.log


def test_launches_with_and_without_a_noisy_neighbour_alternate_on_one_rig() -> None:
    found, log = measured()
    steps = [step for step in log if "reported" not in step]
    beside, alone = (
        ["noisy neighbour runs", "rig launch", "rig end", "noisy neighbour stops"],
        ["rig launch", "rig end"],
    )
    # The first launch without it is a preflight of that turn.
    assert steps == beside + alone + alone + alone + beside + beside + alone
    assert found.frames.noisy_neighbour is not None
    assert (found.frames.noisy_neighbour.pairs, found.frames.noisy_neighbour.busy, found.ratio_to_reference) == (
        3,
        0.97,
        None,
    )
    assert sentence(Result.of(found)) == (
        "noisy neighbour stream (busy 97% of its time) against none: throughput 1 times, no change shown; 3 pairs of"
        " launches, intervals of 99.0%"
    )
    found = replace(found, treatment={"endpoints": ["veth"], "cpus": {"endpoints": [0, 1]}})
    assert differences(found, recomputed(found), ["noisy_neighbour", "ratio_to_reference"]) == []


def test_a_noisy_neighbour_that_ends_early_makes_the_case_invalid() -> None:
    found, _ = measured("noisy neighbour stream ended early: stress-ng ended with exit code 2")
    assert (found.verdict, found.reason) == ("INVALID", "noisy-neighbour")
    assert found.evidence == "noisy neighbour stream ended early: stress-ng ended with exit code 2"
    assert sentence(Result.of(found)) == ""
