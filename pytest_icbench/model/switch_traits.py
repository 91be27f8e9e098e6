# SPDX-License-Identifier: BSD-3-Clause
"""What is known of a switch on any host, without asking one: what cases are made of at collection."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal, Protocol

from pytest_icbench.model.case import Family
from pytest_icbench.model.uplink import Via

#: Of a key's value: a text, an integer of at least 1, a list of texts, a table of texts (numbers and booleans become
#: texts).
Kind = Literal["text", "number", "texts", "table"]
#: Which other ports a frame reaches.
Reach = Literal["all", "peer", "none"]


class SwitchTraits(Protocol):
    """The class of a driver as collection sees it; ``driver.switch.protocol.Switch`` is one."""

    name: ClassVar[str]
    family: ClassVar[Family]
    #: Port kinds, the natural one first.
    ports: ClassVar[tuple[str, ...]]
    #: API techniques its endpoints can use.
    apis: ClassVar[tuple[str, ...]]
    #: Those measured when nobody asks for others. One: it is left out of the id.
    default_apis: ClassVar[tuple[str, ...]]
    #: Worker cores when nobody asks; 0 for a switch without pollers.
    default_cores: ClassVar[int]
    #: Whether the number of worker cores can be chosen.
    scalable: ClassVar[bool]
    #: Whether it learns MAC addresses.
    learns: ClassVar[bool]
    #: Which ports a broadcast or multicast frame reaches, and a frame to an address that nobody has shown: ``all``
    #: others, the ``peer`` of its pair alone, or ``none``. None: ``all`` if it learns, else ``peer``.
    broadcast: ClassVar[Reach | None] = None
    unknown_unicast: ClassVar[Reach | None] = None
    #: Whether a frame with a VLAN tag passes as it is.
    vlan: ClassVar[bool] = True
    #: Whether its ports are functions of a network card, which filters by itself: frames with a VLAN tag and multicast
    #: frames reach those of the declared whom the card lets have them, and a frame to many may come back to its sender
    #: (some cards leave it to the functions' drivers to drop that).
    filters: ClassVar[bool] = False
    #: Least time in seconds that ``set_ageing`` takes; None: what it has learned it keeps.
    least_ageing_s: ClassVar[float | None] = None
    #: Greatest frame in bytes with FCS.
    max_frame_bytes: ClassVar[int]
    #: Greatest number of pairs, None without a limit.
    max_pairs: ClassVar[int | None]
    #: Whether it runs a program that the user can name another of.
    takes_binary: ClassVar[bool] = True
    #: Ways to forward beside the natural one, by name.
    modes: ClassVar[tuple[str, ...]] = ()
    #: What its modes look like, for messages, where they have parameters.
    mode_help: ClassVar[str] = ""
    #: Those of its modes that join the ports of a pair like a wire: they neither learn nor reach other pairs.
    wire_modes: ClassVar[tuple[str, ...]] = ()
    #: Nothing to choose among others (a known truth, a network function): no group stands for it, only its name.
    by_name_only: ClassVar[bool] = False

    #: Ways in which it can have an uplink to another host; none: it is for one host only.
    uplinks: ClassVar[tuple[Via, ...]] = ()
    #: Pairs that can share its uplink, None without a limit.
    uplink_pairs: ClassVar[int | None] = None

    #: Keys that the user's own configuration of it may have, with the kind of each.
    config_keys: ClassVar[Mapping[str, Kind]] = {}

    @classmethod
    def has_mode(cls, mode: str) -> bool:
        """Whether it has such a mode; a driver whose modes have parameters overrides this."""
        return mode in cls.modes

    @classmethod
    def port_apis(cls, port: str) -> tuple[str, ...]:  # noqa: ARG003 - as drivers override it
        """Those of ``apis`` that endpoints on this port kind can use; a driver whose kinds differ overrides this."""
        return cls.apis
