# SPDX-License-Identifier: BSD-3-Clause
"""Frames that differ from each other, as the workload's program sends and counts them, between namespaces."""

from __future__ import annotations

import json
import subprocess

import pytest

from tests.host.workload_tools import End, Path2, between, check_lines, lost, veth

__all__ = ["veth"]  # fixtures

pytestmark = pytest.mark.own_host

TECHNIQUES = {"udp": [], "udp-mmsg": ["-m"], "raw": ["-R", "IF"], "raw-mmsg": ["-R", "IF", "-m"]}
each_technique = pytest.mark.parametrize("technique", list(TECHNIQUES.values()), ids=list(TECHNIQUES))
SIMPLE = [64, 570, 64, 64, 570, 64, 1518, 570, 64, 64, 570, 64]
CYCLES, REST = 300, 5
FRAMES = CYCLES * len(SIMPLE) + REST
BYTES = CYCLES * (7 * 64 + 4 * 570 + 1518) + sum(SIMPLE[:REST])
FCS = 4


def counted(end: End) -> tuple[int, int]:
    """Frames and bytes (without FCS) that the kernel has received at an interface."""
    words = [*end.prefix(), "ip", "-s", "-j", "link", "show", end.interface]
    (link,) = json.loads(subprocess.run(words, check=True, capture_output=True, timeout=10).stdout)
    received = link["stats64"]["rx"]
    return int(received["packets"]), int(received["bytes"])


@each_technique
@pytest.mark.parametrize("checked", [[], ["-c"]], ids=["plain", "checked"])
def test_a_mix_is_exact_to_the_frame(veth: Path2, technique: list[str], checked: list[str]) -> None:
    """What is sent is what the mix says, what arrives has these bytes, and the interface has counted the same."""
    common = [*technique, *checked, "--sizes", ",".join(map(str, SIMPLE)), "-b", "10"]
    at = {"before": (0, 0)}
    sender, receiver = between(
        veth,
        "send",
        "recv",
        common,
        ["-r", "20k", "--count", str(FRAMES)],
        # The kernel has answered the receiver's announcement by then: nobody listens at the other end yet.
        ready=lambda: at.update(before=counted(veth.b)),
    )
    check_lines(sender)
    check_lines(receiver)
    assert sender.summary["sent"] == FRAMES
    assert lost(sender, receiver) == 0
    assert (receiver.summary["corrupted"], receiver.summary["foreign"]) == (0, 0)
    assert sender.summary["sent_bytes"] == receiver.summary["bytes"] == BYTES
    frames, octets = (after - earlier for after, earlier in zip(counted(veth.b), at["before"], strict=True))
    end_marks = frames - FRAMES
    assert 1 <= end_marks <= 3
    assert octets == BYTES - FCS * FRAMES + end_marks * (max(SIMPLE) - FCS)


@each_technique
def test_answers_to_a_mix_have_its_sizes(veth: Path2, technique: list[str]) -> None:
    common = [*technique, "-c", "--sizes", "64,1518,128", "-b", "4"]
    client, server = between(veth, "client", "server", common, ["-r", "5k", "--count", "999"])
    assert client.summary["sent"] == client.summary["received"] == server.summary["reflected"] == 999
    assert client.summary["bytes"] == server.summary["bytes"] == 333 * (64 + 1518 + 128)
    assert (client.summary["corrupted"], server.summary["corrupted"]) == (0, 0)


@pytest.mark.parametrize("fault", ["drop:10", "duplicate:10", "reorder:10"])
def test_a_fault_strikes_frames_of_any_size(veth: Path2, fault: str) -> None:
    common = ["-R", "IF", "-m", "-c", "--sizes", "64,1518,128"]
    sender, receiver = between(veth, "send", "recv", common, ["-r", "20k", "--count", "3000", "--fault", fault])
    assert receiver.summary["corrupted"] == 0
    assert lost(sender, receiver) == (300 if fault == "drop:10" else 0)
    assert receiver.summary["duplicated"] == (300 if fault == "duplicate:10" else 0)
    assert receiver.summary["reordered"] == (299 if fault == "reorder:10" else 0)


@pytest.mark.parametrize("flows", ["5", "1000:ports", "70k:macs", "1M:zipf"])
def test_flows_arrive_whole_and_in_order(veth: Path2, flows: str) -> None:
    common = ["-R", "IF", "-m", "-c", "--sizes", "64,1518,128", "--flows", flows]
    sender, receiver = between(veth, "send", "recv", common, ["-r", "20k", "--count", "9000"])
    check_lines(sender)
    check_lines(receiver)
    assert receiver.summary["received"] == sender.summary["sent"] == 9000
    assert [receiver.summary[key] for key in ("corrupted", "foreign", "reordered", "lossy_flows")] == [0, 0, 0, 0]
    assert receiver.summary["worst_flows"] == []


@pytest.mark.parametrize(("flows", "reordered"), [(2, 0), (1, 299)])
def test_only_what_is_overtaken_by_its_own_flow_is_reordered(veth: Path2, flows: int, reordered: int) -> None:
    """Each 10th frame leaves behind its successor, which is of the other flow if there are two."""
    common = ["-R", "IF", "-m", "--flows", str(flows)]
    sender, receiver = between(veth, "send", "recv", common, ["-r", "20k", "--count", "3000", "--fault", "reorder:10"])
    assert lost(sender, receiver) == 0
    assert receiver.summary["reordered"] == reordered


def test_a_drop_that_strikes_one_flow_is_found_there(veth: Path2) -> None:
    """Each 10th frame is of the 10th flow."""
    common = ["-R", "IF", "-m", "--flows", "10"]
    _, receiver = between(veth, "send", "recv", common, ["-r", "20k", "--count", "3000", "--fault", "drop:10"])
    assert (receiver.summary["lossy_flows"], receiver.summary["worst_flows"]) == (1, [[9, 300]])


def test_answers_come_back_to_their_flow(veth: Path2) -> None:
    common = ["-R", "IF", "-m", "-c", "--flows", "100"]
    client, server = between(veth, "client", "server", common, ["-r", "5k", "--count", "1000"])
    assert client.summary["received"] == server.summary["reflected"] == 1000
    assert (client.summary["corrupted"], client.summary["lossy_flows"]) == (0, 0)
