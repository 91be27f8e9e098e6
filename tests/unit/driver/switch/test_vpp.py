# SPDX-License-Identifier: BSD-3-Clause
"""vpp: its start-up text, the messages that are sent to it, and what becomes of errors."""

from __future__ import annotations

import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_icbench.driver.switch.vpp.program import Memory, VppFiles, startup_config
from pytest_icbench.driver.switch.vpp.vpp_switch import Vpp
from pytest_icbench.errors import ProvisionError, Unsupported
from pytest_icbench.model.endpoint import Address, VhostUser
from tests.unit.driver.switch.vpp_host import Client, client, session, start
from tests.unit.recording_host import attachments_of, spec_of

__all__ = ["client", "session"]  # fixtures


def test_sockets_and_shared_memory_are_private(session: Any) -> None:
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


def test_the_configuration_has_cpus_plugins_and_the_users_sections(tmp_path: Path) -> None:
    files = VppFiles(tmp_path / "vpp")
    text = startup_config(files, main_cpu=0, worker_cpus=(2, 5), plugins={"memif_plugin.so"}, fragment="l2fib { x }")
    assert "cpu { main-core 0 corelist-workers 2,5 }" in text
    assert "plugins { plugin default { disable } plugin memif_plugin.so { enable } }" in text
    assert "page-size default-hugepage }" in text
    assert text.endswith("l2fib { x }")
    assert text.count("{") == text.count("}")
    alone = startup_config(files, main_cpu=3, worker_cpus=(), plugins=(), memory=Memory(hugepages=False))
    assert "cpu { main-core 3 }" in alone
    assert "buffers-per-numa 32768 default data-size 2048 page-size default }" in alone


def test_the_main_thread_has_a_cpu_that_no_worker_has(session: Any) -> None:
    start(session, worker_cpus=(0, 2), service_cpus=(0, 3))
    assert "cpu { main-core 3 corelist-workers 0,2 }" in (session.dir / "vpp" / "startup.conf").read_text()
    with pytest.raises(Unsupported, match="2 workers need 3 CPUs"):
        start(session, worker_cpus=(0, 1), service_cpus=(0,))


def test_all_ports_join_a_learning_bridge_domain(session: Any, client: Client) -> None:
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


def test_cross_connects_join_the_ports_of_a_pair(session: Any, client: Client) -> None:
    start(session, pairs=2, mode="xconnect")
    joined = [(each["rx_sw_if_index"], each["tx_sw_if_index"]) for each in client.sent("sw_interface_set_l2_xconnect")]
    assert joined == [(1, 2), (2, 1), (3, 4), (4, 3)]
    assert client.sent("bridge_domain_add_del_v2") == []


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


def test_a_vpp_that_lives_and_does_not_answer_is_reported_with_its_log(session: Any, client: Client) -> None:
    switch, _ = start(session)
    client.refuses = "show runtime"
    for question in (switch.busy, switch.batches):
        with pytest.raises(ProvisionError, match=r"(?s)^vpp did not answer the command 'show runtime'.*last words"):
            question()


def test_the_end_of_the_process_is_an_error_with_its_log(
    session: Any, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_it_is_stopped_only_when_no_worker_is_held_back(session: Any, client: Client) -> None:
    switch, _ = start(session)
    (process,) = session.spawner.processes
    signals: list[list[int]] = []
    answer = client.call

    def call(message: str, **words: Any) -> Any:
        signals.append(list(process.signals))
        return answer(message, **words)

    client.call = call  # type: ignore[method-assign]
    switch.pause()
    assert client.calls[-1][0] == "control_ping"
    assert (signals, process.signals) == ([[]], [signal.SIGSTOP])
    switch.resume()
    process.is_stopped = True  # by somebody else: it would not answer
    switch.pause()
    assert len(client.sent("control_ping")) == 1


def test_the_reason_of_an_abort_is_shown_instead_of_its_stack(session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    frames = [
        f"#{number:<2} 0x00007f2fa1{number:06x} os_panic + 0x0\n     from /opt/vpp/lib/libvlib.so"
        for number in range(18)
    ]
    log = ["vlib_worker_thread_barrier_release: worker thread deadlock", "received signal SIGABRT, PC 0x1", *frames]
    switch, _ = start(session)
    (process,) = session.spawner.processes
    lines = "\n".join(log).splitlines()
    monkeypatch.setattr(process, "tail", lambda count=15: "\n".join(lines[-count:]))
    process.code = -signal.SIGABRT
    with pytest.raises(ProvisionError) as raised:
        switch.check()
    assert str(raised.value).splitlines()[1:] == log[:2]


def test_a_path_too_long_is_refused_before_anything_starts(session: Any, tmp_path: Path) -> None:
    deep = tmp_path / ("x" * 100)
    deep.mkdir()
    with pytest.raises(ProvisionError, match="holds 107"):
        Vpp().start(session, spec_of(deep), attachments_of(session.dir))
    assert session.spawner.started == []


@pytest.mark.parametrize(
    ("content", "reported"),
    [
        (b"\x7fELF libc.so.6", "is not VPP: name one with --icbench-binary vpp=PATH"),
        (b"libvlib.so.19.08\0", "is VPP 19.08, and 24.10 is the oldest that is supported"),
    ],
)
def test_what_is_no_vpp_or_too_old_is_refused(session: Any, content: bytes, reported: str) -> None:
    session.binaries["vpp"].write_bytes(content)
    with pytest.raises(Unsupported, match=reported):
        Vpp().probe(session, None)
    assert session.spawner.started == []


def test_a_missing_or_unknown_program_is_refused_with_the_remedy(session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    found = Vpp().probe(session, None)
    assert (found.version, found.program) == ("26.06", str(session.binaries["vpp"]))
    monkeypatch.setattr("shutil.which", lambda name: None)
    session.binaries.clear()
    with pytest.raises(Unsupported, match=r"vpp is not installed: .*or name it with --icbench-binary vpp=PATH"):
        Vpp().probe(session, None)
