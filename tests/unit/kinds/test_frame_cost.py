# SPDX-License-Identifier: BSD-3-Clause
"""What a frame costs: the words on a result, and a chart for each path."""

from __future__ import annotations

from pytest_icbench.kinds.throughput import frame_cost
from pytest_icbench.model.case import Case
from pytest_icbench.model.load import Frames
from pytest_icbench.model.measurement import Result
from pytest_icbench.model.traffic import Traffic
from pytest_icbench.stats.quantiles import Estimate
from tests.measurements import result

EVENTS = {"cycles": 400.0, "kernel_cycles": 300.0, "instructions": 900.0, "llc_misses": 0.25}


def measured(size: int, switch: str = "ovs", **more: object) -> Result:
    cycles = {
        "sender_cycles_per_packet": Estimate(100.0 + size),
        "cycles_per_packet": Estimate(300.0, 290.0, 310.0),
        "receiver_cycles_per_packet": Estimate(90.0),
    }
    return result(Case(switch, Frames(Traffic(size))), **{**cycles, **more})


def test_a_path_has_a_chart_with_a_line_for_each_part() -> None:
    figures = frame_cost.by_size([measured(64), measured(512), measured(64, "vpp"), measured(512, "vpp")], ())
    assert [figure.title.partition(":")[0] for figure in figures] == ["ovs", "vpp"]
    rows = {(row[1], row[2]): row[3] for row in figures[0].rows}
    assert rows[("sender", 64)] == 164
    assert rows[("sender", 512)] == 612
    assert {part for part, _ in rows} == {"sender", "switch", "receiver"}
    assert "At 64 B: sender 164, switch 300, receiver 90 cycles." in figures[0].text


def test_one_size_or_no_number_has_no_chart() -> None:
    assert frame_cost.by_size([measured(64)], ()) == []
    assert frame_cost.by_size([result(Case("ovs", Frames(Traffic(size)))) for size in (64, 512)], ()) == []


def test_events_and_energy_are_said_where_the_host_reports_them() -> None:
    assert frame_cost.describe(measured(64)) == "cycles: sender 164, switch 300, receiver 90"
    assert frame_cost.describe(result()) == ""
    whole = measured(64, hardware={"endpoints": EVENTS, "packages": {"energy_uj": 12.5}})
    assert frame_cost.describe(whole).split("; ") == [
        "cycles: sender 164, switch 300, receiver 90, kernel, for the endpoints 300",
        "endpoints 900 instructions, 0.25 cache misses",
        "energy 12.5 µJ, of all CPU packages with their idle cores",
    ]
