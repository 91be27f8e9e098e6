# SPDX-License-Identifier: BSD-3-Clause
"""The rights that root lacks in an unprivileged container, and how each kind of runner grants them."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping

from pytest_icbench.host.cgroup_layout import Layout
from pytest_icbench.host.root import Root

#: Capabilities that every case needs: their bits, and what for (capabilities(7)).
CAPABILITIES = {"CAP_NET_ADMIN": (12, "links"), "CAP_SYS_ADMIN": (21, "namespaces and mounts")}
#: Where jobs run in containers, and what grants them all rights on the host.
GRANTS: Mapping[str, str] = {
    "Docker": "docker run --privileged --cgroupns host",
    "Podman": "sudo podman run --privileged --cgroupns host",
    "Kubernetes": "securityContext: {privileged: true}",
    "GitLab": "privileged = true, in [runners.docker]",
    "GitHub": "container: {options: --privileged --cgroupns host}",
}
#: The same where the engine is not root's: its root is that of a user namespace, whatever a container is granted.
ROOTLESS_GRANTS: Mapping[str, str] = {
    "Docker": "sudo docker run --privileged --cgroupns host",
    "Podman": GRANTS["Podman"],
    "Kubernetes": "hostUsers: true, and securityContext: {privileged: true}",
    "GitLab": "privileged = true, in [runners.docker], with the Docker of root",
    "GitHub": f"{GRANTS['GitHub']}, with the Docker of root",
}
_PAGES = "/sys/devices/system/node/node*/hugepages/hugepages-*/nr_hugepages"


def missing_capabilities(root: Root) -> dict[str, str]:
    """Returns the capabilities that every case needs and this process lacks, each with its purpose."""
    for line in (root.read("/proc/self/status") or "").splitlines():
        name, _, value = line.partition(":")
        if name == "CapEff":
            held = int(value, 16)
            return {name: use for name, (bit, use) in CAPABILITIES.items() if not held >> bit & 1}
    return {}


def explain_missing_capabilities(root: Root) -> str | None:
    """Returns why root cannot measure here, with the remedy; None if it can."""
    missing = missing_capabilities(root)
    return f"root lacks {_named(missing)} here, so no case can run: {remedy(root)}" if missing else None


def explain_missing_rights(root: Root) -> str | None:
    """Returns the rights that cases need and root lacks here, with the remedy; None if none is missing."""
    missing = missing_capabilities(root)
    tops = [hierarchy.top for hierarchy in Layout.read(root).hierarchies]
    if tops and not any(os.access(root.path(top), os.W_OK) for top in tops):
        missing["the right to write /sys/fs/cgroup"] = "containers, precedence"
    pages = root.glob(_PAGES)
    if pages and not any(os.access(root.path(page), os.W_OK) for page in pages):
        missing["the right to reserve huge pages below /sys"] = "DPDK"
    whose = "" if is_initial_user_namespace(root) else "is that of a user namespace, as in a rootless container"
    if not missing and not whose:
        return None
    lacks = f"lacks {_named(missing)} here" if missing else "cannot change the host"
    return f"root {whose and f'{whose}, and '}{lacks}, so cases that need that are skipped or fail: {remedy(root)}"


def _named(missing: Mapping[str, str]) -> str:
    return ", ".join(f"{name} ({use})" for name, use in missing.items())


def remedy(root: Root) -> str:
    """Returns where root has all rights, by the kind of container in which this process may be."""
    grants = GRANTS if is_initial_user_namespace(root) else ROOTLESS_GRANTS
    return f"run on the host itself, or in a privileged container ({'; '.join(map(': '.join, grants.items()))})"


def remedy_of(code: int | None, otherwise: str) -> str:
    """Returns the remedy for a refusal by the kernel: that for a missing right, or ``otherwise`` for another code."""
    return remedy(Root()) if code in (errno.EPERM, errno.EACCES) else otherwise


def is_initial_user_namespace(root: Root) -> bool:
    """Whether root here is root of the host, and not of a user namespace."""
    return (root.read("/proc/self/uid_map") or "0 0 4294967295").split() == ["0", "0", "4294967295"]
