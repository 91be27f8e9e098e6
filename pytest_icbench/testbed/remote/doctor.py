# SPDX-License-Identifier: BSD-3-Clause
"""``icbench doctor --remote HOST``: whether that host can be a case's second one. Changes nothing there."""

from __future__ import annotations

from collections.abc import Collection

from pytest_icbench.config import values
from pytest_icbench.driver.workload.version import workload_version
from pytest_icbench.errors import IcbenchError
from pytest_icbench.host.findings import Finding, Level
from pytest_icbench.testbed.remote.connection import Connection
from pytest_icbench.testbed.remote.host import RemoteCalls
from pytest_icbench.version import package_version


def examine_remote(host: str, python: str | None, pf: str | None, asked: Collection[str] = ()) -> list[Finding]:
    """Returns findings about the connection and the versions, then those of ``icbench doctor`` there.

    Args:
        host: ``[USER@]HOST``.
        python: path of the Python over there; None to look for one.
        pf: the card that ``sriov`` is to use there.
        asked: the switches to examine there, as ``testbed.doctor.examine`` takes them.

    Raises UsageError if such a Python cannot be reached, or has another version of the package.
    """
    values.host_name(host, "--remote")
    if python is not None:
        values.python_path(python, "--remote-python")
    connection = Connection(host, python)
    try:
        findings = [
            Finding(
                Level.GOOD,
                "connection",
                f"ssh leads to Python {connection.python} with pytest-icbench {package_version()}, as here",
            ),
            _workload(connection),
        ]
        return findings + [Finding.from_dict(data) for data in RemoteCalls(connection).examine(pf, tuple(asked))]
    finally:
        connection.close()


def _workload(connection: Connection) -> Finding:
    try:
        there, here = RemoteCalls(connection).versions(), workload_version()
    except IcbenchError as error:
        return Finding(Level.MISSING, "versions", str(error))
    versions = f"workload {there.workload} with DPDK {there.dpdk or 'absent'} there"
    if (there.workload, there.dpdk) == (here.workload, here.dpdk):
        return Finding(Level.GOOD, "versions", f"{versions}, the same here")
    return Finding(
        Level.DISTURBS,
        "versions",
        f"{versions}, {here.workload} with DPDK {here.dpdk or 'absent'} here",
        "build both with the same DPDK, if ends shall be alike",
    )
