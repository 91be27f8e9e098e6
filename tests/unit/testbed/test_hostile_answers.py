# SPDX-License-Identifier: BSD-3-Clause
"""What a second host answers is read as another machine's: a sentence, whatever it is."""

from __future__ import annotations

import json
import os
import random
import threading
from collections.abc import Callable
from typing import Any
from unittest.mock import Mock

import pytest

from pytest_icbench.errors import ConnectionLost, IcbenchError, UsageError
from pytest_icbench.model.codec import encode
from pytest_icbench.model.rig import Polled
from pytest_icbench.testbed.remote.connection import Connection, Reply, decode_error, parse_reply
from pytest_icbench.testbed.remote.host_calls import HOST_CALLS, RIG_CALLS
from tests.hostile import mutated_data, mutated_text, refusals

#: Answers by the call that they are for; None: an error.
ANSWERS: list[tuple[str | None, dict[str, Any]]] = [
    ("poll", {"id": 1, "result": encode(Polled(((0, '{"type":"ready"}'), (3, "x")), {0: 0, 3: -9}))}),
    ("launch", {"id": 2, "result": "l4"}),
    ("versions", {"id": 3, "result": {"version": "1.0", "dpdk": "22.11", "apis": ["udp"]}}),
    ("resolve_auto", {"id": 4, "result": "dedicated"}),
    (None, {"id": 5, "error": "Invalid", "message": "", "reason": "died", "evidence": "testpmd died"}),
    (None, {"id": 6, "error": "WorkloadError", "message": "it died", "crashed": True}),
    (None, {"id": 7, "error": "ProvisionError", "message": "no veth there"}),
]
_CALLS = {**HOST_CALLS, **RIG_CALLS}


def read_answer(chance: random.Random) -> None:
    """Reads an answer that was changed. Raises UsageError, also where the answer is an error that can be read."""
    call, answer = chance.choice(ANSWERS)
    text = json.dumps(mutated_data(answer, chance)) if chance.random() < 0.7 else ""
    _, data = parse_reply(text or mutated_text(json.dumps(answer), chance))
    if "error" in data:
        error = decode_error(data)
        assert all(line.isprintable() for line in str(error).split("\n"))  # a log may follow on further lines
        raise UsageError(str(error))
    if call is not None:
        _CALLS[call].decode_result(data["result"])


def test_a_hostile_answer_gets_a_sentence() -> None:
    refused, wrong = refusals(read_answer, 500)
    assert wrong == {}
    assert refused > 200


@pytest.fixture
def connection(monkeypatch: pytest.MonkeyPatch) -> Connection:
    """A connection to no host, which has sent one call, of number 1."""
    made = Connection.__new__(Connection)
    monkeypatch.setattr(made, "_words", lambda: "", raising=False)
    made._replies, made._lost, made._damage = {1: Reply()}, None, ""
    made._closing = threading.Event()
    made._channel = Mock()
    made.wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
    return made


@pytest.mark.parametrize("message", ["", "[]", '{"id": [1]}', '{"id": 1}', "\ud800", b"\xff", 7, '{"result": 1}'])
def test_a_message_that_is_no_answer_ends_the_connection(connection: Connection, message: Any) -> None:
    """It was an exception in a thread of execnet, and the call waited for two minutes."""
    reply = connection._replies[1]
    connection._hear(message)
    assert not connection.live
    connection._channel.close.assert_called_once_with()
    with pytest.raises(ConnectionLost, match="an answer of the remote host"):
        connection.result(reply, timeout_s=0.1)
    os.close(connection.wake)


@pytest.mark.parametrize("error", [{"error": "Invalid"}, {"error": "WorkloadError"}, {"error": "nonsense"}])
def test_an_error_without_words_is_an_error(error: dict[str, Any]) -> None:
    _, data = parse_reply(json.dumps({"id": 1, **error}))
    make: Callable[[dict[str, Any]], IcbenchError] = decode_error
    assert "on the remote host" in str(make(data))
