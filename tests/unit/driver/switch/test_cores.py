# SPDX-License-Identifier: BSD-3-Clause
"""Which core of a switch polls which queue of which port."""

from __future__ import annotations

from pathlib import Path

from pytest_icbench.driver.switch.common.daemon import divide_ports, share_queues
from tests.unit.recording_host import attachments_of


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


def test_neighbouring_ports_share_a_core() -> None:
    assert divide_ports(4, 1) == [0, 0, 0, 0]
    assert divide_ports(8, 4) == [0, 0, 1, 1, 2, 2, 3, 3]
    assert divide_ports(4, 3) == [0, 1, 2, 2]
