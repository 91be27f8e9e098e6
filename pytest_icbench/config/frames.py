# SPDX-License-Identifier: BSD-3-Clause
"""Parsers of the axes that say what frames are sent. Pure; every error is one sentence."""

from __future__ import annotations

from pytest_icbench.config import values
from pytest_icbench.errors import UsageError
from pytest_icbench.model.traffic import Traffic

#: How a list of whole numbers is written, for help.
SPEC = (
    "SPEC is a list (64 512 or 64,512) or a sequence, from .step .to (64 .32 .256) or from..step..to (64..32..256);"
    " the suffixes k and M are allowed"
)


def packet_sizes(text: str, where: str) -> tuple[Traffic, ...]:
    """Parses the lengths of frames that all have one. Raises UsageError."""
    return tuple(map(Traffic, values.packet_sizes(text, where)))


def mixes(text: str, where: str) -> tuple[Traffic, ...]:
    """Parses mixes with spaces between. Raises UsageError."""
    if not text.split():
        raise UsageError(f"{where}: no mix given; write simple, nfvbench, a genome (aaagb) or 64:7,594:4,1518:1")
    mixed: dict[Traffic, None] = {}
    for word in text.split():
        try:
            mixed[Traffic.of_mix(word)] = None
        except ValueError as error:
            raise UsageError(f"{where}: '{word[:60]}' is no mix: {error}") from None
    return tuple(mixed)
