# SPDX-License-Identifier: BSD-3-Clause
"""Applications on the marker and the command line: cases, ids and mistakes."""

from __future__ import annotations

import pytest

from pytest_icbench.model.case import Case, is_case, rig_group
from pytest_icbench.model.load import Application

SCENARIO = """
import pytest

@pytest.mark.icbench(switch={switch!r}, app={app!r}{more})
def test_apps(icbench):
    icbench.{call}()
"""


def scenario(
    pytester: pytest.Pytester, app: object, *, switch: object = "veth", more: str = "", call: str = "measure"
) -> None:
    pytester.makepyfile(SCENARIO.format(switch=switch, app=app, more=more, call=call))


def collected(pytester: pytest.Pytester, *options: str) -> list[str]:
    result = pytester.runpytest_inprocess("--collect-only", "-q", *options)
    assert result.ret == 0, result.stderr.str()
    return [line.partition("[")[2].rstrip("]") for line in result.outlines if "[" in line]


def test_ids_name_the_application_in_the_place_of_frames(pytester: pytest.Pytester) -> None:
    scenario(pytester, ["redis", "redis:set:c16", "iperf3:c4"], switch=["veth", "linux-bridge"], more=", pairs=[1, 2]")
    ids = collected(pytester)
    assert len(ids) == 12
    assert {"veth-app:redis-1vs1-Rmax", "linux-bridge-app:redis:set:c16-2vs2-Rmax", "veth-app:iperf3:c4-1vs1-Rmax"} < {
        *ids
    }
    assert all(is_case(f"test_x.py::test_apps[{one}]") for one in ids)
    groups = {rig_group(f"test_x.py::test_apps[{one}]") for one in ids}
    assert len(groups) == 4, "two switches, one and two pairs"


def test_the_user_replaces_applications_and_frames_take_none(pytester: pytest.Pytester) -> None:
    scenario(pytester, "redis")
    pytester.makepyfile(
        test_frames="""
import pytest
@pytest.mark.icbench(switch="veth")
def test_frames(icbench): ...
"""
    )
    ids = collected(pytester, "--icbench-app", "iperf3:udp nginx", "--icbench-packet-size", "128")
    assert {*ids} == {"veth-app:iperf3:udp-1vs1-Rmax", "veth-app:nginx-1vs1-Rmax", "veth-128B-b32-1vs1-Rmax"}


def test_a_group_keeps_the_switches_that_carry_sockets(pytester: pytest.Pytester) -> None:
    scenario(pytester, "redis", switch="all")
    switches = {one.partition("-app:")[0] for one in collected(pytester)}
    assert {"veth", "linux-bridge"} <= switches
    assert not switches & {"testpmd", "direct", "vpp"}


def test_a_case_with_an_application_is_read_back() -> None:
    case = Case("veth", Application("redis:set"), dimension="application")
    assert Case.from_dict(case.to_dict()) == case
    assert "app" not in Case("veth").to_dict(), "results of frames stay what they were"


@pytest.mark.parametrize(
    ("app", "more", "sentence"),
    [
        ("rediss", "", "app: there is no application 'rediss'; did you mean redis?"),
        ("redis:pop", "", "redis does not take 'pop'"),
        ("Redis!", "", "'Redis!' is not an application"),
        ("redis", ", dimension='latency'", "leave out dimension, measure and api"),
        ("redis", ", api='udp'", "leave out dimension, measure and api"),
    ],
)
def test_a_mistake_in_the_marker_is_reported(pytester: pytest.Pytester, app: str, more: str, sentence: str) -> None:
    scenario(pytester, app, more=more)
    result = pytester.runpytest_inprocess("--collect-only")
    assert result.ret != 0
    assert sentence in result.stdout.str()


def test_a_switch_without_sockets_is_refused_if_it_is_named(pytester: pytest.Pytester) -> None:
    scenario(pytester, "redis", switch="testpmd")
    result = pytester.runpytest_inprocess("--collect-only")
    assert "testpmd has no sockets for applications; leave the switch out" in result.stdout.str()


def test_port_kinds_with_sockets_that_have_to_be_named_are_reported(pytester: pytest.Pytester) -> None:
    scenario(pytester, "redis", switch="ovs")
    refused = pytester.runpytest_inprocess("--collect-only")
    remedy = "choose its port afpacket or afxdp or afxdp-nonpmd or tap, or leave the switch out"
    assert f"has no sockets for applications; {remedy}" in refused.stdout.str()
    chosen = pytester.runpytest_inprocess("--collect-only", "-q", "--icbench-port", "afpacket")
    assert "test_apps[ovs+afpacket-udp-mmsg-app:redis-1vs1-Rmax]" in chosen.stdout.str()


def test_an_unknown_application_on_the_command_line_is_reported(pytester: pytest.Pytester) -> None:
    scenario(pytester, "redis")
    result = pytester.runpytest_inprocess("--collect-only", "--icbench-app", "mysql")
    assert "--icbench-app: there is no application 'mysql'" in result.stdout.str()


def test_an_application_of_another_package_is_collected(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        """
from pytest_icbench import api
from pytest_icbench.driver.application.redis import Redis

class Mine(Redis):
    name = "mine"

def pytest_icbench_applications(config):
    return [Mine]
"""
    )
    scenario(pytester, "mine:set")
    assert collected(pytester) == ["veth-app:mine:set-1vs1-Rmax"]
