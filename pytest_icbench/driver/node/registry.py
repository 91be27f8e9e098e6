# SPDX-License-Identifier: BSD-3-Clause
"""The kinds of nodes by name: built-in and third-party ones."""

from __future__ import annotations

from collections.abc import Iterable

from pytest_icbench.driver.node import docker, lxc, oci, podman
from pytest_icbench.driver.node.docker import DockerNode
from pytest_icbench.driver.node.lxc import LxcNode
from pytest_icbench.driver.node.netns import NetnsNode
from pytest_icbench.driver.node.oci import OciNode
from pytest_icbench.driver.node.podman import PodmanNode
from pytest_icbench.driver.node.protocol import Node
from pytest_icbench.driver.node.vm.node import VmNode
from pytest_icbench.driver.unique_names import index_by_name
from pytest_icbench.errors import UsageError
from pytest_icbench.model.path import Side
from pytest_icbench.wording import suggestion

_BUILTIN: tuple[type[Node], ...] = (LxcNode, NetnsNode, OciNode, PodmanNode, DockerNode, VmNode)
#: The names of the built-in kinds, the default first.
NODE_KINDS = tuple(cls.kind for cls in _BUILTIN)
#: The changes of the host that only nodes of a kind make, and what undoes them.
UNDO_KINDS = {**lxc.UNDO_KINDS, **oci.UNDO_KINDS, **podman.UNDO_KINDS, **docker.UNDO_KINDS}
#: Joins the kinds of the nodes of sides a and b, where they differ: ``lxc+vm``.
MIXED = "+"

_kinds: dict[str, type[Node]] = {cls.kind: cls for cls in _BUILTIN}


def node_kinds() -> tuple[type[Node], ...]:
    """Returns all kinds, the default first."""
    return tuple(_kinds.values())


def bring(classes: Iterable[type[Node]]) -> None:
    """Replaces the third-party kinds of this process. Raises UsageError if two kinds have the same name."""
    known = index_by_name(_BUILTIN, classes, hook="pytest_icbench_nodes", plural="kinds of nodes", attribute="kind")
    _kinds.clear()
    _kinds.update(known)


def node_sides(kinds: str, where: str = "--icbench-node") -> dict[Side, type[Node]]:
    """Returns the classes of the nodes of sides a and b, by one kind or by two: ``lxc+vm``. Raises UsageError."""
    a, _, b = kinds.partition(MIXED)
    return {"a": node_kind(a, where), "b": node_kind(b or a, where)}


def has_machine(kinds: str) -> bool:
    """Whether one of the kinds is a virtual machine. Raises UsageError for an unknown one."""
    return any(getattr(cls, "machine", False) for cls in node_sides(kinds).values())


def node_kind(kind: str, where: str = "--icbench-node") -> type[Node]:
    """Returns the class of a kind. Raises UsageError for an unknown one.

    Args:
        where: the option or file that names the kind, for the error message.
    """
    if kind not in _kinds:
        raise UsageError(f"{where}: there is no kind of node '{kind}'{suggestion(kind, tuple(_kinds))}")
    return _kinds[kind]
