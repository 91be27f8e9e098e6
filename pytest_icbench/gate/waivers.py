# SPDX-License-Identifier: BSD-3-Clause
"""Waivers: cases whose verdicts fail no test up to a given day. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from fnmatch import fnmatchcase

from pytest_icbench.errors import UsageError


@dataclass(frozen=True, slots=True)
class Waiver:
    """A waiver of the verdicts of some cases.

    Attributes:
        case: a pattern (``*``, ``?``, ``[...]``) over case ids.
        reason: why they are waived, for readers.
        until: the last day on which it holds, ``YYYY-MM-DD``, in UTC.
    """

    case: str
    reason: str
    until: str

    @property
    def last_day(self) -> date:
        """The day of ``until``."""
        return date.fromisoformat(self.until)

    def holds(self, today: date) -> bool:
        """Whether the waiver has not expired."""
        return today <= self.last_day


def parse_day(text: str, where: str) -> date:
    """Parses ``YYYY-MM-DD``. Raises UsageError that begins with ``where``."""
    try:
        day = date.fromisoformat(text)
        if day.isoformat() != text:  # fromisoformat reads other notations too
            raise ValueError
        return day
    except ValueError:
        raise UsageError(f"{where}: '{text}' is no day; write it as 2026-01-31") from None


def find(waivers: Sequence[Waiver], case: str, today: date) -> tuple[Waiver | None, Waiver | None]:
    """Returns a case's waiver that holds, and its waiver that has expired; of several the one that ends last."""
    matching = sorted((waiver for waiver in waivers if fnmatchcase(case, waiver.case)), key=lambda waiver: waiver.until)
    holding = [waiver for waiver in matching if waiver.holds(today)]
    expired = [waiver for waiver in matching if not waiver.holds(today)]
    return (holding[-1] if holding else None), (expired[-1] if expired else None)
