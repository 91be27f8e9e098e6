# SPDX-License-Identifier: BSD-3-Clause
"""The reference link of a case over two hosts: the two NICs themselves, where they can be one. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_icbench.config.capabilities import remote_misfit
from pytest_icbench.config.options import Options
from pytest_icbench.driver.switch.protocol import Switch
from pytest_icbench.errors import Unsupported
from pytest_icbench.model.case import Case
from pytest_icbench.testbed.remote.uplinks import uplinks_of


def why_none(case: Case, reference: Case, catalogue: Mapping[str, type[Switch]], options: Options) -> str | None:
    """Returns why a case has no reference link between two hosts; None if it has one.

    Args:
        reference: the case of the link.
        catalogue: switches by name.
    """
    switch, link = catalogue[case.switch], catalogue[reference.switch]
    reason = remote_misfit(reference, link)
    if reason is None and link.family == "dpdk" and case.resolved_port(switch) not in link.ports:
        reason = f"{case.switch}'s ports are of the card that the link would be, so DPDK cannot have both alike"
    if reason is None:
        try:
            uplinks_of(options, link)
        except Unsupported as error:
            reason = str(error)
    return None if reason is None else f"no reference link: {reason}"
