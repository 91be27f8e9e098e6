# SPDX-License-Identifier: BSD-3-Clause
"""The start-up configuration of a private VPP. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_icbench.driver.switch.common.ports import MEMIF

#: Buffers of a NUMA node: full rings on all ports of four pairs, and what is under way.
BUFFERS = 32768
#: Bytes of a buffer's data; a longer frame takes several.
BUFFER_BYTES = 2048
#: What a buffer takes beside its data.
_BUFFER_OVERHEAD_BYTES = 512


def hugepages_mib() -> int:
    """Huge pages of its buffers, the only memory of VPP that is in them."""
    return -(-BUFFERS * (BUFFER_BYTES + _BUFFER_OVERHEAD_BYTES) // 2**20) + 4


@dataclass(frozen=True, slots=True)
class Sockets:
    """Sockets and files of one VPP, all in a directory of its own."""

    directory: Path

    @property
    def api(self) -> Path:
        return self.directory / "api.sock"

    @property
    def stats(self) -> Path:
        return self.directory / "stats.sock"

    @property
    def cli(self) -> Path:
        return self.directory / "cli.sock"


def startup(
    sockets: Sockets,
    *,
    main_cpu: int,
    worker_cpus: Sequence[int],
    port: str,
    plugins: Sequence[str] = (),
    fragment: str = "",
) -> str:
    """Text of ``startup.conf``.

    Args:
        main_cpu: of the main thread, which sleeps while nobody asks anything.
        worker_cpus: a worker polls on each.
        port: port kind; of the plugins only its own is loaded.
        plugins: further ones.
        fragment: the user's sections, appended as they are.
    """
    wanted = ["memif_plugin.so" if port == MEMIF else "vhost_plugin.so", *plugins]
    enabled = " ".join(f"plugin {plugin} {{ enable }}" for plugin in wanted)
    workers = ",".join(map(str, worker_cpus))
    return f"""\
unix {{ nodaemon nosyslog runtime-dir {sockets.directory} cli-listen {sockets.cli} }}
socksvr {{ socket-name {sockets.api} }}
statseg {{ socket-name {sockets.stats} size 32M page-size 4k }}
memory {{ main-heap-size 512M main-heap-page-size 4k }}
buffers {{ buffers-per-numa {BUFFERS} default data-size {BUFFER_BYTES} page-size default-hugepage }}
cpu {{ main-core {main_cpu} corelist-workers {workers} }}
plugins {{ plugin default {{ disable }} {enabled} }}
{fragment}"""
