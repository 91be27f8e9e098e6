# SPDX-License-Identifier: BSD-3-Clause
"""Applications read what their clients wrote on a real machine, refuse what they cannot read, and check answers."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_icbench.driver.application.memcached import Memcached
from pytest_icbench.driver.application.nginx import Nginx, Tls
from pytest_icbench.driver.application.protocol import Application, ProofFailed, SendRequest
from pytest_icbench.driver.application.redis import Redis
from pytest_icbench.driver.application.registry import application, applications, bring, labels
from pytest_icbench.errors import UsageError
from pytest_icbench.model.application import ApplicationLoad, is_load, label_of, load_of
from pytest_icbench.model.codec import encode
from pytest_icbench.model.rig import Question
from tests.unit.driver.test_open_loop import summary

RECORDED = Path(__file__).parent / "recorded_applications"


def output(name: str) -> str:
    return (RECORDED / name).read_text(encoding="utf-8")


WRK = (
    '{"requests": 84439, "bytes": 26598285, "us": 1003428, "errors": 0, "mean": 463.1, "max": 5420,'
    ' "p50": 30, "p90": 1850, "p99": 4050, "p99.9": 5000}'
)


def test_redis_benchmark_reports_a_rate_and_response_times() -> None:
    figures = application("redis").parse(output("redis-benchmark-7.0.15.txt"), 5000)
    assert figures.operations == 5000
    assert figures.operations_per_second == pytest.approx(23809.53)
    assert (figures.mean_ns, figures.p50_ns, figures.p99_ns) == pytest.approx((158e3, 39e3, 287e3))


def test_memcaslap_counts_operations_and_values_that_differ() -> None:
    text = output("memcaslap-1.1.4.txt")
    figures = application("memcached").parse(text, 0)
    gets, sets = (int(re.findall(rf"{name}: (\d+)", text)[0]) for name in ("cmd_get", "cmd_set"))
    assert figures.operations == gets + sets
    assert figures.seconds == pytest.approx(1.0, abs=0.5)
    assert figures.errors == 0
    assert application("memcached").parse(text.replace("verify_failed: 0", "verify_failed: 3"), 0).errors == 3


def test_ab_reports_requests_a_second_and_refuses_a_body_of_another_length() -> None:
    text = output("ab-2.3.txt")
    figures = application("tls").parse(text, 500)
    assert figures.operations == 500
    assert figures.errors == 0
    assert figures.p50_ns is not None
    assert figures.p50_ns >= 1e6
    assert application("tls").parse(text.replace("64 bytes", "63 bytes"), 500).errors == 500


def test_wrk_reports_exact_numbers_by_its_own_hook() -> None:
    figures = application("nginx").parse(f"Running 1s test\n{WRK}\n", 0)
    assert (figures.operations, figures.payload_bytes, figures.errors) == (84439, 26598285, 0)
    assert figures.operations_per_second == pytest.approx(84439 / 1.003428)
    assert (figures.p99_ns, figures.p99_9_ns) == (4_050_000, 5_000_000)


def test_iperf3_reports_megabits_received_at_both_ends() -> None:
    stream, server = application("iperf3"), output("iperf3-3.12-server.json")
    figures = stream.parse(output("iperf3-3.12.json"), 0)
    assert figures.payload_bytes == 152043520
    assert figures.operations == pytest.approx(152043520 * 8 / 1e6)
    assert figures.retransmits == 9
    assert stream.read_server_count(server) == pytest.approx(figures.operations)
    datagrams = application("iperf3:udp")
    assert datagrams.parse(output("iperf3-3.12-udp.json"), 0).payload_bytes == 1597400
    assert datagrams.read_server_count(output("iperf3-3.12-udp-server.json")) == pytest.approx(1597400 * 8 / 1e6)


def test_sockperf_reports_round_trips_and_its_faults() -> None:
    text = output("sockperf-3.7.txt")
    figures = application("sockperf").parse(text, 0)
    assert figures.operations > 1000
    assert figures.errors == 0
    assert figures.mean_ns is not None
    assert figures.operations_per_second == pytest.approx(1e9 / figures.mean_ns, rel=0.1)
    times = [figures.p50_ns or 0, figures.p90_ns or 0, figures.p99_ns or 0, figures.p99_9_ns or 0, figures.max_ns or 0]
    assert times == sorted(times)
    assert application("sockperf").parse(text.replace("dropped messages = 0", "dropped messages = 4"), 0).errors == 4


def test_netperf_reports_what_both_ends_counted() -> None:
    for label, name, answers in (
        ("netperf", "netperf-2.7.1.txt", 33887),
        ("netperf:udp_rr", "netperf-2.7.1-udp_rr.txt", 34873),
        ("netperf:tcp_crr", "netperf-2.7.1-tcp_crr.txt", 5000),
    ):
        chosen, text = application(label), output(name)
        figures = chosen.parse(text, 5000)
        assert (figures.operations, figures.payload_bytes, chosen.read_relayed_count(text)) == (
            answers,
            64 * answers,
            answers,
        )
        assert figures.errors == (0 if label == "netperf:udp_rr" else None)
        assert figures.mean_ns is not None
        assert figures.operations_per_second == pytest.approx(1e9 / figures.mean_ns, rel=0.01)
        times = [figures.p50_ns or 0, figures.p90_ns or 0, figures.p99_ns or 0, figures.max_ns or 0]
        assert times == sorted(times)
        fewer = chosen.read_relayed_count(text.replace(f"REMOTE_BYTES_SENT={64 * answers}", "REMOTE_BYTES_SENT=6400"))
        assert fewer == 100


def test_netperf_waits_for_a_lost_datagram_which_is_reported() -> None:
    for name, answers in (("netperf-2.7.1-request-lost.txt", 14956), ("netperf-2.7.1-answer-lost.txt", 20260)):
        figures = application("netperf:udp_rr").parse(output(name), 0)
        assert (figures.operations, figures.errors) == (answers, 1)


def test_netperf_s_streams_are_what_netserver_received() -> None:
    stream, text = application("netperf_stream"), output("netperf-2.7.1-stream.txt")
    figures = stream.parse(text, 0)
    assert (figures.payload_bytes, figures.retransmits) == (833005896, 2)
    # The end of its time cut the last send short, which netperf does not count.
    assert figures.operations == pytest.approx(832995328 * 8 / 1e6)
    assert figures.operations_per_second == pytest.approx(6646.26352)
    assert stream.read_relayed_count(text) == pytest.approx(833005896 * 8 / 1e6)
    datagrams, text = application("netperf_stream:udp"), output("netperf-2.7.1-stream-udp.txt")
    figures = datagrams.parse(text, 0)
    assert (figures.payload_bytes, figures.retransmits) == (50164512, None)
    assert figures.operations_per_second == pytest.approx(397.51862)
    assert datagrams.read_relayed_count(text) == pytest.approx(figures.operations)


@pytest.mark.parametrize(
    ("name", "change", "sentence"),
    [
        ("classic", ("", ""), "the output of netperf has no ELAPSED_TIME; its last line is '16384  131072'"),
        ("udp_rr", ("P99_LATENCY=70\n", ""), "no P99_LATENCY; its last line is 'THROUGHPUT_UNITS=10^3bits/s'"),
        ("udp_rr", ("THROUGHPUT_UNITS=10^3bits/s", "THRO"), "no THROUGHPUT_UNITS=10^3bits/s; its last line is 'THRO'"),
        ("udp_rr", ("10^3bits/s", "Trans/s"), "no THROUGHPUT_UNITS=10^3bits/s; its last line is 'THROUGHPUT_UNITS=Tr"),
        ("udp_rr", ("=34858.360", "=nan"), "no TRANSACTION_RATE; its last line is 'THROUGHPUT_UNITS=10^3bits/s'"),
    ],
)
def test_netperf_s_output_in_part_or_of_another_version_is_refused(
    name: str, change: tuple[str, str], sentence: str
) -> None:
    with pytest.raises(ProofFailed, match=re.escape(sentence)):
        application("netperf").parse(output(f"netperf-2.7.1-{name}.txt").replace(*change), 0)


def test_an_error_of_netperf_is_reported() -> None:
    text = "establish control: are you sure there is a netserver listening on 198.18.1.2 at port 12865?\n"
    for name in ("netperf", "netperf_stream"):
        with pytest.raises(
            ProofFailed, match=r"has no \w+; its last line is 'establish control: are you sure there is a"
        ):
            application(name).parse(text, 0)


def test_netperf_takes_a_number_of_connections_and_a_time_for_requests() -> None:
    lengths = {}
    for label in ("netperf", "netperf:udp_rr", "netperf:tcp_crr"):
        chosen = application(label)
        argv = chosen.drive("198.18.1.2", seconds=3, operations=700).argv
        lengths[label] = (chosen.counted, argv[argv.index("-t") + 1], argv[argv.index("-l") + 1])
    assert lengths == {
        "netperf": (False, "TCP_RR", "3"),
        "netperf:udp_rr": (False, "UDP_RR", "3"),
        "netperf:tcp_crr": (True, "TCP_CRR", "-700"),
    }


def test_netpipe_reports_half_a_round_trip_of_the_best_of_its_trials() -> None:
    text = output("nptcp-3.7.2.txt")
    figures = application("netpipe:1000B").parse(text, 0)
    assert (figures.operations, figures.errors) == (3 * 300, None)
    assert figures.mean_ns == pytest.approx(2 * 9.61e3)
    assert figures.operations_per_second == pytest.approx(1e9 / 19.22e3)
    for label, wrong in (("netpipe", text), ("netpipe:1000B", text.replace("9.61", "0.00"))):
        with pytest.raises(ProofFailed, match=r"the output of NPtcp has no line of \d+ bytes with its time"):
            application(label).parse(wrong, 0)


def test_netpipe_s_ends_have_the_same_options() -> None:
    netpipe = application("netpipe:1000B")
    server, client = netpipe.serve("198.18.1.2").argv, netpipe.drive("198.18.1.2", seconds=1, operations=0).argv
    assert client[-len(server) + 1 :] == server[1:]
    assert "198.18.1.2" in client


def test_dnsperf_counts_answers_and_other_codes_as_errors() -> None:
    text = output("dnsperf-2.10.0.txt")
    figures = application("dns").parse(text, 0)
    assert (figures.operations, figures.errors, figures.mean_ns, figures.max_ns) == (30114, 0, 528e3, 10663e3)
    assert figures.operations_per_second == pytest.approx(30108.309529)
    other = text.replace("NOERROR 30114 (100.00%)", "NOERROR 30000 (99.62%), REFUSED 114 (0.38%)")
    assert application("dns").parse(other, 0).errors == 114
    assert application("dns").parse(text.replace("sent:         30114", "sent:         30120"), 0).errors == 6


def test_dnsmasq_s_own_count_is_without_our_questions() -> None:
    dns = application("dns")
    dns.serve("198.18.1.2")
    ask = answers(A_RECORD, txt("1"), txt("31"))
    assert dns.prepare(ask)
    assert [dns.count_served(ask), dns.count_served(ask)] == [0.0, 29.0]


#: What dnsmasq answers: the header, the question, and an answer that ends with its data.
A_RECORD = "\0\7\x85\x80\0\1\0\1\0\0\0\0\1a\4test\0\0\1\0\1\xc0\x0c\0\1\0\1\0\0\0\0\0\4\xc0\0\x02\x35"


def txt(count: str) -> str:
    return f"\0\7\x85\x80\0\1\0\1\0\0\0\0\4hits\4bind\0\0\x10\0\3\xc0\x0c\0\x10\0\3\0\0\0\0\0\2{chr(len(count))}{count}"


@pytest.mark.parametrize("answer", ["", "HTTP/1.1 400 Bad Request", A_RECORD[:-1] + "\x36", "\0\x08" + A_RECORD[2:]])
def test_another_server_than_dnsmasq_is_refused(answer: str) -> None:
    with pytest.raises(ProofFailed, match=r"at port 5300 answered the query for a.test with .*192.0.2.53"):
        application("dns").prepare(answers(answer))
    with pytest.raises(ProofFailed, match=r"answered the query for hits.bind with .*: it is not dnsmasq"):
        application("dns").count_served(answers(answer))


def test_an_error_of_iperf3_is_in_the_message() -> None:
    with pytest.raises(ProofFailed, match="unable to connect to server"):
        application("iperf3").parse('{"end": {}, "error": "unable to connect to server: Connection refused"}', 0)


@pytest.mark.parametrize("name", sorted(applications()))
@pytest.mark.parametrize("text", ["", "Segmentation fault", '{"requests": 1}', '"a","b"\n"1","2"', "{}", "[1]"])
def test_output_that_cannot_be_read_is_refused_with_its_last_line(name: str, text: str) -> None:
    chosen = application(name)
    with pytest.raises(ProofFailed) as error:
        chosen.parse(text, 100)
    assert chosen.client.name in str(error.value)
    assert "\n" not in str(error.value)


@given(st.sampled_from(sorted(applications())), st.text(max_size=300))
def test_no_output_breaks_a_parser(name: str, text: str) -> None:
    with pytest.raises(ProofFailed, match=r"\A[^\n]*\Z"):
        application(name).parse(text, 100)


def answers(*texts: str) -> SendRequest:
    """Returns an ``ask`` that gives these answers one after the other."""
    left = list(texts)

    def ask(question: Question) -> str:
        return left.pop(0)

    return ask


def test_a_redis_that_loses_the_value_is_refused() -> None:
    assert application("redis").prepare(answers("+OK\r\n", "$3\r\nxxx\r\n")) == (
        "the value read back is the one written",
    )
    with pytest.raises(ProofFailed, match=r"answered GET with '\$-1"):
        application("redis").prepare(answers("+OK\r\n", "$-1\r\n"))
    with pytest.raises(ProofFailed, match="is not redis-server"):
        application("redis").prepare(answers("HTTP/1.1 400 Bad Request\r\n"))


def test_a_server_of_another_protocol_is_refused_by_each() -> None:
    for name in ("redis", "memcached", "nginx"):
        with pytest.raises(ProofFailed, match="at port"):
            application(name).prepare(answers("220 mail ESMTP\r\n"))


def test_another_body_is_refused_by_its_hash() -> None:
    chosen = application("nginx:16B")
    body = chosen.serve("198.18.1.2").files["body"]
    assert len(body) == 16
    good = f"HTTP/1.1 200 OK\r\n\r\n{body}"
    assert chosen.prepare(answers(good)) == ("the SHA-256 of the body is the file's",)
    with pytest.raises(ProofFailed, match="SHA-256"):
        chosen.prepare(answers(good[:-1] + "?"))


def test_servers_count_what_they_served() -> None:
    info = "$99\r\n# Commandstats\r\ncmdstat_set:calls=3,usec=1\r\ncmdstat_get:calls=120,usec=9\r\n"
    assert application("redis").count_served(answers(info)) == 120
    assert application("redis:set").count_served(answers(info)) == 3
    assert application("memcached").count_served(answers("STAT cmd_get 90\r\nSTAT cmd_set 10\r\nEND\r\n")) == 100
    status = "HTTP/1.1 200 OK\r\n\r\nActive connections: 1 \nserver accepts handled requests\n 6 6 84443 \nReading: 0\n"
    assert application("nginx").count_served(answers(status)) == 84443


def test_servers_listen_on_the_address_of_their_node_alone() -> None:
    # NPtcp takes no address. Its node is the rig's own: an application is not attached to containers that run.
    for name in applications().keys() - {"netpipe"}:
        start = application(name).serve("198.18.1.2")
        reported = " ".join([*start.argv, *start.files.values()])
        assert "198.18.1.2" in reported
        assert "0.0.0.0" not in reported


def test_loads_have_one_name_each() -> None:
    assert labels(["redis:get", "redis", "redis:c1", "redis:set:c16", "redis:c16:set"], "x") == (
        "redis",
        "redis:set:c16",
    )
    assert set(labels(["all"], "x")) == set(applications())


@given(st.sampled_from(sorted(applications())), st.data())
def test_a_label_is_read_back(name: str, data: st.DataObject) -> None:
    cls = applications()[name]
    load = ApplicationLoad(
        name,
        data.draw(st.sampled_from(cls.modes)) if cls.modes else "",
        data.draw(st.integers(cls.connections.least, cls.connections.most)) if cls.connections else 0,
        data.draw(st.integers(cls.message_bytes.least, cls.message_bytes.most)) if cls.message_bytes else 0,
        data.draw(st.integers(cls.rate.least, cls.rate.most)) if cls.rate else 0,
    )
    label = label_of(load, cls)
    assert is_load(label)
    assert load_of(label, applications(), "x") == load


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("rediss", "there is no application 'rediss'; did you mean redis?"),
        ("redis:pop", "redis does not take 'pop'; it takes get, set, c1 to c512, 1B to 1000000B"),
        ("redis:c0", "redis takes 1 to 512 connections, not 0"),
        ("redis:get:set", "'set' is the second choice of its kind"),
        ("iperf3:c17", "iperf3 takes 1 to 16 connections, not 17"),
    ],
)
def test_a_load_that_there_is_not_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=re.escape(sentence)):
        labels([text], "--icbench-app")


def test_another_package_brings_an_application_and_cannot_take_a_name() -> None:
    class Mine(Redis):
        name = "mine"

    class Thief(Redis):
        name = "redis"

    try:
        bring([Mine])
        assert isinstance(application("mine:set"), Mine)
        with pytest.raises(UsageError, match="two applications have the name 'redis'"):
            bring([Thief])
    finally:
        bring([])
    assert "mine" not in applications()


def test_each_application_has_what_reports_and_probes_name() -> None:
    kinds: list[type[Application]] = [Memcached, Nginx, Redis, Tls]
    for cls in kinds:
        assert cls.summary
        assert cls.server.package
        assert re.compile(cls.client.version_pattern).groups == 1


#: A client's output as it was recorded, by the label of its application.
OUTPUTS = {
    "redis": output("redis-benchmark-7.0.15.txt"),
    "memcached": output("memcaslap-1.1.4.txt"),
    "nginx": f"Running 1s test\n{WRK}\n",
    "tls": output("ab-2.3.txt"),
    "iperf3": output("iperf3-3.12.json"),
    "iperf3:udp": output("iperf3-3.12-udp.json"),
    "sockperf": output("sockperf-3.7.txt"),
    "netperf": output("netperf-2.7.1.txt"),
    "netperf:udp_rr": output("netperf-2.7.1-udp_rr.txt"),
    "netperf_stream": output("netperf-2.7.1-stream.txt"),
    "netperf_stream:udp": output("netperf-2.7.1-stream-udp.txt"),
    "netpipe:1000B": output("nptcp-3.7.2.txt"),
    "dns": output("dnsperf-2.10.0.txt"),
    "tcp_rr": summary() + "\n",
}
ODD = (
    "inf",
    "-inf",
    "nan",
    "NaN",
    "Infinity",
    "-1",
    "-0.5",
    "0",
    "9" * 400,
    "9" * 5000,
    "1e999",
    "1e-300",
    "1.2.3",
    "x",
)


def read_output(label: str, text: str) -> None:
    """Reads a client's output, and checks that each figure is a number of its kind."""
    chosen = application(label)
    figures = encode(chosen.parse(text, 5000))
    counts = {"server": chosen.read_server_count(text), "relayed": chosen.read_relayed_count(text)}
    rate = {"rate": figures["operations"] / figures["seconds"] if figures["seconds"] else 0.0}
    for name, value in {**figures, **counts, **rate}.items():
        assert value is None or (0 <= value < 1e40 and not isinstance(value, bool)), (name, value)


@pytest.mark.parametrize("label", OUTPUTS)
@given(st.data())
def test_an_output_is_figures_or_a_sentence(label: str, data: st.DataObject) -> None:
    """Each number of the output, in turn, becomes none: infinite, not a number, negative, huge, or a text."""
    text = OUTPUTS[label]
    numbers = list(re.finditer(r"-?\d+(\.\d+)?", text))
    for match in data.draw(st.lists(st.sampled_from(numbers), min_size=1, max_size=3)):
        odd = data.draw(st.sampled_from(ODD))
        text = text[: match.start()] + odd + text[match.end() :] if len(text) >= match.end() else text
    error = ""
    try:
        read_output(label, text)
    except ProofFailed as refused:
        error = str(refused)
    assert error.isprintable()
    assert not error or application(label).client.name in error


@pytest.mark.parametrize(
    ("label", "change", "what"),
    [
        ("iperf3", ('"seconds": 1.2', '"seconds": -1.2'), "seconds received"),
        ("nginx", ('"us": 1003428', '"us": Infinity'), "line of figures"),
        ("nginx", ('"p99": 4050', '"p99": -4050'), "p99"),
        ("sockperf", ("RunTime=", "RunTime=1."), "run time"),
        ("netperf", ("P99_LATENCY=", "P99_LATENCY=-"), "P99_LATENCY"),
        ("dns", ("NOERROR 30114", "NOERROR 90114"), "queries without an answer"),
        ("redis", ('"23809.53"', '"nan"'), "rate"),
    ],
)
def test_what_is_no_figure_is_named(label: str, change: tuple[str, str], what: str) -> None:
    text = OUTPUTS[label].replace(*change)
    assert text != OUTPUTS[label]
    with pytest.raises(ProofFailed, match=what):
        read_output(label, text)
