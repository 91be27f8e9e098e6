# SPDX-License-Identifier: BSD-3-Clause
"""Formats numbers, times and sentences for messages, tables and summaries. Pure."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import get_close_matches
from math import floor, log10
from typing import Any, TypeVar

T = TypeVar("T")
#: Greatest length of a message's first line: pytest cuts longer ones in its summary.
FIRST_LINE = 100
#: Suffixes of numbers.
THOUSANDS = {"": 1, "k": 1_000, "M": 1_000_000}


def show(value: float | None) -> str:
    """Formats a number for messages: four significant digits, k and M from 10,000 up."""
    if value is None:
        return "none"
    for unit, suffix in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= max(unit, 10_000):
            return f"{value / unit:.4g}{suffix}"
    return f"{value:.4g}"


def shortened(number: int) -> str:
    """Formats a whole number exactly, with k or M if it is a multiple: ``64k``, ``1M``, ``1500k``, ``1234``."""
    suffix = next((suffix for suffix in ("M", "k") if number and number % THOUSANDS[suffix] == 0), "")
    return f"{number // THOUSANDS[suffix]}{suffix}"


def quantity(name: str, value: float | None) -> str:
    """Formats a value for messages by the name of its field: times in microseconds, all else as ``show`` does."""
    if value is None or not name.endswith("_ns"):
        return show(value)
    return f"{value / 1000:.4g} µs" if abs(value) < 1e7 else f"{value / 1000:.0f} µs"


def plain_name(name: str) -> str:
    """Returns the name of a field without ``_ns``: messages show times in other units."""
    return name.removesuffix("_ns")


def cut(line: str, length: int = FIRST_LINE) -> str:
    """Cuts a line to at most ``length`` characters."""
    return line if len(line) <= length else line[: length - 3] + "..."


def printable(text: str) -> str:
    """Replaces the control characters of a text, so that a terminal can show it."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else "?" for char in text)


def wrapped(line: str, width: int = FIRST_LINE) -> list[str]:
    """Wraps a line at ``width`` characters; continuation lines are indented by two more."""
    indent = " " * (len(line) - len(line.lstrip(" ")) + 2)
    kept = line.replace(" %", "\u00a0%")  # keeps a number and its percent sign together
    parts = textwrap.wrap(kept, width, subsequent_indent=indent, break_on_hyphens=False)
    return [part.replace("\u00a0%", " %") for part in parts] or [line]


def percent(share: float) -> str:
    """Formats a share without its sign: ``3.1 %``, ``92,400 %``. A share below 1 is never shown as 100 %.

    It has three significant digits and no exponent: ``0.00001 %``.
    """
    value = float(f"{abs(share) * 100:.3g}")
    text = f"{value:,g}"
    if "e" in text:
        text = f"{value:,.0f}" if value > 1 else f"{value:.{2 - floor(log10(value))}f}".rstrip("0")
    return f"{_almost_all(abs(share)) if text == '100' and abs(share) < 1 else text} %"


def signed_percent(ratio: float) -> str:
    """Formats a ratio as a change in percent: ``-12.0``. A ratio above 0 is never shown as -100.0."""
    text = f"{(ratio - 1) * 100:+.1f}"
    return f"-{_almost_all(1 - ratio)}" if text == "-100.0" and 0 < ratio < 1 else text


def _almost_all(share: float) -> str:
    """Returns the percent of a share below 1 with enough digits to differ from 100: ``99.97``."""
    rest = (1 - share) * 100
    return f"{100 - rest:.{max(-floor(round(log10(rest), 6)), 1)}f}"


def span(seconds: float) -> str:
    """Formats a length of time: ``40 s``, ``2.5 min``, ``3 h``."""
    for unit, name in ((3600.0, "h"), (60.0, "min")):
        if seconds >= 1.5 * unit:
            return f"{seconds / unit:.2g} {name}"
    return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"


def clock(seconds: float) -> str:
    """Formats a length of time as a clock does: ``0:07``, ``12:30``, ``1:02:03``."""
    whole = max(round(seconds), 0)
    hours, rest = divmod(whole, 3600)
    minutes, secs = divmod(rest, 60)
    return f"{hours}:{minutes:02d}:{secs:02d}" if hours else f"{minutes}:{secs:02d}"


def counted(number: int, thing: str) -> str:
    """Formats a number of things: ``1 case``, ``5,000 cases``, ``2 launches``."""
    end = "" if number == 1 else "es" if thing.endswith("ch") else "s"
    return f"{number:,} {thing}{end}"


def listed(words: Sequence[str], conjunction: str = "and") -> str:
    """Joins words: ``a, b and c``."""
    return f" {conjunction} ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def alternatives(words: Sequence[str]) -> str:
    """Joins words: ``a, b or c``."""
    return listed(words, "or")


def suggestion(name: str, known: Sequence[str], otherwise: str | None = None) -> str:
    """Returns the end of a message about an unknown name.

    It suggests the nearest known name, or else has ``otherwise``, or the list of known names.
    """
    folded = {one.lower(): one for one in known}
    near = next(_near(name.lower(), list(folded)), None)
    if near is not None:
        return f"; did you mean {folded[near]}?"
    return f"; known are {', '.join(known)}" if otherwise is None else otherwise


def _near(name: str, known: Sequence[str]) -> Iterator[str]:
    """Yields known names that are near to another one, the nearest first: alike, or a part of it (``ovs-dpdk``)."""
    yield from get_close_matches(name, known, n=1, cutoff=0.8)
    parts = re.split(r"[^a-z0-9]+", name)
    yield from (one for one in known if one in parts)
    yield from (one for one in known if len(one) > 2 and name.startswith(one))
    yield from get_close_matches(name, known, n=1)


def grouped(items: Iterable[T], key: Callable[[T], Any]) -> dict[Any, list[T]]:
    """Groups items by key, in the order of first appearance."""
    groups: dict[Any, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups
