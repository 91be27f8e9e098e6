# SPDX-License-Identifier: BSD-3-Clause
"""The operating characteristic out of recorded pairs, and what the command refuses."""

from __future__ import annotations

from argparse import Namespace
from random import Random
from typing import Any

import pytest

from pytest_icbench.cli import main
from pytest_icbench.cli.calibrate.command import evaluate, plan
from pytest_icbench.cli.calibrate.curve import Point, lengths, point, sentence, table
from pytest_icbench.cli.calibrate.launches import Recorded, candidates, slowed
from pytest_icbench.config.options import Options
from pytest_icbench.config.settings import settings_for
from pytest_icbench.errors import UsageError
from pytest_icbench.model.case import Case


def blocks(noise: float, rigs: float = 0.0, seed: int = 1) -> list[list[float]]:
    random = Random(seed)
    found = []
    for _ in range(16):
        level = random.gauss(1, rigs)
        found.append([level * random.gauss(1, noise) for _ in range(12)])
    return found


def test_quiet_machines_find_small_drops() -> None:
    quiet, noisy = (point(blocks(noise), 12, 3.0, simulations=400) for noise in (0.003, 0.03))
    assert quiet.drop_90 <= quiet.drop_95 < 0.01
    assert 0.02 < noisy.drop_95 < 0.10
    assert quiet.seconds == (12 + 14) * 3.0  # seven pairs of rigs, each with two pairs of launches, confirm


def test_more_pairs_find_less_as_long_as_rigs_are_alike() -> None:
    few, many = (point(blocks(0.02), pairs, 3.0, simulations=400) for pairs in (7, 40))
    assert many.drop_95 < few.drop_95


def test_what_rigs_differ_by_averages_out_since_more_pairs_have_more_rigs() -> None:
    few, many = (point(blocks(0.002, rigs=0.03), pairs, 3.0, simulations=400) for pairs in (7, 60))
    assert few.default_alarms <= 0.01
    assert few.drop_95 > 0.05
    assert many.drop_95 < few.drop_95 / 2


def test_the_default_allowance_makes_no_false_alarm_of_noise() -> None:
    found = point(blocks(0.01), 8, 3.0, simulations=400)
    assert found.default_alarms == 0
    assert found.default_drop_95 > 0.03


def test_lengths_begin_with_the_fewest_that_can_be_confirmed() -> None:
    assert lengths(6) == []
    assert lengths(7) == [7]
    found = lengths(40)
    assert (found[0], found[-1]) == (7, 40)
    assert found == sorted(set(found))


def test_the_sentence_and_the_table() -> None:
    points = [Point(8, 60.0, 0.01, 0.05, 0.06, 0.0, 0.08), Point(20, 1100.0, 0.01, 0.028, 0.031, 0.0, 0.05)]
    assert sentence(points, 1200) == (
        "here, 20 min detect 3.1 % at 1 % false alarms (in 95 of 100 comparisons, with an allowance of 1.0 %)"
    )
    assert "detect 6.0 %" in sentence(points, 80)
    assert sentence(points, 30) == "here, 30 s are too short for a comparison"
    assert len(table(points)) == 3


def test_the_file_holds_what_was_measured() -> None:
    recorded = Recorded(same=blocks(0.005), slower=[[0.95] * 12], expected=0.951, pairs=204, seconds=612.0)
    document = evaluate(Case("forward", mode="cost4000"), recorded, 120.0)
    assert document["pair_s"] == 3.0
    assert len(document["same"]) == 16
    assert document["points"][-1]["pairs"] == 20
    assert document["injected"]["ratio"] == pytest.approx(0.95)
    assert "injected slow-down: measured -5.0 % (-5.0 % to -5.0 %), its cycles make -4.9 %" in document["text"]
    assert document["text"][-1].startswith("here, 2 min detect ")


def test_a_slower_mode_costs_more() -> None:
    assert slowed("cost4000", 0.05) == "cost4211"
    assert slowed("swap+cost950", 0.05) == "swap+cost1000"
    with pytest.raises(UsageError, match="costs no cycles that could be raised"):
        slowed("swap", 0.05)
    assert [each.key for each in candidates(Case("ovs"))] == ["ovs:same"]
    assert [each.key for each in candidates(Case("forward", mode="cost10"))] == ["forward:same", "forward:slower"]


DEFAULTS: dict[str, Any] = {
    "switch": "forward",
    "variant": None,
    "packet_size": "64",
    "api": None,
    "latency": False,
    "rate": "max",
    "duration": "1",
    "node": "lxc",
    "binary": None,
}


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"switch": "osv"}, "--switch: there is no switch 'osv'; did you mean ovs?"),
        ({"variant": "wire"}, "--variant: forward has no variant 'wire'; its variants: parts joined"),
        ({"variant": "swap"}, "icbench calibrate: forward:swap costs no cycles"),
        ({"api": "udp"}, "--api: forward has no API udp; it has dpdk"),
        ({"rate": "ndr"}, "--rate: 'ndr' is not one load; give max, frames or bits per second"),
        ({"rate": "1k 2k"}, "--rate: '1k 2k' is not one load"),
        ({"packet_size": "64 128"}, "--packet-size: '64 128' is not one size"),
        ({"binary": "/none"}, "--binary: there is no file /none"),
        ({"duration": "0"}, "--duration: 0 s is outside"),
    ],
)
def test_a_mistake_is_one_sentence(changed: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        plan(Namespace(**{**DEFAULTS, **changed}))
    assert str(caught.value).startswith(sentence)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--time", "1s"], "--time: 1 s is outside 60 to 86400 s"),
        (["--target", "x"], "--target: 'x' is no time"),
        (["--out", "/none/x.json"], "--out: /none/x.json cannot be written"),
    ],
)
def test_the_command_refuses_before_it_measures(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main(["calibrate", *arguments]) == 2
    assert sentence in capsys.readouterr().err


def test_its_launches_warm_up_as_those_of_a_comparison() -> None:
    _, _, calibrated = plan(Namespace(**DEFAULTS))
    compared = settings_for(Options(), {}, {}, "here")
    assert (calibrated.warmup_s, calibrated.max_warmup_s) == (compared.warmup_s, compared.max_warmup_s)
    assert calibrated.settles
