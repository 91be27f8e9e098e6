# SPDX-License-Identifier: BSD-3-Clause
"""Endpoints in containers that someone else has started: frames pass, and nothing of theirs is changed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import pytest_icbench
from pytest_icbench.config.topology import loads
from pytest_icbench.driver.switch.attach import resolve_endpoints
from pytest_icbench.errors import ProvisionError
from pytest_icbench.host.host_session import RUN_DIR, HostSession
from pytest_icbench.host.net.attached_links import Reached, find_barrier, interfaces
from pytest_icbench.host.process import run
from pytest_icbench.host.recover import recover
from pytest_icbench.host.root import Root
from pytest_icbench.measure.launch.launcher import run_launch
from pytest_icbench.model.case import Case, Dimension
from pytest_icbench.model.load import Frames
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.settings import Settings
from pytest_icbench.testbed.undo_kinds import UNDO_KINDS
from tests.host import by_hand
from tests.host.by_hand import ByHand, changes, states, topology, two
from tests.host.node_tools import clean, session, tidy_snapshot
from tests.host.rig_tools import built

__all__ = ["clean", "session"]  # fixtures

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="namespaces need root")

BRIEF = Settings(warmup_s=0.0, duration_s=0.2, window_s=0.05, drain_s=0.1)


@pytest.fixture
def pair() -> Iterator[tuple[ByHand, ByHand]]:
    with two() as pair:
        yield pair


def by_pid(pair: tuple[ByHand, ByHand], more: str = "") -> str:
    return topology(f"pid:{pair[0].pid}", f"pid:{pair[1].pid}", more)


def passes(session: HostSession, text: str, case: Case, seen: list[set[str]], pair: tuple[ByHand, ByHand]) -> None:
    """Runs a launch, in which every frame arrives. ``seen`` gets the neighbours at its end."""
    with built(session, case, node="netns", endpoint_specs=loads(text, "lab.toml").endpoint_specs(1)) as rig:
        launch = run_launch(rig, case, BRIEF)
        seen += [end.neighbours() for end in pair]
        assert {process for end in pair for process in by_hand.in_netns(end.netns)} > {end.pid for end in pair}
    # A host that others use may stop the sender for longer than a launch bears; frames pass all the same.
    assert launch.invalid in (None, "clock"), launch.evidence
    assert launch.pairs[0].received == launch.pairs[0].sent > 0


@pytest.mark.parametrize("dimension", ["throughput", "latency"])
@pytest.mark.parametrize("api", ["udp-mmsg", "raw-mmsg"])
def test_containers_are_as_before(
    session: HostSession, pair: tuple[ByHand, ByHand], api: str, dimension: Dimension
) -> None:
    before, seen = states(pair), list[set[str]]()
    case = Case("attach", Frames(burst=1, rate=Rate(2000)), dimension=dimension, api=None if api == "udp-mmsg" else api)
    passes(session, by_pid(pair), case, seen, pair)
    assert changes(before, pair) == []
    # That neighbours are gone is not for want of any: the kernel answers raw frames too, which no socket awaits.
    assert seen == [{pair[1].ip}, {pair[0].ip}]


def test_a_neighbour_that_was_there_stays(session: HostSession, pair: tuple[ByHand, ByHand]) -> None:
    mac = pair[1].run_ip("-br", "link", "show", "eth0").split()[2]
    pair[0].run_ip("neigh", "add", pair[1].ip, "lladdr", mac, "dev", "eth0", "nud", "permanent")
    before = pair[0].run_ip("neigh")
    passes(session, by_pid(pair), Case("attach", Frames(rate=Rate(2000))), [], pair)
    assert pair[0].run_ip("neigh") == before != ""
    assert pair[1].neighbours() == set()


@pytest.fixture
def named_namespaces() -> Iterator[Path]:
    """The directory of ``ip netns``, which ip(8) mounts over itself with its first namespace and leaves so."""
    directory = Path("/run/netns")
    was_there, was_mounted = directory.exists(), directory.is_mount()
    run(["ip", "netns", "add", "attach-first"], timeout_s=5)
    run(["ip", "netns", "delete", "attach-first"], timeout_s=5)
    yield directory
    if not was_mounted:
        run(["umount", str(directory)], timeout_s=5)
    if not was_there:
        directory.rmdir()


def test_a_namespace_by_its_path(named_namespaces: Path, session: HostSession, pair: tuple[ByHand, ByHand]) -> None:
    name = named_namespaces / "attach-by-hand"
    run(["ip", "netns", "attach", name.name, str(pair[0].pid)], timeout_s=5)
    try:
        before = states(pair)
        text = topology(f"netns:{name}", f"pid:{pair[1].pid}", f'interface = "eth0"\nip = "{pair[0].ip}"')
        passes(session, text, Case("attach", Frames(rate=Rate(2000))), [], pair)
        assert name.exists()
        assert changes(before, pair) == []
    finally:
        run(["ip", "netns", "delete", name.name], timeout_s=5)


def test_a_router_between_pods(session: HostSession) -> None:
    with two(routed=True) as pair:
        before = states(pair)
        passes(session, by_pid(pair), Case("attach", Frames(rate=Rate(2000))), [], pair)
        assert changes(before, pair) == []
        with pytest.raises(ProvisionError, match=r"through the router 10.78.0.254, where raw frames do not go: take"):
            places(by_pid(pair), raw=True)


def test_a_container_that_ends_is_named(session: HostSession, pair: tuple[ByHand, ByHand]) -> None:
    case, specs = Case("attach", Frames(rate=Rate(2000))), loads(by_pid(pair), "lab.toml").endpoint_specs(1)
    with built(session, case, node="netns", endpoint_specs=specs) as rig:
        rig.check()
        os.kill(pair[1].pid, signal.SIGKILL)
        while Path(f"/proc/{pair[1].pid}").exists():
            continue
        with pytest.raises(ProvisionError, match=rf"^pid:{pair[1].pid} has ended during the run: start it"):
            rig.check()


HARNESS = """
import sys
from pytest_icbench.config.topology import loads
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.measure.launch.launcher import run_launch
from pytest_icbench.model.case import Case
from pytest_icbench.model.load import Frames
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.settings import Settings
from pytest_icbench.testbed.undo_kinds import UNDO_KINDS
from tests.host.rig_tools import built

case = Case("attach", Frames(rate=Rate(2000)))
with HostSession(UNDO_KINDS) as session:
    specs = loads(sys.argv[1], "lab.toml").endpoint_specs(1)
    with built(session, case, node="netns", endpoint_specs=specs) as rig:
        run_launch(rig, case, Settings(warmup_s=0.0, duration_s=0.2, window_s=0.05, drain_s=0.1))
        print("measured", flush=True)
        run_launch(rig, case, Settings(warmup_s=0.0, duration_s=60, window_s=0.05, drain_s=0.1))
"""


def test_containers_are_as_before_after_a_kill(clean: None, pair: tuple[ByHand, ByHand]) -> None:
    tidy_snapshot()
    before = states(pair)
    command = [sys.executable, "-c", HARNESS, by_pid(pair)]
    places = [str(Path(pytest_icbench.__file__).parents[1]), str(Path(__file__).parents[2])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(places)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, cwd="/") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "measured\n"
        process.kill()
    assert [end.neighbours() for end in pair] == [{pair[1].ip}, {pair[0].ip}]
    recovery = recover(RUN_DIR, UNDO_KINDS)
    assert (recovery.failures, len(recovery.undone)) == ([], 1)
    assert changes(before, pair) == []


def places(text: str, *, port: str = "interface", raw: bool = False, mtu: int = 1500) -> None:
    ends = [(spec.attached, spec.address) for spec in loads(text, "lab.toml").endpoint_specs(1) if spec.attached]
    resolve_endpoints(ends, port=port, raw=raw, mtu=mtu, root=Root())


def without_address(pair: tuple[ByHand, ByHand]) -> str:
    pair[0].run_ip("address", "flush", "dev", "eth0")
    return by_pid(pair, 'interface = "eth0"')


def down(pair: tuple[ByHand, ByHand]) -> str:
    pair[1].run_ip("link", "set", "eth0", "down")
    by_hand.settle(pair[0], "eth0", "DOWN")
    by_hand.settle(pair[1], "eth0", "DOWN")
    return by_pid(pair, 'interface = "eth0"')


def ambiguous(pair: tuple[ByHand, ByHand]) -> str:
    pair[0].run_ip("link", "add", "eth1", "type", "veth", "peer", "name", "eth2")
    for name, ip in (("eth1", "10.79.0.1/24"), ("eth2", "10.79.1.1/24")):
        pair[0].run_ip("address", "add", ip, "dev", name)
        pair[0].run_ip("link", "set", name, "addrgenmode", "none", "up")
    by_hand.settle(pair[0], "eth1")
    by_hand.settle(pair[0], "eth2")
    return by_pid(pair)


def elsewhere(pair: tuple[ByHand, ByHand]) -> str:
    return ambiguous(pair) and by_pid(pair, 'interface = "eth1"')


def no_route(pair: tuple[ByHand, ByHand]) -> str:
    pair[0].run_ip("route", "flush", "dev", "eth0")
    return by_pid(pair)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            lambda pair: topology("pid:4194305", f"pid:{pair[1].pid}"),
            "pid:4194305: there is no process 4194305: it has",
        ),
        (
            lambda pair: topology("netns:/run/netns/gone", f"pid:{pair[1].pid}"),
            "gone: there is no such file: `ip netns",
        ),
        (
            lambda pair: topology("netns:/etc/hostname", f"pid:{pair[1].pid}"),
            "netns:/etc/hostname: network namespace /et",
        ),
        (
            lambda pair: topology(f"pid:{pair[0].pid}", f"netns:{pair[0].netns}"),
            "are in the same network namespace, as",
        ),
        (lambda pair: by_pid(pair, 'interface = "eth7"'), "there is no interface eth7; it has eth0"),
        (
            lambda pair: by_pid(pair, 'ip = "10.9.9.9"\ninterface = "eth0"'),
            "eth0 does not have 10.9.9.9, but 10.78.0.1",
        ),
        (without_address, "its interface eth0 has no IPv4 address"),
        (down, "its interface eth0 is down or has no carrier"),
        (ambiguous, "several interfaces are up with an IPv4 address (it has eth0, eth2, eth1): name one by interface"),
        (elsewhere, "its route to pid:"),
        (no_route, "has no route to pid:"),
    ],
)
def test_what_cannot_be_attached_to_is_one_sentence(pair: tuple[ByHand, ByHand], text: object, sentence: str) -> None:
    assert callable(text)
    written = text(pair)
    before = states(pair)
    with pytest.raises(ProvisionError) as caught:
        places(written)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)
    assert changes(before, pair) == []


def test_frames_that_are_too_long(pair: tuple[ByHand, ByHand]) -> None:
    with pytest.raises(
        ProvisionError, match=r"eth0 has an MTU of 1500 bytes, and frames need 9198: take .* up to 1518$"
    ):
        places(by_pid(pair), mtu=9198)


@pytest.mark.parametrize(
    ("port", "more", "sentence"),
    [
        (
            "vhost-user",
            'socket = "/run/none.sock"',
            "/run/none.sock cannot be used (No such file or directory): start the swi",
        ),
        ("memif", 'socket = "/etc/hostname"', "/etc/hostname is not a socket"),
        ("vhost-user", "", "port vhost-user needs socket in the topology: add it"),
        ("vhost-user", 'interface = "eth0"', "gives it interface, not socket: take --icbench-port interface"),
        ("interface", 'socket = "/run/s"', "gives it socket, not interface: take --icbench-port vhost-user, vhost"),
        ("vfio", 'pci = "ffff:04:02.0"', "there is no PCI function ffff:04:02.0 here"),
    ],
)
def test_sockets_and_functions_that_are_not_there(
    pair: tuple[ByHand, ByHand], port: str, more: str, sentence: str
) -> None:
    with pytest.raises(ProvisionError) as caught:
        places(by_pid(pair, more), port=port)
    assert sentence in str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize("port", ["vhost-user", "memif"])
def test_sockets_of_a_switch_that_runs(session: HostSession, tmp_path: Path, port: str) -> None:
    """The sockets are in the containers' file system, which is found through their processes."""
    if (program := shutil.which("dpdk-testpmd")) is None:
        pytest.skip("there is no dpdk-testpmd")
    with two() as pair:
        sockets = [tmp_path / "s0", tmp_path / "s1"]
        devices = [
            f"net_vhost{n},iface={path},queues=1"
            if port == "vhost-user"
            else f"net_memif{n},role=server,id=0,socket={path},socket-abstract=no"
            for n, path in enumerate(sockets)
        ]
        command = ["stdbuf", "-oL", program, "--no-shconf", "--no-telemetry", "--no-pci", "--no-huge", "-m", "512"]
        command += ["-l", "0,1", *(f"--vdev={device}" for device in devices)]
        command += ["--", "--forward-mode=io", "--auto-start", "--total-num-mbufs=4096", "--disable-link-check"]
        text = by_pid(pair, f'socket = "{sockets[0]}"').replace('peer = "a"', f'peer = "a"\nsocket = "{sockets[1]}"')
        before = states(pair)
        # Where testpmd leaves a directory.
        environment = {**os.environ, "RUNTIME_DIRECTORY": str(tmp_path)}
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        ) as switch:
            try:
                assert switch.stdout is not None
                # It listens before it serves, and memif refuses a client then.
                assert any(line.startswith("Press enter") for line in switch.stdout)
                passes(session, text, Case("attach", Frames(rate=Rate(2000)), port=port, api="dpdk"), [], pair)
                assert switch.poll() is None
            finally:
                switch.kill()
        assert changes(before, pair) == []


@pytest.fixture
def bridged(named_namespaces: Path) -> Iterator[list[Reached]]:
    """Two named namespaces, and a third one with the bridge between them."""
    names = ["attach-a", "attach-b", "attach-bridge"]

    def ip(words: str) -> None:
        run(["ip", *words.split()], timeout_s=5)

    for name in names:
        ip(f"netns add {name}")
    try:
        ip("-n attach-bridge link add br0 type bridge")
        ip("-n attach-bridge link set br0 up")
        for number, name in enumerate(names[:2], 1):
            ip(f"-n attach-bridge link add p{number} type veth peer name eth0 netns {name}")
            ip(f"-n attach-bridge link set p{number} master br0 up")
            ip(f"-n {name} address add 10.79.0.{number}/24 dev eth0")
            ip(f"-n {name} link set eth0 addrgenmode none up")
        yield [reached(named_namespaces / name, f"10.79.0.{number}") for number, name in enumerate(names[:2], 1)]
    finally:
        for name in names:
            ip(f"netns delete {name}")


def reached(netns: Path, ip: str) -> Reached:
    (interface,) = interfaces(str(netns))
    return Reached(netns.name, str(netns), interface, ip)


_BRIDGED = "net.bridge.bridge-nf-call-iptables=1"
_DROP = "table {family} f {{ chain c {{ type filter hook {hook} priority 0; policy drop; }}; }}"


@pytest.mark.parametrize(
    ("where", "argv", "sentence"),
    [
        ("attach-bridge", ["true"], None),
        ("attach-bridge", ["ip", "link", "set", "p2", "mtu", "1400"], "64 bytes pass from attach-a to attach-b, and"),
        ("attach-b", ["ip", "link", "set", "eth0", "address", "SAME"], "have the same MAC address"),
        (
            "attach-bridge",
            ["nft", _DROP.format(family="bridge", hook="forward")],
            "chain c of table bridge f (policy drop) filters what /run/netns/attach-bridge routes",
        ),
        (
            "attach-b",
            ["nft", _DROP.format(family="ip", hook="input")],
            "chain c of table ip f (policy drop) filters what attach-b receives: accept UDP from 10.79.0.1",
        ),
        (
            "attach-bridge",  # as Docker leaves a host
            ["sh", "-c", f"sysctl -qw {_BRIDGED} && nft '{_DROP.format(family='ip', hook='forward')}'"],
            "filters what /run/netns/attach-bridge routes and, by bridge-nf-call-iptables, bridges: accept",
        ),
        ("attach-bridge", ["ip", "link", "set", "p2", "down"], "no datagram of 64 bytes passes"),
    ],
    ids=["nothing", "mtu", "mac", "forward", "input", "bridged", "down"],
)
def test_what_stops_packets_is_named(
    bridged: list[Reached], named_namespaces: Path, where: str, argv: list[str], sentence: str | None
) -> None:
    words = [bridged[0].interface.mac if word == "SAME" else word for word in argv]
    run(words, timeout_s=5, netns=str(named_namespaces / where))
    a, b = (reached(Path(end.netns), end.ip) for end in bridged)
    barrier = find_barrier(a, b, 1500)
    assert barrier is None if sentence is None else sentence in (barrier or ""), barrier
