# SPDX-License-Identifier: BSD-3-Clause
"""Figures of latency from the histograms of launches: points, and intervals that hold them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_icbench.gate.limits import Limit, find
from pytest_icbench.kinds.latency.latency_summary import latency_figures
from pytest_icbench.measure.launch.windows import delay_variation
from pytest_icbench.measure.summary.frame_figures import frame_figures
from pytest_icbench.model.case import Case
from pytest_icbench.model.figures import PERCENTILES, FrameFigures, Latency, time_field, types_of
from pytest_icbench.model.launch import Launch
from pytest_icbench.stats.quantiles import Estimate, Histogram, merge
from tests.measurements import measurement
from tests.unit.scripted_rig import RTT, ScriptedRig, one


def histogram(values: Sequence[int], lost: int = 0, times: int = 1) -> Histogram:
    counts = tuple((value, number * times) for value, number in sorted(Counter(values).items()))
    return Histogram(counts, min(values, default=None), max(values, default=None), fmean(values or [0]), 3, lost)


def launch(rtt: Histogram, **fields: Any) -> Launch:
    return Launch(0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, False, (), rtt=rtt, **fields)


def latency(launches: Sequence[Launch]) -> dict[str, Any]:
    found = latency_figures(FrameFigures(), launches, [])
    return {name: value for name in types_of(Latency) if (value := getattr(found, name)) is not None}


def test_the_interval_reaches_to_what_a_single_slow_launch_makes_of_the_whole() -> None:
    quiet, slow = histogram([30_000] * 1000), histogram([30_000] * 850 + [300_000] * 150)
    found = latency([launch(quiet)] * 11 + [launch(slow)])
    assert found["rtt_p99_ns"] == Estimate(300_000, 30_000, 300_000)
    mean = found["rtt_mean_ns"]
    assert mean == 33_375
    assert mean.low == 30_000  # no lower than any sample
    assert 45_000 < mean.high < 300_000  # one launch in twelve is slow: perhaps more are
    limit = Limit("rtt_p99_ns", "max", 100_000, "here")
    assert find(measurement(Case("ovs", dimension="latency"), launches=12, **found), limit).verdict == "INCONCLUSIVE"


def test_delay_variation_is_of_each_pair_by_itself() -> None:
    """Two pairs of constant delay vary by nothing, however much they differ."""
    near, far = (histogram([10_000 * pair] * 1000) for pair in (1, 2))
    whole = merge([near, far])
    assert whole is not None
    found = latency([launch(whole, pdv=delay_variation([near, far]))] * 6)
    assert (found["rtt_p90_ns"], found["pdv_p90_ns"], found["pdv_max_ns"]) == (20_000, Estimate(0, 0, 0), 0)
    assert delay_variation([near]) is None
    assert latency([launch(histogram([7, 9] * 500))])["pdv_max_ns"] == 2


def test_a_launch_of_several_pairs_has_their_delay_variation() -> None:
    def far(index: int, line: dict[str, Any]) -> dict[str, Any]:
        if index == 2 and line["type"] == "summary":
            rtt = {**line["rtt_ns"], "min": 20, "mean": 20.0, "max": 20, "counts": [[20, line["rtt_ns"]["count"]]]}
            return {**line, "rtt_ns": rtt}
        return line

    found = one(ScriptedRig(edit=far), replace(RTT, pairs=2))
    assert found.pdv.counts == ((0, 1000), (1, 1000))
    assert one(ScriptedRig(), RTT).pdv is None


rtts = st.builds(
    histogram, st.lists(st.integers(1, 10**6), min_size=1, max_size=8), st.integers(0, 30), st.integers(1, 2000)
)
launches = st.builds(lambda rtt, first: launch(rtt, rtt_first=first), rtts, st.none() | rtts)


@settings(max_examples=40, deadline=None)
@given(st.lists(launches, min_size=1, max_size=14))
def test_every_interval_holds_its_figure(measured: list[Launch]) -> None:
    found = latency(measured)
    estimates = [figure for figure in found.values() if isinstance(figure, Estimate)]
    assert estimates
    for figure in estimates:
        assert (figure.low is None) == (figure.high is None)
        if figure.low is not None and figure.high is not None:
            assert figure.low <= figure <= figure.high


def test_the_busiest_core_is_held_against_their_mean() -> None:
    shared = [{"2": 300, "5": 100}, {"2": 200, "5": 200}, {"2": 100, "5": 300}, None]
    found = frame_figures(Case("ovs"), [launch(histogram([1]), frames_by_core=each) for each in shared])
    assert (found.frames_by_core, found.core_imbalance) == ({"2": 600, "5": 600}, 1.5)
    idle = frame_figures(Case("ovs"), [launch(histogram([1]), frames_by_core={"2": 0, "5": 0})])
    assert (idle.frames_by_core, idle.core_imbalance) == (None, None)


def test_every_percentile_of_the_table_has_fields() -> None:
    for stem in ("rtt", "pdv"):
        assert list(Latency.percentiles(stem)) == [time_field(stem, name) for name in PERCENTILES]
