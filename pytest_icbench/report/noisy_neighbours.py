# SPDX-License-Identifier: BSD-3-Clause
"""What reports say of a case beside a noisy neighbour. Pure."""

from __future__ import annotations

from pytest_icbench.display.axes import short
from pytest_icbench.model.noisy_neighbour import excludes_one
from pytest_icbench.model.result import Result
from pytest_icbench.wording import counted


def effect(result: Result) -> str:
    """Returns what the noisy neighbour changed, figure by figure; empty without one, and without a number."""
    noisy_neighbour = result.frames.noisy_neighbour
    if noisy_neighbour is None or not result.is_number:
        return ""
    texts = []
    for name, ratio in noisy_neighbour.ratios.items():
        text = f"{name} {short(ratio.value)} times"
        if ratio.low is not None and ratio.high is not None:
            text += f" ({short(ratio.low)} to {short(ratio.high)})"
        texts.append(text + ("" if excludes_one(ratio) else ", no change shown"))
    what = (
        "against none"
        if noisy_neighbour.busy is None
        else (f"(busy {noisy_neighbour.busy:.0%} of its time) against none")
    )
    kept = (
        "" if noisy_neighbour.cache_bytes is None else (f"; held of the L3 cache: {_held(noisy_neighbour.cache_bytes)}")
    )
    where = "" if result.point.isolation is None else f" isolated by {result.point.isolation}"
    pairs = counted(noisy_neighbour.pairs, "pair")
    return (
        f"noisy neighbour {result.point.noisy_neighbour}{where} {what}: {'; '.join(texts)}; {pairs} of launches,"
        f" intervals of {noisy_neighbour.confidence:.1%}{kept}"
    )


def _held(cache_bytes: dict[str, float]) -> str:
    return ", ".join(f"{name} {octets / 2**20:.1f} MiB" for name, octets in cache_bytes.items())
