# SPDX-License-Identifier: BSD-3-Clause
"""Pieces of markup: text, links, the charts' script, and tables, which narrow screens stack and long ones fold."""

from __future__ import annotations

import importlib
import importlib.util
import re
from collections.abc import Iterable, Sequence
from functools import cache
from html import escape
from importlib.resources import files

from pytest_icbench.wording import printable

#: The global name that the script of the charts sets.
GLOBAL = "icbenchVega"
#: The message where the library of the charts is missing.
MISSING = "there are no charts: they need the library vl-convert-python (pip install 'pytest-icbench[html]')"
#: Number of rows of a table above which the rest is folded.
MOST_ROWS = 20


def resource(name: str) -> str:
    """Returns a script or style sheet of the page."""
    return (files("pytest_icbench.report.html") / name).read_text(encoding="utf-8")


def text(value: object) -> str:
    """Escapes a text for markup and replaces its control characters."""
    return escape(printable(str(value)))


class Link(str):
    """A cell's text that links to an anchor of the page."""

    __slots__ = ("anchor",)
    anchor: str

    def __new__(cls, label: str, anchor: str) -> Link:
        """Returns the text with the anchor that it links to."""
        self = super().__new__(cls, label)
        self.anchor = anchor
        return self


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Returns a table. A narrow screen stacks its cells with their heads, so roles mark it as a table."""
    head_cells = "".join(f'<th scope="col" role="columnheader">{text(head)}</th>' for head in heads)
    body = "".join(f'<tr role="row">{_cells(heads, row)}</tr>' for row in rows)
    return (
        f'<div class="ic-scroll" tabindex="0" role="group" aria-label="{text(", ".join(heads))}">'
        f'<table class="ic ic-stack" role="table"><thead role="rowgroup"><tr role="row">{head_cells}</tr></thead>'
        f'<tbody role="rowgroup">{body}</tbody></table></div>'
    )


def _cells(heads: Sequence[str], row: Sequence[str]) -> str:
    pairs = zip(heads, row, strict=True)
    return "".join(f'<td role="cell" data-head="{text(head)}">{_shown(cell)}</td>' for head, cell in pairs)


def _shown(cell: str) -> str:
    return f'<a href="#{text(cell.anchor)}">{text(cell)}</a>' if isinstance(cell, Link) else text(cell)


def folded(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Returns a table whose rows after the first ``MOST_ROWS`` are folded."""
    more, rest = "", rows[MOST_ROWS:]
    if rest:
        more = f"<details><summary>{len(rest)} more</summary>{table(heads, rest)}</details>"
    return table(heads, rows[:MOST_ROWS]) + more


def charts_available() -> bool:
    """Whether the library of the charts is installed."""
    return importlib.util.find_spec("vl_convert") is not None


def missing_note() -> str:
    """Returns a note if the library of the charts is missing; else nothing."""
    return "" if charts_available() else f'<p role="note">{text(MISSING)}</p>'


@cache
def chart_script() -> str:
    """Returns Vega, Vega-Lite and Vega-Embed (BSD-3-Clause) as one script, safe in a ``script`` element.

    They come with the package vl-convert-python, so that neither writing nor opening a page needs a network. The script
    has about 900 kB and is built in seconds. It is empty without the library.
    """
    if not charts_available():
        return ""
    library = importlib.import_module("vl_convert")
    bundle: str = library.javascript_bundle(f"window.{GLOBAL} = {{embed: vegaEmbed}};")
    # The bundle is a module: the function keeps its names out of the global scope.
    return "(function () {\n" + re.sub("</(?=script)", r"<\\/", bundle, flags=re.IGNORECASE) + "\n})();"
