# SPDX-License-Identifier: BSD-3-Clause
"""The counters of a namespace's interfaces, whatever these are called."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from pytest_icbench.host.net.sockets import received_counters

#: A datagram asks for the address of its receiver, by broadcast.
SEND = "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('198.51.100.2', 9))"
SCRIPT = f"""
ip link add eth0 type veth peer name é0
ip link set eth0 up
ip link set é0 up
ip address add 198.51.100.1/24 dev eth0
{sys.executable} -c "{SEND}"
echo sent
exec cat
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="makes a network namespace: run pytest as root")
def test_interfaces_count_whatever_their_names_are() -> None:
    pipe = subprocess.PIPE
    with subprocess.Popen(["unshare", "--net", "sh", "-ec", SCRIPT], stdin=pipe, stdout=pipe) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"sent\n"
        counted = received_counters(process.pid)
        process.communicate()
    assert min(counted) > 0
