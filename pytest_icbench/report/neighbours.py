# SPDX-License-Identifier: BSD-3-Clause
"""What reports say of a case beside a neighbour. Pure."""

from __future__ import annotations

from pytest_icbench.display.axes import short
from pytest_icbench.model.neighbour import excludes_one
from pytest_icbench.model.result import Result
from pytest_icbench.wording import counted


def effect(result: Result) -> str:
    """Returns what the neighbour changed, figure by figure; empty without one, and without a number."""
    neighbour = result.frames.neighbour
    if neighbour is None or not result.is_number:
        return ""
    texts = []
    for name, ratio in neighbour.ratios.items():
        text = f"{name} {short(ratio.value)} times"
        if ratio.low is not None and ratio.high is not None:
            text += f" ({short(ratio.low)} to {short(ratio.high)})"
        texts.append(text + ("" if excludes_one(ratio) else ", no change shown"))
    what = "against none" if neighbour.busy is None else f"(busy {neighbour.busy:.0%} of its time) against none"
    kept = "" if neighbour.cache_bytes is None else f"; held of the L3 cache: {_held(neighbour.cache_bytes)}"
    where = "" if result.point.isolation is None else f" isolated by {result.point.isolation}"
    pairs = counted(neighbour.pairs, "pair")
    return (
        f"neighbour {result.point.neighbour}{where} {what}: {'; '.join(texts)}; {pairs} of launches,"
        f" intervals of {neighbour.confidence:.1%}{kept}"
    )


def _held(cache_bytes: dict[str, float]) -> str:
    return ", ".join(f"{name} {octets / 2**20:.1f} MiB" for name, octets in cache_bytes.items())
