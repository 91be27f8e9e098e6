# SPDX-License-Identifier: BSD-3-Clause
"""The share of flows that a network function denies, as sender, function and receiver know it. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pytest_icbench.model.path import Direction

#: A part of a function's name that says which share of flows it denies.
_PART = re.compile(r"(?:^|\+)deny[1-9]\d*(?:\+|$)", re.ASCII)
#: Digits of a place behind a text; the workload's ACL_DROP_DIGITS.
_DIGITS = 5


def names_share(function: str) -> bool:
    """Whether a function's name says which share of flows it denies: ``acl1000+deny30``."""
    return _PART.search(function) is not None


def acl_drop_before(place: int, percent: int) -> int:
    """Returns how many of the places before this one are denied: they are spread evenly."""
    return place * percent // 100


@dataclass(frozen=True, slots=True)
class AclDrop:
    """The mark by which a function finds the frames that it denies: the workload's ``--acl-drops``.

    A flow has a place in the function's list: its number modulo the number of places.

    Attributes:
        percent: share of the places that is denied, rounded down; 1 to 99. At least one place is denied.
        places: places of the list, 1 to 50,000.
        mark: the UDP port of the first place, each further place has the next port; or a text in the payload, followed
            by the place's number.
        ways: whose frames are denied: of several flows those of both sides; or of side b's single flow alone, of which
            each frame has a place.
    """

    percent: int
    places: int
    mark: int | str
    ways: tuple[Direction, ...] = ("ab", "ba")

    def of(self, way: Direction, *, flows: bool, both: bool) -> str | None:
        """Returns the value of the workload's option for frames of one way; None if none of them is denied.

        Args:
            flows: whether each side has several flows.
            both: whether both sides send.
        """
        applies = both and not flows if self.unasked else flows
        return self.label if applies and way in self.ways else None

    @property
    def unasked(self) -> bool:
        """Whether only unsolicited frames of side b are denied."""
        return self.ways == ("ba",)

    @property
    def label(self) -> str:
        """The value of the workload's option."""
        return f"{self.percent}:{self.places}:{self.mark}"

    def of_flows(self, flows: int) -> int:
        """Returns how many of a number of flows are denied."""
        rounds, rest = divmod(flows, self.places)
        return rounds * acl_drop_before(self.places, self.percent) + acl_drop_before(rest, self.percent)

    @property
    def text_bytes(self) -> int:
        """The bytes that the mark takes in a payload, after the stamp."""
        return len(self.mark) + _DIGITS if isinstance(self.mark, str) else 0

    @property
    def least_flows(self) -> int:
        """The fewest flows among which one is denied."""
        return -(-100 // self.percent)
