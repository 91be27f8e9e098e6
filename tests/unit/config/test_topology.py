# SPDX-License-Identifier: BSD-3-Clause
"""Topology files: what is written is read again; every mistake is a sentence with its line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pytest_icbench.config.topology.fields import NAME_MAX
from pytest_icbench.config.topology.lines import line_of
from pytest_icbench.config.topology.model import Container, default
from pytest_icbench.config.topology.reading import loads, read
from pytest_icbench.config.topology.writing import to_toml
from pytest_icbench.errors import UsageError
from pytest_icbench.model.case import Case
from pytest_icbench.model.endpoint import Address
from pytest_icbench.model.endpoint_spec import default_endpoint_specs, endpoint_specs_from_json, endpoint_specs_to_json

#: Two pairs, one of them across two hosts; line numbers below are those of this text.
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
    ("old", "new", "line", "sentence"),
    [
        ('mac = "02:00:00:00:00:11"', 'mak = "x"', 22, "a container has no key 'mak'; did you mean mac?"),
        ('pairs = "2vs2"', "colour = 3", 1, "a topology has no key 'colour'; known are pairs, container"),
        ("2vs2", "4vs4", 1, "pairs says 4vs4, and the containers are 2vs2"),
        ("2vs2", "2vs3", 1, "'2vs3' has 2 on one side and 3 on the other"),
        ("2vs2", "two", 1, "'two' is not of the form NvsN, as 4vs4"),
        ("2vs2", "255vs255", 1, "more than the 254 pairs"),
        ('host = "remote"', 'host = "remot"', 26, "there is no host 'remot'; did you mean remote?"),
        ('peer = "near"', 'peer = "nears"', 28, "there is no container 'nears'; did you mean near?"),
        ('peer = "near"', 'peer = "far"', 28, "far is its own peer"),
        (
            'peer = "dpdk_c0"',
            'peer = "near"',
            7,
            "dpdk_c0 has the peer dpdk_c1, whose own is near: let each name the other",
        ),
        ('name = "far"', 'name = "dpdk_c1"', 25, "the name dpdk_c1 stands in line 16, too"),
        ('name = "far"', 'name = "f r"', 25, "name: 'f r' is not a name: 1 to 16 letters"),
        ('name = "far"', f'name = "{"f" * (NAME_MAX + 1)}"', 25, "is not a name: 1 to 16 letters"),
        ('name = "far"\n', "", 24, 'a container lacks its name: add name = "c0"'),
        ('peer = "near"\n', "", 24, "container 'far' lacks its peer: add peer = "),
        ('application = "recv"', 'application = "send"', 17, "dpdk_c0 and dpdk_c1 are peers and both ask or"),
        ('application = "recv"', 'application = "server"', 17, "to which recv belongs, and its peer dpdk_c1"),
        ('application = "recv"', 'application = "clientst"', 17, "no application 'clientst'; did you mean client?"),
        ('application = "recv"', 'application = ["recv", "send"]', 17, "recv and send are different sides"),
        ('application = "recv"', "application = []", 17, "application: the list is empty"),
        (
            'mac = "02:00:00:00:00:11"',
            'mac = "02:00:00:00:00:10"',
            22,
            "MAC address 02:00:00:00:00:10 of dpdk_c0 in line 11",
        ),
        ('mac = "02:00:00:00:00:11"', 'mac = "02:00:00:00:00:1"', 22, "'02:00:00:00:00:1' is not a MAC address"),
        ('mac = "02:00:00:00:00:11"', 'mac = "03:00:00:00:00:11"', 22, "no address of a single station"),
        (
            'mac = "02:00:00:00:00:11"',
            'mac = "02:00:00:00:02:02"',
            24,
            "far has the MAC address 02:00:00:00:02:02 of dpdk_c1 in line 22",
        ),
        ('ip = "10.0.3.11"', 'ip = "10.0.3.10"', 20, "dpdk_c1 has the IP address 10.0.3.10 of dpdk_c0 in line 9"),
        ('ip = "10.0.3.11"', 'ip = "10.0.3.300"', 20, "ip: '10.0.3.300' is no IPv4 address"),
        ('ip = "10.0.3.11"', 'ip = "224.0.0.1"', 20, "224.0.0.1 is no address of a single host"),
        ('ip = "10.0.3.11"', "ip = 7", 20, "ip: 7 is no text: write it in quotes"),
        ('ip = "10.0.3.11"', 'ip = "10.0.3.255"', 20, "dpdk_c1: 10.0.3.255 is the network's own or its broadcast"),
        (
            'ip = "10.0.3.11"',
            'ip = "10.0.4.11"',
            20,
            "dpdk_c1 (10.0.4.11/24) and its peer dpdk_c0 (10.0.3.10/24) are not in one",
        ),
        ("netmask = 24", "netmask = 33", 21, "netmask: '33' is neither a number of bits"),
        ("netmask = 24", 'netmask = "0.0.0.255"', 21, "netmask: '0.0.0.255' is neither a number of bits"),
        ("cpus = [8]", "cpus = [-1]", 19, "cpus: -1 is no CPU's number"),
        ("cpus = [8]", "cpus = [8, 8]", 19, "cpus: [8, 8] names a CPU twice"),
        ("cpus = [8]", "cpus = []", 19, "cpus: the list is empty"),
        ("cpus = [8]\n", "", 15, "dpdk_c1 has no cpus, and dpdk_c0 on the same host has"),
        ("cpus = [8]", 'pci = "4:2.0"', 19, "pci: '4:2.0' is not a PCI address, as 0000:04:02.0"),
        (
            "cpus = [8]",
            'cpus = [8]\npci = "0000:04:02.0"',
            20,
            "dpdk_c1 has the PCI address 0000:04:02.0 of dpdk_c0 in line 13",
        ),
        ("cpus = [8]", 'cpus = [8]\nsocket = "sock0"', 20, "dpdk_c1 has the socket sock0 of dpdk_c0 in line 12"),
        ("cpus = [8]", 'cpus = [8]\nsocket = "../up"', 20, "socket: '../up' is not a file's name"),
        ("cpus = [8]", 'cpus = [8]\nvf = "en/p"', 20, "vf: 'en/p' is not the name of a network interface"),
        (
            "cpus = [8]",
            'cpus = [8]\ndevice = "uio0"',
            20,
            "device: 'uio0' is not a device node of VFIO, as /dev/vfio/12",
        ),
        (GOOD, "", 1, "there are no containers"),
        (GOOD, "# nothing\ncontainer = 3\n", 2, "there are no containers"),
    ],
)
def test_every_mistake_is_one_sentence_with_its_line(old: str, new: str, line: int, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        loads(changed(old, new), "lab.toml")
    said = str(caught.value)
    assert sentence in said
    assert said.startswith(f"lab.toml line {line}: ")
    assert "\n" not in said


def test_shared_cpus_are_refused_where_nobody_shares() -> None:
    shared = changed("cpus = [8]", "cpus = [6]")
    assert loads(shared, "lab.toml").cpus(1) == {0: 4, 1: 6}
    with pytest.raises(UsageError, match=r"^lab.toml line 19: CPU 6 is dpdk_c0's \(line 8\), and with"):
        loads(shared, "lab.toml", dedicated=True)
    other_host = changed('peer = "near"', 'peer = "near"\ncpus = [8]')
    assert loads(other_host, "lab.toml", dedicated=True).containers[3].cpus == (8,)


def test_what_is_no_toml_names_the_place() -> None:
    with pytest.raises(UsageError, match=r"^lab.toml is not valid TOML: .*line 2"):
        loads('pairs = "1vs1"\nname =\n', "lab.toml")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^--icbench-topology: .*none.toml cannot be read \(No such file"):
        read(tmp_path / "none.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match=r"binary.toml is no text in UTF-8"):
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
    with pytest.raises(UsageError, match="line 26: host: there is no host"):
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


def test_seats_travel_as_json() -> None:
    endpoint_specs = loads(GOOD, "lab.toml").endpoint_specs(2)
    assert endpoint_specs_from_json(endpoint_specs_to_json(endpoint_specs)) == endpoint_specs
    assert endpoint_specs[0].function == "0000:04:02.0"


class TestLines:
    TEXT = '# head\na = 1\n\n[[t]]\nx = [\n  1,\n  2,\n]\ny = """\nq\n"""\n\n[[t]]  # second\nx = [3]\nz = {k = 1}\n'

    @pytest.mark.parametrize(
        ("path", "line"),
        [
            (("a",), 2),
            (("t",), 4),
            (("t", 0), 4),
            (("t", 0, "x"), 5),
            (("t", 0, "y"), 9),
            (("t", 1), 13),
            (("t", 1, "x"), 14),
            (("t", 1, "x", 0), 14),
            (("t", 1, "z", "k"), 15),
            (("t", 1, "missing"), 13),
            (("nowhere", 3, "x"), 1),
        ],
    )
    def test_where_a_key_stands(self, path: tuple[str | int, ...], line: int) -> None:
        assert line_of(self.TEXT, path) == line
