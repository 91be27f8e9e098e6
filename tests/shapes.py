# SPDX-License-Identifier: BSD-3-Clause
"""Made-up results shaped like the published experiments A1 to A10, B2, B3, C4, E5, E7: no host, no clock, no dice.

The numbers follow the statements of the publications, so that every chart of a report can be looked at without a
machine of that size. They are no measurements.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, NamedTuple

from pytest_icbench.model.case import Case
from pytest_icbench.model.function_facts import FunctionWork
from pytest_icbench.model.launch import Launch
from pytest_icbench.model.load import Frames
from pytest_icbench.model.measurement import Result
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.traffic import Traffic
from pytest_icbench.stats.quantiles import Estimate, Histogram
from tests.measurements import launch, measurement

SIZES = (64, 128, 256, 512, 1024, 1280, 1500)
#: Maxima of one pair at 64 bytes in frames per second, and the Gbit/s at which a path's copying ends.
PATHS = {
    "sriov": (14.8e6, 38.0),
    "basicfwd": (11.2e6, 46.0),
    "vpp": (8.6e6, 40.0),
    "ovs": (7.2e6, 34.0),
    "snabb": (4.1e6, 21.0),
}
SPREAD = (0.985, 0.992, 0.998, 1.0, 1.004, 1.011)
LINK_MBPS = 10_000


class Shape(NamedTuple):
    """An experiment: its row, where it was published, what its charts are to show, and its results."""

    row: str
    source: str
    shows: str
    results: Callable[[], list[Result]]


def _launches(pps: float, rtt_us: float | None = None) -> tuple[Launch, ...]:
    template = launch()
    made = []
    for index, factor in enumerate(SPREAD):
        rtt = None
        if rtt_us is not None:
            middle = rtt_us * 1e3 * factor
            counts = tuple(
                (round(middle * (0.8 + 0.04 * step + (step / 14) ** 6)), 2000 >> (step // 2)) for step in range(20)
            )
            rtt = Histogram(counts, counts[0][0], counts[-1][0], middle, 3)
        made.append(
            replace(template, index=index, throughput_pps=pps * factor, offered_pps=pps * factor, rtt=rtt, windows=())
        )
    return tuple(made)


def rate(case: Case, pps: float, **more: Any) -> Result:
    """Returns a result of throughput: its interval is a percent wide to either side."""
    bits = pps * case.traffic.gbps_per_pps
    return Result.of(
        measurement(
            case,
            throughput_pps=Estimate(pps, pps * 0.985, pps * 1.011),
            throughput_per_pair_pps=Estimate(pps / case.pairs, pps * 0.985 / case.pairs, pps * 1.011 / case.pairs),
            throughput_gbps=Estimate(bits, bits * 0.985, bits * 1.011),
            offered_pps=pps,
            verdict="PASS",
            per_launch=_launches(pps),
            **more,
        )
    )


def time(case: Case, mean_us: float, **more: Any) -> Result:
    """Returns a result of latency, with a 99th percentile of three times the median."""
    median = mean_us * 900
    return Result.of(
        measurement(
            case,
            rtt_p50_ns=Estimate(median, median * 0.97, median * 1.03),
            rtt_mean_ns=Estimate(mean_us * 1e3, mean_us * 970, mean_us * 1030),
            rtt_p90_ns=Estimate(median * 1.8, median * 1.7, median * 1.9),
            rtt_p99_ns=Estimate(median * 3, median * 2.7, median * 3.4),
            verdict="PASS",
            per_launch=_launches(case.rate.pps or 1000.0, mean_us * 0.9),
            **more,
        )
    )


def maximum(switch: str, size: int, burst: int = 32) -> float:
    """Returns the greatest rate of one pair: bound by frames, then by bytes."""
    frames, gbps = PATHS[switch]
    large = burst / 32
    gain = {"snabb": 1.6, "vpp": 1.45}.get(switch, 1.03) if large > 1 else 0.97 if large < 1 else 1.0
    return 1 / (1 / (frames * gain) + size * 8 / (gbps * 1e9))


def _a1() -> list[Result]:
    kpps = {"udp": 338, "udp-mmsg": 409, "raw": 360, "raw-mmsg": 440}
    at = Rate(1_000_000)
    return [
        rate(Case("linux-bridge", Frames(burst=64, rate=at), api=api), value * 900.0) for api, value in kpps.items()
    ]


def _by_load(switches: Iterable[str], bursts: Iterable[int], sizes: Iterable[int], most: int) -> list[Result]:
    return [
        rate(
            Case(switch, Frames(Traffic(size), burst, Rate(load * 1_000_000))),
            min(load * 1e6, maximum(switch, size, burst)),
        )
        for switch in switches
        for burst in bursts
        for size in sizes
        for load in range(1, most + 1)
    ]


def _by_size(switches: Iterable[str], bursts: Iterable[int]) -> list[Result]:
    return [
        rate(Case(switch, Frames(Traffic(size), burst)), maximum(switch, size, burst), bottleneck="switch")
        for burst in bursts
        for switch in switches
        for size in SIZES
    ]


def _remote(case: Case, pps: float) -> Result:
    most = case.traffic.line_pps(LINK_MBPS)
    return rate(case, min(pps, most), treatment={"uplink_mbps": LINK_MBPS})


def _a5() -> list[Result]:
    return [
        _remote(
            Case(switch, Frames(Traffic(size)), remote=True),
            maximum(switch, size) * (0.6 if switch != "sriov" else 0.9),
        )
        for switch in ("ovs", "sriov", "vpp")
        for size in SIZES
    ]


def _shared(switch: str, size: int, pairs: int) -> float:
    """Returns the total of several pairs: constant for short frames; for long ones the memory's rate is shared."""
    share = {1: 1.0, 2: 0.84, 4: 0.33} if switch != "sriov" else {1: 1.0, 2: 0.98, 4: 0.82}
    short, long = 1 / pairs, share[pairs]
    weight = (size - 64) / (1500 - 64)
    return maximum(switch, size) * pairs * (short * (1 - weight) + long * weight)


def _a6() -> list[Result]:
    return [
        rate(Case(switch, Frames(Traffic(size)), pairs=pairs), _shared(switch, size, pairs))
        for switch in PATHS
        for size in SIZES
        for pairs in (1, 2, 4)
    ]


def _a7() -> list[Result]:
    most = {"ovs": 2.6e6, "vpp": 3.4e6, "sriov": 14.2e6}
    return [
        _remote(Case(switch, Frames(Traffic(size)), pairs=pairs, remote=True), pps if size == 64 else 9e6)
        for switch, pps in most.items()
        for size in (64, 1500)
        for pairs in (1, 2, 4, 8)
    ]


def _times(switches: dict[str, float], *, remote: bool) -> list[Result]:
    return [
        time(
            Case(switch, Frames(Traffic(size), burst, Rate(1000)), dimension="latency", remote=remote),
            base * (1 + 0.35 * math.log2(burst / 4)) * (1 + size / 6000)
            if switch != "sriov"
            else base + burst / 12 + size / 900,
        )
        for switch, base in switches.items()
        for burst in (4, 32, 128)
        for size in SIZES
    ]


def _a8() -> list[Result]:
    return _times({"basicfwd": 6.0, "ovs": 8.5, "vpp": 7.5, "snabb": 64.0, "sriov": 11.0}, remote=False)


def _a9() -> list[Result]:
    return _times({"ovs": 24.0, "vpp": 21.0, "sriov": 18.0}, remote=True)


def _a10() -> list[Result]:
    gain = {1: 1.0, 2: 1.9, 4: 3.1}
    return [
        rate(
            Case(switch, Frames(Traffic(size)), pairs=4, switch_cores=cores),
            maximum(switch, size) * gain[cores] * 0.9,
        )
        for switch in ("ovs", "vpp", "basicfwd")
        for size in (64, 1500)
        for cores in (1, 2, 4)
    ]


def _c4() -> list[Result]:
    most = {"testpmd": 13e6, "vpp": 8e6}
    return [
        rate(Case(switch, Frames(rate=Rate(load * 1_000_000))), min(load * 1e6, pps))
        for switch, pps in most.items()
        for load in range(1, 17)
    ]


def _chain(switch: str, length: int, rate: str | int = "pdr:0.5%") -> Case:
    return Case(switch, Frames(traffic=Traffic(256), rate=Rate.from_json(rate)), function="acl10", chain=length)


def _e7() -> list[Result]:
    most = {"veth": 0.42e6, "linux-bridge": 0.3e6}
    lengths = (1, 2, 5, 10, 20, 50)
    searched = [
        rate(_chain(switch, length), pps / (0.4 + 0.6 * length)) for switch, pps in most.items() for length in lengths
    ]
    flat_out = [
        rate(_chain(switch, length, "max"), pps / (0.2 + 0.8 * length**1.5))
        for switch, pps in most.items()
        for length in lengths
    ]
    times = [
        time(replace(_chain(switch, length, 1000), dimension="latency").sending(burst=1), 30 + 39 * length)
        for switch in most
        for length in lengths
    ]
    return [*searched, *flat_out, *times]


def _e5() -> list[Result]:
    found = []
    for switch, worst in (("veth", 0.02), ("linux-bridge", 0.12)):
        for first in (50, 70, 30):
            case = Case(
                switch,
                Frames(rate=Rate(40_000)),
                function="cost100000",
                pairs=2,
                cpu_share=f"{first}:{100 - first}",
            )
            errors = ((1, first, worst * (60 - first) / 30), (2, 100 - first, worst * (first - 60) / 30))
            works = tuple(
                FunctionWork(
                    pair,
                    cpu_share=share,
                    goodput_pps=300.0 * share,
                    alone_pps=30_000.0,
                    goodput_error=error,
                    goodput_error_low=error - 0.01,
                    goodput_error_high=error + 0.015,
                )
                for pair, share, error in errors
            )
            found.append(rate(case, 30_000.0, functions=works))
    return found


def _b(results: list[Result]) -> list[Result]:
    """Returns results of basicfwd as those of testpmd, which the second publication has in its place."""
    return [
        rate(replace(item.point, switch="testpmd"), float(item.frames.throughput_pps or 0.0))
        if item.switch == "basicfwd"
        else item
        for item in results
    ]


THESIS, VHPC, RAN = "Ara 2019", "Ara and others, VHPC 2019", "Vitucci and others 2019"
DELIVERABLE = "Superfluidity D5.2"
#: Every published chart, in the order of the publications.
SHAPES = (
    Shape(
        "A1",
        f"{THESIS}, Table 5.2 (and VHPC Table 1, B1)",
        "four socket techniques in order, with both published values beside each",
        _a1,
    ),
    Shape(
        "A2",
        f"{THESIS}, Fig. 5.1",
        "each switch follows the offered rate up to its maximum; the dotted line is y = x",
        lambda: _by_load(PATHS, [32], [64, 512], 20),
    ),
    Shape(
        "A3",
        f"{THESIS}, Fig. 5.2",
        "maximum against packet size in Mpps and in Gbit/s; at 64 B: sriov, basicfwd, vpp, ovs, snabb",
        lambda: _by_size(PATHS, [32]),
    ),
    Shape(
        "A4",
        f"{THESIS}, Fig. 5.3",
        "the same in bursts of 256: snabb comes close to ovs, vpp is the best software switch",
        lambda: _by_size(PATHS, [256]),
    ),
    Shape("A5", f"{THESIS}, Fig. 5.4", "two hosts: bound by the link for long frames, whose limit is drawn", _a5),
    Shape(
        "A6",
        f"{THESIS}, Fig. 5.5 to 5.7",
        "M against packet size for 2vs2 and 4vs4, M and T against pairs, and the ideal lines",
        _a6,
    ),
    Shape(
        "A7",
        f"{THESIS}, Fig. 5.8",
        "T in Gbit/s against pairs with the link's limit: 1500 B at the limit, 64 B of ovs and vpp below",
        _a7,
    ),
    Shape(
        "A8",
        f"{THESIS}, Fig. 5.9 and 5.10",
        "round trips against packet size for three bursts; without snabb after a click on it in the legend",
        _a8,
    ),
    Shape("A9", f"{THESIS}, Fig. 5.11", "round trips over two hosts: sriov lowest", _a9),
    Shape(
        "A10", f"{THESIS}, section 6.1", "total rate against worker cores, one line a switch, and the ideal lines", _a10
    ),
    Shape(
        "B2",
        f"{VHPC}, Fig. 2",
        "throughput against the offered rate for bursts of 16, 32, 64 and two sizes",
        lambda: _b(_by_load(PATHS, [16, 32, 64], [64, 512], 16)),
    ),
    Shape("B3", f"{VHPC}, Fig. 3", "maximum for each packet size", lambda: _b(_by_size(PATHS, [32]))),
    Shape("C4", f"{RAN}, Fig. 9", "testpmd and VPP against the input rate: they saturate at 13 and 8 Mpps", _c4),
    Shape(
        "E5",
        f"{DELIVERABLE}, section 3.4.3",
        "the error of the goodput against the share, with the published 3.5 % as dotted lines",
        _e5,
    ),
    Shape(
        "E7",
        f"{DELIVERABLE}, section 3.5.2",
        "rate against length by search and flat out, and the median and 99th percentile of the round trip",
        _e7,
    ),
)
