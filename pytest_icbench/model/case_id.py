# SPDX-License-Identifier: BSD-3-Clause
"""What a controller of xdist knows of its workers and their tests: node ids and gateways. Pure."""

from __future__ import annotations

import re
from typing import Any

from pytest_icbench.model.case import APIS, NETDEV_APIS
from pytest_icbench.model.traffic import LABEL, Traffic

#: The end of a benchmark's node id: all that a controller knows of the items of its workers.
CASE_ID = re.compile(
    rf"(?P<head>[\w:+.-]+)-(?P<traffic>{LABEL})-b\d+-(?P<pairs>\d+)vs\d+-R[\w.:%*]+?(?P<remote>-remote)?\]$"
)
#: Under this name a worker's output has why it refused to begin.
REFUSAL = "icbench_refusal"
#: How the traceback of a worker that did not even come to collecting ends.
_USAGE = re.compile(r"^[\w.]*UsageError: (.+)\Z", re.MULTILINE | re.DOTALL)
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


def host_key(spec: Any) -> str:
    """What tells the hosts of two workers apart: ssh's destination, or the gateway that leads there, or this host."""
    for name in ("ssh", "vagrant_ssh", "socket", "via"):
        if value := getattr(spec, name, None):
            return f"{name}={value}"
    return "here"


def sends(node: Any) -> bool:
    """Whether a worker's files are not this host's, so that it has to send them."""
    spec = node.gateway.spec
    return host_key(spec) != "here" or bool(spec.chdir)


def refusal(node: Any, error: object) -> str | None:
    """Why a worker that has ended refused to begin, in a sentence that names it; None if that is not how it ended."""
    reason = getattr(node, "workeroutput", {}).get(REFUSAL)
    if reason is None and (found := _USAGE.search(str(getattr(error, "formatted", "")).strip())) is not None:
        reason = found[1]
    return None if reason is None else f"worker {node.gateway.id}: {reason}"
