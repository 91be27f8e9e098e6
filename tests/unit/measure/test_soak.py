# SPDX-License-Identifier: BSD-3-Clause
"""Long runs: their settings, losses with their times, and windows on the disk while they run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_icbench.driver.workload.output import WindowLine, parse_line
from pytest_icbench.errors import ProvisionError
from pytest_icbench.measure.launch.windows import WindowStream
from pytest_icbench.measure.soak import MOST_EVENTS, MOST_WINDOWS, soak_settings, with_losses
from pytest_icbench.model.launch import Launch, Window
from pytest_icbench.model.settings import Settings
from pytest_icbench.model.trials import LossEvent
from tests.measurements import measurement

SECOND = 10**9


def window(number: int, lost: int = 0, refused: int = 0, pair: int = 1, kept: bool = True) -> Window:
    return Window(
        pair=pair, number=number, start_ns=7 * SECOND + (number - 1) * SECOND, duration_ns=SECOND,
        scheduled=100 + refused, sent=100, refused=refused, received=100 - lost, received_bytes=0, duplicated=0,
        reordered=0, not_offered=0, tx_full=0, polls=0, empty_polls=0, catch_up_max=0, lateness_p99_ns=0,
        lateness_max_ns=0, involuntary_switches=0, kept=kept,
    )  # fmt: skip


def found(*windows: Window, started_at: float = 1000.0) -> Any:
    launch = Launch(0, started_at, 1.0, 0.0, 0.0, 0.0, 0.0, False, (), windows=windows)
    return with_losses(measurement(per_launch=(launch,), settings={"warmup_s": 0.25}))


def test_consecutive_windows_with_losses_are_one_event() -> None:
    result = found(window(1), window(2, lost=3), window(3, lost=4, refused=1), window(4), window(5, refused=2))
    assert result.loss_events == (
        LossEvent(pair=1, started_at=1001.25, duration_s=2.0, windows=2, lost=7, refused=1),
        LossEvent(pair=1, started_at=1004.25, duration_s=1.0, windows=1, lost=0, refused=2),
    )
    assert result.loss_event_count == 2


def test_pairs_have_events_of_their_own_in_order_of_time() -> None:
    result = found(window(1, pair=2, lost=1), window(2, pair=1, lost=2), window(3, pair=2, lost=4))
    assert [(event.pair, event.lost) for event in result.loss_events] == [(2, 1), (1, 2), (2, 4)]


def test_without_losses_there_are_no_events() -> None:
    assert found(window(1), window(2)).loss_events == ()
    assert found().loss_event_count == 0
    assert found(window(1, lost=5, kept=False), window(2)).loss_event_count == 0


def test_events_without_end_are_counted_but_not_all_listed() -> None:
    result = found(*(window(number, lost=number % 2) for number in range(1, 2 * MOST_EVENTS + 100)))
    assert len(result.loss_events) == MOST_EVENTS
    assert result.loss_event_count == MOST_EVENTS + 50


def test_a_result_with_events_is_read_back() -> None:
    result = found(window(1, lost=1))
    assert type(result).from_json(result.to_json()).loss_events == result.loss_events


@pytest.mark.parametrize(
    ("duration_s", "window_s"), [(1.0, 0.1), (20.0, 1.0), (3600.0, 1.0), (36_000.0, 3.6), (2_592_000.0, 259.2)]
)
def test_windows_grow_so_that_their_number_has_a_bound(duration_s: float, window_s: float) -> None:
    settings = soak_settings(Settings(skip_s=0.2, keep_s=0.3, max_warmup_s=2.0), duration_s, Path("/x"))
    assert settings.window_s == pytest.approx(window_s)
    assert settings.duration_s / settings.window_s <= MOST_WINDOWS + 1
    assert (settings.repeats, settings.settles, settings.reference, settings.stream) == (1, False, False, "/x")
    assert settings.keeps(1)
    json.dumps(settings.to_dict())


SENT = {"start_ns": 5, "duration_ns": 9, "scheduled": 10, "sent": 10, "refused": 0, "not_offered": 0, "tx_full": 0,
        "catch_up_max": 0, "lateness_p99_ns": 0, "lateness_max_ns": 0, "yields": 0}  # fmt: skip
RECEIVED = {"provisional": True, "received": 8, "bytes": 0, "duplicated": 0, "reordered": 0, "polls": 0,
            "empty_polls": 0, "first_ns": None, "last_ns": None}  # fmt: skip
RTT = {"count": 8, "min_ns": 1, "mean_ns": 2, "p50_ns": None, "p99_ns": None, "max_ns": 3}
PARTS: dict[str, dict[str, Any]] = {
    "sender": SENT,
    "receiver": RECEIVED,
    "server": RECEIVED,
    "client": {**SENT, **RECEIVED, "rtt": RTT},
}


def said(role: str, number: int, pair: int = 1, **more: Any) -> WindowLine:
    head = {"schema": 1, "type": "window", "role": role, "stream": pair, "window": number, "involuntary_switches": 0}
    line = parse_line(json.dumps({**head, **PARTS[role], **more}))
    assert isinstance(line, WindowLine)
    return line


def written(path: Path) -> list[tuple[int, int, int]]:
    return [(line["pair"], line["number"], line["lost"]) for line in map(json.loads, path.read_text().splitlines())]


def test_a_window_is_written_once_both_ends_have_spoken(tmp_path: Path) -> None:
    path = tmp_path / "soak" / "x.jsonl"
    stream = WindowStream(path)
    stream.take([said("sender", 1), said("sender", 2), said("receiver", 1)])
    stream.take([said("receiver", 1, pair=2), said("sender", 1, pair=2)])
    # The final lines at the end repeat every window.
    stream.take([said("receiver", 1, received=10), said("receiver", 2, received=10), said("sender", 1)])
    stream.close()
    stream.close()
    assert written(path) == [(1, 1, 2), (2, 1, 2), (1, 2, 0)]


def test_a_client_speaks_for_both_ends(tmp_path: Path) -> None:
    stream = WindowStream(tmp_path / "x")
    stream.take([said("client", 1), said("server", 1), said("client", 1)])
    stream.close()
    (line,) = (tmp_path / "x").read_text().splitlines()
    assert json.loads(line)["rtt"] == RTT


def test_what_was_said_is_on_the_disk_before_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_icbench.measure.launch.windows.SYNC_S", 0.0)
    stream = WindowStream(tmp_path / "x")
    stream.take([said("client", 1)])
    assert written(tmp_path / "x") == [(1, 1, 2)]
    stream.close()


def test_half_reported_windows_do_not_pile_up(tmp_path: Path) -> None:
    stream = WindowStream(tmp_path / "x")
    stream.take([said("sender", number) for number in range(1, 1000)])
    stream.take([said("receiver", 999)])
    assert not stream._pending
    stream.close()


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ProvisionError, match="cannot be written"):
        WindowStream(tmp_path / "file" / "x.jsonl")
