# SPDX-License-Identifier: BSD-3-Clause
"""ovs: the sequence of its commands, and what becomes of errors."""

from __future__ import annotations

import re
import signal
from pathlib import Path
from typing import Any

import pytest

from pytest_icbench.driver.switch.ovs.userspace_datapath import OpenVSwitch
from pytest_icbench.driver.switch.protocol import Busy
from pytest_icbench.errors import ProvisionError, Unsupported
from pytest_icbench.model.endpoint import VhostUser
from tests.unit.driver.switch.ovs_host import Host, commands, host, rxqs, session, start
from tests.unit.recording_host import attachments_of, spec_of

__all__ = ["host", "session"]  # fixtures


def test_database_and_sockets_are_private(session: Any) -> None:
    start(session)
    database, daemon = session.spawner.started
    directory = str(session.dir)
    assert database.argv[:3] == [
        f"{directory}/bin/ovsdb-server",
        f"{directory}/conf.db",
        f"--remote=punix:{directory}/db.sock",
    ]
    assert daemon.argv[:2] == [f"{directory}/sbin/ovs-vswitchd", f"unix:{directory}/db.sock"]
    assert (database.netns, daemon.netns) == (None, "/netns/x")
    for started in (database, daemon):
        assert started.cpus == [0, 1]  # its PMD threads move to theirs by themselves
        assert f"--unixctl={directory}" in " ".join(started.argv)
        for variable in ("OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR", "OVS_SYSCONFDIR"):
            assert started.env[variable] == directory
    for tool in ("ovs-vsctl", "ovs-ofctl"):
        for words in commands(session, tool):
            if words != ["--version"]:
                assert words[0].startswith("--timeout=")
                assert any(directory in word for word in words[1:])


@pytest.mark.parametrize(("pairs", "limit_s"), [(1, 10), (5, 10), (40, 80)])
def test_tools_wait_a_second_for_each_port(session: Any, pairs: int, limit_s: int) -> None:
    """The daemon answers nothing while it makes its datapath anew for each endpoint that has come."""
    start(session, pairs=pairs)
    limits = {words[0] for words in commands(session, "ovs-ofctl")}
    assert limits == {f"--timeout={limit_s}"}


def test_configuration_comes_before_the_daemon_and_ports_after(session: Any) -> None:
    start(session)
    configure, ask, add, check = commands(session, "ovs-vsctl")
    settings = [word for word in configure if word.startswith("other_config:")]
    assert "--no-wait" in configure
    assert settings == [
        'other_config:dpdk-init="true"',
        'other_config:dpdk-extra="--no-pci --in-memory --single-file-segments --no-telemetry"',
        f'other_config:dpdk-socket-limit="{64 + 2 * 72},{64 + 2 * 72}"',
        'other_config:per-port-memory="true"',
        'other_config:pmd-cpu-mask="0x4"',
        'other_config:vhost-sock-dir="s"',
    ]
    assert ask[-2:] == ["list", "Open_vSwitch"]
    assert "--no-wait" not in add
    text = " ".join(add)
    assert "add-br br0 -- set Bridge br0 datapath_type=netdev" in text
    for index in (0, 1):
        port = f"-- add-port br0 p{index} -- set Interface p{index} type=dpdkvhostuser mtu_request=1500"
        assert f'{port} ofport_request={index + 1} other_config:pmd-rxq-affinity="0:2"' in text
    assert check[-2:] == ["list", "Interface"]


def test_the_memory_limit_is_whole_pages(session: Any) -> None:
    session.hugepage_size_kib = 1048576
    start(session)
    assert 'other_config:dpdk-socket-limit="1024,1024"' in commands(session, "ovs-vsctl")[0]


def test_each_port_has_its_normal_flow(session: Any) -> None:
    start(session)
    (add,) = commands(session, "ovs-ofctl")
    assert add[-3:] == ["add-flows", f"unix:{session.dir}/br0.mgmt", "-"]
    assert session.spawner.inputs[-1] == "priority=1,in_port=1,actions=NORMAL\npriority=1,in_port=2,actions=NORMAL"


def test_endpoints_connect_to_sockets_of_the_daemon(session: Any) -> None:
    switch, endpoints = start(session, port="vhost-user-packed", worker_cpus=(2, 65))
    assert [(each.socket, each.serves, each.packed) for each in endpoints] == [
        (str(session.dir / "s" / f"p{index}"), False, True) for index in (0, 1)
    ]
    config = switch.facts().config
    assert config["other_config"]["pmd-cpu-mask"] == hex(1 << 65 | 1 << 2)
    assert (switch.facts().version, config["dpdk"], config["port_type"]) == ("3.1.0", "22.11.11", "dpdkvhostuser")


def test_ports_are_shared_out_to_the_workers(session: Any, host: Host) -> None:
    host.interfaces += [["p2", 3, ["set", []]], ["p3", 4, ["set", []]]]
    switch, _ = start(session, pairs=2, worker_cpus=(2, 5))
    assert switch.assignment() is None  # nobody has asked it yet
    text = " ".join(commands(session, "ovs-vsctl")[2])
    assert re.findall(r'pmd-rxq-affinity="0:(\d)"', text) == ["2", "2", "5", "5"]


def test_queues_are_shared_out_to_the_workers(session: Any) -> None:
    switch, _ = start(session, worker_cpus=(2, 5), queues=3)
    text = " ".join(commands(session, "ovs-vsctl")[2])
    assert re.findall(r'pmd-rxq-affinity="([^"]+)"', text) == ["0:2,1:5,2:2", "0:5,1:2,2:5"]
    assert OpenVSwitch().needs_with_queues(1, 6, 3).pollers == 6
    assert OpenVSwitch().needs_with_queues(1, 1, 3).hugepages_mib > OpenVSwitch().needs(1, 1).hugepages_mib
    with pytest.raises(
        Unsupported, match=r"^ovs cannot use 7 cores for 1 pair of 3 queues, which are 6 receive queues"
    ):
        OpenVSwitch().needs_with_queues(1, 7, 3)
    switch.stop()


def test_the_assignment_is_what_open_vswitch_says(session: Any) -> None:
    switch, _ = start(session)
    session.answers["dpif-netdev/pmd-rxq-show"] = rxqs(p0=7, p1=5)
    switch.prepare_traffic()
    assert switch.assignment() == {0: 7, 1: 5}
    session.answers["dpif-netdev/pmd-rxq-show"] = rxqs(p0=7)
    with pytest.raises(
        ProvisionError,
        match=r"(?s)^Open vSwitch polls the port p1 on no core: leave other_config's pmd-cpu-mask out.*last",
    ):
        switch.prepare_traffic()


def test_the_users_configuration_wins(session: Any) -> None:
    own = {"other_config": {"pmd-sleep-max": "5", "per-port-memory": "false"}, "flows": ["priority=9,actions=drop"]}
    switch, _ = start(session, config=own)
    settings = [word for word in commands(session, "ovs-vsctl")[0] if word.startswith("other_config:")]
    assert 'other_config:pmd-sleep-max="5"' in settings
    assert 'other_config:per-port-memory="false"' in settings
    assert session.spawner.inputs[-1].endswith("in_port=2,actions=NORMAL\npriority=9,actions=drop")
    assert [port.rx_packets for port in switch.counters() or []] == [None, None]


def test_without_server_ports_the_endpoints_serve(session: Any, host: Host) -> None:
    host.types.remove("dpdkvhostuser")
    _, endpoints = start(session)
    path = session.dir / "s" / "p0"
    assert f'options:vhost-server-path="{path}"' in commands(session, "ovs-vsctl")[2]
    assert endpoints[0] == VhostUser(endpoints[0].address, str(path), serves=True)


def test_a_port_that_was_not_made_is_an_error_with_the_log(session: Any, host: Host) -> None:
    host.interfaces[2] = ["p1", -1, "could not add network device p1 to ofproto (No such device)"]
    with pytest.raises(ProvisionError, match=r"(?s)could not make the port p1 \(could not add .*last words"):
        start(session)


def test_without_vhost_ports_it_says_so(session: Any, host: Host) -> None:
    host.types[:] = ["internal", "system"]
    with pytest.raises(ProvisionError, match=r"no vhost-user ports .*internal, system"):
        start(session)


def test_a_daemon_that_dies_is_reported_with_its_log(session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    begin = session.spawner.start

    def dies(argv: Any, **more: Any) -> Any:
        process = begin(argv, **more)
        if "vswitchd" in str(argv[0]):
            process.code = -signal.SIGABRT
        return process

    monkeypatch.setattr(session.spawner, "start", dies)
    monkeypatch.setattr(
        "pytest_icbench.driver.switch.ovs.userspace_datapath.parse_table",
        lambda text: [{"dpdk_initialized": False, "iface_types": []}],
    )
    with pytest.raises(ProvisionError, match=r"(?s)ovs-vswitchd was killed by signal 6 \(Aborted\).*last words"):
        start(session)


def test_a_database_that_someone_has_stopped_is_named(session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    switch, _ = start(session)

    def late(argv: Any, **_: Any) -> Any:
        raise ProvisionError(f"{argv[0].name} took longer than 10 s")

    monkeypatch.setattr(session.spawner, "run", late)
    session.spawner.processes[0].is_stopped = True
    said = r"(?s)ovsdb-server \(process 4711\) was stopped by a signal, as SIGSTOP does; ovs-vsctl took.*last words"
    with pytest.raises(ProvisionError, match=said):
        switch.set_ageing(5)


def test_stopping_ends_both_and_the_namespace_once(session: Any) -> None:
    switch, _ = start(session)
    assert session.netns == ["r1-ovs"]
    session.spawner.processes[1].is_stopped = True
    assert switch.fault() == "ovs-vswitchd (process 4711) was stopped by a signal, as SIGSTOP does"
    switch.pause()
    assert switch.fault() is None  # by us
    switch.stop()
    switch.stop()
    assert session.netns == []
    assert [process.stopped for process in session.spawner.processes] == [1, 1]
    assert session.spawner.processes[0].signals == []
    assert session.spawner.processes[1].signals == [signal.SIGSTOP, signal.SIGCONT]
    with pytest.raises(ProvisionError, match="was stopped"):
        switch.check()


def test_a_launch_begins_when_every_port_has_its_link(session: Any, host: Host) -> None:
    switch, _ = start(session)
    host.states = ["LINK_DOWN", "LINK_DOWN"]
    switch.prepare_traffic()
    asked = [words for words in commands(session, "ovs-ofctl") if "dump-ports-desc" in words]
    assert len(asked) == 3


def test_a_path_too_long_is_refused_before_anything_starts(session: Any, tmp_path: Path) -> None:
    deep = tmp_path / ("x" * 100)
    deep.mkdir()
    for spec, attachments in (
        (spec_of(deep), attachments_of(session.dir)),
        (spec_of(session.dir), attachments_of(deep)),
    ):
        with pytest.raises(ProvisionError, match="holds 107"):
            OpenVSwitch().start(session, spec, attachments)
    assert session.spawner.started == []


def test_counters_are_read_after_the_revalidators(session: Any) -> None:
    switch, _ = start(session)
    first, second = switch.counters() or []
    assert (first.rx_packets, first.tx_packets, first.tx_dropped) == (3190915, None, 0)
    assert (second.rx_packets, second.tx_packets, second.tx_dropped) == (1, None, 1195)
    # The wait is asked for before the resume, or the round that it waits for may have gone by.
    asked = [(session.dir / "vswitchd.ctl", f"revalidator/{step}") for step in ("pause", "wait", "resume")]
    assert session.asked == asked
    assert switch.busy() == Busy(busy_cycles=102, idle_cycles=19661965527, frames={"0": 7, "1": 9})


def test_what_is_no_open_vswitch_with_dpdk_is_refused(session: Any, host: Host) -> None:
    host.version = "ls (GNU coreutils) 9.1"
    with pytest.raises(Unsupported, match="is not ovs"):
        OpenVSwitch().probe(session, None)
    host.version = "ovs-vswitchd (Open vSwitch) 3.1.0\n"
    with pytest.raises(Unsupported, match=r"was built without DPDK: run `icbench get ovs`.*openvswitch-switch-dpdk"):
        OpenVSwitch().probe(session, None)


def test_probe_finds_what_lacks(session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    found = OpenVSwitch().probe(session, None)
    assert (found.version, found.program) == ("3.1.0", str(session.binaries["ovs"]))
    assert found.config["dpdk"]
    inside = str(session.dir)
    monkeypatch.setattr("pytest_icbench.driver.switch.ovs.daemons._SCHEMAS", ("/no/where",))
    monkeypatch.setattr(
        "shutil.which",
        lambda path: str(path) if str(path).startswith(inside) and Path(path).is_file() else None,
    )
    (session.dir / "bin" / "ovs-ofctl").unlink()
    with pytest.raises(Unsupported, match="ovs-ofctl of Open vSwitch is not installed"):
        OpenVSwitch().probe(session, None)
    (session.dir / "share" / "openvswitch" / "vswitch.ovsschema").unlink()
    with pytest.raises(Unsupported, match=r"vswitch.ovsschema is not in /no/where"):
        OpenVSwitch().probe(session, None)
    assert session.spawner.started == []


def test_cores_without_queues_are_refused() -> None:
    with pytest.raises(Unsupported, match="at most 2 switch cores"):
        OpenVSwitch().needs(1, 3)
    assert OpenVSwitch().needs(4, 2, jumbo=True).hugepages_mib > OpenVSwitch().needs(4, 2).hugepages_mib


def test_sockets_elsewhere_are_refused(session: Any, tmp_path: Path) -> None:
    with pytest.raises(ProvisionError, match="ovs creates sockets only below"):
        OpenVSwitch().start(session, spec_of(session.dir), attachments_of(tmp_path))
