# SPDX-License-Identifier: BSD-3-Clause
"""Summarizes launches of an application: operations, the client's own response times, CPU time. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_icbench.measure.method import Method
from pytest_icbench.measure.summary.bottleneck import BUSY_SHARE, STEAL_SHARE, Bottleneck
from pytest_icbench.measure.summary.launch_log import over
from pytest_icbench.measure.summary.summarize import Summary
from pytest_icbench.model.application import CLOSED_LOOP, OPEN_LOOP, ApplicationLaunch, of_application
from pytest_icbench.model.figures import Application, kept
from pytest_icbench.model.launch import Launch
from pytest_icbench.stats.quantiles import Estimate, median


def application_figures(launches: Sequence[Launch]) -> Application:
    """Returns the figures of an application."""
    tsc_hz = next((launch.tsc_hz for launch in launches if launch.tsc_hz is not None), None)
    runs = [launch.application for launch in launches if launch.application is not None]
    rate = _estimate(launches, "operations_per_second")
    client, server = (_estimate(launches, f"{side}_cpu_ns_per_operation") for side in ("client", "server"))
    ghz = None if tsc_hz is None else tsc_hz / 1e9
    return Application(
        operations_per_second=rate,
        operations=sum(run.operations for run in runs) if runs else None,
        goodput_gbps=kept(rate, 1e-3) if any(one.unit == "megabits" for run in runs for one in run.runs) else None,
        fairness=_fairness(runs),
        response_mean_ns=_estimate(launches, "response_mean_ns"),
        response_p50_ns=_estimate(launches, "response_p50_ns"),
        response_p90_ns=_estimate(launches, "response_p90_ns"),
        response_p99_ns=_estimate(launches, "response_p99_ns"),
        response_p99_9_ns=_estimate(launches, "response_p99_9_ns"),
        rtt_lost=sum(one.client.unanswered for run in runs for one in run.runs),
        client_cpu_ns_per_operation=client,
        server_cpu_ns_per_operation=server,
        client_cycles_per_operation=None if ghz is None else kept(client, ghz),
        server_cycles_per_operation=None if ghz is None else kept(server, ghz),
        softirq_ns_per_operation=_estimate(launches, "softirq_ns_per_operation"),
    )


def application_bottleneck(launches: Sequence[Launch]) -> Bottleneck:
    """Returns what limited an application; unknown without a launch.

    The limit is an endpoint if its process had its CPU almost all the time. Two processes that wait for each other, as
    with one connection, leave both CPUs idle. Then the limit is the latency of the path and of the schedulers.
    """
    runs = [launch.application for launch in launches if launch.application is not None]
    if not runs:
        return Bottleneck("unknown", "")
    steal = median([launch.steal_share for launch in launches])
    shares = {side: _busy(runs, side) for side in ("client", "server")}
    reported = ", ".join(f"the {side} had {share:.0%} of a CPU" for side, share in shares.items() if share is not None)
    if steal >= STEAL_SHARE:
        return Bottleneck("host", f"the hypervisor took {steal:.1%} of the endpoints' CPUs")
    busy = [side for side, share in shares.items() if share is not None and share >= BUSY_SHARE]
    if busy:
        return Bottleneck("endpoint", reported)
    return Bottleneck("unknown", f"{reported}: neither was busy all the time" if reported else "")


def _busy(runs: Sequence[ApplicationLaunch], side: str) -> float | None:
    """Returns the greatest share of a CPU that a client, or a server, of a launch had, median over launches."""
    shares = []
    for run in runs:
        times = [one.client_cpu_ns if side == "client" else one.server_cpu_ns for one in run.runs]
        known = [time for time in times if time is not None]
        if known and run.seconds > 0:
            shares.append(max(known) / 1e9 / run.seconds)
    return median(shares) if shares else None


def _fairness(runs: Sequence[ApplicationLaunch]) -> float | None:
    """Returns the greatest rate of a pair over the least, by the medians over launches."""
    pairs = {one.pair for run in runs for one in run.runs}
    rates = [
        median([one.client.operations_per_second for run in runs for one in run.runs if one.pair == pair])
        for pair in sorted(pairs)
    ]
    return max(rates) / min(rates) if rates and min(rates) > 0 else None


def _estimate(launches: Sequence[Launch], name: str) -> Estimate | None:
    """Returns the median over launches with its interval; None unless every launch has the figure."""
    values = [of_application(launch.application, name) if launch.application else None for launch in launches]
    known = [float(value) for value in values if value is not None]
    return kept(over(launches, known)) if known and len(known) == len(values) else None


METHOD = Method(
    Summary(
        lambda _case, log: application_figures(log.launches),
        lambda _case, launches, _around: application_bottleneck(launches),
        metric=lambda _case, around: OPEN_LOOP if around.open_loop else CLOSED_LOOP,
    )
)
