# SPDX-License-Identifier: BSD-3-Clause
"""The two network interfaces of a case on two hosts, and whether they can be taken. Changes nothing."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pytest_icbench.config.options import Options
from pytest_icbench.driver.switch.protocol import Switch
from pytest_icbench.errors import Unsupported
from pytest_icbench.host.net import nic
from pytest_icbench.model.uplink import Uplink, name_of


@dataclass(frozen=True, slots=True)
class Uplinks:
    """The uplinks of the two hosts."""

    here: Uplink
    there: Uplink


def uplinks_of(options: Options, switch: type[Switch]) -> Uplinks:
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


def check(uplink: Uplink, client: str = "") -> None:
    """Raises Unsupported if this host cannot give the NIC away.

    Args:
        client: address by which this host holds the connection to the other one.
    """
    names = [uplink.nic]
    if uplink.via == "vfio":  # as long as the kernel has it
        names = [path.name for path in Path(f"/sys/bus/pci/devices/{uplink.nic}/net").glob("*")]
    for name in names:
        nic.check(name, client=client)
