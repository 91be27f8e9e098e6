# SPDX-License-Identifier: BSD-3-Clause
"""A sender and a receiver of whose output the totals alone are there."""

from __future__ import annotations

from typing import Any

from pytest_icbench.driver.workload.command import WorkloadCommand
from pytest_icbench.driver.workload.output import ReceivedTotals, Role, SentTotals, Summary
from pytest_icbench.measure.launch.processes import ProcessOutput
from pytest_icbench.model.endpoint import Address, Veth
from pytest_icbench.model.traffic import Traffic


def couple(sent: SentTotals, received: ReceivedTotals) -> tuple[ProcessOutput, ProcessOutput]:
    """Returns the output of the two ends of pair 1."""
    command: dict[str, Any] = {
        "endpoint": Veth(Address.of(1, "a"), "eth0", None),
        "peer": Address.of(1, "b"),
        "api": "raw",
        "cpu": 0,
        "traffic": Traffic(),
        "burst": 1,
        "stream": 1,
    }
    ends: list[ProcessOutput] = []
    roles: tuple[tuple[Role, Any], ...] = (("sender", "send"), ("receiver", "recv"))
    for index, (role, application) in enumerate(roles):
        mine = sent if role == "sender" else None
        other = received if role == "receiver" else None
        summary = Summary(role, 1, "duration", 1, 1, 0, 0, mine, other)
        ends.append(ProcessOutput(index, WorkloadCommand(application=application, **command), summary=summary))
    return ends[0], ends[1]
