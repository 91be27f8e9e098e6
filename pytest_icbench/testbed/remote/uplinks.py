# SPDX-License-Identifier: BSD-3-Clause
"""The two network interfaces of a case on two hosts, and whether they can be taken. Changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pytest_icbench.config.capabilities import remote_misfit
from pytest_icbench.config.options import Options
from pytest_icbench.driver.switch.protocol import Switch
from pytest_icbench.errors import Unsupported
from pytest_icbench.host.net import nic
from pytest_icbench.model.case import Case
from pytest_icbench.model.uplink import Uplink, name_of


@dataclass(frozen=True, slots=True)
class Uplinks:
    """The uplinks of the two hosts."""

    here: Uplink
    there: Uplink


def find_uplinks(options: Options, switch: type[Switch]) -> Uplinks:
    """Returns the uplinks that the user named. Without a name for the second host's, it has the name of this one's.

    Raises Unsupported if none was named, or the switch cannot have an uplink of that kind.
    """
    here = options.uplink.get("")
    if here is None:
        raise Unsupported(
            "the case needs the network interface that leads to the second host: name it with --icbench-uplink"
        )
    there = options.uplink[name_of(options.remote or "", options.uplink, "--icbench-uplink")]
    for uplink in (here, there):
        if uplink.via not in switch.uplinks:
            raise Unsupported(
                f"{switch.name} cannot have the uplink {uplink}: it takes {', '.join(switch.uplinks) or 'none'}"
            )
    return Uplinks(here, there)


def check_uplink(uplink: Uplink, client: str = "") -> None:
    """Raises Unsupported if this host cannot give the NIC away.

    ``client``: address by which this host holds the connection to the other one.
    """
    names = [uplink.nic]
    if uplink.via == "vfio":  # as long as the kernel has it
        names = [path.name for path in Path(f"/sys/bus/pci/devices/{uplink.nic}/net").glob("*")]
    for name in names:
        nic.check(name, client=client)


def explain_no_reference(
    case: Case, reference: Case, catalogue: Mapping[str, type[Switch]], options: Options
) -> str | None:
    """Returns why a case has no reference link between two hosts; None if it has one.

    Args:
        reference: the case of the link.
        catalogue: switches by name.
    """
    switch, link = catalogue[case.switch], catalogue[reference.switch]
    reason = remote_misfit(reference, link)
    if reason is None and link.family == "dpdk" and case.resolved_port(switch) not in link.ports:
        reason = f"{case.switch}'s ports use the card that the link would take, so DPDK cannot have both"
    if reason is None:
        try:
            find_uplinks(options, link)
        except Unsupported as error:
            reason = str(error)
    return None if reason is None else f"no reference link: {reason}"
