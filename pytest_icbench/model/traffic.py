# SPDX-License-Identifier: BSD-3-Clause
"""The traffic over a path and the length of its frames. No other module knows lengths of frames. Pure.

A frame's length is RFC 2544's: Ethernet with FCS, and the VLAN tag if it has one. All frames of a case have one length,
or those of a mix in turn. An extension changes ``Traffic``, its options and its label, but no module that uses it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pytest_icbench.model import flows as flow_labels
from pytest_icbench.model import headers, traffic_mix
from pytest_icbench.model import routes as route_labels

#: Least and greatest frame in bytes.
MIN_FRAME_BYTES = 64
MAX_FRAME_BYTES = 9216
#: Frame check sequence.
FCS_BYTES = 4
#: Bytes of a frame beyond its layer 3 MTU: Ethernet header and FCS.
L2_BYTES = 14 + FCS_BYTES
#: Bytes before the payload: Ethernet, IPv4 and UDP.
HEADERS_BYTES = headers.length(None)
#: Bytes that the workload writes at the beginning of a payload.
STAMP_BYTES = 18
#: Preamble, start of frame and least gap of Ethernet, for each frame.
L1_OVERHEAD_BYTES = 20
#: Queue pairs of an endpoint; the workload's QUEUES_MAX.
MAX_QUEUES = 16
#: Layer 3 MTU unless a case needs a greater one, and the longest frame that it carries. Longer frames are jumbo frames.
MTU_ETHERNET = 1500
MTU_ETHERNET_FRAME_BYTES = MTU_ETHERNET + L2_BYTES

#: Pattern of a label in a case's id.
LABEL = (
    rf"(?:\d+B|{traffic_mix.LABEL})(?:-{headers.LABEL})?(?:-f{flow_labels.LABEL})?(?:-both)?(?:-q\d+)?"
    rf"(?:-{route_labels.LABEL})?"
)


#: The label of frames that both ends of a pair send at once, and of those that side a sends alone.
BOTH, ONE = "both", "one"
#: How endpoints learn of frames: they ask again and again, or in another way.
POLL, WAITS = "poll", ("interrupt", "adaptive")


def sends_both_ways(text: str | None) -> bool:
    """Reads a direction as a user writes it; None is one way. Raises ValueError for an unknown one."""
    if text in (None, ONE):
        return False
    if text == BOTH:
        return True
    raise ValueError(f"write {ONE} (side a sends) or {BOTH} (both ends send at once)")


def waits(text: str) -> str | None:
    """Reads how endpoints learn of frames as a user writes it; None: they poll. Raises ValueError for another word."""
    if text not in (POLL, *WAITS):
        raise ValueError(f"write {POLL}, {' or '.join(WAITS)}")
    return None if text == POLL else text


def carries_jumbo(mtu: int) -> bool:
    """Whether ports with this layer 3 MTU are made for jumbo frames."""
    return mtu > MTU_ETHERNET


def l2_gbps(mean_bytes: float) -> float:
    """Returns the Gbit/s of one frame of this mean length per second on layer 2, whole frames."""
    return mean_bytes * 8 / 1e9


def l1_gbps(mean_bytes: float) -> float:
    """Returns the same on the wire, with preamble and gap."""
    return l2_gbps(mean_bytes + L1_OVERHEAD_BYTES)


@dataclass(frozen=True, slots=True)
class Traffic:
    """A stream of frames.

    Attributes:
        packet_size: bytes of a frame with FCS, of a mix the longest; ``packet_size`` of files and markers, ``-p`` of
            the workload.
        mix: the label of the mix whose lengths frames have in turn; None: all have one.
        flows: the label of the flows, ``64k:ports``; None: a single one.
        header: the label of the headers, ``tcp6+vlan100``; None: Ethernet, IPv4 and UDP.
        both: whether both ends of a pair send at once; else side a alone.
        queues: queue pairs of each endpoint, over which flows are spread by their hash.
        routes: routes in the table of a switch that routes, over which flows are spread by their destinations; None:
            frames go to the peer's address.
    """

    packet_size: int = MIN_FRAME_BYTES
    mix: str | None = None
    flows: str | None = None
    header: str | None = None
    both: bool = False
    queues: int = 1
    routes: int | None = None

    @classmethod
    def of_mix(cls, text: str) -> Traffic:
        """Returns the traffic of a mix as a user writes it. Raises ValueError, as ``traffic_mix.parse``."""
        label = traffic_mix.parse(text, MIN_FRAME_BYTES, MAX_FRAME_BYTES)
        return cls(max(traffic_mix.sizes(label)), label)

    @property
    def label(self) -> str:
        """The label in ids and names of directories; ``from_label`` is the inverse."""
        frames = self.mix or f"{self.packet_size}B"
        parts = [frames, self.header, None if self.flows is None else f"f{self.flows}", "both" if self.both else None]
        parts += [f"q{self.queues}" if self.queues > 1 else None]
        parts += [None if self.routes is None else route_labels.label(self.routes)]
        return "-".join(part for part in parts if part is not None)

    @classmethod
    def from_label(cls, label: str) -> Traffic:
        label, _, routes = label.partition("-routes")
        label, _, queues = label.partition("-q")
        one_way = label.removesuffix("-both")
        rest, _, flows = one_way.partition("-f")
        frames, _, header = rest.partition("-")
        traffic = cls(int(frames[:-1])) if frames.endswith("B") else cls.of_mix(frames)
        traffic = traffic.with_labels(flows or None, header or None)
        number = route_labels.parse(routes) if routes else None
        return replace(traffic, both=label != one_way, queues=int(queues or 1), routes=number)

    def with_labels(self, flows: str | None, header: str | None) -> Traffic:
        """Returns the traffic with flows and headers as users write them. Raises ValueError for unknown ones."""
        return replace(
            self,
            flows=None if flows is None else flow_labels.parse(flows),
            header=None if header is None else headers.parse(header),
        )

    @property
    def sizes(self) -> tuple[int, ...]:
        """The lengths of its frames in turn, from the first one on."""
        return (self.packet_size,) if self.mix is None else traffic_mix.sizes(self.mix)

    def to_axes(self) -> dict[str, Any]:
        """Returns its part of a case's axes as plain JSON data; ``from_axes`` is the inverse."""
        axes: dict[str, Any] = {"packet_size": self.packet_size}
        more = {"mix": self.mix, "flows": self.flows, "header": self.header, "direction": self.direction}
        axes |= {name: label for name, label in more.items() if label is not None}
        axes |= {"queues": self.queues} if self.queues > 1 else {}
        return axes | ({} if self.routes is None else {"routes": self.routes})

    @property
    def direction(self) -> str | None:
        """The label of its direction in files; None: one way."""
        return BOTH if self.both else None

    @classmethod
    def from_axes(cls, axes: Mapping[str, Any]) -> Traffic:
        """Returns the traffic of a case; ``axes`` are those of the whole case. Raises ValueError for unknown ones."""
        named = axes.get("mix")
        traffic = cls(axes.get("packet_size", MIN_FRAME_BYTES)) if named is None else cls.of_mix(named)
        traffic = traffic.with_labels(axes.get("flows"), axes.get("header"))
        both = sends_both_ways(axes.get("direction"))
        return replace(traffic, both=both, queues=axes.get("queues", 1), routes=axes.get("routes"))

    @property
    def options(self) -> list[str]:
        """Its options on the workload's command line."""
        lengths = ["-p", str(self.packet_size)] if self.mix is None else ["--sizes", ",".join(map(str, self.sizes))]
        more = {
            "--flows": self.flows,
            "--header": self.header,
            "--queues": str(self.queues) if self.queues > 1 else None,
        }
        return lengths + [word for name, label in more.items() if label is not None for word in (name, label)]

    @property
    def idle_queues(self) -> int:
        """How many queues of a sender carry nothing at least, because there are fewer flows than queues."""
        return max(0, self.queues - flow_labels.number(self.flows))

    @property
    def few_flows(self) -> str:
        """The warning about ``idle_queues``."""
        flows = flow_labels.number(self.flows)
        return (
            f"{flows} flow{'s' if flows > 1 else ''} leave{'' if flows > 1 else 's'} {self.idle_queues} or more of"
            f" {self.queues} queues empty: take more with --icbench-flows"
        )

    @property
    def headers_bytes(self) -> int:
        """The bytes before the payload of a frame."""
        return headers.length(self.header)

    @property
    def least_bytes(self) -> int:
        """The length of the shortest frame with its headers, the stamp and the FCS."""
        return self.headers_bytes + STAMP_BYTES + FCS_BYTES

    @property
    def misfit(self) -> str | None:
        """Why its shortest frame does not hold its headers and the stamp, as a sentence; None if it does."""
        least, shortest = self.least_bytes, min(self.sizes)
        if shortest >= least:
            return None
        return f"{shortest} bytes do not hold {self.header or headers.PLAIN} headers; take frames of {least} or more"

    @property
    def longest_bytes(self) -> int:
        """The length of its longest frame."""
        return self.packet_size

    @property
    def mean_bytes(self) -> float:
        """The mean length of its frames, which tables and charts order traffic by."""
        return self.packet_size if self.mix is None else sum(self.sizes) / len(self.sizes)

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
        """The layer 3 MTU of ports made for it."""
        return self.port_frame_bytes - L2_BYTES

    @property
    def gbps_per_pps(self) -> float:
        """The Gbit/s of one frame per second on layer 2, whole frames."""
        return l2_gbps(self.mean_bytes)

    def line_pps(self, mbps: float) -> float:
        """Returns the frames per second that a link of this speed carries."""
        return mbps * 1e6 / 8 / (self.mean_bytes + L1_OVERHEAD_BYTES)


#: The traffic of a case by default.
SHORTEST = Traffic()
