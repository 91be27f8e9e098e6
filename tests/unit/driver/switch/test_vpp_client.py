# SPDX-License-Identifier: BSD-3-Clause
"""The connection to vpp's API."""

from __future__ import annotations

import fcntl
import multiprocessing
import os
import socket
import struct
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pytest_icbench.driver.switch.vpp import client as vpp_client
from pytest_icbench.errors import ProvisionError, Unsupported


def test_the_binding_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vpp_papi", None)
    with pytest.raises(Unsupported, match=r"pip install 'pytest-icbench\[vpp\]'"):
        vpp_client.check_installed()


@pytest.mark.parametrize("alive", [True, False])
def test_no_thread_of_a_closed_connection_is_left(monkeypatch: pytest.MonkeyPatch, alive: bool) -> None:
    """As papi has them: queues, each with a thread from its first item on, which it leaves to whoever collects them."""

    class Papi:
        def __init__(self, **arguments: Any) -> None:
            self.transport = SimpleNamespace(q=multiprocessing.Queue(), sque=multiprocessing.Queue())

        def connect(self, name: str) -> None:
            self.transport.q.put("an answer that nobody reads")

        def disconnect(self) -> None:
            self.transport.sque.put(True)
            if not alive:
                raise OSError("Sendall error")

    monkeypatch.setitem(sys.modules, "vpp_papi", SimpleNamespace(VPPApiClient=Papi))
    before = set(threading.enumerate())
    client = vpp_client.VppClient(Path("/api"), Path("/stats"))
    assert set(threading.enumerate()) > before
    client.close()
    assert set(threading.enumerate()) == before


#: The head of its statistics: the layout's version, where it is, changes so far, whether one is going on, directories.
HEAD = struct.Struct("QPQQPP")
BASE = 0x7000_0000_0000


@contextmanager
def statistics(path: Path, *, changing: bool = False, entries: int = 0, sealed: bool = True) -> Iterator[int]:
    """Serves a connection as a VPP does whose directory begins at 64; yields the descriptor of its memory."""
    memory = os.memfd_create("stats", os.MFD_ALLOW_SEALING)
    os.truncate(memory, 4096)
    os.pwrite(memory, HEAD.pack(2, BASE, 1, changing, BASE + 64, 0), 0)
    os.pwrite(memory, struct.pack("I", entries), 64 - 8)
    if sealed:
        fcntl.fcntl(memory, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
        server.bind(str(path))
        server.listen()

        def serve() -> None:
            with server.accept()[0] as connection:
                socket.send_fds(connection, [b"x"], [memory])

        thread = threading.Thread(target=serve)
        thread.start()
        yield memory
        thread.join(5)
    os.close(memory)


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> vpp_client.VppClient:
    pytest.importorskip("vpp_papi")
    monkeypatch.setattr(vpp_client, "_ANSWER_S", 0.3)
    made: Any = object.__new__(vpp_client.VppClient)
    made._stats_socket = tmp_path / "stats.sock"
    return cast("vpp_client.VppClient", made)


def test_statistics_are_read_as_they_are(tmp_path: Path, client: vpp_client.VppClient) -> None:
    with statistics(tmp_path / "stats.sock"), client.statistics() as stats:
        assert stats.ls("/if") == []


@pytest.mark.parametrize(
    ("made", "says"),
    [
        ({"changing": True}, "did not get readable within 0.3 s"),
        ({"entries": 2**30}, "did not get readable within 0.3 s"),
        ({"sealed": False}, "their memory is not sealed"),
    ],
    ids=["stopped within a change", "damaged", "can be taken away"],
)
def test_statistics_of_a_stopped_or_hostile_vpp_end_in_a_sentence(
    tmp_path: Path, client: vpp_client.VppClient, made: dict[str, Any], says: str
) -> None:
    began = time.monotonic()
    with (
        statistics(tmp_path / "stats.sock", **made),
        pytest.raises(ProvisionError, match=rf"statistics on .*stats\.sock cannot be read: .*{says}"),
        client.statistics(),
    ):
        pass
    assert time.monotonic() - began < 5


def test_memory_of_statistics_cannot_be_taken_away_while_they_are_read(
    tmp_path: Path, client: vpp_client.VppClient
) -> None:
    """A reading of what is not there any more would end this process."""
    with statistics(tmp_path / "stats.sock") as memory, client.statistics() as stats:
        with pytest.raises(PermissionError):
            os.truncate(memory, 0)
        assert stats.version == 2
