# SPDX-License-Identifier: BSD-3-Clause
"""The claim about real sessions of the gate: their records, and what is concluded from them."""

from __future__ import annotations

import itertools
import re
import subprocess
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from pytest_icbench.store.baselines import save
from tests.baselines import entry

CASES = ("linux-bridge-64B", "forward:cost4000-64B")
ACCUSING = "sessions of 32 without a change, their cases judged, that accuse anything"
FOUND = "10% slower, on a quiet host: found"
AGREE = "intervals that hold the others' median"


@pytest.fixture
def pool(load: Callable[[str], Any]) -> Any:
    return load("validation.pools.gate_sessions")


@pytest.fixture
def claim(load: Callable[[str], Any], pool: Any) -> Any:
    return load("validation.claims.gate_sessions")


@pytest.fixture
def record(pool: Any) -> Any:
    """Eight blocks of one quiet host, whose sessions agree, and whose gate finds what is slower and nothing else."""
    random = Random(5)

    def judged(case: str, kind: str) -> Any:
        slower = kind in pool.SLOWER and case.startswith("forward")
        verdict = "-" if kind == pool.BASELINE else "REGRESSED" if slower and kind != "slower-5" else "PASS"
        level = 1e6 * (1 - (pool.SLOWER[kind] if slower else 0))
        launches = [level * random.gauss(1, 0.01) for _ in range(9)]
        return pool.Judged(verdict, "", [level, 0.98 * level, 1.02 * level], [1.0, 0.97, 1.03], launches, 0)

    def session(kind: str) -> Any:
        cases = {case: judged(case, kind) for case in CASES}
        return pool.Session(kind, 0.0, 300.0, [0.1, 2.0], 0, 0.01, 0.0, "abc", cases)

    kinds = itertools.islice(pool.order("x"), 6 + 8 * 8)
    return pool.Record(Path("x-1.jsonl"), {"CPUs": 2, "processor": "P"}, [session(kind) for kind in kinds])


def rows(claim: Any, *records: Any) -> dict[str, Any]:
    return {row.what: row for row in claim.assemble(records).rows}


def bounds(claim: Any, *records: Any) -> list[str]:
    return [row.what for row in claim.assemble(records).rows if row.bound]


def changed(record: Any, kind: str, case: str, number: int = 1, **fields: Any) -> Any:
    """The same, but for a case of so many sessions of that kind, the last ones."""
    places = [place for place, session in enumerate(record.sessions) if session.kind == kind][-number:]
    sessions = list(record.sessions)
    for place in places:
        cases = sessions[place].cases
        sessions[place] = replace(sessions[place], cases={**cases, case: replace(cases[case], **fields)})
    return replace(record, sessions=sessions)


def of_every_session(record: Any, **fields: Any) -> Any:
    return replace(record, sessions=[replace(session, **fields) for session in record.sessions])


def test_sessions_that_agree_keep_every_bound(claim: Any, record: Any) -> None:
    found = rows(claim, record)
    assert all(row.held for row in found.values())
    assert len(bounds(claim, record)) == 8
    assert found[ACCUSING].value == 0
    assert found[FOUND].value == "16 of 16"
    assert found["10% slower, beside load: found"].value == "8 of 8"
    assert found["5% slower, on a quiet host: found"].value == "0 of 8"
    assert "Few yet, sessions with a forwarder 5% slower: 8 of 10." in claim.assemble([record]).notes
    assert found["sessions without a change that show nothing"].value == 0


@pytest.mark.parametrize("kind", ["same", "same-beside-cpu", "same-beside-memory"])
def test_one_accusation_without_a_change_breaks_the_claim(claim: Any, record: Any, kind: str) -> None:
    row = rows(claim, changed(record, kind, CASES[0], verdict="REGRESSED"))[ACCUSING]
    assert (row.value, row.held) == (1, False)


def test_an_unchanged_case_beside_a_slower_forwarder_is_not_to_be_accused(claim: Any, record: Any) -> None:
    found = rows(claim, changed(record, "slower-5", CASES[0], verdict="REGRESSED"))
    assert not found["of 32 unchanged cases beside a slower forwarder, accused"].held


def test_a_slower_forwarder_that_is_missed_on_a_quiet_host_breaks_the_claim(claim: Any, record: Any) -> None:
    missing = changed(record, "slower-10", CASES[1], verdict="INCONCLUSIVE")
    row = rows(claim, missing)[FOUND]
    assert (row.value, row.held) == ("15 of 16", False)


@pytest.mark.parametrize(("taken", "stolen"), [(0.5, 0.0), (0.0, 0.5), (None, 0.0)])
def test_on_a_host_that_is_not_quiet_it_may_be_missed_but_does_not_pass(
    claim: Any, record: Any, taken: float | None, stolen: float
) -> None:
    busy = of_every_session(changed(record, "slower-10", CASES[1], verdict="INCONCLUSIVE"), taken=taken, stolen=stolen)
    both = rows(claim, record, busy)
    assert both[FOUND].value == "16 of 16"
    assert both["10% slower, on a busy host: found"].value == "15 of 16"
    assert all(row.held for row in both.values())
    passing = of_every_session(changed(record, "slower-10", CASES[1], verdict="PASS"), taken=taken, stolen=stolen)
    assert not rows(claim, record, passing)["10% slower, on any host: verdicts"].held


def test_a_slower_forwarder_may_be_missed_beside_load_but_does_not_pass(claim: Any, record: Any) -> None:
    kind = "slower-10-beside-cpu"
    missed = rows(claim, changed(record, kind, CASES[1], verdict="INCONCLUSIVE"))
    assert missed["10% slower, beside load: found"].value == "7 of 8"
    assert missed[FOUND].value == "16 of 16"
    assert all(row.held for row in missed.values())
    passing = rows(claim, changed(record, kind, CASES[1], verdict="PASS"))
    assert not passing["10% slower, beside load: verdicts"].held


def test_a_session_of_more_than_ten_minutes_breaks_the_claim(claim: Any, record: Any) -> None:
    assert rows(claim, record)["seconds of the longest session"].held
    longer = replace(record, sessions=[*record.sessions[:-1], replace(record.sessions[-1], seconds=601.0)])
    assert not rows(claim, longer)["seconds of the longest session"].held


@pytest.mark.parametrize("verdict", ["NO_BASELINE", "INCOMPARABLE", "INVALID", ""])
def test_what_was_not_judged_is_not_shown_and_told_with_its_number(claim: Any, record: Any, verdict: str) -> None:
    """Without its baseline a session accuses nobody, and shows nothing by it."""
    found = rows(claim, changed(record, "same", CASES[0], 3, verdict=verdict))
    assert "sessions of 29 without a change, their cases judged, that accuse anything" in found
    told = found["sessions without a change that show nothing"].value
    assert told == f"3: of their cases 3 {verdict or 'no verdict'}"
    assert bounds(claim, changed(record, "same", CASES[0], 3, verdict=verdict)) == []  # 29 are too few


def test_a_case_without_a_result_is_no_judgement(claim: Any, record: Any) -> None:
    last = max(place for place, session in enumerate(record.sessions) if session.kind == "same")
    sessions = list(record.sessions)
    sessions[last] = replace(sessions[last], cases={CASES[1]: sessions[last].cases[CASES[1]]})
    told = rows(claim, replace(record, sessions=sessions))["sessions without a change that show nothing"].value
    assert told == "1: of their cases 1 no result"


def test_a_session_that_accuses_counts_whatever_else_was_not_judged(claim: Any, record: Any) -> None:
    accusing = changed(changed(record, "same", CASES[0], verdict="REGRESSED"), "same", CASES[1], verdict="INVALID")
    assert rows(claim, accusing)[ACCUSING].value == 1


def test_a_slower_forwarder_that_was_not_judged_is_neither_found_nor_missed(claim: Any, record: Any) -> None:
    found = rows(claim, changed(record, "slower-10", CASES[1], verdict="INVALID"))
    assert found[FOUND].value == "15 of 15"
    assert found["10% slower, on any host: verdicts"].value == "1 INVALID, 15 REGRESSED"


def test_too_few_sessions_show_nothing_but_break_a_bound(claim: Any, record: Any) -> None:
    few = replace(record, sessions=record.sessions[:14])
    assert bounds(claim, few) == []
    assert "Not shown yet, sessions without a change whose cases were judged: 4 of 30." in claim.assemble([few]).notes
    assert len(bounds(claim, changed(few, "same", CASES[0], verdict="REGRESSED"))) == 1
    assert bounds(claim, changed(few, "same", CASES[0], 2, value=[2e6, 1.99e6, 2.01e6])) == []  # a share of few


def test_records_of_several_hosts_are_one_claim(claim: Any, record: Any) -> None:
    """Another host has another level: its sessions agree with each other alone."""

    def twice(estimate: list[float]) -> list[float]:
        return [2 * each for each in estimate]

    sessions = [
        replace(s, cases={c: replace(each, value=twice(each.value)) for c, each in s.cases.items()})
        for s in record.sessions[:14]
    ]
    found = rows(claim, record, replace(record, sessions=sessions))
    assert found["records, each with a baseline of its own"].value == 2
    assert found[AGREE].value.startswith("100.0% of 96")  # two cases of 6 + 32 sessions, and of 6 + 4


def test_intervals_that_miss_the_others_are_counted(claim: Any, record: Any) -> None:
    far = changed(record, "same", CASES[0], 8, value=[2e6, 1.99e6, 2.01e6])
    row = rows(claim, far)[AGREE]
    assert row.value.startswith("89.5% of 76")
    assert not row.held
    row = rows(claim, changed(record, "same", CASES[0], 7, change=[0.8, 0.7, 0.9]))["intervals of a change that hold 1"]
    assert (row.value, row.held) == ("89.1% of 64", False)


def test_an_interval_without_an_end_holds_and_an_invalid_case_counts_for_nothing(claim: Any, record: Any) -> None:
    first = changed(record, "baseline", CASES[0], value=[2e6, None, None])
    found = rows(claim, changed(first, "baseline", CASES[1], value=None))
    assert found[AGREE].value.startswith("100.0% of 75")


def test_without_a_session_after_a_baseline_nothing_is_shown(
    claim: Any, record: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claim, "records", lambda: [replace(record, sessions=record.sessions[:6])])
    with pytest.raises(claim.Unsupported, match="no session after a baseline is recorded"):
        claim.check(None)


def written(pool: Any, directory: Path, record: Any, number: int, host: str = "aa") -> Any:
    """The first sessions of a record, on the disk as one of that host."""
    found = pool.record_of(directory, host, new=False)
    for session in record.sessions[:number]:
        found.append(session)
    return found


def with_baseline(record: Any, sessions: int) -> None:
    """Saves a baseline for a record, of so many sessions."""
    for number in range(sessions):
        save(record.work / "baselines", "main", [replace(entry(), measured=f"2026-01-{number + 1:02}T12:00:00Z")])


def test_a_record_is_read_as_it_was_written(pool: Any, record: Any, tmp_path: Path) -> None:
    there = written(pool, tmp_path, record, 9)
    assert there.file.name == "aa-1.jsonl"
    assert pool.records(tmp_path) == [there]
    assert pool.Record.read(there.file).sessions == record.sessions[:9]


def test_a_record_goes_on_while_its_baseline_is_there(pool: Any, record: Any, tmp_path: Path) -> None:
    there = written(pool, tmp_path, record, 6)
    with_baseline(there, 6)
    assert pool.record_of(tmp_path, "aa", new=False) == there


@pytest.mark.parametrize("sessions", [0, 5])
def test_a_lost_baseline_is_refused_and_begins_no_record_anew(
    pool: Any, record: Any, tmp_path: Path, sessions: int
) -> None:
    there = written(pool, tmp_path, record, 6)
    with_baseline(there, sessions)
    before = there.file.read_text()
    with pytest.raises(SystemExit, match=r"aa-1\.jsonl: its baseline is lost .*; --new begins another record"):
        pool.record_of(tmp_path, "aa", new=False)
    other = pool.record_of(tmp_path, "aa", new=True)
    assert (other.file.name, other.sessions, there.file.read_text()) == ("aa-2.jsonl", [], before)
    other.append(next(session for session in record.sessions if session.kind == "slower-10"))
    assert pool.record_of(tmp_path, "aa", new=False) == other  # the newest one goes on


def test_each_host_has_a_record_of_its_own(
    pool: Any, record: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = []
    for machine in ("one", "two"):
        monkeypatch.setattr(pool, "identity", lambda machine=machine: {"machine": machine})
        names.append(pool.host_digest())
    assert len(set(names)) == 2
    assert all(re.fullmatch("[0-9a-f]{12}", name) for name in names)
    files = [written(pool, tmp_path, record, 1, name).file for name in names]
    assert len({*files}) == 2
    assert not any(machine in file.read_text() for file in files for machine in ("one", "two"))


def test_an_hour_has_a_baseline_and_a_session_of_each_kind(pool: Any) -> None:
    kinds = list(itertools.islice(pool.following([], "x"), pool.AN_HOUR))
    assert kinds[:6] == ["baseline"] * 6
    assert Counter(kinds[6:]) == pool.BLOCK
    blocks = list(itertools.islice(pool.order("x"), 6 + 5 * 8))[6:]
    assert all(Counter(blocks[place : place + 8]) == pool.BLOCK for place in range(0, 40, 8))
    assert len({tuple(blocks[place : place + 8]) for place in range(0, 40, 8)}) > 1


def test_what_follows_goes_on_where_the_record_ends(pool: Any, record: Any) -> None:
    for done in (0, 4, 6, 9, 20):
        following = pool.following(record.sessions[:done], "x")
        assert list(itertools.islice(following, 10)) == list(itertools.islice(pool.order("x"), done, done + 10))


def test_only_these_kinds_are_recorded_after_the_baseline(pool: Any, record: Any) -> None:
    asked = pool.kinds_of("slower-5,same")
    kinds = list(itertools.islice(pool.following(record.sessions[:4], "x", asked), 20))
    assert kinds[:2] == ["baseline"] * 2
    assert set(kinds[2:]) == {"slower-5", "same"}
    for text in ("same,nosuch", ""):
        with pytest.raises(pool.argparse.ArgumentTypeError, match="choose from same"):
            pool.kinds_of(text)


def test_sessions_are_compared_and_saved_as_a_ci_does(pool: Any, tmp_path: Path) -> None:
    told = {kind: " ".join(pool.command(kind, tmp_path)) for kind in ("baseline", *pool.BLOCK)}
    assert {kind for kind, argv in told.items() if "--icbench-save all" in argv} == {"baseline", "same"}
    assert {kind for kind, argv in told.items() if "--icbench-compare main" not in argv} == {"baseline"}
    assert all("--icbench-rounds=3" in argv for argv in told.values())


def test_the_gate_itself_has_records_of_its_own_and_runs_as_its_recipes_do(
    pool: Any, record: Any, tmp_path: Path
) -> None:
    short, full = (pool.record_of(tmp_path, "aa", new=False, full=full) for full in (False, True))
    assert (short.file.name, short.full, full.file.name, full.full) == ("aa-1.jsonl", False, "aa-full-1.jsonl", True)
    full.append(next(session for session in record.sessions if session.kind == "same-beside-cpu"))
    assert pool.record_of(tmp_path, "aa", new=False).file == short.file
    assert pool.record_of(tmp_path, "aa", new=False, full=True) == full
    argv = " ".join(pool.command("same", tmp_path, full=True))
    assert "scenarios/test_gate.py" in argv
    assert "--icbench-rounds=3 --icbench-budget 9m" in argv
    assert "forward" not in argv
    recipe = (pool.ROOT / "docs" / "how-to" / "ci" / "Jenkinsfile").read_text()
    assert "scenarios/test_gate.py --icbench-rounds 3 --icbench-budget 9m " in recipe


def test_the_gate_itself_has_no_slower_forwarder(pool: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        pool.main(["--full", "--kinds", "same,slower-5", "--records", str(tmp_path)])
    assert "--full has no slower forwarder: choose --kinds from same, " in capsys.readouterr().err


def test_a_session_is_read_from_its_run_and_what_was_cut_off_joins_no_baseline(
    pool: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = pool.ROOT / "tests" / "unit" / "store" / "stored_run"
    saves = "from pathlib import Path\nd = Path('baselines/all')\nd.mkdir(parents=True, exist_ok=True)\n"
    saves += "(d / str(len(list(d.iterdir())))).touch()\n"

    def command(kind: str, _work: Path, *, full: bool) -> list[str]:
        says = f"print('reports: {stored}')" if kind != "same-without-results" else "print('no')"
        return [pool.sys.executable, "-c", (saves if kind in ("baseline", "same") else "") + says]

    monkeypatch.setattr(pool, "command", command)
    every, main = tmp_path / "baselines" / "all", tmp_path / "baselines" / "main"
    every.mkdir(parents=True)
    (every / "cut off").touch()
    first = pool.run("baseline", tmp_path)
    assert (first.kind, first.exit, len(first.cases)) == ("baseline", 0, 2)
    assert all(each.launches for each in first.cases.values())
    assert [file.name for file in main.iterdir()] == ["0"]
    (every / "cut off").touch()
    pool.run("slower-10", tmp_path)
    pool.run("same", tmp_path)
    assert sorted(file.name for file in main.iterdir()) == ["0", "1"]
    with pytest.raises(SystemExit, match="the session has no results"):
        pool.run("same-without-results", tmp_path)


def test_the_rounds_are_those_of_the_recipes(pool: Any) -> None:
    recipes = [file.read_text() for file in sorted((pool.ROOT / "docs" / "how-to" / "ci").iterdir())]
    assert all(f"--icbench-rounds {pool.ROUNDS}" in text for text in recipes)


def test_a_session_finds_time_for_its_cases_and_a_second_look(pool: Any, tmp_path: Path) -> None:
    """A fifth of the budget is kept back, if the cases leave it: else no suspect would ever be accused."""
    save(tmp_path / "baselines", "main", [entry()])
    pool.forwarder(tmp_path / "forward", 0.0)
    for kind, part in (("baseline", 1.0), ("same", 0.8)):
        argv = [*pool.command(kind, tmp_path), "--icbench-plan"]
        told = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
        assert told.returncode == 0, told.stdout + told.stderr
        minutes, seconds = re.findall(r"at least (\d+):(\d+) ", told.stdout)[0]
        least_s = 60 * int(minutes) + int(seconds)
        assert 0 < least_s <= part * 60 * int(pool.BUDGET[kind == "baseline"].removesuffix("m"))


def test_a_slower_forwarder_is_the_workload_with_another_cost(
    pool: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ICBENCH_WORKLOAD", "/bin/echo")
    program = tmp_path / "forward"
    for slower, cost in ((0.0, 4000), (0.1, 4471)):
        pool.forwarder(program, slower)
        argv = [str(program), "dpdk-forward", "--cost", "4000", "--name", "a b"]
        told = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
        assert told == f"dpdk-forward --cost {cost} --name a b\n"


def test_work_directories_are_not_kept(pool: Any) -> None:
    work = pool.Record(pool.RECORDS / "aa-1.jsonl", {}, []).work
    asked = ["git", "check-ignore", "-q", str(work)]
    inside = subprocess.run(["git", "rev-parse"], cwd=pool.ROOT, capture_output=True, check=False)
    if inside.returncode:
        pytest.skip("the sources are no repository here")
    assert subprocess.run(asked, cwd=pool.ROOT, check=False).returncode == 0
    assert subprocess.run([*asked[:-1], str(work.with_suffix(".jsonl"))], cwd=pool.ROOT, check=False).returncode == 1


def test_every_figure_is_drawn(claim: Any, record: Any, tmp_path: Path) -> None:
    figure = pytest.importorskip("matplotlib.figure")
    every = ("IMPROVED", "INCONCLUSIVE", "INVALID", "NO_BASELINE", "INCOMPARABLE", "")
    for place in range(len(every), 0, -1):  # with the others more than there are colours
        record = changed(record, "same", CASES[0], place, verdict=every[place - 1])
    assert len({session.cases[CASES[0]].verdict for session in record.sessions}) == 8
    data = claim.assemble([record, replace(record, sessions=record.sessions[:14])]).data
    for name in claim.FIGURES:
        drawn = figure.Figure(layout="constrained")
        claim.draw(name, drawn, data)
        drawn.savefig(tmp_path / f"{name}.svg")
        assert (tmp_path / f"{name}.svg").stat().st_size > 1000
