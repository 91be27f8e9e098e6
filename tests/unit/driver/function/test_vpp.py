# SPDX-License-Identifier: BSD-3-Clause
"""VPP's functions: their names, the lines and rules that make them, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_icbench.driver.function import registry
from pytest_icbench.driver.function.function_parts import Parts
from pytest_icbench.driver.function.linux import LinuxFunction
from pytest_icbench.driver.function.protocol import Ends, FunctionSpec
from pytest_icbench.driver.function.vpp import VppFunction, access_list, commands
from pytest_icbench.errors import Unsupported
from pytest_icbench.model.endpoint import Address, Memif

ENDS = Ends.make(3, Address.of(3, "a"), Address.of(3, "b"))


@pytest.mark.parametrize(
    ("function", "port", "component"),
    [
        ("nat", "veth", "linux"),
        ("vpp+nat", "veth", "vpp"),
        ("nat+acl10+deny30", "memif", "vpp"),
        ("police20k+vpp", "memif", "vpp"),
        ("route", "vhost-user", "l3fwd"),
    ],
)
def test_vpp_is_chosen_by_its_part_and_over_memif(function: str, port: str, component: str) -> None:
    assert registry.component_for(function, "x", port).name == component


@pytest.mark.parametrize("function", ["vpp", "vpp+vpp+nat", "vpp+set10", "vpp+shape10Mbit", "vpp+firewall", "vpp+wire"])
def test_what_vpp_does_not_have_is_not_its(function: str) -> None:
    assert not VppFunction.has(function)


def test_too_many_sessions_for_its_heap_are_not_its() -> None:
    assert VppFunction.has("vpp+nat+table500k")
    assert not VppFunction.has("vpp+nat+table501k")


def test_ports_that_it_has_not_are_said() -> None:
    with pytest.raises(Unsupported, match=r"'vpp\+route' over ovs's vhost-user ports \(vpp works over veth or memif\)"):
        registry.component_for("vpp+route", "ovs", "vhost-user")


def test_its_proof_is_that_of_any_such_function() -> None:
    for function in ("route", "nat", "acl100+deny30"):
        assert VppFunction.proof(f"vpp+{function}", ENDS) == LinuxFunction.proof(function, ENDS)
        assert VppFunction.visible_addresses(f"vpp+{function}", ENDS) == LinuxFunction.visible_addresses(function, ENDS)


def test_a_router_has_permanent_neighbours_and_the_way_back_to_all_flows() -> None:
    assert commands(Parts(), ENDS, "host-eth0", "host-eth1", 64) == [
        "set interface ip address host-eth0 198.19.3.1/32",
        "set ip neighbor static host-eth0 198.18.3.1 02:00:00:00:03:01",
        "ip route add 198.18.3.1/32 via 198.18.3.1 host-eth0",
        "set interface ip address host-eth1 198.19.3.2/32",
        "set ip neighbor static host-eth1 198.18.3.2 02:00:00:00:03:02",
        "ip route add 198.18.3.2/32 via 198.18.3.2 host-eth1",
        "ip route add 100.64.0.0/10 via 198.18.3.1 host-eth0",
    ]


def test_nat_has_the_pools_address_and_a_table() -> None:
    assert commands(Parts(nat=True, sessions=5000), ENDS, "m1", "m2", 64)[7:] == [
        "nat44 plugin enable sessions 5000",
        "nat44 add address 198.18.3.16",
        "nat44 add static mapping udp local 198.18.3.1 9 external 198.18.3.16 9",
        "set interface nat44 in m1 out m2",
    ]
    assert "nat44 plugin enable" in commands(Parts(nat=True), ENDS, "m1", "m2", 64)


@pytest.mark.parametrize(
    ("pps", "frame_bytes", "cir", "burst"),
    [(20_000, 64, 9600, 16_000), (1_000_000, 1518, 12_112_000, 7_570_000)],
)
def test_a_policer_counts_the_bytes_of_frames_without_fcs(pps: int, frame_bytes: int, cir: int, burst: int) -> None:
    added, applied = commands(Parts(police_pps=pps), ENDS, "m1", "m2", frame_bytes)[7:]
    assert added.startswith(f"policer add name icbench rate kbps cir {cir} cb {burst} type 1r2c ")
    assert added.endswith("exceed-action drop violate-action drop")
    assert applied == "policer input name icbench m1"
    limit = VppFunction.rate_limit(f"police{pps}", frame_bytes)
    assert limit is not None
    assert limit.pps == pps


def test_an_access_list_denies_its_share_and_lets_all_else_pass() -> None:
    rules = access_list(Parts(rules=10, deny_percent=30))
    acl_drops = [rule["dstport_or_icmpcode_first"] for rule in rules if not rule["is_permit"]]
    assert acl_drops == [10_003, 10_006, 10_009]
    assert all(rule["dstport_or_icmpcode_first"] == rule["dstport_or_icmpcode_last"] for rule in rules[:-1])
    last = rules[-1]
    assert (last["is_permit"], last["proto"], last["dstport_or_icmpcode_last"]) == (1, 0, 65535)


def test_a_policer_of_a_mix_is_refused_before_anything_starts(tmp_path: Path) -> None:
    any_: Any = object()
    inner, outer = Memif(ENDS.inner, "/run/a"), Memif(ENDS.outer, "/run/b")
    spec = FunctionSpec("police20k", 3, ENDS, inner, outer, any_, None, any_, (0, 1, 2, 3), 1, 0, 1500, tmp_path)
    with pytest.raises(Unsupported, match="VPP's policer counts bytes"):
        VppFunction().start(any_, replace(spec, sizes=(64, 64, 570)))


def test_its_files_are_those_below_the_programs_prefix(tmp_path: Path) -> None:
    binary = tmp_path / "vpp" / "bin" / "vpp"
    binary.parent.mkdir(parents=True)
    binary.write_bytes(b"libvlib.so.26.06\0")
    binary.chmod(0o755)
    session: Any = SimpleNamespace(binaries={"vpp": binary})
    assert VppFunction.directories(session) == (tmp_path / "vpp",)
    assert VppFunction().probe(session, "route").version == "VPP 26.06"
    binary.write_bytes(b"ls")
    with pytest.raises(Unsupported, match="is not VPP: name one with --icbench-binary vpp=PATH"):
        VppFunction().probe(session, "route")
