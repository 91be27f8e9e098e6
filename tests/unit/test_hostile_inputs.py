# SPDX-License-Identifier: BSD-3-Clause
"""Readers end in one printable sentence, whatever the input is."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_icbench.config import values
from pytest_icbench.config.switch_config import checked
from pytest_icbench.config.topology import reading
from pytest_icbench.driver.workload.output import parse_line
from pytest_icbench.errors import UsageError
from pytest_icbench.gate import thresholds
from pytest_icbench.model import toml
from tests.hostile import mutated_data, mutated_text, refusals
from tests.unit.driver.workload.test_command import CLIENT, RECEIVED_LINE, SENT, WINDOW, WINDOW_RTT

THRESHOLDS = """["*"]\nmax_frame_loss_ratio = 0.9\nmax_drop = 0.05\n["ovs-64B-*"]\nmin_throughput_pps = 2_000_000
max_rise_rtt_p99_ns = 0.2\n"""
TOPOLOGY = """pairs = '1vs1'\n[[container]]\nname = "a"\napplication = ["send"]\npeer = "b"\ncpus = [2]
ip = "10.0.3.10"\nnetmask = 24\nmac = "02:00:00:00:00:10"\nsocket = "sock0"
[[container]]\nname = "b"\napplication = "recv"\npeer = "a"\ncpus = 4\nip = "10.0.3.11"\nnetmask = "255.255.255.0"\n"""
CONFIG = 'text = "a"\nnumber = 7\ntexts = ["a", "b"]\n[table]\na = 1\nb = "c"\nd = 1.5\n'
KINDS = {"text": "text", "number": "number", "texts": "texts", "table": "table"}
LINES = [{**WINDOW, **RECEIVED_LINE, **SENT, "role": "client", "rtt": WINDOW_RTT}, {**CLIENT, "unanswered": 5}]
OPTIONS: list[tuple[Callable[[str, str], object], str]] = [
    (values.packet_sizes, "64 512 64..64..1024"),
    (values.rates, "max ndr pdr:0.5% ndr*0.5 500k 1.5M 1M..1M..20M"),
    (values.loads, "500k 1M .5 .10"),
    (values.apis, "udp,raw all"),
    (values.boolean, "yes"),
    (values.Seconds(0.1, 100.0), "1.5min"),
    (values.precision, "3 %"),
    (values.count(1, 9, "things"), "7"),
    (values.ring, "256"),
    (values.hugepage_size_kib, "2M"),
    (lambda text, where: values.files(text, where, Path("/tmp")), "ovs=a.toml vpp=~b/c.toml"),
    (lambda text, where: values.programs(text, where, Path("/tmp")), "vpp=/bin/sh\novs=~x/y"),
    (values.baseline_name, "main-1"),
    (values.host_name, "me@host.example"),
    (values.python_path, "/usr/bin/python3"),
]


def read_config(chance: random.Random) -> None:
    text = mutated_text(CONFIG, chance)
    checked(toml.TomlFile(Path("c.toml"), text, toml.parse(text, "c.toml")), "ovs", KINDS)  # type: ignore[arg-type]


def read_option(chance: random.Random) -> None:
    parse, text = chance.choice(OPTIONS)
    parse(mutated_text(text, chance), "--option")


def read_line(chance: random.Random) -> None:
    line = chance.choice(LINES)
    if chance.random() < 0.7:
        parse_line(json.dumps(mutated_data(line, chance)))
    else:
        parse_line(mutated_text(json.dumps(line), chance).encode(errors="surrogatepass"))


READERS: dict[str, Callable[[random.Random], object]] = {
    "thresholds": lambda chance: thresholds.parse(mutated_text(THRESHOLDS, chance), "t.toml"),
    "topology": lambda chance: reading.loads(mutated_text(TOPOLOGY, chance), "t.toml"),
    "configuration": read_config,
    "value of an option": read_option,
    "line of the workload": read_line,
}


@pytest.mark.parametrize("reader", READERS)
def test_a_hostile_input_gets_a_sentence(reader: str) -> None:
    refused, wrong = refusals(READERS[reader], 300)
    assert wrong == {}
    assert refused > 100


@pytest.mark.slow
@pytest.mark.parametrize("reader", READERS)
def test_ten_thousand_hostile_inputs_get_a_sentence(reader: str) -> None:
    assert refusals(READERS[reader], 10_000, seed=2)[1] == {}


@pytest.mark.parametrize("number", ["1" + "0" * 400, "9" * 5000, "[" * 3000, "1e999", "nan", "2024-13-45"])
def test_odd_numbers_of_toml(number: str) -> None:
    with pytest.raises(UsageError):
        thresholds.parse(f'["*"]\nmin_throughput_pps = {number}\n', "t.toml")


def test_messages_have_no_control_characters() -> None:
    assert str(UsageError("a\x1b[31m\nb\ud800")) == "a?[31m?b?"
