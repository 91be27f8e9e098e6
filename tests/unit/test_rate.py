# SPDX-License-Identifier: BSD-3-Clause
"""Rates as they are typed, shown, and written."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_icbench import values
from pytest_icbench.case import Case
from pytest_icbench.errors import UsageError
from pytest_icbench.rate import MAX_LOSS_RATIO, MIN_LOSS_RATIO, Metric, Rate, named_rate, percent

ratios = st.integers(1, 5_000_000).map(lambda parts: round(parts / 1e7, 12))
rates = st.one_of(
    st.just(Rate()),
    st.integers(1, 10**9).map(Rate),
    st.just(Rate(loss_ratio=0.0)),
    ratios.map(lambda ratio: Rate(loss_ratio=ratio)),
    st.just(Rate(loads=())),
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
    ],
)
def test_forms(typed: str, rate: Rate, shown: str, metric: Metric) -> None:
    assert values.rates(typed, "--icbench-rate") == (rate,)
    assert (str(rate), rate.metric) == (shown, metric)
    assert Case("ovs", rate=rate).id == f"ovs-64B-b32-1vs1-R{shown}"


def test_a_list_mixes_forms_and_takes_each_once() -> None:
    found = values.rates("1M, ndr pdr:0.5% 1M..1M..3M max pdr:0.50% ndr", "-rate")
    fixed = [Rate(1_000_000), Rate(2_000_000), Rate(3_000_000)]
    assert found == (fixed[0], Rate(loss_ratio=0.0), Rate(loss_ratio=0.005), *fixed[1:], Rate())


@pytest.mark.parametrize("text", ["pdr", "pdr:0.5", "pdr:0%", "pdr:51%", "pdr:x%", "pdr:100%", "pdr:0.000000001%"])
def test_a_partial_drop_rate_that_is_none_is_told_its_form(text: str) -> None:
    with pytest.raises(UsageError, match=f"-rate: unknown rate '{text}'; a partial-drop rate .* 0.00001 to 50"):
        values.rates(f"max {text}", "-rate")


def test_an_unknown_rate_is_told_all_forms() -> None:
    with pytest.raises(
        UsageError, match=r"unknown rate 'fast'; a rate is max, ndr, pdr:0\.5%, mfr or frames per second"
    ):
        values.rates("ndr fast", "-rate")


@given(rates)
def test_a_rate_survives_being_typed_and_written(rate: Rate) -> None:
    assert values.rates(rate.typed, "-rate") == (rate,)
    assert Rate.from_json(rate.to_json()) == rate
    assert re.fullmatch(r"[\w:+\-.]+", str(rate), re.ASCII)


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
    assert float(percent(ratio)) == pytest.approx(ratio * 100, rel=1e-9)
    assert "e" not in percent(ratio)
