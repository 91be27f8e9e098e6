# SPDX-License-Identifier: BSD-3-Clause
"""Checks an application's run: answers, the server's count, and the bytes that the interface counted. Pure."""

from __future__ import annotations

from pytest_icbench.driver.application.protocol import Application
from pytest_icbench.model.application import ApplicationRun

#: Bytes of headers in each frame that an interface counts: Ethernet, IPv4, and TCP with time stamps, or UDP.
TCP_HEADERS, UDP_HEADERS = 66, 42
#: Payload that there may be beside what was received: a share for the control connection and segments that were sent
#: again, and bytes of each stream, a window of TCP, that were under way when the client stopped counting.
STREAM_SHARE, STREAM_BYTES = 0.01, 4 << 20
#: Share by which the counts of a stream's two ends may differ.
COUNT_SHARE = 0.001


def why_wrong(application: Application, run: ApplicationRun) -> str | None:
    """Returns why a run's figures do not fit together, in one sentence; None if they do."""
    return _errors(application, run) or _counts(application, run) or _bytes(application, run)


def _errors(application: Application, run: ApplicationRun) -> str | None:
    if not run.client.errors:
        return None
    name, total = application.client.name, run.client.operations
    return f"{name} of pair {run.pair} had {run.client.errors} errors among {total:,.0f} requests"


def _counts(application: Application, run: ApplicationRun) -> str | None:
    there, here = run.server_operations, run.client.operations
    if there is None:
        return None
    allowed = application.tolerance(run.client) + run.client.unanswered
    if application.unit == "megabits":
        allowed += COUNT_SHARE * here
    if abs(there - here) <= allowed:
        return None
    return (
        f"{application.server.name} of pair {run.pair} counted {there:,.0f} {application.unit}, its client"
        f" {application.client.name} {here:,.0f}"
    )


def _bytes(application: Application, run: ApplicationRun) -> str | None:
    """Compares a stream's payload with what the receiving interface counted, less headers."""
    payload, counted = run.client.payload_bytes, run.received_bytes
    if application.unit != "megabits" or payload is None or counted is None:
        return None
    udp = application.load.mode == "udp"
    carried = counted - (UDP_HEADERS if udp else TCP_HEADERS) * (run.received_frames or 0)
    # The last window of a stream may be read after the client has asked for the count.
    slack = STREAM_SHARE * payload + STREAM_BYTES * max(application.load.connections, 1)
    too_few = carried < payload - slack
    # A socket drops datagrams that come too fast; of TCP only what was sent again is beside the payload.
    too_many = not udp and not run.client.retransmits and carried > payload + slack
    if not (too_few or too_many):
        return None
    return (
        f"{application.client.name} of pair {run.pair} tells of {payload:,} bytes of payload, but the interface of"
        f" {application.server.name} received {carried:,} without headers"
    )
