# SPDX-License-Identifier: BSD-3-Clause
"""The preflight: which path it refuses, and by what."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_icbench.measure.launch import preflight
from tests.unit.scripted_rig import (
    ScriptedRig,
    run,
    spoil,
)


@pytest.mark.parametrize(
    ("ways", "evidence"),
    [
        ({"path": lambda sent: 0}, "pair 1: of 100000 frames from a to b none arrived"),
        ({"back": lambda sent: 0}, "pair 1: 100000 frames arrived from a to b, but none came back from b to a"),
        # Unfinished checksums are right by chance in one frame of 65536.
        ({"edit": spoil("summary", 1, received=2)}, "pair 1: of 100000 frames from a to b 2 arrived"),
        (
            {"edit": spoil("summary", 0, received=2)},
            "pair 1: 100000 frames arrived from a to b, but 2 came back from b to a",
        ),
    ],
)
def test_the_preflight_names_the_silent_direction(ways: dict[str, Any], evidence: str) -> None:
    rig = ScriptedRig(preflighted=False, **ways)
    found = run(rig)
    assert (found.verdict, found.reason, found.repeated) == ("INVALID", "no-forwarding", 2)
    assert found.evidence.startswith(evidence)
    assert rig.log.count("rig launch") == 3


def test_the_preflight_sees_damaged_frames() -> None:
    """It looks at every byte, whatever the measurement will do."""
    found = run(ScriptedRig(preflighted=False, edit=spoil("summary", 1, corrupted=3)))
    assert (found.verdict, found.reason, found.launches, found.repeated) == ("INVALID", "corrupted", 0, 2)
    assert re.fullmatch(
        r"server of pair 1 received 3 damaged frames beside \d+ good ones, before the measurement", found.evidence
    )


def test_the_preflight_looks_at_a_thousand_frames_of_each_pair_or_for_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [5.0]
    monkeypatch.setattr(preflight, "time", SimpleNamespace(monotonic=lambda: now[0]))

    def launch_output(*answers: int) -> Any:
        clients = (SimpleNamespace(windows={1: heard(0), 2: heard(count)}) for count in answers)
        return SimpleNamespace(outputs=dict(enumerate(each for client in clients for each in (client, None))))

    def heard(count: int) -> Any:
        return SimpleNamespace(received=SimpleNamespace(received=count))

    looking = preflight.Looking()
    assert not looking(launch_output(0, 1000))
    now[0] += 60  # a path that takes its time until it forwards
    assert not looking(launch_output(1, 1000))
    assert not looking(launch_output(999, 1000))
    assert looking(launch_output(1000, 1000))
    now[0] += 0.29
    assert not looking(launch_output(999, 1000))
    now[0] += 0.02
    assert looking(launch_output(2, 1000))


def test_the_preflight_neither_sends_trains_nor_writes_windows(tmp_path: Path) -> None:
    plans: list[tuple[str, ...]] = []
    rig = ScriptedRig(preflighted=False)
    launch = rig.launch

    def remember(plan: Any) -> str:
        plans.append(plan.processes[0].argv)
        return launch(plan)

    rig.launch = remember  # type: ignore[method-assign]
    path = tmp_path / "x"
    measured = run(rig, train="8:64:4", stream=str(path), repeats=1)
    assert measured.verdict is None
    assert ["--train" in argv for argv in plans] == [False, True]
    numbers = [json.loads(line)["number"] for line in path.read_text().splitlines()]
    assert numbers == [1, 2, 3]


def test_one_preflight_serves_until_the_rig_is_built_anew() -> None:
    rig = ScriptedRig(preflighted=False)
    assert run(rig).verdict is None
    assert run(rig).verdict is None
    assert rig.log.count("rig launch") == 1 + 3 + 3
    rig = ScriptedRig(preflighted=False)
    assert run(rig, rebuild=True).verdict is None
    assert rig.log.count("rig build") == 2
    assert rig.log.count("rig launch") == 6
