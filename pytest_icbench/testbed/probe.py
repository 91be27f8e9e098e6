# SPDX-License-Identifier: BSD-3-Clause
"""The check whether a host has what a switch, its endpoints or containers take. Changes nothing."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from pytest_icbench.driver.guard import make_switch, probe_node
from pytest_icbench.driver.switch.protocol import Switch, SwitchFacts
from pytest_icbench.driver.workload.version import workload_version
from pytest_icbench.errors import Unsupported, WorkloadError
from pytest_icbench.host.session import HostSession
from pytest_icbench.model.birth import FORK, Crowd
from pytest_icbench.model.case import SOCKET_APIS


def why_not(check: Callable[[], object]) -> str | None:
    """Returns the reason and the remedy for which a check raises Unsupported; None if it does not."""
    try:
        check()
    except Unsupported as error:
        return str(error)
    return None


def unsupported_reason(
    cls: type[Switch], port: str, api: str, session: HostSession, *, node: str, binary: Path | None
) -> str | None:
    """Returns why this host cannot run a switch, and the remedy; None if it can. For arguments see ``probe``."""
    return why_not(lambda: probe(cls, port, api, session, node=node, binary=binary))


def why_no_crowd(label: str, session: HostSession) -> str | None:
    """Returns why this host cannot make containers of a crowd's kind; None if it can."""
    crowd = Crowd.of(label)
    if crowd is None or crowd.kind == FORK:
        return None
    return why_not(lambda: probe_node(crowd.kind, session))


def probe(
    cls: type[Switch], port: str, api: str, session: HostSession, *, node: str, binary: Path | None
) -> SwitchFacts:
    """Returns the version and program of a switch that this host can run.

    Args:
        port: kind of its ports, resolved.
        api: technique of the endpoints.
        node: kind of nodes.
        binary: the user's binary of the switch; None for the one on PATH.

    Raises Unsupported with the reason and its remedy if it cannot be run here, ProvisionError if a program that was
    asked for its version was killed or hangs: this host may run the switch, so no case is skipped for it.
    """
    try:
        version = workload_version()
        if api not in SOCKET_APIS and version.dpdk is None:
            raise Unsupported(
                f"{cls.name} needs DPDK, but the workload was built without it: install libdpdk-dev and run make again"
            )
        if os.geteuid() == 0:  # else it is a plan, for a run with root
            probe_node(node, session)
        driver = make_switch(cls)
        switch_facts = driver.probe(session, binary)
        driver.probe_api(session, api)
        driver.probe_port(session, port)
    except WorkloadError as error:
        raise Unsupported(str(error)) from None
    return switch_facts
