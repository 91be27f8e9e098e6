# SPDX-License-Identifier: BSD-3-Clause
"""Topology files: what is written is read again; every mistake is a sentence with its place."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pytest_icbench.config.topology import NAME_MAX, Container, default, loads, read, to_toml
from pytest_icbench.errors import UsageError
from pytest_icbench.model.case import Case
from pytest_icbench.model.codec import decode, encode
from pytest_icbench.model.endpoint import Address, EndpointSpec, default_endpoint_specs
from pytest_icbench.model.load import Application

#: Two pairs, one of them across two hosts.
GOOD = """\
pairs = "2vs2"

[[container]]
name = "dpdk_c0"
host = "local"
application = "send"
peer = "dpdk_c1"
cpus = [4, 6]
ip = "10.0.3.10"
netmask = "255.255.255.0"
mac = "02:00:00:00:00:10"
socket = "sock0"
pci = "04:02.0"

[[container]]
name = "dpdk_c1"
application = "recv"
peer = "dpdk_c0"
cpus = [8]
ip = "10.0.3.11"
netmask = 24
mac = "02:00:00:00:00:11"

[[container]]
name = "far"
host = "remote"
application = ["recv", "server"]
peer = "near"

[[container]]
name = "near"
application = ["send", "client"]
peer = "far"
cpus = 10
"""


def test_a_file_is_read() -> None:
    found = loads(GOOD, "lab.toml")
    assert [container.name for container in found.containers] == ["dpdk_c0", "dpdk_c1", "near", "far"]
    first, second, near, far = found.containers
    assert first == Container(
        name="dpdk_c0",
        host="local",
        applications=("send",),
        peer="dpdk_c1",
        address=Address("10.0.3.10", "02:00:00:00:00:10", 24),
        cpus=(4, 6),
        socket="sock0",
        pci="0000:04:02.0",
    )
    assert second.address == Address("10.0.3.11", "02:00:00:00:00:11", 24)
    assert (near.cpus, far.host, far.applications) == ((10,), "remote", ("recv", "server"))
    assert (near.address, far.address) == (Address.of(2, "a"), Address.of(2, "b"))
    assert (found.pairs, found.hosts(1), found.hosts(2)) == (2, ("local",) * 2, ("local", "local", "local", "remote"))
    assert (found.is_remote(1), found.is_remote(2)) == (False, True)
    assert found.cpus(2) == {0: 4, 1: 8, 2: 10}


def changed(old: str, new: str) -> str:
    assert GOOD.count(old) == 1, old
    return GOOD.replace(old, new)


@pytest.mark.parametrize(
    ("old", "new", "place", "sentence"),
    [
        ('mac = "02:00:00:00:00:11"', 'mak = "x"', "container[1]", "there is no key 'mak'; did you mean mac?"),
        ('pairs = "2vs2"', "colour = 3", "", "there is no key 'colour'; known are container, pairs"),
        ("2vs2", "4vs4", "pairs", "it says 4vs4, and the containers are 2vs2"),
        ("2vs2", "2vs3", "pairs", "'2vs3' has 2 on one side and 3 on the other"),
        ("2vs2", "two", "pairs", "'two' is not of the form NvsN, as 4vs4"),
        ("2vs2", "255vs255", "pairs", "more than the 254 pairs"),
        ('host = "remote"', 'host = "remot"', "container[2].host", "expected local or remote, found 'remot'"),
        ('peer = "near"', 'peer = "nears"', "container[2].peer", "there is no container 'nears'; did you mean near?"),
        ('peer = "near"', 'peer = "far"', "container[2].peer", "far is its own peer"),
        (
            'peer = "dpdk_c0"',
            'peer = "near"',
            "container[0].peer",
            "dpdk_c0 has the peer dpdk_c1, whose own is near: let each name the other",
        ),
        (
            'name = "far"',
            'name = "dpdk_c1"',
            "container[2].name",
            "dpdk_c1 is the name of container[1], too: take another",
        ),
        ('name = "far"', 'name = "f r"', "container[2].name", "'f r' is not a name: 1 to 16 letters"),
        ('name = "far"', f'name = "{"f" * (NAME_MAX + 1)}"', "container[2].name", "is not a name: 1 to 16 letters"),
        ('name = "far"\n', "", "container[2]", "name is missing"),
        ('peer = "near"\n', "", "container[2]", "peer is missing"),
        (
            'application = "recv"',
            'application = "send"',
            "container[1].application",
            "dpdk_c0 and dpdk_c1 are peers and both ask or",
        ),
        (
            'application = "recv"',
            'application = "server"',
            "container[1].application",
            "so its peer dpdk_c1 has to run recv, not",
        ),
        (
            'application = "recv"',
            'application = "clientst"',
            "container[1].application[0]",
            "expected send or client or recv or server, found 'clientst'",
        ),
        (
            'application = "recv"',
            'application = ["recv", "send"]',
            "container[1].application",
            "recv and send are different sides",
        ),
        ('application = "recv"', "application = []", "container[1].application", "the list is empty"),
        (
            'mac = "02:00:00:00:00:11"',
            'mac = "02:00:00:00:00:10"',
            "container[1].mac",
            "MAC address 02:00:00:00:00:10 of dpdk_c0 (container[0]): take another",
        ),
        (
            'mac = "02:00:00:00:00:11"',
            'mac = "02:00:00:00:00:1"',
            "container[1].mac",
            "'02:00:00:00:00:1' is not a MAC address",
        ),
        (
            'mac = "02:00:00:00:00:11"',
            'mac = "03:00:00:00:00:11"',
            "container[1].mac",
            "not an address of a single station",
        ),
        (
            'mac = "02:00:00:00:00:11"',
            'mac = "02:00:00:00:02:02"',
            "container[2].mac",
            "far has the MAC address 02:00:00:00:02:02 of dpdk_c1 (container[1])",
        ),
        (
            'ip = "10.0.3.11"',
            'ip = "10.0.3.10"',
            "container[1].ip",
            "dpdk_c1 has the IP address 10.0.3.10 of dpdk_c0 (container[0])",
        ),
        ('ip = "10.0.3.11"', 'ip = "10.0.3.300"', "container[1].ip", "'10.0.3.300' is not an IPv4 address"),
        ('ip = "10.0.3.11"', 'ip = "224.0.0.1"', "container[1].ip", "224.0.0.1 is not an address of a single host"),
        ('ip = "10.0.3.11"', "ip = 7", "container[1].ip", "expected a string, found 7"),
        (
            'ip = "10.0.3.11"',
            'ip = "10.0.3.255"',
            "container[1].ip",
            "dpdk_c1: 10.0.3.255 is the network's own or its broadcast",
        ),
        (
            'ip = "10.0.3.11"',
            'ip = "10.0.4.11"',
            "container[1].ip",
            "dpdk_c1 (10.0.4.11/24) and its peer dpdk_c0 (10.0.3.10/24) are not in one",
        ),
        ("netmask = 24", "netmask = 33", "container[1].netmask", "'33' is neither a number of bits"),
        ("netmask = 24", 'netmask = "0.0.0.255"', "container[1].netmask", "'0.0.0.255' is neither a number of bits"),
        ("cpus = [8]", "cpus = [-1]", "container[1].cpus", "-1 is not a CPU's number"),
        ("cpus = [8]", "cpus = [8, 8]", "container[1].cpus", "[8, 8] names a CPU twice"),
        ("cpus = [8]", "cpus = []", "container[1].cpus", "the list is empty"),
        ("cpus = [8]\n", "", "container[1]", "dpdk_c1 has no cpus, and dpdk_c0 on the same host has"),
        ("cpus = [8]", 'pci = "4:2.0"', "container[1].pci", "'4:2.0' is not a PCI address, as 0000:04:02.0"),
        (
            "cpus = [8]",
            'cpus = [8]\npci = "0000:04:02.0"',
            "container[1].pci",
            "dpdk_c1 has the PCI address 0000:04:02.0 of dpdk_c0 (container[0])",
        ),
        (
            "cpus = [8]",
            'cpus = [8]\nsocket = "sock0"',
            "container[1].socket",
            "dpdk_c1 has the socket sock0 of dpdk_c0 (container[0])",
        ),
        ("cpus = [8]", 'cpus = [8]\nsocket = "../up"', "container[1].socket", "'../up' is not a file's name"),
        ("cpus = [8]", 'cpus = [8]\nvf = "en/p"', "container[1].vf", "'en/p' is not the name of a network interface"),
        (
            "cpus = [8]",
            'cpus = [8]\ndevice = "uio0"',
            "container[1].device",
            "'uio0' is not a device node of VFIO, as /dev/vfio/12",
        ),
        (GOOD, "", "", "there are no containers"),
        (GOOD, "# nothing\ncontainer = 3\n", "", "there are no containers"),
    ],
)
def test_every_mistake_is_one_sentence_with_its_place(old: str, new: str, place: str, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        loads(changed(old, new), "lab.toml")
    said = str(caught.value)
    assert sentence in said
    assert said.startswith(f"lab.toml: {place}: " if place else "lab.toml: ")
    assert "\n" not in said


def test_shared_cpus_are_refused_where_nobody_shares() -> None:
    shared = changed("cpus = [8]", "cpus = [6]")
    assert loads(shared, "lab.toml").cpus(1) == {0: 4, 1: 6}
    with pytest.raises(
        UsageError, match=r"^lab.toml: container\[1\].cpus: CPU 6 is dpdk_c0's \(container\[0\]\), and with"
    ):
        loads(shared, "lab.toml", dedicated=True)
    other_host = changed('peer = "near"', 'peer = "near"\ncpus = [8]')
    assert loads(other_host, "lab.toml", dedicated=True).containers[3].cpus == (8,)


def test_what_is_no_toml_names_the_place() -> None:
    with pytest.raises(UsageError, match=r"^lab.toml is not valid TOML: .*line 2"):
        loads('pairs = "1vs1"\nname =\n', "lab.toml")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^--icbench-topology: .*none.toml cannot be read \(No such file"):
        read(tmp_path / "none.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xfe")
    with pytest.raises(UsageError, match=r"binary.toml cannot be read \('utf-8' codec"):
        read(tmp_path / "binary.toml")


def test_a_result_keeps_what_the_file_says(tmp_path: Path) -> None:
    file = tmp_path / "lab.toml"
    file.write_text(GOOD)
    kept = read(file).treatment()
    assert kept["file"] == "lab.toml"
    assert len(kept["sha256"]) == 64
    assert kept["containers"][0]["pci"] == "0000:04:02.0"
    assert str(tmp_path) not in str(kept)


def test_windows_line_ends() -> None:
    with pytest.raises(UsageError, match=r"^x: container\[2\].host: expected local or remote, found 'remot'$"):
        loads(changed('host = "remote"', 'host = "remot"').replace("\n", "\r\n"), "x")


@pytest.mark.parametrize("pairs", [1, 4, 254])
@pytest.mark.parametrize("remote", [False, True])
def test_the_default_is_what_is_used_without_a_file(pairs: int, remote: bool) -> None:
    made = default(pairs, remote=remote)
    read_again = loads(to_toml(made, hints=True), "default")
    assert read_again == made
    addresses = [spec.address for spec in default_endpoint_specs(pairs)]
    assert [spec.address for spec in read_again.endpoint_specs(pairs)] == addresses
    assert made.is_remote(pairs) is remote


def test_the_hints_can_be_used() -> None:
    """A comment that is turned into a line of the file is right."""
    text = to_toml(default(1), hints=True)
    used = re.sub(r"^# (cpus|socket|pci) =", r"\1 =", text, flags=re.M)
    used = used.replace('name = "c1"', 'name = "c1"\ncpus = [1]')
    first = loads(used, "hinted").containers[0]
    assert (first.cpus, first.socket, first.pci) == ((2,), "sock0", "0000:04:02.0")


def test_cpus_of_the_default_are_the_local_ones() -> None:
    assert default(2, cpus=(1, 2, 3, 4)).cpus(2) == {0: 1, 1: 2, 2: 3, 3: 4}
    assert default(2, remote=True, cpus=(1, 2)).cpus(2) == {0: 1, 2: 2}


def test_a_larger_topology_serves_cases_with_fewer_pairs() -> None:
    topology = default(4)
    assert topology.unsupported_reason(Case("ovs", pairs=2)) is None
    assert len(topology.endpoint_specs(2)) == 4
    assert "the topology has 4 pairs, not 8: lower --icbench-pairs" in str(
        topology.unsupported_reason(Case("ovs", pairs=8))
    )


def test_applications_are_what_a_container_may_run() -> None:
    topology = loads(GOOD, "lab.toml")
    assert topology.unsupported_reason(Case("ovs", pairs=2)) is None
    reason = topology.unsupported_reason(Case("ovs", pairs=1, dimension="latency"))
    assert reason == ("the topology lets dpdk_c0 run send only, and latency takes client: add it to its application")


def test_real_applications_are_not_in_a_topology() -> None:
    reason = default(1).unsupported_reason(Case("veth", Application("redis"), dimension="application"))
    assert reason == "a topology is for the workload's frames, not for redis: leave out --icbench-topology"


def test_seats_travel_as_json() -> None:
    endpoint_specs = loads(GOOD, "lab.toml").endpoint_specs(2)
    assert [decode(EndpointSpec, encode(spec), "spec") for spec in endpoint_specs] == endpoint_specs
    assert endpoint_specs[0].function == "0000:04:02.0"
