# SPDX-License-Identifier: BSD-3-Clause
"""Both ends of a pair send at once: two accounts a pair, each judged and named, and their sum."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pytest_icbench.display.frame_rates import each_way
from pytest_icbench.measure.launch.commands import commands, pair_of
from pytest_icbench.measure.launch.validity import generator_bound
from pytest_icbench.measure.soak import loss_events
from pytest_icbench.measure.summary.recorded import recounted
from pytest_icbench.model.case import Case
from pytest_icbench.model.load import Frames
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.settings import Settings
from pytest_icbench.model.traffic import Traffic
from tests.unit.scripted_rig import FAST, FRAMES, ScriptedRig, one, run, silent_from

BOTH = Case("veth", Frames(Traffic(both=True)), api="udp")
WINDOWS = 3
#: What arrives of a window's frames in each direction.
THERE, BACK = FRAMES - 10, FRAMES - 1


def lossy() -> ScriptedRig:
    return ScriptedRig(path=lambda sent: sent - 10, back=lambda sent: sent - 1)


def test_ends_have_a_stream_each_and_count_the_other() -> None:
    made = commands(ScriptedRig(), replace(BOTH, pairs=2), FAST, launch=130)
    assert {command.application for command in made.values()} == {"duplex"}
    assert [command.direction for command in made.values()] == ["ab", "ba", "ab", "ba"]
    for a, b in ((0, 1), (2, 3)):
        assert (made[a].stream, made[a].peer_stream) == (made[b].peer_stream, made[b].stream)
        assert pair_of(made[a].stream) == pair_of(made[b].stream) == a // 2 + 1
    streams = {c.stream for n in range(128) for c in commands(ScriptedRig(), BOTH, FAST, launch=n).values()}
    assert len(streams) == 256
    assert max(streams) < 65536
    assert all(command.duration_s == FAST.sending_s for command in made.values())
    one_way = commands(ScriptedRig(), Case("veth", api="udp"), FAST)
    assert [(c.stream, c.peer_stream, c.direction) for c in one_way.values()] == [(1, None, None)] * 2


def test_a_launch_has_an_account_for_each_direction() -> None:
    launch = one(lossy(), BOTH)
    assert launch.invalid is None
    assert [(c.pair, c.direction, c.sent, c.received, c.lost) for c in launch.pairs] == [
        (1, "ab", WINDOWS * FRAMES, WINDOWS * THERE, WINDOWS * 10),
        (1, "ba", WINDOWS * FRAMES, WINDOWS * BACK, WINDOWS * 1),
    ]
    assert [window.account for window in launch.windows] == [(1, "ab")] * WINDOWS + [(1, "ba")] * WINDOWS
    assert launch.duration_s == pytest.approx(FAST.duration_s)
    assert launch.throughput_pps == pytest.approx((THERE + BACK) / FAST.window_s)
    assert recounted(launch).pairs == launch.pairs
    assert recounted(launch).duration_s == launch.duration_s


def test_a_result_has_the_sum_and_each_direction() -> None:
    found = run(lossy(), case=replace(BOTH, pairs=2), repeats=2)
    assert found.verdict is None
    assert (found.sent, found.received, found.lost) == (24 * FRAMES, 12 * (THERE + BACK), 12 * 11)
    there, back = found.figures.per_direction
    assert (there.direction, back.direction) == ("ab", "ba")
    assert (there.lost, back.lost) == (120, 12)
    assert there.throughput_pps == pytest.approx(2 * THERE / FAST.window_s)
    assert found.throughput_pps == pytest.approx(there.throughput_pps + back.throughput_pps)
    assert found.figures.throughput_per_pair_pps == pytest.approx((THERE + BACK) / FAST.window_s)
    assert [(pair.pair, pair.direction) for pair in found.figures.per_pair] == [
        (1, "ab"),
        (1, "ba"),
        (2, "ab"),
        (2, "ba"),
    ]
    assert found.figures.fairness == pytest.approx(BACK / THERE)
    assert (
        each_way(found) == "a to b 0.0990 Mpps, 120 of 12,000 frames lost; b to a 0.0999 Mpps, 12 of 12,000 frames lost"
    )
    assert run(ScriptedRig(), repeats=1).figures.per_direction == ()


@pytest.mark.parametrize(
    ("rig", "way"), [(ScriptedRig(path=lambda sent: 0), "a to b"), (ScriptedRig(back=lambda sent: 0), "b to a")]
)
def test_the_direction_in_which_nothing_arrives_is_named(rig: ScriptedRig, way: str) -> None:
    launch = one(rig, BOTH)
    assert (launch.invalid, launch.evidence) == (
        "no-forwarding",
        f"pair 1: of 3000 frames sent from {way} none arrived",
    )


def test_the_direction_that_stalls_is_named() -> None:
    settings = Settings(**{**FAST.to_dict(), "duration_s": 0.2})
    launch = one(ScriptedRig(edit=silent_from(4)), BOTH, settings)
    assert (launch.invalid, launch.evidence) == (
        "stalled",
        "pair 1, a to b: nothing arrived in the last 7 of 10 windows",
    )


def test_the_end_whose_account_is_wrong_is_named() -> None:
    def edit(index: int, line: dict[str, Any]) -> dict[str, Any]:
        return {**line, "gaps": 5} if index == 0 and line["type"] == "summary" else line

    launch = one(ScriptedRig(edit=edit), BOTH)
    assert launch.invalid == "accounts"
    assert launch.evidence.startswith("duplex b of pair 1 sent 3000 frames, but duplex a of pair 1 received 3000")


def test_one_direction_that_falls_short_is_enough() -> None:
    """0.8 % of both directions together is 1.6 % of one of them."""
    case = BOTH.sending(rate=Rate(FRAMES * 50))
    windows = one(ScriptedRig(), case).windows
    short = [replace(w, scheduled=984) if w.direction == "ba" else w for w in windows]
    assert generator_bound(case.sending(burst=1), windows) is False
    assert generator_bound(case.sending(burst=1), short) is True


def test_losses_of_a_long_run_are_of_a_direction() -> None:
    launch = one(ScriptedRig(back=lambda sent: sent - 1), BOTH)
    (event,) = loss_events(launch, 0.0)
    assert (event.pair, event.direction, event.windows, event.lost) == (1, "ba", WINDOWS, WINDOWS)
