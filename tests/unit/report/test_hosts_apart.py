# SPDX-License-Identifier: BSD-3-Clause
"""Results of several machines in one report: never in one table, ranking or figure; of one machine as if by itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_icbench.display.case_names import host_legend, hosts_apart
from pytest_icbench.model.case import Case
from pytest_icbench.model.codec import encode
from pytest_icbench.model.measurement import Result
from pytest_icbench.report import overview
from pytest_icbench.report.figure.registry import Content, section_charts
from pytest_icbench.report.html import page as html
from pytest_icbench.report.html.body import body, summary
from pytest_icbench.report.terminal_table import table
from pytest_icbench.store.run_json import RunInfo, read_info
from pytest_icbench.store.transfer import RunMerger
from tests.measurements import result as made


def result(switch: str, machine: str | None, partner: str | None = None, mpps: float = 5.0) -> Result:
    remote = {} if partner is None else {"remote": {"machine": partner, "cpu_model": "B"}}
    return made(
        Case(switch, remote=partner is not None),
        identity={"machine": machine, "cpu_model": "A", "cpus": 8, **remote},
        throughput_pps=mpps * 1e6,
        throughput_pps_low=mpps * 0.98e6,
        throughput_pps_high=mpps * 1.02e6,
    )


def hosts(*results: Result) -> list[str | None]:
    return [each.host for each in hosts_apart(results)]


def test_one_machine_is_not_reported_from_itself() -> None:
    assert hosts(result("ovs", "aa"), result("vpp", "aa")) == [None, None]
    assert hosts(result("ovs", None), result("vpp", None)) == [None, None]
    assert hosts(result("ovs", "aa"), result("vpp", "aa", "bb"), result("ovs", "aa", "bb")) == [None] * 3
    assert host_legend([result("ovs", "aa"), result("vpp", "aa", "bb")]) == []
    page = page_of(result("ovs", "aa"), result("vpp", "aa", "bb"))
    assert "host 1" not in summary(page) + body(page) + "\n".join(table(page.results))


def test_several_machines_have_numbers_in_order() -> None:
    assert hosts(result("ovs", "bb"), result("vpp", "aa"), result("veth", "bb")) == ["host 1", "host 2", "host 1"]
    testbeds = [result("ovs", "aa", "bb"), result("ovs", "aa"), result("ovs", "cc", "dd")]
    assert hosts(*testbeds) == ["hosts 1 and 2", "host 1", "hosts 3 and 4"]
    assert hosts(result("ovs", "aa", "bb"), result("ovs", "aa", "cc")) == ["hosts 1 and 2", "hosts 1 and 3"]
    assert host_legend(testbeds) == [
        "host 1: A, 8 CPUs, machine aa",
        "host 2: B, machine bb",
        "host 3: A, 8 CPUs, machine cc",
        "host 4: B, machine dd",
    ]


TWO = [result("ovs", "aa"), result("vpp", "bb", mpps=9.0), result("testpmd", "aa", mpps=4.0)]


def test_a_table_for_each_host() -> None:
    lines = table(TWO)
    assert [
        line.split(":")[0].split("  ")[0] for line in lines if line.startswith(("64 B", "ovs", "vpp", "testpmd"))
    ] == [
        "64 B on host 1",
        "ovs",
        "testpmd",
        "64 B on host 2",
        "vpp",
    ]
    assert lines[-2:] == ["host 1: A, 8 CPUs, machine aa", "host 2: A, 8 CPUs, machine bb"]
    assert all("host" not in line for line in table(TWO[::2]))


def test_nobody_wins_against_another_machine() -> None:
    first, second = overview.rankings(TWO)
    assert (first.winner, second.winner, second.lead) == ("ovs", "vpp", "")
    assert "25 % ahead of testpmd" in first.lead
    assert first.question.endswith("host 1, dedicated placement")
    assert second.question.endswith("host 2, dedicated placement")


def page_of(*results: Result) -> html.Page:
    page = html.Page()
    for each in results:
        page.add(f"t.py::test[{each.case}]", each)
    return page


def test_the_page_draws_and_names_each_host() -> None:
    page = page_of(*TWO)
    head = summary(page)
    assert "host 1: A, 8 CPUs, machine aa · host 2: A, 8 CPUs, machine bb" in head
    drawn = (chart for _, charts in section_charts(Content.of(page.results)) for chart in charts)
    figures = [chart for chart in drawn if chart.kind == "size"]
    assert [figure.title[-6:] for figure in figures] == ["host 1", "host 2"]
    assert [{row[1] for row in figure.rows if row[7] == "measured"} for figure in figures] == [
        {"ovs", "testpmd"},
        {"vpp"},
    ]
    assert '["host","host 2, A, 8 CPUs"]' in body(page)


def info(machine: str) -> str:
    made = RunInfo("r", 1.0, ("there",), "/d", "/r", identity={"machine": machine}, binaries={"vpp": {"path": machine}})
    return json.dumps({"schema": 1, **encode(made)})


@pytest.mark.parametrize("machines", [["aa", "aa"], ["aa", "bb", "aa"]])
def test_a_run_reports_of_each_host(tmp_path: Path, machines: list[str]) -> None:
    merge = RunMerger(tmp_path / "run", ["here"])
    for machine in machines:
        merge.add("t", [], {"run": info(machine), "places": []})
    found = read_info(tmp_path / "run")
    assert found is not None
    assert (found.argv, found.identity) == (("here",), {"machine": "aa"})
    reported = [(host["identity"]["machine"], host["binaries"]["vpp"]["path"]) for host in found.hosts]
    assert reported == ([] if len(set(machines)) < 2 else [("aa", "aa"), ("bb", "bb")])
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["run.json"]
