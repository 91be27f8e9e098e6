# SPDX-License-Identifier: BSD-3-Clause
"""The torture's plan: its table stands in the documents as it is, and a seed draws the same moments again."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_icbench.host.process import wait_until
from pytest_icbench.model.endpoint import ATTACH
from tests.host import snapshot
from tests.torture import fuzz, host, kills, lives, page
from tests.torture.fault_table import FAULTS, KINDS, SHORT
from tests.torture.faults import selected
from tests.torture.kills import lost, planned
from tests.torture.lives import Life


def test_every_fault_stands_in_the_table_of_the_page() -> None:
    table = page.table()
    assert [fault.name for fault in FAULTS if f"{fault.subject} {fault.what}" not in table] == []


def test_there_are_a_hundred_faults_each_with_a_name_and_words_of_its_own() -> None:
    names = [fault.name for fault in FAULTS]
    assert len(names) >= 100
    assert len(set(names)) == len(names)
    for fault in FAULTS:
        assert re.compile(fault.says).search("") is None, fault.name


def test_the_short_form_has_the_same_faults_each_time_of_every_kind_moment_and_end() -> None:
    short = selected(1, short=True)
    assert tuple(fault.name for fault in short) == SHORT
    assert selected(2, short=True) == short
    assert selected(1, "lock", short=True) == [fault for fault in short if "lock" in fault.name]
    assert all(set(faults) & set(short) for faults in KINDS.values())
    assert {fault.when for fault in short} == {fault.when for fault in FAULTS}
    assert {fault.end for fault in short} == {fault.end for fault in FAULTS} - {"either"}


@pytest.mark.parametrize(("count", "kinds"), [(1, 1), (20, 3), (200, 12)])
def test_moments_are_drawn_from_the_whole_life_and_over_all_lives(count: int, kinds: int) -> None:
    kills = planned(count, kinds, 7)
    assert kills == planned(count, kinds, 7)
    shares = sorted(kill.share for kill in kills)
    assert all(place / count <= share < (place + 1) / count for place, share in enumerate(shares))
    assert len({kill.life for kill in kills}) == min(count, kinds)
    assert {kill.life for kill in kills} <= set(range(kinds))
    assert len([kill for kill in kills if kill.recovery_s is not None]) == count // 4


def test_another_seed_draws_others() -> None:
    assert planned(20, 3, 1) != planned(20, 3, 2)
    assert [fault.name for fault in selected(1)] != [fault.name for fault in selected(2)]
    assert {fault.name for fault in selected(1)} == {fault.name for fault in FAULTS}


def test_readers_parsers_and_commands_have_their_share_of_the_inputs() -> None:
    inputs = fuzz.planned(10**7)
    assert {inputs[f"fuzz_{target}"] for target in fuzz.TARGETS} == {10**7}
    assert inputs["journal"] == inputs["parcel"] == inputs["thresholds"] == 10**5
    assert inputs["icbench report"] == 1000
    assert set(fuzz.planned(10**7, "stored ")) == {name for name in inputs if name.startswith("stored ")}


def test_a_lost_result_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "output").write_text("test_x.py::test_rate[veth-64B-b32-1vs1-Rmax] PASSED   [ 50%]\n")
    assert lost(tmp_path) == ["no run, but 1 tests passed"]
    (tmp_path / "reports" / "20260101T000000Z-1").mkdir(parents=True)
    (tmp_path / "reports" / "20260101T000000Z-1" / "results.jsonl").write_text("")
    assert lost(tmp_path) == [
        "test_rate[veth-64B-b32-1vs1-Rmax] passed and has no result",
        "1 tests passed, and 0 have windows",
    ]
    (tmp_path / "output").write_text("")
    assert lost(tmp_path) == []


@pytest.mark.parametrize(
    ("status", "end", "is_whole"),
    [
        (0, "===== 2 passed in 3.21s =====", True),
        (0, "===== 2 passed, 1 warning in 63.21s (0:01:03) =====", True),
        (0, "===== 2 skipped in 0.21s =====", False),
        (0, "===== 1 passed, 1 skipped in 3.21s =====", False),
        (1, "===== 1 failed, 1 passed in 3.21s =====", False),
        (1, "===== 2 passed, 1 error in 3.21s =====", False),
        (4, "", False),
    ],
)
def test_only_a_session_whose_tests_both_pass_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int, end: str, is_whole: bool
) -> None:
    def start(life: Life, directory: Path, other: object) -> subprocess.Popen[bytes]:
        (directory / "output").write_text(f"test_x.py::test_rate[x] PASSED\n{end}\n")
        return subprocess.Popen(["sh", "-c", f"exit {status}"])

    reported: list[str] = []
    monkeypatch.setattr(lives, "start", start)
    monkeypatch.setattr(lives, "recovery", lambda: ["true"])
    length_s = kills.whole(Life("x in netns", "x"), tmp_path, None, reported.append)
    assert (length_s is not None, not reported) == (is_whole, is_whole)
    assert is_whole or reported[0].startswith(
        f"x in netns is left out, since its session does not pass whole (exit status {status}"
    )


def test_kills_of_a_life_that_is_left_out_go_to_another(monkeypatch: pytest.MonkeyPatch) -> None:
    killed: list[str] = []

    def kill(plan: kills.Kill, life: Life, *_: object) -> None:
        killed.append(life.name)

    monkeypatch.setattr(kills, "whole", lambda life, *_: None if life.name == "broken" else 1.0)
    monkeypatch.setattr(kills, "_killed", kill)
    kinds = [Life(name, "x") for name in ("a", "broken", "b")]
    assert list(kills.run(kinds, 9, 1, lambda: False, print)) == [None] * 9
    assert {name: killed.count(name) for name in killed} == {"a": 3, "b": 6}
    assert list(kills.run(kinds[1:2], 9, 1, lambda: False, print)) == ["no session passes whole on this host"]


@pytest.mark.skipif(os.geteuid() != 0, reason="probes the host's switches: run pytest as root")
def test_no_life_is_of_somebodys_containers() -> None:
    """Without a topology their cases are skipped."""
    found = {life.switch for life in lives.lives()}
    assert "veth" in found
    assert ATTACH not in found


@pytest.mark.slow
def test_the_inputs_of_the_short_form() -> None:
    """Kills and faults, which change the host, are tried there."""
    argv = [sys.executable, "-m", "tests.torture", "--only=fuzz", "--short", "--seed=1"]
    root = Path(__file__).parents[3]
    done = subprocess.run(argv, cwd=root, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert "0 wrong" in done.stdout


def test_what_others_do_meanwhile_is_named_and_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    before = {"mount": {"/run/netns/icbaaaaaa-br": ""}, "huge pages": {"node0": "3"}, "process": {}}
    after = {
        "mount": {"/run/netns/icbbbbbbb-br": "", "/x": ""},
        "huge pages": {"node0": "4"},
        "process": {"7": "icbbbbbbb"},
    }
    monkeypatch.setattr(host, "take", lambda: after)
    monkeypatch.setattr(host, "NOT_COUNTED", {})
    monkeypatch.setattr(snapshot, "own_host", lambda pid: None)
    monkeypatch.setattr(host, "_strangers", set())
    assert host.left_since(before, 0) == [
        "mount /run/netns/icbbbbbbb-br is new",
        "mount /x is new",
        "huge pages node0: 3 became 4",
        "process 7 is new (icbbbbbbb)",
    ]
    monkeypatch.setattr(host, "_strangers", {"bbbbbb"})
    assert host.left_since(before, 0) == ["mount /x is new"]
    assert len(host.NOT_COUNTED) == 4


def test_what_was_there_before_and_what_has_no_mark_is_somebodys(monkeypatch: pytest.MonkeyPatch) -> None:
    """The program of a switch runs beside, which a test of somebody else has started."""
    ours = {**os.environ, "ICBENCH_SESSION": "aaaaaa"}
    with (
        subprocess.Popen(["sleep", "60"], env=ours) as marked,
        subprocess.Popen(["sleep", "60"]) as unmarked,
    ):
        wait_until(lambda: all(Path(f"/proc/{p.pid}/comm").read_text() == "sleep\n" for p in (marked, unmarked)), 5)
        before = {"process": {"7": "vpp"}, "namespace": {"mnt:[1]": ""}, "file": {"/run/vpp": ""}}
        now = {str(marked.pid): "vpp", str(unmarked.pid): "vpp", "8": "[lxc monitor] x"}
        monkeypatch.setattr(host, "take", lambda: {"process": now, "namespace": {}, "file": {}})
        monkeypatch.setattr(host, "NOT_COUNTED", {})
        left = host.left_since(before, 0)
        marked.kill()
        unmarked.kill()
    assert sorted(left) == sorted(
        [f"process {marked.pid} is new (vpp)", "process 8 is new ([lxc monitor] x)", "file /run/vpp is gone"]
    )
    assert len(host.NOT_COUNTED) == 3


def test_groups_of_another_host_on_this_machine_are_not_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    groups = ["icbaaaaaa", "own-host.7/icbbbbbbb", "own-host.8/icbcccccc"]
    monkeypatch.setattr(os, "walk", lambda top: [(top, groups, [])])
    for here, group in ((None, groups[0]), ("own-host.7", groups[1])):
        monkeypatch.setattr(snapshot, "own_host", lambda pid, here=here: here)
        assert list(snapshot._cgroups()) == [f"/sys/fs/cgroup/{group}"]
