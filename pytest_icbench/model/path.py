# SPDX-License-Identifier: BSD-3-Clause
"""The path of frames between endpoints. No other module knows how endpoints are numbered. Pure.

An endpoint's index is its place among all endpoints of a case. The two endpoints of a pair are neighbours: the leader
(side a, which sends or asks) comes before its follower (side b). ``peer`` is the endpoint that an endpoint's frames are
for, and ``across`` the port to which a switch that is like a wire joins its port. The two are equal only while nothing
stands between the ends of a pair. A network function has two ports between them: the inner one towards side a, the
outer one towards side b.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, TypeVar

Side = Literal["a", "b"]
#: The way of frames between the two ends of a pair.
Direction = Literal["ab", "ba"]
#: Each direction as messages name it.
DIRECTION_NAMES: Mapping[Direction, str] = MappingProxyType({"ab": "a to b", "ba": "b to a"})
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class FramePath:
    """The endpoints of a case with ``pairs`` pairs, and ``functions`` network functions between the ends of each."""

    pairs: int
    functions: int = 0

    @classmethod
    def over(cls, endpoints: Collection[object]) -> FramePath:
        """Returns the path over as many endpoints as there are items. Raises ValueError if one has no peer."""
        pairs, left = divmod(len(endpoints), 2)
        if left:
            raise ValueError(f"{len(endpoints)} endpoints are no pairs")
        return cls(pairs)

    @property
    def numbers(self) -> range:
        """The numbers of the pairs, from 1."""
        return range(1, self.pairs + 1)

    @property
    def endpoints(self) -> range:
        """The indexes of all endpoints."""
        return range(2 * self.pairs)

    @property
    def ports(self) -> list[int]:
        """The indexes of a switch's ports in the order in which it gets them: each two neighbours are a wire.

        Between the ends of a pair are the two ports of each of its functions. Their indexes follow all endpoints'.
        """
        return [port for pair in self.numbers for port in self._row(pair)]

    @property
    def wires_count(self) -> int:
        """The number of wires that a switch joins its ports by; as many pairs as there would be without functions."""
        return self.pairs * (self.functions + 1)

    def between(self, pair: int) -> list[tuple[int, int]]:
        """Returns the indexes of the inner and the outer port of each function of a pair, from side a to side b."""
        first = len(self.endpoints) + 2 * self.functions * (pair - 1)
        return [(first + 2 * place, first + 2 * place + 1) for place in range(self.functions)]

    def _row(self, pair: int) -> list[int]:
        leader, follower = self.ends(pair)
        return [leader, *(port for ports in self.between(pair) for port in ports), follower]

    @property
    def leaders(self) -> range:
        """The indexes of the endpoints that send or ask, one per pair."""
        return self.endpoints[::2]

    @property
    def followers(self) -> range:
        """The indexes of the endpoints that receive or answer, one per pair."""
        return self.endpoints[1::2]

    def ends(self, pair: int) -> tuple[int, int]:
        """Returns the indexes of a pair's leader and follower; ``pair`` is one of ``numbers``."""
        return self.leaders[pair - 1], self.followers[pair - 1]

    def pair(self, index: int) -> int:
        """Returns the number of an endpoint's pair."""
        return index // 2 + 1

    def leads(self, index: int) -> bool:
        """Whether an endpoint sends or asks."""
        return index % 2 == 0

    def side(self, index: int) -> Side:
        """Returns the side of an endpoint; a leader's is ``a``."""
        return "a" if self.leads(index) else "b"

    def direction(self, index: int) -> Direction:
        """Returns the direction of the frames that an endpoint sends."""
        return "ab" if self.leads(index) else "ba"

    def peer(self, index: int) -> int:
        """Returns the index of the other end of an endpoint's pair, which its frames are for."""
        return index ^ 1

    def across(self, index: int) -> int:
        """Returns the port to which a switch that is like a wire joins this one: without functions the peer's."""
        beyond = index - len(self.endpoints)
        row = self._row(self.pair(index) if beyond < 0 else beyond // (2 * self.functions) + 1)
        return row[row.index(index) ^ 1]

    def by_pair(self, items: Sequence[T]) -> list[tuple[T, T]]:
        """Returns the leader's and the follower's item of each pair; ``items`` are by index."""
        return [(items[leader], items[follower]) for leader, follower in map(self.ends, self.numbers)]

    def wires(self, items: Sequence[T]) -> list[tuple[T, T]]:
        """Returns the items of each two ports that a switch that is like a wire joins.

        ``items``: one for each port, in the order in which a switch gets its ports.
        """
        return list(zip(items[::2], items[1::2], strict=True))
