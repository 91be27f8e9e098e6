# SPDX-License-Identifier: BSD-3-Clause
"""``snabb``: Snabb's learning bridge, or a plain wire, between vhost-user ports, set up by a Lua program.

Snabb mounts a hugetlbfs, keeps its state in fixed places below ``/var/run`` and takes more huge pages when it needs
them. It gets a mount namespace in which these places belong to the rig, so that nothing is left on the host.
"""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from pytest_icbench.driver.switch.common.daemon import DaemonSwitch
from pytest_icbench.driver.switch.common.userspace_ports import VHOST_USER, socket_path, wait_for_sockets
from pytest_icbench.driver.switch.dpdk import dpdk_process
from pytest_icbench.driver.switch.protocol import Attachment, Needs, PortCounters, SwitchFacts, SwitchSpec
from pytest_icbench.errors import ProvisionError, Unsupported
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.resource.hugepages import memory_kib
from pytest_icbench.model.endpoint import Endpoint, VhostUser
from pytest_icbench.model.path import FramePath
from pytest_icbench.model.switch_traits import Kind

_PROGRAM = Path(__file__).with_name("snabb_switch.lua")
_REMEDY = "build it as its README says (no distribution has it; what is built below /opt/snabb is found)"
#: Seconds within which it has to open its ports: it maps huge pages and compiles while it runs.
_START_S = 15.0
_WIRE = "wire"
#: Snabb's default ageing time.
_MAC_TIMEOUT_S = 60.0

#: Frames in the links of a port: one link in and one out, each of 1023.
_PORT_FRAMES = 2 * 1023
#: Packets of its first allocation; each further one is twice the size of the previous.
_FIRST_STEP = 1000
#: Bytes of a packet with its headroom, rounded up to the alignment.
_PACKET_BYTES = 11264

#: Shell script of the namespace: $1 becomes /var/run, $2 stays visible, the rest is executed. nr_hugepages is a copy,
#: so that Snabb takes no huge pages besides the reserved ones.
_NAMESPACE = """
set -e
base=$1 keep=$2
shift 2
run=$(readlink -f /var/run)
mkdir -p "$base/snabb"
case $keep in "$run"/*)
    inner=$base${keep#"$run"}
    mkdir -p "$inner"
    mount --rbind "$keep" "$inner"
esac
cat /proc/sys/vm/nr_hugepages > "$base/nr_hugepages"
mount --bind "$base/nr_hugepages" /proc/sys/vm/nr_hugepages
mount --rbind "$base" "$run"
exec "$@"
"""


class Snabb(DaemonSwitch):
    """A process of one thread. A bridge connects all ports, the mode ``wire`` the two ports of each pair."""

    name = "snabb"
    ports = (VHOST_USER,)
    scalable = False
    learns = True
    least_ageing_s = _MAC_TIMEOUT_S
    modes = (_WIRE,)
    config_keys: ClassVar[Mapping[str, Kind]] = {"mac_timeout_s": "number"}
    wire_modes = (_WIRE,)

    def __init__(self) -> None:
        self._mac_timeout_s = _MAC_TIMEOUT_S
        self._state = Path()
        self._links: list[tuple[int, str, str]] = []

    def _binary(self, session: HostSession, given: Path | None) -> Path:
        return dpdk_process.find_binary(session, self.name, given, ["snabb"], _REMEDY)

    def probe(self, session: HostSession, spec_binary: Path | None) -> SwitchFacts:
        binary = self._binary(session, spec_binary)
        version = _version(session, binary)
        default_kib = memory_kib(session.root).get("Hugepagesize")
        if default_kib is None:
            raise Unsupported("this kernel has no huge pages, which snabb needs: take one with CONFIG_HUGETLBFS")
        if session.hugepage_size_kib != default_kib:
            raise Unsupported(
                f"snabb takes huge pages of the kernel's default size ({default_kib} KiB) only:"
                " leave --icbench-hugepage-size at that"
            )
        return SwitchFacts(version=version, program=str(binary))

    def needs(self, pairs: int, cores: int, *, jumbo: bool = False) -> Needs:
        """Returns huge pages for full links of all ports, with packets for the largest frame."""
        packets, step = 0, _FIRST_STEP
        while packets < len(FramePath(pairs).endpoints) * _PORT_FRAMES:
            packets, step = packets + step, 2 * step
        return Needs(hugepages_mib=packets * _PACKET_BYTES // 2**20 + 4, pollers=1)

    def start(self, session: HostSession, spec: SwitchSpec, attachments: Sequence[Attachment]) -> list[Endpoint]:
        """Starts it with all ports served. Raises ProvisionError with the log's tail."""
        binary = self._binary(session, spec.binary)
        sockets = [socket_path(attachment) for attachment in attachments]
        mode = _WIRE if spec.mode == _WIRE else "bridge"
        self._mac_timeout_s = float(spec.config.get("mac_timeout_s", _MAC_TIMEOUT_S))
        arguments = ["snsh", str(_PROGRAM), mode, f"{self._mac_timeout_s:g}", *map(str, sockets)]
        base = spec.work_dir / "var-run"
        base.mkdir()
        argv = ["sh", "-c", _NAMESPACE, "sh", str(base), str(spec.work_dir), str(binary), *arguments]
        self.daemon = dpdk_process.start_daemon(
            session, spec, self.name, argv, dpdk_process.DaemonOptions(cpus=spec.worker_cpus[:1], mount_ns=True)
        )
        self._state = base / "snabb" / str(self.daemon.process.pid) / "links"
        self._links = _links([attachment.index for attachment in attachments], mode)
        self._facts = SwitchFacts(version=_version(session, binary), config={"argv": arguments})
        wait_for_sockets(sockets, self.daemon, timeout_s=_START_S)
        return [VhostUser(attachment.address, str(path)) for attachment, path in zip(attachments, sockets, strict=True)]

    def set_ageing(self, seconds: float) -> None:
        """Raises ProvisionError for a time below its initial one, which cannot be changed."""
        if seconds < self._mac_timeout_s:
            raise ProvisionError(
                f"snabb forgets after {self._mac_timeout_s:g} s, which is fixed at its start: set mac_timeout_s in its"
                " configuration"
            )

    def counters(self) -> list[PortCounters] | None:
        """Returns the counters of the links between its apps, which it publishes every 100 rounds."""
        self.live()
        return [
            PortCounters(
                index=index,
                rx_packets=self._counter(link_in, "txpackets"),
                rx_dropped=self._counter(link_in, "txdrop"),
                tx_packets=self._counter(link_out, "rxpackets"),
                tx_dropped=self._counter(link_out, "txdrop"),
            )
            for index, link_in, link_out in self._links
        ]

    def _counter(self, link: str, name: str) -> int:
        path = self._state / link / f"{name}.counter"
        try:
            (value,) = struct.unpack("=Q", path.read_bytes())
        except (OSError, struct.error) as error:
            raise ProvisionError(f"snabb's counter {path} cannot be read: {error}") from None
        return int(value)


def _links(indexes: Sequence[int], mode: str) -> list[tuple[int, str, str]]:
    """Returns for each port its number and the names of its incoming and outgoing link."""
    if mode == _WIRE:
        ways = [way for a, b in FramePath.over(indexes).wires(indexes) for way in ((a, b), (b, a))]
        return [(i, f"p{i}.tx -> p{j}.rx", f"p{j}.tx -> p{i}.rx") for i, j in ways]
    return [(i, f"p{i}.tx -> bridge.p{i}", f"bridge.p{i} -> p{i}.rx") for i in indexes]


def _version(session: HostSession, binary: Path) -> str:
    """Returns the version that ``snabb --version`` shows. Raises as ``query_version`` does."""
    with tempfile.TemporaryDirectory(prefix="icbench-") as directory:  # for its shared memory
        env = {"SNABB_SHM_ROOT": directory}
        pattern = r"\A\S+ (.*)\n(?s:.*)Snabb"
        return dpdk_process.query_version(session, "snabb", binary, [binary, "--version"], pattern, env)[1]
