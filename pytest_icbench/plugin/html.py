# SPDX-License-Identifier: BSD-3-Clause
"""Hooks of pytest-html: this package's part of its page. They are never called without pytest-html."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from pytest_icbench.plugin.outcomes import skip_reason

if TYPE_CHECKING:
    from pytest_icbench.report.html.page import Page


class HtmlHooks:
    """A plugin that adds nothing to the report of a session without benchmarks.

    Args:
        page: returns the content so far.
        hide: removes the names of hosts from a text.
    """

    def __init__(self, page: Callable[[], Page], hide: Callable[[str], str] = str) -> None:
        self._page = page
        self._hide = hide

    @pytest.hookimpl(optionalhook=True)
    def pytest_html_results_table_row(self, report: Any, cells: list[str]) -> None:
        """Escapes the id, which pytest-html does not, and adds the results below it."""
        page = self._page()
        if not page or len(cells) < 2:
            return
        from pytest_icbench.report.html.page import row_lines, text

        test_id = report.nodeid if report.when == "call" else f"{report.nodeid}::{report.when}"
        if cells[1] != f'<td class="col-testId">{test_id}</td>':
            return  # another plugin's
        lines = ""
        if report.when == "call":
            lines = row_lines(page, page.places_of(report.nodeid))
        elif report.skipped and isinstance(report.longrepr, tuple):
            lines = f'<ul class="ic-lines"><li>{text(skip_reason(report.longrepr))}</li></ul>'
        cells[1] = f'<td class="col-testId">{text(test_id)}{lines}</td>'

    @pytest.hookimpl(optionalhook=True)
    def pytest_html_results_table_html(self, data: list[str]) -> None:
        """Removes the names of hosts from the output of a failed test."""
        data[:] = map(self._hide, data)

    @pytest.hookimpl(optionalhook=True)
    def pytest_html_results_summary(self, prefix: list[str], postfix: list[str]) -> None:
        page = self._page()
        if page:
            from pytest_icbench.report.html import page as html

            prefix.append(html.summary(page))
            postfix.append(html.body(page))
