# SPDX-License-Identifier: BSD-3-Clause
"""Anchors of cases on the page."""

from __future__ import annotations

import re
from dataclasses import replace
from urllib.parse import urlsplit

from hypothesis import given
from hypothesis import strategies as st

from pytest_icbench.model.case import Case
from pytest_icbench.model.load import Frames
from pytest_icbench.model.rate import Rate
from pytest_icbench.report.junit import case_anchor
from tests.measurements import measurement


def test_an_anchor_has_dimension_and_id() -> None:
    rate = measurement(Case("ovs", Frames(rate=Rate(1000))))
    round_trip = measurement(Case("ovs", Frames(rate=Rate(1000)), dimension="latency"))
    assert case_anchor(rate) == f"case-throughput-{rate.case}"
    assert case_anchor(rate) != case_anchor(round_trip)


@given(st.text())
def test_whatever_a_file_says_an_anchor_is_one_fragment(case: str) -> None:
    result = replace(measurement(Case("ovs")), case=case)
    assert re.fullmatch(r"[\w:+.-]+", case_anchor(result), re.ASCII)
    assert urlsplit(f"report.html#{case_anchor(result)}").fragment == case_anchor(result)
