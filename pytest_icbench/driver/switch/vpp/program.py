# SPDX-License-Identifier: BSD-3-Clause
"""The program of VPP, its version, its sockets and its start-up configuration."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

from pytest_icbench.driver.switch.common.userspace_ports import check_socket_path
from pytest_icbench.driver.switch.dpdk import dpdk_process
from pytest_icbench.driver.switch.vpp import client as vpp_client
from pytest_icbench.driver.switch.vpp.worker_load import linked_version
from pytest_icbench.errors import Unsupported
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.node_files import write_file

#: Buffers per NUMA node, for full rings on all ports of four pairs and for frames in transit.
BUFFERS = 32768
#: Bytes of a buffer's data; a longer frame takes several.
BUFFER_BYTES = 2048
#: Bytes of a buffer besides its data.
_BUFFER_OVERHEAD_BYTES = 512
_REMEDY = "run `icbench get vpp`, or build it as its documents say (what is installed in /opt/vpp is found)"
#: The first release with vhost-user as a plugin and with all messages used here.
_OLDEST = (24, 10)


def hugepages_mib() -> int:
    """Returns the huge pages of its buffers in MiB. Its other memory is not in huge pages."""
    return -(-BUFFERS * (BUFFER_BYTES + _BUFFER_OVERHEAD_BYTES) // 2**20) + 4


class VppFiles:
    """The sockets and files of a VPP, all in one directory.

    Raises ProvisionError if a socket's path is too long for an address.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.api, self.stats, self.cli = (directory / f"{name}.sock" for name in ("api", "stats", "cli"))
        for path in (self.api, self.stats, self.cli):
            check_socket_path(path)
        directory.mkdir(exist_ok=True)  # that of a node is there

    def write_config(self, text: str) -> str:
        """Writes ``startup.conf``; returns its path."""
        name = "startup.conf"
        write_file(self.directory, name, text)
        return str(self.directory / name)


class Memory(NamedTuple):
    """The memory of a VPP.

    Attributes:
        hugepages: whether its buffers are in huge pages.
        heap_mib, statistics_mib: bounds of its heap and its statistics; it touches only what it needs.
    """

    hugepages: bool = True
    heap_mib: int = 512
    statistics_mib: int = 32


IN_HUGE_PAGES = Memory()


def startup_config(
    files: VppFiles,
    *,
    main_cpu: int,
    worker_cpus: Sequence[int],
    plugins: Collection[str],
    memory: Memory = IN_HUGE_PAGES,
    fragment: str = "",
) -> str:
    """Returns the text of ``startup.conf``.

    Args:
        main_cpu: CPU of the main thread, which sleeps until VPP gets a request.
        worker_cpus: CPU of each polling worker; without workers the main thread does all the work.
        plugins: plugins to load; all others are disabled.
        fragment: the user's sections, appended unchanged.
    """
    enabled = " ".join(f"plugin {plugin} {{ enable }}" for plugin in sorted(plugins))
    workers = f" corelist-workers {','.join(map(str, worker_cpus))}" if worker_cpus else ""
    pages = "default-hugepage" if memory.hugepages else "default"
    return f"""\
unix {{ nodaemon nosyslog nocolor runtime-dir {files.directory} cli-listen {files.cli} }}
socksvr {{ socket-name {files.api} }}
statseg {{ socket-name {files.stats} size {memory.statistics_mib}M page-size 4k }}
memory {{ main-heap-size {memory.heap_mib}M main-heap-page-size 4k }}
buffers {{ buffers-per-numa {BUFFERS} default data-size {BUFFER_BYTES} page-size {pages} }}
cpu {{ main-core {main_cpu}{workers} }}
plugins {{ plugin default {{ disable }} {enabled} }}
{fragment}"""


def find_program(session: HostSession, given: Path | None = None) -> Path:
    """Returns the user's binary, the one on PATH, or that of a tree. Raises Unsupported with the remedy."""
    return dpdk_process.find_binary(session, "vpp", given, ["vpp", "/usr/bin/vpp"], _REMEDY)


def read_version(binary: Path) -> str:
    """Returns the version of its libraries. Raises Unsupported if it is not VPP or too old, or without ``vpp-papi``."""
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
