# SPDX-License-Identifier: BSD-3-Clause
"""Topologies of containers that run already: what is written is read again; every mistake is a sentence."""

from __future__ import annotations

import pytest

from pytest_icbench.config.topology import default, loads, to_toml
from pytest_icbench.errors import UsageError
from pytest_icbench.model.case import Case
from pytest_icbench.model.codec import decode, encode
from pytest_icbench.model.endpoint import AttachTarget, EndpointSpec

GOOD = """\
[[container]]
name = "a"
container = "docker:web1"
application = ["send", "client"]
peer = "b"
interface = "eth0"

[[container]]
name = "b"
container = "netns:/run/netns/x"
application = ["recv", "server"]
peer = "a"
ip = "10.244.0.7"
"""


def test_containers_that_run_already() -> None:
    found = loads(GOOD, "pods.toml")
    assert [container.attached for container in found.containers] == [
        AttachTarget("docker:web1", "eth0"),
        AttachTarget("netns:/run/netns/x", None, "10.244.0.7"),
    ]
    assert (found.containers[1].attached or AttachTarget("")).target == "/run/netns/x"
    assert found.attaches
    assert loads(to_toml(found), "pods.toml") == found
    specs = found.endpoint_specs(1)
    assert [decode(EndpointSpec, encode(spec), "spec") for spec in specs] == specs


@pytest.mark.parametrize("pid", ["-1", "\u0661", "", "0" * 5000 + "1"])
def test_a_number_that_is_no_process(pid: str) -> None:
    with pytest.raises(UsageError, match=r"is no process id|names nothing to attach to"):
        loads(GOOD.replace("docker:web1", f"pid:{pid}"), "pods.toml")


def test_a_result_keeps_no_address_that_is_not_the_interface_s() -> None:
    first, second = loads(GOOD, "pods.toml").treatment()["containers"]
    assert "ip" not in first
    assert "mac" not in {*first, *second}
    assert (first["container"], first["interface"], second["ip"]) == ("docker:web1", "eth0", "10.244.0.7")


def test_sockets_and_functions_have_the_topology_s_addresses() -> None:
    text = GOOD.replace('interface = "eth0"', 'socket = "/run/vhu1"\nmac = "02:00:00:00:09:09"')
    found = loads(text.replace('ip = "10.244.0.7"', 'pci = "04:02.1"'), "pods.toml")
    assert [container.attached for container in found.containers] == [
        AttachTarget("docker:web1", socket="/run/vhu1"),
        AttachTarget("netns:/run/netns/x", pci="0000:04:02.1"),
    ]
    assert found.containers[0].address.mac == "02:00:00:00:09:09"
    assert loads(to_toml(found), "pods.toml") == found


@pytest.mark.parametrize(
    ("old", "new", "place", "sentence"),
    [
        (
            "docker:web1",
            "rkt:web1",
            "[0].container",
            "'rkt:web1' names nothing to attach to: write docker:NAME, podman:N",
        ),
        ("docker:web1", "web1", "[0].container", "'web1' names nothing to attach to: write docker:NAME"),
        ("docker:web1", "docker:", "[0].container", "'docker:' names nothing to attach to"),
        ("docker:web1", "docker:--help", "[0].container", "'--help' is no name of a container"),
        ("docker:web1", "pid:4711x", "[0].container", "'4711x' is no process id: write pid:NUMBER"),
        ("docker:web1", "pid:0", "[0].container", "'0' is no process id"),
        ("docker:web1", f"pid:{'9' * 5000}", "[0].container", "is no process id"),
        ("/run/netns/x", "x", "[1].container", "'x' is no absolute path: write netns:/run/netns/x"),
        (
            'container = "docker:web1"\n',
            "",
            "[0].interface",
            'is for a container that runs already: add container = "d',
        ),
        ('container = "netns:/run/netns/x"\n', "", "[1]", "a is in a container that runs already, and b is not: give"),
        ('interface = "eth0"', 'mac = "02:00:00:00:00:10"', "[0].mac", "docker:web1 has its own, which is not changed"),
        ('interface = "eth0"', "netmask = 24", "[0].netmask", "has its own, which is not changed: leave it out"),
        ('interface = "eth0"', 'host = "remote"', "[0].host", "only this host's containers can be attached to"),
        (
            'interface = "eth0"',
            'socket = "sock0"',
            "[0].socket",
            "'sock0' is not the absolute path of a socket in dock",
        ),
        ("eth0", "eth 0", "[0].interface", "'eth 0' is not the name of a network interface"),
        (
            '"eth0"',
            '"eth0"\nsocket = "/s"',
            "[0].socket",
            "a has interface and socket, and frames go one way: leave one",
        ),
        (
            'interface = "eth0"',
            'vf = "eth0"',
            "[0].vf",
            "a VF that a container has is an interface there: write interf",
        ),
        ('"eth0"', '"eth0"\ndevice = "/dev/vfio/1"', "[0].device", "it is for a container that is made: leave it out"),
    ],
)
def test_every_mistake_is_one_sentence_with_its_place(old: str, new: str, place: str, sentence: str) -> None:
    assert GOOD.count(old) == 1
    text = GOOD.replace(old, new)
    with pytest.raises(UsageError) as caught:
        loads(text, "pods.toml")
    assert str(caught.value).startswith(f"pods.toml: container{place}: ")
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_one_interface_is_one_endpoint() -> None:
    text = GOOD.replace("netns:/run/netns/x", "docker:web1").replace('ip = "10.244.0.7"', 'interface = "eth0"')
    with pytest.raises(UsageError, match=r"container\[1\].container: b has the place docker:web1 eth0 of a \("):
        loads(text, "pods.toml")


def test_containers_that_run_already_go_with_their_own_path_only() -> None:
    topology = loads(GOOD, "pods.toml")
    assert topology.unsupported_reason(Case("attach")) is None
    assert topology.unsupported_reason(Case("veth")) == (
        "the topology's containers and their path exist already: take --icbench-switch attach"
    )
    reason = default(1).unsupported_reason(Case("attach"))
    assert str(reason).startswith("attach measures between containers that run already: name them in a topology")


def test_the_reference_link_is_made() -> None:
    topology = loads(GOOD, "pods.toml")
    assert topology.endpoint_specs_of(Case("veth")) is None
    assert [spec.attached is not None for spec in topology.endpoint_specs_of(Case("attach")) or ()] == [True, True]
