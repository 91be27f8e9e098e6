# SPDX-License-Identifier: BSD-3-Clause
"""What is typed to start the workload, and how its lines are read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_icbench.driver.workload.command import WorkloadCommand, exit_meaning, natural_api
from pytest_icbench.driver.workload.eal import eal_arguments, endpoint_mib, endpoint_ring
from pytest_icbench.driver.workload.output import Hello, Ready, Summary, WindowLine, parse_line
from pytest_icbench.model.codec import DamagedData
from pytest_icbench.model.endpoint import Address, Endpoint, Memif, Pci, Tap, Veth, VhostUser
from pytest_icbench.model.traffic import Traffic

A, B = Address.of(1, "a"), Address.of(1, "b")
VETH = Veth(A, "eth0", "icabcdef0a")


def command(endpoint: Endpoint = VETH, api: str = "udp", **changes: Any) -> WorkloadCommand:
    plain: dict[str, Any] = {"application": "send", "peer": B, "cpu": 3, "traffic": Traffic(), "burst": 32, "stream": 1}
    return WorkloadCommand(endpoint=endpoint, api=api, **{**plain, **changes})


def argv(*arguments: Any, **changes: Any) -> list[str]:
    return command(*arguments, **changes).argv(Path("/w"))


def test_a_udp_sender_has_its_command_line() -> None:
    assert argv(rate_pps=1000, duration_s=1.0, warmup_s=0.25, yield_every=64) == [
        *("/w", "send", "198.18.1.1", "02:00:00:00:01:01", "198.18.1.2", "02:00:00:00:01:02", "--supervised"),
        *("-p", "64", "-b", "32", "-r", "1000", "--stream-id", "1", "--ring", "256"),
        *("--duration", "1", "--warmup", "0.25", "--window", "0.1", "--drain", "2", "--yield", "64"),
    ]


@pytest.mark.parametrize(
    ("api", "options"),
    [
        ("udp", []),
        ("udp-mmsg", ["-m"]),
        ("udp-gso", ["-G"]),
        ("raw", ["-R", "eth0"]),
        ("raw-mmsg", ["-R", "eth0", "-m"]),
        ("xdp", ["-X", "eth0"]),
    ],
)
def test_each_socket_technique_has_its_options(api: str, options: list[str]) -> None:
    assert argv(api=api) == argv() + options


def test_switches_of_the_thesis_are_passed_on() -> None:
    assert set(argv(blocking=True, check_payload=True, silent=True)) - set(argv()) == {"-B", "-c", "-s"}


def test_a_tap_is_opened_by_its_device() -> None:
    tap = Tap(A, "/dev/tap7")
    assert natural_api(None, tap) == "tap"
    assert argv(tap, "tap")[-4:] == ["--io", "tap", "-R", "/dev/tap7"]
    with pytest.raises(ValueError, match="needs a kernel interface"):
        argv(tap, "raw")


def test_an_endpoint_waits_as_it_is_told() -> None:
    assert "--wait" not in argv()
    whole = argv(wait="interrupt")
    assert whole[whole.index("--wait") + 1] == "interrupt"


def eal(endpoint: Endpoint, api: str = "dpdk", packet_size: int = 64) -> list[str]:
    whole = argv(endpoint, api, traffic=Traffic(packet_size))
    assert whole[1] == "dpdk-send"
    return whole[whole.index("--") + 1 :]


@pytest.mark.parametrize(
    ("endpoint", "api", "device"),
    [
        (VhostUser(A, "/s/0"), "dpdk", "net_virtio_user0,path=/s/0,mac=02:00:00:00:01:01,queues=1,queue_size=256"),
        (
            VhostUser(A, "/s/0", serves=True, packed=True),
            "dpdk",
            "net_virtio_user0,path=/s/0,mac=02:00:00:00:01:01,queues=1,queue_size=256,server=1,packed_vq=1",
        ),
        (VhostUser(A, "/s/0", role="back-end"), "dpdk", "net_vhost0,iface=/s/0,queues=1,client=1"),
        (VhostUser(A, "/s/0", role="back-end", serves=True), "dpdk", "net_vhost0,iface=/s/0,queues=1,client=0"),
        (
            Memif(A, "/s/m", role="server", id=2),
            "dpdk",
            "net_memif0,role=server,id=2,socket=/s/m,socket-abstract=no,mac=02:00:00:00:01:01,rsize=8,bsize=2048",
        ),
        (VETH, "af_xdp", "net_af_xdp0,iface=eth0,start_queue=0,queue_count=1"),
        (
            VETH,
            "af_packet",
            "net_af_packet0,iface=eth0,qpairs=1,blocksz=16384,framesz=2048,framecnt=512,qdisc_bypass=1",
        ),
    ],
)
def test_each_port_kind_has_its_device(endpoint: Endpoint, api: str, device: str) -> None:
    assert eal(endpoint, api) == [
        *("--lcores", "0@3", "--in-memory", "--single-file-segments", "--no-telemetry", "-m", "64"),
        *("--no-pci", "--iova-mode", "va", f"--vdev={device}"),
    ]


@pytest.mark.parametrize(
    ("endpoint", "device"),
    [
        (VhostUser(A, "/s/0"), "net_virtio_user0,path=/s/0,mac=02:00:00:00:01:01,queues=4,cq=1,queue_size=256"),
        (VhostUser(A, "/s/0", role="back-end"), "net_vhost0,iface=/s/0,queues=4,client=1"),
        (Memif(A, "/s/m"), eal(Memif(A, "/s/m"))[-1].removeprefix("--vdev=")),
    ],
)
def test_several_queues_are_requested_of_device_and_port(endpoint: Endpoint, device: str) -> None:
    whole = argv(endpoint, "dpdk", traffic=Traffic(flows="64", queues=4))
    assert whole[whole.index("--queues") + 1] == "4"
    assert whole[-1] == f"--vdev={device}"
    assert whole[whole.index("-m") + 1] == str(endpoint_mib(False, 4))


def test_a_pci_function_is_allowed_by_name() -> None:
    assert eal(Pci(A, "0000:01:10.0"))[-2:] == ["-a", "0000:01:10.0"]


def test_jumbo_frames_get_longer_buffers_and_more_memory() -> None:
    arguments = eal(Memif(A, "/s/m"), packet_size=9018)
    assert arguments[arguments.index("-m") + 1] == str(endpoint_mib(True)) != str(endpoint_mib(False))
    assert "bsize=16384" in arguments[-1]


def test_af_xdp_gets_the_ring_that_it_cannot_do_without() -> None:
    assert (endpoint_ring("af_xdp", 256), endpoint_ring("af_xdp", 4096), endpoint_ring("dpdk", 256)) == (
        2048,
        4096,
        256,
    )


def test_a_socket_technique_needs_a_kernel_interface() -> None:
    with pytest.raises(ValueError, match="api raw needs a kernel interface, the endpoint is a memif port"):
        argv(Memif(A, "/s"), "raw")
    with pytest.raises(ValueError, match="udp is not a DPDK driver"):
        eal_arguments(VETH, "udp", cpu=0, ring=256, jumbo=False)


def test_each_endpoint_has_a_natural_technique() -> None:
    assert natural_api(None, VETH) == "udp-mmsg"
    assert natural_api(None, Memif(A, "/s")) == "dpdk"
    assert natural_api("raw", VETH) == "raw"


def test_an_exit_code_has_a_meaning() -> None:
    assert exit_meaning(5) == "ended with exit code 5 (the link did not come up in time)"
    assert exit_meaning(-9) == "was ended by signal 9"


HELLO = {
    "schema": 1,
    "type": "hello",
    "app": "send",
    "version": "0.1.0",
    "pid": 7,
    "io": "udp",
    "driver": None,
    "dpdk": None,
    "mac": "02:00:00:00:01:01",
    "ring": 256,
    "burst": 32,
    "packet_size": 64,
    "frame_bytes": 60,
    "stream": 1,
    "tsc_hz": 2_400_000_000,
    "invariant_tsc": True,
    "window_ns": 100_000_000,
}
READY = {"schema": 1, "type": "ready", "link_up": True, "announced": True, "monotonic_ns": 5}
SENT = {
    "start_ns": 1,
    "duration_ns": 1,
    "scheduled": 1,
    "sent": 1,
    "refused": 0,
    "not_offered": 0,
    "tx_full": 0,
    "catch_up_max": 1,
    "lateness_p99_ns": 1,
    "lateness_max_ns": 1,
    "yields": 0,
    "involuntary_switches": 0,
}
RECEIVED = {
    "received": 2,
    "bytes": 120,
    "duplicated": 0,
    "reordered": 0,
    "polls": 2,
    "empty_polls": 1,
    "first_ns": 1,
    "last_ns": 2,
}
RECEIVED_LINE = {**RECEIVED, "provisional": False, "involuntary_switches": 0}
WINDOW = {"schema": 1, "type": "window", "stream": 1, "window": 3}
TOTALS = {
    "schema": 1,
    "type": "summary",
    "stream": 1,
    "reason": "duration",
    "windows": 3,
    "cpu_ns": 1,
    "voluntary_switches": 0,
    "involuntary_switches": 0,
}
SENT_TOTALS = {**SENT, "sequences": 1}
RECEIVED_TOTALS = {**RECEIVED, "highest_sequence": 0, "gaps": 0, "late": 0, "foreign": 0, "corrupted": 0}
RTT = {"count": 3, "min": 1, "mean": 2.0, "max": 4, "significant_digits": 3, "counts": [[1, 2], [4, 1]]}
CLIENT = {**TOTALS, **RECEIVED_TOTALS, **SENT_TOTALS, "role": "client", "rtt_ns": RTT, "rtt_actual_ns": RTT}
WINDOW_RTT = {"count": 20, "min_ns": 1, "mean_ns": 2, "p50_ns": 2, "p99_ns": None, "max_ns": 9}


def parse(**line: Any) -> Any:
    return parse_line(json.dumps(line).encode(), "send of pair 1")


def test_every_line_of_the_cpu_allocation_is_parsed() -> None:
    assert isinstance(parse(**HELLO), Hello)
    assert isinstance(parse(**READY), Ready)
    sender = parse(**WINDOW, **SENT, role="sender")
    assert isinstance(sender, WindowLine)
    assert sender.received is None
    receiver = parse(**WINDOW, **RECEIVED_LINE, role="receiver")
    assert receiver.sent is None
    assert receiver.received.received == 2
    client = parse(**{**WINDOW, **RECEIVED_LINE, **SENT, "role": "client", "rtt": WINDOW_RTT})
    assert (client.sent.sent, client.received.received) == (1, 2)
    assert (client.rtt.count, client.rtt.p50_ns, client.rtt.p99_ns, client.busy_cycles) == (20, 2, None, None)
    counted = parse(**WINDOW, **SENT, role="sender", busy_cycles=7, idle_cycles=8)
    assert (counted.busy_cycles, counted.idle_cycles) == (7, 8)
    assert (counted.gap_ns, counted.gap_count) == (None, None)
    late = parse(**WINDOW, **SENT, role="sender", gap_ns=31_000, gap_count=1)
    assert (late.gap_ns, late.gap_count) == (31_000, 1)
    summary = parse(**CLIENT, unanswered=5)
    assert isinstance(summary, Summary)
    assert summary.rtt is not None
    assert (summary.rtt.count, summary.rtt.lost, summary.rtt.maximum) == (3, 5, 4)
    assert summary.rtt_first is None
    assert parse(**CLIENT, rtt_first_ns=RTT).rtt_first.count == 3
    assert parse(**TOTALS, **RECEIVED_TOTALS, role="server").rtt is None


def test_an_empty_histogram_has_no_extremes() -> None:
    empty = {"count": 0, "min": 0, "mean": 0, "max": 0, "significant_digits": 3, "counts": []}
    found = parse(**{**CLIENT, "rtt_ns": empty}, unanswered=2).rtt
    assert (found.minimum, found.maximum, found.mean, found.lost) == (None, None, None, 2)


def text(line: dict[str, Any], **changes: Any) -> bytes:
    return json.dumps({**line, **changes}).encode()


SENDERS = {**WINDOW, **SENT, "role": "sender"}


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (b"EAL: Detected CPU lcores: 2", "wrote a line that is not JSON: 'EAL: Detected CPU lcores: 2'"),
        (b"\xff\xfe{", "wrote a line that is not JSON"),
        (b"[1]", "wrote a line that is not a JSON object"),
        (text(HELLO, schema=2), "wrote schema 2, but 1 is read here; build workload and plugin from one version"),
        (text(HELLO, type="goodbye"), "wrote a line of unknown type 'goodbye'"),
        (text(HELLO, pid="x"), "hello: pid: "),
        (text(SENDERS, role="spy"), "window: role: "),
        (text(SENDERS, window=65535), "window: window: "),
        (text(SENDERS, role="receiver"), "field received"),
        (text(CLIENT, unanswered=-1), "summary: unanswered: "),
        (text(CLIENT, rtt_ns={**RTT, "count": 4}), "the counts do not add up to 4"),
        (text(CLIENT, rtt_ns={**RTT, "counts": [[4, 1], [1, 2]]}), "not in ascending order"),
    ],
)
def test_a_damaged_line_is_refused_in_one_sentence(line: bytes, sentence: str) -> None:
    with pytest.raises(DamagedData) as caught:
        parse_line(line, "send of pair 1")
    assert str(caught.value).startswith("send of pair 1")
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_refused(line: bytes) -> None:
    with pytest.raises(DamagedData):
        parse_line(line)


@given(st.sampled_from([HELLO, READY, {**WINDOW, **SENT, "role": "sender"}, CLIENT]), st.data())
def test_an_arbitrary_value_is_parsed_or_refused(line: dict[str, Any], data: st.DataObject) -> None:
    key = data.draw(st.sampled_from(sorted(line)))
    value = data.draw(st.none() | st.booleans() | st.floats() | st.text() | st.lists(st.integers()))
    try:
        parse_line(json.dumps({**line, key: value}))
    except DamagedData as error:
        assert "\n" not in str(error)  # noqa: PT017 - not every value is damage
