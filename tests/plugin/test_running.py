# SPDX-License-Identifier: BSD-3-Clause
"""Running: order of rigs, verdicts and outcomes, skips, errors, clean-up. On a bench without a host."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path
from typing import Any

import pytest

from pytest_icbench.errors import ProvisionError, UsageError, WorkloadError
from pytest_icbench.model.case import Case
from pytest_icbench.model.measurement import Measurement
from tests.measurements import measurement
from tests.plugin.conftest import Runner
from tests.plugin.fakes import FakeTestbed

GATED = """
@pytest.mark.icbench(switch=["ovs", "testpmd"], packet_size=[64, 1500])
def test_a(icbench):
    assert icbench.gate(icbench.throughput())
"""


def results(inner: Runner) -> list[Measurement]:
    text = (inner.path / "reports" / "latest" / "results.jsonl").read_text()
    return [Measurement.from_json(line) for line in text.splitlines()]


def test_cases_of_a_rig_share_it_and_the_reference_outlives_it(inner: Runner, bench: type[FakeTestbed]) -> None:
    inner.ini("icbench_turns = no\n")
    inner.write(test_x=GATED)
    inner.run().assert_outcomes(passed=4)
    assert bench.log == [
        "hold",
        *("build ovs", "build direct"),
        "measure throughput ovs-64B-b32-1vs1-Rmax",
        "measure throughput ovs-1500B-b32-1vs1-Rmax",
        "close ovs",
        "build testpmd",
        "measure throughput testpmd-64B-b32-1vs1-Rmax",
        "measure throughput testpmd-1500B-b32-1vs1-Rmax",
        *("close testpmd", "close direct"),
        "give back",
    ]


def test_without_a_reference(inner: Runner, bench: type[FakeTestbed]) -> None:
    inner.write(test_x=GATED)
    inner.run("--icbench-reference=no", "-k", "ovs-64B").assert_outcomes(passed=1, deselected=3)
    assert bench.log == ["hold", "build ovs", "measure throughput ovs-64B-b32-1vs1-Rmax", "close ovs", "give back"]


def test_a_marker_without_a_reference(inner: Runner, bench: type[FakeTestbed]) -> None:
    inner.write(test_x=GATED.replace("packet_size", "reference=False, packet_size"))
    inner.run("-k", "ovs-64B").assert_outcomes(passed=1, deselected=3)
    assert "build direct" not in bench.log
    inner.run("--icbench-reference=yes", "-k", "ovs-64B")
    assert "build direct" in bench.log


def test_the_host_is_left_alone_without_a_benchmark_to_run(inner: Runner, bench: type[FakeTestbed]) -> None:
    inner.write(test_x=GATED + "\ndef test_plain(): pass")
    inner.run("-k", "plain").assert_outcomes(passed=1, deselected=4)
    inner.run("--collect-only")
    inner.run("--icbench-plan")
    assert bench.log == []
    assert not (inner.path / "reports").exists()


def test_results_are_in_the_report_directory(inner: Runner, bench: type[FakeTestbed]) -> None:
    inner.write(test_x=GATED)
    inner.run("-k", "ovs")
    found = results(inner)
    assert [(each.case, each.verdict) for each in found] == [
        ("ovs-64B-b32-1vs1-Rmax", "NO_BASELINE"),
        ("ovs-1500B-b32-1vs1-Rmax", "NO_BASELINE"),
    ]
    raw = inner.path / "reports" / "latest" / "raw" / "b32" / "ovs" / "64B" / "Rmax"
    assert (raw / "throughput-dpdk-1vs1-c1" / "test_a.jsonl").is_file()


def test_the_summary(inner: Runner, bench: type[FakeTestbed]) -> None:
    inner.write(test_x=GATED)
    result = inner.run("-k", "ovs")
    result.stdout.fnmatch_lines(
        [
            "*icbench results*",
            "ovs: rate with bursts of 32, flat out; all lost 0.99%, limit by switch",
            "       Mpps          95 %",
            "64B    5.00  4.90 to 5.10",
            "1500B  5.00  4.90 to 5.10",
            "reports: */reports/2*",
        ]
    )


def line_of(result: pytest.RunResult, start: str) -> str:
    return next(line for line in result.outlines if line.startswith(start))


def test_header(inner: Runner, bench: type[FakeTestbed]) -> None:
    inner.write(test_x=GATED)
    text = inner.run("-k", "ovs").stdout.str()
    assert "icbench: 2 cases, all with b32-1vs1-Rmax, placement cooperative" in text
    assert text.count("icbench: ") >= 2  # the versions, in one line of their own
    assert "workload" in line_of(inner.run("--icbench-strict"), "icbench: ")


LIMITS = '["*"]\nmin_throughput_pps = 5_050_000\n["ovs-1500B-*"]\nmin_throughput_pps = 6e6\n'


def test_a_missed_limit_fails_with_its_sentence(inner: Runner, bench: type[FakeTestbed]) -> None:
    inner.write(test_x=GATED)
    (inner.path / "thresholds.toml").write_text(LIMITS)
    result = inner.run("-k", "ovs")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*= 1 failed, 2 deselected, 1 undecided in *"])
    result.stdout.fnmatch_lines(
        [
            "REGRESSED: ovs-1500B-b32-1vs1-Rmax: 5 Mpps is below 6 Mpps*",
            "throughput_pps: REGRESSED: *; limit from *thresholds.toml: *min_throughput_pps",
        ]
    )
    assert "gate.py" not in result.stdout.str()
    assert "FAILED test_x.py::test_a[ovs-1500B-b32-1vs1-Rmax] - REGRESSED: ovs-1500B-" in result.stdout.str()
    assert [each.verdict for each in results(inner)] == ["INCONCLUSIVE", "REGRESSED"]


def test_a_limits_file_of_the_user(inner: Runner, bench: type[FakeTestbed]) -> None:
    inner.write(test_x=GATED)
    (inner.path / "own.toml").write_text('["*"]\nmax_lost = 1\n')
    inner.run("--icbench-thresholds=own.toml").assert_outcomes(failed=4)


def test_strict_fails_what_is_not_pass(inner: Runner, bench: type[FakeTestbed]) -> None:
    inner.write(test_x=GATED)
    (inner.path / "thresholds.toml").write_text('["ovs-64B-*"]\nmin_throughput_pps = 1\n' + LIMITS.partition("[")[0])
    result = inner.run("--icbench-strict", "-k", "ovs")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["NO_BASELINE: ovs-1500B-b32-1vs1-Rmax: *"])


def test_judge_does_not_raise(inner: Runner, bench: type[FakeTestbed]) -> None:
    bench.behaviour = staticmethod(lambda case: measurement(case, verdict="INVALID", reason="stalled", evidence="e"))
    inner.write(
        test_x="""
@pytest.mark.icbench(switch="veth", api="udp")
def test_a(icbench):
    judgement = icbench.judge(icbench.throughput())
    assert judgement.verdict == "INVALID"
    assert not judgement
"""
    )
    inner.run().assert_outcomes(passed=1)
    assert results(inner)[0].reason == "stalled"


def test_plain_assertions_on_figures_work(inner: Runner, bench: type[FakeTestbed]) -> None:
    inner.write(
        test_x="""
@pytest.mark.icbench(switch="veth", api="udp")
def test_a(icbench):
    assert icbench.throughput().throughput_pps > 6e6
"""
    )
    result = inner.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E *assert 5000000.0 > 6000000.0*"])
    assert [each.verdict for each in results(inner)] == [None]


@pytest.mark.parametrize("body", ["icbench.gate(icbench.throughput())", "icbench.throughput()"])
def test_an_invalid_measurement_fails_also_when_nobody_looks(
    inner: Runner, bench: type[FakeTestbed], body: str
) -> None:
    bench.behaviour = staticmethod(
        lambda case: measurement(case, verdict="INVALID", reason="no-forwarding", evidence="0 of 9 frames arrived")
    )
    inner.write(test_x=f"@pytest.mark.icbench(switch='veth', api='udp')\ndef test_a(icbench):\n    {body}")
    result = inner.run()
    result.assert_outcomes(failed=1)
    assert re.search("INVALID: no-forwarding.*0 of 9 frames|INVALID.*no-forwarding: 0 of 9 frames", result.stdout.str())
    assert "gate.py" not in result.stdout.str()
    assert [(each.verdict, each.reason) for each in results(inner)] == [("INVALID", "no-forwarding")]
    assert bench.log[-2:] == ["close veth", "give back"]


def test_throughput_and_latency_in_one_test_are_two_results(inner: Runner, bench: type[FakeTestbed]) -> None:
    inner.write(
        test_x="""
@pytest.mark.icbench(switch="veth", api="udp", rate=1000, duration=2)
def test_a(icbench):
    icbench.gate(icbench.throughput(repeats=3))
    icbench.gate(icbench.latency(duration=4))
    icbench.gate(icbench.measure())
"""
    )
    inner.run("--icbench-window=0.5").assert_outcomes(passed=1)
    found = results(inner)
    assert [each.dimension for each in found] == ["throughput", "latency", "throughput"]
    assert [each.settings["repeats"] for each in found] == [3, None, None]
    assert [each.settings["duration_s"] for each in found] == [2, 4, 2]
    assert {each.settings["window_s"] for each in found} == {0.5}


def test_a_wrong_override_fails_its_test(inner: Runner, bench: type[FakeTestbed]) -> None:
    inner.write(test_x="@pytest.mark.icbench(switch='veth', api='udp')\ndef test_a(icbench): icbench.latency(time=1)")
    inner.run().stdout.fnmatch_lines(["test_x.py::test_a: there is no setting 'time'*"])


def test_a_switch_that_is_missing_is_skipped_with_its_remedy(inner: Runner, bench: type[FakeTestbed]) -> None:
    bench.unsupported = {"ovs": "ovs-vswitchd is not installed: apt-get install openvswitch-switch-dpdk"}
    inner.write(test_x=GATED)
    result = inner.run("-rs")
    result.assert_outcomes(skipped=2, passed=2)
    result.stdout.fnmatch_lines(["SKIPPED [[]2] *: ovs-vswitchd is not installed: apt-get install *"])
    assert "build ovs" not in bench.log
    strict = inner.run("--icbench-strict", "-k", "ovs")
    strict.stdout.fnmatch_lines(["*would be skipped, and --icbench-strict is on: ovs-vswitchd is not installed*"])
    assert strict.ret == pytest.ExitCode.TESTS_FAILED


def test_a_switch_whose_probe_is_killed_fails_and_is_not_skipped(
    inner: Runner, bench: type[FakeTestbed], monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(_testbed: FakeTestbed, case: Case) -> None:
        raise ProvisionError(f"`{case.switch} --version` was killed by signal 9 (Killed)")

    monkeypatch.setattr(bench, "placement", killed)
    inner.write(test_x=GATED)
    result = inner.run("-k", "ovs")
    result.assert_outcomes(errors=2)
    result.stdout.fnmatch_lines(["*`ovs --version` was killed by signal 9 (Killed)*"])
    inner.run("-k", "ovs", "--icbench-plan").stdout.fnmatch_lines(["0 of 2 cases*; 0 would be skipped, 2 would fail"])


@pytest.mark.parametrize("error", [WorkloadError, ProvisionError])
def test_an_error_fails_its_case_and_the_next_runs_on_new_rigs(
    inner: Runner, bench: type[FakeTestbed], error: type[Exception]
) -> None:
    def behave(case: Case) -> Measurement | BaseException:
        return (
            error("the sender hangs; the end of its log:\n  last words")
            if case.traffic.packet_size == 64
            else measurement(case)
        )

    bench.behaviour = staticmethod(behave)
    inner.write(test_x=GATED)
    result = inner.run("-k", "ovs")
    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines(["the sender hangs; the end of its log:", "*last words"])
    assert "run.py" not in result.stdout.str()
    assert bench.log == [
        *("hold", "build ovs", "build direct", "measure throughput ovs-64B-b32-1vs1-Rmax", "close ovs", "close direct"),
        *("build ovs", "build direct", "measure throughput ovs-1500B-b32-1vs1-Rmax", "close ovs", "close direct"),
        "give back",
    ]


def test_a_reference_that_does_not_start_costs_the_ratio(
    inner: Runner, bench: type[FakeTestbed], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakeTestbed, "broken", {"direct"})
    inner.write(test_x=GATED)
    result = inner.run("-k", "ovs-64B")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["ovs-64B-*: no ratio, reference link direct: direct does not*"])


def test_a_switch_that_does_not_start_fails_its_cases(
    inner: Runner, bench: type[FakeTestbed], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakeTestbed, "broken", {"ovs"})
    inner.write(test_x=GATED)
    result = inner.run()
    result.assert_outcomes(failed=2, passed=2)
    result.stdout.fnmatch_lines(["ovs does not start"])


def test_a_switch_that_dies_between_two_cases_costs_none(
    inner: Runner, bench: type[FakeTestbed], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakeTestbed, "dead", {"ovs"})
    inner.write(test_x=GATED)
    result = inner.run()
    result.assert_outcomes(passed=4, warnings=1)
    result.stdout.fnmatch_lines(["*a switch died between two cases*: ovs was killed*"])
    assert bench.log.count("build ovs") == 2
    assert bench.log.count("build direct") == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_cleans_up_and_keeps_what_is_finished(inner: Runner, number: signal.Signals) -> None:
    inner.write(test_x=GATED)
    result = inner.spawn_with_bench(
        before=f"""
from tests.measurements import measurement

def behave(case):
    if case.traffic.packet_size == 1500:
        os.kill(os.getpid(), {int(number)})
    return measurement(case)

Testbed.behaviour = staticmethod(behave)

def pytest_unconfigure():
    print("LOG", Testbed.log[-3:])
"""
    )
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert "LOG ['close ovs', 'close direct', 'give back']" in result.outlines
    assert [each.case for each in results(inner)] == ["ovs-64B-b32-1vs1-Rmax"]
    run = (inner.path / "reports" / "latest").resolve().name
    command = f"go on with: pytest * --icbench-resume={run}"
    result.stdout.fnmatch_lines(["*icbench results*", "ovs *", command])


def test_a_session_that_has_to_measure_fails_if_every_case_is_skipped(
    inner: Runner, bench: type[FakeTestbed], monkeypatch: pytest.MonkeyPatch
) -> None:
    inner.write(test_x=GATED, test_y="def test_other(): pass")
    monkeypatch.setattr(bench, "unsupported", dict.fromkeys(("ovs", "testpmd"), "root lacks CAP_NET_ADMIN"))
    assert inner.run().ret == 0
    required = inner.run("--icbench-require")
    assert required.ret == pytest.ExitCode.TESTS_FAILED
    required.stdout.fnmatch_lines(["icbench: no case was measured, so --icbench-require fails the session"])
    inner.ini("icbench_require = yes\n")
    assert inner.run().ret == pytest.ExitCode.TESTS_FAILED
    for harmless in ("--icbench-plan", "--collect-only", "-k test_other"):
        assert inner.run(*harmless.split(maxsplit=1)).ret == 0
    monkeypatch.setattr(bench, "unsupported", {"ovs": "root lacks CAP_NET_ADMIN"})
    inner.run().assert_outcomes(passed=3, skipped=2)
    assert inner.run().ret == 0


@pytest.mark.parametrize("way", ["option", "marker"])
def test_a_forked_test_is_refused_before_the_host_is_taken(inner: Runner, way: str) -> None:
    inner.write(test_x="@pytest.mark.forked\n" * (way == "marker") + GATED.strip())
    plugin = """
def pytest_addoption(parser):
    parser.addoption("--forked", action="store_true")

def pytest_configure(config):
    config.addinivalue_line("markers", "forked: as of pytest-forked")

def pytest_unconfigure():
    print("LOG", Testbed.log)
"""
    result = inner.spawn_with_bench(*["--forked"] * (way == "option"), before=plugin)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    (error,) = [line for line in result.errlines if line.startswith("ERROR: ")]
    assert error.startswith("ERROR: --forked: " if way == "option" else "ERROR: the marker forked: ")
    assert "LOG []" in result.outlines
    assert not (inner.path / "reports").exists()


def test_a_child_that_leaves_its_test_ends_and_the_session_goes_on(inner: Runner) -> None:
    forking = """
    import os
    child = os.fork()
    if child == 0:
        with pytest.raises(Exception, match="forked from process"):
            icbench.throughput(repeats=3)
        raise RuntimeError("of a child")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
"""
    inner.write(test_x=GATED + forking)
    result = inner.spawn_with_bench(
        before="""
def pytest_unconfigure():
    print("LOG", Testbed.log)
"""
    )
    result.assert_outcomes(passed=4)
    assert len(results(inner)) == 4
    (log,) = [line for line in result.outlines if line.startswith("LOG ")]
    assert log.count("give back") == 1
    assert sum("was forked by a test of process" in line for line in result.errlines) == 4
    tests = (inner.path / "reports" / "latest" / "tests.jsonl").read_text().splitlines()
    assert [json.loads(line)["outcome"] for line in tests] == ["passed"] * 4


def test_what_cannot_be_undone_is_reported_and_fails_the_run(inner: Runner, bench: type[FakeTestbed]) -> None:
    bench.close_error = ProvisionError("changes of the host could not be undone; run `icbench recover`:\nlink x")
    inner.write(test_x=GATED)
    result = inner.run("-k", "ovs-64B")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*the host is not as before*", "*run `icbench recover`:", "link x"])


def test_a_second_session_ends_the_run_with_one_sentence(inner: Runner, bench: type[FakeTestbed]) -> None:
    bench.hold_error = UsageError("another icbench session runs on this host (process 1): wait for its end, or end it")
    inner.write(test_x=GATED)
    result = inner.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert [line for line in result.errlines if line] == [f"ERROR: {bench.hold_error}"]
    assert not (inner.path / "reports").exists()


def test_a_workload_that_is_missing_is_one_sentence(
    inner: Runner, bench: type[FakeTestbed], monkeypatch: pytest.MonkeyPatch
) -> None:
    def facts(_: FakeTestbed) -> object:
        raise WorkloadError("the executable icbench-workload is missing: build it")

    monkeypatch.setattr(bench, "facts", property(facts))
    inner.write(test_x=GATED)
    result = inner.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert [line for line in result.errlines if line] == ["ERROR: the executable icbench-workload is missing: build it"]


def test_remains_that_cannot_be_removed_end_the_run(inner: Runner, bench: type[FakeTestbed]) -> None:
    bench.hold_error = ProvisionError("changes of an earlier session could not be undone")
    inner.write(test_x=GATED)
    result = inner.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*changes of an earlier session could not be undone*"])


def test_no_root_is_one_sentence(inner: Runner, bench: type[FakeTestbed], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    inner.write(test_x=GATED)
    result = inner.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: benchmarks * need root: run pytest with sudo*"])
    assert bench.log == []
    assert inner.run("--icbench-plan").ret == 0


def test_errors_of_collection_leave_the_host_alone(inner: Runner, bench: type[FakeTestbed]) -> None:
    inner.write(test_x=GATED, test_y="raise RuntimeError")
    assert inner.run().ret == pytest.ExitCode.INTERRUPTED
    assert bench.log == []


def test_a_file_in_the_place_of_the_reports_is_named(inner: Runner, bench: type[FakeTestbed]) -> None:
    inner.write(test_x=GATED)
    (inner.path / "reports").touch()
    result = inner.spawn_with_bench("--icbench-node=netns")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert [line for line in result.errlines if line] == [
        f"ERROR: --icbench-reports: {inner.path / 'reports'} is not a directory"
    ]
    assert bench.log == []


def test_two_runs_do_not_mix(inner: Runner, bench: type[FakeTestbed], tmp_path: Path) -> None:
    inner.write(test_x=GATED)
    for _ in range(2):
        inner.run("-k", "ovs-64B", f"--icbench-reports={tmp_path / 'elsewhere'}")
    runs: list[Any] = list((tmp_path / "elsewhere").glob("2*"))
    # The same process in the same second is the same run; else there are two.
    lines = [line for run in runs for line in (run / "results.jsonl").read_text().splitlines()]
    assert [json.loads(line)["case"] for line in lines] == ["ovs-64B-b32-1vs1-Rmax"] * 2
