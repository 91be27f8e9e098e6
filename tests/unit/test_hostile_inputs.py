# SPDX-License-Identifier: BSD-3-Clause
"""Readers end in one printable sentence, whatever the input is."""

from __future__ import annotations

import atexit
import json
import random
import shutil
from collections.abc import Callable
from contextlib import chdir
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

import pytest

from pytest_icbench.config import options, rates, values
from pytest_icbench.config import topology as reading
from pytest_icbench.config.axis import Row, rows
from pytest_icbench.config.option_table import Options
from pytest_icbench.config.switches import check_config
from pytest_icbench.driver.application.protocol import ProofFailed
from pytest_icbench.driver.workload.output import parse_line, parse_request_summary
from pytest_icbench.errors import UsageError
from pytest_icbench.model.codec import encode
from pytest_icbench.model.text_files import TomlFile, parse_toml, read_toml
from pytest_icbench.report.trends import trends
from pytest_icbench.store import history_file, thresholds
from pytest_icbench.testbed.exchange import PcapFollower, pcap_bytes
from tests.hostile import mutated_data, mutated_text, refusals
from tests.unit.driver.test_applications import OUTPUTS, read_output
from tests.unit.driver.test_open_loop import summary
from tests.unit.driver.workload.test_command import CLIENT, RECEIVED_LINE, SENT, WINDOW, WINDOW_RTT
from tests.unit.store.test_history import ENTRY

THRESHOLDS = """["*"]\nmax_frame_loss_ratio = 0.9\nallowance = 0.05\n["ovs-64B-*"]\nmin_throughput_pps = 2_000_000
allowance_rtt_p99_ns = 0.2\n"""
TOPOLOGY = """pairs = '1vs1'\n[[container]]\nname = "a"\napplication = ["send"]\npeer = "b"\ncpus = [2]
ip = "10.0.3.10"\nnetmask = 24\nmac = "02:00:00:00:00:10"\nsocket = "sock0"
[[container]]\nname = "b"\napplication = "recv"\npeer = "a"\ncpus = 4\nip = "10.0.3.11"\nnetmask = "255.255.255.0"\n"""
ATTACHED = """[[container]]\nname = "a"\ncontainer = "pid:4711"\napplication = ["send"]\npeer = "b"
interface = "eth0"\n[[container]]\nname = "b"\ncontainer = "docker:web"\napplication = "recv"\npeer = "a"
socket = "/run/x"\nmac = "02:00:00:00:09:09"\n"""
CONFIG = 'text = "a"\nnumber = 7\ntexts = ["a", "b"]\n[table]\na = 1\nb = "c"\nd = 1.5\n'
KINDS = {"text": "text", "number": "number", "texts": "texts", "table": "table"}
LINES = [{**WINDOW, **RECEIVED_LINE, **SENT, "role": "client", "rtt": WINDOW_RTT}, {**CLIENT, "unanswered": 5}]
ASKED = json.loads(summary())
CAPTURE = pcap_bytes([bytes(range(60)), b"\xff" * 64, b"\x02" * 14])
PACKET_SIZES = {row.name: row.parse for row in rows(Options)}["packet_size"]
OPTIONS: list[tuple[Callable[[str, str], object], str]] = [
    (PACKET_SIZES, "64 512 64..64..1024"),
    (rates.parse_rates, "max ndr pdr:0.5% ndr*0.5 500k 1.5M 1M..1M..20M"),
    (rates.parse_loads, "500k 1M .5 .10"),
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


#: A right text of each option whose value has a form of its own. Files that are named are made by ``read_table``.
TABLE: dict[str, str] = {
    "switch": "ovs vpp:xconnect kernel",
    "packet_size": "64 512..64..1024",
    "mix": "simple aaf 64:7+576:4+1518:1",
    "flows": "1 100 1000:zipf new",
    "header": "udp4 tcp6+vlan100",
    "direction": "one both",
    "queues": "1 2 4",
    "burst": "1 32 64..64..256",
    "routes": "1 1k",
    "wait": "poll interrupt adaptive",
    "rx_mode": "polling interrupt",
    "vm_kernel": "/boot/vmlinuz",
    "rate": "max ndr pdr:0.5% ndr*0.5 500k 1M..1M..20M 10GbpsL2 mfr trace:random:7:30k trace:load.txt",
    "pairs": "1 2..2..8",
    "switch_cores": "1 2",
    "api": "udp,raw all",
    "app": "redis:set:c16 tcp_rr:r5000 iperf3:4KB",
    "startup": "netns:1000 fork:300 netns:200:25ms",
    "port": "vhost-user memif",
    "check_payload": "yes",
    "precision": "3 %",
    "max_duration": "1.5min",
    "budget": "2h",
    "duration": "0.5",
    "soak_duration": "8h",
    "window": "0.1",
    "repeats": "7",
    "skip": "1",
    "keep": "2s",
    "protocol": "thesis",
    "warmup": "0.5",
    "max_warmup": "2",
    "drain": "0.5",
    "search_preset": "csit",
    "search_width": "0.5%",
    "search_trial": "1",
    "search_sum": "5",
    "ring": "256",
    "wait_quiet": "10m",
    "reference": "no",
    "placement": "dedicated",
    "frequency": "keep",
    "precedence": "none",
    "node": "lxc",
    "hugepage_size": "2M",
    "node_memory": "4096",
    "node_pids": "512",
    "must_match": "identity.* !identity.cpu placement",
    "save": "main-1",
    "compare": "main-2",
    "baselines": "baselines",
    "fail_on": "REGRESSED INVALID",
    "reports": "reports",
    "resume": "20260101T000000Z-1",
    "order": "42",
    "rounds": "6",
    "turns": "no",
    "history": "h.jsonl",
    "thresholds": "t.toml",
    "pf": "0000:3b:00.0",
    "remote": "me@host.example",
    "remote_python": "/usr/bin/python3",
    "uplink": "host.example=eth1+af_xdp 0000:3b:00.1",
    "topology": "topology.toml",
    "binary": "vpp=program\novs=/bin/sh",
    "switch_config": "ovs=config.toml",
    "candidate": "ovs:new=program\nvpp:tuned=config:config.toml\nforward:slow=mode:cost400",
    "noisy_neighbour": "none cpu stream:2",
    "isolation": "none l3 cat:11-1",
    "function": "wire cost1000 swap+acl1000+deny30 police200k shape10Mbit wire:2xcost1000 none",
    "function_count": "1 2..2..8",
    "chain": "1 10 100",
    "cpu_share": "70:30 70",
    "cpu_quota": "50:50 20",
    "active": "1 250 1000",
    "function_config": "linux=config.toml",
}
TRACE = "# second,rate\n0,1000,5\n1,2000,0\n2 30000 7\n"
FILES = {"load.txt": TRACE, "topology.toml": TOPOLOGY, "config.toml": CONFIG, "t.toml": THRESHOLDS}


@cache
def _directory() -> Path:
    """Makes the directory that options' paths begin at, for as long as this process runs."""
    top = Path(mkdtemp(prefix="hostile-"))
    atexit.register(shutil.rmtree, top, ignore_errors=True)
    (top / "program").symlink_to("/bin/true")
    for name, text in FILES.items():
        (top / name).write_text(text)
    return top


def read_table(chance: random.Random) -> None:
    """Reads one to three options of the table as a run does, of which one, or a file that one names, is changed."""
    top = _directory()
    names = chance.sample(list(TABLE), chance.randint(1, 3))
    texts = {name: TABLE[name] for name in names}
    file = chance.choice(list(FILES))
    if chance.random() < 0.25:
        texts["rate" if file == "load.txt" else "topology"] = "trace:load.txt" if file == "load.txt" else file
        (top / file).write_bytes(mutated_text(FILES[file], chance).encode(errors="surrogatepass"))
    else:
        texts[names[0]] = mutated_text(texts[names[0]], chance)

    def raw(row: Row) -> tuple[str, str] | None:
        return (row.option, texts[row.name]) if texts.get(row.name, "").strip() else None

    try:
        with chdir(top):
            options.read(raw, root=top, directory=top)
    finally:
        (top / file).write_text(FILES[file])


def read_trace(chance: random.Random) -> None:
    with TemporaryDirectory(prefix="hostile-") as top:
        path = Path(top, "load.txt")
        path.write_bytes(mutated_text(TRACE, chance).encode(errors="surrogatepass"))
        rates.trace_rate(f"trace:{path}", "--icbench-rate")


def read_config(chance: random.Random) -> None:
    text = mutated_text(CONFIG, chance)
    check_config(TomlFile(Path("c.toml"), text, parse_toml(text, "c.toml")), "ovs", KINDS)  # type: ignore[arg-type]


def read_option(chance: random.Random) -> None:
    parse, text = chance.choice(OPTIONS)
    parse(mutated_text(text, chance), "--option")


def read_line(chance: random.Random) -> None:
    line = chance.choice(LINES)
    if chance.random() < 0.7:
        parse_line(json.dumps(mutated_data(line, chance)))
    else:
        parse_line(mutated_text(json.dumps(line), chance).encode(errors="surrogatepass"))


def read_capture(chance: random.Random) -> None:
    """Follows a capture that was changed and that comes in two parts."""
    data = bytearray(CAPTURE)
    for _ in range(chance.randint(1, 4)):
        place = chance.randrange(len(data))
        data[place : place + chance.randint(0, 4)] = chance.randbytes(chance.randint(0, 5))
    follower, middle = PcapFollower(), chance.randrange(len(data) + 1)
    frames = follower.feed(bytes(data[:middle])) + follower.feed(bytes(data[middle:]))
    assert sum(map(len, frames)) <= len(data)


def read_asked(chance: random.Random) -> None:
    text = json.dumps(mutated_data(ASKED, chance))
    parse_request_summary(text if chance.random() < 0.7 else mutated_text(json.dumps(ASKED), chance))


def read_output_of_application(chance: random.Random) -> None:
    label = chance.choice(list(OUTPUTS))
    try:
        read_output(label, mutated_text(OUTPUTS[label], chance))
    except ProofFailed as error:
        raise UsageError(str(error)) from None


def read_file(chance: random.Random) -> None:
    """Reads limits as some editor or git left them."""
    codec = chance.choice(("utf-8", "utf-8-sig", "utf-16", "utf-16-be", "utf-32", "latin-1"))
    data = mutated_text(THRESHOLDS, chance).replace("\n", chance.choice(("\n", "\r\n"))).encode(codec, "replace")
    with TemporaryDirectory(prefix="hostile-") as top:
        path = Path(top, "t.toml")
        path.write_bytes(chance.choice((b"", b"\xfe\xff", b"\xff\xfe", b"\xef\xbb\xbf")) + data)
        read_toml(path)


def read_history(chance: random.Random) -> None:
    """Reads a history of which one line is changed. Raises UsageError if the line is left out."""
    entry = {"schema": history_file.SCHEMA, **encode(ENTRY)}
    line = json.dumps(mutated_data(entry, chance)) if chance.random() < 0.7 else mutated_text(json.dumps(entry), chance)
    with TemporaryDirectory(prefix="hostile-") as top:
        path = Path(top, "h.jsonl")
        path.write_bytes(f"{json.dumps(entry)}\n{line}\n".encode(errors="surrogatepass"))
        entries, troubles = history_file.read(path)
        trends(entries)
    assert all(trouble.isprintable() for trouble in troubles)
    if troubles:
        raise UsageError(troubles[0])


READERS: dict[str, Callable[[random.Random], object]] = {
    "thresholds": lambda chance: thresholds.parse(mutated_text(THRESHOLDS, chance), "t.toml"),
    "topology": lambda chance: reading.loads(mutated_text(TOPOLOGY, chance), "t.toml"),
    "topology that attaches": lambda chance: reading.loads(mutated_text(ATTACHED, chance), "t.toml"),
    "configuration": read_config,
    "value of an option": read_option,
    "option of the table": read_table,
    "trace": read_trace,
    "line of the workload": read_line,
    "summary of ask": read_asked,
    "capture": read_capture,
    "history": read_history,
    "output of an application": read_output_of_application,
    "file however saved": read_file,
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


def test_each_option_with_a_value_has_a_text_that_is_right() -> None:
    """Else all its changes could be refused for the text alone."""
    table = {row.name: row for row in rows(Options) if not row.flag}
    assert set(TABLE) - {"check_payload"} == set(table)
    for name, text in TABLE.items():

        def raw(row: Row, name: str = name, text: str = text) -> tuple[str, str] | None:
            return (row.option, text) if row.name == name else None

        with chdir(_directory()):
            options.read(raw, root=_directory(), directory=_directory())


@pytest.mark.parametrize("number", ["1" + "0" * 400, "9" * 5000, "[" * 3000, "1e999", "nan", "2024-13-45"])
def test_odd_numbers_of_toml(number: str) -> None:
    with pytest.raises(UsageError):
        thresholds.parse(f'["*"]\nmin_throughput_pps = {number}\n', "t.toml")


@pytest.mark.parametrize("option", ["rate=trace:/dev/zero", "topology=/dev/zero", "switch_config=ovs=/dev/zero"])
def test_a_file_without_end_is_not_read(option: str) -> None:
    name, _, text = option.partition("=")
    with pytest.raises(UsageError, match=r"/dev/zero.*not a regular file"):
        options.read(lambda row: (row.option, text) if row.name == name else None, root=Path("/"), directory=Path("/"))


def test_messages_have_no_control_characters() -> None:
    assert str(UsageError("a\x1b[31m\nb\ud800")) == "a?[31m?b?"
