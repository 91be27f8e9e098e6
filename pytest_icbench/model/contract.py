# SPDX-License-Identifier: BSD-3-Clause
"""The CPU that functions on one CPU get by contract: shares of it, or caps. Pure."""

from __future__ import annotations

from dataclasses import dataclass


def percents(text: str | None) -> tuple[int, ...]:
    """Returns the per cents of ``70:30``, one for each function; none for None."""
    return () if text is None else tuple(map(int, text.split(":")))


@dataclass(frozen=True, slots=True)
class CpuContract:
    """What one function gets of its CPU, in per cent.

    Attributes:
        share: of the CPU while all want it; None without a share.
        cap: the most that it gets, even if nobody else wants the CPU; None without a cap.
    """

    share: int | None = None
    cap: int | None = None

    @property
    def part(self) -> float:
        """The part of the CPU that is due where all want more, 0 to 1."""
        return min(self.share or 100, self.cap or 100) / 100
