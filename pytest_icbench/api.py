# SPDX-License-Identifier: BSD-3-Clause
"""The public names for scenarios, drivers and conformance tests; everything else in the package can move.

A driver is imported at the start of every pytest run in its environment. Therefore this module imports only the names
that drivers need; other names are imported on their first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_icbench.driver.application.protocol import Application, ProcessSpec, Program, ProofFailed, SendRequest
from pytest_icbench.driver.node.netns import NetnsNode
from pytest_icbench.driver.node.protocol import Node, NodeFacts, NodeSpec
from pytest_icbench.driver.switch.common.daemon import Daemon, DaemonSwitch
from pytest_icbench.driver.switch.common.kernel import (
    KernelSwitch,
    kernel_release,
    node_end,
    port_counters,
    probe_links,
    probe_netdev_api,
    remove_ends,
    veth_endpoint,
)
from pytest_icbench.driver.switch.common.userspace_ports import (
    MEMIF,
    VHOST_USER,
    VHOST_USER_PACKED,
    make_endpoint,
    serving_device,
    socket_path,
    wait_for_sockets,
)
from pytest_icbench.driver.switch.dpdk.dpdk_process import (
    DaemonOptions,
    eal_arguments,
    eal_version,
    find_binary,
    start_daemon,
)
from pytest_icbench.driver.switch.protocol import (
    Attachment,
    Batches,
    Busy,
    ForwardingBehaviour,
    Needs,
    PortCounters,
    Switch,
    SwitchFacts,
    SwitchSpec,
    read_behaviour,
)
from pytest_icbench.errors import (
    IcbenchError,
    Invalid,
    ProvisionError,
    Regression,
    Unsupported,
    UsageError,
    WorkloadError,
)
from pytest_icbench.host.findings import Finding
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.net.links import End as LinkEnd
from pytest_icbench.host.net.links import configure as configure_link
from pytest_icbench.host.net.links import create_netns, delete_netns
from pytest_icbench.host.process import Process
from pytest_icbench.model.api_techniques import NETDEV_APIS, SOCKET_APIS
from pytest_icbench.model.application import ApplicationLoad, Bounds, ClientFigures
from pytest_icbench.model.case import Case, Family
from pytest_icbench.model.endpoint import Address, Endpoint, Memif, Nic, Pci, Veth, VhostUser
from pytest_icbench.model.path import FramePath
from pytest_icbench.model.rig import FILES, Question
from pytest_icbench.model.routes import own_address
from pytest_icbench.model.switch_traits import Kind, Reach
from pytest_icbench.model.traffic import FCS_BYTES, HEADERS_BYTES, MAX_FRAME_BYTES, Traffic, carries_jumbo
from pytest_icbench.model.uplink import Uplink, Via

if TYPE_CHECKING:
    from pytest_icbench.driver.switch.registry import builtin_switches
    from pytest_icbench.gate.judge import Judgement
    from pytest_icbench.model.measurement import Measurement
    from pytest_icbench.plugin.fixture import Icbench
    from pytest_icbench.testbed.exchange import Exchange, WatchedLaunch, watched_launch

__all__ = [  # noqa: RUF022 - grouped by use
    # Scenarios
    "Case",
    "Icbench",
    "Judgement",
    "Measurement",
    "Traffic",
    # Outcomes
    "IcbenchError",
    "Invalid",
    "ProvisionError",
    "Regression",
    "Unsupported",
    "UsageError",
    "WorkloadError",
    # A switch driver, its arguments and its results
    "MAX_FRAME_BYTES",
    "Address",
    "Attachment",
    "Batches",
    "Busy",
    "Endpoint",
    "Family",
    "Finding",
    "FramePath",
    "HostSession",
    "Kind",
    "Memif",
    "Needs",
    "Nic",
    "NodeFacts",
    "Pci",
    "PortCounters",
    "Process",
    "Reach",
    "Switch",
    "SwitchFacts",
    "SwitchSpec",
    "Uplink",
    "Veth",
    "VhostUser",
    "Via",
    "carries_jumbo",
    # A kind of node
    "NetnsNode",
    "Node",
    "NodeSpec",
    # An application
    "FILES",
    "Application",
    "ApplicationLoad",
    "SendRequest",
    "Bounds",
    "ClientFigures",
    "Program",
    "Question",
    "ProcessSpec",
    "ProofFailed",
    # Switches of the kernel
    "KernelSwitch",
    "NETDEV_APIS",
    "SOCKET_APIS",
    "LinkEnd",
    "configure_link",
    "create_netns",
    "delete_netns",
    "kernel_release",
    "node_end",
    "port_counters",
    "probe_links",
    "probe_netdev_api",
    "remove_ends",
    "veth_endpoint",
    # Switches that are a process
    "MEMIF",
    "VHOST_USER",
    "VHOST_USER_PACKED",
    "Daemon",
    "DaemonOptions",
    "DaemonSwitch",
    "eal_arguments",
    "eal_version",
    "make_endpoint",
    "find_binary",
    "serving_device",
    "socket_path",
    "start_daemon",
    "wait_for_sockets",
    # Conformance
    "FCS_BYTES",
    "HEADERS_BYTES",
    "ForwardingBehaviour",
    "Exchange",
    "WatchedLaunch",
    "read_behaviour",
    "own_address",
    "builtin_switches",
    "watched_launch",
]

if not TYPE_CHECKING:  # with this function a type checker would accept any name

    def __getattr__(name: str) -> object:
        """Imports a name on its first use: one that needs the plugin or the measuring code."""
        match name:
            case "Icbench":
                from pytest_icbench.plugin.fixture import Icbench

                return Icbench
            case "Judgement":
                from pytest_icbench.gate.judge import Judgement

                return Judgement
            case "Measurement":
                from pytest_icbench.model.measurement import Measurement

                return Measurement
            case "Exchange":
                from pytest_icbench.testbed.exchange import Exchange

                return Exchange
            case "WatchedLaunch":
                from pytest_icbench.testbed.exchange import WatchedLaunch

                return WatchedLaunch
            case "watched_launch":
                from pytest_icbench.testbed.exchange import watched_launch

                return watched_launch
            case "builtin_switches":
                from pytest_icbench.driver.switch.registry import builtin_switches

                return builtin_switches
            case _:
                raise AttributeError(f"module 'pytest_icbench.api' has no attribute '{name}'")
