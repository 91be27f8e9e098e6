# SPDX-License-Identifier: BSD-3-Clause
"""icbench accept, waive and compare, from the command line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_icbench.cli.main import main
from pytest_icbench.gate.baseline_comparison import Comparer
from pytest_icbench.gate.judge import Waiver
from pytest_icbench.gate.margins import Margins
from pytest_icbench.model.case import Case
from pytest_icbench.model.load import Frames
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.traffic import Traffic
from pytest_icbench.stats.verdict_rule import MOST_SESSIONS
from pytest_icbench.store import baselines, waiver_file
from tests.baselines import HOST, entry, keep_sessions, measured, scaled

BIG = Case("ovs", Frames(Traffic(1500)))


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run_of(name: str, measurements: Sequence[Measurement]) -> Path:
    directory = Path("reports") / name
    directory.mkdir(parents=True)
    (directory / "results.jsonl").write_text("".join(each.to_json() + "\n" for each in measurements))
    return directory


def call(capsys: pytest.CaptureFixture[str], *argv: object) -> tuple[int, str, str]:
    code = main([str(each) for each in argv])
    out, err = capsys.readouterr()
    return code, out, err


def test_accept_takes_the_cases_named(capsys: pytest.CaptureFixture[str]) -> None:
    run_of("latest", [measured(), measured(BIG), measured(Case("veth"))])
    code, out, _ = call(capsys, "accept", "main", "ovs-64B-*", "veth*")
    assert code == 0
    assert "throughput ovs-64B-b32-1vs1-Rmax dedicated: accepted" in out
    assert {each.case for each in baselines.load(Path("baselines"), "main").entries} == {
        "ovs-64B-b32-1vs1-Rmax",
        "veth-64B-b32-1vs1-Rmax",
    }
    run_of("newer", [measured(launches=scaled(0.5)), measured(BIG, launches=scaled(0.5))])
    assert call(capsys, "accept", "main", "--all", "--run", "reports/newer")[0] == 0
    found = {
        each.case: each.figures["throughput_pps"].value for each in baselines.load(Path("baselines"), "main").entries
    }
    assert found["ovs-64B-b32-1vs1-Rmax"] == found["ovs-1500B-b32-1vs1-Rmax"] == 2.5e6
    assert found["veth-64B-b32-1vs1-Rmax"] == 5e6


def test_a_run_of_unchanged_software_is_a_further_session_but_not_what_regressed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    baselines.save(Path("baselines"), "main", [entry(), entry(BIG)])
    now = [measured(launches=scaled(factor), started_at=1.8e9, verdict="PASS") for factor in (0.5, 0.99)]  # two looks
    fell = [measured(BIG, launches=scaled(0.5), started_at=1.8e9, verdict=v) for v in ("INCONCLUSIVE", "REGRESSED")]
    run_of("latest", [*now, *fell])
    code, out, _ = call(capsys, "accept", "main", "ovs-64B-*", "ovs-1500B-*", "--unchanged")
    assert code == 1
    assert "throughput ovs-64B-b32-1vs1-Rmax dedicated: added" in out
    assert "throughput ovs-1500B-b32-1vs1-Rmax: not added: a REGRESSED case is not unchanged software" in out
    kept = {each.case: each for each in baselines.load(Path("baselines"), "main").entries}
    added, left = kept["ovs-64B-b32-1vs1-Rmax"], kept["ovs-1500B-b32-1vs1-Rmax"]
    assert [session.level for session in added.sessions] == [0, 0]
    assert added.figures["throughput_pps"].value == pytest.approx(4.95e6)
    assert len(left.sessions) == 1


def test_accept_refuses_what_is_no_number_and_what_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    run_of("latest", [measured(verdict="INVALID", reason="died"), measured(BIG)])
    code, out, _ = call(capsys, "accept", "main", "*")
    assert code == 1
    assert "throughput ovs-64B-b32-1vs1-Rmax: not accepted: died" in out
    assert len(baselines.load(Path("baselines"), "main").entries) == 1
    for argv, reported in (
        (("main", "vpp-*"), "has no case 'vpp-*'"),
        (("main",), "name the cases"),
        (("main", "*", "--all"), "name the cases"),
        (("../x", "*"), "is not a name of a baseline"),
        (("main", "*", "--run", "nowhere"), "nowhere cannot be read"),
    ):
        code, _, err = call(capsys, "accept", *argv)
        assert (code, reported in err) == (2, True), err


def test_a_results_file_that_is_cut_off_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    path = run_of("latest", [measured(), measured(BIG)]) / "results.jsonl"
    path.write_text(path.read_text()[:-100])
    code, _, err = call(capsys, "accept", "main", "*")
    assert code == 2
    assert "results.jsonl line 2: not valid JSON" in err
    assert not Path("baselines").exists()
    path.write_text("")
    assert "no result" in call(capsys, "accept", "main", "*")[2]


def test_waive(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, _ = call(capsys, "waive", "ovs-*", "--reason", "known", "--until", "2999-01-31")
    assert code == 0
    assert waiver_file.load(Path("baselines")) == (Waiver("ovs-*", "known", "2999-01-31"),)
    call(capsys, "waive", "ovs-*", "--reason", "still", "--until", "2999-02-28")
    waiver_file.save(Path("baselines"), [*waiver_file.load(Path("baselines")), Waiver("old", "x", "2000-01-01")])
    _, out, _ = call(capsys, "waive")
    assert out.splitlines() == ["old: expired on 2000-01-01: x", "ovs-*: until 2999-02-28: still"]
    assert call(capsys, "waive", "ovs-*", "--remove")[0] == 0
    assert [each.case for each in waiver_file.load(Path("baselines"))] == ["old"]


@pytest.mark.parametrize(
    ("argv", "reported"),
    [
        (("x",), "needs --reason TEXT and --until DATE"),
        (("x", "--reason", " ", "--until", "2999-01-01"), "needs --reason"),
        (("x", "--reason", "y", "--until", "soon"), "'soon' is no day"),
        (("x", "--reason", "y", "--until", "2000-01-01"), "has passed"),
        (("x", "--remove"), "nothing is waived for 'x'"),
        (("--remove",), "name the case"),
    ],
)
def test_mistakes_of_waive(capsys: pytest.CaptureFixture[str], argv: tuple[str, ...], reported: str) -> None:
    code, _, err = call(capsys, "waive", *argv)
    assert (code, reported in err) == (2, True), err
    assert not Path("baselines").exists()


def test_compare_runs_and_baselines(capsys: pytest.CaptureFixture[str]) -> None:
    old = run_of("old", [measured(), measured(BIG), measured(Case("veth"))])
    new = run_of(
        "new",
        [
            measured(launches=scaled(0.8), treatment={"switch": {"version": "3.2"}, "node": "lxc"}),
            measured(BIG, launches=scaled(1.2)),
            measured(Case("vpp")),
        ],
    )
    call(capsys, "accept", "main", "--all", "--run", old)
    keep_sessions(Path("baselines"))
    for before in (old, old / "results.jsonl"):  # a run is one session: it flags nobody
        code, out, _ = call(capsys, "compare", before, new)
        assert (code, "2 INCONCLUSIVE, 1 NO_BASELINE" in out) == (0, True)
        reported = " ".join(out.split())
        assert "rate: too few sessions" in reported
        assert "veth-64B" in call(capsys, "compare", new, before)[1]
    for kept in ("main", "baselines/main"):
        code, out, _ = call(capsys, "compare", kept, new)
        assert code == 1
        lines = out.splitlines()
        assert max(map(len, lines)) <= 100
        assert lines[0] == "rate, Mpps, all with b32-1vs1-Rmax"
        assert lines[1].split() == ["before", "now", "change", "95", "%", "verdict"]
        rows = {line.split()[0]: line.split() for line in lines[2:5]}
        assert rows["ovs-64B"][1:5] == ["5", "4", "-20.0", "%"]
        assert [rows[name][-1] for name in ("ovs-64B", "ovs-1500B")] == ["REGRESSED", "IMPROVED"]
        assert rows["vpp-64B"][-1] == "NO_BASELINE"
        assert "1 REGRESSED, 1 NO_BASELINE, 1 IMPROVED" in out
        assert "  switch.version: 3.1 before, 3.2 now" in lines
        assert f"only in {kept}: veth-64B-b32-1vs1-Rmax" in lines


def test_compare_says_how_much_longer_it_would_take(capsys: pytest.CaptureFixture[str]) -> None:
    run_of("a", [measured()])
    run_of("b", [measured(launches=[0.985 * (5e6 + 20 * (value - 5e6)) for value in scaled(1)])])
    run_of("c", [measured(launches=[5e6])])
    call(capsys, "accept", "main", "--all", "--run", "reports/a")
    keep_sessions(Path("baselines"))
    assert call(capsys, "compare", "main", "reports/b")[0] == 0
    _, out, _ = call(capsys, "compare", "main", "reports/c")
    assert "ovs-64B-b32-1vs1-Rmax: rate: too few launches; about 5 more launches would tell" in out


def test_compare_takes_thresholds_patterns_and_cases(capsys: pytest.CaptureFixture[str]) -> None:
    call(capsys, "accept", "main", "--all", "--run", run_of("old", [measured()]))
    keep_sessions(Path("baselines"))
    old, new = "main", run_of("new", [measured(launches=scaled(0.8), identity={**HOST, "machine": "other"})])
    code, out, _ = call(capsys, "compare", old, new)
    assert (code, "1 INCOMPARABLE" in out, "identity.machine is other here" in out) == (0, True, True)
    assert call(capsys, "compare", old, new, "--must-match", "identity.* !identity.machine")[0] == 1
    Path("t.toml").write_text('["*"]\nallowance = 0.3\n')
    loose = ("--must-match", "placement", "--thresholds", "t.toml")
    assert call(capsys, "compare", old, new, *loose)[0] == 0
    code, _, err = call(capsys, "compare", old, new, "--case", "vpp*")
    assert (code, "has a case 'vpp*'" in err) == (2, True)


def test_compare_names_what_it_cannot_find_or_read(capsys: pytest.CaptureFixture[str]) -> None:
    run_of("old", [measured()])
    code, _, err = call(capsys, "compare", "main", "reports/old")
    assert code == 2
    assert "'main'" in err
    assert "there is no baseline 'main'" in err
    call(capsys, "accept", "main", "--all", "--run", "reports/old")
    (path,) = Path("baselines").glob("*/*/*.json")
    path.write_text(path.read_text().replace('"schema": 2', '"schema": 3'))
    code, _, err = call(capsys, "compare", "main", "reports/old")
    assert (code, f"{path}: written with schema 3" in err) == (2, True)


def test_hostile_names_are_shown_harmless(capsys: pytest.CaptureFixture[str]) -> None:
    old = run_of("old", [replace(measured(), case="\x1b[31m<x>")])
    _, out, _ = call(capsys, "compare", old, old)
    assert "\x1b" not in out


def test_saving_adds_a_session_and_accepting_begins_a_level() -> None:
    directory = Path("baselines")
    for day in range(3):
        baselines.save(directory, "main", [entry(launches=scaled(1 + day / 100), started_at=1.7e9 + 86400 * day)])
    (kept,) = baselines.load(directory, "main").entries
    assert [round(each.values["throughput_pps"]) for each in kept.sessions] == [5_000_000, 5_050_000, 5_100_000]
    baselines.save(directory, "main", [entry(launches=scaled(0.5), started_at=1.8e9)], accepted=True)
    (kept,) = baselines.load(directory, "main").entries
    assert [each.level for each in kept.sessions] == [0, 0, 0, 1]
    # The accepted value is right from now on, and the sessions before it still tell how far sessions lie apart.
    now = entry(launches=scaled(0.5), started_at=1.9e9)
    (finding,) = Comparer(baselines.load(directory, "main")).compare_entry(now, Margins()).findings
    assert (finding.units, finding.verdict) == (1, "PASS")
    assert finding.ratio == pytest.approx(1)
    assert finding.ratio_low is not None
    # Saved twice it is one session, and of other conditions none is kept.
    baselines.save(directory, "main", [now])
    baselines.save(directory, "main", [now])
    assert len(baselines.load(directory, "main").entries[0].sessions) == 5
    baselines.save(directory, "main", [entry(rules=9)])
    assert len(baselines.load(directory, "main").entries[0].sessions) == 1


def test_a_baseline_keeps_so_many_sessions_and_no_more() -> None:
    for day in range(MOST_SESSIONS + 3):
        baselines.save(Path("baselines"), "main", [entry(started_at=1.7e9 + 86400 * day)])
    (kept,) = baselines.load(Path("baselines"), "main").entries
    assert len(kept.sessions) == MOST_SESSIONS
    assert next(iter(kept.earlier)) == "2023-11-17T22:13:20Z"


def test_baseline_lists_drops_and_thins(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(capsys, "baseline") == (0, "", "")
    for day in range(6):
        one = entry(launches=scaled(1 + day % 2 / 50), started_at=1.7e9 + 86400 * day)
        baselines.save(Path("baselines"), "main", [one, entry(BIG)])
    assert call(capsys, "baseline")[1] == "main\n"
    _, out, _ = call(capsys, "baseline", "main")
    lines = [line.strip() for line in out.splitlines()]
    assert lines[0].startswith("host example-r-cpu-9000-")
    first = lines.index("throughput ovs-64B-b32-1vs1-Rmax dedicated")
    assert lines[first + 1] == "6 sessions, 2023-11-14T22:13:20Z to 2023-11-19T22:13:20Z"
    assert re.fullmatch(
        r"throughput_pps: sessions 1.08 % apart, 1.08 % relative to the reference link; finds a loss of \d[\d.]* % nine"
        r" times of ten.*",
        lines[first + 2],
    )
    assert any(line.strip().startswith("4 more would") and "--icbench-save" in line for line in lines)
    code, out, _ = call(capsys, "baseline", "main", "ovs-64B*", "--drop", "--session", "2023-11-15")
    assert (code, out.startswith("written: ")) == (0, True)
    assert "5 sessions" in call(capsys, "baseline", "main")[1]
    assert call(capsys, "baseline", "main", "--keep", "2")[0] == 0
    assert "2 sessions, 2023-11-18T22:13:20Z to 2023-11-19T22:13:20Z" in call(capsys, "baseline", "main")[1]
    assert call(capsys, "baseline", "main", "*", "--drop")[0] == 0
    assert list(Path("baselines").glob("*/*/*.json")) == []


@pytest.mark.parametrize(
    ("argv", "reported"),
    [
        (("--keep", "1"), "name the baseline"),
        (("mian",), "did you mean main?"),
        (("main", "vpp*"), "main has no case 'vpp*'"),
        (("main", "--drop"), "name the cases"),
        (("main", "*", "--drop", "--keep", "1"), "give one of them"),
        (("main", "*", "--session", "2023"), "add --drop"),
        (("main", "--keep", "0"), "--keep: '0'"),
        (("main", "--keep", "9" * 5000), "--keep: '9"),
        (("main", "--keep", "0" * 5000 + "1"), "--keep: '0"),
        (("main", "*", "--drop", "--session", "2023-11-14"), "is the newest session"),
        (("main", "*", "--drop", "--session", "1999"), "no session begins with '1999'"),
    ],
)
def test_mistakes_of_baseline(capsys: pytest.CaptureFixture[str], argv: tuple[str, ...], reported: str) -> None:
    baselines.save(Path("baselines"), "main", [entry()])
    before = {path: path.read_bytes() for path in Path("baselines").rglob("*.json")}
    code, _, err = call(capsys, "baseline", *argv)
    assert (code, reported in err) == (2, True), err
    assert {path: path.read_bytes() for path in Path("baselines").rglob("*.json")} == before
