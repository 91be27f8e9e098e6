# SPDX-License-Identifier: BSD-3-Clause
"""Cases that a function cannot have, or whose figures would prove nothing, are refused before anything is measured."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pytest_icbench.driver.function.forwarder import ForwarderFunction
from pytest_icbench.driver.function.linux import LinuxFunction
from pytest_icbench.driver.function.ovs import OvsFunction
from pytest_icbench.driver.function.protocol import Function
from pytest_icbench.driver.function.suricata import SuricataFunction
from pytest_icbench.driver.function.vpp import VppFunction
from pytest_icbench.model.case import Case
from pytest_icbench.model.load import Frames
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.traffic import Traffic
from pytest_icbench.testbed.feasibility import explain_misfit

LINUX, OVS, VPP, SURICATA = LinuxFunction, OvsFunction, VppFunction, SuricataFunction


@pytest.mark.parametrize(
    ("component", "function", "axes", "traffic", "sentence"),
    [
        (LINUX, "nat", {}, {"flows": "64512"}, None),
        (
            *(LINUX, "nat", {}, {"flows": "65k"}),
            (
                "function nat has 64,512 ports for flows at its pool's address, not for 65,000: take at most 64,512"
                " with --icbench-flows"
            ),
        ),
        (OVS, "nat", {}, {"flows": "1M"}, "64,512 ports for flows at its pool's address, not for 1,000,000"),
        (VPP, "nat", {}, {"flows": "65k"}, "64,512 ports for flows"),
        (LINUX, "nat", {}, {"flows": "new"}, None),
        (LINUX, "route", {}, {"flows": "1M"}, None),
        (LINUX, "police20k", {}, {"rate": Rate(50_000)}, None),
        (LINUX, "police20k", {}, {}, None),
        (
            *(LINUX, "police20k", {}, {"rate": Rate(20_000)}),
            (
                "function police20k lets 20,000 frames/s pass, and 20,000 are sent, so it would never limit any: set a"
                " lower limit, or a greater rate"
            ),
        ),
        (OVS, "police20k", {}, {"rate": Rate(5000)}, "20,000 frames/s pass, and 5,000 are sent"),
        (VPP, "police20k", {}, {"rate": Rate(5000)}, "20,000 frames/s pass, and 5,000 are sent"),
        (LINUX, "shape10Mbit", {}, {"rate": Rate(20_000)}, "lets 20,833 frames/s pass, and 20,000 are sent"),
        (LINUX, "police20k", {"dimension": "latency"}, {"rate": Rate(5000)}, None),
        (
            *(LINUX, "nat+police20k", {}, {"rate": Rate(loss_ratio=0.005)}),
            (
                "function nat+police20k lets 20,000 frames/s pass, and a search ends below that, where it limits none:"
                " take a rate above it, or max, not pdr:0.5%"
            ),
        ),
        (LINUX, "nat", {}, {"rate": Rate(loss_ratio=0.005)}, None),
        (LINUX, "acl1000+deny30", {}, {"flows": "4"}, None),
        (
            *(LINUX, "acl1000+deny30", {}, {"flows": "3"}),
            (
                "function acl1000+deny30 denies none of 3 flows, so their accounts would prove nothing: take 4 or more"
                " with --icbench-flows"
            ),
        ),
        (VPP, "acl100+deny1", {}, {"flows": "99"}, "denies none of 99 flows"),
        (LINUX, "acl1000+deny30", {}, {}, None),
        (LINUX, "acl10", {}, {"flows": "3"}, None),
        (LINUX, "acl10+deny30", {"dimension": "latency"}, {"flows": "3"}, None),
        (SURICATA, "inspect10+deny30", {}, {"flows": "10", "packet_size": 82}, None),
        (
            *(SURICATA, "inspect10+deny30", {}, {"flows": "10", "packet_size": 81}),
            (
                "function inspect10+deny30 looks for a text that 81 bytes do not hold after headers and stamp: take"
                " frames of 82 or more"
            ),
        ),
        (SURICATA, "inspect10+deny30", {}, {}, None),
        (LINUX, "firewall+deny30", {}, {"both": True}, None),
        (
            *(OVS, "firewall+deny30", {}, {}),
            (
                "function firewall+deny30 denies frames of side b, which sends none, so their accounts would prove"
                " nothing: take --icbench-direction both"
            ),
        ),
        (
            *(LINUX, "firewall+deny30", {}, {"both": True, "flows": "10"}),
            "function firewall+deny30 would deny all of side b's flows: leave --icbench-flows out",
        ),
        (LINUX, "nat", {}, {"both": True}, None),
        (LINUX, "nat", {}, {"both": True, "flows": "10"}, "nat would deny all of side b's flows"),
        (LINUX, "acl10+deny30", {}, {"both": True, "flows": "10"}, None),
        (
            *(LINUX, "route", {"chain": 2}, {"both": True}),
            (
                "function route accounts for the frames of a chain from side a to side b only: leave"
                " --icbench-direction out"
            ),
        ),
        (LINUX, "route", {}, {"both": True, "flows": "new"}, "for the frames of new flows from side a"),
        (LINUX, "acl10+deny30", {"chain": 2}, {"both": True, "flows": "10"}, "for the frames of a chain from side a"),
        (
            *(LINUX, "police20k", {}, {"both": True}),
            (
                "function police20k limits the frames of side a alone, and all would be judged by its rate: leave"
                " --icbench-direction out"
            ),
        ),
        (
            *(ForwarderFunction, "wire", {"cpu_share": "50:50", "pairs": 2}, {"both": True}),
            (
                "functions that share a CPU are compared by the frames from side a to side b: leave"
                " --icbench-direction out"
            ),
        ),
        (OVS, "firewall", {"chain": 2}, {}, "ovs makes no chains of its function 'firewall'"),
        (LINUX, "route", {}, {"header": "udp6", "packet_size": 84}, "is for IPv4 and UDP without a VLAN tag"),
        (ForwarderFunction, "wire", {}, {"header": "udp6", "packet_size": 84}, None),
        (
            *(ForwarderFunction, "swap+cost10", {"api": "udp-mmsg"}, {}),
            (
                "function swap+cost10 swaps MAC addresses, and UDP sockets take frames for their own address alone:"
                " take --icbench-api raw, raw-mmsg or xdp"
            ),
        ),
        (ForwarderFunction, "swap", {"api": "udp", "chain": 3}, {}, "swap swaps MAC addresses"),
        (ForwarderFunction, "swap", {"api": "udp", "chain": 2}, {}, None),
        (ForwarderFunction, "swap", {"api": "xdp"}, {}, None),
        (ForwarderFunction, "wire", {"api": "udp"}, {}, None),
    ],
)
def test_a_misfit_is_one_sentence(
    component: type[Function], function: str, axes: dict[str, Any], traffic: dict[str, Any], sentence: str | None
) -> None:
    rate = traffic.pop("rate", Rate())
    labels = {name: traffic.pop(name, None) for name in ("flows", "header")}
    whole = replace(Traffic(), **traffic).with_labels(labels["flows"], labels["header"])
    case = Case("veth", Frames(whole, rate=rate), function=function, **{"api": "raw", **axes})
    reported = explain_misfit(component, function, case, str(case.api))
    assert (reported is None) is (sentence is None), reported
    assert sentence is None or sentence in (reported or "")
    assert "\n" not in (reported or "")
