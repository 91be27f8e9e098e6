# SPDX-License-Identifier: BSD-3-Clause
"""The values that a session may have written into its journal: its own names, and files of the kernel that it sets.

The entries of a journal are undone as root. A value that no session writes is refused before that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_icbench.host.namespaces import NETNS_DIR
from pytest_icbench.model.candidate import SETTABLE


@dataclass(frozen=True, slots=True)
class Scope:
    """A session whose changes are undone.

    Attributes:
        dir: its directory, whose name is the session's id.
        base: the directory that holds /sys and /proc.
    """

    dir: Path
    base: Path = Path("/")


#: Whether a session may have written a value.
Check = Callable[[Any, Scope], bool]

#: Files of the kernel that sessions set, below ``Scope.base``.
_KERNEL_FILES = re.compile(
    r"/sys/devices/system/cpu/(cpu\d+/cpufreq/(boost|scaling_governor|energy_performance_preference)"
    r"|cpufreq/boost|intel_pstate/no_turbo)"
    r"|/sys/bus/pci/devices/[0-9a-f:.]+/sriov_drivers_autoprobe"
    r"|/sys/class/net/(?!\.)[^/\s]{1,15}/mtu"
    r"|/proc/sys/net/ipv6/conf/(?!\.)[^/\s]{1,15}/disable_ipv6"
    rf"|{SETTABLE}"
)
_SYSCTL = re.compile(r"ipv6/conf/(?!\.)[^/\s]{1,15}/(disable_ipv6|accept_ra|autoconf)")


def matching(pattern: str) -> Check:
    """Returns a check that a text, or each text of several, matches a whole pattern. None passes."""
    compiled = re.compile(pattern)

    def check(value: Any, scope: Scope) -> bool:  # noqa: ARG001 - the same for every session
        texts = [value] if isinstance(value, str) else value or ()
        return all(compiled.fullmatch(text) for text in texts)

    return check


#: A network interface; a PCI address; either; a driver or module.
interface = matching(r"(?!\.{1,2}$)[^/\s\x00]{1,15}")
pci_address = matching(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
interface_or_pci = matching(r"(?!\.{1,2}$)[^/\s\x00]{1,15}|[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
module = matching(r"[A-Za-z0-9_][A-Za-z0-9_-]*|")


def session_id(value: Any, scope: Scope) -> bool:
    """Whether a value is the session's id."""
    return bool(value == scope.dir.name)


def group_name(value: Any, scope: Scope) -> bool:
    """Whether a value is the name of one of the session's control groups."""
    return bool(value == f"icb{scope.dir.name}") or name(value, scope)


def group_path(value: Any, scope: Scope) -> bool:  # noqa: ARG001 - the same for every session
    """Whether a value is the path of a control group below a mount point."""
    return bool(value.startswith("/") and ".." not in Path(value).parts and "\0" not in value)


def name(value: Any, scope: Scope) -> bool:
    """Whether a value is a name that ``HostSession.name`` gives."""
    return re.fullmatch(rf"icb{re.escape(scope.dir.name)}-[\w.-]+", value, re.ASCII) is not None


def link(value: Any, scope: Scope) -> bool:
    """Whether a value is a name that ``HostSession.name_link`` gives."""
    return re.fullmatch(rf"ic{re.escape(scope.dir.name)}[\w.-]*", value, re.ASCII) is not None


def netns(value: Any, scope: Scope) -> bool:
    """Whether a value is the path of a namespace of the session, or None."""
    return value is None or (Path(value).parent == NETNS_DIR and name(Path(value).name, scope))


def below_session(value: Any, scope: Scope) -> bool:
    """Whether a value is a path below the session's directory, links followed but for the last component's."""
    path = Path(value)
    inside = path.parent.resolve().is_relative_to(scope.dir.resolve())
    return inside and path.is_absolute() and path.name not in ("", "..")


def container_path(value: Any, scope: Scope) -> bool:
    """Whether a value is a directory of the session's containers: each has its own, with a random name."""
    path = Path(value)
    return path.parent == scope.dir / "lxc" and re.fullmatch(r"[0-9a-f]{16}", path.name) is not None


def base(value: Any, scope: Scope) -> bool:
    """Whether a value is the directory that holds /sys and /proc."""
    return bool(value == str(scope.base))


def kernel_file(value: Any, scope: Scope) -> bool:
    """Whether a value is the path of a kernel file that sessions set."""
    if not value.startswith("/"):
        return False
    return _KERNEL_FILES.fullmatch("/" + value.removeprefix(str(scope.base)).lstrip("/")) is not None


def subtree_control(value: Any, scope: Scope) -> bool:  # noqa: ARG001 - the same for every session
    """Whether a value is the path of a control group's file of enabled controllers."""
    path = Path(value)
    return path.is_relative_to("/sys/fs/cgroup") and ".." not in path.parts and path.name == "cgroup.subtree_control"


def sysctls(value: Mapping[str, str], scope: Scope) -> bool:  # noqa: ARG001 - the same for every session
    """Whether all keys are settings of a NIC below /proc/sys/net."""
    return all(_SYSCTL.fullmatch(key) for key in value)
