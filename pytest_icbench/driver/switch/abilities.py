# SPDX-License-Identifier: BSD-3-Clause
"""The behaviour of a switch, as its driver declares it. ``pytest_icbench.conformance`` tests it. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_icbench.driver.switch.protocol import Switch
from pytest_icbench.model.switch_traits import Reach
from pytest_icbench.model.traffic import Traffic


@dataclass(frozen=True, slots=True)
class Abilities:
    """The declared behaviour of a switch: the class attributes of ``Switch`` of the same names.

    Attributes:
        jumbo: whether frames above 1518 bytes pass.
    """

    learns: bool
    broadcast: Reach
    unknown_unicast: Reach
    vlan: bool
    filters: bool
    asks_first: bool
    jumbo: bool
    least_ageing_s: float | None
    hops: int | None


def abilities(driver: type[Switch], mode: str | None = None) -> Abilities:
    """Returns what a driver declares for one of its modes.

    Args:
        mode: None for the natural one.
    """
    wire = mode is not None and mode in driver.wire_modes
    learns = driver.learns and not wire
    reach: Reach = "all" if learns else "peer"
    return Abilities(
        learns=learns,
        broadcast=reach if wire or driver.broadcast is None else driver.broadcast,
        unknown_unicast=reach if wire or driver.unknown_unicast is None else driver.unknown_unicast,
        vlan=driver.vlan,
        filters=driver.filters,
        asks_first=driver.asks_first,
        jumbo=Traffic(driver.max_frame_bytes).jumbo,
        least_ageing_s=driver.least_ageing_s if learns else None,
        hops=driver.hops,
    )
