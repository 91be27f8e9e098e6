# SPDX-License-Identifier: BSD-3-Clause
"""What is sent over a path, and how long frames are. The only place that knows it; others ask. Pure.

A frame's length is RFC 2544's: Ethernet with FCS. Today all frames of a case have one length. What comes beyond that
(a mix of lengths, flows, other headers) changes ``Traffic``, its options and its label, and nobody who asks it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

#: Least and greatest frame in bytes.
MIN_FRAME_BYTES = 64
MAX_FRAME_BYTES = 9216
#: Frame check sequence.
FCS_BYTES = 4
#: What of a frame does not count in a layer 3 MTU: Ethernet header and FCS.
L2_BYTES = 14 + FCS_BYTES
#: Ethernet, IPv4 and UDP: what stands before the payload.
HEADERS_BYTES = 14 + 20 + 8
#: Preamble, start of frame and least gap of Ethernet, a frame.
L1_OVERHEAD_BYTES = 20
#: Layer 3 MTU unless a case needs a greater one, and the frame that it carries. Longer ones are jumbo frames.
MTU_ETHERNET = 1500
MTU_ETHERNET_FRAME_BYTES = MTU_ETHERNET + L2_BYTES

#: A label in a case's id.
LABEL = r"\d+B"


def carries_jumbo(mtu: int) -> bool:
    """Whether ports with this layer 3 MTU are made for jumbo frames."""
    return mtu > MTU_ETHERNET


@dataclass(frozen=True, slots=True)
class Traffic:
    """Frames of one length.

    Attributes:
        packet_size: bytes of a frame with FCS; ``packet_size`` of files and markers, ``-p`` of the workload.
    """

    packet_size: int = MIN_FRAME_BYTES

    @property
    def label(self) -> str:
        """As in ids and names of directories; ``from_label`` is the inverse."""
        return f"{self.packet_size}B"

    @classmethod
    def from_label(cls, label: str) -> Traffic:
        return cls(int(label.removesuffix("B")))

    def to_axes(self) -> dict[str, Any]:
        """Its part of a case's axes, plain JSON data; ``from_axes`` is the inverse."""
        return {"packet_size": self.packet_size}

    @classmethod
    def from_axes(cls, axes: Mapping[str, Any]) -> Traffic:
        """``axes``: those of a whole case."""
        return cls(axes["packet_size"])

    @property
    def options(self) -> list[str]:
        """Of the workload's command line."""
        return ["-p", str(self.packet_size)]

    @property
    def longest_bytes(self) -> int:
        """Of its longest frame."""
        return self.packet_size

    @property
    def mean_bytes(self) -> int:
        """The mean length of its frames, which tables and charts order traffic by."""
        return self.packet_size

    @property
    def jumbo(self) -> bool:
        """Whether a frame needs a greater MTU than Ethernet's."""
        return self.longest_bytes > MTU_ETHERNET_FRAME_BYTES

    @property
    def port_frame_bytes(self) -> int:
        """The longest frame that ports made for it carry."""
        return MAX_FRAME_BYTES if self.jumbo else MTU_ETHERNET_FRAME_BYTES

    @property
    def mtu(self) -> int:
        """Layer 3 MTU of those ports."""
        return self.port_frame_bytes - L2_BYTES

    @property
    def gbps_per_pps(self) -> float:
        """Gbit/s on layer 2, whole frames, of one frame a second."""
        return self.packet_size * 8 / 1e9

    @property
    def l1_gbps_per_pps(self) -> float:
        """Gbit/s on the wire, preamble and gap too, of one frame a second."""
        return (self.packet_size + L1_OVERHEAD_BYTES) * 8 / 1e9

    def line_pps(self, mbps: float) -> float:
        """Frames that a link of this speed carries in a second."""
        return mbps * 1e6 / 8 / (self.packet_size + L1_OVERHEAD_BYTES)


#: What is sent unless a case says otherwise.
SHORTEST = Traffic()
