# SPDX-License-Identifier: BSD-3-Clause
"""What stands between the ends of each pair: the axes of network functions, and the number of pairs. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

from pytest_icbench.errors import UsageError
from pytest_icbench.model.contract import percents, side_by_side

#: Addresses of functions have a byte for the pair.
MOST_FUNCTIONS = 254


def between(
    functions: Iterable[str | None],
    *,
    chains: Sequence[int],
    shares: Sequence[str] | None,
    caps: Sequence[str] | None,
    pairs: Sequence[int] | None,
    counts: Sequence[int] | None,
    plain_pairs: Sequence[int],
    where: str,
) -> list[dict[str, Any]]:
    """Returns the axes of functions with the number of pairs, by their names in ``Case``.

    Args:
        functions: None stands for a path without any.
        pairs: the numbers of pairs that the user asks for, counts those of functions, plain_pairs those of paths
            without. Shares and caps have a function, and a pair, for each of their per cents; different functions
            side by side have a pair each.
        where: the beginning of a message.

    Raises:
        UsageError: shares, caps and functions are for different numbers of functions, or for a chain.
    """
    ways: list[dict[str, Any]] = []
    for function in functions:
        if function is None:
            ways += [{"function": None, "pairs": number} for number in plain_pairs]
            continue
        row = side_by_side(function)
        if ":" in function and not 2 <= len(row) <= MOST_FUNCTIONS:
            raise UsageError(f"{where}: '{function}' are {len(row)} functions: take 2 to {MOST_FUNCTIONS} side by side")
        for chain, share, cap in product(chains, shares or (None,), caps or (None,)):
            contracts = {len(percents(text)) for text in (share, cap) if text is not None}
            if len(contracts) > 1:
                raise UsageError(f"{where}: share {share} and cap {cap} are for different numbers of functions")
            if contracts and len(row) > 1 and contracts != {len(row)}:
                raise UsageError(
                    f"{where}: {'share' if share else 'cap'} {share or cap} is for {contracts.pop()} functions, and"
                    f" '{function}' are {len(row)}"
                )
            if (contracts or len(row) > 1) and chain > 1:
                what = "shares and caps are" if contracts else f"'{function}' is"
                raise UsageError(f"{where}: {what} for functions side by side: leave out chain")
            numbers = {len(row)} if len(row) > 1 else contracts or pairs or counts or plain_pairs
            axes = {"function": function, "chain": chain, "share": share, "cap": cap}
            ways += [{**axes, "pairs": number} for number in numbers]
    return ways
