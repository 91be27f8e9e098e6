# SPDX-License-Identifier: BSD-3-Clause
"""summary.md and openmetrics.txt: whatever stands in the results, and how tests are counted."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from pytest_icbench.errors import Invalid, Regression
from pytest_icbench.model.case import Case
from pytest_icbench.model.load import Frames
from pytest_icbench.model.measurement import Result
from pytest_icbench.model.traffic import Traffic
from pytest_icbench.model.verdict import EXIT_STATUS, Verdict
from pytest_icbench.plugin.outcomes import Outcomes, classify_outcome
from pytest_icbench.report import markdown, openmetrics
from pytest_icbench.stats.quantiles import Estimate
from tests.baselines import measured
from tests.measurements import result, side_by_side

EXIT_REGRESSED, EXIT_UNDECIDED = EXIT_STATUS["regressed"], EXIT_STATUS["undecided"]

_TEXT = st.text(max_size=12)
_RESULTS = st.lists(
    st.builds(
        lambda number, case, verdict, reason, name: replace(
            result(
                Case("ovs", dimension="latency" if number % 2 else "throughput"),
                verdict=verdict,
                reason=reason,
                treatment_changes={name: [name, reason]},
                ratio_to_baseline=0.9 if number % 3 else None,
            ),
            case=f"{number}{case}",
        ),
        st.integers(0, 99),
        _TEXT,
        st.sampled_from(["PASS", "INVALID", "REGRESSED", None]),
        _TEXT | st.none(),
        _TEXT,
    ),
    max_size=5,
)


@settings(deadline=None)
@given(_RESULTS)
def test_openmetrics_are_valid_and_say_what_the_results_say(results: list[Result]) -> None:
    text = openmetrics.text(results, skipped=3)
    families = {one.name: one for one in text_string_to_metric_families(text)}
    last = {(one.case, one.dimension): one for one in results}
    wanted = sorted(
        one.frames.throughput_pps or 0.0 for one in last.values() if one.is_number and one.dimension != "latency"
    )
    got = families.get("icbench_throughput_pps")
    assert sorted(sample.value for sample in got.samples) == wanted if got else wanted == []
    skipped = [s.value for s in families["icbench_cases"].samples if s.labels["verdict"] == "skipped"]
    assert skipped == [3]
    assert "\ud800" not in text.encode("utf-8").decode()


def test_latencies_are_in_seconds_with_their_quantile() -> None:
    text = openmetrics.text([result(Case("ovs", dimension="latency"))])
    families = {one.name: one for one in text_string_to_metric_families(text)}
    (sample,) = families["icbench_rtt_seconds"].samples
    assert (sample.labels["quantile"], sample.value) == ("0.5", 20e-6)
    assert "icbench_throughput_pps" not in families


_MARKUP = st.text(alphabet="ab1 -+*_`~#>.)([]!\\<&|@\n", max_size=16)


@settings(deadline=None)
@given(_MARKUP)
def test_escaped_text_is_shown_as_it_is(text: str) -> None:
    library = pytest.importorskip("markdown_it", reason="pip install markdown-it-py")
    parser = library.MarkdownIt("commonmark").enable(["table", "strikethrough"])
    shown = " ".join(text.split())
    for before, opened, closed in (("", "<p>", "</p>"), ("* ", "<ul>\n<li>", "</li>\n</ul>"), ("x ", "<p>x ", "</p>")):
        page = parser.render(before + markdown.escape(text))
        if shown.strip("-+#"):
            assert html.unescape(page) == f"{opened}{shown}{closed}\n"
        else:
            assert "<h" not in page


def test_words_and_numbers_are_not_escaped() -> None:
    text = "stress-ng 0.5, rtt_p50_ns -20.0 % (-21.0 to -19.0)! a+b"
    assert markdown.escape(text) == text
    assert markdown.escape("_init_ @me | # 1. - a") == r"\_init\_ \@me \| # 1. - a"


@settings(deadline=None)
@given(_RESULTS, st.lists(st.tuples(_TEXT, _TEXT), max_size=3), st.lists(st.tuples(_TEXT, _TEXT), max_size=3))
def test_markdown_shows_foreign_text_as_text(
    results: list[Result], skipped: list[tuple[str, str]], failed: list[tuple[str, str]]
) -> None:
    page = markdown.summary(results, skipped, failed)
    tags = set(re.findall(r"<[^>]*>", page))
    assert tags <= {"<details>", "</details>", "<summary>", "</summary>"}
    assert all(char.isprintable() or char == "\n" for char in page)
    rows = [line for line in page.splitlines() if line.startswith("|")]
    # An escaped bar does not end a cell.
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} <= {7}
    tables = len({one.verdict == "PASS" for one in results})
    assert len(rows) == len(results) + 2 * tables


def test_what_is_wrong_comes_first_and_versions_are_shown() -> None:
    results = [
        Result.of(measured(verdict="PASS")),
        Result.of(
            measured(
                Case("vpp"),
                verdict="REGRESSED",
                reason="vpp-64B-b32-1vs1-Rmax: 4 Mpps is 20 % lower than main",
                ratio_to_baseline=0.8,
                ratio_to_baseline_low=0.79,
                ratio_to_baseline_high=0.81,
                treatment_changes={"switch.version": ["3.1", "3.2"], "cpus.switch": [[1], [2]]},
                waiver="until 2999-01-01: known",
            )
        ),
        Result.of(measured(Case("veth"), verdict="INVALID", reason="died", evidence="gone\nlog")),
    ]
    page = markdown.summary(
        results, [("t.py::a", "no <card>")], [("t.py::b", "boom"), ("t.py::c[vpp-64B-b32-1vs1-Rmax]", "x")]
    )
    lines = page.splitlines()
    assert lines[2] == "3 results: 1 INVALID, 1 REGRESSED, 1 PASS; 2 tests failed; 1 test skipped"
    notable = lines.index("* **INVALID** `veth-64B-b32-1vs1-Rmax`: died, gone")
    assert lines[notable + 1].startswith("* **REGRESSED, waived** `vpp-64B-b32-1vs1-Rmax`: 4 Mpps is 20 % lower")
    assert "(waived until 2999" in lines[notable + 1].replace("\\", "")
    assert lines[notable + 2] == "* **failed** `t.py::b`: boom"
    folded = lines.index("<details><summary>1 PASS</summary>")
    assert next(line for line in lines[folded:] if line.startswith("| `")).startswith(
        "| `ovs-64B-b32-1vs1-Rmax` | 5.00 Mpps"
    )
    assert sum("failed**" in line for line in lines) == 1
    assert "| -20.0 % (-21.0 to -19.0) | switch | REGRESSED, waived |" in page
    assert "* switch.version: 3.1 before, 3.2 now" in lines
    assert "cpus.switch" not in page
    assert "* 1 test: no &lt;card> (`t.py::a`)" in lines


def test_a_summary_says_the_host_the_answer_and_each_reason_once() -> None:
    facts = {"identity": {"machine": "m", "cpu_model": "Example CPU", "cpus": 4}}
    versions = {"kernel": "6.1", "dpdk": "22.11", "pytest_icbench": "0.1.0", "switch": {"version": "3.1.0"}}
    fast = result(Case("ovs"), verdict="PASS", treatment=versions, **facts)
    slow = result(
        Case("veth"), verdict="PASS", treatment={}, throughput_pps=290_000, throughput_pps_low=280_000,
        throughput_pps_high=300_000, **facts,
    )  # fmt: skip
    skipped = [(f"t.py::a[vpp-{size}B-b32-1vs1-Rmax]", "vpp is not installed") for size in range(64, 72)]
    page = markdown.summary([fast, slow, result(Case("testpmd"), verdict="PASS", **facts)], skipped, [])
    text = page.replace("\\", "")
    assert "Example CPU, 4 CPUs, Linux 6.1, DPDK 22.11, pytest-icbench 0.1.0, ovs 3.1.0" in text
    assert "ovs and testpmd, equal within 4.08 %" in text
    assert "| `veth-64B-b32-1vs1-Rmax` | 0.290 Mpps frmol | 0.280 to 0.300 |" in text
    assert text.count("vpp is not installed") == 1
    assert "* 8 tests: vpp is not installed (`t.py::a[vpp-64B-b32-1vs1-Rmax]`, " in page
    assert "<details><summary>8 skipped</summary>" in page


def versions() -> list[Result]:
    """A base and its candidate at two packet sizes: one is as good, the other slower."""
    found = []
    for size, decision, ratio in ((64, "PASS", 1.0), (512, "REGRESSED", 0.9)):
        case = Case("ovs", Frames(Traffic(size)), candidate="new")
        reported = side_by_side(case, decision, ratio)
        found.append(result(case.base))
        judged: dict[str, Any] = {"verdict": decision, "decision": decision, "side_by_side": reported}
        found.append(result(case, **judged, ratio_to_base=ratio, reason="slower"))
    return found


def test_the_decision_for_a_version_and_its_error_rate_are_reported() -> None:
    page = markdown.summary(versions(), [], []).replace("\\", "")
    lines = page.splitlines()
    assert "**ovs:new against its base: REGRESSED (1 REGRESSED, 1 PASS)**" in lines
    assert "false alarms of the whole session (2 comparisons): at most 1 %" in lines
    assert "| -10.0 % (-11.0 to -9.0) | switch | REGRESSED |" in page
    # Nobody judges a base: there is nothing to say of it.
    assert [line for line in lines if line.startswith("* ")] == ["* **REGRESSED** `ovs:new-512B-b32-1vs1-Rmax`: slower"]


def test_a_repeated_case_does_not_hide_the_decision_of_the_first() -> None:
    results = [*versions(), *(replace(one, decision="PASS") for one in versions()[2:])]
    families = {one.name: one for one in text_string_to_metric_families(openmetrics.text(results))}
    (candidate,) = families["icbench_candidate"].samples
    assert candidate.labels == {"candidate": "ovs:new", "decision": "REGRESSED"}
    assert [sample.value for sample in families["icbench_side_by_side_error_ratio"].samples] == [0.01]
    ratios = {sample.labels["case"]: sample.value for sample in families["icbench_side_by_side_ratio"].samples}
    assert ratios == {"ovs:new-64B-b32-1vs1-Rmax": 1.0, "ovs:new-512B-b32-1vs1-Rmax": 0.9}
    assert "icbench_candidate" not in openmetrics.text([result()])


def test_thousands_of_cases_stay_readable() -> None:
    one = Result.of(measured(verdict="REGRESSED", reason="x"))
    page = markdown.summary([replace(one, case=f"case{number}") for number in range(5000)], [], [])
    assert len(page) < 60_000
    assert page.count("4800 more, not shown here") == 2


@pytest.mark.parametrize(
    ("outcome", "error", "results", "found"),
    [
        ("passed", None, [{"verdict": "PASS"}, {"verdict": "IMPROVED"}], "passed"),
        ("passed", None, [{"verdict": None}], "passed"),
        ("passed", None, [{"verdict": "PASS"}, {"verdict": "INCONCLUSIVE"}], "undecided"),
        ("passed", None, [{"verdict": "INCONCLUSIVE", "waiver": "until 2999"}], "passed"),
        ("passed", None, [{"verdict": "REGRESSED"}], "passed"),
        ("skipped", None, [], "skipped"),
        ("failed", Regression("x", verdict=Verdict.REGRESSED), [], "regressed"),
        ("failed", Regression("x", verdict=Verdict.NO_BASELINE), [], "undecided"),
        ("failed", Invalid("died", "x"), [], "broken"),
        ("failed", AssertionError("x"), [{"verdict": "REGRESSED"}], "broken"),
    ],
)
def test_outcomes(outcome: str, error: BaseException | None, results: list[dict[str, Any]], found: str) -> None:
    assert classify_outcome(outcome, error, [result(**each) for each in results]) == found


def _statuses() -> Iterator[tuple[dict[str, int], int, int]]:
    yield {"passed": 1}, 0, 0
    yield {"passed": 1, "regressed": 1, "undecided": 1}, 1, EXIT_REGRESSED
    yield {"undecided": 1, "skipped": 1}, 0, EXIT_UNDECIDED
    yield {"undecided": 1}, 1, EXIT_UNDECIDED
    yield {"regressed": 1, "broken": 1}, 1, 1
    for own in (2, 3, 4, 5):
        yield {"regressed": 1}, own, own


@pytest.mark.parametrize(("outcomes", "status", "expected"), list(_statuses()))
def test_exit_status(outcomes: dict[str, int], status: int, expected: int) -> None:
    assert Outcomes(outcomes=outcomes).exit_status(status) == expected


def test_numbers_are_numbers() -> None:
    found = replace(result(), duration_s=0.1).with_figures(throughput_pps=Estimate(1e300))
    text = openmetrics.text([found])
    assert "1e+300" in text
    assert all(math.isfinite(float(line.rpartition(" ")[2])) for line in text.splitlines() if not line.startswith("#"))
