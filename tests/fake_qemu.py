# SPDX-License-Identifier: BSD-3-Clause
"""A program that answers as QEMU and a machine in it do, so that nodes can be tested where there is neither.

Its commands run on the host; those that set a machine up are only written to ``calls`` beside the monitor. The
environment makes it fail: FAKE_QEMU is ``dies`` (at once), ``mute`` (no command is answered), ``refuses`` (no device),
or a word of a command, which then fails.
"""

from __future__ import annotations

import json
import os
import re
import selectors
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

MAGIC, HEADER = 0x69636231, struct.Struct("=IIII")
TIME, RUN, INPUT, SIGNAL, OUTPUT, ERROR, EXIT = range(7)
FAULT = os.environ.get("FAKE_QEMU", "")


def receive(client: socket.socket, length: int) -> bytes:
    data = b""
    while len(data) < length:
        more = client.recv(length - len(data))
        if not more:
            raise ConnectionError
        data += more
    return data


class Guest:
    """One port of the machine, whose connections each run one command."""

    def __init__(self, calls: Path | None = None) -> None:
        self._calls = calls
        self.offsets: list[int] = []

    def serve(self, server: socket.socket) -> None:
        while True:
            client, _ = server.accept()
            with client:
                try:
                    self._connection(client)
                except OSError:
                    continue

    def _connection(self, client: socket.socket) -> None:
        while True:
            _, number, kind, length = HEADER.unpack(receive(client, HEADER.size))
            body = receive(client, length)
            if kind == TIME:
                self.send(client, number, TIME, struct.pack("=Q", time.monotonic_ns() // 2))
            elif kind == RUN:
                (offset,) = struct.unpack_from("=q", body)
                self.offsets.append(offset)
                self.run(client, number, body[8:].decode().split("\0")[1:-1])
                return

    def send(self, client: socket.socket, number: int, kind: int, body: bytes) -> None:
        client.sendall(HEADER.pack(MAGIC, number, kind, len(body)) + body)

    def run(self, client: socket.socket, number: int, words: list[str]) -> None:
        if words[1:2] == ["guest"]:
            assert self._calls is not None
            with self._calls.open("a") as calls:
                calls.write(" ".join(words[2:]) + "\n")
            if words[2] == FAULT:
                self.send(client, number, ERROR, b"it failed\n")
            self.send(client, number, EXIT, struct.pack("=i", (words[2] == FAULT) << 8))
            return
        pipe = subprocess.PIPE
        with subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True) as process:
            try:
                status = self._pass_on(client, number, process)
            except OSError:
                os.killpg(process.pid, signal.SIGKILL)
                raise
        self.send(client, number, EXIT, struct.pack("=i", status))

    def _pass_on(self, client: socket.socket, number: int, process: subprocess.Popen[bytes]) -> int:
        assert process.stdout
        assert process.stderr
        with selectors.DefaultSelector() as selector:
            selector.register(client, selectors.EVENT_READ, None)
            selector.register(process.stdout, selectors.EVENT_READ, OUTPUT)
            selector.register(process.stderr, selectors.EVENT_READ, ERROR)
            while len(selector.get_map()) > 1:
                for key, _ in selector.select():
                    if key.data is None:
                        self._take(client, process)
                    elif data := os.read(key.fd, 32768):
                        self.send(client, number, key.data, data)
                    else:
                        selector.unregister(key.fileobj)
        code = process.wait()
        return -code if code < 0 else code << 8

    def _take(self, client: socket.socket, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin
        _, _, kind, length = HEADER.unpack(receive(client, HEADER.size))
        body = receive(client, length)
        if kind == SIGNAL:
            os.killpg(process.pid, struct.unpack("=i", body)[0])
        elif kind == INPUT and body:
            process.stdin.write(body)
            process.stdin.flush()
        elif kind == INPUT:
            process.stdin.close()


def answer(request: dict[str, Any]) -> dict[str, Any]:
    if request["execute"] == "query-cpus-fast":
        return {"return": [{"cpu-index": 0, "thread-id": os.getpid()}]}
    if request["execute"] == "device_add" and FAULT == "refuses":
        return {"error": {"class": "GenericError", "desc": "no room on the bus"}}
    return {"return": {}}


def serve_monitor(server: socket.socket, calls: Path) -> None:
    while True:
        client, _ = server.accept()
        with client, client.makefile("rw") as stream:
            print(json.dumps({"QMP": {}}), file=stream, flush=True)
            for line in stream:
                request = json.loads(line)
                if request["execute"].endswith(("add", "-add")):
                    with calls.open("a") as file:
                        file.write(f"{request['execute']} {json.dumps(request['arguments'])}\n")
                print(json.dumps(answer(request)), file=stream, flush=True)


def listening(path: str) -> socket.socket:
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    server.listen()
    return server


def main() -> None:
    if "--version" in sys.argv:
        print("QEMU emulator version 0.0 (fake)")
        return
    if FAULT == "dies":
        sys.exit("Kernel panic")
    line = " ".join(sys.argv)
    monitor = re.search(r"-qmp unix:([^,]+)", line)
    assert monitor
    calls = Path(monitor[1]).parent / "calls"
    threads = [threading.Thread(target=serve_monitor, args=(listening(monitor[1]), calls))]
    servers: list[socket.socket] = []
    for path in re.findall(r"socket,id=c\d,path=([^,]+)", line):
        servers.append(listening(path))
        if FAULT != "mute":
            threads.append(threading.Thread(target=Guest(calls).serve, args=(servers[-1],)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
