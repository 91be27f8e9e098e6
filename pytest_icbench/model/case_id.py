# SPDX-License-Identifier: BSD-3-Clause
"""Reads cases from the ids of their tests, which may be all that is known of them. Pure."""

from __future__ import annotations

import re

from pytest_icbench.model.case import APIS, NETDEV_APIS
from pytest_icbench.model.traffic import LABEL, WAITS, Traffic

#: The end of a benchmark's node id. A controller knows nothing else of its workers' items.
CASE_ID = re.compile(
    rf"(?P<head>[\w:+.-]+)-(?:(?P<traffic>{LABEL})-b\d+|(?:app|birth):[\w:.]+)-(?P<pairs>\d+)vs\d+-R[\w.:%*]+?(?P<remote>-remote)?\]$"
)
_API, _WAIT = "|".join(sorted(APIS, key=len, reverse=True)), "|".join(WAITS)
_FLAGS = re.compile(rf"(?:-(?P<api>{_API}))?(?:-blocking)?(?:-(?:{_WAIT}))?(?:-touch)?$")


def is_case(nodeid: str) -> bool:
    """Whether a node id is a benchmark's."""
    return CASE_ID.search(nodeid) is not None


def rig_group(nodeid: str) -> tuple[object, ...] | None:
    """Returns a key that benchmarks on one rig share (``Case.rig_key``), as far as the id shows; None for other tests.

    A switch whose name ends like an API (``forward-raw``) cannot be distinguished from another switch with raw sockets.
    That only costs a rig that is built once more.
    """
    match = CASE_ID.search(nodeid.rpartition("[")[2]) if "[" in nodeid else None
    if match is None:
        return None
    flags = _FLAGS.search(match["head"])
    assert flags is not None
    return (
        match["head"][: flags.start()],
        match["pairs"],
        match["traffic"] is not None and (traffic := Traffic.from_label(match["traffic"])).jumbo,
        match["traffic"] is not None and traffic.queues,
        match["traffic"] is not None and (traffic.routes, traffic.routes is not None and traffic.both),
        match["remote"] is not None,
        flags["api"] in NETDEV_APIS,
    )
