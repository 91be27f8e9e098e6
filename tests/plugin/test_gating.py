# SPDX-License-Identifier: BSD-3-Clause
"""Runs judged by a baseline, and what a CI learns from them. On a bench without a host."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from pytest_icbench.errors import WorkloadError
from pytest_icbench.gate.judge import Waiver
from pytest_icbench.model.case import Case
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.verdict import EXIT_STATUS, WEAK_STATUS
from pytest_icbench.store import baselines, waiver_file
from tests.baselines import keep_sessions, measured, scaled
from tests.measurements import measurement
from tests.plugin.conftest import Runner
from tests.plugin.fakes import FakeTestbed

EXIT_REGRESSED, EXIT_UNDECIDED = EXIT_STATUS["regressed"], EXIT_STATUS["undecided"]

ONE = """
@pytest.mark.icbench(switch="ovs", packet_size=[64, 1500])
def test_a(icbench):
    icbench.gate(icbench.throughput())
"""
CODES = "--icbench-exit-codes"


@pytest.fixture
def files(inner: Runner, bench: type[FakeTestbed]) -> Runner:
    """A baseline "main" of both cases, with several sessions."""
    bench.behaviour = staticmethod(measured)
    inner.write(test_x=ONE)
    result = inner.run("--icbench-save=main")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["baseline main: *baselines/main/example-r-cpu-9000-*/ovs.json"])
    keep_sessions(inner.path / "baselines")
    return inner


def slower(factor: float, only: int = 64) -> Any:
    return staticmethod(
        lambda case: measured(case, launches=scaled(factor if case.traffic.packet_size == only else 1.0))
    )


def results(inner: Runner) -> list[dict[str, Any]]:
    text = (inner.path / "reports" / "latest" / "results.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def test_saved_and_compared(files: Runner, bench: type[FakeTestbed]) -> None:
    assert len(baselines.load(files.path / "baselines", "main").entries) == 2
    files.run("--icbench-compare=main", CODES).assert_outcomes(passed=2)
    assert [one["verdict"] for one in results(files)] == ["PASS", "PASS"]
    bench.behaviour = slower(0.8)
    result = files.run("--icbench-compare=main", CODES)
    result.assert_outcomes(passed=1, failed=1)
    assert result.ret == EXIT_REGRESSED
    result.stdout.fnmatch_lines(["*REGRESSED: ovs-64B-b32-1vs1-Rmax: 4 Mpps is 20 % lower than main (*; allowed: 3 %"])
    (bad,) = [one for one in results(files) if one["verdict"] == "REGRESSED"]
    assert bad["baseline"] == "main"
    assert bad["ratio_to_baseline"]["value"] == pytest.approx(0.8)
    assert bad["findings"][0]["baseline_value"] == pytest.approx(5e6)
    assert files.run("--icbench-compare=main").ret == EXIT_REGRESSED


def test_what_a_run_does_not_measure_keeps_its_figures(files: Runner, bench: type[FakeTestbed]) -> None:
    bench.behaviour = slower(0.5)
    files.run("--icbench-save=main", "-k", "ovs-64B")
    found = {
        one.case: one.figures["throughput_pps"].value
        for one in baselines.load(files.path / "baselines", "main").entries
    }
    assert found == {"ovs-64B-b32-1vs1-Rmax": 2.5e6, "ovs-1500B-b32-1vs1-Rmax": 5e6}


def test_an_interrupted_run_saves_what_it_has(inner: Runner) -> None:
    inner.write(test_x=ONE)
    before = (
        "from tests.baselines import measured\n"
        "stop = lambda case: measured(case) if case.traffic.packet_size == 64 else KeyboardInterrupt()\n"
        "Testbed.behaviour = staticmethod(stop)"
    )
    result = inner.spawn_with_bench("--icbench-save=main", CODES, before=before)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert [one.case for one in baselines.load(inner.path / "baselines", "main").entries] == ["ovs-64B-b32-1vs1-Rmax"]


def test_a_test_that_is_interrupted_when_it_has_measured_is_in_the_table(inner: Runner) -> None:
    """A signal can come before pytest has made the test's report, and the result stands in its file by then."""
    inner.write(test_x=ONE.rstrip() + "\n    raise KeyboardInterrupt\n")
    result = inner.spawn_with_bench()
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["*= icbench results =*", "64B *"])


def test_a_signal_while_a_result_is_written_comes_after_it(inner: Runner) -> None:
    inner.write(test_x=ONE)
    before = """
from pytest_icbench.plugin import run

def write(raw, measurement):
    os.kill(os.getpid(), 2)

run.write_hlog = write
"""
    result = inner.spawn_with_bench(before=before)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["*= icbench results =*", "64B *"])


def test_mistakes_are_reported_before_the_host_is_taken(files: Runner, bench: type[FakeTestbed]) -> None:
    bench.log.clear()
    (path,) = (files.path / "baselines").glob("*/*/*.json")
    good = path.read_text()
    for arguments, reported in (
        (("--icbench-compare=mian",), "there is no baseline 'mian' in *did you mean main?"),
        (("--icbench-compare=main", "--icbench-save=main"), "*would follow every small loss*"),
        (("--icbench-save=a/b",), "--icbench-save: 'a/b' is not a name of a baseline*"),
        (("--icbench-fail-on=REGRESED",), "--icbench-fail-on: 'REGRESED' is no verdict*did you mean REGRESSED?"),
        (("--icbench-baselines=test_x.py",), "--icbench-baselines: *test_x.py is not a directory"),
    ):
        result = files.run(*arguments)
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        result.stderr.fnmatch_lines([f"*{reported}"])
    path.write_text(good[:-9])
    for option in ("--icbench-compare=main", "--icbench-save=main"):
        result = files.run(option)
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        result.stderr.fnmatch_lines([f"*{path}: damaged or cut off*"])
    path.write_text(good)
    (files.path / "baselines" / "waivers.json").write_text("{")
    result = files.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*waivers.json: damaged or cut off*"])
    assert bench.log == []


def test_a_baseline_that_cannot_be_saved_fails_the_session(inner: Runner, bench: type[FakeTestbed]) -> None:
    bench.behaviour = staticmethod(measured)
    inner.write(test_x=ONE)
    (inner.path / "baselines").mkdir()
    (inner.path / "baselines" / "main").write_text("in the way")
    result = inner.run("--icbench-save=main", CODES)
    result.assert_outcomes(passed=2)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*baseline main: *cannot be written*icbench accept main --all --run *"])


def test_waivers(files: Runner, bench: type[FakeTestbed]) -> None:
    bench.behaviour = slower(0.8)
    compare = ("--icbench-compare=main", CODES)
    waiver_file.save(files.path / "baselines", [Waiver("ovs-64B-*", "known", "2999-01-01")])
    result = files.run(*compare)
    result.assert_outcomes(passed=2)
    assert result.ret == 0
    (one,) = [one for one in results(files) if one["verdict"] == "REGRESSED"]
    assert one["waiver"] == "until 2999-01-01: known"
    waiver_file.save(files.path / "baselines", [Waiver("ovs-64B-*", "known", "2000-01-01")])
    result = files.run(*compare)
    assert result.ret == EXIT_REGRESSED
    result.stdout.fnmatch_lines(["*its waiver expired on 2000-01-01: known"])


def _some_died(case: Case) -> Measurement | BaseException:
    return WorkloadError("sender died") if case.traffic.packet_size == 1500 else measured(case, launches=scaled(0.5))


def _one_undecided(case: Case) -> Measurement:
    return measured(case, launches=[5e6]) if case.traffic.packet_size == 1500 else measured(case)


@pytest.mark.parametrize(
    ("behaviour", "arguments", "code"),
    [
        (measured, (), 0),
        (slower(0.8).__func__, (), EXIT_REGRESSED),
        (slower(0.8).__func__, ("--icbench-fail-on=none",), 0),
        (lambda case: measured(case, launches=[5e6]), (), EXIT_UNDECIDED),
        (lambda case: measured(case, launches=[5e6]), ("--icbench-strict",), EXIT_UNDECIDED),
        (lambda case: measured(case, launches=[5e6]), ("--icbench-fail-on=INCONCLUSIVE",), EXIT_UNDECIDED),
        (lambda case: measured(case, rules=9), (), EXIT_UNDECIDED),
        (lambda case: measurement(case, verdict="INVALID", reason="died", evidence="x"), (), 1),
        (_some_died, (), 1),
    ],
    ids=["pass", "regressed", "tolerated", "inconclusive", "strict", "fail", "incomparable", "invalid", "died"],
)
def test_exit_codes(
    files: Runner, bench: type[FakeTestbed], behaviour: Any, arguments: tuple[str, ...], code: int
) -> None:
    bench.behaviour = staticmethod(behaviour)
    assert files.run("--icbench-compare=main", *arguments).ret == code
    plain = files.run("--icbench-compare=main", "--icbench-plain-exit-codes", *arguments).ret
    assert plain == (0 if code == 0 or (code == EXIT_UNDECIDED and not arguments) else 1)


@pytest.mark.parametrize(
    ("behaviour", "arguments", "last_line"),
    [
        (measured, ("--icbench-compare=main",), "*= 2 passed in *"),
        (lambda case: measured(case, rules=9), ("--icbench-compare=main",), "*= 2 undecided in *"),
        (_one_undecided, ("--icbench-compare=main",), "*= 1 passed, 1 undecided in *"),
        (lambda case: measured(case, launches=[5e6]), ("--icbench-compare=main", "-q"), "2 undecided in *"),
        (measured, (), "*= 2 passed in *"),  # nobody asked for a verdict
    ],
)
def test_the_last_line_counts_what_was_not_decided(
    files: Runner, bench: type[FakeTestbed], behaviour: Any, arguments: tuple[str, ...], last_line: str
) -> None:
    bench.behaviour = staticmethod(behaviour)
    files.run(*arguments).stdout.fnmatch_lines([last_line])


def test_other_tests_break_the_session(files: Runner, bench: type[FakeTestbed]) -> None:
    files.write(test_x=ONE, test_y="def test_plain(): assert False")
    bench.behaviour = slower(0.5)
    assert files.run("--icbench-compare=main", CODES).ret == 1
    files.write(test_y="@pytest.fixture\ndef broken(): 1 / 0\ndef test_plain(broken): pass")
    assert files.run("--icbench-compare=main", CODES).ret == 1


def test_strict_fails_what_would_be_skipped(files: Runner, bench: type[FakeTestbed]) -> None:
    bench.unsupported["ovs"] = "no ovs here"
    files.run("--icbench-compare=main").assert_outcomes(skipped=2)
    result = files.run("--icbench-compare=main", "--icbench-strict", CODES)
    result.assert_outcomes(failed=0, errors=2)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*would be skipped, and --icbench-strict is on: no ovs here*"])


def test_strict_lets_pass_what_is_good(files: Runner, bench: type[FakeTestbed]) -> None:
    bench.behaviour = slower(1.2)
    files.run("--icbench-compare=main", "--icbench-strict").assert_outcomes(passed=2)
    assert sorted(one["verdict"] for one in results(files)) == ["IMPROVED", "PASS"]


def test_files_for_a_ci(files: Runner, bench: type[FakeTestbed]) -> None:
    bench.behaviour = slower(0.8)
    bench.unsupported["vpp"] = "no vpp here"
    files.write(test_x=ONE.replace('"ovs"', '["ovs", "vpp"]'))
    files.run("--icbench-compare=main")
    run = files.path / "reports" / "latest"
    families = {one.name: one for one in text_string_to_metric_families((run / "openmetrics.txt").read_text())}
    rates = {sample.labels["case"]: sample.value for sample in families["icbench_throughput_pps"].samples}
    assert rates == {"ovs-64B-b32-1vs1-Rmax": 4e6, "ovs-1500B-b32-1vs1-Rmax": 5e6}
    counts = {sample.labels["verdict"]: sample.value for sample in families["icbench_cases"].samples}
    assert counts == {"PASS": 1, "REGRESSED": 1, "skipped": 2}
    page = (run / "summary.md").read_text()
    assert "2 results: 1 REGRESSED, 1 PASS; 1 test failed; 2 tests skipped" in page
    assert "* **REGRESSED** `ovs-64B-b32-1vs1-Rmax`: 4 Mpps is 20 % lower than main" in page
    assert "no vpp here" in page


def test_a_controllers_baseline_has_its_workers_figures(inner: Runner) -> None:
    pytest.importorskip("xdist")
    inner.write(test_x=ONE)
    before = "from tests.baselines import measured\nTestbed.behaviour = staticmethod(measured)"
    result = inner.spawn_with_bench("-p", "xdist.plugin", "-n1", "--icbench-save=main", CODES, before=before)
    result.assert_outcomes(passed=2)
    assert result.ret == EXIT_UNDECIDED  # nothing was compared
    assert len(baselines.load(inner.path / "baselines", "main").entries) == 2
    assert len(list(Path(inner.path / "reports" / "latest").glob("summary.md"))) == 1


def test_cases_that_are_marked_to_be_skipped_are_no_part_of_the_run(inner: Runner, bench: type[FakeTestbed]) -> None:
    skipped = '@pytest.mark.skip(reason="not now")\n@pytest.mark.icbench(switch="ovs")\ndef test_0(icbench): pass\n'
    inner.write(test_x=skipped + ONE)
    result = inner.run("-v")
    result.assert_outcomes(passed=2, skipped=1)
    result.stdout.fnmatch_lines(["icbench: 2 cases, *"])
    bench.log.clear()
    inner.run("-k", "test_0").assert_outcomes(skipped=1)
    assert bench.log == []


def test_a_weak_session_has_an_exit_status_of_its_own(files: Runner, bench: type[FakeTestbed]) -> None:
    weak = ("--icbench-fail-on=REGRESSED INVALID WEAK",)
    assert files.run("--icbench-compare=main", *weak).ret == 0
    files.run("--icbench-save=few")
    result = files.run("--icbench-compare=few", *weak)
    assert result.ret == WEAK_STATUS
    assert "Weak session: 2 cases of 2 cannot show a loss of 10 %" in " ".join(result.stdout.str().split())
    assert files.run("--icbench-compare=few").ret == EXIT_UNDECIDED
    bench.behaviour = slower(0.8)
    assert files.run("--icbench-compare=main", *weak).ret == EXIT_REGRESSED


def test_what_a_baseline_cannot_judge_later_is_said_when_it_is_saved(files: Runner) -> None:
    result = files.run("--icbench-save=few")
    result.stdout.fnmatch_lines(["baseline few: it cannot judge 2 cases of 2 yet (fewest sessions: 1)*"])
    files.run("--icbench-save=main").stdout.no_fnmatch_line("*cannot judge*")


@pytest.mark.parametrize(
    ("toml", "options", "precision"),
    [
        ("", ("--icbench-save=new",), 0.03 / 2 / 2**0.5),
        ("", ("--icbench-compare=main",), 0.03 / 2 / 2**0.5),
        ('["*"]\nallowance = 0.06', ("--icbench-compare=main",), 0.06 / 2 / 2**0.5),
        ('["*"]\nallowance = 0.3', ("--icbench-compare=main",), 0.03),
        ('["*"]\nallowance = 0', ("--icbench-compare=main",), 0.03),
        ("", ("--icbench-compare=main", "--icbench-precision=5%"), 0.05),
        ("", (), 0.03),
    ],
)
def test_a_gated_case_is_measured_as_precisely_as_its_allowance_needs(
    files: Runner, monkeypatch: pytest.MonkeyPatch, toml: str, options: tuple[str, ...], precision: float
) -> None:
    asked: list[float] = []
    measure = FakeTestbed.measure

    def noted(self: FakeTestbed, rigs: Any, case: Any, reference: Any, settings: Any, *rest: Any) -> Any:
        asked.append(settings.precision)
        return measure(self, rigs, case, reference, settings, *rest)

    monkeypatch.setattr(FakeTestbed, "measure", noted)
    (files.path / "thresholds.toml").write_text(toml)
    files.run(*options)
    assert asked == pytest.approx([precision] * 2)
