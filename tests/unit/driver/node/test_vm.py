# SPDX-License-Identifier: BSD-3-Clause
"""Virtual machines without one: the initramfs, the kernel's modules, QEMU's command line and its monitor."""

from __future__ import annotations

import json
import lzma
import os
import socket
import stat
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_icbench.driver.node.registry import has_machine, node_sides
from pytest_icbench.driver.node.vm import initramfs, qemu
from pytest_icbench.driver.node.vm.initramfs import Archive, Kernel
from pytest_icbench.driver.node.vm.node import VmNode, guest_words
from pytest_icbench.driver.switch.registry import builtin_switches
from pytest_icbench.errors import ProvisionError, Unsupported, UsageError
from pytest_icbench.host.root import Root
from pytest_icbench.model.case import Case
from pytest_icbench.model.load import Application
from pytest_icbench.testbed.probe import explain_machine_misfit

NAMES = st.from_regex(r"[a-z0-9_.]{1,9}(/[a-z0-9_.]{1,9}){0,3}", fullmatch=True)


def unpack(image: bytes) -> dict[str, tuple[int, bytes]]:
    """Mode and content of each entry of a cpio archive, by its format's description and not by our writer."""
    entries: dict[str, tuple[int, bytes]] = {}
    at = 0
    while True:
        assert image[at : at + 6] == b"070701"
        fields = [int(image[at + 6 + 8 * n : at + 14 + 8 * n], 16) for n in range(13)]
        mode, size, length = fields[1], fields[6], fields[11]
        name = image[at + 110 : at + 110 + length - 1].decode()
        begin = (at + 110 + length + 3) & ~3
        if name == "TRAILER!!!":
            return entries
        assert name not in entries
        entries[name] = mode, image[begin : begin + size]
        at = (begin + size + 3) & ~3


@given(st.dictionaries(NAMES, st.binary(max_size=40), max_size=6))
def test_an_archive_holds_its_files_below_directories_that_come_first(files: dict[str, bytes]) -> None:
    archive = Archive()
    added: dict[str, bytes] = {}
    for name, data in files.items():
        above = {"/".join(name.split("/")[:n]) for n in range(1, name.count("/") + 1)}
        if name in added or above & added.keys() or any(known.startswith(f"{name}/") for known in added):
            continue
        archive.add(name, stat.S_IFREG | 0o644, data)
        added[name] = data
    entries = unpack(archive.image())
    assert {name: data for name, (mode, data) in entries.items() if stat.S_ISREG(mode)} == added
    seen: set[str] = set()
    for name in entries:
        assert name.rpartition("/")[0] in seen | {""}
        seen.add(name)


def bzimage(release: str = "6.1.0-test") -> bytes:
    head = bytearray(0x400)
    head[0x202:0x206] = b"HdrS"
    struct.pack_into("<H", head, 0x20E, 0x100)
    text = f"{release} (builder@host) #1".encode() + b"\0"
    head[0x300 : 0x300 + len(text)] = text
    return bytes(head)


def test_a_kernel_that_is_no_file_is_refused_and_never_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "vmlinuz")
    with pytest.raises(Unsupported, match=r"vmlinuz of node vm cannot be read .not a regular file"):
        Kernel.read(tmp_path / "vmlinuz")
    os.mkfifo(tmp_path / "virtio_net.ko")
    with pytest.raises(OSError, match="not a regular file"):
        initramfs.plain_module(tmp_path / "virtio_net.ko")


def tree(base: Path, modules: dict[str, str], built_in: str = "") -> Kernel:
    """A kernel below a directory, with modules that need others."""
    (base / "boot").mkdir(parents=True)
    (base / "boot/vmlinuz").write_bytes(bzimage())
    place = base / "lib/modules/6.1.0-test/kernel/drivers"
    place.mkdir(parents=True)
    for name, needs in modules.items():
        data = b"\x7fELF\0license=GPL\0depends=" + needs.encode() + b"\0name=x\0"
        (place / name).write_bytes(lzma.compress(data) if name.endswith(".xz") else data)
    (base / "lib/modules/6.1.0-test/modules.builtin").write_text(built_in)
    return Kernel.read(base / "boot/vmlinuz")


def test_modules_are_loaded_after_those_that_they_need(tmp_path: Path) -> None:
    modules = {
        "virtio-net.ko": "net_failover,virtio",
        "net_failover.ko.xz": "failover",
        "failover.ko": "",
        "unused.ko": "",
    }
    kernel = tree(tmp_path, modules, "kernel/drivers/virtio.ko\n")
    assert kernel.release == "6.1.0-test"
    order = [path.name for path in kernel.load_order(["virtio_net", "virtio"])]
    assert order == ["failover.ko", "net_failover.ko.xz", "virtio-net.ko"]
    entries = unpack(initramfs.build([], kernel.load_order(["virtio_net"])))
    assert [name for name in entries if name.endswith(".ko")] == [
        "modules/00-failover.ko",
        "modules/01-net_failover.ko",
        "modules/02-virtio_net.ko",
    ]
    assert entries["modules/01-net_failover.ko"][1].startswith(b"\x7fELF"), "the kernel gets it uncompressed"


@pytest.mark.parametrize(
    ("modules", "culprit"), [({}, "virtio_net"), ({"virtio_net.ko": "virtio"}, "no module virtio:")]
)
def test_a_kernel_without_virtio_is_named_with_its_module(
    tmp_path: Path, modules: dict[str, str], culprit: str
) -> None:
    with pytest.raises(Unsupported) as caught:
        tree(tmp_path, modules).load_order(["virtio_net"])
    assert culprit in str(caught.value)
    assert initramfs.OPTION in str(caught.value)


def test_a_module_that_cannot_be_unpacked_is_named(tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match=r"virtio_net\.ko\.zst"):
        tree(tmp_path, {"virtio_net.ko.zst": ""}).load_order(["virtio_net"])


def test_the_kernel_is_the_one_given_or_the_host_s(tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match=initramfs.OPTION):
        Kernel.find(None, Root(tmp_path))
    (tmp_path / "boot").mkdir()
    (tmp_path / "boot/vmlinuz-6.1.0-test").write_bytes(bzimage())
    assert Kernel.find(None, Root(tmp_path)).image == tmp_path / "boot/vmlinuz-6.1.0-test"
    (tmp_path / "other").write_bytes(b"MZ, but no kernel")
    with pytest.raises(Unsupported, match="other is no bzImage"):
        Kernel.find(tmp_path / "other", Root(tmp_path))
    with pytest.raises(Unsupported, match="missing"):
        Kernel.find(tmp_path / "missing", Root(tmp_path))


@given(st.binary(max_size=2000))
def test_a_file_of_any_bytes_is_a_kernel_or_none(data: bytes) -> None:
    assert initramfs.read_release(data) is None or data[0x202:0x206] == b"HdrS"


LDD = """\tlinux-vdso.so.1 (0x00007ffd)
\tlibm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x00007f1)
\tlibgone.so => not found
\t/lib64/ld-linux-x86-64.so.2 (0x00007f2)
"""


def test_libraries_and_the_loader_are_taken_from_ldd() -> None:
    assert [str(path) for path in initramfs.parse_ldd(LDD)] == [
        "/lib/x86_64-linux-gnu/libm.so.6",
        "/lib64/ld-linux-x86-64.so.2",
    ]
    assert initramfs.parse_ldd("\tstatically linked\n") == []


def machine(**changes: Any) -> qemu.Machine:
    given = {"name": "m", "kernel": Path("/k"), "initramfs": Path("/i"), "init": Path("/w"), "directory": Path("/d")}
    return qemu.Machine(**{**given, "cpus": 2, "memory_mib": 512, "kvm": True, **changes})


def test_a_machine_shares_its_memory_with_a_back_end() -> None:
    argv = machine(page_kib=2048, numa_node=1).argv()
    memory = argv[argv.index("-object") + 1].split(",")
    assert {"share=on", "hugetlb=on", "hugetlbsize=2048K", "host-nodes=1", "size=512M"} <= {*memory}
    assert "hugetlb=on" not in machine().argv()[machine().argv().index("-object") + 1]


def test_kvm_and_emulation_both_show_an_invariant_clock() -> None:
    kvm, emulated = machine().argv(), machine(kvm=False).argv()
    assert (kvm[kvm.index("-accel") + 1], kvm[kvm.index("-cpu") + 1]) == ("kvm", "host,migratable=off")
    assert emulated[emulated.index("-accel") + 1].startswith("tcg")
    assert "+invtsc" in emulated[emulated.index("-cpu") + 1]


def test_the_tap_is_carried_by_the_kernel_where_it_can() -> None:
    assert "-netdev" not in machine().argv()
    assert [machine(tap=True, vhost=vhost).argv()[-1].endswith("vhost=on") for vhost in (True, False)] == [True, False]


def test_no_kvm_has_its_reason(tmp_path: Path) -> None:
    cpuinfo, root = tmp_path / "proc/cpuinfo", Root(tmp_path)
    cpuinfo.parent.mkdir()
    cpuinfo.write_text("flags\t\t: fpu lahf_lm svmx\n")
    assert "AMD-V" in (qemu.explain_no_kvm(tmp_path / "kvm", root) or "")
    cpuinfo.write_text("flags\t\t: fpu svm lahf_lm\n")
    assert "cannot be opened (No such file" in (qemu.explain_no_kvm(tmp_path / "kvm", root) or "")
    (tmp_path / "kvm").touch()
    assert "makes no machine" in (qemu.explain_no_kvm(tmp_path / "kvm", root) or ""), "a file is no device"


MESSAGES = st.lists(st.dictionaries(st.text(max_size=5), st.integers(), max_size=3), max_size=5)


@given(MESSAGES, st.integers(1, 7))
def test_messages_of_a_monitor_come_in_pieces(messages: list[dict[str, int]], piece: int) -> None:
    lines, found = qemu.Lines(), []
    sent = b"".join(json.dumps(message).encode() + b"\r\n" for message in messages)
    for at in range(0, len(sent), piece):
        found += lines.take(sent[at : at + piece])
    assert found == messages


@pytest.mark.parametrize(
    ("data", "culprit"),
    [
        (b"no JSON\n", "Expecting value"),
        (b"[1]\n", "no object"),
        (b"\xff\n", "can't decode"),
        (b"x" * (2**20 + 1), "end"),
    ],
)
def test_what_is_no_message_is_an_error(data: bytes, culprit: str) -> None:
    with pytest.raises(ValueError, match=culprit):
        qemu.Lines().take(data)


@pytest.fixture
def monitor(tmp_path: Path) -> Iterator[Callable[[list[bytes]], Path]]:
    """Serves a monitor that says what it is given, a piece for each request."""
    servers: list[tuple[socket.socket, threading.Thread]] = []

    def serve(answers: list[bytes]) -> Path:
        server = socket.socket(socket.AF_UNIX)
        server.bind(str(tmp_path / "qmp"))
        server.listen()
        thread = threading.Thread(target=answer, args=(server, answers))
        thread.start()
        servers.append((server, thread))
        return tmp_path / "qmp"

    def answer(server: socket.socket, answers: list[bytes]) -> None:
        with server.accept()[0] as client:
            for text in answers:
                client.sendall(text)
                if not client.recv(65536):
                    break

    yield serve
    for server, thread in servers:
        thread.join(5)
        server.close()


GREETING, NOTHING = b'{"QMP": {"version": {}}}\n', b'{"return": {}}\n'


def test_events_are_no_answers(monitor: Callable[[list[bytes]], Path]) -> None:
    cpus = b'{"return": [{"cpu-index": 1, "thread-id": 12}, {"cpu-index": 0, "thread-id": 11}]}\n'
    path = monitor([GREETING, NOTHING, b'{"event": "RESUME"}\n' + cpus])
    with qemu.Monitor(path) as opened:
        assert qemu.threads(opened.call("query-cpus-fast")) == [11, 12]


@pytest.mark.parametrize(
    ("answer", "culprit"),
    [
        (b'{"error": {"class": "GenericError", "desc": "no such netdev"}}\n', "refuses device_add: no such netdev"),
        (b"what?\n", "does not answer device_add"),
        (b"", "does not answer device_add"),
    ],
)
def test_what_qemu_refuses_is_an_error_with_its_words(
    monitor: Callable[[list[bytes]], Path], monkeypatch: pytest.MonkeyPatch, answer: bytes, culprit: str
) -> None:
    monkeypatch.setattr(qemu, "_ANSWER_S", 0.2)
    with qemu.Monitor(monitor([GREETING, NOTHING, answer])) as opened, pytest.raises(ProvisionError, match=culprit):
        opened.call("device_add", driver="virtio-net-pci")


def test_a_monitor_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ProvisionError, match="qmp does not answer"):
        qemu.Monitor(tmp_path / "qmp")


def test_dpdk_gets_the_machine_s_cpus() -> None:
    words = ["w", "dpdk-send", "--ring", "256", "--", "--lcores", "0@7", "-a", "0000:00:10.0"]
    assert guest_words(words, 1)[6] == "0@1"
    assert guest_words(["w", "send"], 0) == ["w", "send"]


def test_each_side_has_its_kind() -> None:
    assert [cls.kind for cls in node_sides("lxc+vm").values()] == ["lxc", "vm"]
    assert node_sides("netns")["b"].kind == "netns"
    assert [has_machine(kinds) for kinds in ("lxc", "vm", "vm+lxc", "lxc+netns")] == [False, True, True, False]
    with pytest.raises(UsageError, match="'wm'"):
        node_sides("lxc+wm")


@pytest.mark.parametrize(
    ("case", "culprit"),
    [
        (Case("linux-bridge"), None),
        (Case("ovs"), None),
        (Case("testpmd", port="vhost-user-packed"), None),
        (Case("macvlan"), "macvlan"),
        (Case("veth"), "veth"),
        (Case("direct"), "direct"),
        (Case("ovs", port="tap"), "take --icbench-port vhost-user"),
        (Case("testpmd", port="memif"), "memif"),
        (Case("linux-bridge", api="af_packet"), "api af_packet"),
        (Case("linux-bridge", function="route"), "network functions"),
        (Case("linux-bridge", Application("redis:get")), "applications"),
        (Case("linux-bridge", noisy_neighbour="cpu:1"), "noisy neighbours"),
    ],
)
def test_what_no_machine_can_have_is_refused_by_a_sentence(case: Case, culprit: str | None) -> None:
    cls = builtin_switches()[case.switch]
    reason = explain_machine_misfit(case, cls, "lxc+vm")
    assert reason is None if culprit is None else culprit in (reason or "")
    assert explain_machine_misfit(case, cls, "lxc") is None


def host(tmp_path: Path, *, available_mib: int = 8000, node_memory_mib: int = 4000) -> Any:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text(f"MemTotal: 16000000 kB\nMemAvailable: {available_mib * 1024} kB\n")
    (tmp_path / "boot").mkdir()
    (tmp_path / "boot/vmlinuz-6.1.0-test").write_bytes(bzimage())
    return SimpleNamespace(root=Root(tmp_path), node_memory_mib=node_memory_mib, binary=lambda _: None)


@pytest.mark.parametrize(
    ("changes", "program", "culprit"),
    [
        ({}, "/usr/bin/qemu", None),
        ({}, None, "qemu-system-x86"),
        ({"available_mib": 900}, "/usr/bin/qemu", "900 MiB"),
        ({"node_memory_mib": 64}, "/usr/bin/qemu", "--icbench-node-memory"),
    ],
)
def test_a_host_that_cannot_have_machines_is_told_before_anything_is_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, int], program: str | None, culprit: str | None
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("shutil.which", lambda _: program)
    session = host(tmp_path, **changes)
    if culprit is None:
        VmNode.probe(session)
        return
    with pytest.raises(Unsupported) as caught:
        VmNode.probe(session)
    assert culprit in str(caught.value)
