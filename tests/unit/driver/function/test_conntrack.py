# SPDX-License-Identifier: BSD-3-Clause
"""The size of the kernel's table of connections, on recorded hosts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pytest_icbench.driver.function import linux as conntrack
from pytest_icbench.errors import ProvisionError
from pytest_icbench.host.root import Root


def host(directory: Path, *, own: int = 10, available_kib: int = 10**6) -> Root:
    for name, text in {
        "proc/meminfo": f"MemAvailable: {available_kib} kB\n",
        "proc/sys/net/netfilter/nf_conntrack_max": "262144\n",
        "proc/sys/net/netfilter/nf_conntrack_count": f"{own}\n",
    }.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Root(directory)


def test_a_size_that_the_host_has_room_for_is_taken(tmp_path: Path) -> None:
    assert conntrack.explain_misfit(host(tmp_path, own=500), 1000) is None
    (tmp_path / "proc/sys/net/netfilter/nf_conntrack_count").unlink()  # as before the module is loaded
    assert conntrack.explain_misfit(Root(tmp_path), 1000) is None


def test_a_size_that_starves_the_host_itself_or_its_memory_is_refused(tmp_path: Path) -> None:
    found = conntrack.explain_misfit(host(tmp_path, own=501), 1000)
    assert found == "the size is for all namespaces, and the host itself has 501 connections: take 1002 or more"
    found = conntrack.explain_misfit(host(tmp_path, available_kib=100 * 1024), 1_000_000)
    assert found == "it may take 488 MiB, and the host has 100"


def test_a_size_that_somebody_changed_is_reported(tmp_path: Path) -> None:
    root = host(tmp_path)
    conntrack.check_size(root, 262144)
    with pytest.raises(ProvisionError, match=re.escape("nf_conntrack_max is 262144, not the 1000 that it was set to")):
        conntrack.check_size(root, 1000)
