# SPDX-License-Identifier: BSD-3-Clause
"""Columns of reports, and tables of texts that fit into a width without cutting any of them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Flag, auto
from typing import NamedTuple

from pytest_icbench.model.measurement import Result
from pytest_icbench.wording import wrapped


class In(Flag):
    """The reports that show a column: tables, the page, and (LINE) the terminal's line of a finished case.

    With MORE the terminal's table has it with ``-v`` only.
    """

    THROUGHPUT = auto()
    LATENCY = auto()
    VARIATION = auto()
    MARKDOWN = auto()
    PAGE = auto()
    LINE = auto()
    APPLICATION = auto()
    STARTUP = auto()
    MORE = auto()
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
        main: whether it stays in the terminal's table although all rows have the same text.
    """

    name: str
    unit: str
    text: Callable[[Result], str]
    shown: In
    always: In = In.NOWHERE
    phrase: str = "{text}"
    number: bool = True
    main: bool = False

    def head(self, **facts: str) -> str:
        """Returns the head in tables; ``facts`` are the words for the name's placeholders."""
        return f"{self.name} {self.unit}".format(**facts).rstrip()

    def say(self, result: Result) -> str:
        """Returns the phrase; empty where the result has no text."""
        text = self.text(result)
        return text and self.phrase.format(text=text)


class Cells(NamedTuple):
    """A column as texts: its head, the text of each row, and whether these are aligned to the right."""

    head: str
    texts: Sequence[str]
    number: bool = True


def grid(names: Sequence[str], columns: Sequence[Cells], width: int) -> list[str] | None:
    """Returns a line of heads and a line for each row, which begins with its name; None if that is too wide."""
    widths = [max(map(len, (column.head, *column.texts))) for column in columns]
    first = max(map(len, names), default=0)
    if first + sum(widths) + 2 * len(widths) > width:
        return None
    rows = [("", [column.head for column in columns])]
    rows += [(name, [column.texts[place] for column in columns]) for place, name in enumerate(names)]
    return [
        "  ".join(
            [name.ljust(first)]
            + [
                text.rjust(room) if column.number else text.ljust(room)
                for text, room, column in zip(texts, widths, columns, strict=True)
            ]
        ).rstrip()
        for name, texts in rows
    ]


def listing(names: Sequence[str], columns: Sequence[Cells], width: int) -> list[str]:
    """Returns each name on separate lines, and below it its texts after their heads."""
    lines = []
    for place, name in enumerate(names):
        texts = [f"{column.head} {column.texts[place]}".strip() for column in columns if column.texts[place]]
        lines += [name[start : start + width] for start in range(0, len(name), width)]
        lines += wrapped(f"  {', '.join(texts)}", width) if texts else []
    return lines
