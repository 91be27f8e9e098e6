# SPDX-License-Identifier: BSD-3-Clause
"""Mixes: frames of several lengths in a fixed order, never by chance. Pure; ``model.traffic`` says what follows."""

from __future__ import annotations

import re
from functools import lru_cache
from math import gcd, lcm

#: Frames of the longest cycle, which the workload's ``--sizes`` takes.
MAX_CYCLE = 1024
#: Letters of the longest genome, and the most sizes with weights: an id is also the name of a directory.
MAX_GENOME, MAX_SIZES = 64, 16
#: Mixes with a name: CSIT's 28:16:4, and that of OPNFV's NFVbench.
_NAMED = {"simple": "64:7+570:4+1518:1", "nfvbench": "64:7+594:4+1518:1"}
NAMES = tuple(_NAMED)
#: Pattern of a mix in a case's id: a name, a genome, or sizes with their weights.
LABEL = rf"{'|'.join(NAMES)}|[a-jz]+|\d+:\d+(?:\+\d+:\d+)*"
#: Lengths of the letters of a genome (RFC 6985, section 4). ``z`` is the frame of the path's MTU, here Ethernet's.
GENOME = {"a": 64, "b": 128, "c": 256, "d": 512, "e": 1024, "f": 1280, "g": 1518, "h": 2112, "i": 9000, "z": 1518}
#: The letter for frames that no path here carries.
_TOO_LONG = "j"
_WEIGHTED = re.compile(r"(\d{1,5}):(\d{1,6})", re.ASCII)


def parse(text: str, least: int, greatest: int) -> str:
    """Returns the label of a mix: ``simple``, ``nfvbench``, ``aaagb``, or ``64:7+594:4`` for ``64:7,594:4``.

    Args:
        text: what the user wrote; weights are divided by their common factor.
        least, greatest: bounds of the lengths in bytes, both included.

    Raises ValueError: the end of a sentence that begins with the text.
    """
    if text in _NAMED:
        return text
    return _weighted(text, least, greatest) if ":" in text else _genome(text)


def _weighted(text: str, least: int, greatest: int) -> str:
    weights: dict[int, int] = {}
    for part in re.split(r"[,+]", text):
        match = _WEIGHTED.fullmatch(part)
        if match is None:
            raise ValueError(f"'{part[:20]}' is no SIZE:WEIGHT; a mix is written as 64:7,594:4,1518:1")
        size, weight = int(match[1]), int(match[2])
        if not least <= size <= greatest:
            raise ValueError(f"{size} is outside {least} to {greatest} bytes (Ethernet frame with FCS)")
        if not weight:
            raise ValueError(f"{size} has weight 0; leave the size out")
        if size in weights:
            raise ValueError(f"{size} occurs twice; add its weights")
        weights[size] = weight
    if len(weights) > MAX_SIZES:
        raise ValueError(f"{len(weights)} sizes are more than {MAX_SIZES}; take fewer")
    common = gcd(*weights.values())
    if (cycle := sum(weights.values()) // common) > MAX_CYCLE:
        raise ValueError(f"the weights make a cycle of {cycle} frames; take weights whose sum is at most {MAX_CYCLE}")
    return "+".join(f"{size}:{weight // common}" for size, weight in weights.items())


def _genome(text: str) -> str:
    if _TOO_LONG in text and set(text) <= {*GENOME, _TOO_LONG}:
        raise ValueError(f"the letter {_TOO_LONG} stands for 16000 bytes, which no path here carries; leave it out")
    for letter in text:
        if letter not in GENOME:
            known = " ".join(f"{name}={size}" for name, size in GENOME.items())
            raise ValueError(
                f"it is neither {' nor '.join(NAMES)}, and as a genome of RFC 6985 it has '{letter}', which stands for"
                f" no size ({known})"
            )
    if not 0 < len(text) <= MAX_GENOME:
        raise ValueError(f"a genome has 1 to {MAX_GENOME} letters, not {len(text)}")
    return text


@lru_cache(maxsize=1000)
def sizes(label: str) -> tuple[int, ...]:
    """Returns the lengths of a cycle's frames in their order: a genome's as written, weights spread evenly.

    Raises ValueError for a label that ``parse`` does not return.
    """
    text = _NAMED.get(label, label)
    if ":" not in text:
        return tuple(GENOME[letter] for letter in _genome(text))
    parts = [(int(size), int(weight)) for size, weight in (part.split(":") for part in text.split("+"))]
    return _spread(parts)


def _spread(parts: list[tuple[int, int]]) -> tuple[int, ...]:
    """Returns each size as often as its weight says, k-th of w frames at (k + 1/2) / w of the cycle."""
    unit = lcm(*(weight for _, weight in parts))
    places = [
        ((2 * number + 1) * (unit // weight), rank, size)
        for rank, (size, weight) in enumerate(parts)
        for number in range(weight)
    ]
    return tuple(size for _, _, size in sorted(places))
