# SPDX-License-Identifier: BSD-3-Clause
"""The order in which cases run: as their files say, or at random, so that no case has the same moment in every run."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Hashable, Sequence
from random import Random
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import pytest

T = TypeVar("T")

#: Greatest seed that is drawn: short enough to be typed.
MOST_SEED = 999_999


def choose_seed(order: str, config: pytest.Config) -> int | None:
    """Returns the seed of an order (``given``, ``random`` or a number); None for the order of the files.

    Hosts that share the cases of a session have to agree on their order, so ``random`` draws the seed from the name of
    the session, which all workers of xdist know.
    """
    if order == "given":
        return None
    if order != "random":
        return int(order)
    shared = getattr(config, "workerinput", {}).get("testrunuid")
    return zlib.crc32(str(shared).encode()) % (MOST_SEED + 1) if shared else Random().randint(0, MOST_SEED)


def shuffle_items(items: Sequence[T], key: Callable[[T], Hashable | None], seed: int) -> list[T]:
    """Returns items without a key first, as they are, then the others at random, those of each key together.

    Args:
        items: those of each key together.
        key: items of one key share what is costly to build.
        seed: of the order; the same one gives the same order.
    """
    random = Random(seed)
    groups: dict[Hashable, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    first = groups.pop(None, [])
    order = list(groups.values())
    random.shuffle(order)
    for group in order:
        random.shuffle(group)
    return [*first, *(item for group in order for item in group)]


def group_items(items: Sequence[T], key: Callable[[T], Hashable | None]) -> list[T]:
    """Returns items without a key first, then those of each key together; keys keep the order of their first items."""
    ranks: dict[Hashable | None, int] = {None: 0}
    rank_of = [ranks.setdefault(key(item), len(ranks)) for item in items]
    return [items[place] for place in sorted(range(len(items)), key=rank_of.__getitem__)]
