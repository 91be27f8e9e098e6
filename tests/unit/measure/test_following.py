# SPDX-License-Identifier: BSD-3-Clause
"""Loads that change every second: read, made by rule, offered, and when their changes arrived."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_icbench.config.capabilities import unsupported_reason
from pytest_icbench.config.cases import expand, parse_marker
from pytest_icbench.config.options import Options
from pytest_icbench.config.rates import parse_rates as rates
from pytest_icbench.driver.switch.registry import builtin_switches
from pytest_icbench.errors import UsageError
from pytest_icbench.measure.launch.commands import commands
from pytest_icbench.measure.summary.frame_figures import followed
from pytest_icbench.model.case import Case
from pytest_icbench.model.load import Frames
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.settings import Settings
from pytest_icbench.model.trace import Trace
from pytest_icbench.report.remarks import load_changes
from tests.measurements import result
from tests.unit.scripted_rig import ScriptedRig

SECOND_NS = 1_000_000_000
CASE = Case("veth", Frames(rate=Rate(trace=Trace("up", ((1000, 3000, 3000, 1000),)))))


def launch(*received: int, late_ns: int = 0) -> Any:
    """A launch of windows of half a second, of which so many frames arrived, all of them later by a time."""
    windows = []
    for number, frames in enumerate(received, start=1):
        start_ns = 7 + (number - 1) * SECOND_NS // 2
        times = {"first_ns": start_ns + late_ns, "last_ns": start_ns + SECOND_NS // 2 - 1 + late_ns}
        counts = {"pair": 1, "number": number, "kept": True, "sent": 1500, "received": frames, "handled": frames}
        windows.append(SimpleNamespace(start_ns=start_ns, duration_ns=SECOND_NS // 2, **counts, **times))
    return SimpleNamespace(windows=windows)


def test_a_load_that_stays_has_no_changes() -> None:
    assert followed(CASE.sending(rate=Rate(trace=Trace("flat", ((1000, 1000),)))), [launch(500, 500)]) == ()


def test_a_thaw_is_followed_by_the_first_window_that_arrives_and_a_freeze_by_none() -> None:
    trace = Trace.of("freeze:1k")
    assert trace is not None
    case = replace(CASE, function="wire", pairs=2).sending(rate=Rate(trace=trace))
    received = [0] * 6 + [0] + [500] * 29 + [0] * 6  # it is thawed at second 3, and takes half a second more
    measured = launch(*received)
    for window in measured.windows:
        window.pair = 2
    found = followed(case, [measured])
    assert found is not None
    (thaw,) = found
    assert (thaw.pair, thaw.second, thaw.from_pps, thaw.to_pps, thaw.follow_s) == (2, 3, 0, 1000, 1.0)


def test_a_change_arrives_with_the_first_window_that_shows_95_percent_of_it() -> None:
    at_once, slow = (
        launch(500, 500, 1450, 1500, 1500, 1500, 500, 500),
        launch(500, 500, 1400, 1500, 1500, 1500, 600, 500),
    )
    for launches, times in (([at_once], [0.5, 0.5]), ([slow], [1.0, 1.0]), ([at_once, at_once, slow], [0.5, 0.5])):
        found = followed(CASE, launches)
        assert found is not None
        assert [(one.pair, one.second, one.from_pps, one.to_pps) for one in found] == [
            (1, 1, 1000, 3000),
            (1, 3, 3000, 1000),
        ]
        assert [one.follow_s for one in found] == times
    assert found is not None
    assert [found[0].offered_pps, found[0].received_pps] == pytest.approx([3000.0, 2975.0])


def test_frames_that_arrive_late_are_a_change_that_is_followed_late() -> None:
    found = followed(CASE, [launch(500, 500, 1500, 1500, 1500, 1500, 500, 500, late_ns=SECOND_NS // 5)])
    assert found is not None
    assert [one.follow_s for one in found] == pytest.approx([0.7, 0.7])


def queued(step: tuple[int, ...], capacity: float) -> Any:
    """What followed the rates of a forwarder that passes so many frames a second and queues all others, by tenths."""
    windows, free_s, number = [], 0.0, 0
    for second, rate in enumerate(step):
        for tenth in range(10):
            number += 1
            begin_s, frames = second + tenth / 10, rate // 10
            arrivals = []
            for place in range(frames):
                free_s = max(free_s, begin_s + place / rate) + 1 / capacity
                arrivals.append(round(free_s * SECOND_NS))
            times = {"first_ns": arrivals[0], "last_ns": arrivals[-1]}
            counts = {"pair": 1, "number": number, "kept": True, "sent": frames, "received": frames, "handled": frames}
            start_ns = round(begin_s * SECOND_NS)
            windows.append(SimpleNamespace(start_ns=start_ns, duration_ns=SECOND_NS // 10, **counts, **times))
    measured: Any = SimpleNamespace(windows=windows)
    return followed(CASE.sending(rate=Rate(trace=Trace("step", (step,)))), [measured])


@pytest.mark.parametrize("capacity", [1500, 2000, 2500, 2700])
def test_the_time_to_follow_is_that_of_the_queue_before_a_known_capacity_to_a_window(capacity: int) -> None:
    up, down = queued((500, 3000, 500, 500, 500), capacity)
    assert up.follow_s is None, "95 % of the change is more than it passes"
    waiting_s = (3000 - capacity) / capacity
    assert down.follow_s is not None
    assert waiting_s <= down.follow_s <= max(waiting_s, 0.1) + 0.1


def test_a_step_within_the_capacity_is_followed_by_the_first_window() -> None:
    assert [one.follow_s for one in queued((500, 3000, 500), 4000)] == pytest.approx([0.1, 0.1], abs=0.01)


def test_a_change_beyond_the_capacity_is_not_followed() -> None:
    found = followed(CASE, [launch(500, 500, 1000, 1000, 1000, 1000, 500, 500)])
    assert found is not None
    assert [one.follow_s for one in found] == [None, 0.5]
    said = load_changes(result().with_figures(followed=found))
    assert said == (
        "1 of 2 changes of the load arrived to 95 % before the next one, after 0.5 s (median; at most 0.5 s); not so:"
        " pair 1 second 1, 2,000 of 3,000 frames/s"
    )
    assert followed(CASE.sending(rate=Rate(1000)), [launch(500)]) is None
    assert load_changes(result()) == ""


def test_built_in_traces_are_replayable() -> None:
    steps, shift, dice = (Trace(label) for label in ("steps:30k", "shift:30k", "random:7:30k"))
    assert steps.rates(1)[::3] == steps.rates(2)[::3] == (7500, 15000, 22500, 30000, 22500, 15000, 7500)
    assert (shift.rates(1)[::3][:3], shift.rates(2)[::3][:3]) == ((30000, 3000, 30000), (3000, 30000, 3000))
    assert dice.rates(1) == Trace("random:7:30k").rates(1) != dice.rates(2)
    assert dice.rates(1) != Trace("random:8:30k").rates(1)
    assert all(3000 <= rate <= 30000 for rate in dice.rates(1))
    assert dice.rates(1)[:3] == (26251, 15263, 25302)


def test_a_trace_is_a_rate_that_results_keep_whole(tmp_path: Path) -> None:
    file = tmp_path / "my-day.csv"
    file.write_text("# second,pair 1,pair 2\n0,15000,0\n1,30000,5\n\n2,0,1  # the end\n")
    (rate,) = rates(f"trace:{file}", "--icbench-rate")
    assert isinstance(rate, Rate)
    assert rate == Rate(trace=Trace("my_day", ((15000, 30000, 0), (0, 5, 1))))
    assert (str(rate), rate.metric, rate.is_max, rate.at_limit) == ("trace:my_day", "trace", False, False)
    case = Case("veth", Frames(rate=rate), pairs=2)
    assert case.id == "veth-64B-b32-2vs2-Rtrace:my_day"
    assert Case.from_dict(case.to_dict()) == case
    assert Rate.from_json("trace:steps:1M") == Rate(trace=Trace("steps:1M"))
    reason = unsupported_reason(replace(case, pairs=3), builtin_switches()["veth"], 256)
    assert reason == "trace my_day has rates for 2 pairs, not for 3: set --icbench-pairs"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0,1\n2,1\n", "line 2: second 2 is where 1 belongs: a trace has every second, from 0"),
        ("0,1\n1,-1\n", "line 2: '-1' is not a number of frames per second"),
        ("0,1\n1,nan\n", "line 2: 'nan' is not a number of frames per second: write SECOND,RATE (0 to 999999999)"),
        ("0,1\n1,1e3\n", "line 2: '1e3' is not a number of frames per second"),
        ("0,1\n1,0.5\n", "line 2: '0.5' is not a number of frames per second"),
        ("0,1\n1\n", "line 2: 0 rates, and each second needs 1"),
        ("0,1,2\n1,1\n", "line 2: 1 rates, and each second needs 2"),
        ("0\n", "line 1: 0 rates, and each second needs one at least"),
        ("", "is not a trace: it needs 1 to 3600 seconds, and a rate above 0"),
        ("0,0\n", "is not a trace: it needs 1 to 3600 seconds, and a rate above 0"),
    ],
)
def test_traces_with_gaps_or_wrong_rates_are_refused(text: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "bad.csv"
    file.write_text(text)
    with pytest.raises(UsageError) as error:
        rates(f"trace:{file}", "--icbench-rate")
    assert words in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("token", ["trace:nix.csv", "trace:steps", "trace:steps:0", "trace:", "trace:/"])
def test_what_is_no_trace_is_refused_with_the_forms(token: str) -> None:
    with pytest.raises(UsageError, match=f"'{token}' is not a trace .*: write trace:steps:30k, trace:shift:30k"):
        rates(token, "--icbench-rate")


def test_senders_get_their_pairs_rates_and_launches_its_length() -> None:
    case = replace(CASE, api="udp", pairs=2).sending(rate=Rate(trace=Trace("two", ((0, 2000), (3000, 0)))))
    settings = Settings(max_warmup_s=2.0, warmup_s=0.1, skip_s=1.0, duration_s=5.0).following(case.rate.trace)
    assert (settings.duration_s, settings.settles, settings.warmup_s, settings.skip_s) == (2.0, False, 0.25, 0.0)
    lines = [command.argv(Path("/w")) for command in commands(ScriptedRig(), case, settings).values()]
    assert [line[line.index("--trace") + 1] for line in lines if "--trace" in line] == ["0,2000", "3000,0"]
    assert [line[line.index("-r") + 1] for line in lines if "--trace" in line] == ["1", "3000"]
    assert sum("--trace" in line for line in lines) == 2


def test_a_trace_is_an_axis_as_any_rate() -> None:
    marker = {"switch": "veth", "rate": ["max", "trace:steps:30k"]}
    found = expand(parse_marker((), marker, "x"), Options(), builtin_switches(), "x")
    assert [case.id for case in found] == ["veth-64B-b32-1vs1-Rmax", "veth-64B-b32-1vs1-Rtrace:steps:30k"]
