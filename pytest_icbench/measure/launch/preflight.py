# SPDX-License-Identifier: BSD-3-Clause
"""Checks whether frames of the workload pass through a rig both ways and undamaged, after each build and resume."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path

from pytest_icbench.measure.launch.launcher import Run
from pytest_icbench.measure.launch.processes import LaunchOutput, ProcessOutput
from pytest_icbench.measure.launch.validity import corrupted
from pytest_icbench.measure.measured_rig import MeasuredRig
from pytest_icbench.model.case import Case
from pytest_icbench.model.path import FramePath
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.settings import Settings

#: Requests of one pair per second: all answers checked come within 0.15 s, and a pair of sockets has time left.
RATE_PPS = 8000
#: Cycles per second that functions may take for it where they say what a frame costs: a twentieth of a CPU, so that no
#: frames wait in them when the first launch begins.
MOST_CYCLES, LEAST_PPS = 1e8, 100
#: Answers of each pair whose every byte is checked on the way there and back: damage to one frame in a thousand shows.
#: A pair that cannot answer as many has ``LOOKING_S`` seconds from the first answers of all pairs on.
LOOKED_AT = 1000
LOOKING_S = 0.3
#: How often answers are counted, in seconds.
WINDOW_S = 0.02
#: Longest wait for answers, in seconds. A vhost library may need a second until it looks at a new connection.
PATIENCE_S = 2.0
#: Of so many frames one arrives at least, or the direction counts as silent: where checksums stay unfinished, one frame
#: in 65536 has the right one by chance, and its answer too.
BY_CHANCE = 1000


def preflight(
    rig: MeasuredRig, case: Case, settings: Settings, *, executable: Path | None = None
) -> tuple[str, str] | None:
    """Runs a client and a server on every pair until every client has answers; both check every byte.

    Returns None if every client had answers and no frame was damaged. Else the reason and one sentence, which names the
    direction in which nothing arrived, or next to nothing (``no-forwarding``), or the receiver of damaged frames
    (``corrupted``). Raises WorkloadError, ProvisionError: as in ``run_launch``.
    """
    cost = 2 * case.chain * sum(terms.least_cycles for terms in rig.terms)
    rate_pps = max(LEAST_PPS, min(RATE_PPS, int(MOST_CYCLES / cost))) if cost else RATE_PPS
    traffic = case.answered
    same = case.functions[0] if case.mixed else case.function  # so that all pairs are asked
    probe = replace(case, function=same, dimension="latency", blocking=False, check_payload=True).sending(
        traffic=traffic, burst=1, rate=Rate(rate_pps)
    )
    short = replace(
        settings,
        warmup_s=0.0,
        max_warmup_s=0.0,
        duration_s=PATIENCE_S,
        window_s=WINDOW_S,
        drain_s=min(settings.drain_s, 0.1),
        skip_s=0.0,
        keep_s=None,
        stream=None,
        train=None,
    )
    run = Run(rig, probe, short, enough=Looking())
    run.run(0, executable)
    rig.tsc_hz = next((output.hello.tsc_hz for output in run.launch_output.outputs.values() if output.hello), None)
    if damaged := corrupted(list(run.launch_output.outputs.values())):
        return "corrupted", f"{damaged}, before the measurement"
    silent = _silent_direction(run.launch_output)
    return None if silent is None else ("no-forwarding", silent)


def _couples(launch_output: LaunchOutput) -> list[tuple[ProcessOutput, ProcessOutput]]:
    outputs = list(launch_output.outputs.values())
    return FramePath.over(outputs).by_pair(outputs)


@dataclass(slots=True)
class Looking:
    """Decides when enough answers were seen; ``since`` is when every pair had answers."""

    since: float | None = None

    def __call__(self, launch_output: LaunchOutput) -> bool:
        fewest = min(_answers(client) for client, _ in _couples(launch_output))
        if not fewest:
            return False
        now = time.monotonic()
        self.since = now if self.since is None else self.since
        return fewest >= LOOKED_AT or now - self.since >= LOOKING_S


def _answers(client: ProcessOutput) -> int:
    return sum(line.received.received for line in client.windows.values() if line.received is not None)


def _silent_direction(launch_output: LaunchOutput) -> str | None:
    for pair, (client, server) in enumerate(_couples(launch_output), start=1):
        asked = client.summary.sent.sent if client.summary and client.summary.sent else 0
        arrived = server.summary.received.received if server.summary and server.summary.received else 0
        answered = client.summary.received.received if client.summary and client.summary.received else 0
        if arrived * BY_CHANCE < asked or not arrived:
            return f"pair {pair}: of {asked} frames from a to b {arrived or 'none'} arrived before the measurement"
        if answered * BY_CHANCE < arrived or not answered:
            return f"pair {pair}: {arrived} frames arrived from a to b, but {answered or 'none'} came back from b to a"
    return None
