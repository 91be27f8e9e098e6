# SPDX-License-Identifier: BSD-3-Clause
"""Loads that change: a rate for each second and pair, from a file or by rule. Frozen, replayable, pure.

``steps:30k``      a staircase up to that rate and down again, in quarters of three seconds each
``shift:30k``      the load moves every three seconds: odd pairs have that rate and even ones a tenth, then the reverse
``freeze:30k``     all pairs have that rate, and functions are frozen: of thirty 15, 20, 25, 30, 25, 20, 15 run
``random:7:30k``   each second and pair another rate from a tenth to all of that, by the seed 7
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from random import Random

from pytest_icbench.wording import THOUSANDS

#: Seconds of the built-in traces, and the most of any.
SECONDS, MOST_SECONDS = 21, 3600
#: Seconds for which a step of ``steps`` or ``shift`` lasts.
_STEP_S = 3
_QUARTERS = (1, 2, 3, 4, 3, 2, 1)
_BUILT_IN = re.compile(r"(steps|shift|freeze|random:(\d{1,9})):([1-9]\d{0,8})(k|M)?", re.ASCII)
_FILED = re.compile(r"([\w.]{1,40})=(\d{1,9}(?:,\d{1,9})*(?:;\d{1,9}(?:,\d{1,9})*)*)", re.ASCII)
_GREATEST = 10**9


@dataclass(frozen=True, slots=True)
class Trace:
    """A load that changes.

    Attributes:
        label: as in ids: a built-in one with its rate, or the name of a file without its ending.
        columns: of a file: frames per second in each second, one tuple a pair, or one for all pairs; else empty.
    """

    label: str
    columns: tuple[tuple[int, ...], ...] = ()

    @classmethod
    def of(cls, text: str) -> Trace | None:
        """Returns the trace of ``typed``, or of a built-in one; None for any other text."""
        if _BUILT_IN.fullmatch(text) and _peak(text) <= _GREATEST:
            return cls(text)
        match = _FILED.fullmatch(text)
        if match is None:
            return None
        columns = tuple(tuple(map(int, column.split(","))) for column in match[2].split(";"))
        fits = len({len(column) for column in columns}) == 1 and len(columns[0]) <= MOST_SECONDS
        return cls(match[1], columns) if fits and max(map(max, columns)) <= _GREATEST else None

    @property
    def typed(self) -> str:
        """The whole trace as a text, from which ``of`` makes it again."""
        columns = ";".join(",".join(map(str, column)) for column in self.columns)
        return f"{self.label}={columns}" if columns else self.label

    @property
    def seconds(self) -> int:
        """Its length."""
        return len(self.columns[0]) if self.columns else SECONDS

    def rates(self, pair: int) -> tuple[int, ...]:
        """Returns the frames per second of a pair, from 1, in each second."""
        if self.columns:
            return self.columns[pair - 1 if len(self.columns) > 1 else 0]
        kind, peak = self.label.partition(":")[0], _peak(self.label)
        places = range(SECONDS)
        if kind == "steps":
            return tuple(peak * _QUARTERS[second // _STEP_S] // 4 for second in places)
        if kind == "freeze":
            return (peak,) * SECONDS
        if kind == "shift":
            turns = (second // _STEP_S + pair for second in places)
            return tuple(peak if turn % 2 else peak // 10 for turn in turns)
        dice = Random(f"{self.label} {pair}")  # a text is hashed the same everywhere
        return tuple(dice.randint(peak // 10, peak) for _ in places)

    @property
    def freezes(self) -> bool:
        """Whether functions are frozen and thawed meanwhile."""
        return self.label.startswith("freeze:") and not self.columns

    def frozen(self, second: int, pairs: int) -> tuple[int, ...]:
        """Returns those of ``pairs`` pairs whose functions are frozen in a second: the last ones, up to half of all.

        The warm-up counts as the first second. The time after the last second counts as the last second.
        """
        if not self.freezes:
            return ()
        quarter = _QUARTERS[min(max(second, 0), SECONDS - 1) // _STEP_S]
        count = pairs * (4 - quarter) // 6
        return tuple(range(pairs - count + 1, pairs + 1))

    def due(self, pair: int, pairs: int) -> tuple[int, ...]:
        """Returns the frames per second that the function of one of ``pairs`` pairs can pass, second by second."""
        return tuple(rate * (pair not in self.frozen(second, pairs)) for second, rate in enumerate(self.rates(pair)))


def _peak(label: str) -> int:
    match = _BUILT_IN.fullmatch(label)
    assert match is not None
    return int(match[3]) * THOUSANDS[match[4] or ""]


@dataclass(frozen=True, slots=True)
class LoadChange:
    """A change of the load of one pair, and when it arrived: medians over launches.

    Attributes:
        pair, second: the load of this pair changes at the beginning of this second after the warm-up. For functions
            that are frozen and thawed it is the moment of the thaw.
        from_pps, to_pps: the rates before and after it; 0 while a function is frozen.
        offered_pps, received_pps: frames per second that were sent in the time until the next change, and of these
            those that arrived.
        follow_s: seconds until the frames of a window that shows 95 % of the change had arrived, with a resolution of
            one window; null if the next change came first in half of the launches.
    """

    pair: int
    second: int
    from_pps: int
    to_pps: int
    offered_pps: float
    received_pps: float
    follow_s: float | None = None
