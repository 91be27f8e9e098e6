# SPDX-License-Identifier: BSD-3-Clause
"""Defaults and ranges that the workload and its users both state are the same, or a part of the workload's."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import fields
from typing import Any

import pytest

from pytest_icbench.config import values
from pytest_icbench.config.axes import MAX_BURST, MAX_PAIRS
from pytest_icbench.config.option_table import TABLE, Options
from pytest_icbench.config.values import MAX_RATE_PPS
from pytest_icbench.driver.workload.command import WorkloadCommand
from pytest_icbench.driver.workload.executable import workload_path
from pytest_icbench.errors import UsageError
from pytest_icbench.model.load import Frames
from pytest_icbench.model.search_goal import PRESETS
from pytest_icbench.model.settings import PROTOCOLS, Settings
from pytest_icbench.model.traffic import MAX_FRAME_BYTES, MIN_FRAME_BYTES, Traffic
from pytest_icbench.testbed.cpu_placement import YIELD_EVERY_FRAMES
from tests.unit.project.test_reference import reference

#: Fields of ``WorkloadCommand`` that are numbers of an option, and the option.
_FIELDS = {
    "burst": "burst",
    "stream": "stream-id",
    "rate_pps": "rate",
    "duration_s": "duration",
    "warmup_s": "warmup",
    "window_s": "window",
    "drain_s": "drain",
    "ring": "ring",
    "yield_every": "yield",
    "catch_up": "catch-up",
}


def lines() -> list[dict[str, Any]]:
    done = subprocess.run([workload_path(), "--options"], check=True, capture_output=True, text=True, timeout=10)
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def options() -> dict[str, dict[str, Any]]:
    """The workload's options by name."""
    return {line["name"]: line for line in lines()}


def bounds(option: str) -> tuple[float, float]:
    """Of a time that a user may ask for."""
    (row,) = (row for row in TABLE if row.name == option)
    assert isinstance(row.parse, values.Seconds)
    return row.parse.least, row.parse.greatest


def defaults(record: type) -> dict[str, Any]:
    return {field.name: field.default for field in fields(record)}


def test_the_workload_lists_each_option_once(options: dict[str, dict[str, Any]]) -> None:
    assert len(lines()) == len(options) > 30
    assert {(line["schema"], line["type"]) for line in options.values()} == {(1, "option")}
    assert options["drain"] == json.loads(
        '{"schema":1,"type":"option","name":"drain","letter":null,"argument":"S",'
        '"default":2,"least":0,"greatest":600,"unit":"s"}'
    )
    assert "default" not in options["raw"]
    for line in options.values():
        assert line.get("least", 0) <= line.get("default", 0) <= line.get("greatest", 0), line


def test_a_number_on_the_command_line_has_the_workloads_default(options: dict[str, dict[str, Any]]) -> None:
    stated = {name: default for name, default in defaults(WorkloadCommand).items() if isinstance(default, int | float)}
    numbers = {name for name, default in stated.items() if not isinstance(default, bool)}
    assert numbers <= set(_FIELDS)
    assert {name: stated[name] for name in numbers} == {name: options[_FIELDS[name]]["default"] for name in numbers}


@pytest.mark.parametrize(
    ("name", "stated"),
    [
        ("packet-size", defaults(Traffic)["packet_size"]),
        ("burst", defaults(Frames)["burst"]),
        ("window", defaults(Settings)["window_s"]),
        ("ring", defaults(Settings)["ring"]),
        ("ring", Options().ring),
        ("catch-up", defaults(Settings)["catch_up"]),
        *[("drain", preset.drain_s) for name, preset in PRESETS.items() if name != "csit"],
        *[("drain", PROTOCOLS[name]["drain_s"]) for name in ("thesis", "paper")],
    ],
)
def test_defaults_are_the_same(options: dict[str, dict[str, Any]], name: str, stated: float) -> None:
    assert stated == options[name]["default"]


def test_a_measurement_within_one_host_drains_for_less(options: dict[str, dict[str, Any]]) -> None:
    """The one default that differs on purpose: two seconds are RFC 2544's, see ``Settings.drain_s``."""
    assert defaults(Settings)["drain_s"] == PRESETS["csit"].drain_s < options["drain"]["default"]


@pytest.mark.parametrize(
    ("name", "least", "greatest"),
    [
        ("packet-size", MIN_FRAME_BYTES, MAX_FRAME_BYTES),
        ("burst", 1, MAX_BURST),
        ("rate", 0, MAX_RATE_PPS),
        ("drain", *bounds("drain")),
    ],
)
def test_ranges_are_the_same(options: dict[str, dict[str, Any]], name: str, least: float, greatest: float) -> None:
    assert (least, greatest) == (options[name]["least"], options[name]["greatest"])


@pytest.mark.parametrize(
    ("name", "bounds"),
    [
        ("duration", bounds("duration")),
        ("duration", bounds("soak_duration")),
        ("window", bounds("window")),
        ("warmup", bounds("warmup")),
        ("yield", (YIELD_EVERY_FRAMES, YIELD_EVERY_FRAMES)),
        ("stream-id", (1, 2 * MAX_PAIRS)),
    ],
)
def test_the_workload_accepts_every_value_of_the_plugin(
    options: dict[str, dict[str, Any]], name: str, bounds: tuple[float, float]
) -> None:
    least, greatest = bounds
    assert options[name]["least"] <= least <= greatest <= options[name]["greatest"]


def test_the_workload_accepts_every_ring(options: dict[str, dict[str, Any]]) -> None:
    allowed = []
    for exponent in range(24):
        try:
            allowed.append(values.ring(str(2**exponent), "--icbench-ring"))
        except UsageError:
            continue
    assert options["ring"]["default"] in allowed
    assert options["ring"]["least"] <= min(allowed) < max(allowed) <= options["ring"]["greatest"]


def test_the_document_has_the_defaults(options: dict[str, dict[str, Any]]) -> None:
    rows = re.findall(r"^\| `(?:-(\w)`, `)?--([\w-]+)[^`]*` \| (\S+) \|", reference.workload_options(), re.MULTILINE)
    assert {name: letter or None for letter, name, _ in rows} == {name: o["letter"] for name, o in options.items()}
    for _, name, default in rows:
        if "default" in options[name]:
            assert float(default) == options[name]["default"], name
        else:
            assert default == ("off" if options[name]["argument"] is None else "\N{EN DASH}"), name
