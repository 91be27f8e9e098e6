# SPDX-License-Identifier: BSD-3-Clause
"""Calls to a Python on another host: execnet's gateway through the system's ssh.

Every call has a time limit. A thread of execnet takes the replies. A wait on descriptors has to include ``wake``.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from pytest_icbench import errors
from pytest_icbench.errors import ConnectionLost, IcbenchError, ProvisionError, UsageError, WorkloadError
from pytest_icbench.model.calls import Call
from pytest_icbench.model.codec import DamagedData, from_json
from pytest_icbench.testbed.remote import ssh_command
from pytest_icbench.version import package_version

#: Version of the calls; raised with every change of what crosses the connection.
PROTOCOL = 3
#: How long the remote Python may take to answer, in seconds.
CONNECT_S = 30.0
#: How long a call may take, in seconds. The start of a switch can take half a minute.
CALL_S = 120.0
#: After a longer silence, in seconds, the other end considers this one dead.
SILENCE_S = 20.0
_ALIVE_EVERY_S = 2.0
ALIVE = "alive"
#: The texts of an answer that is an error; ``reason`` and ``evidence`` of Invalid alone.
_ERROR_TEXTS = ("error", "message", "reason", "evidence")

#: Runs on the remote host before the package is imported, and reports which version is installed.
_FIRST = """
import json, os, sys
sys.path[:] = [part for part in sys.path if part]
answer = {"python": "%d.%d.%d" % sys.version_info[:3], "package": None, "protocol": None}
answer["client"] = os.environ.get("SSH_CONNECTION", "").partition(" ")[0]
try:
    from importlib.metadata import version
    answer["package"] = version("pytest-icbench")
except Exception:
    pass
try:
    from pytest_icbench.testbed.remote.connection import PROTOCOL
    from pytest_icbench.version import package_version
    answer["protocol"], answer["package"] = PROTOCOL, package_version()
except Exception as error:
    answer["error"] = "%s: %s" % (type(error).__name__, error)
channel.send(json.dumps(answer))
if channel.receive() == "serve":
    from pytest_icbench.testbed.remote.server import serve
    serve(channel)
"""


def other_package(theirs: str | None, why: str, option: str, python: str = "") -> str | None:
    """Returns a sentence if a remote host has another version of this package, None if it has the same.

    Args:
        theirs: its version; None if there is no package.
        why: the reason for a missing package.
        option: the one that names another Python.
        python: version of the remote Python, with a blank before it.
    """
    ours = package_version()
    if theirs is None:
        return (
            f"the remote host's Python{python} has no pytest-icbench ({why}): install version {ours} there, or name the"
            f" Python that has it with {option}"
        )
    return (
        None
        if theirs == ours
        else f"the remote host has pytest-icbench {theirs}, this one {ours}: install the same on both"
    )


def parse_reply(message: object) -> tuple[int, dict[str, Any]]:
    """Returns the number of a call and its answer: ``result``, or ``error`` with its texts.

    Raises DamagedData if the message is no answer, because the other end is not trusted.
    """
    where = "an answer of the remote host"
    if not isinstance(message, str | bytes):
        raise DamagedData(f"{where} is not text")
    data = from_json(message, where)
    number = data.get("id") if isinstance(data, dict) else None
    if not isinstance(number, int) or not ("result" in data or "error" in data):
        raise DamagedData(f"{where} lacks its number or its result")
    if "error" in data and not all(isinstance(data.get(key, ""), str) for key in _ERROR_TEXTS):
        raise DamagedData(f"{where} has an error whose message is not text")
    return number, data


class Reply:
    """The future answer to a call."""

    def __init__(self) -> None:
        self.arrived = threading.Event()
        self.data: dict[str, Any] = {}


class Connection:
    """A connection to one host, opened by the constructor, which compares versions before anything else.

    Args:
        host: ``[USER@]HOST``.
        python: path of the remote Python; None to look for one.

    Attributes:
        wake: becomes readable when a reply arrives or the connection is lost.
        python: version of the remote Python.
        client: this host's address as the other end sees it; empty if the other end does not know it.

    Raises UsageError in one sentence if such a Python cannot be reached, or has another version of the package.
    """

    def __init__(self, host: str, python: str | None = None) -> None:
        try:
            import execnet
        except ImportError:
            raise UsageError("a remote host needs execnet: pip install 'pytest-icbench[remote]'") from None
        self._host = host
        self._replies: dict[int, Reply] = {}
        self._numbers = itertools.count(1)
        self._lost: str | None = None
        self._damage = ""
        self._closing = threading.Event()
        self.wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        #: Files in memory only: they vanish with this process, however it ends.
        self._files = [os.memfd_create(name, os.MFD_CLOEXEC) for name in ("icbench-ssh-log", "icbench-ssh-pid")]
        self._log, self._process = (Path(f"/proc/{os.getpid()}/fd/{file}") for file in self._files)
        self._group = execnet.Group(execmodel="thread")
        try:
            self._channel = self._connect(python)
            self._compare_versions()
        except BaseException:
            self._shut(wait_s=1.0)
            raise
        self._channel.setcallback(self._hear, endmarker=None)
        threading.Thread(target=self._tell_alive, daemon=True, name="icbench-alive").start()

    def _connect(self, python: str | None) -> Any:
        guard = threading.Timer(CONNECT_S, self._kill_ssh)
        guard.daemon = True
        guard.start()
        try:
            gateway = self._group.makegateway(ssh_command.gateway_spec(self._host, python, self._log, self._process))
            return gateway.remote_exec(_FIRST)
        except (OSError, EOFError, AssertionError) as error:
            if isinstance(error, AssertionError) and not self._words():
                raise UsageError(
                    "no connection to the remote host: its shell prints something before Python starts; let the"
                    " start-up files of non-interactive shells be silent"
                ) from None
            raise self._no_way() from None
        finally:
            guard.cancel()

    def _kill_ssh(self) -> None:
        with suppress(OSError, ValueError):
            os.kill(int(self._process.read_text(encoding="ascii")), signal.SIGKILL)

    def _words(self) -> str:
        try:
            return self._log.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""

    def _no_way(self) -> UsageError:
        return UsageError(f"no connection to the remote host: {ssh_command.explain(self._words())}")

    def _compare_versions(self) -> None:
        try:
            answer = from_json(str(self._channel.receive(CONNECT_S)), "the first answer of the remote host")
            self.python, self.client = str(answer["python"]), str(answer["client"])
            theirs = None if answer["package"] is None else str(answer["package"])
        except (OSError, EOFError, self._channel.TimeoutError):
            raise self._no_way() from None
        except (KeyError, TypeError):
            raise DamagedData("the first answer of the remote host is not from pytest-icbench") from None
        if theirs is not None and theirs == package_version() and answer.get("protocol") != PROTOCOL:
            theirs += " of another build"
        sentence = other_package(theirs, str(answer.get("error")), "--icbench-remote-python", f" {self.python}")
        if sentence is not None:
            raise UsageError(sentence)
        self._channel.send("serve")

    def _tell_alive(self) -> None:
        while not self._closing.wait(_ALIVE_EVERY_S):
            try:
                self._channel.send(ALIVE)
            except OSError:
                return

    def _hear(self, message: str | None) -> None:
        """Takes a reply, or the end of the connection (None), in execnet's thread."""
        try:
            if message is None:
                self._lose("closed" if self._closing.is_set() else "lost")
            else:
                number, data = parse_reply(message)
                reply = self._replies.pop(number, Reply())
                reply.data = data
                reply.arrived.set()
        except DamagedData as error:
            self._damage = str(error)
            with suppress(OSError):
                self._channel.close()  # the other end gives its host back
            self._lose("lost")
        with suppress(OSError):
            os.eventfd_write(self.wake, 1)

    def _lose(self, how: str) -> None:
        """Marks the connection as lost, and wakes all that wait for a reply."""
        self._lost = self._lost or how
        for reply in list(self._replies.values()):
            reply.arrived.set()

    @property
    def live(self) -> bool:
        """Whether calls can be made."""
        return self._lost is None

    def begin(self, name: str, *arguments: Any) -> Reply:
        """Sends a call; returns its reply, for ``result``. Raises ConnectionLost."""
        number, reply = next(self._numbers), Reply()
        self._replies[number] = reply
        try:
            if not self.live:
                raise OSError
            self._channel.send(json.dumps({"id": number, "call": name, "arguments": arguments}))
        except OSError:
            self._replies.pop(number, None)
            raise self._gone() from None
        return reply

    def result(self, reply: Reply, timeout_s: float = CALL_S) -> Any:
        """Waits for a reply. Raises what the call raised, ConnectionLost, or ProvisionError after ``timeout_s``."""
        deadline = time.monotonic() + timeout_s
        while not reply.arrived.wait(min(1.0, max(0.0, deadline - time.monotonic()))):
            if time.monotonic() >= deadline:
                raise ProvisionError(f"the remote host has not answered within {timeout_s:g} s: check whether it is up")
        if not reply.data:
            raise self._gone()
        if "error" in reply.data:
            raise decode_error(reply.data)
        return reply.data["result"]

    def call(self, name: str, *arguments: Any, timeout_s: float = CALL_S) -> Any:
        """Calls and returns the result. Raises as ``begin`` and ``result`` do."""
        return self.result(self.begin(name, *arguments), timeout_s)

    def _gone(self) -> ConnectionLost:
        why = self._damage or ssh_command.explain_loss(self._words())
        return ConnectionLost(
            f"the connection to the remote host was lost{f' ({why})' if why else ''}: it cleans up by itself,"
            " and the next case connects again"
        )

    def quiet(self) -> None:
        """Makes ``wake`` unreadable until the next reply."""
        with suppress(BlockingIOError):
            os.eventfd_read(self.wake)

    def close(self) -> None:
        """Ends the Python at the other end, which gives its host back first. Idempotent."""
        self._shut(wait_s=15.0)

    def _shut(self, wait_s: float) -> None:
        if self._closing.is_set():
            return
        self._closing.set()
        with suppress(OSError, EOFError):
            self._group.terminate(timeout=wait_s)
        for file in (self.wake, *self._files):
            os.close(file)


def decode_answer(call: Call, data: Any) -> Any:
    """Returns what a call returned at the other end. Raises DamagedData that names that end."""
    try:
        return call.decode_result(data)
    except DamagedData as error:
        raise DamagedData(f"on the remote host: {error}: install the same pytest-icbench there") from None


def decode_error(data: dict[str, Any]) -> IcbenchError:
    """Returns the error of the other end as one of this end."""
    message = f"on the remote host: {data.get('message', '')}"
    kind = getattr(errors, str(data["error"]), ProvisionError)
    if kind is WorkloadError:
        return WorkloadError(message, crashed=bool(data.get("crashed")))
    if kind is errors.Invalid:
        return errors.Invalid(data.get("reason", "died"), f"on the remote host: {data.get('evidence', '')}")
    return kind(message) if isinstance(kind, type) and issubclass(kind, IcbenchError) else ProvisionError(message)
