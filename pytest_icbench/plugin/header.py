# SPDX-License-Identifier: BSD-3-Clause
"""The line of this package in pytest's header."""

from __future__ import annotations

from pytest_icbench.driver.workload.version import workload_version
from pytest_icbench.version import package_version


def header_line() -> str:
    """Returns the versions of the package, the workload and DPDK."""
    line = f"icbench: {package_version()}"
    try:
        version = workload_version()
    except Exception as error:  # a header must not end the run: the cases say the same when they are set up
        return f"{line}, no workload ({str(error).splitlines()[0]})"
    dpdk = f"DPDK {version.dpdk}" if version.dpdk else "DPDK absent: socket applications only"
    return f"{line}, workload {version.workload}, {dpdk}"
