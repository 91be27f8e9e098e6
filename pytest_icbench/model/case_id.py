# SPDX-License-Identifier: BSD-3-Clause
"""Cases by the ids of their tests, which may be all that is known of them. Pure."""

from __future__ import annotations

import re

from pytest_icbench.model.case import APIS, NETDEV_APIS
from pytest_icbench.model.traffic import LABEL, Traffic

#: The end of a benchmark's node id: all that a controller knows of the items of its workers.
CASE_ID = re.compile(
    rf"(?P<head>[\w:+.-]+)-(?P<traffic>{LABEL})-b\d+-(?P<pairs>\d+)vs\d+-R[\w.:%*]+?(?P<remote>-remote)?\]$"
)
_FLAGS = re.compile(rf"(?:-(?P<api>{'|'.join(sorted(APIS, key=len, reverse=True))}))?(?:-blocking)?(?:-touch)?$")


def is_case(nodeid: str) -> bool:
    """Whether a node id is a benchmark's."""
    return CASE_ID.search(nodeid) is not None


def rig_group(nodeid: str) -> tuple[object, ...] | None:
    """Benchmarks with the same group run on one rig (``Case.rig_key``), as far as an id tells; None for other tests.

    A switch whose name ends like an API (``forward-raw``) is not told from another one's raw sockets: that costs a rig
    built once more, nothing else.
    """
    found = CASE_ID.search(nodeid.rpartition("[")[2]) if "[" in nodeid else None
    if found is None:
        return None
    flags = _FLAGS.search(found["head"])
    assert flags is not None
    return (
        found["head"][: flags.start()],
        found["pairs"],
        Traffic.from_label(found["traffic"]).jumbo,
        found["remote"] is not None,
        flags["api"] in NETDEV_APIS,
    )
