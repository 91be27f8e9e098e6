# SPDX-License-Identifier: BSD-3-Clause
"""The page of validation says what its records say; records survive their files; a claim holds if all its bounds do."""

from __future__ import annotations

import math
import re
import struct
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_icbench.driver.switch.registry import builtin_switches

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs" / "explanation" / "validation"


@pytest.fixture(scope="module")
def validation() -> Iterator[Any]:
    """The package `benchmarks/validation`, which is part of the source tree only."""
    if not (ROOT / "benchmarks" / "validation").exists():
        pytest.skip("the benchmarks are part of the source tree only")
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        yield import_module
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))


@pytest.fixture
def model(validation: Any) -> Any:
    return validation("validation.model")


@pytest.fixture
def page(validation: Any) -> Any:
    return validation("validation.page")


@pytest.fixture
def claims(validation: Any) -> Any:
    return validation("validation.claims").load()


def recorded(validation: Any, claims: Any) -> Any:
    return validation("validation.__main__").read(DOCS, claims)


def test_generated_parts_of_the_page_match_the_records(validation: Any, page: Any, claims: Any) -> None:
    text = (ROOT / "docs" / "explanation" / "validation.md").read_text()
    assert page.generate(text, claims, recorded(validation, claims)) == text, "run: make validate ARGS=--draw"


def test_every_record_and_figure_belongs_to_a_claim_and_the_other_way_round(validation: Any, claims: Any) -> None:
    drawing = validation("validation.drawing")
    expected = set()
    for name, record in recorded(validation, claims).items():
        expected |= {f"{name}.json", *(drawing.figure_names(name, claims[name]) if record.missing is None else ())}
    assert {file.name for file in DOCS.glob("*")} == expected


def test_records_name_no_place_on_a_machine() -> None:
    for file in DOCS.glob("*.json"):
        assert not re.search(r"(?<![\w.])/(home|root|tmp|work|usr|run)/", file.read_text()), file.name


def test_every_claim_has_its_parts(claims: Any) -> None:
    for name, claim in claims.items():
        assert claim.TITLE, name
        assert claim.CLAIM.endswith("."), name
        assert claim.METHOD.strip(), name
        assert claim.SECONDS > 0, name
        assert all(caption.endswith(".") for caption in claim.FIGURES.values()), name
        assert callable(claim.check), name
        assert callable(claim.draw), name
    assert sum(claim.SECONDS for claim in claims.values()) < 4500  # an hour and a quarter, not hours


def test_rows_that_differ_by_numbers_are_one_row_and_a_failed_one_stands_alone(model: Any, page: Any) -> None:
    rows = [
        model.Row(f"rate of `{name}`, pps", value, "above 0") for name, value in zip("abcd", (3, 5, 4, 9), strict=True)
    ]
    text = page.table(rows)
    assert text.splitlines()[2:] == ["| rate of … pps (4 values) | 3 to 9 | above 0 | ✓ |"]
    times = [model.Row(f"p{number} of {number} trips", number) for number in (50, 90, 99)]
    assert "| p… of … trips (3 values) | 50 to 99 |" in page.table(times)
    rows.append(model.Row("rate of `e`, pps", 0, "above 0", held=False))
    assert "| rate of `e`, pps | 0 | above 0 | ✗ |" in page.table(rows)
    assert "(4 values)" in page.table(rows)
    assert page.table(rows[:2]).count("✓") == 2
    texts = [model.Row(f"{name}: found", f"{name} of 5") for name in range(4)]
    assert page.table(texts).count("of 5") == 4
    bounded = model.Row("4: found", "5 of 5", "all")  # what others tell without a bound does not hide it
    assert "| 4: found | 5 of 5 | all | ✓ |" in page.table([*texts, bounded])
    verdicts = [model.Row(f"kind {name}: verdicts", f"{name} INCONCLUSIVE, 2 PASS") for name in range(3)]
    assert page.table(verdicts).count("INCONCLUSIVE, 2 PASS") == 3


@pytest.mark.parametrize(
    ("rows", "state"),
    [
        ([], "not shown"),
        ([{}], "not shown"),
        ([{"bound": "1"}], "holds"),
        ([{"bound": "1"}, {}], "holds"),
        ([{"bound": "1"}, {"bound": "2", "held": False}], "fails"),
    ],
)
def test_a_claim_holds_only_if_it_has_bounds_and_all_are_kept(
    model: Any, rows: list[dict[str, Any]], state: str
) -> None:
    record = model.Record("x", "2026-01-01", 1.0, {}, tuple(model.Row("figure", 1, **row) for row in rows))
    assert record.state == state


def test_records_survive_their_files(model: Any, tmp_path: Path) -> None:
    rows = (model.Row("counted", 12, "12", True), model.Row("rate", 0.5, low=0.25, high=0.75, coverage=0.97))
    data = {"points": [1, 2.5, 3], "nested": [[1, 2], []], "text": ["a [b", "c,"], "empty": {}}
    record = model.Record("x", "2026-01-01", 1.5, {"CPUs": 2}, rows, ("note",), data)
    record.write(tmp_path)
    assert model.Record.read(tmp_path / "x.json") == record
    assert "[1, 2.5, 3]" in (tmp_path / "x.json").read_text()


@pytest.mark.parametrize("text", ["{", "[]", '{"schema": 2}', '{"schema": 1, "claim": "x"}'])
def test_damaged_records_are_refused(model: Any, tmp_path: Path, text: str) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(Exception, match=r"^x\.json: "):
        model.Record.read(tmp_path / "x.json")


def test_a_page_without_marks_is_refused(page: Any) -> None:
    with pytest.raises(ValueError, match="<!-- summary -->"):
        page.generate("# Validation\n", {}, {})


@pytest.mark.parametrize(
    ("value", "text"),
    [(1234567, "1,234,567"), (0.123456, "0.12346"), (1234567.8, "1,234,568"), (99.0, "99"), ("a|b", "a|b")],
)
def test_figures_are_shown_readably(page: Any, value: Any, text: str) -> None:
    assert page.shown(value) == text


def test_columns_without_content_are_left_out(page: Any, model: Any) -> None:
    rows = (model.Row("counted", 12, "12"), model.Row("text|more", "a"))
    assert page.table(rows).splitlines() == [
        "| value | measured | bound |  |",
        "| --- | --- | --- | --- |",
        "| counted | 12 | 12 | ✓ |",
        "| text\\|more | a |  |  |",
    ]


def packet(sequence: int, window: int = 1, ethertype: int = 0x0800, protocol: int = 17) -> bytes:
    """A frame as the workload sends it, as far as a capture looks at it."""
    ip = b"\x45" + bytes(8) + bytes([protocol]) + bytes(10)
    return (
        bytes(12)
        + struct.pack(">H", ethertype)
        + ip
        + bytes(8)
        + struct.pack(">HH6s8x", 1, window, sequence.to_bytes(6))
    )


def test_a_capture_reports_data_from_end_marks_and_others(validation: Any, tmp_path: Path) -> None:
    frames = [packet(0), packet(1), packet(9, protocol=1), packet(2, ethertype=0x0806), packet(2), bytes(60)]
    frames += [packet(4, window=0xFFFF), packet(0, window=0xFFFF)]
    file = tmp_path / "capture"
    records = [struct.pack("<IIII", 7, 5 * n, len(frame), len(frame)) + frame for n, frame in enumerate(frames)]
    file.write_bytes(struct.pack("<I20x", 0xA1B23C4D) + b"".join(records))
    capture = validation("validation.capture").read(file)
    assert capture.sequences == (0, 1, 2)
    assert capture.times_ns == (7_000_000_000, 7_000_000_005, 7_000_000_020)
    assert (capture.end_marks, capture.others, capture.frames) == (1, 4, len(frames))
    file.write_bytes(struct.pack("<I20x", 0xA1B2C3D4))
    with pytest.raises(ValueError, match="no capture with nanoseconds"):
        validation("validation.capture").read(file)


@pytest.mark.parametrize(
    ("counts", "wrong"),
    [((10, 8, 2, 5, 3), 0), ((10, 8, 1, 5, 3), 1), ((10, 8, 2, 5, 2), 1), ((10, 9, 2, 9, 1), 2)],
)
def test_frames_missing_from_either_sum_are_counted(validation: Any, counts: tuple[int, ...], wrong: int) -> None:
    assert validation("validation.claims.accounts").Sums(*counts).unaccounted == wrong


def test_windows_are_quiet_only_without_any_preemption(validation: Any) -> None:
    """The forwarder's are known in sum: each counts as a window of its own."""
    rounds = validation("validation.reflector").Round
    assert rounds((1, 2, 3), 5, 0).quiet == 3
    assert rounds((1, 2, 3), 5, 2).quiet == 1
    assert rounds((1, 2, 3), 5, 9).quiet == 0


@pytest.mark.parametrize(("shifts", "held"), [((19.1, 20.0, 20.9), True), ((19.1, 20.0, 21.1), False)])
def test_every_pair_has_to_show_the_delay(validation: Any, shifts: tuple[float, ...], held: bool) -> None:
    latency, reflector = (validation(f"validation.{name}") for name in ("claims.latency", "reflector"))
    shift, quiet = latency.shown(10, shifts, [reflector.Round((1,) * 8, 10, 0)])
    assert (shift.held, shift.bound, quiet.held) == (held, "19 to 21", True)
    assert not latency.shown(10, shifts, [reflector.Round((1,) * 8, 10, 1)])[1].held


def test_a_distribution_is_kept_as_far_as_there_are_frames(validation: Any) -> None:
    rate = validation("validation.claims.rate")
    counts = [(1, 50), (10, 40), (100, 10)]
    assert [rate.quantile(counts, part) for part in (0.5, 0.9, 1)] == [1, 10, 100]
    kept = rate.beyond(counts)
    assert kept[0] == 1
    assert kept[-1] == 100
    assert len(kept) == sum(part * 100 >= 1 for part in rate._BEYOND)


@pytest.mark.parametrize("words", [["--binary", "vpp"], ["--binary", "none=/bin/true"], ["--binary", "vpp=/none"]])
def test_a_bad_binary_is_refused(validation: Any, claims: Any, words: list[str], tmp_path: Path) -> None:
    runner = validation("validation.__main__")
    with pytest.raises(SystemExit) as refused:
        runner.parse(words, claims)
    assert refused.value.code == 2
    (tmp_path / "vpp").touch()
    assert runner.parse(["--binary", f"vpp={tmp_path}/vpp"], claims).binary == [("vpp", tmp_path / "vpp")]


@pytest.mark.slow
def test_coverage_has_a_row_for_each_machine(validation: Any, model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    coverage, machines = validation("validation.claims.coverage"), validation("validation.machines")
    monkeypatch.setattr(coverage, "MACHINES", (machines.normal(2),))
    rows = [row.what for row in coverage.check(model.Settings(quick=True)).rows]
    assert "two bands, 50% upper, 6 % apart: of 300 sessions those whose interval holds the truth" in rows


def test_accounts_are_held_over_every_switch(validation: Any, model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    accounts = validation("validation.claims.accounts")
    asked: list[str] = []

    def can_run(_session: Any, cases: Any) -> tuple[list[Any], list[str]]:
        asked.extend(case.switch for case in cases if case.mode is None)
        return [], []

    monkeypatch.setattr(accounts.rigs, "can_run", can_run)
    monkeypatch.setattr(accounts, "HostSession", lambda *_, **__: nullcontext())
    accounts.check(model.Settings())
    assert asked == [name for name in builtin_switches() if name != "attach"]  # of which nothing is on any host


def test_searches_are_repeated_and_their_spread_is_reported(
    validation: Any, model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = validation("validation.claims.search")
    rates, flat = iter([100.0, 90.0, 102.0, 91.0, 99.0, 98.0]), iter([100.0, 104.0, 101.0, 99.0, 100.0])

    def found(rate: float) -> SimpleNamespace:
        return SimpleNamespace(frames=SimpleNamespace(throughput_pps=rate), duration_s=12.0)

    monkeypatch.setattr(search, "search", lambda *_: found(next(rates)))
    monkeypatch.setattr(search, "greatest", lambda *_: next(flat))
    case = SimpleNamespace(mode="cost4000")
    rows = {row.what: row.value for row in search.compared(None, None, case, found(101.0), model.Settings())}
    assert rows["MLRsearch, cost4000: rates, pps"] == "101 / 90 / 91 / 99 / 98"
    assert rows["MLRsearch, cost4000: greatest rate over least"] == "12.22% more"
    assert rows["plain search, cost4000: rates, pps"] == "100 / 102"
    assert rows["flat out beside them, cost4000: greatest rate over least"] == "5.05% more"


@pytest.mark.parametrize(
    ("interval", "reported"),
    [((0.98, 1.03), "yes: from 0.980 to 1.030 of it"), ((1.01, 1.03), "no: from 1.010 to 1.030 of it")],
)
def test_time_reports_whether_few_seconds_hold_the_level_of_minutes(
    validation: Any, interval: tuple[float, float], reported: str
) -> None:
    time = validation("validation.claims.time")
    outcome = time.Outcome("throughput x", 1e6, 0.01, 370.0, 0.009, 20.0, 12, "precision", interval)
    rows = {row.what: row.value for row in time.assemble([outcome], []).rows}
    assert rows["throughput x: its interval holds the level of the six"] == reported


@pytest.mark.parametrize("correlation", [0.6, 0.9])
def test_coverage_has_machines_that_the_earlier_rule_fails_on(validation: Any, correlation: float) -> None:
    coverage, machines = validation("validation.claims.coverage"), validation("validation.machines")
    machine = machines.dependent(correlation, 2)
    share, launches, reported = coverage.covered(machine, 300, seed=1)
    before, few = coverage.covered_before(machine, 300, seed=1)
    assert share >= 0.9 - 3 * (0.09 / 300) ** 0.5
    assert before < 0.9 - 3 * (0.09 / 300) ** 0.5
    assert few < 20 <= launches
    assert reported > 0.4


def test_the_truth_of_round_trips_is_that_of_many_launches(validation: Any) -> None:
    tails = validation("validation.tails")
    assert tails.truth(0.0)["mean"] == pytest.approx(15)
    assert tails.truth(0.0)["p99"] == pytest.approx(10 + 100 * math.log(5), rel=1e-3)
    (mean, stretched) = tails.coverage(1.0, 20, 200, 1)["mean"]
    assert mean > 0.9 - 3 * (0.09 / 200) ** 0.5 > stretched


def test_a_independent_check_explains_what_it_goes_along_with(validation: Any) -> None:
    disturbance = validation("validation.claims.disturbance")

    def point(taken: float, kpps: float, *, beside: bool, reported: bool) -> dict[str, Any]:
        return {
            "beside": beside,
            "reported": reported,
            "kpps": kpps,
            "taken": taken,
            "waited": 0.0,
            "gaps": None,
        }

    alone = [point(0.0, 1000.0, beside=False, reported=False)] * 6
    beside = [point(1.0, 500.0, beside=True, reported=number < 5) for number in range(6)]
    rows = {row.what: row for row in disturbance.assemble([*alone, *beside]).rows}
    reported = rows["launches of 6 beside a spinning process that are told"]
    assert (reported.value, reported.held) == (5, False)
    assert rows["launches of 6 alone that are told"].value == 0
    assert rows["R² of the rate on CPU time of others, all launches"].value == "1.00"
    assert rows["R² of the rate on CPU time of others, launches alone"].value == "not known"
    assert rows["R² of the rate on gaps of a loop, all launches"].value == "not known"
