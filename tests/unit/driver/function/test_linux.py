# SPDX-License-Identifier: BSD-3-Clause
"""The kernel's functions by their names: parts, rules, and what the frames of a proof have to become."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_icbench.driver.function import proof
from pytest_icbench.driver.function.function_parts import FIRST_PORT, Parts, nat_address
from pytest_icbench.driver.function.linux import LinuxFunction, ruleset, shaper_commands
from pytest_icbench.driver.function.ovs import OvsFunction
from pytest_icbench.driver.function.protocol import Ends
from pytest_icbench.model.endpoint import Address

ENDS = Ends.make(3, Address.of(3, "a"), Address.of(3, "b"))


@pytest.mark.parametrize(
    ("function", "parts"),
    [
        ("route", Parts()),
        ("nat+acl10+deny30", Parts(nat=True, rules=10, deny_percent=30)),
        ("set1000", Parts(elements=1000)),
        ("acl100+deny1", Parts(rules=100, deny_percent=1)),
        ("firewall+deny30", Parts(firewall=True, deny_percent=30)),
        ("police2M", Parts(police_pps=2_000_000)),
        ("firewall", Parts(firewall=True)),
        ("nat+firewall+table100k", Parts(nat=True, firewall=True, sessions=100_000)),
        ("shape10Mbit+nat", Parts(nat=True, shape_bits=10_000_000)),
    ],
)
def test_a_name_has_its_parts(function: str, parts: Parts) -> None:
    assert Parts.parse(function) == parts
    assert LinuxFunction.has(function)


@pytest.mark.parametrize(
    "function",
    [
        *("", "nat+nat", "acl0", "acl10k", "acl20000", "acl10+acl20", "acl10+set10", "deny30", "acl10+deny101"),
        *("route+deny30", "nat+deny30", "acl1+deny30", "set9+deny11", "nat+acl99+deny1"),
        *("police4k", "police20M", "police1Mbit", "shape1Mbit", "shape10", "shape10M", "police10k+shape10Mbit"),
        *("wire", "nat+swap", "table10k", "route+table10k", "nat+table999", "nat+table3M", "nat+table1k+table2k"),
    ],
)
def test_a_name_without_a_meaning_is_no_function(function: str) -> None:
    assert Parts.parse(function) is None


@given(st.integers(1, 10_000), st.integers(1, 100))
def test_the_share_of_acl_drop_ports_is_the_one_asked_for(rules: int, percent: int) -> None:
    acl_drops = sum(map(Parts(rules=rules, deny_percent=percent).denies, range(rules)))
    assert acl_drops == rules * percent // 100
    parts = Parts.parse(f"acl{rules}+deny{percent}")
    assert (parts is not None) == (acl_drops > 0)
    assert parts is None or any(
        probe.expected is None for probe in LinuxFunction.proof(f"acl{rules}+deny{percent}", ENDS)[0]
    )


def test_rules_are_one_after_the_other_or_one_set() -> None:
    rules = ruleset(Parts(nat=True, rules=4, deny_percent=50), nat_address(ENDS), "eth0", "eth1")
    assert [line.strip() for line in rules.splitlines() if "dport" in line] == [
        f"udp dport {FIRST_PORT} accept",
        f"udp dport {FIRST_PORT + 1} goto refused",
        f"udp dport {FIRST_PORT + 2} accept",
        f"udp dport {FIRST_PORT + 3} goto refused",
    ]
    assert 'oifname "eth1" snat to 198.18.3.16' in rules
    assert "ip saddr 100.64.0.0/10 udp sport < 1024 snat to 198.18.3.16:1024-65535" in rules
    assert 'iifname "eth1" ct state new,invalid counter name denied drop' in ruleset(
        Parts(firewall=True), nat_address(ENDS), "eth0", "eth1"
    )
    assert "udp dport vmap { 10000 : goto refused, 10001 : goto refused }" in ruleset(
        Parts(elements=2), nat_address(ENDS), "eth0", "eth1"
    )
    assert "limit rate over 20000/second burst 100 packets counter name denied drop" in ruleset(
        Parts(police_pps=20_000), nat_address(ENDS), "eth0", "eth1"
    )
    assert ruleset(Parts(), nat_address(ENDS), "eth0", "eth1") == ""
    assert (len(shaper_commands(Parts(shape_bits=10**7), "eth1")), shaper_commands(Parts(), "eth1")) == (3, [])


def test_a_router_and_a_nat_are_proven_by_what_scapy_would_see() -> None:
    scapy = pytest.importorskip("scapy.all")
    forth, back = LinuxFunction.proof("nat", ENDS)
    out = scapy.Ether(forth[0].expected)
    assert (out.src, out.dst, out[scapy.IP].src, out[scapy.IP].dst, out[scapy.IP].ttl) == (
        *("02:00:00:01:03:02", "02:00:00:00:03:02"),
        *("198.18.3.16", "198.18.3.2", 63),
    )
    answer = scapy.Ether(back[0].frame)
    assert (answer.dst, answer[scapy.IP].dst) == ("02:00:00:01:03:02", "198.18.3.16")
    assert scapy.Ether(back[0].expected)[scapy.IP].dst == "198.18.3.1"
    assert all(probe.forth for probe in forth)


def test_the_last_rule_is_in_the_proof_and_the_acl_drop_share_is_seen() -> None:
    forth, _ = LinuxFunction.proof("acl1000+deny30", ENDS)
    acl_drops = [proof.frame_number(probe.frame) for probe in forth if probe.expected is None]
    assert (len(forth), len(acl_drops), acl_drops[-1]) == (121, 31, FIRST_PORT + 999)


def test_set_rates_are_in_frames_as_the_kernel_counts_them() -> None:
    shaped, policed = LinuxFunction.rate_limit("shape10Mbit", 64), LinuxFunction.rate_limit("police2M", 64)
    assert shaped is not None
    assert round(shaped.pps) == 20833
    assert policed is not None
    assert policed.pps == 2e6
    assert LinuxFunction.rate_limit("nat", 64) is None


def test_functions_of_ovs_are_a_bump_in_the_wire() -> None:
    assert [name for name in ("firewall", "nat", "police10k", "route", "nat+acl10") if OvsFunction.has(name)] == [
        *("firewall", "nat", "police10k")
    ]
    forth, back = OvsFunction.proof("firewall", ENDS)
    assert all(probe.expected == probe.frame for probe in (*forth, *back[:20]))
    assert [probe.expected for probe in back[20:]] == [None] * 20
    assert OvsFunction.has("nat+table1k")
    assert not any(
        map(OvsFunction.has, ("nat+firewall", "police10k+table1k", "table1k", "firewall+route", "firewall+acl1"))
    )
    assert OvsFunction.visible_addresses("firewall", ENDS) == (ENDS.follower, ENDS.leader)
    assert OvsFunction.visible_addresses("nat", ENDS)[1] == Address("198.18.3.16", ENDS.leader.mac)


def test_what_is_acl_drop_in_launches_is_what_the_rules_deny() -> None:
    acl_drop = LinuxFunction.acl_drop("nat+acl1000+deny30")
    assert acl_drop is not None
    assert acl_drop.label == "30:1000:10000"
    rules = ruleset(Parts.parse("acl1000+deny30") or Parts(), nat_address(ENDS), "a", "b")
    refused = [line for line in rules.splitlines() if "goto" in line]
    assert len(refused) == acl_drop.of_flows(1000)
    assert f"udp dport {10000 + 3} goto refused" in refused[0]
    for function in ("acl10", "route", "nat", "acl10+deny30+police5k", "firewall+acl10+deny30", "firewall"):
        assert LinuxFunction.acl_drop(function) is None


def test_a_firewall_counts_announcements_apart_where_launches_account_for_acl_drop_frames() -> None:
    acl_drop = LinuxFunction.acl_drop("firewall+deny30")
    assert acl_drop is not None
    assert (acl_drop.label, acl_drop.ways) == ("30:100:5000", ("ba",))
    rules = ruleset(Parts.parse("firewall+deny30") or Parts(), nat_address(ENDS), "a", "b")
    assert rules.index('iifname "b" ct state new,invalid udp dport 9 drop') < rules.index("counter name denied drop")
    assert "dport 9" not in ruleset(Parts.parse("firewall") or Parts(), nat_address(ENDS), "a", "b")
