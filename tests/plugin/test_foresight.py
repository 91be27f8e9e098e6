# SPDX-License-Identifier: BSD-3-Clause
"""What keeps a gate from telling anything is printed by its plan and by its run, before anything is measured."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from pytest_icbench.gate.entry import Entry
from pytest_icbench.model.placement import Placement
from pytest_icbench.store import baselines, history_file
from tests.baselines import HOST, entry, launch, measured, scaled, with_sessions
from tests.plugin.conftest import Runner
from tests.plugin.fakes import FakeTestbed

CASE = "@pytest.mark.icbench(switch='ovs', packet_size=64)\ndef test_a(icbench): icbench.gate(icbench.throughput())\n"
COMPARE = "--icbench-compare=main"
CONTROL = {"per_reference_launch": tuple(launch(2 * pps, index) for index, pps in enumerate(scaled(1.0)))}

Reported = Callable[..., tuple[str, str]]


def saved(**changed: Any) -> Entry:
    """The session of an hour ago, with the reference link beside."""
    return entry(**{"started_at": time.time() - 3600, **CONTROL, **changed})


@pytest.fixture
def reported(inner: Runner, bench: type[FakeTestbed], monkeypatch: pytest.MonkeyPatch) -> Reported:
    """What a plan and a run print before anything is measured, each as one line, with that baseline."""
    monkeypatch.setattr(bench, "facts", (HOST, {}))
    monkeypatch.setattr(bench, "placement", lambda _self, _case: Placement("dedicated", (1,), (2, 3), (0,), 0, 0))
    inner.write(test_x=CASE)

    def both(*arguments: str, baseline: Entry | None = None) -> tuple[str, str]:
        if baseline is not None:
            baselines.save(inner.path / "baselines", "main", [baseline])
        bench.log.clear()
        plan = inner.run("--icbench-plan", *arguments)
        assert not [line for line in bench.log if line.startswith(("hold", "measure"))]
        run = inner.run(*arguments)
        assert [line for line in bench.log if line.startswith("measure")]
        before, host, _ = joined(run.stdout.lines).partition("icbench: quiet host")
        assert host  # said when the host was taken, and before anything was measured
        return joined(plan.stdout.lines), before

    return both


def joined(lines: list[str]) -> str:
    return " ".join(line.strip() for line in lines)


OTHER_HOST = "1 case of another host, layout or placement (machine is 9bce71e4 here and feed there): save one here"
OTHER_PLACEMENT = "1 case of another host, layout or placement (placement is dedicated here and cooperative there)"
OTHER_LAYOUT = "1 case of another host, layout or placement (cores is 8 here and 4 there): save one here"


@pytest.mark.parametrize(
    ("kept", "sentence"),
    [
        (with_sessions(saved(identity={**HOST, "machine": "feed"})), OTHER_HOST),
        (with_sessions(saved(identity={**HOST, "cores": 4})), OTHER_LAYOUT),
        (
            with_sessions(saved(placement="cooperative")),
            OTHER_PLACEMENT,
        ),
        (with_sessions(saved(per_reference_launch=())), "1 case without a reference link"),
        (with_sessions(saved(started_at=2e9)), "a session of 2033-05-18T03:33:20Z lies ahead of the clock"),
        (
            with_sessions(saved(started_at=time.time() - 1.1 * history_file.GAP_S)),
            "1 case last saved more than 14 days ago",
        ),
    ],
    ids=["host", "layout", "placement", "control", "clock", "gap"],
)
def test_a_baseline_that_cannot_tell_is_said(reported: Reported, kept: Entry, sentence: str) -> None:
    for text in reported(COMPARE, baseline=kept):
        assert f"baseline main: {sentence}" in text


def test_what_a_session_finds_is_all_that_is_said_of_a_baseline_that_can_tell(reported: Reported) -> None:
    for text in reported(COMPARE, baseline=with_sessions(saved())):
        assert "baseline main:" not in text
        assert "this session finds nine times of ten: a loss of 3." in text
        assert "weak session" not in text


def test_a_weak_session_begins_with_a_warning(reported: Reported) -> None:
    for text in reported(COMPARE, baseline=saved()):
        assert "weak session: 1 case of 1 cannot show a loss of 10 %" in text


@pytest.mark.parametrize(
    ("ago_s", "sentence"),
    [
        (-25.1 * 3600, "a result lies 25 h ahead of the clock, which went back: set it right, or the results"),
        (41.5 * 86400, "42 days without a result, so a change that this run shows may lie anywhere"),
        (3600, None),
    ],
    ids=["clock", "gap", "neither"],
)
def test_a_history_that_cannot_tell_is_said(
    reported: Reported, inner: Runner, ago_s: float, sentence: str | None
) -> None:
    kept = history_file.make_entry(measured(started_at=time.time() - ago_s), "before")
    assert kept is not None
    history_file.append(inner.path / "h.jsonl", [replace(kept, at=kept.at - 1000), kept])
    for text in reported("--icbench-history=h.jsonl"):
        assert sentence in text.partition("h.jsonl: ")[2] if sentence else "h.jsonl: " not in text


def test_a_history_that_is_no_file_is_refused_before_the_host_is_taken(inner: Runner, bench: type[FakeTestbed]) -> None:
    inner.write(test_x=CASE)
    (inner.path / "h").mkdir()
    for arguments in (["--icbench-plan"], []):
        refused = inner.run(*arguments, "--icbench-history=h")
        assert refused.ret == pytest.ExitCode.USAGE_ERROR
        refused.stderr.fnmatch_lines(["ERROR: the history *h cannot be read (Is a directory)"])
    assert bench.log == []


def test_a_budget_without_time_for_retests_is_said(reported: Reported) -> None:
    baseline = with_sessions(saved())
    plan, _ = reported(COMPARE, "--icbench-budget=20m", baseline=baseline)
    minutes, seconds = map(int, plan.partition("at least ")[2].split()[0].split(":"))
    least_s = 60 * minutes + seconds
    sentence = "no time for a retest, without which nothing is called a regression: give "
    for text in reported(COMPARE, f"--icbench-budget={1.1 * least_s:.0f}"):
        assert sentence in text
    for text in reported(COMPARE, f"--icbench-budget={least_s + 60}"):
        assert sentence not in text


@pytest.mark.parametrize(
    ("factor", "control", "verdict"),
    [(0.8, 1.0, "REGRESSED: ovs-64B-b32-1vs1-Rmax: 4 Mpps is 20 % lower than main"), (0.8, 0.8, "INCONCLUSIVE: ")],
)
def test_a_run_reports_the_host_from_the_path_and_which_loss_it_finds(
    inner: Runner,
    bench: type[FakeTestbed],
    monkeypatch: pytest.MonkeyPatch,
    factor: float,
    control: float,
    verdict: str,
) -> None:
    monkeypatch.setattr(bench, "facts", (HOST, {}))
    inner.write(test_x=CASE)
    baselines.save(inner.path / "baselines", "main", [with_sessions(saved())])
    beside = tuple(launch(2 * pps, index) for index, pps in enumerate(scaled(control)))
    bench.behaviour = staticmethod(
        lambda case: measured(case, scaled(factor), per_reference_launch=beside, started_at=time.time())
    )
    text = joined(inner.run(COMPARE).stdout.lines)
    assert verdict in text
    assert ("the reference link changed, too" in text) is (control < 1)
    for shown in (text, (inner.path / "reports" / "latest" / "summary.md").read_text()):
        assert "his session would have found nine times of ten: " in shown
