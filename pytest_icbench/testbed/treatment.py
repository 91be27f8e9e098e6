# SPDX-License-Identifier: BSD-3-Clause
"""The treatment in results: versions, configuration and CPUs of what is tested. Reports show how it differs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_icbench.config.options import Options
from pytest_icbench.config.switches import SwitchConfig
from pytest_icbench.config.topology import Topology
from pytest_icbench.driver.guard import node_treatment
from pytest_icbench.driver.node.cgroups import SessionGroup
from pytest_icbench.driver.workload.executable import workload_path
from pytest_icbench.driver.workload.workload_version import workload_version
from pytest_icbench.errors import DriverFault, ProvisionError, WorkloadError
from pytest_icbench.host import host_facts
from pytest_icbench.host.host_facts import read_program, sha256
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.root import Root
from pytest_icbench.model.candidate import OldVersion, Program
from pytest_icbench.model.case import Case
from pytest_icbench.model.endpoint import ATTACH
from pytest_icbench.model.function_facts import function_key
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.text_files import TomlFile
from pytest_icbench.model.uplink import Uplink
from pytest_icbench.testbed.case_rig import Rig
from pytest_icbench.version import package_version


def common_treatment(root: Root, options: Options, hugepage_kib: int, user_topology: Topology | None) -> dict[str, Any]:
    """Returns the part that is the same for all cases of a run.

    ``user_topology``: the user's endpoints; None for the default ones.
    """
    version = workload_version()
    return {
        **host_facts.treatment(root),
        "pytest_icbench": package_version(),
        "workload": version.workload,
        "workload_build": version.build,
        "dpdk": version.dpdk,
        "hugepage_kib": hugepage_kib,
        "topology": None if user_topology is None else user_topology.treatment(),
        "uplink_mbps": uplink_mbps(root, options.uplink.get("")),
    }


def kind_treatment(node: str) -> dict[str, Any]:
    """Returns the part that is the same for all cases between nodes of a kind."""
    return {"lxc": None, **node_treatment(node), "node": node}


def uplink_mbps(root: Root, uplink: Uplink | None) -> int | None:
    """Returns the speed of a NIC's link in Mbit/s, before a rig takes the NIC.

    None without a NIC, if its driver does not report a speed, and for an interface without a device: a veth reports
    10 Gbit/s, to which it is not limited.
    """
    if uplink is None:
        return None
    of_pci = [f"{name}/speed" for name in root.glob(f"/sys/bus/pci/devices/{uplink.nic}/net/*")]
    device = f"/sys/class/net/{uplink.nic}"
    for name in of_pci or ([f"{device}/speed"] if root.exists(f"{device}/device") else []):
        speed = root.read_int(name)
        if speed is not None and speed > 0:
            return speed
    return None


def precedence(session: HostSession, case: Case) -> str:
    """Returns the precedence of the pollers over other processes, and names those in foreign groups, which lack it."""
    text = session.precedence
    if text.startswith("none"):
        return text
    text += ", but the switch, which runs already" if case.switch == ATTACH else ""
    return text + (", but the containers, which systemd has placed" if SessionGroup.get(session).astray else "")


def function_treatment(rig: Rig, user: Mapping[str, TomlFile]) -> dict[str, Any]:
    """Returns the part on the network functions of a rig; empty without any.

    ``user``: the user's own configurations by component.
    """
    if not rig.function_facts:
        return {}
    first = rig.function_facts[0]
    acl_drops = [terms.acl_drop.label for terms in rig.terms if rig.case.denies_flows and terms.acl_drop is not None]
    file = user.get(first.component)
    return {
        "function": {
            "component": first.component,
            "version": first.version,
            "config": {**first.config, **({"acl_drops": acl_drops} if acl_drops else {})},
            "user_config": None if file is None else {"file": file.path.name, "sha256": file.sha256},
            "cpus": list(rig.placement.functions),
        }
    }


def rig_treatment(rig: Rig, user_config: Any, program: Path | None = None) -> dict[str, Any]:
    """Returns the part that depends on a rig: its switch, and where everything runs.

    Args:
        user_config: the user's own configuration of the switch, as results keep it.
        program: the switch's, if it has one: another build can have the same version.
    """
    placement = rig.placement
    return {
        "endpoints": sorted({endpoint.kind for endpoint in rig.endpoints}),
        "precedence": precedence(rig.session, rig.case),
        "idle": rig.session.idle if rig.case.polls else "halt",
        "switch": {
            "version": rig.switch_facts.version,
            "config": dict(rig.switch_facts.config),
            "binary": program and f"{program.name} (sha256 {(sha256(program) or 'unknown')[:12]})",
            "user_config": user_config,
        },
        "cpus": {
            "switch": list(placement.switch),
            "endpoints": list(placement.endpoints),
            "service": list(placement.service),
            "numa_node": placement.numa_node,
            "yield_every": placement.yield_every,
            "where": placement.where,
            **({"noisy_neighbour": list(placement.noisy_neighbour)} if placement.noisy_neighbour else {}),
        },
    }


def add_ports(measurement: Measurement, rig: Rig) -> Measurement:
    """Adds the CPU of each port: some switches give queues to workers only when endpoints connect."""
    ports = None
    try:
        ports = rig.assignment()
    except DriverFault:
        raise
    except ProvisionError:
        pass  # the switch has died, which the measurement reports
    cpus = {**measurement.treatment["cpus"], "ports": ports}
    return replace(measurement, treatment={**measurement.treatment, "cpus": cpus})


def read_software(
    rig: Rig,
    binaries: Mapping[str, Path],
    program: Path | None,
    workload: Path | None,
    configs: Mapping[str, SwitchConfig],
) -> OldVersion:
    """Returns the software of a rig.

    Args:
        binaries: the user's paths by name.
        program: the switch's, None for a switch of the kernel.
        workload: a candidate's; None: the installed one.
        configs: the user's configurations, by switch and ``function:COMPONENT``.
    """
    first = rig.function_facts[0] if rig.function_facts else None
    function = None
    if first is not None:
        # A driver does not report where it found a program that the user has not named.
        function = read_program(binaries.get(first.component), first.version) or Program(version=first.version)
    return OldVersion(
        switch=read_program(program, rig.switch_facts.version),
        # The reference link has the same endpoints, so their libraries say nothing about the switch.
        workload=read_program(workload or _workload(), own_libraries=False),
        function=function,
        component=None if first is None else first.component,
        config=_config(configs.get(rig.case.switch)),
        function_config={} if first is None else _config(configs.get(function_key(first.component))),
        kernel=rig.session.root.read("/proc/sys/kernel/osrelease"),
    )


def _config(config: SwitchConfig | None) -> dict[str, Any]:
    return {} if config is None else {"sha256": config.file.sha256, "values": dict(config.values)}


def _workload() -> Path | None:
    try:
        return workload_path()
    except WorkloadError:
        return None
