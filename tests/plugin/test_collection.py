# SPDX-License-Identifier: BSD-3-Clause
"""Collection: ids, order, options, mistakes; and that unrelated suites notice nothing."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import pytest

from pytest_icbench.driver.guard import make_node
from pytest_icbench.driver.node import registry
from pytest_icbench.driver.node.protocol import NodeSpec
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.testbed.treatment import kind_treatment
from tests.plugin.conftest import Runner

TWO = """
@pytest.mark.icbench(switch=["ovs", "veth"], packet_size=[64, 512], api=["udp", "dpdk"])
def test_a(icbench): pass

def test_plain(): pass

@pytest.mark.icbench(switch=["ovs"], burst=[4], dimension="latency", rate=1000)
def test_b(icbench): pass
"""


def collected(inner: Runner, *arguments: str) -> list[str]:
    result = inner.run("--collect-only", "-q", *arguments)
    return [line for line in result.outlines if "::" in line]


def test_ids_and_order(inner: Runner) -> None:
    inner.write(test_x=TWO)
    assert collected(inner) == [
        "test_x.py::test_plain",
        "test_x.py::test_a[ovs-64B-b32-1vs1-Rmax]",
        "test_x.py::test_a[ovs-512B-b32-1vs1-Rmax]",
        "test_x.py::test_b[ovs-64B-b4-1vs1-R1k]",
        "test_x.py::test_a[veth-udp-64B-b32-1vs1-Rmax]",
        "test_x.py::test_a[veth-udp-512B-b32-1vs1-Rmax]",
    ]


def test_options_replace_and_keep(inner: Runner) -> None:
    inner.write(test_x=TWO)
    arguments = ("--icbench-switch=dpdk", "--icbench-packet-size=64..64..128", "--icbench-rate", "1M max")
    assert collected(inner, *arguments) == [
        "test_x.py::test_plain",
        *(f"test_x.py::test_a[ovs-{size}B-b32-1vs1-R{rate}]" for size in (64, 128) for rate in ("1M", "max")),
        *(f"test_x.py::test_b[ovs-{size}B-b4-1vs1-R{rate}]" for size in (64, 128) for rate in ("1M", "max")),
    ]


def test_the_command_line_wins_over_the_ini_file(inner: Runner) -> None:
    inner.write(test_x=TWO)
    inner.ini("icbench_switch = veth\nicbench_packet_size = 128 256\n")
    assert [line.rpartition("::")[2] for line in collected(inner, "--icbench-packet-size=1500")] == [
        "test_plain",
        "test_a[veth-udp-1500B-b32-1vs1-Rmax]",
    ]


def test_a_name_in_the_ini_file_is_named_as_it_stands_there(inner: Runner) -> None:
    inner.write(test_x=TWO)
    inner.ini("icbench_switch = vet\n")
    result = inner.run("--collect-only")
    result.stderr.fnmatch_lines(["ERROR: icbench_switch: there is no switch 'vet'; did you mean veth[?]"])


_SINCE_9 = pytest.mark.skipif(pytest.version_tuple < (9,), reason="pytest 9 brought the typed tables")


@pytest.mark.parametrize(
    ("file", "table"),
    [
        ("pyproject.toml", "tool.pytest.ini_options"),
        pytest.param("pyproject.toml", "tool.pytest", marks=_SINCE_9),
        pytest.param("pytest.toml", "pytest", marks=_SINCE_9),
    ],
)
def test_an_ini_value_may_have_any_type_of_toml(inner: Runner, file: str, table: str) -> None:
    inner.write(test_x=TWO)
    (inner.path / "tox.ini").unlink()
    (inner.path / "a b").mkdir()
    (inner.path / "a b" / "t,1.csv").write_text("0,1000\n")
    trace = f"trace:{inner.path}/a b/t,1.csv"

    def ids(*lines: str) -> list[str]:
        (inner.path / file).write_text("\n".join((f"[{table}]", *lines)))
        return [line.partition("[")[2].rstrip("]") for line in collected(inner, "-W", "error", "-k", "ovs and test_a")]

    assert ids("icbench_packet_size = 1500", "icbench_switch = ['dpdk']") == ["ovs-1500B-b32-1vs1-Rmax"]
    assert ids(f"icbench_rate = ['{trace}', 2000]", "icbench_packet_size = [64]") == [
        "ovs-64B-b32-1vs1-Rtrace:t_1",
        "ovs-64B-b32-1vs1-R2k",
    ]
    # Of a bool, a float and a list: right, and what says which is wrong.
    assert len(ids("icbench_strict = true", "icbench_duration = 0.5", "icbench_burst = [8, 16]")) == 4
    for line, message in (
        ("icbench_duration = [1, 2]", "icbench_duration: a list of 2 values where one belongs"),
        ("icbench_switch = [{a = 1}]", "icbench_switch: {'a': 1} is neither a number nor a text nor a list of these"),
        ("icbench_packet_size = true", "icbench_packet_size: 'yes' is not a number*"),
    ):
        if "true" in line and table.endswith("ini_options"):
            continue  # pytest makes the text True of it
        (inner.path / file).write_text(f"[{table}]\n{line}\n")
        inner.run("--collect-only").stderr.fnmatch_lines([f"ERROR: {message}"])


def test_a_test_without_cases_is_deselected(inner: Runner) -> None:
    inner.write(test_x=TWO)
    result = inner.run("--collect-only", "-q", "--icbench-switch=veth")
    result.stdout.fnmatch_lines(["3/4 tests collected (1 deselected)*"])


def test_options_that_leave_no_case_say_why_and_what_helps(inner: Runner) -> None:
    inner.write(test_x=TWO)
    for arguments in ([], ["--icbench-port=vhost-user"]):
        result = inner.run("-q", "--icbench-switch=ovs", "--icbench-api=udp", *arguments)
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        result.stderr.fnmatch_lines(
            ["ERROR: --icbench-api: ovs has udp over port kind afpacket, * or tap alone: choose with --icbench-port"]
        )
    assert collected(inner, "--icbench-switch=ovs", "--icbench-api=udp", "--icbench-port=tap") == [
        "test_x.py::test_plain",
        "test_x.py::test_a[ovs+tap-udp-64B-b32-1vs1-Rmax]",
        "test_x.py::test_a[ovs+tap-udp-512B-b32-1vs1-Rmax]",
        "test_x.py::test_b[ovs+tap-udp-64B-b4-1vs1-R1k]",
    ]
    inner.write(test_x="@pytest.mark.icbench(switch='ovs', port='afpacket')\ndef test_a(icbench): pass")
    assert len(collected(inner, "--icbench-switch=ovs", "--icbench-api=udp")) == 1


def test_k_selects_by_id(inner: Runner) -> None:
    inner.write(test_x=TWO)
    assert len(collected(inner, "-k", "veth and 512B")) == 1


def test_a_marker_of_a_class_counts(inner: Runner) -> None:
    inner.write(
        test_x="""
@pytest.mark.icbench(switch="ovs")
class TestOvs:
    def test_a(self, icbench): pass
    def test_needs_no_host(self): pass
"""
    )
    assert collected(inner) == [
        "test_x.py::TestOvs::test_needs_no_host",
        "test_x.py::TestOvs::test_a[ovs-64B-b32-1vs1-Rmax]",
    ]


def test_switches_of_a_conftest_take_part(inner: Runner) -> None:
    inner.pytester.makeconftest(
        """
from pytest_icbench.driver.switch.registry import builtin_switches

class Mine(builtin_switches()["linux-bridge"]):
    name = "mine"
    default_apis = ("udp",)

def pytest_icbench_switches(config):
    return [Mine]
"""
    )
    inner.write(test_x="@pytest.mark.icbench(switch='kernel')\ndef test_a(icbench): pass")
    assert "test_x.py::test_a[mine-64B-b32-1vs1-Rmax]" in collected(inner)


def test_the_conformance_suite_takes_the_wires_of_a_switch_from_outside(inner: Runner) -> None:
    pytest.importorskip("scapy", reason="Scapy is missing: pip install 'pytest-icbench[conformance]'")
    inner.pytester.makeconftest(
        """
from pytest_icbench.driver.switch.registry import builtin_switches
Mine = type("Mine", (builtin_switches()["ovs"],), {"name": "mine", "modes": ("tap", "x"), "wire_modes": ("tap",)})
def pytest_icbench_switches(config):
    return [Mine]
"""
    )
    result = inner.run("--collect-only", "-q", "--pyargs", "pytest_icbench.conformance", "--icbench-switch=mine")
    tests = {line.partition("::")[2] for line in result.outlines}
    for mode in ("mine", "mine:tap"):
        assert f"test_it_learns_where_an_address_is_if_declared[{mode}-64B-b32-2vs2-Rmax]" in tests
    assert not any("mine:x" in test for test in tests)


def test_two_switches_with_one_name(inner: Runner) -> None:
    inner.pytester.makeconftest(
        """
from pytest_icbench.driver.switch.registry import builtin_switches
Mine = type("Mine", (builtin_switches()["ovs"],), {})
def pytest_icbench_switches(config):
    return [Mine]
"""
    )
    inner.write(test_x="@pytest.mark.icbench(switch='ovs')\ndef test_a(icbench): pass")
    result = inner.run("--collect-only")
    result.stdout.fnmatch_lines(["*two switches have the name 'ovs'*"])


NODE = """
from pytest_icbench.driver.node.netns import NetnsNode

class Box(NetnsNode):
    kind = "{kind}"

    @staticmethod
    def treatment():
        return {{"box": "1.2"}}

def pytest_icbench_nodes(config):
    return [Box]
"""


@pytest.fixture
def no_nodes_from_outside() -> Iterator[None]:
    yield
    registry.bring(())


@pytest.mark.usefixtures("no_nodes_from_outside")
def test_a_kind_of_node_of_a_conftest_can_be_asked_for(inner: Runner) -> None:
    inner.pytester.makeconftest(NODE.format(kind="box"))
    inner.write(test_x=TWO)
    assert inner.run("--collect-only", "--icbench-node=box").ret == 0
    assert [cls.kind for cls in registry.node_kinds()] == ["lxc", "netns", "oci", "podman", "docker", "vm", "box"]
    assert make_node("box", HostSession.probing(), NodeSpec("x", [0])).kind == "box"
    treatment = kind_treatment("box")
    assert (treatment["node"], treatment["box"], treatment["lxc"]) == ("box", "1.2", None)
    inner.write(test_z="@pytest.mark.icbench(switch='ovs', node=['box', 'lxc'])\ndef test_a(icbench): pass")
    listed = inner.run("--collect-only", "-q", "test_z.py", "-k", "box and ovs")
    assert [line for line in listed.outlines if "::" in line] == ["test_z.py::test_a[ovs-64B-b32-1vs1-Rmax-box]"]
    result = inner.run("--collect-only", "--icbench-node=bax")
    assert "--icbench-node: there is no kind of node 'bax'; did you mean box?" in result.stderr.str()


@pytest.mark.usefixtures("no_nodes_from_outside")
def test_two_kinds_of_nodes_with_one_name(inner: Runner) -> None:
    inner.pytester.makeconftest(NODE.format(kind="lxc"))
    inner.write(test_x=TWO)
    result = inner.run("--collect-only")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: pytest_icbench_nodes: two kinds of nodes have the name 'lxc'*"])


@pytest.mark.parametrize(
    ("marker", "message"),
    [
        ("packetsize=64", "test_x.py::test_a: icbench marker: there is no argument 'packetsize'; did you mean"),
        ("switch='vp'", "test_x.py::test_a: icbench marker: switch: there is no switch 'vp'"),
        ("packet_size=20", "test_x.py::test_a: icbench marker: packet_size: 20 is outside 64 to 9216"),
        ("pairs=0", "test_x.py::test_a: icbench marker: pairs: 0 is outside 1 to 254"),
        ("rate='quick'", "test_x.py::test_a: icbench marker: rate: unknown rate 'quick'; a rate is max, ndr"),
        ("node='vm lcx'", "test_x.py::test_a: icbench marker: node: there is no kind of node 'lcx'; did you mean lxc?"),
        ("rate='ndr', search_width=0", "test_x.py::test_a: icbench marker: search_width: 0 is outside"),
    ],
)
def test_a_mistake_in_a_marker_is_an_error_of_collection(inner: Runner, marker: str, message: str) -> None:
    inner.write(test_x=f"@pytest.mark.icbench({marker})\ndef test_a(icbench): pass")
    result = inner.run()
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert message in result.stdout.str()
    assert "Traceback" not in result.stdout.str()
    assert "plugin.py" not in result.stdout.str()


def test_a_preset_that_is_not_about_the_rate_stops_the_run_before_anything_is_done(inner: Runner) -> None:
    marker = "@pytest.mark.icbench(switch='ovs', rate='ndr pdr:1%', search_preset='rfc2544')"
    inner.write(test_x=f"{marker}\ndef test_a(icbench): pass")
    result = inner.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["ERROR: test_x.py::test_a: the search preset rfc2544 is about rate ndr, not pdr:1%; *"]
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--icbench-switch", "vppp"), "--icbench-switch: there is no switch 'vppp'"),
        (("--icbench-packet-size", "63"), "--icbench-packet-size: 63 is outside 64 to 9216"),
        (("--icbench-packet-size", "64 .0 .1500"), "--icbench-packet-size: the sequence '64 .0 .1500' has step 0"),
        (("--icbench-rate", "pdr:0.5"), "--icbench-rate: unknown rate 'pdr:0.5'; a partial-drop rate names"),
        (("--icbench-rate", "ndr", "--icbench-search-preset", "icpe2018"), "icpe2018 is about rate pdr:0.01%"),
        (("--icbench-search-preset", "fast"), "--icbench-search-preset: 'fast' is none of csit, rfc2544"),
        (("--icbench-burst", "512"), "--icbench-burst: a burst of 512 does not fit into a ring of 256"),
        (("--icbench-ring", "16"), "a burst of 32 does not fit into a ring of 16"),
        (("--icbench-pairs", "0"), "--icbench-pairs: 0 is outside 1 to 254"),
        (("--icbench-port", "memf"), "--icbench-port: there is no port kind 'memf'; did you mean memif?"),
        (("--icbench-window", "2"), "a window of 2 s does not fit into"),
        (("--icbench-thresholds", "no.toml"), "--icbench-thresholds: there is no file"),
        (("--icbench-node", "jail"), "--icbench-node: there is no kind of node 'jail'; known are lxc, netns"),
        (("--icbench-binary", "vppp=/bin/true"), "--icbench-binary: there is no switch 'vppp'; did you mean vpp?"),
        (("--icbench-binary", "veth=/bin/true"), "--icbench-binary: veth runs no program"),
        (("--icbench-binary", "testpmd=/nowhere"), "--icbench-binary: there is no file /nowhere"),
    ],
)
def test_a_mistake_in_an_option_is_one_sentence(inner: Runner, arguments: tuple[str, ...], message: str) -> None:
    inner.write(test_x=TWO)
    result = inner.run(*arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    errors = [line for line in result.errlines if line.startswith("ERROR: ")]
    assert len(errors) == 1
    assert message in errors[0]


def test_a_mistake_in_an_ini_value_names_it(inner: Runner) -> None:
    inner.ini("icbench_burst = 0\n")
    result = inner.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: icbench_burst: 0 is outside 1 to 1024 frames"])


def test_a_packet_that_a_named_switch_cannot_carry_is_refused(inner: Runner) -> None:
    inner.pytester.makeconftest(
        """
from pytest_icbench.driver.switch.registry import builtin_switches
Small = type("Small", (builtin_switches()["ovs"],), {"name": "small", "max_frame_bytes": 1518, "max_pairs": 1})
def pytest_icbench_switches(config):
    return [Small]
"""
    )
    inner.write(test_x="@pytest.mark.icbench(switch='small')\ndef test_a(icbench): pass")
    for arguments, message in (
        ("--icbench-packet-size=2000", "test_x.py::test_a: 2000 bytes are more than small carries"),
        ("--icbench-pairs=2", "test_x.py::test_a: small takes at most 1 pair, not 2"),
    ):
        result = inner.run(arguments)
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        result.stderr.fnmatch_lines([f"ERROR: {message}*"])


def test_a_packet_of_a_test_over_all_switches_is_skipped_for_a_switch_that_cannot_carry_it(inner: Runner) -> None:
    inner.pytester.makeconftest(
        """
from pytest_icbench.driver.switch.registry import builtin_switches
Small = type("Small", (builtin_switches()["ovs"],), {"name": "small", "max_frame_bytes": 1518})
def pytest_icbench_switches(config):
    return [Small]
"""
    )
    inner.write(test_x="@pytest.mark.icbench(switch='all', packet_size=9216)\ndef test_a(icbench): pass")
    plan = inner.run("--icbench-switch=small", "--icbench-plan", "-v")  # a run needs the host for itself
    plan.stdout.fnmatch_lines(["    skip  test_x.py::test_a?small-9216B-*: 9216*small*", "0 of 1 case*"])
    result = inner.run("--icbench-switch=small", "--icbench-packet-size=2000")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: test_x.py::test_a: 2000 bytes are more than small carries*"])


def test_a_mistake_in_thresholds_is_found_before_anything_runs(inner: Runner) -> None:
    inner.write(test_x=TWO)
    (inner.path / "thresholds.toml").write_text('["*"]\nmin_foo = 1\n')
    result = inner.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(['ERROR: *thresholds.toml: [[]"[*]"] min_foo: there is no such limit*'])


def test_the_fixture_without_the_marker(inner: Runner) -> None:
    inner.write(test_x="def test_a(icbench): pass")
    result = inner.run()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*this test has no marker icbench*"])


def test_a_thousand_cases_in_under_a_second(inner: Runner) -> None:
    inner.write(
        test_x="@pytest.mark.icbench(switch='ovs', packet_size='64..1..1063')\ndef test_a(icbench): pass",
        test_warm="@pytest.mark.icbench(switch='ovs')\ndef test_a(icbench): pass",
    )
    inner.run("--collect-only", "-q", "test_warm.py")
    began = time.process_time()  # of this process alone: a busy machine is not the plugin's fault
    result = inner.run("--collect-only", "-q", "test_x.py")
    assert time.process_time() - began < 1.0
    result.stdout.fnmatch_lines(["1000 tests collected in *"])


PROBE = """
import sys

def pytest_unconfigure(config):
    print("LOADED", sorted(name for name in sys.modules if name.split(".")[0] in {"pyroute2", "lxc"}))
    print("OURS", sorted(name for name in sys.modules if name.startswith("pytest_icbench")))
"""


def test_collection_imports_neither_pyroute2_nor_lxc(inner: Runner) -> None:
    inner.write(test_x=TWO)
    inner.pytester.makeconftest(PROBE)
    result = inner.spawn("--collect-only", "-q")
    result.stdout.fnmatch_lines(["LOADED []"])


def test_collection_needs_no_root(inner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    inner.write(test_x=TWO)
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert len(collected(inner)) == 6


def test_an_unrelated_suite_notices_nothing(inner: Runner) -> None:
    inner.pytester.makeconftest(PROBE)
    inner.write(
        test_x="""
@pytest.mark.parametrize("case", [1, 2])
def test_own_parameter(case): assert case in (1, 2)

@pytest.fixture
def case(): return "mine"

def test_own_fixture(case): assert case == "mine"
"""
    )
    result = inner.spawn("-v", "--strict-markers", "--junitxml=junit.xml")
    result.assert_outcomes(passed=3)
    text = "\n".join(line for line in result.outlines if not line.startswith(("plugins:", "OURS", "rootdir:")))
    assert "icbench" not in text.replace("pytest_icbench.plugin.hooks", "")
    ours = re.search(r"OURS (.*)", result.stdout.str())
    assert ours is not None
    heavy_packages = ("host", "driver", "measure", "testbed", "gate", "store", "report", "cli")
    for heavy in (
        *heavy_packages,
        "model.case",
        "model.measurement",
        "plugin.collecting",
        "plugin.session",
        "config.cases",
    ):
        assert f"pytest_icbench.{heavy}" not in ours[1]
    # The rest is pytester's.
    left = {path.name for path in inner.path.iterdir() if not path.name.startswith(("std", "runpytest-", "__"))}
    assert left == {"conftest.py", "tox.ini", "test_x.py", "junit.xml"}


def test_help_and_markers_tell_about_the_options(inner: Runner) -> None:
    result = inner.run("--help")
    for option in ("--icbench-switch=LIST", "--icbench-packet-size=SPEC", "--icbench-plan", "icbench_run_files"):
        assert option in result.stdout.str()
    lines = [line.strip() for line in result.outlines]
    assert len([line for line in lines if line.startswith("icbench_")]) == 3  # one ini twin for all, and two without
    assert "is also an ini value icbench_x_y" in " ".join(result.outlines)
    first = lines.index("icbench, first of all:")
    assert first < lines.index("icbench, what is measured:") < lines.index("icbench, reports:")
    assert "@pytest.mark.icbench(switch='all'" in inner.run("--markers").stdout.str()
