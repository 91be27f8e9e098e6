# SPDX-License-Identifier: BSD-3-Clause
"""Exchanges on a rig that answers at once: what is started, what is written, what is waited for, what goes wrong."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_icbench.errors import ProvisionError, WorkloadError
from pytest_icbench.model.case import Case
from pytest_icbench.model.endpoint import Address, Endpoint, Memif, Veth, VhostUser
from pytest_icbench.model.load import Frames
from pytest_icbench.model.placement import Placement
from pytest_icbench.model.rig import LaunchPlan, Polled, node_directory
from pytest_icbench.model.traffic import Traffic
from pytest_icbench.testbed import exchange as module
from pytest_icbench.testbed.exchange import Exchange, PcapFollower, pcap_bytes, replay_commands

PLACEMENT = Placement("cooperative", switch=(0,), endpoints=(1, 1, 1, 1), service=(0,), numa_node=0, yield_every=64)
ADDRESSES = [Address.of(pair, side) for pair in (1, 2) for side in ("a", "b")]

Forwarding = Callable[[int, list[bytes]], Mapping[int, list[bytes]]]


def to_the_peer(index: int, frames: list[bytes]) -> Mapping[int, list[bytes]]:
    return {index ^ 1: frames}


class FakeRig:
    """Runs no process; ``forward`` says what a switch would do."""

    def __init__(self, files: Path, endpoints: Sequence[Endpoint], forward: Forwarding = to_the_peer) -> None:
        self.files, self.endpoints, self.placement = files, list(endpoints), PLACEMENT
        self.forward = forward
        self.plan = LaunchPlan()
        self.reported: list[tuple[str, int | None]] = []
        self.ended = False
        self.dies: int | None = None
        self.dead_switch = False
        self._lines: list[tuple[int, str]] = []
        self._steps = [0] * len(endpoints)
        for index in range(len(endpoints)):
            node_directory(files, index).mkdir(exist_ok=True)

    def launch(self, plan: LaunchPlan) -> str:
        self.plan = plan
        for index in range(len(self.endpoints)):
            (node_directory(self.files, index) / f"x{index}.out").write_bytes(pcap_bytes([]))
            self._lines.append((index, json.dumps({"type": "ready"})))
        return "l1"

    def tell(self, launch_id: str, text: str, index: int | None = None) -> None:
        self.reported.append((text, index))
        if text != "go\n":
            return
        assert index is not None
        frames = PcapFollower().feed((node_directory(self.files, index) / f"x{index}.in").read_bytes())
        for there, arriving in self.forward(index, frames).items():
            with (node_directory(self.files, there) / f"x{there}.out").open("ab") as file:
                file.write(pcap_bytes(arriving)[24:])
        self._steps[index] += 1
        self._lines.append((index, json.dumps({"type": "sent", "step": self._steps[index]})))

    def poll(self, launch_id: str, timeout_s: float) -> Polled:
        lines, self._lines = self._lines, []
        return Polled(tuple(lines), {} if self.dies is None else {self.dies: 3})

    def log_tail(self, launch_id: str, index: int) -> str:
        return f"log of {index}"

    def end(self, launch_id: str) -> None:
        self.ended = True

    def check(self) -> None:
        if self.dead_switch:
            raise ProvisionError("the switch is dead")

    def set_ageing(self, seconds: float) -> None:
        self.reported.append((f"ageing {seconds}", None))


def veths() -> list[Endpoint]:
    return [Veth(address, "eth0", None) for address in ADDRESSES]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "QUIET_S", 0.001)
    monkeypatch.setattr(module, "PATIENCE_S", 0.02)


def test_frames_go_in_and_come_out(tmp_path: Path) -> None:
    rig = FakeRig(tmp_path, veths())
    exchange = Exchange(rig, Case("veth"))
    assert exchange.addresses == ADDRESSES
    first = exchange.exchange({0: [b"a" * 60, b"b" * 61], 3: [b"c" * 62]}, {1: 2, 2: 1})
    assert first == {0: [], 1: [b"a" * 60, b"b" * 61], 2: [b"c" * 62], 3: []}
    assert exchange.exchange({0: [b"d" * 60]}, {1: 1}) == {0: [], 1: [b"d" * 60], 2: [], 3: []}
    assert exchange.exchange({0: []}, {1: 5}) == {0: [], 1: [], 2: [], 3: []}  # nothing comes: patience ends
    exchange.set_ageing(2)
    exchange.end()
    assert rig.reported[-2:] == [("ageing 2", None), ("stop\n", None)]
    assert rig.ended


def test_stragglers_are_not_of_the_next_exchange(tmp_path: Path) -> None:
    rig = FakeRig(tmp_path, veths())
    exchange = Exchange(rig, Case("veth"))
    with (tmp_path / "n2/x2.out").open("ab") as file:
        file.write(pcap_bytes([b"late" * 20])[24:])
    assert exchange.exchange({0: [b"a" * 60]}, {1: 1}) == {0: [], 1: [b"a" * 60], 2: [], 3: []}


def test_a_loop_comes_to_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "QUIET_S", 1e9)
    rig = FakeRig(tmp_path, veths())
    assert Exchange(rig, Case("veth")).exchange({0: [b"a" * 60]}, {1: 1})[1] == [b"a" * 60]


def test_a_process_that_ends_is_named(tmp_path: Path) -> None:
    rig = FakeRig(tmp_path, veths())
    exchange = Exchange(rig, Case("veth"))
    assert not exchange.broken
    rig.dies = 2
    with pytest.raises(WorkloadError, match=r"replay at endpoint 2 ended with exit code 3 .*\nlog of 2"):
        exchange.exchange({0: [b"a" * 60]})
    assert exchange.broken
    rig.dead_switch = True
    with pytest.raises(ProvisionError, match="the switch is dead"):
        exchange.exchange({0: [b"a" * 60]})


def test_a_process_that_is_never_ready_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "READY_S", 0.01)
    rig = FakeRig(tmp_path, veths())
    monkeypatch.setattr(rig, "poll", lambda *_: Polled(((0, '{"type":"ready"}'),)))
    with pytest.raises(WorkloadError, match=r"endpoint 1 has not said that it is ready within 0.01 s; log:\nlog of 1"):
        Exchange(rig, Case("veth"))
    assert rig.ended


def test_a_closed_rig_has_taken_the_processes_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rig = FakeRig(tmp_path, veths())
    exchange = Exchange(rig, Case("veth"))

    def closed(*_: object) -> None:
        raise ProvisionError("the rig is not built")

    monkeypatch.setattr(rig, "tell", closed)
    exchange.end()


def argv(rig: FakeRig, case: Case, index: int, **more: Any) -> list[str]:
    return replay_commands(rig, case, **more)[index].argv(Path("/bin/w"))


def test_a_kernel_endpoint_is_used_by_a_raw_socket(tmp_path: Path) -> None:
    words = argv(FakeRig(tmp_path, veths()), Case("veth"), 1)
    assert words[:3] == ["/bin/w", "replay", f"{tmp_path}/n1/x1.in"]
    assert words[3:7] == ["198.18.1.2", "02:00:00:00:01:02", "198.18.1.1", "02:00:00:00:01:01"]
    assert words[-2:] == ["-R", "eth0"]
    assert words[words.index("--capture") + 1] == f"{tmp_path}/n1/x1.out"
    assert words[words.index("-p") + 1] == "1518"
    assert {"--step", "--supervised"} <= set(words)
    assert words[words.index("--yield") + 1] == "1"


def test_a_kernel_endpoint_by_a_dpdk_driver(tmp_path: Path) -> None:
    words = argv(FakeRig(tmp_path, veths()), Case("veth", api="af_packet"), 0)
    assert words[1] == "dpdk-replay"
    assert any(word.startswith("--vdev=net_af_packet0,iface=eth0") for word in words)


def test_a_dpdk_endpoint_with_jumbo_frames(tmp_path: Path) -> None:
    rig = FakeRig(tmp_path, [VhostUser(ADDRESSES[0], "/s/0"), Memif(ADDRESSES[1], "/s/1", role="server")])
    words = argv(rig, Case("ovs", Frames(Traffic(9000))), 0, ring=512)
    assert (words[1], words[words.index("-p") + 1]) == ("dpdk-replay", "9216")
    assert any(word.startswith("--vdev=net_virtio_user0,path=/s/0") and "queue_size=512" in word for word in words)
    Exchange(rig, Case("ovs"))
    assert [(process.index, process.stage, process.socket) for process in rig.plan.processes] == [
        (0, 1, None),
        (1, 0, "/s/1"),
    ]


def test_listeners_only_capture(tmp_path: Path) -> None:
    rig = FakeRig(tmp_path, veths())
    assert list(replay_commands(rig, Case("veth"), indexes=[2, 3])) == [2, 3]
    words = argv(rig, Case("veth"), 3, tag="leak", indexes=[2, 3])
    assert words[1:3] == ["capture", f"{tmp_path}/n3/leak3.out"]
    assert "--step" not in words


@pytest.mark.parametrize(
    "line",
    ["what?", "[]", "{}", '{"type": 5}', '{"type": "sent", "step": -1}', '{"type": "sent", "step": "x"}', "[" * 9000],
    ids=lambda line: line[:30],
)
def test_a_process_that_writes_no_line_of_the_workload_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    rig = FakeRig(tmp_path, veths())
    monkeypatch.setattr(rig, "poll", lambda *_: Polled(((2, line),)))
    with pytest.raises(WorkloadError, match=r"^the process of endpoint 2 wrote .*, and no line of the workload$"):
        Exchange(rig, Case("veth"))


@pytest.mark.parametrize(
    ("record", "says"),
    [((0, 0, 2**32 - 1, 2**32 - 1), "4294967295 bytes"), ((0, 0, 60, 1514), "captured in part")],
    ids=["no end", "in part"],
)
def test_a_capture_that_another_process_of_its_node_has_written_is_named(
    tmp_path: Path, record: tuple[int, ...], says: str
) -> None:
    rig = FakeRig(tmp_path, veths())
    exchange = Exchange(rig, Case("veth"))
    with (tmp_path / "n1/x1.out").open("ab") as file:
        file.write(struct.pack("<IIII", *record))
    with pytest.raises(WorkloadError, match=rf"n1/x1\.out: .*{says}"):
        exchange.exchange({0: [b"a" * 60]}, {1: 1})


def test_frames_without_end_are_read_up_to_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_FRAMES", 100)
    monkeypatch.setattr(module, "PATIENCE_S", 1e9)
    rig = FakeRig(tmp_path, veths(), lambda index, frames: {index ^ 1: frames * 101})
    assert len(Exchange(rig, Case("veth")).exchange({0: [b"a" * 60]}, {1: 5000})[1]) == 101
