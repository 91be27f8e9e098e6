# SPDX-License-Identifier: BSD-3-Clause
"""The look of a series: the same in every run, unlike every other, and to be seen on white and on dark."""

from __future__ import annotations

import re
from importlib.resources import files
from itertools import permutations

import pytest

from pytest_icbench.display.theme import COLOURS, LIGHT, series_scales

SWITCHES = [
    "veth",
    "linux-bridge",
    "direct",
    "basicfwd",
    "testpmd",
    "ovs",
    "vpp",
    "snabb",
    "sriov",
    "forward",
    "forward-raw",
    "acme",
]


def look(series: str, order: list[str]) -> tuple[str, str, str]:
    scales = series_scales([series], order)
    return scales["color"]["range"][0], scales["shape"]["range"][0], str(scales["strokeDash"]["range"][0])


def luminance(colour: str) -> float:
    """Relative luminance by WCAG 2.1."""
    shares = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [share / 12.92 if share <= 0.03928 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
    return sum(weight * value for weight, value in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_a_switch_looks_the_same_whatever_else_was_measured() -> None:
    looks = {
        tuple(look(name, list(order)) for name in ("ovs", "vpp")) for order in permutations(["vpp", "ovs", "veth"])
    }
    assert looks == {(look("ovs", ["ovs"]), look("vpp", ["vpp"]))}
    for switch in SWITCHES:
        assert look(switch, SWITCHES)[0] == look(switch, [switch])[0]


def test_a_switch_keeps_its_colour_in_every_run_and_mode() -> None:
    order = ["ovs-c1", "ovs (B)", "ovs:new", "ovs (A)", "ovs+memif", "ovsx", "linux-bridge-udp"]
    assert {look(name, order)[0] for name in order[:5]} == {look("ovs", ["ovs"])[0]}
    assert look("linux-bridge-udp", order)[0] == look("linux-bridge", ["linux-bridge"])[0]


def test_marks_and_dashes_repeat_the_colour() -> None:
    """For readers who cannot tell colours."""
    looks = [look(switch, [switch]) for switch in ("ovs", "testpmd", "vpp", "direct", "snabb", "linux-bridge")]
    assert all(len(set(kind)) == len(looks) for kind in zip(*looks, strict=True))


def test_no_two_series_look_alike() -> None:
    order = [f"{switch}{end}" for switch in SWITCHES for end in ("", "-c1", "-c2", ":new", " (A)", " (B)")]
    assert len({look(name, order) for name in order}) == len(order) == 72


@pytest.mark.parametrize(("scheme", "place"), [("light", 0), ("dark", 1)])
def test_lines_stand_out_from_the_paper(scheme: str, place: int) -> None:
    css = (files("pytest_icbench.report.html") / "page.css").read_text()
    paper = luminance(re.findall(r"--ic-paper: (#\w{6})", css)[place])
    for number, alone in enumerate(LIGHT):
        colour = re.findall(rf"--ic-c{number}: (#\w{{6}})", css)[place]
        assert scheme == "dark" or colour == alone
        lighter, darker = sorted((luminance(colour), paper), reverse=True)
        assert (lighter + 0.05) / (darker + 0.05) >= 3, colour
    assert len(COLOURS) == len(LIGHT)
