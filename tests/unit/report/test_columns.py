# SPDX-License-Identifier: BSD-3-Clause
"""The table of columns: what terminal, Markdown and page show of a result."""

from __future__ import annotations

import pytest

from pytest_icbench.display.table import Column, In
from pytest_icbench.model.case import Case
from pytest_icbench.model.load import Frames
from pytest_icbench.model.rate import Rate
from pytest_icbench.report import columns, markdown
from pytest_icbench.report.columns import COLUMNS
from pytest_icbench.report.html import page as html
from pytest_icbench.report.terminal_table import table
from tests.measurements import result


def test_a_new_column_is_one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    where = In.THROUGHPUT | In.LATENCY | In.MARKDOWN | In.PAGE
    fresh = Column("took", "s", lambda each: f"{each.duration_s:.0f}", where, phrase="took {text} s")
    monkeypatch.setattr(columns, "COLUMNS", (*COLUMNS, fresh))
    rates, times = (
        result(duration_s=61.0),
        result(Case("ovs", Frames(rate=Rate(1000)), dimension="latency"), duration_s=62.0),
    )
    lines = table([rates, times])
    assert " ".join(lines).count("took s") == 2
    assert {"61", "62"} <= {*" ".join(lines).split()}
    text = markdown.summary([rates], [], [])
    assert "| case | value | interval | against the baseline | limit by | verdict | took s |" in text
    assert "| 61 |" in text
    page = html.Page()
    page.add("t", rates)
    assert "took 61 s" in html.line(page, 0, rates)


def test_every_column_is_shown_somewhere_and_keeps_its_place_where_it_must() -> None:
    for column in COLUMNS:
        assert column.shown
        assert column.always in column.shown
    heads = [(where, column.head(metric="m", or_base="")) for where in In for column in columns.columns(where)]
    assert len(heads) == len(set(heads))


def test_the_cpu_used_is_said_of_endpoints_that_do_not_poll() -> None:
    used = {"sender_cpu_share": 0.125, "receiver_cpu_share": 0.0301}
    waiting = result(Case("veth", wait="interrupt"), **used)
    assert "CPU %" in table([waiting])[1]
    assert "12.5 and 3.01" in " ".join(table([waiting]))
    said = [column.say(waiting) for column in columns.columns(In.LINE) + columns.columns(In.PAGE)]
    assert said.count("endpoints use 12.5 and 3.01 % of a CPU") == 2
    assert not any("CPU %" in line for line in table([result(Case("veth"), **used)]))


def test_an_uneven_spread_over_cores_is_said_in_tables_lines_and_page() -> None:
    uneven = result(core_imbalance=1.5)
    assert "imbalance" in table([uneven])[1]
    assert not any("imbalance" in line for line in table([result()]))
    said = [column.say(uneven) for column in columns.columns(In.LINE) + columns.columns(In.PAGE)]
    assert said.count("busiest core 1.50 of the mean") == 2
