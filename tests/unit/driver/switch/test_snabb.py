# SPDX-License-Identifier: BSD-3-Clause
"""snabb: what it is started with, its counters' files, and what becomes of errors."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_icbench.driver.switch import snabb as module
from pytest_icbench.driver.switch.snabb import Snabb
from pytest_icbench.errors import ProvisionError, Unsupported
from pytest_icbench.model.endpoint import Address, VhostUser
from tests.unit.recording_host import RecordingSession, attachments_of, program, spec_of

VERSION = "snabb 2022.07 (396-gf32729274)\nCopyright\n\nSnabb is open source software.\n"


@pytest.fixture
def session(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    directory = tmp_path_factory.mktemp("n")
    found = RecordingSession(directory, lambda words, text: VERSION)
    found.binaries["snabb"] = program(directory, "snabb")
    monkeypatch.setattr(module, "wait_for_sockets", lambda paths, daemon, timeout_s: daemon.check())
    yield found
    found.spawner.close()


def start(session: Any, pairs: int = 1, **changes: Any) -> tuple[Snabb, list[Any]]:
    switch = Snabb()
    return switch, switch.start(session, spec_of(session.dir, **changes), attachments_of(session.dir, pairs))


@pytest.mark.parametrize(("mode", "forwards"), [(None, "bridge"), ("wire", "wire")])
def test_its_places_are_the_rigs(session: Any, mode: str | None, forwards: str) -> None:
    switch, endpoints = start(session, mode=mode)
    (started,) = session.spawner.started
    sockets = [str(session.dir / "s" / f"p{index}") for index in (0, 1)]
    base = str(session.dir / "var-run")
    assert started.argv[3:7] == ["sh", base, str(session.dir), str(session.binaries["snabb"])]
    assert started.argv[7:] == ["snsh", str(module._PROGRAM), forwards, "60", *sockets]
    assert started.mount_ns
    assert started.cpus == [2]
    assert endpoints == [VhostUser(Address.of(1, side), path) for side, path in zip("ab", sockets, strict=True)]  # type: ignore[arg-type]
    assert switch.facts().version == "2022.07 (396-gf32729274)"


def test_its_program_is_in_the_package() -> None:
    text = module._PROGRAM.read_text()
    assert "bridge|wire MAC_TIMEOUT_S SOCKET" in text


@pytest.mark.parametrize(
    ("mode", "links"),
    [
        (None, ["p0.tx -> bridge.p0", "bridge.p0 -> p0.rx", "p1.tx -> bridge.p1", "bridge.p1 -> p1.rx"]),
        ("wire", ["p0.tx -> p1.rx", "p1.tx -> p0.rx"]),
    ],
)
def test_counters_are_those_of_its_links(session: Any, mode: str | None, links: list[str]) -> None:
    switch, _ = start(session, mode=mode)
    state = session.dir / "var-run" / "snabb" / "4711" / "links"
    for number, link in enumerate(links):
        (state / link).mkdir(parents=True)
        for name, value in (("txpackets", 100), ("rxpackets", 90), ("txdrop", 5)):
            (state / link / f"{name}.counter").write_bytes(struct.pack("=Q", value + number))
    ports = switch.counters() or []
    found = [(port.index, port.rx_packets, port.tx_packets, port.tx_dropped) for port in ports]
    if mode is None:
        assert found == [(0, 100, 91, 6), (1, 102, 93, 8)]
    else:
        assert found == [(0, 100, 91, 6), (1, 101, 90, 5)]


def test_a_counter_that_is_missing_is_an_error(session: Any) -> None:
    switch, _ = start(session)
    with pytest.raises(ProvisionError, match=r"snabb's counter .*txpackets.counter cannot be read"):
        switch.counters()


def test_packets_for_full_links_fit() -> None:
    # 1000 + 2000 + 4000 packets are the first steps that reach 4 links of 1023.
    assert Snabb().needs(1, 1).hugepages_mib == 7000 * 11264 // 2**20 + 4
    assert Snabb().needs(4, 1).hugepages_mib > 4 * 1023 * 4 * 10240 // 2**20


def test_what_is_not_snabb_is_refused(session: Any, tmp_path: Path) -> None:
    found = Snabb().probe(session, None)
    assert found.version is not None
    assert found.program == str(session.binaries["snabb"])
    other: Any = RecordingSession(tmp_path, lambda words, text: "ls (GNU coreutils) 9.1\nCopyright")
    with pytest.raises(Unsupported, match=r"is not snabb.*: name one with --icbench-binary snabb=PATH"):
        Snabb().probe(other, program(tmp_path, "ls"))


def test_other_huge_pages_than_the_kernels_default_are_refused(session: Any) -> None:
    session.hugepage_size_kib = 1048576
    with pytest.raises(Unsupported, match=r"default size \(2048 KiB\) only"):
        Snabb().probe(session, None)


def test_without_it_the_remedy_is_named(session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    session.binaries.clear()
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(Unsupported, match=r"snabb is not installed: .* with --icbench-binary snabb=PATH"):
        Snabb().probe(session, None)


def test_death_is_reported_with_the_log(session: Any) -> None:
    switch, _ = start(session)
    session.spawner.processes[0].code = 1
    with pytest.raises(ProvisionError, match=r"(?s)snabb ended with exit code 1; .*last words"):
        switch.check()
    switch.stop()
    switch.stop()
    assert session.spawner.processes[0].stopped == 1


def test_a_socket_path_too_long_is_refused(session: Any, tmp_path: Path) -> None:
    deep = tmp_path / ("x" * 100)
    deep.mkdir()
    with pytest.raises(ProvisionError, match="holds 107"):
        Snabb().start(session, spec_of(deep), attachments_of(deep))
    assert session.spawner.started == []


def test_ageing_is_that_of_its_start(session: Any) -> None:
    switch, _ = start(session, config={"mac_timeout_s": 90})
    assert session.spawner.started[0].argv[10] == "90"
    switch.set_ageing(90)
    with pytest.raises(ProvisionError, match="snabb forgets after 90 s, which is fixed at its start"):
        switch.set_ageing(60)
