# SPDX-License-Identifier: BSD-3-Clause
"""The line of each finished case on the terminal, in a pipe and with -v. On a bench without a host."""

from __future__ import annotations

import pytest

from pytest_icbench.errors import WorkloadError
from tests.measurements import measurement
from tests.plugin.conftest import Runner
from tests.plugin.fakes import FakeTestbed
from tests.plugin.test_running import GATED, LIMITS

PLAIN = GATED + "\ndef test_plain(): pass\n"


def body(result: pytest.RunResult) -> list[str]:
    """The lines between the head and the results."""
    place = next(number for number, line in enumerate(result.outlines) if line.startswith("test_x.py "))
    end = next(number for number, line in enumerate(result.outlines) if number > place and line.startswith("==="))
    return [line for line in result.outlines[place:end] if line]


def test_a_case_that_needs_no_attention_has_its_letter_and_its_value_in_the_table_alone(
    inner: Runner, bench: type[FakeTestbed]
) -> None:
    bench.unsupported = {"testpmd": "testpmd is not installed"}
    inner.write(test_x=PLAIN)
    lines = body(inner.run())
    (letters,) = lines
    assert letters.startswith("test_x.py ...ss ")
    assert letters.endswith("[100%]")


def test_with_v_the_line_follows_the_test(inner: Runner, bench: type[FakeTestbed]) -> None:
    inner.write(test_x=GATED)
    result = inner.run("-v", "-k", "ovs")
    lines = result.outlines[result.outlines.index("") + 1 :]
    assert lines[0].startswith("test_x.py::test_a[ovs-64B-b32-1vs1-Rmax] PASSED")
    assert lines[1] == "  ovs-64B        5.00 Mpps  4.90 to 5.10    loss 0.99 %     switch"
    assert lines[2].startswith("test_x.py::test_a[ovs-1500B-b32-1vs1-Rmax] PASSED")
    assert lines[3].startswith("  ovs-1500B  ")
    assert lines[4] == ""


def test_with_q_there_are_letters(inner: Runner, bench: type[FakeTestbed]) -> None:
    inner.write(test_x=PLAIN)
    result = inner.run("-q")
    assert any(line.startswith(".....") for line in result.outlines)
    assert not any(line.startswith("  ovs") for line in result.outlines)


def test_a_failure_is_on_its_line(inner: Runner, bench: type[FakeTestbed]) -> None:
    inner.write(
        test_x=GATED
        + """
@pytest.mark.icbench(switch="ovs", burst=1)
def test_own(icbench):
    assert icbench.throughput().throughput_pps > 1e9
"""
    )
    (inner.path / "thresholds.toml").write_text(LIMITS)
    result = inner.run("-k", "ovs")
    lines = body(result)
    assert "<Measurement ovs-64B-b1-1vs1-Rmax: throughput_pps 5M (4.9M to 5.1M)>" in result.stdout.str()
    assert "Measurement(case=" not in result.stdout.str()
    assert lines[1].endswith("INCONCLUSIVE")
    assert lines[2].endswith("REGRESSED")
    assert lines[3].endswith("failed")


def test_an_error_without_a_result_has_a_line(inner: Runner, bench: type[FakeTestbed]) -> None:
    bench.behaviour = staticmethod(
        lambda case: WorkloadError("the sender died\nlog") if case.switch == "ovs" else measurement(case)
    )
    inner.write(test_x=GATED)
    lines = body(inner.run("-k", "64B"))
    assert lines[1] == "  ovs-64B      failed: the sender died"
    assert lines[2].startswith(". ")


def test_colours_follow_the_verdict(inner: Runner, bench: type[FakeTestbed], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    inner.write(test_x=GATED)
    (inner.path / "thresholds.toml").write_text(LIMITS)
    text = inner.run("--color=yes", "-k", "ovs").stdout.str()
    assert text.count("\x1b[31mREGRESSED\x1b[0m") >= 2  # its line and its row
    assert "\x1b[33mINCONCLUSIVE\x1b[0m" in text
    assert "\x1b[31mREGRESSED" not in inner.run("--color=no", "-k", "ovs").stdout.str()


def test_no_color_is_heeded(inner: Runner, bench: type[FakeTestbed]) -> None:
    inner.write(test_x=GATED)
    raw, _ = inner.terminal_with_bench("-k", "ovs")  # sets NO_COLOR
    assert "Mpps" in raw
    assert "\x1b[3" not in raw


def test_under_xdist_lines_have_whole_ids(inner: Runner) -> None:
    pytest.importorskip("xdist")
    inner.write(test_x=GATED)
    (inner.path / "thresholds.toml").write_text(LIMITS)
    result = inner.spawn_with_bench("-p", "xdist.plugin", "-n1", "-k", "ovs")
    result.stdout.fnmatch_lines(["  ovs-64B-b32-1vs1-Rmax  INCONCLUSIVE", "  ovs-1500B-b32-1vs1-Rmax  REGRESSED*"])
