# SPDX-License-Identifier: BSD-3-Clause
"""Searches whose senders do not offer all that they should: it counts, and nobody reports what was not offered."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_icbench.model.rate import Rate
from tests.unit.search_model import NDR, PDR, Late, anew, clock, find, timeless

__all__ = ["clock"]  # a fixture

pytestmark = pytest.mark.usefixtures("clock")


def test_a_sender_that_falls_a_little_short_is_no_limit_and_its_rate_is_what_it_offered() -> None:
    """Less than the goal's width: the device lost nothing, and nobody knows more of it than what it was offered."""
    found = find(Late(9e6, missing=0.004), Late(4e6, missing=0.004), NDR)
    assert found.searched.search is not None
    trials = [trial for trial in found.searched.search.trials if trial.of == "case"]
    assert all(trial.not_offered and trial.good and not trial.generator_bound for trial in trials)
    assert found.searched.search_lower_pps is not None
    assert found.searched.search_lower_pps == found.searched.search.greatest_pps
    assert found.frames.throughput_pps is not None
    assert found.frames.throughput_pps == pytest.approx(0.996 * found.searched.search_lower_pps, rel=1e-6)
    assert f"{found.frames.throughput_pps / 1e6:.4g} Mpps, passes" in str(found.searched.search.evidence)


@settings(max_examples=25, deadline=None)
@given(
    st.floats(5e5, 9e6),
    st.floats(5e5, 9e6),
    st.floats(0.0, 0.1),
    st.sampled_from([NDR, PDR]),
    st.booleans(),
    st.sampled_from([None, 0.02]),
)
def test_no_search_reports_more_than_was_offered_or_arrived(
    capacity: float, sender: float, missing: float, rate: Rate, refuses: bool, width: float | None
) -> None:
    """Neither a slow sender nor a late one, on the path and on the reference link alike, adds to the device's rate."""
    own, beside = (Late(pps, sender, refuses, missing=missing) for pps in (capacity, 15e6))
    with pytest.MonkeyPatch.context() as patch:
        timeless(patch)
        found = find(own, beside, rate, search_width=width)
    assert anew(found) == found
    for trial in found.searched.search.trials if found.searched.search else ():
        if trial.load_pps and trial.received < (1 - (rate.loss_ratio or 0.0)) * trial.scheduled:
            assert (trial.good, trial.generator_bound) == (False, False)  # whatever else was not offered
    if found.frames.throughput_pps is None:
        assert found.reason in ("generator-bound", "lossy")
        return
    assert found.searched.search is not None
    assert found.searched.search_lower_pps is not None
    passed = [
        trial for trial in found.searched.search.trials
        if trial.of == "case" and trial.load_pps == found.searched.search_lower_pps and trial.good
    ]  # fmt: skip
    frame = 1 / passed[0].duration_s  # a load of half a frame is offered as a whole one
    assert found.frames.throughput_pps <= max(trial.scheduled for trial in passed) * frame + frame
    assert found.frames.throughput_pps <= max(trial.received for trial in passed) * frame + frame


def test_a_paced_sender_that_is_slower_than_the_device_gives_no_rate_that_it_did_not_offer() -> None:
    """A device that takes 3.9 Mpps, and a sender that offers 96 % of what it should: calibration counts that too."""
    found = find(Late(3.9e6, missing=0.04), Late(4e6, missing=0.04), NDR)
    assert found.searched.search is not None
    offered = [trial.scheduled / trial.duration_s for trial in found.searched.search.trials if trial.load_pps]
    assert found.frames.throughput_pps is None or found.frames.throughput_pps <= max(offered)
    paced = [trial for trial in found.searched.search.trials if trial.load_pps]
    assert all(trial.generator_bound is (trial.received == trial.scheduled) and not trial.good for trial in paced)
    assert (found.verdict, found.reason) == ("INVALID", "generator-bound")
