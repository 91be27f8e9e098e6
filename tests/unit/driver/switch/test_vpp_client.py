# SPDX-License-Identifier: BSD-3-Clause
"""The connection to vpp's API."""

from __future__ import annotations

import multiprocessing
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_icbench.driver.switch.vpp import client as vpp_client
from pytest_icbench.errors import Unsupported


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
