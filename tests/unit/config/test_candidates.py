# SPDX-License-Identifier: BSD-3-Clause
"""What ``--icbench-candidate`` takes, and what stands behind a case's name then."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pytest_icbench.config.candidates import check, parse
from pytest_icbench.config.cases import check_configs, expand, parse_marker
from pytest_icbench.config.options import Options, check_candidates
from pytest_icbench.config.switches import SwitchConfig
from pytest_icbench.driver.switch.registry import builtin_switches
from pytest_icbench.errors import UsageError
from pytest_icbench.model.candidate import Candidate, Replaced, candidate_key
from pytest_icbench.model.case import Case
from pytest_icbench.model.load import Application
from pytest_icbench.model.text_files import TomlFile
from pytest_icbench.testbed.candidate_catalogue import Candidates

SWITCHES = builtin_switches()


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "new ovs").write_text("#!/bin/sh\n")
    (tmp_path / "new ovs").chmod(0o755)
    (tmp_path / "plain").write_text("")
    (tmp_path / "ovs.toml").write_text('[other_config]\n"pmd-rxq-assign" = "cycles"\n')
    return tmp_path


def one(text: str, directory: Path) -> Candidate:
    (found,) = parse(text, "--icbench-candidate", directory)
    return found


def test_three_kinds_of_candidate(files: Path) -> None:
    assert one("ovs:new=new ovs", files) == Candidate("ovs", "new", "binary", str(files / "new ovs"))
    assert one("ovs:rxq.2=config:ovs.toml", files) == Candidate("ovs", "rxq.2", "config", str(files / "ovs.toml"))
    assert one("forward:slow=mode:cost100", files) == Candidate("forward", "slow", "mode", "cost100")


def test_whatever_differs_can_be_a_candidate(files: Path) -> None:
    (files / "image" / "usr").mkdir(parents=True)
    (files / "lib").mkdir()
    (files / "lib" / "librte_eal.so.23").write_text("")
    assert one("testpmd:dpdk=lib:lib", files) == Candidate("testpmd", "dpdk", "lib", str(files / "lib"))
    assert one("workload:old=image:image", files) == Candidate("workload", "old", "image", str(files / "image"))
    assert one("workload:raw=api:raw", files) == Candidate("workload", "raw", "api", "raw")
    assert one("workload:n=node:netns", files) == Candidate("workload", "n", "node", "netns")
    function = one("function:suricata:new=new ovs", files)
    assert (function.target, function.name, function.component) == ("function:suricata", "new", "suricata")
    options = one("host:poll=sysctl:net.core.busy_poll=50, net.core.busy_read=50", files)
    assert dict(options.options) == {"net.core.busy_poll": "50", "net.core.busy_read": "50"}
    check([options], SWITCHES, "--icbench-candidate")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("testpmd:d=lib:none", "testpmd:d: there is no directory .*none"),
        ("testpmd:d=lib:.", "testpmd:d: .* has no shared libraries"),
        ("workload:d=image:.", "workload:d: .* is not a root directory of an image: it has no usr; unpack one there"),
        ("workload:d=api:udpp", "workload:d: there is no API 'udpp'; did you mean udp?"),
        (
            "host:d=sysctl:busy_poll",
            "host:d: 'busy_poll' is not a kernel option that may be set here; give net.NAME=VALUE",
        ),
        (
            "host:d=sysctl:kernel.core_pattern=x",
            "host:d: 'kernel.core_pattern=x' is not a kernel option that may be set",
        ),
        ("host:d=sysctl:net/../kernel/core_pattern=x", "host:d: 'net/../kernel/core_pattern=x' is not a kernel option"),
        ("host:d=sysctl:net.core..x=1", "host:d: 'net.core..x=1' is not a kernel option"),
        ("host:d=sysctl:vm.nr_hugepages=5", "host:d: 'vm.nr_hugepages=5' is not a kernel option"),
        ("host:d=sysctl:net.core.busy_poll=", "host:d: 'net.core.busy_poll=' is not a kernel option"),
        (
            "workload:a=api:udp\nhost:a=sysctl:vm.swappiness=1",
            "workload:a and host:a would have the same ids; rename one",
        ),
    ],
)
def test_a_mistake_in_what_differs_is_one_sentence(files: Path, text: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=f"^--icbench-candidate: {sentence}"):
        parse(text, "--icbench-candidate", files)


def test_several_are_lines(files: Path) -> None:
    found = parse("ovs:a=new ovs\n\n  workload:b=new ovs \n", "icbench_candidate", files)
    assert [each.key for each in found] == ["ovs:a", "workload:b"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("ovs=x", "'ovs=x' is not TARGET:NAME=WHAT, such as ovs:new=PATH"),
        ("ovs:new", "'ovs:new' is not TARGET:NAME=WHAT"),
        (":new=x", "':new=x' is not TARGET:NAME=WHAT"),
        ("ovs:a b=plain", "'a b' is not a name for a candidate; use letters, digits and _ [+] [.] -"),
        ("ovs:ä=plain", "'ä' is not a name for a candidate"),
        ("ovs:=plain", "'' is not a name for a candidate"),
        ("ovs:default=plain", "'default' names ovs without a mode; give the candidate another name"),
        ("ovs:new=none", "ovs:new: there is no file .*none"),
        ("ovs:new=config:none", "ovs:new: there is no file .*none"),
        ("ovs:new=plain", "ovs:new: .*plain is not executable"),
        ("ovs:new=new ovs\novs:new=new ovs", "there are two candidates ovs:new; give one another name"),
        ("ovs:new=new ovs\nworkload:new=new ovs", "ovs:new and workload:new would have the same ids; rename one"),
    ],
)
def test_a_mistake_is_one_sentence(files: Path, text: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=f"^--icbench-candidate: {sentence}"):
        parse(text, "--icbench-candidate", files)


@pytest.mark.parametrize(
    ("candidate", "sentence"),
    [
        (Candidate("osv", "new", "binary", "x"), "there is no switch 'osv'; did you mean ovs?"),
        (
            Candidate("vpp", "xconnect", "binary", "x"),
            "vpp already has a mode 'xconnect'; give yours another name",
        ),
        (Candidate("vpp", "new", "mode", "wire"), "vpp:new: vpp has no mode 'wire'; its modes: xconnect ip4 ip6"),
        (Candidate("veth", "new", "binary", "x"), "veth:new: veth runs no binary; give config: or mode:"),
        (Candidate("ovs", "n", "api", "udp"), "ovs:n: for ovs give its path, config:, mode: or lib:"),
        (Candidate("veth", "n", "lib", "x"), "veth:n: veth runs no binary; give config: or mode:"),
        (Candidate("host", "n", "binary", "x"), "host:n: for host give sysctl:"),
        (
            Candidate("function:suricata", "n", "node", "x"),
            "function:suricata:n: for function:suricata give its path or config:",
        ),
        (
            Candidate("workload", "xconnect", "binary", "x"),
            "vpp already has a mode 'xconnect'; give yours another name",
        ),
        (Candidate("workload", "w", "config", "x"), "workload:w: for workload give its path, api:, node: or image:"),
    ],
)
def test_what_the_switches_refuse(candidate: Candidate, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        check([candidate], SWITCHES, "--icbench-candidate")
    assert str(caught.value) == f"--icbench-candidate: {sentence}"


def test_a_configuration_is_checked_before_anything_is_run(files: Path) -> None:
    (files / "ovs.toml").write_text("flow = 3\n")
    options = Options(candidate=(one("ovs:x=config:ovs.toml", files),))
    with pytest.raises(UsageError, match=r"ovs\.toml: ovs has no key 'flow'"):
        check_configs(options, SWITCHES)


def cases(options: Options, **marker: object) -> list[str]:
    request = parse_marker((), marker, "x.py::t")
    return [case.id for case in expand(request, options, SWITCHES, "x.py::t")]


def test_a_candidate_takes_the_place_of_its_base() -> None:
    options = Options(
        candidate=(Candidate("ovs", "new", "binary", "x"), Candidate("ovs", "cfg", "config", "y")),
        switch=("ovs", "vpp"),
    )
    assert cases(options, switch=["ovs", "vpp"]) == [
        "ovs:new-64B-b32-1vs1-Rmax",
        "ovs:cfg-64B-b32-1vs1-Rmax",
        "vpp-64B-b32-1vs1-Rmax",
    ]


def test_both_kinds_of_mode_stand_in_the_id() -> None:
    options = Options(candidate=(Candidate("workload", "w", "binary", "x"),))
    assert cases(options, switch=["vpp"], mode=["default", "xconnect"]) == [
        "vpp:w-64B-b32-1vs1-Rmax",
        "vpp:xconnect:w-64B-b32-1vs1-Rmax",
    ]


def test_a_candidate_takes_the_place_of_the_cases_that_have_what_it_replaces() -> None:
    function, api = Candidate("function:linux", "f", "config", "x"), Candidate("workload", "raw", "api", "raw")
    asked = {"switch": ["linux-bridge"], "functions": ["none", "nat"]}
    assert cases(Options(candidate=(function,)), **asked) == [
        "linux-bridge-64B-b32-1vs1-Rmax",
        "linux-bridge:f-via:nat-64B-b32-1vs1-Rmax",
    ]
    assert api.concerns(Case("linux-bridge"), "lxc")
    assert not api.concerns(Case("linux-bridge", Application("redis")), "lxc")


def test_the_kind_of_nodes_is_the_candidates_then_the_cases_then_the_sessions() -> None:
    options = Options(node="podman", candidate=(Candidate("workload", "n", "node", "lxc"),))
    assert cases(options, switch="ovs", node=["vm", "lxc"]) == [
        "ovs:n-64B-b32-1vs1-Rmax-vm",
        "ovs-64B-b32-1vs1-Rmax-lxc",  # nothing would differ
    ]
    compared = Case("ovs", candidate="n", node="vm")
    assert [options.node_of(case) for case in (compared, compared.base, Case("ovs"))] == ["lxc", "vm", "podman"]
    check_candidates(options, [compared])
    with pytest.raises(UsageError, match=r"no selected case has nodes of another kind than lxc: give another kind, or"):
        check_candidates(options, [Case("ovs", node="lxc")])


def test_a_candidate_that_no_case_has_is_refused() -> None:
    function = Options(candidate=(Candidate("function:linux", "f", "config", "x"),))
    with pytest.raises(UsageError, match="no selected case has a network function: give --icbench-function, or leave"):
        check_candidates(function, [Case("ovs")])
    check_candidates(function, [Case("ovs"), Case("ovs", function="nat")])
    api = Options(candidate=(Candidate("workload", "raw", "api", "raw"),))
    with pytest.raises(
        UsageError, match="no selected case sends frames of the workload: select one that does, or leave"
    ):
        check_candidates(api, [Case("ovs", Application("redis"))])


def test_a_base_is_the_case_without_its_candidate() -> None:
    case = Case("vpp", mode="xconnect", candidate="w")
    assert case.base == Case("vpp", mode="xconnect")
    assert case.base.base == case.base
    assert case.rig_key != case.base.rig_key
    assert Case.from_dict(case.to_dict()) == case
    assert (candidate_key(case), candidate_key(case.base)) == ("vpp:w", "vpp")


def test_a_candidate_has_what_its_base_has_but_for_what_is_named(files: Path) -> None:
    options = Options(
        candidate=(one("ovs:bin=new ovs", files), one("ovs:cfg=config:ovs.toml", files)),
        binaries={"ovs": Path("/old")},
        switch_config={"ovs": TomlFile(files / "base.toml", "", {"other_config": {"a": 1}})},
    )
    candidates, configs = Candidates(SWITCHES, options), check_configs(options, SWITCHES)
    assert candidates.binaries == {"ovs:bin": files / "new ovs", "ovs:cfg": Path("/old")}
    assert {key: config.values for key, config in configs.items()} == {
        "ovs": {"other_config": {"a": "1"}},
        "ovs:bin": {"other_config": {"a": "1"}},
        "ovs:cfg": {"other_config": {"pmd-rxq-assign": "cycles"}},
    }
    reported = candidates.treatment(Case("ovs", candidate="bin"))
    assert reported is not None
    assert (reported["kind"], reported["value"], len(reported["sha256"])) == ("binary", "new ovs", 64)
    assert candidates.treatment(Case("ovs")) is None


def test_another_of_the_switchs_own_modes(files: Path) -> None:
    options = Options(candidate=(Candidate("forward", "slow", "mode", "cost200"),))
    candidates = Candidates(SWITCHES, options)
    case = Case("forward", mode="cost100", candidate="slow")
    assert candidates.resolve(case).mode == "cost200"
    assert candidates.resolve(case.base) == case.base
    assert candidates.treatment(case) == {"target": "forward", "kind": "mode", "value": "cost200"}


def test_a_workload_that_is_none_is_refused(files: Path) -> None:
    candidate = Candidate("workload", "w", "binary", sys.executable)
    with pytest.raises(UsageError, match=r"^--icbench-candidate: workload:w: .* --version says 'Python"):
        Candidates(SWITCHES, Options(candidate=(candidate,)))


def test_a_workload_is_the_candidates_alone(files: Path) -> None:
    program = files / "icbench-workload"
    program.write_text("#!/bin/sh\necho icbench-workload 9.9, without DPDK\n")
    program.chmod(0o755)
    candidates = Candidates(SWITCHES, Options(candidate=(Candidate("workload", "w", "binary", str(program)),)))
    case = Case("veth", candidate="w")
    assert candidates.workload(case) == program
    assert candidates.workload(case.base) is None
    assert candidates.workload_treatment(case) == {"workload": "9.9", "workload_build": None, "dpdk": None}
    assert candidates.workload_treatment(case.base) == {}


def test_what_a_rig_is_built_with(files: Path) -> None:
    (files / "image" / "usr").mkdir(parents=True)
    (files / "lib").mkdir()
    (files / "lib" / "librte_eal.so.23").write_text("")
    lines = [
        *("ovs:bin=new ovs", "ovs:cfg=config:ovs.toml", "ovs:lib=lib:lib", "workload:img=image:image"),
        *("workload:net=node:netns", "workload:raw=api:raw", "function:suricata:eye=new ovs"),
        "function:ovs:flows=config:flows.toml",
    ]
    (files / "flows.toml").write_text('flows = ["a"]\n')
    options = Options(candidate=parse("\n".join(lines), "--icbench-candidate", files))
    flows = SwitchConfig(options.candidate[-1].config, {"flows": ["a"]})  # type: ignore[arg-type]
    candidates = Candidates(SWITCHES, options, {**check_configs(options, SWITCHES), "function:ovs:flows": flows})

    def replaced(name: str) -> Replaced:
        return candidates.find_replacements(Case("ovs", function="nat", candidate=name))

    assert candidates.find_replacements(Case("ovs")) == Replaced()
    assert replaced("bin") == Replaced(programs={"ovs": files / "new ovs"})
    assert replaced("cfg") == Replaced(configs={"ovs": {"other_config": {"pmd-rxq-assign": "cycles"}}})
    assert replaced("lib") == Replaced(env={"LD_LIBRARY_PATH": str(files / "lib")})
    assert replaced("img") == Replaced(image=files / "image")
    assert replaced("net") == Replaced()
    assert replaced("eye") == Replaced(programs={"suricata": files / "new ovs"})
    assert replaced("flows") == Replaced(configs={"function:ovs": {"flows": ["a"]}})
    assert candidates.resolve(Case("linux-bridge", candidate="raw")) == Case("linux-bridge", candidate="raw", api="raw")
    assert candidates.treatment(Case("ovs", candidate="net")) == {
        "target": "workload",
        "kind": "node",
        "value": "netns",
    }
    assert candidates.treatment(Case("ovs", candidate="lib")) == {"target": "ovs", "kind": "lib", "value": "lib"}


@pytest.mark.parametrize(
    ("line", "node", "sentence"),
    [
        (
            "workload:i=image:image",
            "netns",
            "workload:i: nodes of kind netns take no image: give --icbench-node lxc, oci or podman",
        ),
        ("host:x=sysctl:net.core.nix=1", "lxc", "host:x: this kernel has no option net.core.nix; see sysctl -a"),
    ],
)
def test_what_this_host_cannot_replace_is_one_sentence(files: Path, line: str, node: str, sentence: str) -> None:
    (files / "image" / "usr").mkdir(parents=True)
    with pytest.raises(UsageError) as caught:
        Candidates(SWITCHES, Options(candidate=(one(line, files),), node=node))
    assert str(caught.value) == f"--icbench-candidate: {sentence}"
