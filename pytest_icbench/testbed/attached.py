# SPDX-License-Identifier: BSD-3-Clause
"""Whether the containers of a topology that run already can be attached to, asked before anything is changed."""

from __future__ import annotations

import os

from pytest_icbench.config.topology.model import Topology
from pytest_icbench.driver.switch.attach.places import find_places
from pytest_icbench.driver.switch.protocol import Switch
from pytest_icbench.errors import ProvisionError
from pytest_icbench.host.session import HostSession
from pytest_icbench.model.case import Case


def why_not_attached(case: Case, driver: type[Switch], topology: Topology, session: HostSession) -> str | None:
    """Returns why a case cannot use the containers that are there, None if it can. Without root nothing is asked."""
    if os.geteuid() != 0:
        return None
    ends = [(spec.existing, spec.address) for spec in topology.endpoint_specs(case.pairs) if spec.existing is not None]
    raw = case.resolved_api(driver).startswith("raw")
    try:
        find_places(ends, port=case.resolved_port(driver), raw=raw, mtu=case.traffic.mtu, root=session.root)
    except ProvisionError as error:
        return str(error)
    return None
