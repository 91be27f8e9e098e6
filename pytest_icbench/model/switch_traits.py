# SPDX-License-Identifier: BSD-3-Clause
"""The traits of a switch, known on any host without running it; collection makes cases of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal, Protocol

from pytest_icbench.model.api_techniques import SOCKET_APIS
from pytest_icbench.model.case import Family
from pytest_icbench.model.uplink import Via

#: The kind of a key's value: a text, an integer of at least 1, a list of texts, or a table of texts (numbers and
#: booleans become texts).
Kind = Literal["text", "number", "texts", "table"]
#: The other ports that a frame reaches.
Reach = Literal["all", "peer", "none"]


class SwitchTraits(Protocol):
    """The class of a driver as collection sees it; ``driver.switch.protocol.Switch`` is one."""

    name: ClassVar[str]
    family: ClassVar[Family]
    #: Port kinds, the natural one first.
    ports: ClassVar[tuple[str, ...]]
    #: Members of ``ports`` that are measured only if they are asked for: an API alone does not choose them.
    ports_by_name: ClassVar[tuple[str, ...]] = ()
    #: Members of ``ports`` for which the switch takes no huge pages, whatever ``needs`` says, unless it has an uplink.
    ports_without_hugepages: ClassVar[tuple[str, ...]] = ()
    #: Members of ``ports`` that can have several queue pairs.
    queue_ports: ClassVar[tuple[str, ...]] = ()
    #: Members of ``ports`` that lead into virtual machines: vhost-user sockets, and links that
    #: ``common.kernel.connect`` makes.
    machine_ports: ClassVar[tuple[str, ...]] = ()
    #: API techniques its endpoints can use.
    apis: ClassVar[tuple[str, ...]]
    #: Techniques measured by default. A single one is left out of the id.
    default_apis: ClassVar[tuple[str, ...]]
    #: Worker cores by default; 0 for a switch without pollers.
    default_cores: ClassVar[int]
    #: Whether the number of worker cores can be chosen.
    scalable: ClassVar[bool]
    #: Whether it learns MAC addresses.
    learns: ClassVar[bool]
    #: Ports that a broadcast or multicast frame reaches, and ports that a frame to an unknown address reaches: ``all``
    #: others, the ``peer`` of its pair alone, or ``none``. None: ``all`` if the switch learns, else ``peer``.
    broadcast: ClassVar[Reach | None] = None
    unknown_unicast: ClassVar[Reach | None] = None
    #: Whether every port gets every frame, as at a hub, whatever addresses were seen.
    floods: ClassVar[bool] = False
    #: Whether a frame with a VLAN tag passes unchanged.
    vlan: ClassVar[bool] = True
    #: None: it forwards frames. A number: it forwards IPv4 packets by their addresses and nothing else, and takes so
    #: many from their TTL.
    hops: ClassVar[int | None] = None
    #: Bytes of memory for a route by IP version, for a switch that routes: in modes ``ip4`` and ``ip6``.
    route_bytes: ClassVar[Mapping[int, int]] = {}
    #: Whether its ports are functions of a network card, which filters by itself. Frames with a VLAN tag and multicast
    #: frames then reach only those of the declared ports to which the card passes them. A frame to several ports may
    #: come back to its sender (some cards leave it to the functions' drivers to drop it).
    filters: ClassVar[bool] = False
    #: Whether frames may overtake the first ones of their flow, because a slower part of the switch decides on those.
    asks_first: ClassVar[bool] = False
    #: Least time in seconds that ``set_ageing`` accepts; None: the switch keeps what it has learned.
    least_ageing_s: ClassVar[float | None] = None
    #: Greatest frame in bytes with FCS.
    max_frame_bytes: ClassVar[int]
    #: Greatest frame in bytes with FCS of the port kinds that carry less than that.
    port_frame_bytes: ClassVar[Mapping[str, int]] = {}
    #: Greatest number of pairs, None without a limit.
    max_pairs: ClassVar[int | None]
    #: Whether it runs a program that the user can replace.
    takes_binary: ClassVar[bool] = True
    #: Ways to forward beside the natural one, by name.
    modes: ClassVar[tuple[str, ...]] = ()
    #: The form of its modes, for messages, if they have parameters.
    mode_help: ClassVar[str] = ""
    #: Modes that join the ports of a pair like a wire: they neither learn nor reach other pairs.
    wire_modes: ClassVar[tuple[str, ...]] = ()
    #: Whether no group contains it, so that only its name selects it.
    by_name_only: ClassVar[bool] = False

    #: Ways in which it can have an uplink to another host; empty for a switch within one host.
    uplinks: ClassVar[tuple[Via, ...]] = ()
    #: Pairs that can share its uplink, None without a limit.
    uplink_pairs: ClassVar[int | None] = None

    #: Whether it can keep sets of ports apart (``Attachment.segment``), which network functions between them need.
    segments: ClassVar[bool] = False
    #: Whether the nodes of a pair connect with each other by sockets, so that they share a directory for these.
    joins_nodes: ClassVar[bool] = False

    #: Keys that a user's configuration of it may have, with the kind of each value.
    config_keys: ClassVar[Mapping[str, Kind]] = {}

    @classmethod
    def has_mode(cls, mode: str) -> bool:
        """Whether the switch has a mode; a driver whose modes have parameters overrides this."""
        return mode in cls.modes

    @classmethod
    def port_apis(cls, port: str) -> tuple[str, ...]:  # noqa: ARG003 - as drivers override it
        """Returns the members of ``apis`` for endpoints on a port kind; a driver whose kinds differ overrides this."""
        return cls.apis

    @classmethod
    def rx_modes(cls, port: str) -> tuple[str, ...]:  # noqa: ARG003 - as drivers override it
        """Returns the ways of ``model.case.RX_MODES`` that its workers have on a port kind; none without a choice."""
        return ()

    @classmethod
    def is_kernel_port(cls, port: str) -> bool:
        """Whether the nodes on a port kind have an interface of the kernel, as sockets use it."""
        return any(api in SOCKET_APIS for api in cls.port_apis(port))
