# SPDX-License-Identifier: BSD-3-Clause
"""vpp: its start-up text, the messages that are sent to it, and what becomes of errors."""

from __future__ import annotations

import multiprocessing
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_icbench.driver.switch.common import kernel, kernel_ports
from pytest_icbench.driver.switch.common.cores import in_blocks, share_queues
from pytest_icbench.driver.switch.protocol import Batches
from pytest_icbench.driver.switch.vpp import client as vpp_client
from pytest_icbench.driver.switch.vpp import switch as module
from pytest_icbench.driver.switch.vpp.config import Sockets, startup
from pytest_icbench.driver.switch.vpp.load import Load, Rounds, Sample, filled_rounds, running_ns
from pytest_icbench.driver.switch.vpp.output import linked_version, parse_batches, parse_frames, parse_rounds
from pytest_icbench.driver.switch.vpp.switch import Vpp
from pytest_icbench.errors import ProvisionError, Unsupported
from pytest_icbench.host.net.links import End
from pytest_icbench.model.case import NETDEV_APIS, SOCKET_APIS
from pytest_icbench.model.endpoint import Address, Memif, VhostUser
from tests.unit.recording_host import RecordingSession, attachments_of, program, spec_of

RUNTIME = """Thread 0 vpp_main (lcore 0)
          Name                 State         Calls          Vectors        Suspends      Clocks       Vectors/Call
bfd-process                   "event wait"            0               0               1          8.24e3            0.00
---------------
Thread 1 vpp_wk_0 (lcore 1)
  vector rates in 1.7508e4, out 1.7382e4, drop 1.2261e-1, punt 0.0000e0
          Name                 State         Calls          Vectors        Suspends      Clocks       Vectors/Call
ethernet-input                   active                 10             320            0          5.08e1           32.00
vhost-user-input                 polling          36019468             640            0          5.08e3             .02
Thread 2 vpp_wk_1 (lcore 2)
ethernet-input                   active                 10             320            0          5.08e1           32.00
"""


class _Nothing:
    def __getitem__(self, place: tuple[slice, int]) -> Any:
        return SimpleNamespace(sum_packets=lambda: 0)


class Statistics(dict[str, Any]):
    """Of interfaces that have brought no frame."""

    def __missing__(self, name: str) -> Any:
        return _Nothing()

    def disconnect(self) -> None: ...


class Client:
    """Writes down messages and answers as VPP does."""

    def __init__(self, *sockets: Path) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.refuses = self.lacks = ""
        self.workers: dict[int, int] = {}
        self.queues = 1
        self.closed = 0
        self.commands: list[str] = []

    def call(self, message: str, **arguments: Any) -> Any:
        self.calls.append((message, arguments))
        if message == self.refuses:
            raise ProvisionError(f"vpp refused {message}: No space left on device")
        if message == "show_version":
            return SimpleNamespace(version="26.06-release")
        if message == "sw_interface_rx_placement_dump":
            interface = arguments["sw_if_index"]
            placed = self.workers.get(interface, 0)
            return [SimpleNamespace(queue_id=queue, worker_id=placed, mode=2) for queue in range(self.queues)]
        made = [name for name, _ in self.calls if re.match(r"create_vhost_user|(memif|af_packet|af_xdp)_create", name)]
        return SimpleNamespace(sw_if_index=len(made))

    def knows(self, message: str) -> bool:
        return message != self.lacks

    def command(self, line: str, timeout_s: float = 0.0) -> str:
        if line == self.refuses:
            raise ProvisionError(f"vpp did not answer the command '{line}': [Errno 2] read failed")
        self.commands.append(line)
        return RUNTIME

    def statistics(self) -> Any:
        return Statistics()

    def close(self) -> None:
        self.closed += 1

    def sent(self, message: str) -> list[dict[str, Any]]:
        return [arguments for name, arguments in self.calls if name == message]


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Client:
    found = Client()
    monkeypatch.setattr(vpp_client, "VppClient", lambda *sockets: found)
    monkeypatch.setattr(vpp_client, "check_installed", lambda: None)
    monkeypatch.setattr(module, "wait_for_sockets", lambda paths, daemon, timeout_s: daemon.check())
    return found


@pytest.fixture
def session(tmp_path_factory: pytest.TempPathFactory, client: Client) -> Iterator[Any]:
    directory = tmp_path_factory.mktemp("v")
    found = RecordingSession(directory)
    found.binaries["vpp"] = binary = program(tmp_path_factory.mktemp("bin"), "vpp")
    binary.write_bytes(b"\x7fELF\0libvnet.so.26.06\0libvlib.so.26.06\0")
    yield found
    found.spawner.close()


def start(session: Any, pairs: int = 1, **changes: Any) -> tuple[Vpp, list[Any]]:
    switch = Vpp()
    return switch, switch.start(session, spec_of(session.dir, **changes), attachments_of(session.dir, pairs))


def test_everything_is_private(session: Any) -> None:
    start(session)
    (started,) = session.spawner.started
    directory = session.dir / "vpp"
    assert started.argv[-3:] == [str(session.binaries["vpp"]), "-c", str(directory / "startup.conf")]
    assert started.mount_ns  # and in it a /dev/shm of its own
    assert "mount -t tmpfs none /dev/shm" in started.argv[2]
    text = (directory / "startup.conf").read_text()
    for socket in ("api.sock", "stats.sock", "cli.sock"):
        assert str(directory / socket) in text
    assert f"runtime-dir {directory}" in text
    assert "/run/vpp" not in text


def test_start_up_text() -> None:
    sockets = Sockets(Path("/r"))
    text = startup(sockets, main_cpu=0, worker_cpus=(2, 5), plugins={"memif_plugin.so"}, fragment="l2fib { x }")
    assert "cpu { main-core 0 corelist-workers 2,5 }" in text
    assert "plugins { plugin default { disable } plugin memif_plugin.so { enable } }" in text
    assert "page-size default-hugepage }" in text
    assert text.endswith("l2fib { x }")
    assert text.count("{") == text.count("}")
    alone = startup(sockets, main_cpu=3, worker_cpus=(), plugins=(), hugepages=False)
    assert "cpu { main-core 3 }" in alone
    assert "buffers-per-numa 32768 default data-size 2048 page-size default }" in alone


def test_the_main_thread_has_a_cpu_that_no_worker_has(session: Any) -> None:
    start(session, worker_cpus=(0, 2), service_cpus=(0, 3))
    assert "cpu { main-core 3 corelist-workers 0,2 }" in (session.dir / "vpp" / "startup.conf").read_text()
    with pytest.raises(Unsupported, match="2 workers take 3 CPUs; ask for fewer switch cores"):
        start(session, worker_cpus=(0, 1), service_cpus=(0,))


def test_a_bridge_domain_that_learns(session: Any, client: Client) -> None:
    switch, endpoints = start(session, pairs=2)
    paths = [str(session.dir / "s" / f"p{index}") for index in range(4)]
    ports = client.sent("create_vhost_user_if_v2")
    assert [(port["sock_filename"], port["is_server"], port["enable_packed"]) for port in ports] == [
        (path, True, False) for path in paths
    ]
    (domain,) = client.sent("bridge_domain_add_del_v2")
    assert domain["learn"]
    assert domain["uu_flood"]
    members = [each["rx_sw_if_index"] for each in client.sent("sw_interface_set_l2_bridge")]
    assert members == [each["sw_if_index"] for each in client.sent("sw_interface_set_flags")] == [1, 2, 3, 4]
    assert client.sent("sw_interface_set_l2_xconnect") == []
    assert endpoints[0] == VhostUser(Address.of(1, "a"), paths[0])
    assert switch.facts().version == "26.06-release"


def test_each_set_of_ports_that_see_each_other_has_a_bridge_domain(session: Any, client: Client) -> None:
    attachments = [replace(item, segment=item.index // 2) for item in attachments_of(session.dir, 2)]
    switch = Vpp()
    switch.start(session, spec_of(session.dir), attachments)
    members = [(each["rx_sw_if_index"], each["bd_id"]) for each in client.sent("sw_interface_set_l2_bridge")]
    assert members == [(1, 1), (2, 1), (3, 2), (4, 2)]
    assert [domain["bd_id"] for domain in client.sent("bridge_domain_add_del_v2")] == [1, 2]
    switch.set_ageing(60)
    assert [each["bd_id"] for each in client.sent("bridge_domain_set_mac_age")] == [1, 2]


class Links:
    """Stands in for ``host.net.links``, and for ``offloads``."""

    End = End

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def create_netns(self, session: Any, suffix: str) -> str:
        return f"/run/netns/{suffix}"

    def delete_netns(self, session: Any, path: str) -> None:
        self.calls.append(("delete", path))

    def create_pair(self, session: Any, a: Any, b: Any, *, mtu: int) -> None:
        self.calls.append(("pair", a.netns, b.name, b.netns))

    def remove_link(self, name: str, netns: str) -> None:
        self.calls.append(("remove", name, netns))

    def apply(self, session: Any, places: Any, settings: Any) -> None:
        self.calls.append(("off", places[0][1], sorted(settings)))


@pytest.fixture
def links(monkeypatch: pytest.MonkeyPatch) -> Links:
    made = Links()
    for place in (module, kernel_ports, kernel):
        monkeypatch.setattr(place, "links", made)
    monkeypatch.setattr(kernel_ports, "offloads", made)
    return made


@pytest.mark.parametrize(
    ("port", "message", "plugin"),
    [
        ("afpacket", "af_packet_create_v3", "af_packet_plugin.so"),
        ("afxdp", "af_xdp_create_v3", "af_xdp_plugin.so"),
    ],
)
def test_ports_to_containers_of_the_kernel(
    session: Any, client: Client, links: Links, port: str, message: str, plugin: str
) -> None:
    switch, endpoints = start(session, port=port)
    netns, nodes = "/run/netns/r1-vpp", [f"/proc/{1000 + index}/ns/net" for index in (0, 1)]
    unfinished = ["checksum", "gso", "tso"]
    made = [[("pair", node, f"p{index}", netns), ("off", node, unfinished)] for index, node in enumerate(nodes)]
    assert links.calls == [*made[0], *made[1]]
    assert [each.get("host_if_name", each.get("host_if")) for each in client.sent(message)] == ["p0", "p1"]
    assert [endpoint.host_interface for endpoint in endpoints] == ["p0", "p1"]
    (started,) = session.spawner.started
    assert started.netns == netns
    text = (session.dir / "vpp" / "startup.conf").read_text()
    assert f"plugin default {{ disable }} plugin {plugin} {{ enable }} }}" in text
    assert "page-size default }" in text
    links.calls.clear()
    switch.stop()
    switch.stop()
    assert links.calls == [*(("remove", "eth0", node) for node in nodes), ("delete", netns)]


def test_a_vpp_without_the_plugin_of_a_port_says_so(session: Any, client: Client, links: Links) -> None:
    client.lacks = "af_xdp_create_v3"
    with pytest.raises(ProvisionError, match=r"no plugin af_xdp_plugin\.so, which port afxdp takes: build it with"):
        start(session, port="afxdp")


def test_ports_to_the_kernel_are_chosen_by_name_and_take_the_kernel_s_techniques() -> None:
    assert Vpp.ports_by_name == ("afpacket", "afxdp")
    assert Vpp.port_apis("afpacket") == (*SOCKET_APIS, *NETDEV_APIS)
    assert Vpp.port_apis("memif") == ("dpdk",)


def test_cross_connects_join_the_ports_of_a_pair(session: Any, client: Client) -> None:
    start(session, pairs=2, mode="xconnect")
    joined = [(each["rx_sw_if_index"], each["tx_sw_if_index"]) for each in client.sent("sw_interface_set_l2_xconnect")]
    assert joined == [(1, 2), (2, 1), (3, 4), (4, 3)]
    assert client.sent("bridge_domain_add_del_v2") == []


def test_packed_rings_and_memif(session: Any, client: Client) -> None:
    _, endpoints = start(session, port="vhost-user-packed")
    assert all(port["enable_packed"] for port in client.sent("create_vhost_user_if_v2"))
    assert [endpoint.packed for endpoint in endpoints] == [True, True]


def test_memif_ports_have_a_socket_each(session: Any, client: Client) -> None:
    _, endpoints = start(session, port="memif")
    path = str(session.dir / "s" / "p1")
    names = [(each["socket_id"], each["socket_filename"]) for each in client.sent("memif_socket_filename_add_del_v2")]
    assert names[1] == (2, path)
    assert [(each["socket_id"], each["role"]) for each in client.sent("memif_create_v2")] == [(1, 0), (2, 0)]
    assert endpoints[1] == Memif(Address.of(1, "b"), path, role="client")


def test_queues_are_placed_when_endpoints_are_connected(session: Any, client: Client) -> None:
    switch, _ = start(session, pairs=2, worker_cpus=(2, 5))
    assert switch.assignment() is None
    client.workers = {1: 0, 2: 0, 3: 0, 4: 1}  # as they came
    switch.connected()
    moved = {each["sw_if_index"]: each["worker_id"] for each in client.sent("sw_interface_set_rx_placement")}
    assert moved == {3: 1}  # the second sender's port
    assert switch.assignment() == {0: 2, 1: 2, 2: 5, 3: 5}
    assert {each["mode"] for each in client.sent("sw_interface_set_rx_mode")} == {1}


def test_queues_of_a_port_are_placed_on_several_workers(
    session: Any, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    switch, _ = start(session, port="memif", worker_cpus=(2, 5), queues=2)
    assert [(each["rx_queues"], each["tx_queues"]) for each in client.sent("memif_create_v2")] == [(2, 2)] * 2
    client.queues = 2
    switch.connected()
    moved = [(each["sw_if_index"], each["queue_id"], each["worker_id"]) for each in _moved(client)]
    assert moved == [(1, 1, 1), (2, 1, 1)]
    client.queues = 1
    monkeypatch.setattr(module, "_CONNECT_S", 0.0)
    with pytest.raises(ProvisionError, match=r"^vpp has no queue for the port of endpoint 0: it is not connected"):
        switch.connected()


def _moved(client: Client) -> list[dict[str, Any]]:
    return client.sent("sw_interface_set_rx_placement")


def test_ports_are_shared_senders_first() -> None:
    places = attachments_of(Path("/tmp"), 2)
    for cores, shared in (
        (1, {0: 0, 1: 0, 2: 0, 3: 0}),
        (2, {0: 0, 2: 1, 1: 0, 3: 1}),
        (4, {0: 0, 2: 1, 1: 2, 3: 3}),
        (3, {0: 0, 2: 1, 1: 2, 3: 0}),
    ):
        assert share_queues(places, cores, 1) == {port: (core,) for port, core in shared.items()}


def test_the_queues_of_a_port_go_to_one_worker_after_the_other() -> None:
    places = attachments_of(Path("/tmp"), 2)
    assert share_queues(places, 2, 2) == {0: (0, 1), 2: (0, 1), 1: (0, 1), 3: (0, 1)}
    assert share_queues(places, 3, 2) == {0: (0, 1), 2: (2, 0), 1: (1, 2), 3: (0, 1)}
    assert share_queues(places, 1, 3) == dict.fromkeys(range(4), (0, 0, 0))


def test_blocks_of_neighbouring_ports() -> None:
    assert in_blocks(4, 1) == [0, 0, 0, 0]
    assert in_blocks(8, 4) == [0, 0, 1, 1, 2, 2, 3, 3]
    assert in_blocks(4, 3) == [0, 1, 2, 2]


def test_the_users_start_up_and_commands(session: Any, client: Client) -> None:
    start(session, config={"startup": "l2fib { }", "commands": ["show version", "set logging x"]})
    assert (session.dir / "vpp" / "startup.conf").read_text().endswith("l2fib { }")
    assert client.commands == ["show version", "set logging x"]


def test_ageing_is_set_in_whole_minutes(session: Any, client: Client) -> None:
    switch, _ = start(session)
    for seconds in (Vpp.least_ageing_s or 0, 10, 150):
        switch.set_ageing(seconds)
    assert [each["mac_age"] for each in client.sent("bridge_domain_set_mac_age")] == [1, 1, 2]


def test_a_refusal_comes_with_the_words_of_vpp_and_its_log(session: Any, client: Client) -> None:
    client.refuses = "create_vhost_user_if_v2"
    with pytest.raises(ProvisionError, match=r"(?s)vpp refused create_vhost_user_if_v2: No space.*last words"):
        start(session)


def test_a_vpp_that_lives_and_does_not_answer_is_told_with_its_log(session: Any, client: Client) -> None:
    switch, _ = start(session)
    client.refuses = "show runtime"
    for question in (switch.busy, switch.batches):
        with pytest.raises(ProvisionError, match=r"(?s)^vpp did not answer the command 'show runtime'.*last words"):
            question()


def test_death_at_start_and_later(session: Any, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    switch, _ = start(session)
    (process,) = session.spawner.processes
    switch.check()
    process.code = -signal.SIGSEGV
    with pytest.raises(ProvisionError, match=r"(?s)vpp was killed by signal 11 .*last words"):
        switch.check()
    switch.stop()
    switch.stop()
    assert (process.stopped, client.closed) == (1, 1)
    begin = session.spawner.start

    def dies(*args: Any, **more: Any) -> Any:
        process = begin(*args, **more)
        process.code = 1
        return process

    monkeypatch.setattr(session.spawner, "start", dies)
    (session.dir / "vpp" / "startup.conf").unlink()
    (session.dir / "vpp").rmdir()
    with pytest.raises(ProvisionError, match=r"(?s)vpp ended with exit code 1; .*last words"):
        start(session)


def test_a_path_too_long_is_refused_before_anything_starts(session: Any, tmp_path: Path) -> None:
    deep = tmp_path / ("x" * 100)
    deep.mkdir()
    with pytest.raises(ProvisionError, match="holds 107"):
        Vpp().start(session, spec_of(deep), attachments_of(session.dir))
    assert session.spawner.started == []


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"\x7fELF libc.so.6", "is not VPP: name one with --icbench-binary vpp=PATH"),
        (b"libvlib.so.19.08\0", "is VPP 19.08, and 24.10 is the oldest that is supported"),
    ],
)
def test_what_is_no_vpp_or_too_old_is_refused(session: Any, content: bytes, told: str) -> None:
    session.binaries["vpp"].write_bytes(content)
    with pytest.raises(Unsupported, match=told):
        Vpp().probe(session, None)
    assert session.spawner.started == []


def test_probe(session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    found = Vpp().probe(session, None)
    assert (found.version, found.program) == ("26.06", str(session.binaries["vpp"]))
    monkeypatch.setattr("shutil.which", lambda name: None)
    session.binaries.clear()
    with pytest.raises(Unsupported, match=r"vpp is not installed: .*or name it with --icbench-binary vpp=PATH"):
        Vpp().probe(session, None)


def test_the_binding_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "vpp_papi", None)
    with pytest.raises(Unsupported, match=r"pip install 'pytest-icbench\[vpp\]'"):
        vpp_client.check_installed()


def test_cores_without_queues_are_refused() -> None:
    assert Vpp().needs(2, 4).pollers == 4
    with pytest.raises(Unsupported, match="at most 2 switch cores"):
        Vpp().needs(1, 3)


def test_version_and_batches_are_read() -> None:
    assert linked_version(b"\0libvlib.so.25.10\0") == "25.10"
    assert linked_version(b"ls") is None
    assert parse_batches(RUNTIME, "ethernet-input") == Batches(frames=640, calls=20)
    assert parse_batches("", "ethernet-input") == Batches(0, 0)
    found = parse_frames(RUNTIME, "ethernet-input")
    assert sum(found.values()) == 640
    assert found["vpp_wk_0"] == 320
    assert found["vpp_main"] == 0


def test_rounds_are_read_by_thread() -> None:
    assert parse_rounds(RUNTIME, "ethernet-input") == {"vpp_wk_0": Rounds(loops=36019468, dispatches=10)}
    assert parse_rounds("", "ethernet-input") == {}


def sample(loops: int, dispatches: int, ran_ns: int, ports: int = 1) -> Sample:
    return Sample(ran_ns, {"vpp_wk_0": Rounds(loops, dispatches)}, {"vpp_wk_0": ran_ns}, {"vpp_wk_0": ports})


def test_the_busy_time_is_what_empty_rounds_leave() -> None:
    load = Load()
    assert load.busy_ns(sample(0, 0, 0)) is None  # nothing is known of its rounds yet
    load.calibrate(sample(0, 0, 0), sample(1000, 0, 100_000))
    load.calibrate(sample(1000, 0, 100_000), sample(2000, 0, 300_000))  # something else took its time
    load.calibrate(sample(2000, 0, 300_000), sample(2100, 50, 300_100))  # these were not empty
    assert load.busy_ns(sample(2100, 50, 400_000)) == 0
    # 1000 rounds in a millisecond: 100 brought frames, and the 900 others took 100 ns each.
    assert load.busy_ns(sample(3100, 150, 1_400_000)) == 910_000
    assert load.busy_ns(sample(3100, 150, 1_400_000)) == 910_000
    # Rounds that are shorter than any known so far, and empty.
    assert load.busy_ns(sample(13_100, 150, 2_300_000)) == 910_000
    assert load.busy_ns(sample(13_100, 150, 2_400_000)) == 1_010_000  # not one round: it was at something else


@pytest.mark.parametrize(
    ("loops", "dispatches", "ports", "filled"),
    [(100, 30, 1, 30), (100, 200, 2, 100), (100, 100, 2, 75), (100, 300, 2, 100), (0, 5, 1, 0), (100, 0, 0, 0)],
)
def test_rounds_with_frames(loops: int, dispatches: int, ports: int, filled: float) -> None:
    assert filled_rounds(loops, dispatches, ports) == pytest.approx(filled)


def test_running_time_is_the_kernels() -> None:
    with subprocess.Popen(["sh", "-c", "while :; do :; done"]) as busy:
        try:
            deadline, seen = time.monotonic() + 30, 0
            while seen < 20_000_000 and time.monotonic() < deadline:
                seen = running_ns(busy.pid).get("sh", 0)
        finally:
            busy.kill()
    assert seen >= 20_000_000
    assert running_ns(0) == {}


@pytest.mark.parametrize("alive", [True, False])
def test_no_thread_of_a_closed_connection_is_left(monkeypatch: pytest.MonkeyPatch, alive: bool) -> None:
    """As papi has them: queues, each with a thread from its first item on, which it leaves to whoever collects them."""

    class Papi:
        def __init__(self, **arguments: Any) -> None:
            self.transport = SimpleNamespace(q=multiprocessing.Queue(), sque=multiprocessing.Queue())

        def connect(self, name: str) -> None:
            self.transport.q.put("an answer that nobody reads")

        def disconnect(self) -> None:
            self.transport.sque.put(True)
            if not alive:
                raise OSError("Sendall error")

    monkeypatch.setitem(sys.modules, "vpp_papi", SimpleNamespace(VPPApiClient=Papi))
    before = set(threading.enumerate())
    client = vpp_client.VppClient(Path("/api"), Path("/stats"))
    assert set(threading.enumerate()) > before
    client.close()
    assert set(threading.enumerate()) == before
