# SPDX-License-Identifier: BSD-3-Clause
"""The second host of other tests is one: real ssh into it, its own files, clock and name, and nothing left of it."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from tests.host import snapshot
from tests.second_host import THERE_NIC, second_host, unsupported_reason

pytestmark = [
    pytest.mark.own_host,
    pytest.mark.skipif(unsupported_reason() is not None, reason=str(unsupported_reason())),
]


def test_a_second_host_comes_and_goes(tmp_path: Path) -> None:
    before = snapshot.take()
    with second_host(tmp_path) as host:
        command = "cat /proc/uptime; ls /run/icbench; ls /sys/class/net; touch /run/only-there; hostname"
        said = subprocess.run(
            ["ssh", "-o", "BatchMode=yes", host.address, command],
            env=host.environment,
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        ).stdout.split()
        assert float(said[0]) > time.clock_gettime(time.CLOCK_BOOTTIME) + 80_000
        assert THERE_NIC in said
        assert host.here_nic not in said
        assert said[-1] == "icbench-second0"
        assert not Path("/run/only-there").exists()
        links = snapshot.take()["link"].keys() - before["link"].keys()
        assert links == {host.here_nic, host.management_nic}
    assert snapshot.left_since(before) == []
