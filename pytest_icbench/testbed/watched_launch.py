# SPDX-License-Identifier: BSD-3-Clause
"""A measured launch of pair 1 alone, while the other pairs' endpoints capture what arrives at them."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, replace

from pytest_icbench.driver.workload.executable import workload_path
from pytest_icbench.errors import WorkloadError
from pytest_icbench.measure.launch.commands import Command, commands, launch_plan
from pytest_icbench.measure.launch.culprit import look_at_the_switch
from pytest_icbench.model.case import Case
from pytest_icbench.model.settings import Settings
from pytest_icbench.testbed.exchange import Captured, replay_commands
from pytest_icbench.testbed.rig import Rig

TIMEOUT_S = 30.0
_SETTINGS = Settings(warmup_s=0.1, duration_s=0.5, drain_s=0.3, repeats=1)
#: The window of a control frame, which announces an endpoint before the switch can know it: the second half-word of the
#: stamp with which the payload begins.
_CONTROL = b"\xff\xff"


@dataclass(frozen=True, slots=True)
class WatchedLaunch:
    """The number of frames at the receiver, and the frames that arrived elsewhere, without control frames."""

    received: int
    leaked: list[bytes]


def watched_launch(rig: Rig, case: Case) -> WatchedLaunch:
    """Sends over pair 1 as fast as it can. Raises WorkloadError if a process does not get ready, or does not end."""
    path = case.path
    sender, receiver = path.ends(1)
    listeners = [index for index in path.endpoints if path.pair(index) != 1]
    listening = replay_commands(rig, case, tag="leak", indexes=listeners)
    launched: dict[int, Command] = {**commands(rig, replace(case, pairs=1), _SETTINGS), **listening}
    captured = [Captured(command.captures) for command in listening.values()]
    launch = rig.launch(launch_plan(launched, workload_path(), TIMEOUT_S))
    try:
        ready: set[int] = set()
        summaries: dict[int, int] = {}
        deadline = time.monotonic() + TIMEOUT_S
        began = stopped = False
        sender_over: float | None = None
        while len(summaries) < len(launched):
            polled = rig.poll(launch, 0.05)
            for index, text in polled.lines:
                line = json.loads(text)
                if line["type"] == "ready":
                    ready.add(index)
                elif line["type"] == "summary":
                    summaries[index] = int(line.get("received", 0))
            if len(ready) == len(launched) and not began:
                rig.start(launch)
                began = True
                deadline = time.monotonic() + TIMEOUT_S  # the time before was for the start
            if sender in summaries and sender_over is None:
                sender_over = time.monotonic()
            # On a busy host, a receiver that got none of the marks at the flow's end does not know that it is over.
            waited = sender_over is not None and time.monotonic() - sender_over > 2 * _SETTINGS.drain_s
            if ({sender, receiver} <= set(summaries) or waited) and not stopped:
                rig.tell(launch, "stop\n")
                stopped = True
            gone = [index for index in polled.exited if index not in summaries]
            if gone or time.monotonic() > deadline:
                look_at_the_switch(rig)
                index = gone[0] if gone else min(set(launched) - set(summaries))
                raise WorkloadError(
                    f"endpoint {index} has not finished; the end of its log:\n{rig.log_tail(launch, index)}"
                )
    finally:
        rig.end(launch)
    frames = [frame for capture in captured for frame in capture.fresh()]
    window = slice(case.traffic.headers_bytes + 2, case.traffic.headers_bytes + 4)
    return WatchedLaunch(summaries[receiver], [frame for frame in frames if frame[window] != _CONTROL])
