# SPDX-License-Identifier: BSD-3-Clause
"""JUnit XML: results as ``system-out`` of a test, for readers and as JSON lines, and as its properties."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from pytest_icbench.model.measurement import Measurement, Result
from pytest_icbench.report import remarks
from pytest_icbench.report.notes import remarks_on
from pytest_icbench.report.terminal_table import result_line
from pytest_icbench.wording import printable

#: Printable characters that XML 1.0 does not allow.
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
    """Returns the result's line, the remarks on it, and its place on the page, without characters that XML forbids."""
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


def _is_junit(plugin: Any) -> bool:
    return type(plugin).__name__ == "LogXML" and hasattr(plugin, "node_reporter")


#: Prefix of JUnit properties.
PREFIX = "icbench."

#: Types of a result's nested parts. The JSON line has them, the properties do not.
_NESTED = (dict, list, tuple)


def _shown(value: Any) -> Any:
    """Returns a value with at most seven digits; the JSON line has all of them."""
    if isinstance(value, bool):
        return str(value).lower()
    return float(f"{value:.7g}") if isinstance(value, float) else value


def properties(result: Measurement) -> list[tuple[str, Any]]:
    """Returns a result's flat values as JUnit properties: the names of the JSON line with a prefix, without nulls.

    Loss events and trains without loss are nested in the line; here they are flattened.
    """
    return [
        (PREFIX + name, _shown(value))
        for name, value in {**result.flat(), **remarks.flat_long_run(result)}.items()
        if value is not None and not isinstance(value, _NESTED)
    ]


_NOT_IN_ANCHORS = re.compile(r"[^A-Za-z0-9_:+.-]", re.ASCII)


def case_anchor(result: Measurement) -> str:
    """Returns the page's id of a result's case: ``case-throughput-ovs-64B-b32-1vs1-Rmax``.

    It includes the dimension, since a rate and a round trip can be measured with equal traffic. Characters that are not
    allowed both in an HTML id and in a URL fragment become ``_``.
    """
    return _NOT_IN_ANCHORS.sub("_", f"case-{result.dimension}-{result.case}")
