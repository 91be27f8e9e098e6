# SPDX-License-Identifier: BSD-3-Clause
"""JUnit XML: a result for readers, then its JSON line, in ``system-out``; unused report writers are unregistered."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from xml.sax.saxutils import quoteattr

import pytest

from pytest_icbench.model.result import Result
from pytest_icbench.report.anchors import case_anchor
from pytest_icbench.report.line import result_line
from pytest_icbench.report.notes import remarks_on
from pytest_icbench.wording import printable

#: Printable characters that XML 1.0 has not.
_FOREIGN = re.compile("[\ud800-\udfff\ufffe\uffff]")


def add_system_out(config: pytest.Config, report: pytest.TestReport, results: Sequence[Result]) -> None:
    """Puts the results of a test into its ``system-out``, whatever ``junit_logging`` says about captured output.

    Sentences and facts come first, then a link to the case on the page if there is one, then the JSON lines.
    """
    xml = next((plugin for plugin in config.pluginmanager.get_plugins() if _is_junit(plugin)), None)
    if xml is None or not results:
        return
    node = ElementTree.Element("system-out")
    # JSON escapes what XML does not allow (ensure_ascii), so that no second escaping is needed.
    page = _page(config)
    lines = [line for result in results for line in _for_readers(result, page)]
    node.text = "\n".join([*lines, *(result.to_json() for result in results)])
    xml.node_reporter(report).append(node)


def _for_readers(result: Result, page: str) -> list[str]:
    """Returns the result's line, what is to be known about it, and where the page shows it; XML takes all of it."""
    lines = [result_line(result), *remarks_on([result])]
    if result.bottleneck_evidence:
        lines.append(f"limited by {result.bottleneck}: {result.bottleneck_evidence.splitlines()[0]}")
    if page:
        lines.append(f"page: {page}#{case_anchor(result)}")
    return [_FOREIGN.sub("?", line) for line in map(printable, lines)]


def _page(config: pytest.Config) -> str:
    """Returns the page's path as seen from the XML file; empty without a page."""
    page, xml = getattr(config.option, "htmlpath", None), getattr(config.option, "xmlpath", None)
    return os.path.relpath(page, Path(xml).parent) if page and xml else ""


def hide_host(path: Path) -> None:
    """Replaces the host's name in a file that pytest has written by ``localhost``, since the format needs a name."""
    try:
        text = path.read_text(encoding="utf-8")
        shown = quoteattr(platform.node())
        hidden = text.replace(f"hostname={shown}", 'hostname="localhost"')
        with path.open("r+", encoding="utf-8") as file:  # in its place: a full disk has room for it
            file.write(hidden)
            file.truncate()
    except OSError:
        return  # it was not written, or has been removed


def drop_unused(config: pytest.Config, options: Sequence[str]) -> list[Any]:
    """Unregisters writers that only the ini switch turned on, and returns them. It is called before a session ends.

    Args:
        options: names of those writers' options: ``xmlpath``, ``htmlpath``.
    """
    dropped = []
    for plugin in list(config.pluginmanager.get_plugins()):
        if ("xmlpath" in options and _is_junit(plugin)) or ("htmlpath" in options and _is_html_writer(plugin)):
            config.pluginmanager.unregister(plugin)
            dropped.append(plugin)
    return dropped


def write_page(session: pytest.Session, error: BaseException) -> None:
    """Lets pytest-html write its page after another writer failed, which kept it from doing so. Raises OSError."""
    frame = error.__traceback__
    while frame is not None:
        if str(frame.tb_frame.f_globals.get("__name__", "")).startswith("pytest_html."):
            return  # it was the page
        frame = frame.tb_next
    manager = session.config.pluginmanager
    others = [plugin for plugin in manager.get_plugins() if not _is_html_writer(plugin)]
    manager.subset_hook_caller("pytest_sessionfinish", others)(session=session, exitstatus=session.exitstatus)


def _is_junit(plugin: Any) -> bool:
    return type(plugin).__name__ == "LogXML" and hasattr(plugin, "node_reporter")


def _is_html_writer(plugin: Any) -> bool:
    return type(plugin).__module__.startswith("pytest_html.")
