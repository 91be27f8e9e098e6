# SPDX-License-Identifier: BSD-3-Clause
"""Whatever a driver raises or returns becomes one sentence that names driver and method."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from pytest_icbench.driver.application import registry as application_registry
from pytest_icbench.driver.application.protocol import ProofFailed
from pytest_icbench.driver.application.redis import Redis
from pytest_icbench.driver.guard import (
    call_guarded,
    make_application,
    make_node,
    make_switch,
    node_findings,
    node_treatment,
)
from pytest_icbench.driver.node import registry
from pytest_icbench.driver.node.netns import NetnsNode
from pytest_icbench.driver.node.protocol import NodeSpec
from pytest_icbench.driver.switch.kernel.linux_bridge import LinuxBridge
from pytest_icbench.driver.switch.protocol import Needs
from pytest_icbench.errors import DriverFault, ProvisionError, Unsupported, UsageError
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.model.switch_facts import Batches, Busy, PortCounters, SwitchFacts

METHODS = (
    *(
        "probe",
        "probe_api",
        "probe_port",
        "probe_pairs",
        "needs",
        "devices",
        "start",
        "facts",
        "check",
        "fault",
        "set_ageing",
        "counters",
    ),
    *("busy", "batches", "prepare_traffic", "assignment", "pause", "resume", "stop"),
)


class Silent(Exception):
    def __str__(self) -> str:
        raise ValueError


def switch(**methods: Any) -> Any:
    return make_switch(type("Foo", (LinuxBridge,), {"name": "foo", **methods}))


def raising(error: BaseException) -> Any:
    def method(*_: object, **__: object) -> None:
        raise error

    return method


def returning(value: object) -> Any:
    return lambda *_, **__: value


@pytest.mark.parametrize("method", METHODS)
def test_every_method_is_guarded(method: str) -> None:
    with pytest.raises(DriverFault) as caught:
        getattr(switch(**{method: raising(KeyError("nix"))}), method)()
    place = f"(test_guard.py:{raising.__code__.co_firstlineno + 2})"
    assert str(caught.value) == f"switch 'foo': {method}() raised KeyError: 'nix' {place}"
    assert isinstance(caught.value, ProvisionError)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (SystemExit(7), "SystemExit: 7"),
        (pytest.skip.Exception("of its own"), "Skipped: of its own"),
        (Silent(), "Silent"),
        (OSError(28, "No space left on device"), "OSError: [Errno 28] No space left on device"),
        (RuntimeError("a\x1b[31m\nb" + "x" * 5000), "RuntimeError: a?[31m b" + "x" * 292 + "…"),
    ],
)
def test_the_text_is_one_printable_line(error: BaseException, text: str) -> None:
    with pytest.raises(DriverFault) as caught:
        switch(check=raising(error)).check()
    assert str(caught.value).startswith(f"switch 'foo': check() raised {text} (test_guard.py:")
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("error", [Unsupported("no such card"), ProvisionError("it died"), KeyboardInterrupt()])
def test_errors_of_this_package_and_ctrl_c_are_the_driver_s_to_raise(error: BaseException) -> None:
    with pytest.raises(type(error)) as caught:
        switch(check=raising(error)).check()
    assert caught.value is error


@pytest.mark.parametrize(
    ("method", "value"),
    [
        *(("probe", None), ("probe", "1.0"), ("probe", SwitchFacts(version=object()))),  # type: ignore[arg-type]
        *(("facts", SwitchFacts(config={"a": object()})), ("facts", SwitchFacts(config={"a": float("nan")}))),
        *(("needs", None), ("needs", Needs("7")), ("needs", Needs(-1)), ("needs", Needs(True))),  # type: ignore[arg-type]
        *(("devices", None), ("devices", ["/dev/a", "/dev/b"]), ("devices", [[Path("/dev/a")]])),
        *(("start", None), ("start", []), ("start", ["a", "b"])),
        *(("counters", 7), ("counters", [1]), ("counters", [PortCounters(0, "a", 1)])),  # type: ignore[arg-type]
        *(("busy", 1), ("busy", Busy(busy_cycles="a"))),  # type: ignore[arg-type]
        *(("batches", (1, 2)), ("batches", Batches(None, 1))),  # type: ignore[arg-type]
        *(("assignment", [1]), ("assignment", {"0": 1})),
    ],
)
def test_a_wrong_result_is_an_error(method: str, value: object) -> None:
    with pytest.raises(DriverFault, match=rf"^switch 'foo': {method}\(\) returned .*: it has to be ") as caught:
        getattr(switch(**{method: returning(value)}), method)(None, None, ["a", "b"])
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("method", "value"),
    [
        *(("probe", SwitchFacts("1.0", {"a": [1, None]}, "/bin/x")), ("needs", Needs(64, 1))),
        *(("devices", ()), ("devices", [[Path("/dev/a")], []]), ("check", "ignored")),
        *(("counters", None), ("counters", [PortCounters(0, 1, 2)]), ("busy", None), ("busy", Busy(1, 2, far=Busy(3)))),
        *(("batches", None), ("batches", Batches(1, 2)), ("assignment", None), ("assignment", {0: 3})),
    ],
)
def test_a_right_result_passes(method: str, value: object) -> None:
    assert getattr(switch(**{method: returning(value)}), method)(None, None, ["a", "b"]) is value


def test_a_constructor_and_a_missing_method() -> None:
    with pytest.raises(DriverFault, match=r"^switch 'foo': __init__\(\) raised KeyError: 1 "):
        switch(__init__=raising(KeyError(1)))
    bare: Any = type("Bare", (), {"name": "bare"})
    with pytest.raises(DriverFault, match=r"^switch 'bare': it has no method batches\(\)$"):
        make_switch(bare).batches()


def test_other_attributes_are_the_driver_s() -> None:
    guarded_switch = switch(daemon=7)
    assert (guarded_switch.daemon, guarded_switch.name) == (7, "foo")
    guarded_switch.daemon = 8
    assert guarded_switch.daemon == 8


def test_a_faulty_node_is_named_with_its_method(monkeypatch: pytest.MonkeyPatch) -> None:
    def box(**methods: Any) -> type[NetnsNode]:
        return type("Box", (NetnsNode,), {"kind": "box", **methods})

    spec = NodeSpec("x", [0])
    monkeypatch.setattr(registry, "_kinds", {"box": box(pause=raising(IndexError("list")), start=returning("up"))})
    node = make_node("box", HostSession.probing(), spec)
    with pytest.raises(DriverFault, match=r"^node 'box': pause\(\) raised IndexError: list "):
        node.pause()
    with pytest.raises(DriverFault, match=r"^node 'box': start\(\) returned 'up' \(str\): it has to be NodeFacts$"):
        node.start()
    monkeypatch.setattr(registry, "_kinds", {"box": box(treatment=staticmethod(returning({"a": object()})))})
    with pytest.raises(DriverFault, match=r"^node 'box': treatment\(\) returned "):
        node_treatment("box")
    with pytest.raises(DriverFault, match=r"^node 'box': findings\(\) returned "):
        node_findings(box(findings=staticmethod(returning(["a"]))))


@pytest.mark.parametrize(
    "method",
    ["serve", "drive", "parse", "prepare", "count_served", "read_server_count", "read_relayed_count", "tolerance"],
)
def test_a_faulty_application_is_named_with_its_method(monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    def made(function: Any) -> Any:
        broken = type("Broken", (Redis,), {method: function})
        monkeypatch.setitem(application_registry._known, "redis", broken)
        return getattr(make_application("redis:set", {}), method)

    with pytest.raises(DriverFault, match=rf"^application 'redis': {method}\(\) raised KeyError: 'nix' \(test_guard"):
        made(raising(KeyError("nix")))()
    with pytest.raises(DriverFault, match=rf"^application 'redis': {method}\(\) returned .*: it has to be "):
        made(returning(float("inf")))()


def test_an_application_of_this_package_is_what_it_was() -> None:
    application = make_application("redis:set", {"redis-benchmark": "7.0"})
    output = (Path(__file__).parent / "recorded_applications" / "redis-benchmark-7.0.15.txt").read_text()
    assert application.parse(output, 5000).operations == 5000
    assert application.describe_program(application.client) == "redis-benchmark 7.0"
    with pytest.raises(ProofFailed, match="no line of figures"):
        application.parse("", 5000)
    with pytest.raises(UsageError):
        make_application("nonsense", {})


def test_the_place_is_the_driver_s_and_not_the_guard_s() -> None:
    with pytest.raises(DriverFault) as caught:
        call_guarded("switch 'foo'", "check", lambda: next(iter(())))
    assert "(test_guard.py:" in str(caught.value)
    assert sys.exc_info() == (None, None, None)
