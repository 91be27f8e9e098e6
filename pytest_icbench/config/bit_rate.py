# SPDX-License-Identifier: BSD-3-Clause
"""Rates in bits per second, which are frames per second once the frame's length is known. Pure.

``10Gbps`` counts what a link carries: the frame with its FCS and 20 bytes of preamble and gap (L1), so that 10Gbps fill
a link of 10 Gbit/s, as in RFC 2544's tables and CSIT's results. ``10GbpsL2`` counts the frame alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

from pytest_icbench.config.sequences import MAX_RATE_PPS
from pytest_icbench.errors import UsageError
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.traffic import Traffic

#: Preamble, start of frame and least gap, in bytes (IEEE 802.3).
L1_BYTES = 20

_BITS = re.compile(
    r"(?P<digits>\d{1,12}(?:\.\d{1,6})?|\.\d{1,6})(?P<prefix>[kKMGT]?)(?:bps|bit|bit/s)(?P<layer>L[12])?"
)
_PREFIXES = {"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_PPS = re.compile(r"(?<=[\dkM])pps\b")


@dataclass(frozen=True, slots=True)
class BitRate:
    """A fixed offered load of each pair in bits per second.

    Attributes:
        bps: bits per second.
        layer: 1 with preamble and gap, 2 without.
        text: as the user wrote it.
    """

    bps: int
    layer: int
    text: str

    def at(self, traffic: Traffic, where: str) -> Rate:
        """Returns the frames per second of a traffic, rounded down.

        Raises:
            UsageError: it is less than one, or more than any link has.
        """
        bits = (traffic.mean_bytes + (L1_BYTES if self.layer == 1 else 0)) * 8
        pps = int(self.bps / bits)
        if pps < 1:
            raise UsageError(f"{where}: {self.text} is less than one frame of {traffic.label} a second")
        if pps > MAX_RATE_PPS:
            raise UsageError(f"{where}: {self.text} is {pps:,} frames of {traffic.label} a second; take less")
        return Rate(pps)


def bit_rate(token: str) -> BitRate | None:
    """Returns the rate that ``10Gbps``, ``500Mbit/s`` or ``10GbpsL2`` says; None for any other text."""
    match = _BITS.fullmatch(token)
    if match is None:
        return None
    bps = Decimal(match["digits"]) * _PREFIXES[match["prefix"]]
    return BitRate(int(bps), 2 if match["layer"] == "L2" else 1, token)


def without_pps(text: str) -> str:
    """Returns a text without the unit of frames per second: ``5Mpps`` is ``5M``."""
    return _PPS.sub("", text)
