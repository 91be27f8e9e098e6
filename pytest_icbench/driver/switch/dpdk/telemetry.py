# SPDX-License-Identifier: BSD-3-Clause
"""Port counters of a DPDK process, read from EAL's telemetry socket: exact, and without disturbing its workers."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

from pytest_icbench.errors import ProvisionError

_TIMEOUT_S = 5.0


def telemetry_socket(runtime: Path) -> Path | None:
    """Returns the socket of the process that has this ``RUNTIME_DIRECTORY``; None while there is none."""
    sockets = sorted(path for path in runtime.glob("dpdk/*/dpdk_telemetry.v2*") if path.is_socket())
    return sockets[0] if sockets else None


def query(path: Path, *commands: str) -> list[Any]:
    """Returns the answers to telemetry commands, in order. Raises ProvisionError if the process does not answer."""
    answers = []
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
            client.settimeout(_TIMEOUT_S)
            client.connect(str(path))
            greeting = json.loads(client.recv(65536))
            size = int(greeting["max_output_len"])
            for command in commands:
                client.sendall(command.encode())
                answers.append(json.loads(client.recv(size))[command.partition(",")[0]])
    except (OSError, ValueError, KeyError) as error:
        raise ProvisionError(f"the telemetry socket {path} does not answer ({error}): is its process alive?") from None
    return answers
