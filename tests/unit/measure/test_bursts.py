# SPDX-License-Identifier: BSD-3-Clause
"""A policer is held to its burst by trains of frames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_icbench.kinds.runs import measure
from pytest_icbench.measure.functions import burst_settings, wrong_burst
from pytest_icbench.model.case import Case
from pytest_icbench.model.function_facts import FunctionCounters, FunctionTerms
from pytest_icbench.model.launch import Launch
from pytest_icbench.model.load import Frames
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.settings import Settings
from tests.measurements import launch
from tests.unit.scripted_rig import FAST, ScriptedRig, scripted

POLICER = FunctionTerms("police20k", 20_000, 0.02, burst=100)


def trains(terms: FunctionTerms, bucket: int, sent: int, sent_pps: float, busy_s: Sequence[float] = (0.0,)) -> Launch:
    """A launch of trains through a token bucket; the host keeps the sender's train waiting for so long, once each."""
    assert terms.set_pps
    template, windows = launch().windows[0], []
    for number, pause_s in enumerate(busy_s, start=1):
        tokens, passed, last_s = float(bucket), 0, 0.0
        for frame in range(sent):
            at_s = frame / sent_pps + (pause_s if frame > sent // 2 else 0.0)
            before_s = (frame - 1) / sent_pps + (pause_s if frame - 1 > sent // 2 else 0.0) if frame else at_s
            tokens = min(bucket, tokens + (at_s - before_s) * terms.set_pps)
            if tokens >= 1:
                tokens, passed, last_s = tokens - 1, passed + 1, at_s
        at_ns = 1_000_000 + round(last_s * 1e9)
        counts = {"sent": sent, "scheduled": sent, "received": passed, "start_ns": 1_000_000, "last_ns": at_ns}
        windows.append(replace(template, pair=1, number=number, **counts))  # type: ignore[arg-type]
    return replace(launch(), windows=tuple(windows))


@given(
    st.integers(5_000, 2_000_000),
    st.floats(1e5, 2e6),
    st.lists(st.sampled_from((0.0, 0.001, 0.02)), min_size=1, max_size=3),
)
def test_a_token_bucket_of_its_size_is_right_whatever_the_host_does(
    pps: int, sent_pps: float, busy_s: list[float]
) -> None:
    terms = FunctionTerms("police", pps, 0.02, burst=max(50, round(pps * 0.005)))
    assert wrong_burst([terms], trains(terms, terms.burst or 0, 400, sent_pps, busy_s)) is None


@pytest.mark.parametrize(
    ("bucket", "words"),
    [
        (
            300,
            "function police20k of pair 1: of 400 frames at once 307 passed, and its burst of 100 and its rate",
        ),
        (20, "function police20k of pair 1: of 400 frames at once 27 passed, and its burst is 100"),
    ],
)
def test_another_burst_is_found(bucket: int, words: str) -> None:
    reported = wrong_burst([POLICER], trains(POLICER, bucket, 400, 1e6))
    assert reported is not None
    assert reported.startswith(words)
    assert wrong_burst([replace(POLICER, burst=None)], trains(POLICER, bucket, 400, 1e6)) is None


def test_trains_are_longer_than_bursts_and_rest_until_the_bucket_is_full() -> None:
    assert burst_settings(FAST, [FunctionTerms("route"), FunctionTerms("shape", 1000, 0.02)]) is None
    found = burst_settings(Settings(skip_s=0.5), [POLICER])
    assert found is not None
    assert (found.train, found.window_s, found.skip_s) == ("400:400:1", 0.05, 0)
    found = burst_settings(FAST, [FunctionTerms("police10M", 10_000_000, 0.02, burst=50_000)])
    assert found is not None
    assert found.train == "20000:20000:1"
    assert found.window_s == pytest.approx(0.12)


@dataclass
class PolicedRig(ScriptedRig):
    """A scripted rig that always lets a fifth pass; its trains have 1,000 frames, too."""

    terms: Sequence[FunctionTerms] = (replace(POLICER, set_pps=10_000),)

    def prove(self) -> str | None:
        return None

    def functions(self) -> tuple[FunctionCounters, ...]:
        return (FunctionCounters(1),)


@pytest.mark.parametrize(("burst", "reason"), [(None, None), (200, None), (90, "function"), (900, "function")])
def test_a_case_has_its_burst_proven_once(burst: int | None, reason: str | None) -> None:
    terms = (replace(POLICER, set_pps=10_000, burst=burst),)
    rig = PolicedRig(path=lambda sent: sent // 5, terms=terms)
    case = Case("veth", Frames(rate=Rate(50_000)), api="udp", function="police10k")
    found = measure(scripted(rig, case), FAST)
    assert (found.reason, found.launches) == (reason, 0 if reason else 3), found.evidence
    assert rig.log.count("rig launch") == (1 if reason else 3 + (burst is not None))
