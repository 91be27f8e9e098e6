# SPDX-License-Identifier: BSD-3-Clause
"""Which component makes a function, and what users read if none does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import make_dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from pytest_icbench.config.axes import parse_functions
from pytest_icbench.config.capabilities import unsupported_reason
from pytest_icbench.config.cases import expand, parse_marker
from pytest_icbench.config.options import Options
from pytest_icbench.driver.function import registry
from pytest_icbench.driver.function.forwarder import ForwarderFunction
from pytest_icbench.driver.function.function_parts import Parts
from pytest_icbench.driver.function.linux import LinuxFunction
from pytest_icbench.driver.function.protocol import Ends, FunctionSpec
from pytest_icbench.driver.guard import make_function
from pytest_icbench.driver.switch.registry import builtin_switches
from pytest_icbench.errors import DriverFault, Unsupported, UsageError
from pytest_icbench.measure.reference import reference_case
from pytest_icbench.model.case import Case, rig_group
from pytest_icbench.model.endpoint import Address, VhostUser
from pytest_icbench.model.text_files import TomlFile
from pytest_icbench.plugin.third_party import check_functions

SWITCHES = builtin_switches()
ENDS = Ends.make(1, Address.of(1, "a"), Address.of(1, "b"))


@pytest.fixture
def own() -> Iterator[None]:
    """The built-in components again after the test."""
    yield
    registry.bring(())


def cases(**marker: object) -> list[Case]:
    return expand(parse_marker((), {"switch": "linux-bridge", **marker}, "x"), Options(), SWITCHES, "x")


def test_a_function_is_an_axis_with_a_pair_for_each_side_by_side() -> None:
    found = cases(functions=["none", "wire", "cost1000+swap"], function_count=[1, 3])
    assert [case.id for case in found] == [
        "linux-bridge-64B-b32-1vs1-Rmax",
        "linux-bridge-via:wire-64B-b32-1vs1-Rmax",
        "linux-bridge-via:wire-64B-b32-3vs3-Rmax",
        "linux-bridge-via:cost1000+swap-64B-b32-1vs1-Rmax",
        "linux-bridge-via:cost1000+swap-64B-b32-3vs3-Rmax",
    ]
    assert len({case.rig_key for case in found}) == len({rig_group(f"a::b[{case.id}]") for case in found}) == 5
    assert [Case.from_dict(case.to_dict()) for case in found] == found


def test_a_chain_is_an_axis_of_functions_in_a_row() -> None:
    found = cases(functions=["none", "wire"], chain=[1, 5], function_count=2)
    assert [case.id for case in found] == [
        "linux-bridge-64B-b32-1vs1-Rmax",
        "linux-bridge-via:wire-64B-b32-2vs2-Rmax",
        "linux-bridge-via:wire-x5-64B-b32-2vs2-Rmax",
    ]
    assert len({case.rig_key for case in found}) == len({rig_group(f"a::b[{case.id}]") for case in found}) == 3
    assert [Case.from_dict(case.to_dict()) for case in found] == found
    assert ["chain" in case.to_dict() for case in found] == [False, False, True]
    assert reference_case(found[2], None, family="kernel") == Case("linux-bridge", pairs=2)
    options = Options(chain=(3,))
    marker = parse_marker((), {"switch": "veth", "functions": "wire"}, "x")
    assert [case.chain for case in expand(marker, options, SWITCHES, "x")] == [3]


@pytest.mark.parametrize("chain", [0, 101])
def test_a_chain_of_no_function_or_of_too_many_is_refused(chain: int) -> None:
    with pytest.raises(UsageError, match=rf"chain: {chain} is outside 1 to 100 functions in a row"):
        cases(functions="wire", chain=chain)


def test_functions_of_a_chain_see_their_neighbours() -> None:
    a, b = Address.of(1, "a"), Address.of(1, "b")
    row = [Ends.make(1, a, b, hop) for hop in (1, 2, 3)]
    assert len({address.mac for ends in row for address in (ends.inner, ends.outer)}) == 6
    assert Ends.make_chain("wire", ForwarderFunction, row) == row
    routers = Ends.make_chain("route", LinuxFunction, row)
    assert [(ends.leader.ip, ends.follower.ip) for ends in routers] == [(a.ip, b.ip)] * 3
    assert [ends.leader.mac for ends in routers] == [a.mac, row[0].outer.mac, row[1].outer.mac]
    assert [ends.follower.mac for ends in routers] == [row[1].inner.mac, row[2].inner.mac, b.mac]


def test_the_reference_is_the_path_without_the_function() -> None:
    case = Case("veth", function="wire", pairs=2)
    assert reference_case(case, None, family="kernel") == Case("veth", pairs=2)


@pytest.mark.parametrize("text", ["Nat", "nat++acl", "nat-acl", "+nat", "nat acl/1"])
def test_a_name_that_no_id_can_hold_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"is not a function: write parts joined by \+"):
        parse_functions(text, "--icbench-function")


def test_a_part_is_made_by_those_alone_that_list_it(monkeypatch: pytest.MonkeyPatch) -> None:
    more = make_dataclass("More", [("mirror", bool, False)], bases=(Parts,), frozen=True)
    read = vars(Parts)["parse"].__func__

    def parse(function: str) -> Any:
        words = function.split("+")
        parts = read(more, "+".join(word for word in words if word != "mirror"))
        return parts and replace(parts, mirror="mirror" in words)

    monkeypatch.setattr(Parts, "parse", parse)
    for known in ("nat", "acl10", "police20k", "firewall", "subscribers5+firewall", "inspect+nat", "vpp+nat"):
        assert any(cls.has(known) for cls in registry.components())
        assert not any(cls.has(f"{known}+mirror") for cls in registry.components())
    monkeypatch.setattr(LinuxFunction, "makes", (*LinuxFunction.makes, "mirror"))
    assert [cls.name for cls in registry.components() if cls.has("nat+mirror")] == ["linux"]


def test_an_unknown_function_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(UsageError, match=r"x: icbench marker: functions: no component has the function 'nix'; .*wire"):
        check_functions(Options(), [(Case("veth", function="nix"), "x")])
    with pytest.raises(UsageError, match="--icbench-function: no component has the function 'dropx'"):
        check_functions(Options(function=("dropx",)), [])


def test_a_configuration_for_nothing_is_refused() -> None:
    file = TomlFile(Path("f.toml"), "0", {"nix": 1})
    with pytest.raises(UsageError, match="there is no component 'forwarde'; did you mean forwarder"):
        check_functions(Options(function_config={"forwarde": file}), [])
    with pytest.raises(UsageError, match=r"f.toml: forwarder has no key 'nix'"):
        check_functions(Options(function_config={"forwarder": file}), [])


def test_impairments_are_no_functions() -> None:
    assert all(map(ForwarderFunction.has, ("wire", "cost10", "swap+cost10", "delay10us")))
    assert not any(map(ForwarderFunction.has, ("", "drop10", "cost10+dup2", "reorder2", "wire+swap", "cost")))


def test_how_a_forwarder_runs_is_no_part_of_what_it_does() -> None:
    assert all(map(ForwarderFunction.has, ("wire+noyield", "cost10+noyield+ring128", "ring4096+swap", "wire+ring64")))
    assert not any(
        map(
            ForwarderFunction.has,
            ("noyield", "ring128", "wire+ring100", "wire+ring8192", "wire+noyield+noyield", "wire+ring64+ring128"),
        )
    )
    assert [ForwarderFunction.mode(name) for name in ("wire+noyield", "ring64+swap+cost30")] == [None, "swap+cost30"]
    assert ForwarderFunction.least_cycles("ring64+cost30+noyield") == 30
    said = "'wire.ring128' over linux-bridge's veth ports .forwarder works over vhost-user, vhost-user-packed or memif"
    with pytest.raises(Unsupported, match=said):
        registry.component_for("wire+ring128", "linux-bridge", "veth")
    assert registry.component_for("wire+ring128", "testpmd", "vhost-user") is ForwarderFunction


def test_a_forwarder_is_started_with_its_rings_and_yields(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ICBENCH_WORKLOAD", "/bin/true")

    def argv(function: str, **more: Any) -> str:
        inner, outer = (
            VhostUser(address, f"/run/{name}", **more)
            for name, address in zip("ab", (ENDS.inner, ENDS.outer), strict=True)
        )
        node: Any = object()
        spec = FunctionSpec(function, 1, ENDS, inner, outer, node, None, node, (0, 1), 1, 5, 1500, tmp_path)
        return " ".join(ForwarderFunction()._argv(spec, inner, outer))

    assert "--yield 1" in argv("wire")
    assert argv("wire").count("queue_size=256") == 2
    assert "--cost 30 --yield 0" in argv("cost30+noyield+ring1024")
    assert argv("cost30+noyield+ring1024").count("queue_size=1024") == 2
    assert "queue_size" not in argv("wire", role="back-end")
    with pytest.raises(Unsupported, match=r"^wire\+ring64: .*--icbench-ring"):
        argv("wire+ring64", role="back-end")


def test_ports_that_no_component_works_at_are_reported_of() -> None:
    with pytest.raises(Unsupported, match="no component has the function 'wire' over sriov's vfio ports"):
        registry.component_for("wire", "sriov", "vfio")


def test_all_interfaces_of_the_kernel_are_alike_to_a_function() -> None:
    assert registry.component_for("nat", "ovs", "afpacket", in_kernel=True) is LinuxFunction
    assert registry.component_for("route", "sriov", "vf", in_kernel=True) is LinuxFunction
    assert [
        (switch, port)
        for switch, driver in SWITCHES.items()
        for port in driver.ports
        if driver.segments and driver.is_kernel_port(port) and port != "veth"
    ] == [
        *(("ovs", port) for port in ("afpacket", "afxdp", "afxdp-nonpmd", "tap")),
        *(("vpp", port) for port in ("afpacket", "afxdp", "tap")),
        ("sriov", "vf"),
    ]


def test_only_who_routes_has_addresses_of_its_own() -> None:
    assert all(map(LinuxFunction.has_addresses, ("route", "nat", "acl10+deny30", "firewall")))
    assert not any(map(ForwarderFunction.has_addresses, ("wire", "cost100", "swap")))


def test_the_ports_of_functions_count_among_a_switchs_pairs() -> None:
    case = Case("testpmd", pairs=9, function="wire")
    assert "at most 16 pairs of ports (including the functions'), not 18" in str(
        unsupported_reason(case, SWITCHES["testpmd"], 256)
    )


def test_a_component_from_elsewhere_cannot_take_a_name(own: None) -> None:
    class Other(ForwarderFunction):
        pass

    with pytest.raises(UsageError, match="two components have the name 'forwarder'"):
        registry.bring([Other])


def test_a_component_that_fails_is_named() -> None:
    class Broken(ForwarderFunction):
        name = "broken"

        def check(self) -> None:
            raise KeyError("nix")

    with pytest.raises(DriverFault, match=r"function 'broken': check\(\) raised KeyError: 'nix'"):
        make_function(Broken).check()


def test_two_swaps_are_none() -> None:
    forth, _ = ForwarderFunction.proof("swap", replace(ENDS, hops=2))
    assert all(probe.expected == probe.frame for probe in forth)


def test_a_swap_is_proven_by_its_addresses_and_a_cost_by_its_cycles() -> None:
    forth, back = ForwarderFunction.proof("swap", ENDS)
    assert all(probe.expected and probe.expected[:6] == probe.frame[6:12] for probe in (*forth, *back))
    assert (forth[0].forth, back[0].forth, len(forth)) == (True, False, 20)
    assert [ForwarderFunction.least_cycles(name) for name in ("wire", "swap+cost30")] == [0, 30]
