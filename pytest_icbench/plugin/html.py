# SPDX-License-Identifier: BSD-3-Clause
"""Hooks of pytest-html: this package's part of its page. They are never called without pytest-html."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pytest_icbench.report.html.body import body, summary
from pytest_icbench.report.html.page import Page, lines_place
from pytest_icbench.report.html.parts import text


class HtmlHooks:
    """A plugin that adds nothing to the report of a session without benchmarks.

    Args:
        page: returns the content so far.
        hide: removes the names of hosts from a text.
        report: pytest-html's report with its first title, if it was made before this plugin was registered.
    """

    def __init__(
        self, page: Callable[[], Page], hide: Callable[[str], str] = str, report: tuple[Any, str] = (None, "")
    ) -> None:
        self._page = page
        self._hide = hide
        self._report, self._file_name = report

    @pytest.hookimpl(optionalhook=True, tryfirst=True)
    def pytest_html_report_title(self, report: Any) -> None:
        """Keeps the report, whose title is the file's name until the page's question is known, or a user sets one."""
        self._report, self._file_name = report, report.title

    @pytest.hookimpl(optionalhook=True)
    def pytest_html_results_table_row(self, report: Any, cells: list[str]) -> None:
        """Escapes the id, which pytest-html does not, and adds the results below it. A skipped case has no row."""
        page = self._page()
        extras = getattr(report, "extras", [])
        page.media |= any(extra.get("format_type") in ("image", "video") for extra in extras)
        if not page or len(cells) < 2:
            return
        if report.skipped and page.is_skipped(report.nodeid):
            cells.clear()  # pytest-html leaves the row out: the page has a row for each reason
            return
        test_id = report.nodeid if report.when == "call" else f"{report.nodeid}::{report.when}"
        if cells[1] != f'<td class="col-testId">{test_id}</td>':
            return  # another plugin's
        lines = lines_place(page.places_of(report.nodeid)) if report.when == "call" else ""
        cells[1] = f'<td class="col-testId">{text(test_id)}{lines}</td>'

    @pytest.hookimpl(optionalhook=True)
    def pytest_html_results_table_html(self, data: list[str]) -> None:
        """Removes the names of hosts from the output of a failed test."""
        data[:] = map(self._hide, data)

    @pytest.hookimpl(optionalhook=True)
    def pytest_html_results_summary(self, prefix: list[str], postfix: list[str]) -> None:
        page = self._page()
        if page:
            prefix.append(summary(page))
            postfix.append(body(page))
            if self._report is not None and self._report.title == self._file_name:
                self._report.title = page.title
