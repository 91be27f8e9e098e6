# SPDX-License-Identifier: BSD-3-Clause
"""Texts of the command line and the ini file to Options."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import pytest

from pytest_icbench.config import option_table, values
from pytest_icbench.config.axis import HOST, Row, option
from pytest_icbench.config.cases import ARGUMENTS, Request, parse_marker
from pytest_icbench.config.option_table import TABLE, add_options
from pytest_icbench.config.options import Options, from_config, merge_settings, parse_overrides, read
from pytest_icbench.errors import UsageError
from pytest_icbench.host.host_session import NODE_PIDS
from pytest_icbench.measure.soak import SOAK_S
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.search_goal import PRESETS
from pytest_icbench.model.settings import PROTOCOLS, Settings
from pytest_icbench.model.traffic import MAX_QUEUES, Traffic


def options(root: Path = Path("/root"), directory: Path = Path("/here"), /, **texts: str) -> Options:
    """Options as of the command line; a name that begins with ``icbench_`` as of the ini file."""

    def raw(row: Row) -> tuple[str, str] | None:
        name = row.name
        if name in texts:
            return ("--icbench-" + name.replace("_", "-") if not name.startswith("icbench_") else name), texts[name]
        ini = f"icbench_{name}"
        return (ini, texts[ini]) if ini in texts else None

    return read(raw, root=root, directory=directory)


def test_nothing_said() -> None:
    assert options() == Options(reports=Path("/root/reports"), baselines=Path("/root/baselines"))


def test_every_row_has_a_help_text_and_a_name_of_its_own() -> None:
    names = [row.name for row in TABLE]
    assert len(set(names)) == len(names)
    for row in TABLE:
        assert row.help
        assert row.flag or row.metavar
        # argparse formats help texts with %.
        assert row.help % {"default": ""}


def test_axes_are_read() -> None:
    found = options(
        switch="ovs kernel",
        packet_size="64..64..192 1518",
        burst="32",
        rate="max 1M 500k",
        pairs="1,2",
        switch_cores="2",
        api="udp raw-mmsg",
        port="memif",
        blocking="yes",
    )
    assert found.switch == ("ovs", "kernel")
    assert found.packet_size == tuple(map(Traffic, (64, 128, 192, 1518)))
    assert found.burst == (32,)
    assert found.rate == (Rate(), Rate(1_000_000), Rate(500_000))
    assert found.pairs == (1, 2)
    assert found.switch_cores == (2,)
    assert found.api == ("udp", "raw-mmsg")
    assert found.port == ("memif",)
    assert found.blocking == (True,)
    assert found.check_payload is None


def test_settings_are_read() -> None:
    found = options(
        precision="2.5%", duration="2s", window="100ms", max_duration="20m", repeats="8", skip="0.5", keep="1"
    )
    assert dict(found.settings) == {
        "precision": 0.025,
        "duration_s": 2.0,
        "window_s": 0.1,
        "max_duration_s": 1200.0,
        "repeats": 8,
        "skip_s": 0.5,
        "keep_s": 1.0,
    }


def test_choices_are_read() -> None:
    found = options(
        placement="dedicated",
        node="netns",
        hugepage_size="1G",
        ring="1024",
        frequency="keep",
        strict="yes",
        rebuild="yes",
        node_memory="4096",
        node_pids="512",
    )
    assert (found.placement, found.node, found.hugepage_size_kib, found.ring) == (
        "dedicated",
        "netns",
        1_048_576,
        1024,
    )
    assert (found.frequency, found.strict, found.rebuild, found.plan) == ("keep", True, True, False)
    assert (found.node_memory, found.node_pids) == (4096, 512)
    assert (options().node_memory, options().node_pids) == (None, NODE_PIDS)


def test_paths_of_the_ini_file_begin_at_the_root_and_those_of_the_command_line_here(tmp_path: Path) -> None:
    (tmp_path / "limits.toml").touch()
    assert options(tmp_path, Path("/"), icbench_thresholds="limits.toml").thresholds == tmp_path / "limits.toml"
    assert options(Path("/"), tmp_path, thresholds="limits.toml").thresholds == tmp_path / "limits.toml"
    assert options(tmp_path, icbench_reports="out").reports == tmp_path / "out"


def program(path: Path) -> Path:
    path.touch(mode=0o755)
    return path


def test_programs_of_switches(tmp_path: Path) -> None:
    vpp, mine = program(tmp_path / "vpp"), program(tmp_path / "mine")
    found = options(Path("/"), tmp_path, binary=f"vpp=vpp\nfrom-outside={mine}")
    assert dict(found.binaries) == {"vpp": vpp, "from-outside": mine}
    assert dict(options(tmp_path, icbench_binary="vpp=vpp").binaries) == {"vpp": vpp}
    assert options().binaries == {}


def test_a_second_program_of_a_switch_is_refused(tmp_path: Path) -> None:
    one, two = (str(program(tmp_path / name)) for name in ("one", "two"))
    assert options(binary=f"vpp={one}", icbench_binary=f"vpp={two}").binaries == {"vpp": Path(one)}
    with pytest.raises(UsageError, match=r"^--icbench-binary: there are two programs for vpp"):
        options(binary=f"vpp={one}\nvpp={two}")


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ({"binary": "vpp"}, "--icbench-binary: 'vpp' is not SWITCH=PATH (vpp=/opt/vpp/bin/vpp)"),
        ({"binary": "vpp=/nowhere"}, "--icbench-binary: there is no file /nowhere"),
        ({"icbench_binary": "vpp=/proc/version"}, "icbench_binary: /proc/version is not executable"),
        ({"packet_size": "63"}, "--icbench-packet-size: 63 is outside 64 to 9216"),
        ({"packet_size": "64 9217"}, "--icbench-packet-size: 9217 is outside"),
        ({"icbench_packet_size": "1"}, "icbench_packet_size: 1 is outside"),
        ({"burst": "0"}, "--icbench-burst: 0 is outside 1 to 1024 frames"),
        ({"burst": "1025"}, "--icbench-burst: 1025 is outside"),
        ({"burst": "512"}, "does not fit into a ring of 256"),
        ({"burst": "512", "ring": "128"}, "does not fit into a ring of 128"),
        ({"pairs": "0"}, "--icbench-pairs: 0 is outside 1 to"),
        ({"pairs": "255"}, "--icbench-pairs: 255 is outside"),
        ({"switch_cores": "0"}, "--icbench-switch-cores: 0 is outside"),
        ({"rate": "0"}, "--icbench-rate: 0 is outside"),
        (
            {"rate": "quick"},
            "unknown rate 'quick'; a rate is max, ndr, pdr:0.5%, mfr, a part of a searched rate (ndr*0.5), frames",
        ),
        ({"rate": "1M pdr:0.5"}, "unknown rate 'pdr:0.5'"),
        ({"rate": "1M..0..2M"}, "step 0"),
        ({"api": "tcp"}, "there is no API 'tcp'; known are udp"),
        ({"switch": " "}, "--icbench-switch: no value"),
        ({"precision": "3"}, "write 3% or 0.03"),
        ({"precision": "x"}, "'x' is not a precision"),
        ({"precision": "nan"}, "outside 0.001 to 0.5"),
        ({"duration": "0"}, "--icbench-duration: 0 s is outside"),
        ({"duration": "-1"}, "'-1' is not a time"),
        ({"duration": "1 week"}, "is not a time"),
        ({"repeats": "0"}, "--icbench-repeats: 0 is outside 1 to"),
        ({"repeats": "1 2"}, "one number is required"),
        ({"ring": "300"}, "300 is not a power of two"),
        ({"placement": "best"}, "'best' is none of auto, dedicated, cooperative"),
        ({"hugepage_size": "4k"}, "'4k' is none of 2M, 1G"),
        ({"icbench_strict": "perhaps"}, "icbench_strict: 'perhaps' is neither yes nor no"),
        ({"thresholds": "/nowhere.toml"}, "--icbench-thresholds: there is no file /nowhere.toml"),
        ({"reports": "/proc/version"}, "--icbench-reports: /proc/version is not a directory"),
        *(
            ({name: "/" + "9" * 300}, f"--icbench-{name}: '/{'9' * 79}' cannot be examined (File name too long): give")
            for name in ("thresholds", "reports", "baselines")
        ),
    ],
)
def test_mistakes_are_one_sentence(texts: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        options(**texts)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_greater_ring_takes_a_greater_burst() -> None:
    assert options(burst="1024", ring="1024").burst == (1024,)


def test_the_user_wins_over_the_call_and_the_call_over_the_marker() -> None:
    marker = parse_overrides({"duration": 5, "repeats": 3, "window": 0.5}, "marker")
    call = parse_overrides({"duration": "4s", "repeats": 4}, "call")
    merged = merge_settings(options(duration="2"), marker, call, "test")
    assert (merged.duration_s, merged.repeats, merged.window_s) == (2.0, 4, 0.5)
    assert merged.precision == 0.03


def test_the_reference_can_be_left_out() -> None:
    without = parse_overrides({"reference": False}, "marker")
    assert not merge_settings(options(), without, {}, "test").reference
    assert merge_settings(options(reference="yes"), without, {}, "test").reference


def test_a_protocol_is_the_ground_for_single_settings() -> None:
    merged = merge_settings(options(keep="10"), parse_overrides({"protocol": "paper"}, "m"), {}, "test")
    assert (merged.duration_s, merged.skip_s, merged.keep_s) == (60.0, 20.0, 10.0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: parse_overrides({"durations": 1}, "here"), "here: there is no setting 'durations'; did you mean"),
        (lambda: parse_overrides({"duration": object()}, "here"), "neither a number nor a text"),
        (lambda: parse_overrides({"duration": True}, "here"), "here: duration: 'yes' is not a time"),
        (lambda: parse_overrides({"reference": 2}, "here"), "here: reference: '2' is neither yes nor no"),
        (lambda: parse_overrides({"duration": float("nan")}, "here"), "here: duration: 'nan' is not a time"),
        (lambda: merge_settings(options(duration="0.05"), {}, {}, "here"), "here: a window of 0.1 s does not fit"),
        (lambda: merge_settings(options(skip="1"), {}, {}, "here"), "skipping 1 s leaves nothing of"),
    ],
)
def test_settings_that_make_no_sense(make: Callable[[], object], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        make()
    assert message in str(caught.value)


@dataclass(frozen=True, slots=True)
class More(Options):
    paint: str = option(HOST, "COLOUR", "colour of it all: red or blue", values.one_of("red", "blue"), default="red")


@pytest.mark.parametrize(
    ("arguments", "value"),
    [
        (("--icbench-switch=linux-bridge", "--icbench-switch=ovs,vpp"), ("linux-bridge", "ovs", "vpp")),
        (("--icbench-pairs=1..1..3", "--icbench-pairs=8"), (1, 2, 3, 8)),
        (("--icbench-rate=max", "--icbench-rate=1Mpps"), (Rate(), Rate(1_000_000))),
        (("--icbench-mix=simple", "--icbench-mix=64:1,128:1"), tuple(map(Traffic.of_mix, ("simple", "64:1,128:1")))),
        (("--icbench-must-match=identity.*", "--icbench-must-match=metric"), ("identity.*", "metric")),
    ],
)
def test_a_list_given_several_times_adds_up(
    pytester: pytest.Pytester, arguments: tuple[str, ...], value: tuple[object, ...]
) -> None:
    plugin = Reader()
    pytester.inline_run("-pno:icbench", *arguments, plugins=[plugin])
    (row,) = (row for row in TABLE if arguments[0].startswith(f"{row.option}="))
    assert getattr(plugin.options, row.field) == value


class Reader:
    """A plugin that has an option more."""

    def pytest_addoption(self, parser: pytest.Parser) -> None:
        add_options(parser, More)

    def pytest_configure(self, config: pytest.Config) -> None:
        self.options = cast(More, from_config(config, More))


@pytest.mark.parametrize(
    ("arguments", "paint"), [((), "red"), (("--icbench-paint=blue",), "blue"), (("-oicbench_paint=blue",), "blue")]
)
def test_an_option_is_one_row(pytester: pytest.Pytester, arguments: tuple[str, ...], paint: str) -> None:
    """A row gives the option, its ini twin, and a field with its type and default."""
    plugin = Reader()
    pytester.inline_run("-pno:icbench", *arguments, plugins=[plugin])
    assert plugin.options.paint == paint


def test_an_option_and_its_ini_twin_are_in_the_help(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        paint=(
            "import dataclasses\n"
            "from pytest_icbench.config.axis import HOST, option\n"
            "from pytest_icbench.config.option_table import add_options\n"
            "from pytest_icbench.config.option_table import Options\n"
            "@dataclasses.dataclass(frozen=True)\n"
            "class More(Options):\n"
            "    paint: str = option(HOST, 'COLOUR', 'colour of it all', default='red')\n"
            "def pytest_addoption(parser):\n"
            "    add_options(parser, More)\n"
        )
    )
    pytester.syspathinsert()
    shown = pytester.runpytest_subprocess("-pno:icbench", "-ppaint", "--help").stdout
    shown.fnmatch_lines(["*--icbench-paint=COLOUR*", "*colour of it all*", "*icbench_paint (string):*"])


@pytest.mark.parametrize("row", [row for row in TABLE if row.default], ids=lambda row: row.name)
def test_help_states_the_default(row: Row) -> None:
    stated = re.search(r"\(default: ([^)]*?)(?:/ in the root directory)?\)", row.help)
    assert stated is not None
    assert row.read(stated[1], "", Path()) == row.default


def test_what_is_defined_elsewhere_has_the_same_defaults() -> None:
    assert Options().ring == Settings().ring
    (row,) = (row for row in TABLE if row.name == "soak_duration")
    assert f"(default: {SOAK_S:g})" in row.help
    (row,) = (row for row in TABLE if row.name == "queues")
    assert f"1 to {MAX_QUEUES}:" in row.help


@pytest.mark.parametrize(("name", "known"), [("protocol", PROTOCOLS), ("search_preset", PRESETS)])
def test_names_that_are_defined_elsewhere_are_taken_from_there(name: str, known: dict[str, object]) -> None:
    (row,) = (row for row in TABLE if row.name == name)
    for word in known:
        assert row.parse(word, "x") == word
        assert word in row.help
    with pytest.raises(UsageError, match=f"none of {', '.join(known)}"):
        row.parse("other", "x")


def test_the_marker_has_the_defaults_of_a_request() -> None:
    marked = {row.argument: row.marker for row in TABLE if row.marker}
    given = {name: ast.literal_eval(value) for name, value in marked.items()}
    written, silent = parse_marker((), given, "x"), Request()
    assert written.switch == silent.switch
    written_axes, axes = written.replaced_by(Options()), silent.replaced_by(Options())
    assert written_axes.frames() == axes.frames()
    assert written_axes == replace(axes, packet_size=written_axes.packet_size)
    without_option = {"mode", "node", "remote", "dimension", "measure", "soak_duration", "comparisons"}
    assert {*marked, *option_table.SETTINGS, *without_option} == {*ARGUMENTS}
