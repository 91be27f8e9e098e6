# SPDX-License-Identifier: BSD-3-Clause
"""Ports in user space: their sockets, the switch's side of them, and the endpoints at the other side."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from pytest_icbench.driver.switch.common import vhost_events
from pytest_icbench.driver.switch.common.daemon import Daemon
from pytest_icbench.driver.switch.protocol import Attachment
from pytest_icbench.errors import ProvisionError
from pytest_icbench.model.endpoint import Endpoint, Memif, VhostUser

VHOST_USER = "vhost-user"
VHOST_USER_PACKED = "vhost-user-packed"
MEMIF = "memif"
#: A function of a network card, given to DPDK.
VFIO = "vfio"

#: Longest path that a Unix socket's address holds, in bytes.
SUN_PATH_MAX = 107


def socket_path(attachment: Attachment, stem: str = "p") -> Path:
    """Returns the socket of an attachment's port. Raises ProvisionError if the path is too long for an address."""
    path = attachment.socket_dir / (attachment.socket or f"{stem}{attachment.index}")
    check_socket_path(path)
    return path


def check_socket_path(path: Path) -> None:
    """Raises ProvisionError if the path is too long for an address."""
    length = len(os.fsencode(path))
    if length > SUN_PATH_MAX:
        raise ProvisionError(
            f"the socket path {path} has {length} bytes and a Unix socket's address holds {SUN_PATH_MAX}: use a shorter"
            " run directory"
        )


def serving_device(port: str, attachment: Attachment, queues: int = 1) -> str:
    """Returns ``--vdev`` of a switch that serves the port's socket, so that endpoints come and go and find it at once.

    A switch that connects to sockets of endpoints looks for them only once a second. A vhost back-end offers split and
    packed rings alike; the front-end chooses. A memif has as many rings as its client asks for.
    """
    path = socket_path(attachment)
    if port == MEMIF:
        return f"net_memif{attachment.index},role=server,id=0,socket={path},socket-abstract=no"
    return f"net_vhost{attachment.index},iface={path},queues={queues}"


def endpoint_of(port: str, attachment: Attachment) -> Endpoint:
    """Returns the endpoint that connects to ``serving_device``."""
    path = str(socket_path(attachment))
    if port == MEMIF:
        return Memif(address=attachment.address, socket=path, role="client")
    return VhostUser(address=attachment.address, socket=path, packed=port == VHOST_USER_PACKED)


def wait_for_sockets(paths: Sequence[Path], daemon: Daemon, *, timeout_s: float) -> None:
    """Waits until all paths are sockets, and has DPDK's vhost library accept connections at once.

    Raises ProvisionError after ``timeout_s`` seconds, or if the daemon dies.
    """
    daemon.wait_until(
        lambda: all(path.is_socket() for path in paths),
        failure=f"has not opened {', '.join(str(path) for path in paths)}",
        timeout_s=timeout_s,
    )
    vhost_events.wake(daemon.process.pid)
