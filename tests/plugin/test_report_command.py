# SPDX-License-Identifier: BSD-3-Clause
"""``icbench report``: from a run's files alone, on another machine as it were."""

from __future__ import annotations

import csv
import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_icbench.cli.main import main
from pytest_icbench.kinds.runs import METHODS
from pytest_icbench.measure.side_by_side import with_comparison
from pytest_icbench.measure.summary.launch_log import LaunchLog
from pytest_icbench.measure.summary.recorded import recounted
from pytest_icbench.measure.summary.summarize import Environment, summarize
from pytest_icbench.model.case import Case
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.settings import Settings
from pytest_icbench.store.history_file import read
from tests.baselines import keep_sessions
from tests.measurements import launch
from tests.plugin.conftest import Runner
from tests.plugin.fakes import FakeTestbed
from tests.plugin.test_versions import gives

LIMITS = '["*"]\nmin_throughput_pps = 900_000\nallowance = 0.05\n["*1500B*"]\nmin_throughput_pps = 1_500_000\n'
SCENARIO = """
@pytest.mark.icbench(switch="ovs", packet_size=[64, 1500])
def test_a(icbench):
    icbench.gate(icbench.throughput())
"""


def summarized(case: Case) -> Measurement:
    """As a real bench makes it: figures from launches. Rates differ a little, as they do."""
    launches = []
    for index in range(6):
        plain = launch(index=index)
        windows = tuple(replace(each, received=each.received - 7 * index * each.number) for each in plain.windows)
        launches.append(recounted(replace(plain, windows=windows)))
    around = Environment(
        placement="dedicated",
        endpoints=(),
        identity={"machine": "here", "cpu_model": "x"},
        treatment={"kernel": "6.1", "endpoints": [], "cpus": {"endpoints": [1, 2]}},
        shared=False,
    )
    log = LaunchLog(launches=launches, duration_s=6.0, started_at=1.0)
    return summarize(METHODS[case.kind].summary, case, Settings(repeats=6), log, around)


@pytest.fixture
def run(inner: Runner, bench: type[FakeTestbed], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a pass and a regression, carried elsewhere: nothing of where it was made is left."""
    bench.behaviour = staticmethod(summarized)
    inner.write(test_x=SCENARIO)
    inner.run("--icbench-save", "main")
    keep_sessions(inner.path / "baselines")
    (inner.path / "thresholds.toml").write_text(LIMITS)
    inner.run("--icbench-compare", "main").assert_outcomes(passed=1, failed=1)
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "copied"
    shutil.copytree((inner.path / "reports" / "latest").resolve(), elsewhere)
    shutil.rmtree(inner.path / "reports")
    for path in (inner.path / "thresholds.toml", inner.path / "test_x.py"):
        path.unlink()
    return elsewhere


def test_every_figure_and_verdict_comes_out_as_recorded(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recorded = [json.loads(line) for line in (run / "results.jsonl").read_text().splitlines()]
    assert [result["verdict"] for result in recorded] == ["PASS", "REGRESSED"]
    assert {finding["baseline"] for finding in recorded[0]["findings"]} == {None, "main"}
    assert main(["report", str(run)]) == 0
    out = capsys.readouterr().out
    assert "2 of 2 results recomputed from raw data, identical" in out
    assert "REGRESSED" in out


def test_what_was_tampered_with_is_named(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = run / "results.jsonl"
    first, second = path.read_text().splitlines()
    changed = json.loads(first)
    changed["figures"]["throughput_pps"]["value"] *= 1.01
    path.write_text(json.dumps(changed) + "\n" + second + "\n")
    assert main(["report", str(run), "-q"]) == 1
    captured = capsys.readouterr()
    assert "1 of 2 results" in captured.out
    assert "ovs-64B-b32-1vs1-Rmax]: recorded otherwise: throughput_pps" in captured.err


def test_a_window_that_was_changed_changes_the_figures(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = next(run.glob("raw/**/64B/**/*.jsonl"))
    lines = path.read_text().splitlines()
    place = next(number for number, line in enumerate(lines) if '"type":"window"' in line)
    window = json.loads(lines[place])
    window["received"] -= 50_000
    lines[place] = json.dumps(window)
    path.write_text("\n".join(lines) + "\n")
    assert main(["report", str(run), "-q"]) == 1
    assert "throughput_pps" in capsys.readouterr().err


def test_without_its_baseline_a_run_is_shown_as_recorded(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(run / "baselines")
    assert main(["report", str(run)]) == 0
    captured = capsys.readouterr()
    assert "0 of 2 results recomputed from raw data" in captured.out
    assert captured.err.count("as recorded, there is no baseline 'main' in ") == 2


@pytest.mark.slow
def test_a_worker_elsewhere_sends_its_baseline_and_what_goes_into_the_history(
    inner: Runner, bench: type[FakeTestbed], capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("xdist")
    bench.behaviour = staticmethod(summarized)
    inner.write(test_x=SCENARIO)
    inner.run("--icbench-save", "main").assert_outcomes(passed=2)
    keep_sessions(inner.path / "baselines")
    there = inner.path / "there"
    there.mkdir()
    result = inner.spawn_with_bench(
        *("-p", "xdist.plugin", "--dist=load", f"--tx=popen//chdir={there}", f"--rsyncdir={inner.path}/test_x.py"),
        *(f"{inner.path}/test_x.py", "--icbench-history=h.jsonl", "--icbench-compare=main"),
        f"--icbench-baselines={inner.path}/baselines",
        before="from tests.plugin.test_report_command import summarized\nTestbed.behaviour = staticmethod(summarized)",
    )
    result.assert_outcomes(passed=2)
    shutil.rmtree(inner.path / "baselines")
    capsys.readouterr()
    run = (inner.path / "reports" / "latest").resolve()
    assert main(["report", str(run)]) == 0
    assert "2 of 2 results recomputed from raw data" in capsys.readouterr().out
    entries, troubles = read(inner.path / "h.jsonl")
    assert ([entry.run for entry in entries], troubles) == ([run.name] * 2, [])
    assert not list(there.rglob("h.jsonl"))


def test_two_versions_are_judged_together_again(
    inner: Runner, bench: type[FakeTestbed], capsys: pytest.CaptureFixture[str]
) -> None:
    def compared(case: Case) -> tuple[Measurement, Measurement]:
        found, _ = gives("REGRESSED", 0.9)(case)
        now, base = summarized(case), summarized(case.base)
        now = replace(now, treatment={**now.treatment, "switch": {"version": "3.2"}})
        return with_comparison(now, found.side_by_side), base

    bench.compared = staticmethod(compared)
    (inner.path / "thresholds.toml").write_text(LIMITS)
    inner.write(test_x=SCENARIO.replace("ovs", "vpp"))
    inner.run("--icbench-candidate=vpp:new=mode:xconnect", "-k", "64B").assert_outcomes(failed=1)
    capsys.readouterr()
    assert main(["report", str(inner.path / "reports" / "latest")]) == 0
    assert "2 of 2 results recomputed from raw data" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (
            lambda raw: raw.write_text('{"type":"window"}\n'),
            "not what a run writes",
        ),
        (lambda raw: raw.unlink(), "the file with its windows is missing"),
    ],
)
def test_damaged_windows_cost_one_result(
    run: Path, capsys: pytest.CaptureFixture[str], damage: object, message: str
) -> None:
    damage(next(run.glob("raw/**/64B/**/*.jsonl")))  # type: ignore[operator]
    assert main(["report", str(run), "-q"]) == 0
    captured = capsys.readouterr()
    assert message in captured.err
    assert "1 of 2 results recomputed from raw data" in captured.out


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("results.jsonl", '{"schema": 99}\n', "written with schema 99"),
        ("run.json", "{", "run.json: not valid JSON"),
        ("tests.jsonl", '{"schema": 99}\n', "tests.jsonl line 1: written with schema 99"),
    ],
)
def test_damaged_files_are_named_and_refused(
    run: Path, capsys: pytest.CaptureFixture[str], name: str, text: str, message: str
) -> None:
    (run / name).write_text(text)
    assert main(["report", str(run)]) == 2
    assert message in capsys.readouterr().err


def test_no_run_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(tmp_path)]) == 2
    assert "it has no results.jsonl" in capsys.readouterr().err


def test_tables_for_other_programs(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arrow = pytest.importorskip("pyarrow.parquet")
    table, columns = tmp_path / "t.csv", tmp_path / "t.parquet"
    assert main(["report", str(run), "-q", "--csv", str(table), "--parquet", str(columns)]) == 0
    with table.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["case"] for row in rows] == ["ovs-64B-b32-1vs1-Rmax", "ovs-1500B-b32-1vs1-Rmax"]
    assert rows[0]["rate"] == "max"
    read = arrow.read_table(columns).to_pylist()
    assert read[0]["throughput_pps"] == float(rows[0]["throughput_pps"])
    assert read[0]["packet_size"] == 64
    assert read[0]["rtt_p50_ns"] is None
    assert read[0]["run"] == "copied"


def test_parquet_without_its_library_is_one_sentence(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pytest_icbench.report.tabular.importlib.util.find_spec", lambda name: None)
    assert main(["report", str(run), "-q", "--parquet", str(tmp_path / "x")]) == 2
    assert (
        capsys.readouterr()
        .err.strip()
        .endswith("Parquet needs the library pyarrow: pip install 'pytest-icbench[parquet]'")
    )


def test_several_runs_are_one_page(run: Path, tmp_path: Path) -> None:
    pytest.importorskip("pytest_html")
    other = tmp_path / "other"
    shutil.copytree(run, other)
    page = tmp_path / "page.html"
    assert main(["report", str(run), str(other), "-q", "--html", str(page)]) == 0
    text = page.read_text()
    assert "copied/test_x.py::test_a" in text
    assert "other/test_x.py::test_a" in text
    assert '"ovs (copied)"' in text
    assert '"ovs (other)"' in text


def test_a_page_of_a_run_has_its_date_and_length(run: Path, tmp_path: Path) -> None:
    """Those of the run, not of the moment in which the page is made."""
    pytest.importorskip("pytest_html")
    records, info = run / "tests.jsonl", run / "run.json"
    records.write_text(re.sub(r'"duration_s":\s*[\d.e-]+', '"duration_s": 78.0', records.read_text()))
    info.write_text(re.sub(r'"started_at":\s*[\d.e+]+', '"started_at": 1700000000.0', info.read_text()))
    page = tmp_path / "page.html"
    main(["report", str(run), "-q", "--html", str(page)])
    text = page.read_text()
    assert '<p class="run-count">2 tests took 2:36 when they ran.</p>' in text
    assert "copied, run on 2023-11-14 22:13 UTC, tests took 2:36: pytest " in text


def test_a_page_without_pytest_html_is_one_sentence(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pytest_icbench.cli.report.importlib.util.find_spec", lambda name: None)
    assert main(["report", str(run), "-q", "--html", str(tmp_path / "x")]) == 2
    assert "an HTML report needs pytest-html: pip install 'pytest-icbench[html]'" in capsys.readouterr().err
