# SPDX-License-Identifier: BSD-3-Clause
"""A link that puts datagrams together: what a receiver says of several that arrive as one, by the workload alone."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from pytest_icbench.host.namespaces import enter_netns
from pytest_icbench.host.net import ethtool
from pytest_icbench.host.net.ethtool import FEATURES
from tests.host.workload_tools import Outcome, Path2, between, lost, veth, veth_pair

__all__ = ["veth"]  # fixtures

pytestmark = pytest.mark.own_host

FRAMES = 3200
#: Raw sockets send UDP checksums where they are due, and only then the kernel joins.
JOINED = [
    ["-R", "IF", "-m", "-c", "-p", "64"],
    ["-R", "IF", "-c", "-p", "500"],
    ["-R", "IF", "-m", "-p", "500", "--header", "udp6"],
    # A receiver's buffer has the beginning of these alone.
    ["-R", "IF", "-m", "-c", "-p", "1500"],
]


@pytest.fixture(scope="module")
def joining() -> Iterator[Path2]:
    """A veth pair whose far end takes bursts in a thread and puts the datagrams of a flow together."""
    with veth_pair() as path:
        netns = f"/run/netns/{path.b.namespace}"
        with enter_netns(netns):
            for key in ("gro", "udp-gro"):
                ethtool.set_feature(path.b.interface, FEATURES[key], True)
        file = f"/sys/class/net/{path.b.interface}/threaded"
        subprocess.run([*path.b.prefix(), "sh", "-c", f"echo 1 >{file}"], check=True, timeout=10)
        yield path


def counted(path: Path2, options: list[str]) -> tuple[Outcome, Outcome]:
    return between(path, "send", "recv", [*options, "-b", "32"], ["-r", "20k", "--count", str(FRAMES)])


@pytest.mark.parametrize("options", JOINED, ids=lambda options: "".join(options).replace("-RIF", "raw"))
def test_merged_datagrams_are_corrupted_and_counted(joining: Path2, options: list[str]) -> None:
    sender, receiver = counted(joining, options)
    summary = receiver.summary
    assert summary["joined"] > 0
    assert (summary["corrupted"], summary["foreign"]) == (summary["joined"], 0)
    # None of them counts as received: all that they were made of is lost, two at least in each.
    size = int(options[options.index("-p") + 1])
    assert summary["bytes"] == size * summary["received"]
    assert lost(sender, receiver) >= 2 * summary["joined"]
    assert summary["received"] + lost(sender, receiver) == sender.summary["sent"]


@pytest.mark.parametrize("options", [["-m", "-p", "500"], ["-p", "1500"]], ids=["mmsg", "call-a-frame"])
def test_the_kernel_splits_merged_datagrams_for_a_socket(joining: Path2, options: list[str]) -> None:
    sender, receiver = counted(joining, options)
    summary = receiver.summary
    assert (summary["joined"], summary["corrupted"], summary["foreign"]) == (0, 0, 0)
    assert summary["received"] + lost(sender, receiver) == sender.summary["sent"]
    assert summary["received"] > FRAMES / 2


@pytest.mark.parametrize("options", JOINED, ids=lambda options: "".join(options).replace("-RIF", "raw"))
def test_a_plain_link_merges_none(veth: Path2, options: list[str]) -> None:
    sender, receiver = counted(veth, options)
    summary = receiver.summary
    assert (summary["joined"], summary["corrupted"], summary["foreign"]) == (0, 0, 0)
    assert summary["received"] == sender.summary["sent"] == FRAMES
