# SPDX-License-Identifier: BSD-3-Clause
"""The kinds of nodes by the names users type."""

from __future__ import annotations

from pytest_icbench.driver.node import netns
from pytest_icbench.driver.node.lxc import node
from pytest_icbench.driver.node.protocol import Node, NodeSpec
from pytest_icbench.errors import UsageError
from pytest_icbench.host.session import HostSession

#: The default first.
NODE_KINDS = ("lxc", "netns")


def probe_node(kind: str, session: HostSession) -> None:
    """Changes nothing. Raises Unsupported where nodes of this kind cannot be had, UsageError for an unknown kind."""
    if kind == "lxc":
        node.probe(session)
    elif kind == "netns":
        netns.probe()
    else:
        raise _unknown(kind)


def make_node(kind: str, session: HostSession, spec: NodeSpec) -> Node:
    """A node that has not been started. Raises as ``probe_node``."""
    if kind == "lxc":
        return node.LxcNode(session, spec)
    if kind == "netns":
        return netns.NetnsNode(session, spec)
    raise _unknown(kind)


def _unknown(kind: str) -> UsageError:
    return UsageError(f"there is no node kind {kind!r}: choose one of {', '.join(NODE_KINDS)}")
