# SPDX-License-Identifier: BSD-3-Clause
"""Every report says by how much and by whom the launches of a result were disturbed."""

from __future__ import annotations

from dataclasses import replace

from pytest_icbench.model.case import Case
from pytest_icbench.model.load import Frames
from pytest_icbench.report.headline import tiles
from pytest_icbench.report.html.data import facts_of
from pytest_icbench.report.html.page import Page, line
from pytest_icbench.report.junit import properties
from pytest_icbench.report.markdown import summary
from pytest_icbench.report.terminal_table import result_line, table
from tests.measurements import result

WORDS = "other processes took 0.52 of 2 CPUs (stress-ng-cpu 0.48)"
REPORTED = f"disturbed: 5 of 6 launches, in the worst {WORDS}, 3 disturbed launches repeated"
FOUND = result(Case("ovs"), disturbed_launches=5, disturbed_repeated=3, disturbance=WORDS, verdict="PASS")


def test_the_table_says_it_beneath() -> None:
    assert REPORTED in " ".join(line.strip() for line in table([FOUND], verbose=True))


def test_the_page_says_it_in_the_row_and_in_the_facts() -> None:
    page = Page()
    page.add("test_a", FOUND)
    assert "disturbed: 5 of 6 launches" in line(page, 0, FOUND)
    assert ("disturbed", REPORTED) in facts_of(FOUND, None)


def test_the_row_does_not_say_it_twice() -> None:
    page = Page()
    flagged = result(
        Case("ovs"), disturbed_launches=5, disturbed_repeated=3, disturbance=WORDS, reason=REPORTED, verdict="REGRESSED"
    )
    page.add("test_a", flagged)
    assert " ".join(line(page, 0, flagged)).count("5 of 6 launches") == 1


def test_a_row_that_nobody_judged_says_neither_a_verdict_nor_its_lack_twice() -> None:
    page = Page()
    reason = f"it has no limit and no baseline; {REPORTED}"
    found = replace(FOUND, verdict="NO_BASELINE", reason=reason)
    page.add("test_a", found)
    assert [part for part in line(page, 0, found) if "launches" in part or "baseline" in part] == [
        "disturbed: 5 of 6 launches"
    ]
    assert "1 not judged" in summary([found], [], [])
    assert ("1", "not judged") in [(tile.number, str(tile.name)) for tile in tiles([found], [])]
    assert ("1", "NO_BASELINE") in [(tile.number, str(tile.name)) for tile in tiles([replace(found, baseline="m")], [])]


def test_the_summary_says_it_with_the_hosts_warnings() -> None:
    busy = result(Case("ovs"), disturbed_launches=5, disturbance=WORDS, conditions={"warnings": ["Busy host: make"]})
    text = summary([busy, busy], [], [])
    assert text.count("Busy host: make") == 1
    doubts = next(line for line in text.splitlines() if line.startswith("**Warning:** "))
    assert "Busy host: make." in doubts
    assert "Disturbed: 10 of 12 launches, in 2 cases." in doubts
    assert text.index("**Warning:**") < text.index("| case")
    assert "* `ovs-64B-b32-1vs1-Rmax`: disturbed: 5 of 6 launches" in text
    assert "5 of 6 launches" in text
    assert "stress-ng-cpu 0.48" in text
    assert "disturbed" not in summary([result(Case("ovs"))], [], [])


def test_launches_that_were_repeated_count_as_on_the_terminal() -> None:
    """What was kept of such a case is undisturbed, and the case took longer all the same."""
    repeated = result(Case("vpp"), disturbed_repeated=3, disturbance=WORDS)
    assert "Disturbed: 5 of 12 launches, 6 launches repeated, in 2 cases." in summary([FOUND, repeated], [], [])
    assert "Disturbed: 3 launches repeated, in 1 case." in summary([repeated], [], [])
    assert "disturbed, 2 cases:" in " ".join(table([FOUND, repeated], verbose=True))


def test_many_disturbed_cases_are_folded_in_the_summary_and_cut_in_the_table() -> None:
    many = [replace(FOUND, case=Case("ovs", Frames(burst=burst)).id) for burst in range(1, 9)]
    text = summary(many, [], [])
    assert text.index("<details><summary>8 disturbed</summary>") < text.index("* `ovs-64B-b1-1vs1-Rmax`: disturbed")
    assert "<details><summary>1 disturbed" not in summary([FOUND], [], [])
    reported = " ".join(text.strip() for text in table(many, verbose=True))
    assert "disturbed, 8 cases: ovs-64B-b1 (5 of 6 launches, in the worst other" in reported
    assert "; and 5 more" in reported


def test_the_line_of_a_case_says_it_in_short() -> None:
    assert result_line(FOUND).endswith("PASS  disturbed: 5 of 6 launches")
    assert "disturbed" not in result_line(result(Case("ovs")))


def test_junit_has_its_properties() -> None:
    named = dict(properties(FOUND))
    assert named["icbench.disturbed_launches"] == 5
    assert named["icbench.disturbance"] == WORDS


def test_what_is_not_known_is_not_reported() -> None:
    assert "disturbed" not in " ".join(table([result(Case("ovs"))]))
