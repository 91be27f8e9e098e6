# SPDX-License-Identifier: BSD-3-Clause
"""The summary of the workload's ``ask``: requests at a rate of its own, and their answers. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_icbench.driver.workload.output import SCHEMA, histogram
from pytest_icbench.model.codec import DamagedData, decode, from_json
from pytest_icbench.stats.quantiles import Histogram


@dataclass(frozen=True, slots=True)
class AskedCounts:
    """The counts of a run.

    Attributes:
        duration_ns: until the end of the schedule, or until the last answer if that came later.
        scheduled: requests that were due; ``not_offered`` of them were never sent.
        wrong: answers without the value, or with another one.
        late: datagrams that came when nobody waited for them any more.
        unanswered: requests that were due and have no answer.
        cpu_ns: CPU time of the run.
    """

    reason: str
    duration_ns: int
    scheduled: int
    not_offered: int
    sent: int
    answered: int
    wrong: int
    late: int
    unanswered: int
    payload_bytes: int
    cpu_ns: int


@dataclass(frozen=True, slots=True)
class Asked:
    """A run's counts, and its times in ns: from the intended moment, from the actual one, and between these two."""

    counts: AskedCounts
    rtt: Histogram
    rtt_actual: Histogram
    lateness: Histogram


def parse_asked(line: str) -> Asked:
    """Returns what a summary of ``ask`` says. Raises DamagedData if the line is no such summary."""
    where = "ask"
    data = from_json(line, where)
    if not isinstance(data, dict) or data.get("role") != "ask" or data.get("schema") != SCHEMA:
        raise DamagedData(f"{where}: this is no summary of ask: {line[:80]!r}")
    counts = decode(AskedCounts, data, where)
    return Asked(
        counts,
        rtt=histogram(data.get("rtt_ns"), counts.unanswered, f"{where}: rtt_ns"),
        rtt_actual=histogram(data.get("rtt_actual_ns"), counts.unanswered, f"{where}: rtt_actual_ns"),
        lateness=histogram(data.get("lateness_ns"), 0, f"{where}: lateness_ns"),
    )
