# SPDX-License-Identifier: BSD-3-Clause
"""Finds the first slower one of several versions. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class BisectionResult(NamedTuple):
    """The result of a bisection: the change came after version ``good``, at the latest with ``bad``.

    Attributes:
        good: index of the last version that is not slower; -1 for the one before the first.
        bad: index of the first slower version.
        undecided: indexes between both whose measurement decided nothing.
    """

    good: int
    bad: int
    undecided: tuple[int, ...] = ()


def first_worse(versions: int, is_worse: Callable[[int], bool | None]) -> BisectionResult:
    """Returns where a series of versions became slower, by bisection.

    Args:
        versions: their number, at least 1. The last one is known to be slower than the one before the first.
        is_worse: whether the version at an index is slower; None if undecided, and the next versions are tried.
    """
    good, bad = -1, versions - 1
    undecided: set[int] = set()
    while candidates := [index for index in range(good + 1, bad) if index not in undecided]:
        middle = (good + bad) / 2
        index = min(candidates, key=lambda candidate: abs(candidate - middle))
        worse = is_worse(index)
        if worse is None:
            undecided.add(index)
        elif worse:
            bad = index
        else:
            good = index
    return BisectionResult(good, bad, tuple(sorted(index for index in undecided if good < index < bad)))
