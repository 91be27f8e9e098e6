# SPDX-License-Identifier: BSD-3-Clause
"""Looks for the first of several versions that is slower. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Bisected(NamedTuple):
    """The end of a search: the change lies after one version and up to another one.

    Attributes:
        good: index of the last version that is not slower; -1 is the one from which the search began.
        bad: index of the first version that is slower.
        undecided: indexes between both that could not be told.
    """

    good: int
    bad: int
    undecided: tuple[int, ...] = ()


def first_worse(versions: int, is_worse: Callable[[int], bool | None]) -> Bisected:
    """Returns where a series of versions became slower, by halving.

    Args:
        versions: their number, at least 1; the last one is known to be slower than what came before the first.
        is_worse: whether the version at an index is slower; None where that cannot be told, and its neighbours are
            asked instead.
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
    return Bisected(good, bad, tuple(sorted(index for index in undecided if good < index < bad)))
