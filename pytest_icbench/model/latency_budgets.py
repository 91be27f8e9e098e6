# SPDX-License-Identifier: BSD-3-Clause
"""Latency budgets by name: the functional splits of a radio access network. Pure.

The numbers are those of 3GPP TR 38.801 V14.0.0, annex A, table A-1: the greatest one-way latency between the two units,
and the data rates down and up for its reference cell (100 MHz, 8 layers, 32 antenna ports, 256QAM down and 64QAM up).
Of a range the strict end stands here: 1.5 of 1.5 to 10 ms, and the least rate. Split 5 has "hundreds of microseconds"
there, and split 3 a rate "lower than option 2".
"""

from __future__ import annotations

from typing import NamedTuple


class Budget(NamedTuple):
    """A functional split.

    Attributes:
        name: as in thresholds.
        between: the layers above and below it.
        one_way_ns: the greatest latency from one unit to the other.
        gbps: data rates down and up.
    """

    name: str
    between: str
    one_way_ns: float
    gbps: tuple[float, float]

    @property
    def round_trip_ns(self) -> float:
        """The limit on a round trip between the units."""
        return 2 * self.one_way_ns


SPLITS = (
    Budget("split-1", "RRC and PDCP", 10e6, (4.0, 3.0)),
    Budget("split-2", "PDCP and RLC", 1.5e6, (4.016, 3.024)),
    Budget("split-3", "high and low RLC", 1.5e6, (4.016, 3.024)),
    Budget("split-4", "RLC and MAC", 100e3, (4.0, 3.0)),
    Budget("split-5", "high and low MAC", 100e3, (4.0, 3.0)),
    Budget("split-6", "MAC and PHY", 250e3, (4.133, 5.64)),
    Budget("split-7a", "high and low PHY", 250e3, (10.1, 16.6)),
    Budget("split-7b", "high and low PHY", 250e3, (37.8, 53.8)),
    Budget("split-7c", "high and low PHY", 250e3, (10.1, 53.8)),
    Budget("split-8", "PHY and RF", 250e3, (157.3, 157.3)),
)
#: By name.
BUDGETS = {budget.name: budget for budget in SPLITS}
