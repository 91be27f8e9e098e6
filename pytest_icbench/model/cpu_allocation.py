# SPDX-License-Identifier: BSD-3-Clause
"""Functions side by side on one CPU, with their CPU shares and quotas. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

_SEVERAL = re.compile(r"([1-9]\d{0,2})x(.+)", re.ASCII)


def percents(text: str | None) -> tuple[int, ...]:
    """Returns the per cents of ``70:30``, one for each function; none for None."""
    return () if text is None else tuple(map(int, text.split(":")))


def side_by_side(text: str) -> tuple[str, ...]:
    """Returns the functions of ``wire:2xcost1000``, one for each pair; one for a single function."""
    matches = ((part, _SEVERAL.fullmatch(part)) for part in text.split(":"))
    return tuple(name for part, match in matches for name in ([match[2]] * int(match[1]) if match else [part]))


@dataclass(frozen=True, slots=True)
class CpuAllocation:
    """What one function gets of its CPU, in per cent.

    Attributes:
        cpu_share: of the CPU while all want it; None without a share.
        cpu_quota: the most that it gets, even if nobody else wants the CPU; None without a cap.
    """

    cpu_share: int | None = None
    cpu_quota: int | None = None

    @property
    def part(self) -> float:
        """The part of the CPU that the function gets while all want more, 0 to 1."""
        return min(self.cpu_share or 100, self.cpu_quota or 100) / 100
