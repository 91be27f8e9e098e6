# SPDX-License-Identifier: BSD-3-Clause
"""ovs: questions to a daemon's control socket, answered in pieces, refused, or not answered."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from pytest_icbench.driver.switch.ovs.daemons import open_request, send_request
from pytest_icbench.errors import ProvisionError


@contextmanager
def daemon(path: Path, pieces: Sequence[bytes], *, silent: bool = False) -> Iterator[list[Any]]:
    """Listens, takes one question, and answers with these pieces; then it hangs up, unless it is silent."""
    questions: list[Any] = []
    done = threading.Event()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(path))
        listener.listen()

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                questions.append(json.loads(connection.recv(65536)))
                for piece in pieces:
                    connection.sendall(piece)
                if silent:
                    done.wait(10)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield questions
        finally:
            done.set()
            thread.join(5)


def test_an_answer_in_pieces_is_put_together(tmp_path: Path) -> None:
    answer = json.dumps({"id": 0, "error": None, "result": "idle: {12}\n"}).encode()
    with daemon(tmp_path / "s", [answer[:5], answer[5:-4], answer[-4:]]) as questions:
        assert send_request(tmp_path / "s", "pmd-stats-show", "-x", timeout_s=5) == "idle: {12}\n"
    assert questions == [{"id": 0, "method": "pmd-stats-show", "params": ["-x"]}]


def test_an_answer_without_a_result_is_empty(tmp_path: Path) -> None:
    with daemon(tmp_path / "s", [b'{"id":0,"result":null,"error":null}']):
        assert send_request(tmp_path / "s", "revalidator/wait", timeout_s=5) == ""


def test_an_answer_is_waited_for_later(tmp_path: Path) -> None:
    path = tmp_path / "s"
    late = [b'{"id":0,"result":"late","error":null}']
    with daemon(path, late) as questions, open_request(path, "revalidator/wait", timeout_s=5) as answer:
        assert answer() == "late"
    assert questions == [{"id": 0, "method": "revalidator/wait", "params": []}]


@pytest.mark.parametrize(
    ("pieces", "silent", "reported"),
    [
        (
            [b'{"id":0,"result":null,"error":"\\"x\\" is not a valid command\\n"}'],
            False,
            'refuses x: "x" is not a valid',
        ),
        ([b'{"id":0'], False, "does not take x: it has hung up"),
        ([], False, "does not take x: it has hung up"),
        ([b'{"id":0}'[:-1]], True, "has not answered x within 0.2 s"),
    ],
)
def test_a_refusal_a_lost_connection_and_silence_are_errors(
    tmp_path: Path, pieces: list[bytes], silent: bool, reported: str
) -> None:
    with daemon(tmp_path / "s", pieces, silent=silent), pytest.raises(ProvisionError, match=reported):
        send_request(tmp_path / "s", "x", timeout_s=0.2 if silent else 5)


def test_a_missing_socket_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ProvisionError, match="does not take x: No such file"):
        send_request(tmp_path / "s", "x", timeout_s=1)
