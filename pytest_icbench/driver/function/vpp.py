# SPDX-License-Identifier: BSD-3-Clause
"""Functions of a private VPP: routing, NAT (nat44-ed), access lists, a policer.

VPP has one thread and interfaces that wake it, so it does not need a CPU for itself. It is set up by its command line,
whose lines a result keeps.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

from pytest_icbench.driver.function.function_parts import FIRST_PORT, SOURCES, Parts, RouterFunction, nat_address
from pytest_icbench.driver.function.process_function import ProcessFunction
from pytest_icbench.driver.function.protocol import VETH, Ends, FunctionSpec, RateLimit
from pytest_icbench.driver.switch.common.daemon import Daemon
from pytest_icbench.driver.switch.common.userspace_ports import MEMIF, wait_for_sockets
from pytest_icbench.driver.switch.vpp import client as vpp_client
from pytest_icbench.driver.switch.vpp import interfaces, program
from pytest_icbench.driver.switch.vpp.program import Memory, VppFiles, startup_config
from pytest_icbench.errors import ProvisionError, Unsupported
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.net import ethtool
from pytest_icbench.model.endpoint import Endpoint, Memif, Veth
from pytest_icbench.model.function_facts import FunctionCounters, FunctionFacts
from pytest_icbench.model.switch_traits import Kind
from pytest_icbench.model.switch_tree import unpacked_tree
from pytest_icbench.model.traffic import FCS_BYTES

_START_S = 20.0
#: Seconds after which the end of a killed process is known.
_DEATH_S = 0.2
_ADMIN_UP, _INTERRUPT = 1, 2
_RX_MODE = "sw_interface_set_default_rx_mode"
#: The workload's own port.
_OWN_PORT = 9
#: Most rules in a message of VPP's API, and most sessions in its heap.
_MOST_RULES, _MOST_SESSIONS = 10_000, 500_000
_TOLERANCE = 0.02
#: A policer's burst in seconds of its rate, and its smallest size in bytes, enough for a proof.
_BURST_S, _BURST_LEAST = 0.005, 16_000
_POLICER = "icbench"
#: Prefixes of the lines that set up the NAT, and the line that removes it.
_NAT_LINES, _NAT_OFF = ("nat44 ", "set interface nat44 "), "nat44 plugin disable"
_TWO_COLORS = "type 1r2c conform-action transmit exceed-action drop violate-action drop"
#: Counters of frames without room for their session, below /err.
_FULL = r"^/err/nat44-ed-in2out-slowpath/(out of ports|maximum sessions exceeded)$"
#: VPP's API needs shared memory in /dev/shm. If the node has the host's, VPP gets a private one. In a container without
#: it, /dev/shm becomes a link to the function's directory, the first argument.
_NAMESPACE = """\
shm=$1; shift
if [ ! -e /dev/shm ]; then
  ln -s "$shm" /dev/shm
elif unshare --mount true 2> /dev/null; then
  exec unshare --mount sh -c 'mount -t tmpfs none /dev/shm && exec "$@"' sh "$@"
fi
exec "$@"
"""


def access_list(parts: Parts) -> list[dict[str, Any]]:
    """Returns the access list for VPP's API: rules for UDP ports, then a rule that permits the rest. Pure."""

    def rule(permit: bool, protocol: int, first: int, last: int) -> dict[str, Any]:
        everything = {"src_prefix": "0.0.0.0/0", "dst_prefix": "0.0.0.0/0"}
        source = {"srcport_or_icmptype_first": 0, "srcport_or_icmptype_last": 65535}
        target = {"dstport_or_icmpcode_first": first, "dstport_or_icmpcode_last": last}
        return {"is_permit": int(permit), "proto": protocol, **everything, **source, **target}

    ports = (rule(not parts.denies(place), 17, FIRST_PORT + place, FIRST_PORT + place) for place in range(parts.rules))
    return [*ports, rule(True, 0, 0, 65535)]


def _burst_bytes(pps: int, frame_bytes: float) -> int:
    """Returns a policer's burst."""
    return max(_BURST_LEAST, math.ceil(pps * (frame_bytes - FCS_BYTES) * _BURST_S))


def commands(parts: Parts, ends: Ends, inner: str, outer: str, frame_bytes: float) -> list[str]:
    """Returns the lines of VPP's command line that set up the function. Pure.

    Args:
        inner, outer: names of VPP's interfaces.
        frame_bytes: bytes of a frame with FCS, for a policer, which counts bytes without it.
    """
    lines = []
    for name, own, side in ((inner, ends.inner, ends.leader), (outer, ends.outer, ends.follower)):
        lines += [
            f"set interface ip address {name} {own.ip}/32",
            f"set ip neighbor static {name} {side.ip} {side.mac}",
            f"ip route add {side.ip}/32 via {side.ip} {name}",
        ]
    lines.append(f"ip route add {SOURCES} via {ends.leader.ip} {inner}")
    if parts.nat:
        limit = f" sessions {parts.sessions}" if parts.sessions else ""
        pool = nat_address(ends).ip
        lines += [
            f"nat44 plugin enable{limit}",
            f"nat44 add address {pool}",
            # It uses no port below 1024, and side b's sockets accept only side a's own port.
            f"nat44 add static mapping udp local {ends.leader.ip} {_OWN_PORT} external {pool} {_OWN_PORT}",
            f"set interface nat44 in {inner} out {outer}",
        ]
    if parts.police_pps:
        rate = parts.police_pps * (frame_bytes - FCS_BYTES)  # bytes per second
        burst = _burst_bytes(parts.police_pps, frame_bytes)
        lines += [
            f"policer add name {_POLICER} rate kbps cir {round(rate * 8 / 1000)} cb {burst} {_TWO_COLORS}",
            f"policer input name {_POLICER} {inner}",
        ]
    return lines


class VppFunction(RouterFunction, ProcessFunction):
    """A VPP in a node, with two interfaces of the kernel (AF_PACKET) or two memifs."""

    name = "vpp"
    word = "vpp"
    makes = ("nat", "sessions", "rules", "deny_percent", "police_pps")
    ports = (VETH, MEMIF)
    chains = True
    polls = True  # its thread waits for frames, but does all the work
    help = (
        "parts joined by +, each once: route, nat, tableN with it (sessions, 1k to 500k), aclN (rules, to 10000) with"
        " denyP (percent), policeN (frames/s, 5k to 10M); with vpp among them also over veth"
    )
    hugepages_mib = 0
    memory_mib = 320
    config_keys: ClassVar[Mapping[str, Kind]] = {"startup": "text", "commands": "texts"}

    def __init__(self) -> None:
        super().__init__()
        self._client: vpp_client.VppClient | None = None
        self._indexes: tuple[int, int] = (0, 0)
        self._denying: tuple[int, Sequence[int]] | None = None

    @classmethod
    def can_make(cls, parts: Parts) -> bool:
        return super().can_make(parts) and parts.rules <= _MOST_RULES and parts.sessions <= _MOST_SESSIONS

    @classmethod
    def usable_ports(cls, function: str) -> tuple[str, ...]:
        return cls.ports if cls.word in function.split("+") else (MEMIF,)

    @classmethod
    def rate_limit(cls, function: str, frame_bytes: float) -> RateLimit | None:
        pps = cls.parse_own(function).police_pps
        burst = int(_burst_bytes(pps, frame_bytes) / (frame_bytes - FCS_BYTES))
        return RateLimit(pps, _TOLERANCE, burst) if pps else None

    @classmethod
    def directories(cls, session: HostSession) -> Sequence[Path]:
        binary = program.find_program(session).resolve()
        return (unpacked_tree(binary) or binary.parent.parent,)

    def probe(self, session: HostSession, function: str) -> FunctionFacts:  # noqa: ARG002 - as ``Function``
        """Returns the version of VPP. Raises Unsupported without VPP or its Python binding."""
        return FunctionFacts(self.name, f"VPP {program.read_version(program.find_program(session))}")

    def start(self, session: HostSession, spec: FunctionSpec) -> None:
        """Starts VPP in the node and sets up interfaces and function. Raises ProvisionError with VPP's message."""
        node, inner, outer = spec.require_ports()
        parts = self.parse_own(spec.function)
        if parts.police_pps and len(set(spec.sizes)) != 1:
            raise Unsupported("VPP's policer counts bytes: choose one packet size, not a mix")
        self._spec = spec
        files = VppFiles(spec.directory)
        if isinstance(inner, Veth):
            # AF_PACKET receives frames as they are in memory, also without a checksum that is left to the device.
            ethtool.apply_settings(session, spec.sides, {"checksum": "false"})
        port = interfaces.AF_PACKET if isinstance(inner, Veth) else MEMIF
        wanted = (("nat", parts.nat), ("acl", parts.rules), ("policer", parts.police_pps))
        config = startup_config(
            files,
            main_cpu=spec.cpu,
            worker_cpus=(),
            plugins={interfaces.PLUGINS[port], *(f"{name}_plugin.so" for name, is_wanted in wanted if is_wanted)},
            memory=Memory(hugepages=False),
            fragment=str(spec.config.get("startup", "")),
        )
        binary = program.find_program(session).resolve()
        argv = ["sh", "-c", _NAMESPACE, "sh", str(spec.directory), str(binary), "-c", files.write_config(config)]
        process = node.spawn(argv, cpus=[spec.cpu], log=spec.log)
        self._daemon = daemon = Daemon(spec.label, process)
        wait_for_sockets([files.api, files.stats], daemon, timeout_s=_START_S)
        try:
            self._client = client = vpp_client.VppClient(files.api, files.stats)
            lines = self._set_up(client, spec, parts, (inner, outer))
        except ProvisionError as error:
            with suppress(ProvisionError):
                process.wait(_DEATH_S)
            daemon.check()
            raise ProvisionError(f"{spec.label}: {error}{daemon.evidence()}") from None
        version = f"VPP {client.call('show_version').version}"
        self._facts = FunctionFacts(self.name, version, {"startup": config, "commands": lines})

    def _set_up(
        self, client: vpp_client.VppClient, spec: FunctionSpec, parts: Parts, ports: Sequence[Endpoint]
    ) -> list[str]:
        """Sets up interfaces and function; returns the lines of the command line."""
        # A memif is polled by default. That is necessary without a switch at its other end, where the processes of each
        # launch connect: VPP 26.06 is not woken by the second connection.
        if client.knows(_RX_MODE) and not any(port.serves for port in ports):
            client.call(_RX_MODE, mode=_INTERRUPT)
        inner = _interface(client, ports[0], 1, spec.ends.inner.mac)
        outer = _interface(client, ports[1], 2, spec.ends.outer.mac)
        self._indexes = inner, outer
        names = {item.sw_if_index: item.interface_name for item in client.call("sw_interface_dump")}
        lines = commands(parts, spec.ends, names[inner], names[outer], max(spec.sizes, default=0))
        for index in (inner, outer):
            client.call("sw_interface_set_mtu", sw_if_index=index, mtu=[spec.mtu, 0, 0, 0])
        if parts.rules:
            rules = access_list(parts)
            client.call("acl_stats_intf_counters_enable", enable=True)
            number = client.call("acl_add_replace", acl_index=0xFFFFFFFF, tag="icbench", count=len(rules), r=rules)
            self._denying = number.acl_index, [place for place, rule in enumerate(rules) if not rule["is_permit"]]
            for index in (inner, outer):
                client.call(
                    "acl_interface_set_acl_list", sw_if_index=index, count=1, n_input=1, acls=[number.acl_index]
                )
        lines += spec.config.get("commands", ())
        for line in lines:
            client.command(line)
        for index in (inner, outer):
            client.call("sw_interface_set_flags", sw_if_index=index, flags=_ADMIN_UP)
        return lines

    def _live(self) -> tuple[FunctionSpec, vpp_client.VppClient]:
        spec, _ = self.live()
        if self._client is None:
            raise ProvisionError("the function was not started")
        return spec, self._client

    def forget(self) -> None:
        """Sets up the NAT again, because VPP's command that clears its sessions also loses its static mappings."""
        _, client = self._live()
        lines = [line for line in self.facts().config["commands"] if line.startswith(_NAT_LINES)]
        for line in (_NAT_OFF, *lines) if lines else ():
            client.command(line)

    def counters(self) -> FunctionCounters:
        """Returns the frames on its interfaces and the drops of its rules, policer and table."""
        spec, client = self._live()
        parts = self.parse_own(spec.function)
        inner, outer = self._indexes
        with client.statistics() as stats:
            acl_drops = 0
            if self._denying is not None:
                number, places = self._denying
                matches = stats[f"/acl/{number}/matches"]
                acl_drops += sum(matches[:, place].sum_packets() for place in places)
            if parts.police_pps:
                acl_drops += sum(stats[f"/net/policer/{color}"][:, 0].sum_packets() for color in ("exceed", "violate"))
            sessions: dict[str, Any] = {}
            if parts.nat:
                full = sum(int(stats[name].sum()) for name in stats.ls(_FULL))
                sessions = {"sessions": int(stats["/nat44-ed/total-sessions"][:, 0].sum()), "table_full": full}
            return FunctionCounters(
                spec.pair,
                taken=stats["/if/rx"][:, inner].sum_packets(),
                given=stats["/if/tx"][:, outer].sum_packets(),
                taken_back=stats["/if/rx"][:, outer].sum_packets(),
                acl_drops=acl_drops,
                hop=spec.hop,
                **sessions,
            )

    def stop(self) -> None:
        """Ends VPP with its interfaces."""
        client, self._client = self._client, None
        super().stop()
        if client is not None:
            client.close()


def _interface(client: vpp_client.VppClient, port: Endpoint, number: int, mac: str) -> int:
    """Creates an interface of VPP; returns its index. Raises ProvisionError."""
    if isinstance(port, Veth):
        needed = "its functions over veth take: build it with the plugin, or measure over memif"
        plugin = interfaces.PLUGINS[interfaces.AF_PACKET]
        return interfaces.create_kernel_interface(client, port.interface, plugin, needed, mac)
    if not isinstance(port, Memif):
        raise ProvisionError("VPP's functions need kernel interfaces or memifs")
    return interfaces.create_memif(client, port.socket, number, serves=port.serves, hw_addr=mac)
