# SPDX-License-Identifier: BSD-3-Clause
"""The options of neighbours and of their isolation. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pytest_icbench.config.row import option
from pytest_icbench.config.sequences import parse_words
from pytest_icbench.errors import UsageError
from pytest_icbench.model.neighbour_kinds import KINDS, L3, MOST_CPUS
from pytest_icbench.wording import alternatives, suggestion

#: The word for cases that are not isolated.
NOT_ISOLATED = "none"


def parse_neighbours(text: str, where: str) -> tuple[str, ...]:
    """Parses ``none cpu stream:2``. Raises UsageError for another kind, or too many CPUs."""
    from pytest_icbench.model.neighbour import Neighbour  # other suites load this module, too

    labels = []
    for word in parse_words(text, where):
        neighbour = Neighbour.of(word)
        if neighbour is None:
            kind = word.partition(":")[0]
            what = f"'{word[:60]}' is no number of CPUs of a neighbour: write {kind}:2, 1 to {MOST_CPUS}"
            if kind not in KINDS:
                what = f"there is no neighbour '{kind[:60]}'{suggestion(kind, tuple(KINDS))}"
            raise UsageError(f"{where}: {what}")
        labels.append(neighbour.label)
    return tuple(dict.fromkeys(labels))


def parse_isolations(text: str, where: str) -> tuple[str | None, ...]:
    """Parses ``none l3 cat:11-1``; None stands for none. Raises UsageError for other words, and parts of 0 ways."""
    from pytest_icbench.model.neighbour import cache_ways  # other suites load this module, too

    isolations = []
    for word in parse_words(text, where):
        label = word.replace("-", ".")
        ways = cache_ways(label)
        if 0 in ways:
            raise UsageError(f"{where}: '{word}' leaves a part without any way of the cache: give each 1 at least")
        if word not in (NOT_ISOLATED, L3) and not ways:
            raise UsageError(
                f"{where}: '{word[:60]}' is no isolation: write {NOT_ISOLATED}, {L3}, or cat: with the cache ways of"
                " two to four parts, the neighbour's last (cat:11-1, cat:3-3-3-3)"
            )
        isolations.append(None if word == NOT_ISOLATED else label)
    return tuple(dict.fromkeys(isolations))


def beside(
    neighbours: Sequence[str] | None, isolations: Sequence[str | None] | None, where: str
) -> list[dict[str, Any]]:
    """Returns the axes of neighbours by their names in ``Case``. Raises UsageError for an isolation from nobody."""
    if neighbours is None:
        if any(isolations or ()):
            raise UsageError(f"{where}: isolation keeps a neighbour apart, and there is none: give neighbour, too")
        return [{}]
    return [{"neighbour": one, "isolation": apart} for one in neighbours for apart in isolations or (None,)]


@dataclass(frozen=True, slots=True, repr=False, eq=False)  # Options has them
class NeighbourOptions:
    """The options of neighbours."""

    neighbour: tuple[str, ...] | None = option(
        "LIST",
        f"replace the neighbours, load on CPUs of their own beside every other launch: {alternatives(tuple(KINDS))};"
        " stream:2 for two CPUs; none is the control",
        parse_neighbours,
        marker="None",
    )
    isolation: tuple[str | None, ...] | None = option(
        "LIST",
        "replace how neighbours are kept apart: none, l3 (CPUs of another L3 cache), or cat:11-1 to cat:3-3-3-3 (ways"
        " of the L3 cache through resctrl, the neighbour's last)",
        parse_isolations,
        marker="None",
    )
