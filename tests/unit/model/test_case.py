# SPDX-License-Identifier: BSD-3-Clause
"""Ids and keys of cases."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_icbench.driver.switch.registry import builtin_switches
from pytest_icbench.model.api_techniques import APIS
from pytest_icbench.model.case import RX_MODES, Case
from pytest_icbench.model.load import Frames
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.traffic import WAITS, Traffic

names = st.sampled_from(["ovs", "linux-bridge", "veth", "basicfwd"])
cases = st.builds(
    Case,
    switch=names,
    pairs=st.integers(1, 254),
    load=st.builds(
        Frames,
        traffic=st.builds(Traffic, st.integers(64, 9216)),
        burst=st.integers(1, 1024),
        rate=st.builds(Rate, st.none() | st.integers(1, 10**9)),
    ),
    dimension=st.sampled_from(["throughput", "latency"]),
    port=st.none() | st.sampled_from(["memif", "vhost-user-packed"]),
    mode=st.none() | st.sampled_from(["old", "new"]),
    switch_cores=st.none() | st.integers(1, 9),
    rx_mode=st.none() | st.sampled_from(RX_MODES),
    api=st.none() | st.sampled_from(APIS),
    blocking=st.booleans(),
    wait=st.none() | st.sampled_from(WAITS),
    check_payload=st.booleans(),
    remote=st.booleans(),
    node=st.none() | st.sampled_from(["vm", "lxc+vm"]),
)


@pytest.mark.parametrize(
    ("case", "name"),
    [
        (Case("ovs"), "ovs-64B-b32-1vs1-Rmax"),
        (
            Case("linux-bridge", Frames(burst=64, rate=Rate(1_000_000)), api="raw-mmsg"),
            "linux-bridge-raw-mmsg-64B-b64-1vs1-R1M",
        ),
        (Case("testpmd", port="memif", switch_cores=2, pairs=4), "testpmd+memif-c2-64B-b32-4vs4-Rmax"),
        (
            Case("veth", Frames(rate=Rate(1500)), api="udp", blocking=True, check_payload=True, remote=True),
            "veth-udp-blocking-touch-64B-b32-1vs1-R1500-remote",
        ),
        (Case("ovs", mode="new"), "ovs:new-64B-b32-1vs1-Rmax"),
        (Case("linux-bridge", node="vm"), "linux-bridge-64B-b32-1vs1-Rmax-vm"),
        (Case("ovs", node="lxc+podman", remote=True), "ovs-64B-b32-1vs1-Rmax-lxc+podman-remote"),
        (Case("veth", api="raw", wait="adaptive", check_payload=True), "veth-raw-adaptive-touch-64B-b32-1vs1-Rmax"),
    ],
)
def test_ids(case: Case, name: str) -> None:
    assert case.id == name


@pytest.mark.parametrize(
    ("pps", "text"), [(None, "max"), (1, "1"), (999, "999"), (1000, "1k"), (1_500_000, "1500k"), (20_000_000, "20M")]
)
def test_rates(pps: int | None, text: str) -> None:
    assert str(Rate(pps)) == text


@given(cases)
def test_an_id_has_only_characters_that_k_can_match(case: Case) -> None:
    assert re.fullmatch(r"[\w:+.-]+", case.id, re.ASCII)


@given(cases, cases)
def test_two_cases_with_one_id_differ_in_nothing_but_the_dimension(one: Case, other: Case) -> None:
    assert (one.id == other.id) == (replace(one, dimension="throughput") == replace(other, dimension="throughput"))


def test_files_have_the_keys_that_they_always_had() -> None:
    case = Case("vpp", Frames(traffic=Traffic(512), rate=Rate(1000)), mode="xconnect", candidate="new")
    assert list(case.to_dict().items()) == [
        ("switch", "vpp"), ("packet_size", 512), ("burst", 32), ("pairs", 1), ("rate", 1000),
        ("dimension", "throughput"), ("port", None), ("mode", "xconnect"), ("switch_cores", None), ("api", None),
        ("blocking", False), ("check_payload", False), ("remote", False), ("candidate", "new"),
    ]  # fmt: skip


@given(cases)
def test_a_case_survives_as_json_data(case: Case) -> None:
    assert Case.from_dict(case.to_dict()) == case


@given(cases, cases)
def test_rig_keys_can_be_sorted_and_ignore_the_traffic(one: Case, other: Case) -> None:
    assert sorted([one.rig_key, other.rig_key])
    assert one.rig_key == replace(one, check_payload=True, dimension="latency").sending(burst=3, rate=Rate(7)).rig_key


def test_a_case_is_resolved_by_its_switch() -> None:
    ovs = builtin_switches()["ovs"]
    plain = Case("ovs")
    assert (plain.resolved_port(ovs), plain.resolved_api(ovs), plain.resolved_cores(ovs)) == ("vhost-user", "dpdk", 1)
    chosen = Case("ovs", port="memif", api="udp", switch_cores=3)
    assert (chosen.resolved_port(ovs), chosen.resolved_api(ovs), chosen.resolved_cores(ovs)) == ("memif", "udp", 3)
