# SPDX-License-Identifier: BSD-3-Clause
"""Headers: what stands before a frame's payload, as an axis has it. Pure."""

from __future__ import annotations

import re

#: Ethernet, IPv4 and UDP, which a case has unless it names others.
PLAIN, UDP6 = "udp4", "udp6"
NAMES = (PLAIN, "tcp4", UDP6, "tcp6")
#: Pattern of headers in a case's id.
LABEL = rf"(?:{'|'.join(NAMES)})(?:\+vlan\d+)?"
MAX_VLAN = 4094
_FORM = re.compile(rf"({'|'.join(NAMES)})(?:\+vlan([1-9]\d{{0,5}}))?", re.ASCII)
_BYTES = {"udp": 8, "tcp": 20, "4": 20, "6": 40}
_ETHERNET_BYTES = 14
_TAG_BYTES = 4


def parse(text: str) -> str | None:
    """Returns the label of headers as a user writes them: ``tcp4``, ``udp6+vlan100``; None for IPv4 and UDP alone.

    Raises ValueError: the end of a sentence that begins with the text.
    """
    match = _FORM.fullmatch(text)
    if match is None:
        raise ValueError(f"write one of {', '.join(NAMES)}, with or without a VLAN tag: udp4, udp6+vlan100")
    if match[2] is not None and int(match[2]) > MAX_VLAN:
        raise ValueError(f"VLANs go from 1 to {MAX_VLAN}")
    return None if text == PLAIN else text


def length(label: str | None) -> int:
    """Returns the bytes before the payload, from the Ethernet header on."""
    name = (label or PLAIN).partition("+")[0]
    return _ETHERNET_BYTES + _BYTES[name[:3]] + _BYTES[name[3]] + (_TAG_BYTES if has_tag(label) else 0)


def is_ipv4(label: str | None) -> bool:
    """Whether frames with these headers are IPv4 packets."""
    return (label or PLAIN).partition("+")[0].endswith("4")


def has_tag(label: str | None) -> bool:
    """Whether these headers have a VLAN tag."""
    return label is not None and "+vlan" in label
