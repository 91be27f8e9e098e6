# SPDX-License-Identifier: BSD-3-Clause
"""Limits, verdicts, and thresholds.toml."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_icbench.errors import Invalid, Regression, UsageError
from pytest_icbench.gate.baseline_comparison import BaselineComparison
from pytest_icbench.gate.judge import Policy, enforce, judge
from pytest_icbench.gate.limits import BOOKKEEPING, LIMITABLE, Limit
from pytest_icbench.model.case import Case
from pytest_icbench.model.load import Frames
from pytest_icbench.model.measurement import ESTIMATES, FLAT_FIELDS
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.traffic import Traffic
from pytest_icbench.model.trials import BackToBack, SearchLog
from pytest_icbench.stats.quantiles import Estimate
from pytest_icbench.store.thresholds import load, parse
from tests.measurements import measurement


def limit(kind: Literal["min", "max"], value: float, name: str = "throughput_pps") -> Limit:
    return Limit(name, kind, value, f'thresholds.toml: ["*"] {kind}_{name}')


@pytest.mark.parametrize(
    ("kind", "value", "verdict"),
    [
        ("min", 4.0e6, "PASS"),
        ("min", 4.9e6, "PASS"),
        ("min", 4.95e6, "INCONCLUSIVE"),
        ("min", 5.05e6, "INCONCLUSIVE"),
        ("min", 5.1e6, "INCONCLUSIVE"),
        ("min", 5.2e6, "REGRESSED"),
        ("max", 5.2e6, "PASS"),
        ("max", 5.1e6, "PASS"),
        ("max", 5.0e6, "INCONCLUSIVE"),
        ("max", 4.8e6, "REGRESSED"),
    ],
)
def test_only_a_whole_interval_decides(kind: Literal["min", "max"], value: float, verdict: str) -> None:
    assert judge(measurement(), [limit(kind, value)]).verdict == verdict


@given(
    st.floats(0, 1e9),
    st.floats(0, 1e9),
    st.floats(0, 1e9),
    st.sampled_from(["min", "max"]),
)
def test_pass_and_regressed_exclude_each_other(low: float, high: float, value: float, kind: str) -> None:
    low, high = sorted((low, high))
    way: Literal["min", "max"] = "min" if kind == "min" else "max"
    found = measurement(throughput_pps=(low + high) / 2, throughput_pps_low=low, throughput_pps_high=high)
    verdict = judge(found, [limit(way, value)]).verdict
    inside = low >= value if kind == "min" else high <= value
    outside = high < value if kind == "min" else low > value
    assert verdict == ("PASS" if inside else "REGRESSED" if outside else "INCONCLUSIVE")


def test_a_result_without_an_interval_is_its_own_interval() -> None:
    assert judge(measurement(lost=0), [limit("max", 0, "lost")]).verdict == "PASS"
    assert judge(measurement(lost=1), [limit("max", 0, "lost")]).verdict == "REGRESSED"


def test_an_estimate_without_an_interval_is_inconclusive() -> None:
    found = measurement(throughput_pps_low=None, throughput_pps_high=None)
    judgement = judge(found, [limit("min", 1.0)])
    assert judgement.verdict == "INCONCLUSIVE"
    assert judgement.findings[0].reason == "few"


@pytest.mark.parametrize(
    ("kind", "value", "verdict"),
    [("min", 4e6, "PASS"), ("min", 6e6, "INCONCLUSIVE"), ("max", 6e6, "INCONCLUSIVE"), ("max", 4e6, "REGRESSED")],
)
def test_a_lower_bound_can_meet_a_limit_but_not_miss_it(
    kind: Literal["min", "max"], value: float, verdict: str
) -> None:
    """A search that ended at what the senders can offer: the device does this, and perhaps more."""
    search = SearchLog("csit", 0.0, 0.5, 0.005, 1, 1, 21, 1e4, 5e6, "reference", True, "the greatest load passes")
    found = measurement(lower_bound=True, search=search, throughput_pps_low=5e6, throughput_pps_high=None)
    judgement = judge(found, [limit(kind, value)])
    assert judgement.verdict == verdict
    assert "5 Mpps (at least)" in judgement.message()
    assert "inf" not in judgement.message()
    bound = found.with_figures(search_lower_pps=5e6)
    judgement = judge(bound, [limit(kind, value, "search_lower_pps")])
    assert judgement.verdict == verdict
    assert ("the search ended at what the senders can offer" in judgement.message()) == (verdict == "INCONCLUSIVE")


def test_a_result_without_a_value_is_inconclusive() -> None:
    judgement = judge(measurement(), [limit("min", 0.5, "ratio_to_reference")])
    assert (judgement.verdict, judgement.findings[0].reason) == ("INCONCLUSIVE", "few")
    assert "ratio_to_reference has no value" in judgement.reason


@pytest.mark.parametrize(
    ("name", "changed", "reported"),
    [
        ("rtt_p99_9_ns", {}, "a launch takes 10000 round trips and had 1000: --icbench-duration 5"),
        ("pdv_p99_9_ns", {"pdv_p99_9_ns": 9.0}, "a launch takes 10000 round trips and had 1000: --icbench-duration 5"),
        ("rtt_p99_ns", {"rtt_p99_ns": None, "rtt_lost": 900}, "requests that were never answered reach into it"),
        ("rtt_first_p99_ns", {"rtt_first_samples": 3000}, "a launch takes 1000 round trips and had 500: "),
        ("floor_p99_ns", {"floor_samples": 100}, "it takes 1000 round trips and had 100: --icbench-duration 5"),
    ],
)
def test_a_percentile_with_too_few_samples_says_how_many_it_takes(
    name: str, changed: dict[str, Any], reported: str
) -> None:
    facts = {"rtt_samples": 6000, "duration_s": 4.8, "settings": {"duration_s": 0.5}} | changed
    judgement = judge(measurement(Case("ovs", dimension="latency"), **facts), [limit("max", 1e5, name)])
    assert judgement.verdict == "INCONCLUSIVE"
    assert reported in judgement.reason
    (finding,) = judgement.findings
    if "rtt_lost" not in changed:
        # Ten times as long, or twice: launches of 0.8 s.
        assert finding.more_s == pytest.approx(4.8 if name.startswith("rtt_first") else 43.2)
        assert "more" in finding.outlook()


def test_limits_of_the_other_dimension_do_not_apply() -> None:
    latency = measurement(Case("ovs", dimension="latency"))
    assert judge(latency, [limit("min", 9e9)]).verdict == "NO_BASELINE"
    assert judge(measurement(), [limit("max", 1, "rtt_p50_ns")]).verdict == "NO_BASELINE"
    assert judge(latency, [limit("max", 25_000, "rtt_p50_ns")]).verdict == "PASS"


def test_the_worst_limit_decides_and_all_are_reported() -> None:
    limits = [limit("min", 1), limit("max", 5e6), limit("min", 6e6)]
    judgement = judge(measurement(), limits)
    assert judgement.verdict == "REGRESSED"
    assert [line.split(": ")[1] for line in judgement.details] == ["REGRESSED", "INCONCLUSIVE", "PASS"]


def test_regressed_and_invalid_fail_unless_other_verdicts_are_named() -> None:
    assert judge(measurement(), [])
    assert judge(measurement(), [limit("min", 5e6)])
    assert not judge(measurement(), [limit("min", 6e6)])
    assert not judge(measurement(verdict="INVALID", reason="stalled"), [])


def test_strict_leaves_only_pass() -> None:
    strict = Policy(strict=True)
    assert not judge(measurement(), [], policy=strict)
    assert not judge(measurement(), [limit("min", 5e6)], policy=strict)
    assert judge(measurement(), [limit("min", 1)], policy=strict)


def test_invalid_comes_before_every_limit() -> None:
    found = measurement(verdict="INVALID", reason="no-forwarding", evidence="0 of 100 frames arrived")
    judgement = judge(found, [limit("min", 1)])
    assert judgement.verdict == "INVALID"
    with pytest.raises(Invalid, match="no-forwarding") as caught:
        enforce(judgement)
    assert "0 of 100 frames arrived" in str(caught.value)


def test_a_regression_has_the_verdict_and_its_details() -> None:
    case = Case(
        "linux-bridge",
        Frames(Traffic(1500)),
        api="raw-mmsg",
        switch_cores=12,
        blocking=True,
        check_payload=True,
        pairs=16,
    )
    with pytest.raises(Regression) as caught:
        enforce(judge(measurement(case, bottleneck="endpoint", bottleneck_evidence="ring full"), [limit("min", 7e6)]))
    first, *rest = str(caught.value).splitlines()
    assert first == f"REGRESSED: {case.id}: 5 Mpps is below 7 Mpps (4.9 Mpps to 5.1 Mpps)"
    assert rest[0].endswith(f"limit from {limit('min', 7e6).source}")
    assert rest[1:] == ["the endpoint was the bottleneck: ring full"]


def test_every_number_of_a_measurement_can_be_limited_or_is_bookkeeping() -> None:
    kinds = [kind | None for kind in (int, float, Estimate)] + [int, float]
    numbers = {name for name, kind in FLAT_FIELDS.items() if kind in kinds}
    assert set(LIMITABLE) == numbers - BOOKKEEPING | {"back_to_back_frames"}  # a property
    assert numbers >= BOOKKEEPING


@pytest.mark.parametrize("dimension", ["throughput", "latency"])
def test_every_limit_is_found_by_its_dimension_and_judged(dimension: Literal["throughput", "latency"]) -> None:
    text = '["*"]\n' + "".join(f"max_{name} = 1\nmin_{name} = 0\n" for name in LIMITABLE)
    found = measurement(Case("ovs", dimension=dimension))
    judgement = judge(found, parse(text, "t.toml").for_case(found.case))
    assert len(judgement.findings) == 2 * sum(
        dimension in owners and not name.startswith(("search_", "loss_event_", "back_to_back_"))
        for name, owners in LIMITABLE.items()
    )


@pytest.mark.parametrize(
    ("name", "kind", "value", "changed"),
    [
        ("pdv_p99_ns", "max", 5e3, {"pdv_p99_ns": 9e3, "pdv_p99_ns_low": 8e3, "pdv_p99_ns_high": 1e4}),
        ("rtt_first_p99_ns", "max", 5e3, {"rtt_first_p99_ns": 9e3, "rtt_first_p99_ns_low": 8e3}),
        ("search_lower_pps", "min", 5e6, {"search_lower_pps": 4e6}),
        ("sender_cycles_per_packet", "max", 100.0, {"sender_cycles_per_packet": 120.0}),
    ],
)
def test_what_only_some_measurements_have_can_be_limited(
    name: str, kind: Literal["min", "max"], value: float, changed: dict[str, Any]
) -> None:
    search = SearchLog("csit", 0.0, 0.5, 0.005, 1, 1, 21, 1e4, 5e6, "reference", True, "the greatest load passes")
    of_latency = LIMITABLE[name] == ("latency",)
    case = Case("ovs", dimension="latency" if of_latency else "throughput")
    for end in ("low", "high"):
        if name in ESTIMATES:
            changed = {f"{name}_{end}": changed[name], **changed}
    if name.startswith("search_"):
        assert judge(measurement(case), [limit(kind, value, name)]).verdict == "NO_BASELINE"
        changed = {**changed, "search": search}
    assert judge(measurement(case, **changed), [limit(kind, value, name)]).verdict == "REGRESSED"


TRAINS = BackToBack(1500.4, 1400, 1600, 51.2, 50, False, 12.5e6, 2e6, 120e-6, 100e-6)


@pytest.mark.parametrize(
    ("name", "kind", "value", "verdict"),
    [
        ("back_to_back_frames", "min", 1500, "PASS"),
        ("back_to_back_frames", "min", 1501, "REGRESSED"),
        ("loss_event_count", "max", 2, "PASS"),
        ("loss_event_count", "max", 1, "REGRESSED"),
    ],
)
def test_trains_and_loss_events_can_be_limited(name: str, kind: Any, value: float, verdict: str) -> None:
    found = measurement(back_to_back=TRAINS, loss_event_count=2)
    assert judge(found, [limit(kind, value, name)]).verdict == verdict
    assert judge(measurement(), [limit(kind, value, name)]).verdict == "NO_BASELINE"  # of another kind
    assert parse(f'["*"]\n{kind}_{name} = {value}', "t").for_case("x")[0].name == name


def test_trains_that_never_lost_hold_a_limit_and_miss_none() -> None:
    found = measurement(back_to_back=dataclasses.replace(TRAINS, at_least=True))
    assert judge(found, [limit("min", 1500, "back_to_back_frames")]).verdict == "PASS"
    judgement = judge(found, [limit("min", 1501, "back_to_back_frames")])
    assert judgement.verdict == "INCONCLUSIVE"
    assert "(at least)" in judgement.details[0]
    assert "the longest trains that were sent lost nothing" in judgement.details[0]


TOML = """
["*"]
max_frame_loss_ratio = 0.9
min_throughput_pps = 1_000

["ovs-64B-*"]
min_throughput_pps = 2_000_000

["*-b32-*"]
max_frame_loss_ratio = 0.5
"""


def test_the_last_table_that_matches_wins_for_each_key() -> None:
    found = parse(TOML, "t.toml").for_case("ovs-64B-b32-1vs1-Rmax")
    assert {(each.kind, each.name): (each.value, each.source) for each in found} == {
        ("max", "frame_loss_ratio"): (0.5, 't.toml: ["*-b32-*"] max_frame_loss_ratio'),
        ("min", "throughput_pps"): (2e6, 't.toml: ["ovs-64B-*"] min_throughput_pps'),
    }
    assert {each.value for each in parse(TOML, "t.toml").for_case("veth-64B-b4-1vs1-Rmax")} == {0.9, 1000.0}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('["*"]\nmin_troughput_pps = 1', 't.toml: ["*"] min_troughput_pps: there is no such limit; did you mean'),
        ('["*"]\nthroughput_pps = 1', 't.toml: ["*"] throughput_pps: there is no such limit'),
        ('["*"]\nmin_case = 1', "there is no such limit"),
        ('["*"]\nmax_launches = 1', "there is no such limit"),
        ('["*"]\nqwertzuiop = 1', "there is no such limit; write min_ or max_ and the name of a result"),
        ('["*"]\nmin_throughput_pps = "1M"', "'1M' is no finite number"),
        ('["*"]\nmin_throughput_pps = true', "True is no finite number"),
        ('["*"]\nmin_throughput_pps = nan', "nan is no finite number"),
        ("min_throughput_pps = 1", "t.toml: min_throughput_pps stands outside a table"),
        ("[[", "t.toml is not valid TOML"),
    ],
)
def test_mistakes_in_the_file_are_named(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(text, "t.toml")
    assert message in str(caught.value)


@given(st.text())
def test_any_file_is_read_or_refused(text: str) -> None:
    try:
        parse(text, "t.toml")
    except UsageError as error:
        message = str(error)
    else:
        message = "t.toml"
    assert message.startswith("t.toml")


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "thresholds.toml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="cannot be read"):
        load(path)


def test_loss_at_a_rate_that_was_not_offered_is_inconclusive() -> None:
    found = measurement(Case("ovs", Frames(rate=Rate(10**6))), generator_bound=True, lost=0)
    judgement = judge(found, [limit("max", 0, "lost")])
    assert judgement.verdict == "INCONCLUSIVE"
    assert (judgement.findings[0].reason, judgement.findings[0].name) == ("bound", "lost")
    # Received is received, and at the maximum the sender's best is what was asked for.
    assert judge(found, [limit("min", 1e6)]).verdict == "PASS"
    assert judge(measurement(generator_bound=True, lost=0), [limit("max", 0, "lost")]).verdict == "PASS"


DISTURBED: dict[str, Any] = {
    "disturbed_launches": 2,
    "disturbance": ("other processes took 0.52 of 2 CPUs (stress-ng-cpu 0.48)"),
}


@pytest.mark.parametrize(("launches", "verdict"), [(0, "REGRESSED"), (1, "REGRESSED"), (2, "INCONCLUSIVE")])
def test_too_many_disturbed_launches_are_inconclusive(launches: int, verdict: str) -> None:
    found = measurement(**{**DISTURBED, "disturbed_launches": launches})
    judgement = judge(found, [limit("min", 5.2e6)])
    assert judgement.verdict == verdict
    assert judgement.findings[0].reason == ("host" if launches == 2 else None)


def test_a_verdict_says_by_what_its_launches_were_disturbed() -> None:
    reported = "disturbed: 1 of 6 launches, other processes took 0.52 of 2 CPUs (stress-ng-cpu 0.48)"
    judgement = judge(measurement(**{**DISTURBED, "disturbed_launches": 1}), [limit("min", 5.2e6)])
    assert judgement.verdict == "REGRESSED"
    assert reported in judgement.details
    assert "disturbed" not in judge(measurement(), [limit("min", 5.2e6)]).reason


def test_repeated_launches_are_reported() -> None:
    found = measurement(disturbed_launches=0, disturbed_repeated=1, disturbance=DISTURBED["disturbance"])
    judgement = judge(found, [limit("min", 4e6)])
    assert judgement.verdict == "PASS"
    reported = "1 disturbed launch repeated: other processes took 0.52 of 2 CPUs (stress-ng-cpu 0.48)"
    assert reported in judgement.details


def test_a_busy_start_is_reported_with_a_comparison() -> None:
    fitness = {"fit": False, "sentence": "other processes took 1.20 of 2 CPUs (make 1.18)"}
    found = measurement(conditions={"fitness": fitness})
    compared = judge(found, [limit("min", 4e6)], against=BaselineComparison("main", missing="no such case"))
    assert "when the run began other processes took 1.20 of 2 CPUs (make 1.18)" in compared.details
    assert "when the run began" not in judge(found, [limit("min", 4e6)]).message()
    fit = measurement(conditions={"fitness": {**fitness, "fit": True}})
    assert "when the run" not in judge(fit, against=BaselineComparison("main", missing="no such case")).message()
