# SPDX-License-Identifier: BSD-3-Clause
"""How uplinks are written."""

from __future__ import annotations

import pytest

from pytest_icbench.errors import UsageError
from pytest_icbench.host.net.ethtool import limit_to_single
from pytest_icbench.model.uplink import Uplink, name_of, parse, parse_all


@pytest.mark.parametrize(
    ("text", "uplink"),
    [
        ("eth1", Uplink("eth1")),
        ("eth1+af_packet", Uplink("eth1")),
        ("enp4s0f1+af_xdp", Uplink("enp4s0f1", "af_xdp")),
        ("0000:04:00.0", Uplink("0000:04:00.0", "vfio")),
        ("04:1F.7", Uplink("0000:04:1f.7", "vfio")),
        ("eth1.100", Uplink("eth1.100")),
    ],
)
def test_what_is_written_is_read(text: str, uplink: Uplink) -> None:
    assert parse(text, "--icbench-uplink") == uplink
    assert parse(str(uplink), "again") == uplink
    assert Uplink(**uplink.to_dict()) == uplink


def test_each_host_has_one() -> None:
    found = parse_all("eth1, root@lab2=enp4s0+af_xdp", "--icbench-uplink")
    assert dict(found) == {"": Uplink("eth1"), "root@lab2": Uplink("enp4s0", "af_xdp")}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("eth1+dpdk", "'eth1+dpdk' is no uplink: write an interface (eth1), an interface for AF_XDP"),
        ("eth 1/", "'1/' is no uplink"),
        ("abcdefghijklmnopq", "is no uplink"),
        ("=eth1", "'=eth1' names no host: write HOST=NIC, or NIC for this host"),
        ("eth1 eth2", "this host has two uplinks, eth1 and eth2: name one"),
        ("lab2=eth1 lab2=eth1", "lab2 has two uplinks, eth1 and eth1"),
        (" ", "there is no NIC in ' '"),
    ],
)
def test_a_mistake_is_one_sentence(text: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_all(text, "--icbench-uplink")
    assert str(caught.value).startswith("--icbench-uplink: ")
    assert said in str(caught.value)


def test_af_xdp_gets_all_frames_by_one_queue() -> None:
    assert limit_to_single([0, 0, 1, 8]) == [0, 0, 1, 1]
    assert limit_to_single([4, 4, 0, 0]) == [1, 1, 0, 0]


def test_the_second_host_is_known_by_its_name_with_and_without_user() -> None:
    several = dict(parse_all("eth1 lab2=eth2 root@lab3=eth3", "--icbench-uplink"))
    assert name_of("root@lab2", several, "here") == name_of("lab2", several, "here") == "lab2"
    assert name_of("root@lab3", several, "here") == "root@lab3"
    assert name_of("root@lab2", {"": Uplink("eth1")}, "here") == ""


@pytest.mark.parametrize("text", ["eth1 lab3=enp4s0", "eth1 bob@lab2=enp4s0"])
def test_a_name_that_is_not_the_second_hosts_is_a_mistake(text: str) -> None:
    with pytest.raises(
        UsageError, match=r"^--icbench-uplink: it names \S+, but the second host is root@lab2: write lab2"
    ):
        name_of("root@lab2", dict(parse_all(text, "")), "--icbench-uplink")
