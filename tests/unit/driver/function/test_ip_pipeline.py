# SPDX-License-Identifier: BSD-3-Clause
"""ip_pipeline's functions: their names, the lines and rules that make them, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_icbench.driver.function import registry
from pytest_icbench.driver.function.function_parts import Parts
from pytest_icbench.driver.function.ip_pipeline import IpPipelineFunction, Script, _check_answer, write_script
from pytest_icbench.driver.function.linux import LinuxFunction
from pytest_icbench.driver.function.protocol import Ends, FunctionSpec
from pytest_icbench.errors import ProvisionError, Unsupported
from pytest_icbench.model.endpoint import Address, VhostUser

ENDS = Ends.make(3, Address.of(3, "a"), Address.of(3, "b"))
ANY: Any = object()
SPEC = FunctionSpec(
    *("nat", 3, ENDS, VhostUser(ENDS.inner, "/run/a"), VhostUser(ENDS.outer, "/run/b"), ANY, None, ANY),
    *((0, 1, 2, 3), 1, 0, 1500, Path()),
)


def made(function: str, *, label: str | None = None, frame_bytes: float = 64) -> Script:
    parts = Parts.parse(function)
    assert parts is not None
    return write_script(parts, ENDS, ports=(1024, 1025), label=label, frame_bytes=frame_bytes, node=0)


def tables(found: Script) -> list[str]:
    """The kinds of its tables, in their order."""
    return [line.split()[4] for line in found.lines if line.startswith("pipeline P table match ")]


@pytest.mark.parametrize(
    ("function", "switch", "component"),
    [
        ("route", "testpmd", "l3fwd"),
        ("pipeline+route", "testpmd", "ip_pipeline"),
        ("nat", "testpmd", "ip_pipeline"),
        ("nat", "ovs", "ovs"),
        ("nat+pipeline", "ovs", "ip_pipeline"),
        ("acl1000+deny30", "ovs", "ip_pipeline"),
        ("police20k", "basicfwd", "ip_pipeline"),
    ],
)
def test_it_is_chosen_by_its_part_and_where_no_other_has_the_function(
    function: str, switch: str, component: str
) -> None:
    assert registry.component_for(function, switch, "vhost-user").name == component


@pytest.mark.parametrize(
    "function",
    [
        "pipeline",
        "pipeline+pipeline+nat",
        "set10",
        "shape10Mbit",
        "firewall",
        "nat+table5k",
        "acl5000",
        "pipeline+wire",
    ],
)
def test_what_it_does_not_have_is_not_its(function: str) -> None:
    assert not IpPipelineFunction.has(function)


def test_its_proof_is_that_of_any_such_function() -> None:
    for function in ("route", "nat", "acl100+deny30"):
        assert IpPipelineFunction.proof(f"pipeline+{function}", ENDS) == LinuxFunction.proof(function, ENDS)
        assert IpPipelineFunction.visible_addresses(f"pipeline+{function}", ENDS) == LinuxFunction.visible_addresses(
            function, ENDS
        )


def test_frames_of_both_sides_are_counted_before_they_are_routed() -> None:
    found = made("route")
    assert tables(found) == ["array", "array", "lpm"]
    assert [line for line in found.lines if " port in " in line and " table " in line] == [
        "pipeline P port in 0 table 0",
        "pipeline P port in 1 table 1",
    ]
    routed = [line.partition("match lpm ipv4 ")[2] for line in found.lines if "match lpm ipv4 1" in line]
    assert routed == [
        "198.18.3.1 32 action fwd port 0 encap ether 02:00:00:00:03:01 02:00:00:01:03:01 ttl dec stats",
        "100.64.0.0 10 action fwd port 2 encap ether 02:00:00:00:03:01 02:00:00:01:03:01 ttl dec stats",
        "198.18.3.2 32 action fwd port 1 encap ether 02:00:00:00:03:02 02:00:00:01:03:02 ttl dec stats",
    ]
    assert found.taken == tuple(f"pipeline P table {n} rule read stats match array 0" for n in (0, 1))
    assert [line.rpartition("match ")[2] for row in found.routed for line in row] == [
        "lpm ipv4 198.18.3.2 32",
        "lpm ipv4 198.18.3.1 32",
        "lpm ipv4 100.64.0.0 10",
    ]
    assert found.lines[-1] == "thread 1 pipeline P enable"


def test_each_side_has_a_row_of_tables_of_its_own() -> None:
    found = made("nat+acl10+deny30+police20k")
    assert tables(found) == ["array", "acl", "hash", "array", "acl", "hash", "lpm"]
    assert "pipeline P port in 1 table 3" in found.lines
    ways = {int(line.split()[3]): line.split()[-1] for line in found.lines if "match default action fwd table" in line}
    assert ways == {1: "2", 4: "5"}
    acl_drops = [rule.split()[11] for rule in found.files["rules1"].splitlines() if rule.endswith("action fwd drop")]
    assert acl_drops == ["10003", "10006", "10009"]
    assert all(
        "fwd table 6 nat ipv4" in rule for name in ("rules2", "rules5") for rule in found.files[name].splitlines()
    )
    assert next(line for line in found.lines if "bulk" in line).endswith("table 1 rule add bulk {directory}/rules1")


def mappings(found: Script) -> list[tuple[str, str, str, str]]:
    """The address and port that each rule translates, and what into."""
    rules = (rule.split() for rule in found.files["rules1"].splitlines())
    return [(words[3], words[5], words[-2], words[-1]) for words in rules]


def test_a_flow_has_a_port_of_the_pool_that_no_other_has() -> None:
    pool = "198.18.3.16"
    kept = [("198.18.3.1", port, pool, port) for port in ("9", "1024", "1025")]
    assert mappings(made("nat")) == kept
    assert mappings(made("nat", label="3:macs")) == kept
    by_address = [(f"100.64.0.{n}", "9", pool, str(65536 - n)) for n in (1, 2)]
    assert mappings(made("nat", label="3")) == [*kept, *by_address]
    assert [port for _, port, _, _ in mappings(made("nat", label="5:ports"))] == ["9", *map(str, range(1024, 1029))]
    many = mappings(made("nat", label="50k"))
    assert len(many) == len({(address, port) for _, _, address, port in many}) == 50_002
    back = made("nat", label="3").files["rules3"].splitlines()[-1]
    assert back == ("match hash ipv4_5tuple 0.0.0.0 198.18.3.16 0 65534 17 action fwd table 4 nat ipv4 100.64.0.2 9")


@pytest.mark.parametrize(
    ("pps", "frame_bytes", "rate", "burst"),
    [(20_000, 64, 920_000, 16_000), (1_000_000, 1518, 1_500_000_000, 7_500_000)],
)
def test_a_policer_counts_the_bytes_of_ip_packets(pps: int, frame_bytes: int, rate: int, burst: int) -> None:
    lines = [line for line in made(f"police{pps}", frame_bytes=frame_bytes).lines if "meter profile" in line]
    assert lines == [
        f"pipeline P table 0 meter profile 0 add trtcm cir {rate} pir {rate} cbs {burst} pbs {burst}",
    ]
    limit = IpPipelineFunction.rate_limit(f"police{pps}", frame_bytes)
    assert limit is not None
    assert (limit.pps, limit.burst) == (pps, burst // (frame_bytes - 18))


@pytest.mark.parametrize(
    ("axes", "words"),
    [
        ({"outer": VhostUser(ENDS.outer, "/run/b", "back-end")}, "ip_pipeline needs virtio-user ports"),
        ({"mtu": 9000}, "ip_pipeline takes frames up to 1518 bytes"),
        ({"function": "police20k", "sizes": (64, 570)}, "policer counts bytes"),
        ({"flows": "new"}, "flows cannot be new"),
    ],
)
def test_what_it_cannot_do_is_refused_before_anything_starts(axes: dict[str, Any], words: str) -> None:
    with pytest.raises(Unsupported, match=words):
        IpPipelineFunction().start(ANY, replace(SPEC, **axes))


def test_a_line_that_it_refuses_is_reported_in_its_words() -> None:
    for answer in ("", "Added 10 rules out of 10."):
        _check_answer(SPEC, "x", answer)
    for answer in ('Command "pipeline" failed.', "Added 9 rules out of 10."):
        with pytest.raises(ProvisionError, match=f"^function nat of pair 3: ip_pipeline refuses 'x': {answer}"):
            _check_answer(SPEC, "x", answer)


def test_where_it_is_missing_the_remedy_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    session: Any = SimpleNamespace(binaries={})
    with pytest.raises(Unsupported, match=r"ip_pipeline is not installed: run `make`.*--icbench-binary ip_pipeline="):
        IpPipelineFunction().probe(session, "route")
