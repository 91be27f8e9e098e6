# SPDX-License-Identifier: BSD-3-Clause
"""Rates as they are typed, shown, and written."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_icbench.config.rates import parse_rates
from pytest_icbench.errors import UsageError
from pytest_icbench.model.case import Case
from pytest_icbench.model.load import Frames
from pytest_icbench.model.rate import MAX_LOSS_RATIO, MIN_LOSS_RATIO, Metric, Rate, exact_percent, named_rate

ratios = st.integers(1, 5_000_000).map(lambda parts: round(parts / 1e7, 12))
rates = st.one_of(
    st.just(Rate()),
    st.integers(1, 10**9).map(Rate),
    st.just(Rate(loss_ratio=0.0)),
    ratios.map(lambda ratio: Rate(loss_ratio=ratio)),
    st.just(Rate(loads=())),
    st.builds(
        lambda ratio, share: Rate(loss_ratio=ratio).part(share / 1e6), st.just(0.0) | ratios, st.integers(1000, 10**6)
    ),
)


@pytest.mark.parametrize(
    ("typed", "rate", "shown", "metric"),
    [
        ("max", Rate(), "max", "frmol"),
        ("1.5M", Rate(1_500_000), "1500k", "fixed"),
        ("ndr", Rate(loss_ratio=0.0), "ndr", "ndr"),
        ("pdr:0.5%", Rate(loss_ratio=0.005), "pdr:0.5", "pdr"),
        ("pdr:.01%", Rate(loss_ratio=0.0001), "pdr:0.01", "pdr"),
        ("pdr:50%", Rate(loss_ratio=0.5), "pdr:50", "pdr"),
        ("mfr", Rate(loads=()), "mfr", "mfr"),
        ("pdr:0.5%*0.1", Rate(loss_ratio=0.005, share=0.1), "pdr:0.5:x10", "fixed"),
        ("ndr*.125", Rate(loss_ratio=0.0, share=0.125), "ndr:x12.5", "fixed"),
        ("ndr*1", Rate(loss_ratio=0.0, share=1.0), "ndr:x100", "fixed"),
    ],
)
def test_forms(typed: str, rate: Rate, shown: str, metric: Metric) -> None:
    assert parse_rates(typed, "--icbench-rate") == (rate,)
    assert (str(rate), rate.metric) == (shown, metric)
    assert Case("ovs", Frames(rate=rate)).id == f"ovs-64B-b32-1vs1-R{shown}"


def test_a_list_mixes_forms_and_takes_each_once() -> None:
    found = parse_rates("1M, ndr pdr:0.5% 1M..1M..3M max pdr:0.50% ndr", "-rate")
    fixed = [Rate(1_000_000), Rate(2_000_000), Rate(3_000_000)]
    assert found == (fixed[0], Rate(loss_ratio=0.0), Rate(loss_ratio=0.005), *fixed[1:], Rate())


@pytest.mark.parametrize("text", ["pdr", "pdr:0.5", "pdr:0%", "pdr:51%", "pdr:x%", "pdr:100%", "pdr:0.000000001%"])
def test_a_partial_drop_rate_that_is_none_is_reported_its_form(text: str) -> None:
    with pytest.raises(UsageError, match=f"-rate: unknown rate '{text}'; a partial-drop rate .* 0.00001 to 50"):
        parse_rates(f"max {text}", "-rate")


def test_an_unknown_rate_is_reported_all_forms() -> None:
    with pytest.raises(
        UsageError, match=r"unknown rate 'fast'; a rate is max, ndr, pdr:0\.5%, mfr, a part of a searched rate"
    ):
        parse_rates("ndr fast", "-rate")


@given(rates)
def test_a_rate_survives_being_typed_and_written(rate: Rate) -> None:
    assert parse_rates(rate.typed, "-rate") == (rate,)
    assert Rate.from_json(rate.to_json()) == rate
    assert re.fullmatch(r"[\w:+\-.]+", str(rate), re.ASCII)


@pytest.mark.parametrize(
    ("share", "found_pps", "pairs", "pps"),
    [(0.5, 3_000_000.0, 1, 1_500_000), (0.5, 3_000_000.0, 2, 750_000), (0.1, 16.0, 1, 2), (0.001, 100.0, 4, 1)],
)
def test_a_part_of_a_found_rate_is_whole_frames_of_each_pair(
    share: float, found_pps: float, pairs: int, pps: int
) -> None:
    assert Rate.part_of_found(share, found_pps, pairs) == Rate(pps)


def test_a_text_that_is_no_rate_is_refused() -> None:
    with pytest.raises(ValueError, match="'often' is no rate"):
        Rate.from_json("often")


@given(st.text(max_size=12))
def test_any_text_is_a_name_or_none(text: str) -> None:
    found = named_rate(text)
    assert found is None or found.pps is None


@given(ratios)
def test_per_cent_has_no_exponent(ratio: float) -> None:
    assert MIN_LOSS_RATIO <= ratio <= MAX_LOSS_RATIO
    assert float(exact_percent(ratio)) == pytest.approx(ratio * 100, rel=1e-9)
    assert "e" not in exact_percent(ratio)


@pytest.mark.parametrize(
    "text", ["ndr*", "ndr*0", "ndr*0.0001", "ndr*1.5", "x*ndr", "max*0.5", "1k*0.5", "ndr*0.5*0.5"]
)
def test_a_part_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_rates(text, "-rate")


def test_only_what_is_looked_for_has_parts() -> None:
    assert Rate(loss_ratio=0.005).part(0.9) == Rate(loss_ratio=0.005, share=0.9)
    assert not Rate(loss_ratio=0.005, share=0.9).is_search
    assert not Rate(loss_ratio=0.005, share=0.9).at_limit
    assert Rate(loss_ratio=0.005, share=0.9).searched == Rate(loss_ratio=0.005)
    with pytest.raises(UsageError, match=r"a load of 0\.5 is a part of a searched rate .*, not of 1k"):
        Rate(1000).part(0.5)
    with pytest.raises(UsageError, match=r"a load of 1\.5 is outside 0\.001 to 1 of the rate"):
        Rate(loss_ratio=0.0).part(1.5)
