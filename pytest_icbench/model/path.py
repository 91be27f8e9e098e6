# SPDX-License-Identifier: BSD-3-Clause
"""Which endpoints frames pass between. The only place that knows how endpoints are numbered; others ask. Pure.

An endpoint's index is its place among all of a case: the two of a pair stand next to each other, the leader (side a,
which sends or asks) before its follower (side b). Two questions have one answer as long as nothing stands between the
ends of a pair, and are asked apart: for whom an endpoint's frames are (``peer``), and to which port a switch that is
like a wire joins its port (``across``). A network function has two ports between them; chains of them belong here.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

Side = Literal["a", "b"]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class FramePath:
    """The endpoints of a case with so many pairs."""

    pairs: int

    @classmethod
    def over(cls, endpoints: Collection[object]) -> FramePath:
        """The path over so many endpoints, whatever they are. Raises ValueError if one has no peer."""
        pairs, left = divmod(len(endpoints), 2)
        if left:
            raise ValueError(f"{len(endpoints)} endpoints are no pairs")
        return cls(pairs)

    @property
    def numbers(self) -> range:
        """Of the pairs, from 1."""
        return range(1, self.pairs + 1)

    @property
    def endpoints(self) -> range:
        """Indexes of all endpoints."""
        return range(2 * self.pairs)

    @property
    def leaders(self) -> range:
        """Indexes of those that send or ask, one a pair."""
        return self.endpoints[::2]

    @property
    def followers(self) -> range:
        """Indexes of those that receive or answer, one a pair."""
        return self.endpoints[1::2]

    def ends(self, pair: int) -> tuple[int, int]:
        """Indexes of a pair's leader and follower; ``pair`` is one of ``numbers``."""
        return self.leaders[pair - 1], self.followers[pair - 1]

    def pair(self, index: int) -> int:
        """Number of an endpoint's pair."""
        return index // 2 + 1

    def leads(self, index: int) -> bool:
        """Whether an endpoint sends or asks."""
        return index % 2 == 0

    def side(self, index: int) -> Side:
        """The leader's is ``a``."""
        return "a" if self.leads(index) else "b"

    def peer(self, index: int) -> int:
        """The other end of an endpoint's pair, for whom its frames are."""
        return index ^ 1

    def across(self, index: int) -> int:
        """The port to which a switch that is like a wire joins the endpoint's: without functions its peer's."""
        return self.peer(index)

    def by_pair(self, items: Sequence[T]) -> list[tuple[T, T]]:
        """The leader's and the follower's item of each pair, of items by index."""
        return [(items[leader], items[follower]) for leader, follower in map(self.ends, self.numbers)]

    def wires(self, items: Sequence[T]) -> list[tuple[T, T]]:
        """The items of each two ports that a switch that is like a wire joins, of items by index."""
        return [(items[index], items[self.across(index)]) for index in self.endpoints if index < self.across(index)]
