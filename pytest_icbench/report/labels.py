# SPDX-License-Identifier: BSD-3-Clause
"""Short names of cases: an id without those parts of its end that all the cases beside it share. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_icbench.wording import printable


def shared(cases: Sequence[str]) -> tuple[str, ...]:
    """Returns those of burst, pairs and rate that all ids share; nothing for fewer than two, or with two hosts."""
    if len(cases) < 2 or any(case.endswith("-remote") for case in cases):
        return ()
    tails = [_tail(case) for case in cases]
    return tuple(part for part in tails[0] if all(part in tail for tail in tails))


def label(case: str, left_out: Sequence[str]) -> str:
    """Returns an id without the parts of its end that are left out."""
    tail = _tail(case)
    if not (tail and left_out):
        return printable(case)
    head = case[: len(case) - len("-".join(tail)) - 1]
    return printable("-".join([head, *(part for part in tail if part not in left_out)]))


def _tail(case: str) -> list[str]:
    """Returns the end of an id: the axes that cases often share."""
    return case.rsplit("-", 3)[1:] if case.count("-") >= 3 else []
