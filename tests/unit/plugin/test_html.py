# SPDX-License-Identifier: BSD-3-Clause
"""The part in pytest-html's page of a session."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pytest_icbench.plugin.html import HtmlHooks
from pytest_icbench.report.html.page import Page
from tests.measurements import result


@pytest.mark.parametrize(
    ("kinds", "media"), [([], False), (["text", "url", "html"], False), (["image"], True), (["video"], True)]
)
def test_media_of_other_plugins_are_noted_even_before_the_first_result(kinds: list[str], *, media: bool) -> None:
    page = Page()
    report: Any = SimpleNamespace(
        nodeid="t", when="call", skipped=False, extras=[{"format_type": kind} for kind in kinds]
    )
    HtmlHooks(lambda: page).pytest_html_results_table_row(report, [""] * 4)
    assert page.media is media


def test_a_row_has_a_place_for_the_lines_of_its_results() -> None:
    page = Page()
    page.add("t", result())
    cells = ["", '<td class="col-testId">t</td>']
    report: Any = SimpleNamespace(nodeid="t", when="call", skipped=False)
    HtmlHooks(lambda: page).pytest_html_results_table_row(report, cells)
    assert cells[1] == '<td class="col-testId">t<ul class=ic-lines data-places=0></ul></td>'
