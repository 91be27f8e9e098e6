# SPDX-License-Identifier: BSD-3-Clause
"""The components that make network functions: built-in and third-party ones."""

from __future__ import annotations

from collections.abc import Iterable

from pytest_icbench.driver.function.forwarder import ForwarderFunction
from pytest_icbench.driver.function.gateway import GatewayFunction
from pytest_icbench.driver.function.ip_pipeline import IpPipelineFunction
from pytest_icbench.driver.function.l3fwd import L3fwdFunction
from pytest_icbench.driver.function.linux import LinuxFunction
from pytest_icbench.driver.function.ovs import OvsFunction
from pytest_icbench.driver.function.protocol import VETH, Function
from pytest_icbench.driver.function.subscriber_firewalls import SubscribersFunction
from pytest_icbench.driver.function.suricata import SuricataFunction
from pytest_icbench.driver.function.testpmd_function import TestpmdFunction
from pytest_icbench.driver.function.vpp import VppFunction
from pytest_icbench.driver.unique_names import index_by_name
from pytest_icbench.errors import Unsupported, UsageError
from pytest_icbench.model.switch_traits import SwitchTraits
from pytest_icbench.wording import alternatives

_BUILTIN: tuple[type[Function], ...] = (
    ForwarderFunction,
    LinuxFunction,
    OvsFunction,
    SubscribersFunction,
    SuricataFunction,
    GatewayFunction,
    L3fwdFunction,
    IpPipelineFunction,
    TestpmdFunction,
    VppFunction,
)

_components: dict[str, type[Function]] = {cls.name: cls for cls in _BUILTIN}


def components() -> tuple[type[Function], ...]:
    """Returns all components in their order of preference."""
    return tuple(_components.values())


def bring(classes: Iterable[type[Function]]) -> None:
    """Replaces the third-party components of this process. Raises UsageError if two have the same name."""
    known = index_by_name(_BUILTIN, classes, hook="pytest_icbench_functions", plural="components")
    _components.clear()
    _components.update(known)


def check_known(function: str, where: str) -> None:
    """Raises UsageError if no component makes a function; ``where`` begins the message."""
    if not any(cls.has(function) for cls in components()):
        known = "; ".join(f"{cls.name} has {cls.help}" for cls in components())
        raise UsageError(f"{where}: no component has the function '{function}'; {known}")


def component_for(function: str, switch: str, port: str, *, in_kernel: bool = False) -> type[Function]:
    """Returns the component that makes a function at a switch's ports. Raises Unsupported if there is none.

    Args:
        port: the port kind, resolved.
        in_kernel: whether its ports are interfaces of the kernel, which are all the same to a function.
    """
    able = [cls for cls in components() if cls.has(function)]
    for cls in able:
        if (VETH if in_kernel else port) in cls.usable_ports(function) and cls.in_switch in (None, switch):
            return cls
    reach = "; ".join(
        f"{cls.name} works in {cls.in_switch}"
        if cls.in_switch
        else f"{cls.name} works over {alternatives(cls.usable_ports(function))}"
        for cls in able
    )
    raise Unsupported(f"no component has the function '{function}' over {switch}'s {port} ports ({reach or 'none'})")


def component_behind(driver: type[SwitchTraits], port: str, function: str) -> type[Function]:
    """Returns the component that makes a function at a driver's ports. Raises Unsupported if there is none."""
    return component_for(function, driver.name, port, in_kernel=driver.is_kernel_port(port))
