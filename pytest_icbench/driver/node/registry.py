# SPDX-License-Identifier: BSD-3-Clause
"""The kinds of nodes by the names users type: the package's own, and those that other packages bring."""

from __future__ import annotations

from collections.abc import Iterable

from pytest_icbench.driver.node.lxc.node import LxcNode
from pytest_icbench.driver.node.netns import NetnsNode
from pytest_icbench.driver.node.protocol import Node, NodeSpec
from pytest_icbench.errors import UsageError
from pytest_icbench.host.session import HostSession
from pytest_icbench.wording import suggestion

_BUILTIN: tuple[type[Node], ...] = (LxcNode, NetnsNode)
#: Names of the package's own, the default first.
NODE_KINDS = tuple(cls.kind for cls in _BUILTIN)

_kinds: dict[str, type[Node]] = {cls.kind: cls for cls in _BUILTIN}


def node_kinds() -> tuple[type[Node], ...]:
    """All kinds, the default first."""
    return tuple(_kinds.values())


def bring(classes: Iterable[type[Node]]) -> None:
    """Makes kinds of other packages known in this process, in place of those that were brought before.

    Raises UsageError if two have one name.
    """
    known = {cls.kind: cls for cls in _BUILTIN}
    for cls in classes:
        if known.setdefault(cls.kind, cls) is not cls:
            raise UsageError(
                f"pytest_icbench_nodes: two kinds of nodes have the name '{cls.kind}'"
                f" ({known[cls.kind].__module__} and {cls.__module__}); rename one"
            )
    _kinds.clear()
    _kinds.update(known)


def node_kind(kind: str, where: str = "--icbench-node") -> type[Node]:
    """The class of a kind. Raises UsageError for an unknown one."""
    if kind not in _kinds:
        raise UsageError(f"{where}: there is no kind of node '{kind}'{suggestion(kind, tuple(_kinds))}")
    return _kinds[kind]


def probe_node(kind: str, session: HostSession) -> None:
    """Changes nothing. Raises Unsupported where nodes of this kind cannot be had, UsageError for an unknown kind."""
    node_kind(kind).probe(session)


def make_node(kind: str, session: HostSession, spec: NodeSpec) -> Node:
    """A node that has not been started. Raises as ``probe_node``."""
    return node_kind(kind)(session, spec)
