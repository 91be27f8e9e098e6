# SPDX-License-Identifier: BSD-3-Clause
"""The program of VPP, and the release that it is of."""

from __future__ import annotations

from pathlib import Path

from pytest_icbench.driver.switch.dpdk import dpdk_process
from pytest_icbench.driver.switch.vpp import client as vpp_client
from pytest_icbench.driver.switch.vpp.output import linked_version
from pytest_icbench.errors import Unsupported
from pytest_icbench.host.session import HostSession

_REMEDY = "build it from its source (docs/reference/switches.md says how) or install FD.io's packages"
_PACKAGES = "/usr/bin/vpp"
#: The first release whose vhost-user is a plugin and which has all the messages used here.
_OLDEST = (24, 10)


def find(session: HostSession, given: Path | None = None) -> Path:
    """Returns the user's binary, else that on PATH or of FD.io's packages. Raises Unsupported with the remedy."""
    return dpdk_process.find_binary(session, "vpp", given, ["vpp", _PACKAGES], _REMEDY)


def version(binary: Path) -> str:
    """Returns the version of the libraries that it is linked with.

    Raises Unsupported if it is no VPP or too old, and without the Python binding.
    """
    try:
        linked = linked_version(binary.read_bytes())
    except OSError as error:
        raise Unsupported(
            f"{binary} cannot be read ({error.strerror}): name one with --icbench-binary vpp=PATH"
        ) from None
    if linked is None:
        raise Unsupported(f"{binary} is not VPP: name one with --icbench-binary vpp=PATH")
    if tuple(map(int, linked.split(".")[:2])) < _OLDEST:
        oldest = ".".join(map(str, _OLDEST))
        raise Unsupported(f"{binary} is VPP {linked}, and {oldest} is the oldest that is supported: {_REMEDY}")
    vpp_client.check_installed()
    return linked
