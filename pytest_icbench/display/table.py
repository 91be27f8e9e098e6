# SPDX-License-Identifier: BSD-3-Clause
"""A column of the tables, the pages and the lines of reports. Pure."""

from __future__ import annotations

from collections.abc import Callable
from enum import Flag, auto
from typing import NamedTuple

from pytest_icbench.model.result import Result


class In(Flag):
    """The reports that show a column: tables, the page, and (LINE) the terminal's line of a finished case."""

    THROUGHPUT = auto()
    LATENCY = auto()
    VARIATION = auto()
    MARKDOWN = auto()
    PAGE = auto()
    LINE = auto()
    APPLICATION = auto()
    STARTUP = auto()
    NOWHERE = 0


class Column(NamedTuple):
    """A column of reports.

    Attributes:
        name: the head in tables. ``{metric}`` is the group's, since a rate is never shown without it. ``{or_base}``
            is for Markdown, whose results may be compared with the version side by side.
        unit: the unit after the name; the text is without it.
        text: returns a result's text; empty where it has none. The terminal leaves out a column without any text.
        shown: the reports that show it.
        always: the tables that keep it without any text.
        phrase: the text on the page and in lines, which have no heads.
        number: whether it is aligned to the right.
    """

    name: str
    unit: str
    text: Callable[[Result], str]
    shown: In
    always: In = In.NOWHERE
    phrase: str = "{text}"
    number: bool = True

    def head(self, **facts: str) -> str:
        """Returns the head in tables; ``facts`` are the words for the name's placeholders."""
        return f"{self.name} {self.unit}".rstrip().format(**facts)

    def say(self, result: Result) -> str:
        """Returns the phrase; empty where the result has no text."""
        text = self.text(result)
        return text and self.phrase.format(text=text)
