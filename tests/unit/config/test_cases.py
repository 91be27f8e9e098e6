# SPDX-License-Identifier: BSD-3-Clause
"""From a marker to cases."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_icbench.config.capabilities import unsupported_reason
from pytest_icbench.config.cases import Request, check_names, expand, parse_marker
from pytest_icbench.config.options import Options
from pytest_icbench.driver.switch.kernel.veth import VethLink
from pytest_icbench.errors import UsageError
from pytest_icbench.model.api_techniques import SOCKET_APIS
from pytest_icbench.model.case import Case
from pytest_icbench.model.load import Frames
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.traffic import Traffic
from pytest_icbench.plugin.items import group_items


@dataclass
class _Kernel:
    takes_binary: ClassVar[bool] = True
    name: ClassVar[str] = "bridge"
    family: ClassVar[str] = "kernel"
    ports: ClassVar[tuple[str, ...]] = ("veth",)
    ports_by_name: ClassVar[tuple[str, ...]] = ()
    port_frame_bytes: ClassVar[dict[str, int]] = {}
    apis: ClassVar[tuple[str, ...]] = (*SOCKET_APIS, "af_packet")
    default_apis: ClassVar[tuple[str, ...]] = ("udp", "raw")
    default_cores: ClassVar[int] = 0
    scalable: ClassVar[bool] = False
    max_frame_bytes: ClassVar[int] = 9216
    max_pairs: ClassVar[int | None] = None
    by_name_only: ClassVar[bool] = False
    vlan: ClassVar[bool] = True
    filters: ClassVar[bool] = False
    asks_first: ClassVar[bool] = False
    floods: ClassVar[bool] = False
    hops: ClassVar[int | None] = None
    route_bytes: ClassVar[dict[int, int]] = {}
    mode_help: ClassVar[str] = ""
    modes: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def has_mode(cls, mode: str) -> bool:
        return mode in cls.modes

    @classmethod
    def port_apis(cls, port: str) -> tuple[str, ...]:
        return cls.apis

    @classmethod
    def rx_modes(cls, port: str) -> tuple[str, ...]:
        return ()


@dataclass
class _Poll(_Kernel):
    name: ClassVar[str] = "poll"
    family: ClassVar[str] = "dpdk"
    ports: ClassVar[tuple[str, ...]] = ("vhost-user", "memif")
    apis: ClassVar[tuple[str, ...]] = ("dpdk",)
    default_apis: ClassVar[tuple[str, ...]] = ("dpdk",)
    default_cores: ClassVar[int] = 1
    scalable: ClassVar[bool] = True
    max_frame_bytes: ClassVar[int] = 1518
    max_pairs: ClassVar[int | None] = 1
    modes: ClassVar[tuple[str, ...]] = ("wire", "cross")

    @classmethod
    def rx_modes(cls, port: str) -> tuple[str, ...]:
        return ("polling", "interrupt") if port == "memif" else ()


@dataclass
class _Truth(_Poll):
    name: ClassVar[str] = "truth"
    by_name_only: ClassVar[bool] = True
    mode_help: ClassVar[str] = "dropN"
    modes: ClassVar[tuple[str, ...]] = ("drop2",)


@dataclass
class _Card(_Poll):
    """Its port kinds take different API techniques."""

    name: ClassVar[str] = "card"
    ports: ClassVar[tuple[str, ...]] = ("vfio", "vf")
    apis: ClassVar[tuple[str, ...]] = ("dpdk", "udp", "raw")
    scalable: ClassVar[bool] = False

    @classmethod
    def port_apis(cls, port: str) -> tuple[str, ...]:
        return ("dpdk",) if port == "vfio" else ("udp", "raw")


SWITCHES = cast(Any, {"bridge": _Kernel, "poll": _Poll, "truth": _Truth})
WITH_CARD = cast(Any, {"poll": _Poll, "card": _Card})


def ids(options: Options | None = None, **marker: Any) -> list[str]:
    request = parse_marker((), marker, "test_x.py::test_y")
    return [case.id for case in expand(request, options or Options(), SWITCHES, "test_x.py::test_y")]


def test_an_empty_marker_is_every_switch_with_its_natural_choices() -> None:
    assert ids() == ["bridge-udp-64B-b32-1vs1-Rmax", "bridge-raw-64B-b32-1vs1-Rmax", "poll-64B-b32-1vs1-Rmax"]


def test_a_switch_takes_the_modes_it_has() -> None:
    assert ids(mode="wire", api="udp dpdk") == ["bridge-udp-64B-b32-1vs1-Rmax", "poll:wire-64B-b32-1vs1-Rmax"]
    assert ids(switch="poll", mode=["cross", "default"]) == [
        "poll:cross-64B-b32-1vs1-Rmax",
        "poll-64B-b32-1vs1-Rmax",
    ]
    with pytest.raises(UsageError, match=r"mode: none of its switches has the mode 'wyre'"):
        ids(mode="wyre")
    with pytest.raises(UsageError, match="'wire'"):
        ids(switch="bridge", mode="wire")


def test_a_switch_is_named_with_its_mode() -> None:
    wire, cross, natural = (f"poll{mode}-64B-b32-1vs1-Rmax" for mode in (":wire", ":cross", ""))
    truth = "truth:drop2-64B-b32-1vs1-Rmax"
    assert ids(switch="poll:wire") == [wire]
    assert ids(switch=["poll:wire", "poll"], mode="cross") == [wire, cross]
    assert ids(switch=["dpdk", "poll:wire", "truth:drop2"]) == [natural, wire, truth]
    # On the command line it replaces the marker's modes.
    for options in (Options(switch=("poll:wire",)), Options(switch=("poll:wire", "bridge"))):
        assert ids(options, switch="poll") == ids(options, switch="poll", mode=["cross", "default"]) == [wire]
    assert ids(Options(switch=("poll", "poll:wire")), switch="poll:cross") == [cross, wire]
    assert ids(Options(switch=("poll:default",)), switch="poll", mode="cross") == [natural]
    assert ids(Options(switch=("truth:drop2",)), switch="dpdk") == [truth]
    with pytest.raises(UsageError, match="switch: poll has no mode 'wyre'; its modes: wire cross"):
        ids(switch="poll:wyre")
    with pytest.raises(UsageError, match="--icbench-switch: truth has no mode 'wire'; its modes: dropN"):
        check_names(Options(switch=("truth:wire",)), SWITCHES)
    with pytest.raises(UsageError, match=r"switch: there is no switch 'pol:wire'; did you mean poll\?"):
        ids(switch="pol:wire")


def test_a_switch_that_is_by_name_only_is_in_no_group() -> None:
    for group in ("all", "dpdk"):
        assert not [case for case in ids(switch=group) if case.startswith("truth")]
        assert not [case for case in ids(Options(switch=(group,)), switch=group) if case.startswith("truth")]
    assert ids(switch=["truth"], mode="drop2") == ["truth:drop2-64B-b32-1vs1-Rmax"]
    assert ids(switch=["dpdk", "truth"]) == ["poll-64B-b32-1vs1-Rmax", "truth-64B-b32-1vs1-Rmax"]
    # The user's name for it opens the groups of its family to it.
    assert ids(Options(switch=("truth",)), switch="dpdk") == ["truth-64B-b32-1vs1-Rmax"]
    assert ids(Options(switch=("truth",)), switch="kernel") == []
    assert ids(Options(switch=("dpdk",)), switch="truth") == []


def test_a_frame_that_the_api_cannot_carry_is_reported() -> None:
    longest, longer = (Case("truth", Frames(Traffic(size)), api="xdp") for size in (3844, 3845))
    assert unsupported_reason(longest, VethLink, 256) is None
    assert unsupported_reason(replace(longer, api="raw"), VethLink, 256) is None
    reason = unsupported_reason(longer, VethLink, 256)
    assert reason == "3845 bytes are more than api xdp carries; take packet sizes up to 3844"


def test_a_mode_that_nobody_has_is_reported_with_what_there_is() -> None:
    with pytest.raises(UsageError, match=r"has the mode 'drop0'; truth has dropN$"):
        ids(switch=["poll", "truth"], mode="drop0")
    reason = unsupported_reason(Case("truth", mode="drop0"), SWITCHES["truth"], 256)
    assert reason == "truth has no mode 'drop0'; its modes: dropN"
    assert (
        unsupported_reason(Case("bridge", mode="x"), SWITCHES["bridge"], 256)
        == "bridge has no mode 'x'; its modes: none"
    )
    assert unsupported_reason(Case("truth", mode="drop2"), SWITCHES["truth"], 256) is None


def test_axes_multiply_in_order() -> None:
    assert ids(switch="poll", packet_size=[64, "128..128..256"], burst=(32, 64), rate=["max", 1_000_000]) == [
        f"poll-{size}B-b{burst}-1vs1-R{rate}" for size in (64, 128, 256) for burst in (32, 64) for rate in ("max", "1M")
    ]


def test_groups_and_names_each_once() -> None:
    assert ids(switch=["kernel", "bridge", "dpdk"], api=["udp", "dpdk"]) == [
        "bridge-udp-64B-b32-1vs1-Rmax",
        "poll-64B-b32-1vs1-Rmax",
    ]
    assert ids(switch="dpdk poll") == ["poll-64B-b32-1vs1-Rmax"]


def test_natural_choices_are_left_out_of_the_id_however_they_were_written() -> None:
    assert ids(switch="poll", port="vhost-user", switch_cores=1, api="dpdk") == ["poll-64B-b32-1vs1-Rmax"]
    assert ids(switch="poll", port="all", switch_cores=[1, 2]) == [
        "poll-64B-b32-1vs1-Rmax",
        "poll+memif-64B-b32-1vs1-Rmax",
        "poll-c2-64B-b32-1vs1-Rmax",
        "poll+memif-c2-64B-b32-1vs1-Rmax",
    ]


def test_all_apis() -> None:
    assert len(ids(switch="bridge", api="all")) == len(SOCKET_APIS) + 1


def test_a_switch_without_choice_of_cores_ignores_them() -> None:
    assert ids(switch="bridge", api="udp", switch_cores=[1, 2]) == ["bridge-udp-64B-b32-1vs1-Rmax"]


def test_rx_modes_that_a_port_lacks_are_skipped_with_the_reason() -> None:
    request = parse_marker((), {"switch": "poll bridge", "port": "all", "api": "dpdk udp"}, "test_x.py::test_y")
    made = expand(request, Options(rx_mode=("polling", "interrupt", "adaptive")), SWITCHES, "test_x.py::test_y")
    reasons = {case.id: unsupported_reason(case, SWITCHES[case.switch], 256) for case in made}
    assert [name for name, reason in reasons.items() if reason is None] == [
        "poll-64B-b32-1vs1-Rmax",
        "poll+memif-64B-b32-1vs1-Rmax",
        "poll+memif-rx:interrupt-64B-b32-1vs1-Rmax",
        "bridge-udp-64B-b32-1vs1-Rmax",
    ]
    assert reasons["poll+memif-rx:adaptive-64B-b32-1vs1-Rmax"] == (
        "poll's port memif has polling or interrupt, not rx mode adaptive: leave --icbench-rx-mode out"
    )
    assert "port veth has no choice" in str(reasons["bridge-rx:interrupt-udp-64B-b32-1vs1-Rmax"])
    with pytest.raises(UsageError, match="'polled' is none of polling, interrupt, adaptive"):
        parse_marker((), {"rx_mode": "polled"}, "test_x.py::test_y")


def test_nodes_of_several_kinds_are_cases_which_no_option_replaces() -> None:
    asked: dict[str, Any] = {"switch": "poll", "node": ["lxc", "lxc+vm"]}
    assert ids(Options(node="podman"), **asked) == ["poll-64B-b32-1vs1-Rmax-lxc", "poll-64B-b32-1vs1-Rmax-lxc+vm"]
    assert ids(Options(node="podman"), switch="poll", node=None) == ["poll-64B-b32-1vs1-Rmax"]
    assert ids(switch="bridge", app="redis", node="vm") == ["bridge-udp-mmsg-app:redis-1vs1-Rmax-vm"]


def test_blocking_is_for_sockets() -> None:
    assert ids(blocking=True, check_payload=[False, True], api=["udp", "dpdk"]) == [
        "bridge-udp-blocking-64B-b32-1vs1-Rmax",
        "bridge-udp-blocking-touch-64B-b32-1vs1-Rmax",
        "poll-64B-b32-1vs1-Rmax",
        "poll-touch-64B-b32-1vs1-Rmax",
    ]


def test_ways_to_wait_are_cases_of_their_own() -> None:
    assert ids(wait=["poll", "interrupt"], api=["udp", "dpdk"]) == [
        "bridge-udp-64B-b32-1vs1-Rmax",
        "bridge-udp-interrupt-64B-b32-1vs1-Rmax",
        "poll-64B-b32-1vs1-Rmax",
        "poll-interrupt-64B-b32-1vs1-Rmax",
    ]


@pytest.mark.parametrize(
    ("marker", "expected"),
    [
        ({}, ["card"]),
        ({"api": "udp"}, ["card+vf-udp"]),
        ({"api": ["raw", "dpdk"]}, ["card+vf-raw", "card"]),
        ({"api": "all"}, ["card", "card+vf-udp", "card+vf-raw"]),
        ({"port": "vf"}, ["card+vf-udp"]),
        ({"port": "all"}, ["card", "card+vf-udp"]),
        ({"port": "vf", "api": ["raw", "dpdk"]}, ["card+vf-raw"]),
        ({"port": "all", "api": "all"}, ["card", "card+vf-udp", "card+vf-raw"]),
    ],
)
def test_port_kinds_and_apis_that_go_together(marker: dict[str, Any], expected: list[str]) -> None:
    request = parse_marker((), {"switch": "card", **marker}, "test_x.py::test_y")
    found = [case.id.removesuffix("-64B-b32-1vs1-Rmax") for case in expand(request, Options(), WITH_CARD, "x")]
    assert found == expected


@pytest.mark.parametrize(
    ("marker", "expected"),
    [
        ({"api": ["udp", "dpdk"]}, ["card"]),
        ({"api": "udp", "port": "vf"}, ["card+vf-udp"]),
        ({"port": "all"}, ["card", "card+vf-udp"]),
    ],
)
def test_a_port_kind_that_is_chosen_by_name_alone(
    marker: dict[str, Any], expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_Card, "ports_by_name", ("vf",))
    request = parse_marker((), {"switch": "card", **marker}, "test_x.py::test_y")
    chosen = [case.id.removesuffix("-64B-b32-1vs1-Rmax") for case in expand(request, Options(), WITH_CARD, "x")]
    assert chosen == expected


def test_a_port_kind_that_carries_less_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_Card, "port_frame_bytes", {"vf": 512})
    for port, reason in (
        ("vf", "1024 bytes are more than card's port vf carries; take packet sizes up to 512"),
        (None, None),
    ):
        assert unsupported_reason(Case("card", Frames(Traffic(1024)), port=port), cast(Any, _Card), 256) == reason


def test_a_port_kind_and_an_api_that_do_not_go_together() -> None:
    request = parse_marker((), {"switch": "card", "port": "vfio", "api": "udp"}, "test_x.py::test_y")
    with pytest.raises(UsageError, match="card has no API udp over port kind vfio"):
        expand(request, Options(), WITH_CARD, "x")
    elsewhere = parse_marker((), {"switch": "all", "port": "vfio", "api": "udp"}, "test_x.py::test_y")
    assert expand(elsewhere, Options(), WITH_CARD, "x") == []
    # Replaced on the command line: a switch takes what it can.
    request = parse_marker((), {"switch": "card"}, "test_x.py::test_y")
    assert expand(request, Options(port=("vfio",), api=("udp",)), WITH_CARD, "x") == []


def test_options_replace_axes() -> None:
    options = Options(
        packet_size=(Traffic(128),), burst=(4,), rate=(Rate(1000),), pairs=(2,), api=("raw",), check_payload=(True,)
    )
    assert ids(options, packet_size=[64, 512], rate="max") == ["bridge-raw-touch-128B-b4-2vs2-R1k"]


def test_options_keep_switches() -> None:
    assert ids(Options(switch=("dpdk",))) == ["poll-64B-b32-1vs1-Rmax"]
    assert ids(Options(switch=("bridge",)), switch="poll") == []


def test_settings_and_dimension() -> None:
    request = parse_marker((), {"dimension": "latency", "duration": "2s", "repeats": 3, "keep": None}, "t")
    assert request == Request(dimension="latency", settings={"duration_s": 2.0, "repeats": 3})


@pytest.mark.parametrize(
    ("args", "marker", "message"),
    [
        (("ovs",), {}, "give its arguments by name"),
        ((), {"packetsize": 64}, "there is no argument 'packetsize'; did you mean packet_size?"),
        ((), {"xyz": 64}, "there is no argument 'xyz'; known are "),
        ((), {"switch": "bridges"}, "switch: there is no switch 'bridges'; did you mean bridge?"),
        ((), {"switch": []}, "switch: no value"),
        ((), {"packet_size": 63}, "packet_size: 63 is outside 64 to 9216"),
        ((), {"packet_size": [64, None]}, "packet_size: None is neither a number nor a text"),
        ((), {"packet_size": 64.5}, "packet_size: '64.5' is not a whole number"),
        ((), {"burst": -1}, "burst: '-1' is not a number"),
        ((), {"pairs": 0}, "pairs: 0 is outside 1 to"),
        ((), {"rate": "quick"}, "rate: unknown rate 'quick'"),
        ((), {"rate": {"max"}}, "rate: {'max'} is neither a number nor a text"),
        ((), {"api": "tcp"}, "api: there is no API 'tcp'"),
        ((), {"switch": "poll", "api": "udp"}, "poll has no API udp; it has dpdk"),
        ((), {"switch": "bridge", "port": "memif"}, "bridge has no port kind memif; it has veth"),
        ((), {"port": "vhost"}, "port: there is no port kind 'vhost'; did you mean vhost-user?"),
        ((), {"blocking": "yes"}, "blocking: 'yes' is neither True nor False"),
        ((), {"dimension": "jitter"}, "dimension: 'jitter' is none of throughput, latency"),
        ((), {"measure": "soaks"}, "measure: 'soaks' is none of search, sweep, soak, back_to_back"),
        ((), {"soak_duration": 0.5}, "soak_duration: 0.5 s is outside 1 to"),
        ((), {"comparisons": 0}, "comparisons: 0 is outside 1 to"),
        ((), {"comparisons": [1, 2]}, "comparisons: one number is required, '1 2' has 2"),
        ((), {"duration": "soon"}, "duration: 'soon' is not a time"),
    ],
)
def test_mistakes_are_one_sentence_with_file_and_name(
    args: tuple[object, ...], marker: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError) as caught:
        expand(parse_marker(args, marker, "test_x.py::test_y"), Options(), SWITCHES, "test_x.py::test_y")
    assert str(caught.value).startswith("test_x.py::test_y: icbench marker: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_marker_says_what_its_test_will_do() -> None:
    nothing = parse_marker((), {"measure": None, "soak_duration": None}, "x")
    assert (nothing.measure, nothing.soak_duration, nothing.comparisons) == (None, None, 1)
    said = parse_marker((), {"measure": "soak", "soak_duration": "8h", "comparisons": 2}, "x")
    assert (said.measure, said.soak_duration, said.comparisons) == ("soak", 8 * 3600, 2)
    assert parse_marker((), {"soak_duration": 8 * 3600 + 60 / 2 - 1}, "x").soak_duration == 28829
    assert "duration_s" not in said.settings


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (Options(switch=("pol",)), "--icbench-switch: there is no switch 'pol'; did you mean poll?"),
        (
            Options(binaries={"pol": Path("/x")}),
            "--icbench-binary: there is no switch 'pol'; did you mean poll?",
        ),
        (Options(port=("mem",)), "--icbench-port: there is no port kind 'mem'; did you mean memif?"),
    ],
)
def test_unknown_names_on_the_command_line(options: Options, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        check_names(options, SWITCHES)
    assert str(caught.value) == message


def test_a_program_of_a_function_is_known_by_its_name() -> None:
    check_names(Options(binaries={"inspector": Path("/x")}), SWITCHES, ["inspector"])
    with pytest.raises(UsageError, match="there is no switch 'inspectr'; did you mean inspector"):
        check_names(Options(binaries={"inspectr": Path("/x")}), SWITCHES, ["inspector"])


def test_what_no_host_can_run() -> None:
    assert unsupported_reason(Case("poll"), SWITCHES["poll"], 256) is None
    assert "1519 bytes are more than poll carries" in str(
        unsupported_reason(Case("poll", Frames(Traffic(1519))), SWITCHES["poll"], 256)
    )
    assert "poll takes at most 1 pair, not 2" in str(unsupported_reason(Case("poll", pairs=2), SWITCHES["poll"], 256))
    assert "does not fit into a ring of 256" in str(
        unsupported_reason(Case("bridge", Frames(burst=257)), SWITCHES["bridge"], 256)
    )


@given(st.lists(st.tuples(st.sampled_from([None, "a", "b", "c"]), st.integers())))
def test_grouping_keeps_the_order_within_groups(items: list[tuple[str | None, int]]) -> None:
    result = group_items(items, lambda item: item[0])
    assert sorted(result, key=str) == sorted(items, key=str)
    keys = [key for key, _ in result]
    # Each key in one run, in the order of its first occurrence, those without a key first.
    runs = [key for place, key in enumerate(keys) if place == 0 or keys[place - 1] != key]
    firsts = list(dict.fromkeys(key for key, _ in items if key is not None))
    assert runs == ([None] if None in keys else []) + firsts
    for key in set(keys):
        assert [item for item in result if item[0] == key] == [item for item in items if item[0] == key]
