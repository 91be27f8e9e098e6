# SPDX-License-Identifier: BSD-3-Clause
"""Waivers: verdicts that fail no test until a day, with a reason. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from fnmatch import fnmatchcase

from pytest_icbench.errors import UsageError


@dataclass(frozen=True, slots=True)
class Waiver:
    """What is waived, why, and until when.

    Attributes:
        case: a pattern (``*``, ``?``, ``[...]``) over case ids.
        reason: for people.
        until: the last day on which it holds, ``YYYY-MM-DD``, in UTC.
    """

    case: str
    reason: str
    until: str

    @property
    def last_day(self) -> date:
        return date.fromisoformat(self.until)

    def holds(self, today: date) -> bool:
        return today <= self.last_day


def parse_day(text: str, where: str) -> date:
    """``YYYY-MM-DD``. Raises UsageError."""
    try:
        day = date.fromisoformat(text)
        if day.isoformat() != text:  # it reads other notations too
            raise ValueError
        return day
    except ValueError:
        raise UsageError(f"{where}: '{text}' is no day; write it as 2026-01-31") from None


def find(waivers: Sequence[Waiver], case: str, today: date) -> tuple[Waiver | None, Waiver | None]:
    """The waiver of a case that holds, and one that no longer does; of several the one that lasts longest."""
    own = sorted((each for each in waivers if fnmatchcase(case, each.case)), key=lambda each: each.until)
    holding = [each for each in own if each.holds(today)]
    expired = [each for each in own if not each.holds(today)]
    return (holding[-1] if holding else None), (expired[-1] if expired else None)
