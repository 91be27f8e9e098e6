# SPDX-License-Identifier: BSD-3-Clause
"""JUnit XML as Jenkins and GitLab read it: valid, one testcase a case, whatever the names. No host is needed."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from pytest_icbench.errors import WorkloadError
from pytest_icbench.model.case import Case
from pytest_icbench.model.measurement import Measurement
from tests.baselines import measured
from tests.measurements import measurement
from tests.plugin.conftest import Runner
from tests.plugin.fakes import FakeTestbed

HOSTILE = ["<script>alert(1)</script>", "\"'&]]>", "\x1b[31m\x00\x07", "日本語 ünï 😀", "a\nb\tc", "\ud800"]
CASES = f"""
@pytest.mark.parametrize("name", {HOSTILE!r})
@pytest.mark.icbench(switch="ovs")
def test_named(icbench, name):
    icbench.gate(icbench.throughput())

@pytest.mark.icbench(switch=["ovs", "vpp", "veth"])
def test_a(icbench):
    print("captured <b>")
    icbench.gate(icbench.throughput())
"""


def validated(path: Path) -> list[Any]:
    """The testcases of a file that is valid once their properties are taken out, which the schema does not know."""
    etree = pytest.importorskip("lxml.etree")
    schema = etree.XMLSchema(etree.parse(Path(__file__).parent / "junit.xsd"))
    tree = etree.parse(path)
    found = [copy.deepcopy(case) for case in tree.iter("testcase")]
    for case in tree.iter("testcase"):
        for properties in case.findall("properties"):
            case.remove(properties)
    schema.assertValid(tree)
    return found


def properties(case: Any) -> dict[str, str]:
    return {one.get("name"): one.get("value") for one in case.iter("property")}


def _behaviour(case: Case) -> Measurement | BaseException:
    if case.switch == "vpp":
        return measurement(case, verdict="INVALID", reason="died", evidence=" ".join(HOSTILE))
    if case.switch == "veth":
        return WorkloadError("sender died: " + " ".join(HOSTILE))
    return measured(case, treatment={"switch": {"version": HOSTILE[0]}, HOSTILE[2]: HOSTILE[3]})


def test_hostile_names_and_every_outcome_are_valid(inner: Runner, bench: type[FakeTestbed]) -> None:
    bench.behaviour = staticmethod(_behaviour)
    inner.write(test_x=CASES)
    inner.run("--junitxml=j.xml", "-o", "junit_logging=all")
    cases = validated(inner.path / "j.xml")
    assert len(cases) == len(HOSTILE) + 3
    for case in cases[:1]:
        (out,) = [out.text for out in case.findall("system-out") if "5.00 Mpps" in out.text]
        line = json.loads(out.splitlines()[-1])
        assert line["treatment"][HOSTILE[2]] == HOSTILE[3]
    outcomes = {case.get("name"): properties(case)["icbench.outcome"] for case in cases if "test_a" in case.get("name")}
    assert outcomes == {
        "test_a[ovs-64B-b32-1vs1-Rmax]": "undecided",
        "test_a[vpp-64B-b32-1vs1-Rmax]": "broken",
        "test_a[veth-64B-b32-1vs1-Rmax]": "broken",
    }
    page = (inner.path / "reports" / "latest" / "summary.md").read_text()
    assert "<script>" not in page
    assert "\x1b" not in page


def test_failure_has_the_sentence_and_skip_the_reason(inner: Runner, bench: type[FakeTestbed]) -> None:
    bench.behaviour = staticmethod(measured)
    bench.unsupported["vpp"] = "vpp: not found; name it with --icbench-vpp"
    limits = '["ovs-*"]\nmin_throughput_pps = 9e9\n["veth-*"]\nmin_throughput_pps = 1\n'
    (inner.path / "thresholds.toml").write_text(limits)
    inner.write(
        test_x='@pytest.mark.icbench(switch=["ovs", "vpp", "veth"])\ndef test_a(icbench):\n'
        "    icbench.gate(icbench.throughput())\n"
    )
    inner.run("--junitxml=j.xml").assert_outcomes(failed=1, skipped=1, passed=1)
    cases = {case.get("name").split("[")[1].split("-")[0]: case for case in validated(inner.path / "j.xml")}
    failure = cases["ovs"].find("failure")
    assert failure.get("message").startswith("REGRESSED: ovs-64B-b32-1vs1-Rmax: 5 Mpps is below 9000 Mpps")
    assert "throughput_pps: REGRESSED: " in failure.text
    assert 'thresholds.toml: ["ovs-*"] min_throughput_pps' in failure.text
    assert cases["vpp"].find("skipped").get("message") == "vpp: not found; name it with --icbench-vpp"
    found = {name: properties(case).get("icbench.outcome") for name, case in cases.items()}
    assert found == {"ovs": "regressed", "vpp": "skipped", "veth": "passed"}
    assert properties(cases["ovs"])["icbench.verdict"] == "REGRESSED"


def test_a_reader_finds_line_remarks_and_link_before_the_json(inner: Runner, bench: type[FakeTestbed]) -> None:
    pytest.importorskip("pytest_html")
    bench.behaviour = staticmethod(lambda case: measured(case, drift=0.2, throughput_gbps=1 / 3))
    inner.write(test_x='@pytest.mark.icbench(switch="ovs")\ndef test_a(icbench): icbench.throughput()\n')
    inner.run("-p", "pytest_html.plugin", "--junitxml=ci/j.xml", "--html=page/r.html", "-p", "pytest_metadata.plugin")
    (case,) = validated(inner.path / "ci/j.xml")
    lines = case.find("system-out").text.splitlines()
    assert lines[0].startswith("ovs-64B-b32-1vs1-Rmax  ")
    assert "5.00 Mpps" in lines[0]
    assert lines[1].startswith("ovs-64B-b32-1vs1-Rmax: drifted by +20.0%")
    assert "page: ../page/r.html#case-throughput-ovs-64B-b32-1vs1-Rmax" in lines
    assert json.loads(lines[-1])["case"] == "ovs-64B-b32-1vs1-Rmax"
    assert properties(case)["icbench.throughput_gbps"] == "0.3333333"


def test_the_run_s_own_file_has_no_host_name(
    inner: Runner, bench: type[FakeTestbed], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platform.node", lambda: "lab7.example.org")
    inner.write(test_x='@pytest.mark.icbench(switch="veth")\ndef test_a(icbench): icbench.throughput()\n')
    for more, name in (((), "localhost"), (("--icbench-host-names",), "lab7.example.org")):
        assert inner.run("-o", "icbench_run_files=yes", *more).ret == 0
        text = (inner.path / "reports/latest/junit.xml").read_text()
        assert f'hostname="{name}"' in text
    assert inner.run("--junitxml=mine.xml").ret == 0
    assert 'hostname="lab7.example.org"' in (inner.path / "mine.xml").read_text()
