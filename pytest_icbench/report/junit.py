# SPDX-License-Identifier: BSD-3-Clause
"""JUnit XML: a result's JSON line in ``system-out``; unused report writers are unregistered."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from xml.sax.saxutils import quoteattr

import pytest

from pytest_icbench.model.measurement import Measurement


def add_system_out(config: pytest.Config, report: pytest.TestReport, results: Sequence[Measurement]) -> None:
    """Puts the JSON lines of a test into its ``system-out``, whatever ``junit_logging`` says about captured output."""
    xml = next((plugin for plugin in config.pluginmanager.get_plugins() if _is_junit(plugin)), None)
    if xml is None or not results:
        return
    node = ElementTree.Element("system-out")
    # JSON escapes what XML does not allow (ensure_ascii), so that no second escaping is needed.
    node.text = "\n".join(result.to_json() for result in results)
    xml.node_reporter(report).append(node)


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
