# SPDX-License-Identifier: BSD-3-Clause
"""The five questions of docs/tutorials/read-the-report.md, answered by the first screen alone.

The page quotes answers. Those on speed are made here of the table that README.md shows, so the page, README and the
report's sentences agree. That on an upgrade is made of two versions, that on what was not measured of made-up skips.
"""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest

from pytest_icbench.model.case import Case
from pytest_icbench.model.load import Frames
from pytest_icbench.model.measurement import Result
from pytest_icbench.model.traffic import Traffic
from pytest_icbench.report.html.body import body, summary
from pytest_icbench.report.html.page import Page
from tests.measurements import result
from tests.unit.report.test_first_screen import upgrade

ROOT = Path(__file__).parents[3]
TUTORIAL = (ROOT / "docs" / "tutorials" / "read-the-report.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")
QUESTIONS = (
    "Which path is fastest at 64 B?",
    "By how much, and is that sure?",
    "What limits it?",
    "Did the upgrade make it slower?",
    "What was not measured, and why?",
)
#: What set-up leaves out, with the beginning of the reason that a case is skipped with.
SKIPPED = 16
ABSENT = {
    "vpp": "vpp is not installed: build it from its source",
    "snabb": "snabb is not installed: build it from its source",
    "sriov": "sriov needs a card: name its PF by --icbench-pf",
}


def quoted() -> dict[str, list[str]]:
    """What the tutorial quotes of the page for each of its questions, in the order of the tutorial."""
    rows = re.findall(r"^\| (.+\?) \| .+ \| (.+) \|$", TUTORIAL, flags=re.M)
    return {question: re.findall(r"`([^`]+)`", answer) for question, answer in rows}


def demo() -> Page:
    """The page of the run that README.md shows."""
    page = Page()
    shown = README.partition("<!-- demo -->")[2].partition("\n\nFastest")[0]
    tables = re.split(r"^(\d+) B: .*all\n  within limits \(PASS\)$", shown, flags=re.M)[1:]
    rate = r"([\d.]+) +(≥?) ?([\d.]+) to ([\d.]+)"
    rows = [
        (switch, size, least, (value, *ends), limit)
        for size, table in zip(tables[::2], tables[1::2], strict=True)
        for switch, value, least, *ends, limit in re.findall(rf"^(\S+) +{rate} +(\w+) ", table, flags=re.M)
    ]
    for switch, size, least, numbers, limit in rows:
        values = {name: float(end) * 1e6 for name, end in zip(("", "_low", "_high"), numbers, strict=True)}
        case = Case(switch, Frames(Traffic(int(size))))
        page.add(
            f"t.py::test_rate[{case.id}]",
            result(
                case,
                **{f"throughput_pps{end}": value for end, value in values.items()},
                lower_bound=bool(least),
                bottleneck={"path": "endpoint"}.get(limit, limit),
                verdict="PASS",
            ),
        )
    for place in range(SKIPPED):
        switch = ("sriov", "vpp", "sriov", "snabb")[place % 4]
        page.skipped.append((f"t.py::test_rate[{Case(switch, Frames(Traffic(64 + place))).id}]", ABSENT[switch]))
    return page


def versions() -> Page:
    page = Page()
    for each in upgrade():
        page.add(f"t.py::test_rate[{each.case}]", each)
    return page


def seen(text: str) -> str:
    """The text of a part of the page as a reader sees it."""
    return " ".join(html.unescape(re.sub(r"<(style|script)[^>]*>.*?</\1>|<[^>]+>", "", text, flags=re.S)).split())


def test_the_tutorial_asks_the_five_questions_and_quotes_an_answer_to_each() -> None:
    assert tuple(quoted()) == QUESTIONS
    assert all(quoted().values())


def test_the_demo_of_the_readme_is_read_whole() -> None:
    shown = demo().results
    assert [each.switch for each in shown] == ["direct", "ovs", "linux-bridge"]


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_first_screen_answers_it(question: str) -> None:
    upgraded = question == "Did the upgrade make it slower?"
    page = versions() if upgraded else demo()
    first_screen = seen(summary(page))
    for answer in quoted()[question]:
        assert answer in first_screen


def test_what_was_not_measured_has_its_whole_reason_further_down() -> None:
    below = seen(body(demo()))
    for reason in ABSENT.values():
        assert reason in below


def test_a_run_without_a_baseline_says_that_nothing_was_compared() -> None:
    """So that a reader of a demo does not take PASS for an answer to the fourth question."""
    assert "no baseline" in seen(summary(demo()))
    assert "no baseline" not in seen(summary(versions()))


def test_an_answer_changes_with_the_values() -> None:
    """The quotes are of these values, and would not be found on any page."""
    slower = Page()
    results: list[Result] = demo().results
    for each in results:
        if each.switch == "linux-bridge":
            slower.add(each.case, each)
    for question in QUESTIONS[:2]:
        assert not all(answer in seen(summary(slower)) for answer in quoted()[question])
