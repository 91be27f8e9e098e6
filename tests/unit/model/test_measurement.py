# SPDX-License-Identifier: BSD-3-Clause
"""Results survive being written and read; what is newer or damaged is refused in one sentence."""

from __future__ import annotations

import copy
import dataclasses
import json
import types
from enum import StrEnum
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_icbench.model.case import AXES, Case
from pytest_icbench.model.codec import DamagedData, decode
from pytest_icbench.model.launch import Launch, Window
from pytest_icbench.model.load import Frames
from pytest_icbench.model.measurement import SCHEMA, Measurement
from pytest_icbench.model.rate import Rate
from pytest_icbench.stats.quantiles import Estimate
from tests.measurements import measurement as made

_TEXT = st.text(max_size=12)
#: A known axis has its type, whatever else stands beside it.
_JSON = st.dictionaries(
    _TEXT.filter(lambda key: key not in AXES), st.none() | st.booleans() | st.integers() | _TEXT, max_size=3
)
_SCALARS: dict[Any, st.SearchStrategy[Any]] = {
    bool: st.booleans(),
    int: st.integers(min_value=-(2**62), max_value=2**62),
    float: st.floats(allow_nan=False, allow_infinity=False),
    str: _TEXT,
}
_SCALARS[Estimate] = st.builds(Estimate, _SCALARS[float], st.none() | _SCALARS[float], st.none() | _SCALARS[float])


def strategy(kind: Any) -> st.SearchStrategy[Any]:
    """Values of anything a result is made of."""
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        hints = get_type_hints(kind)
        return st.builds(kind, **{field.name: strategy(hints[field.name]) for field in dataclasses.fields(kind)})
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return st.one_of(*(st.none() if item is type(None) else strategy(item) for item in arguments))
    if origin is tuple:
        if arguments[-1] is ...:
            return st.lists(strategy(arguments[0]), max_size=2).map(tuple)
        return st.tuples(*map(strategy, arguments))
    if origin is Literal:
        return st.sampled_from(get_args(kind))
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return st.sampled_from(kind)
    if origin is dict and arguments[1] is not Any:
        return st.dictionaries(_TEXT, strategy(arguments[1]), max_size=3)
    return _JSON if origin is dict else _SCALARS[kind]


measurements = strategy(Measurement)
few = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@few
@given(measurements)
def test_a_measurement_survives_being_written(measurement: Measurement) -> None:
    """Windows are in files of their own and not in its line; keys of a later version are ignored."""
    written = json.loads(json.dumps(measurement.to_dict(windows=True), allow_nan=False))
    assert Measurement.from_dict(written) == measurement
    written["of_tomorrow"] = {"x": 1}
    assert Measurement.from_dict(written) == measurement

    def bare(launches: tuple[Launch, ...]) -> tuple[Launch, ...]:
        return tuple(dataclasses.replace(launch, windows=()) for launch in launches)

    line = measurement.to_json()
    assert "\n" not in line
    assert json.loads(line)["schema"] == SCHEMA
    assert Measurement.from_json(line) == dataclasses.replace(
        measurement,
        per_launch=bare(measurement.per_launch),
        per_reference_launch=bare(measurement.per_reference_launch),
        per_repeated_launch=bare(measurement.per_repeated_launch),
        per_other_launch=bare(measurement.per_other_launch),
    )


@pytest.mark.slow
@few
@given(measurements, st.data())
def test_a_missing_key_is_named(measurement: Measurement, data: st.DataObject) -> None:
    written = measurement.to_dict()
    required = [
        field.name
        for field in dataclasses.fields(Measurement)
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    ]
    gone = data.draw(st.sampled_from(required))
    del written[gone]
    with pytest.raises(DamagedData, match=rf"^results\.jsonl line 7: {gone} is missing$"):
        Measurement.from_dict(written, "results.jsonl line 7")


LATENCY = Case("ovs", dimension="latency")


def test_an_estimate_is_an_object_of_a_line_and_three_keys_of_a_flat_record() -> None:
    found = made(LATENCY, throughput_pps=Estimate(5e6, 4e6, 6e6), rtt_p50_ns=Estimate(3.0), fairness=1.0)
    line, flat = found.to_dict(), found.flat()
    assert line["figures"]["throughput_pps"] == {"value": 5e6, "low": 4e6, "high": 6e6}
    assert line["figures"]["rtt_p50_ns"] == {"value": 3.0, "low": None, "high": None}
    assert line["figures"]["rtt_p99_ns"] is None
    assert [flat[f"throughput_pps{end}"] for end in ("", "_low", "_high")] == [5e6, 4e6, 6e6]
    assert [flat[f"rtt_p50_ns{end}"] for end in ("", "_low", "_high")] == [3.0, None, None]
    assert [flat[f"rtt_p99_ns{end}"] for end in ("", "_low", "_high")] == [None] * 3
    assert {type(flat["throughput_pps"]), type(flat["rtt_p50_ns"])} == {float}
    assert Measurement.from_dict(line) == found


def test_a_flat_record_has_the_same_keys_whatever_the_kind() -> None:
    flat, of_latency = made().flat(), made(LATENCY).flat()
    assert list(flat) == list(of_latency)
    assert (flat["rtt_samples"], flat["startup_ns"], flat["sweep"]) == (0, None, [])


def test_a_line_of_an_earlier_version_lacks_what_there_was_not() -> None:
    line = made(LATENCY, rtt_p50_ns=None, rtt_samples=0).to_dict()
    gone = ("rtt_", "pdv_", "ratio_", "per_")
    older = {key: value for key, value in line.items() if not key.startswith(gone)}
    older["figures"] = {key: value for key, value in line["figures"].items() if not key.startswith(gone)}
    assert Measurement.from_dict(older).to_dict() == line


def test_the_case_of_another_version() -> None:
    found = made(Case("ovs", Frames(rate=Rate(1000)), pairs=2, candidate="new"))
    assert found.point == Case("ovs", Frames(rate=Rate(1000)), pairs=2, candidate="new")
    assert dataclasses.replace(found, axes={}).point == Case("ovs")
    later = {**found.axes, "rate": "of tomorrow", "weather": "fine"}
    assert dataclasses.replace(found, axes=later).point == Case("ovs", pairs=2, candidate="new")


def test_figures_are_numbers_with_ends() -> None:
    """As tests that users write have them."""
    found = made(throughput_pps=Estimate(5e6, 4.9e6, 5.1e6))
    assert found.throughput_pps is not None
    assert found.throughput_pps > 4.99e6
    assert found.throughput_pps == 5e6
    assert f"{found.throughput_pps / 1e6:.2f}" == "5.00"
    assert (found.throughput_pps.low, found.throughput_pps.high) == (4.9e6, 5.1e6)
    assert (found.rtt_p50_ns, found.startup_ns, found.loss_events, found.sweep) == (None, None, None, ())
    assert copy.copy(found) == found


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("", r"^x: not valid JSON \("),
        ('{"schema": 1', r"^x: not valid JSON \("),
        ("[]", "^x: expected an object, found list$"),
        ("{}", "^x: schema is None; this is no result"),
        ('{"schema": true}', "^x: schema is True; this is no result"),
        ('{"schema": "1"}', "^x: schema is '1'; this is no result"),
        ('{"schema": 3}', "^x: written with schema 3, but this version reads 2; update pytest-icbench$"),
        ('{"schema": NaN}', r"^x: not valid JSON \(NaN is no JSON number\)$"),
        ("[" * 100_000, "^x: n"),
    ],
)
def test_what_is_no_result_is_refused_in_one_sentence(line: str, sentence: str) -> None:
    with pytest.raises(DamagedData, match=sentence) as caught:
        Measurement.from_json(line, "x")
    assert "\n" not in str(caught.value)


@few
@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | _TEXT, lambda x: st.lists(x) | _JSON))
def test_no_data_breaks_the_reader(data: Any) -> None:
    with pytest.raises(DamagedData):
        Measurement.from_dict({"schema": SCHEMA, "case": data})
    with pytest.raises(DamagedData):
        Measurement.from_dict(data)


def test_a_wrong_type_is_shown() -> None:
    @dataclasses.dataclass(frozen=True)
    class Point:
        x: int
        y: float | None = None

    globals()["Point"] = Point
    assert decode(Point, {"x": 1, "y": 2}, "p") == Point(1, 2.0)
    for data, sentence in [
        ({"x": True}, "p: x: expected an integer, found True"),
        ({"x": 1.0}, r"p: x: expected an integer, found 1\.0"),
        ({"x": 1, "y": "2"}, "p: y: expected a number, found '2'"),
        ([1], r"p: expected an object, found \[1\]"),
    ]:
        with pytest.raises(DamagedData, match=sentence):
            decode(Point, data, "p")


def window(**changes: Any) -> Window:
    plain = {
        field.name: 0
        for field in dataclasses.fields(Window)
        if field.name not in ("kept", "disturbed", "first_ns", "last_ns")
    }
    return Window(**{**plain, "duration_ns": 100_000_000, **changes})


def test_a_windows_loss_and_rate() -> None:
    found = window(sent=1000, received=990)
    assert found.lost == 10
    assert found.throughput_pps == pytest.approx(9900)
