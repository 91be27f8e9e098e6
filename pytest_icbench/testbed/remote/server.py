# SPDX-License-Identifier: BSD-3-Clause
"""The server at the other end of a connection: a host as its caller sees it, with a session and rigs.

The server takes one call at a time. When the connection ends, also by the death of the other side, everything that was
made for it is removed. ``Testbed`` is its counterpart on the host on which pytest runs.
"""

from __future__ import annotations

import errno
import itertools
import json
import logging
import os
import queue
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pytest_icbench.driver.node.idle_polling import poll_idle
from pytest_icbench.driver.node.precedence import precede
from pytest_icbench.driver.switch.registry import builtin_switches
from pytest_icbench.driver.workload.workload_version import WorkloadVersion, workload_version
from pytest_icbench.errors import IcbenchError, Invalid, ProvisionError, Unsupported, UsageError, WorkloadError
from pytest_icbench.host import host_facts
from pytest_icbench.host.findings import Finding
from pytest_icbench.host.host_session import RUN_DIR, HostSession, SessionOptions
from pytest_icbench.host.resource.cpu import Topology
from pytest_icbench.host.resource.frequency import prepare_cpus
from pytest_icbench.host.signals import SignalGuard, shield_signals
from pytest_icbench.model.placement import Placement, Policy
from pytest_icbench.model.rig import RigSpec
from pytest_icbench.testbed.cpu_placement import plan, plan_given, resolve_auto
from pytest_icbench.testbed.host_examination import examine
from pytest_icbench.testbed.host_rig import HostRig
from pytest_icbench.testbed.probe import find_refusal, probe
from pytest_icbench.testbed.remote.connection import ALIVE, SILENCE_S
from pytest_icbench.testbed.remote.host_calls import HOST_CALLS, RIG_CALLS, BuildAnswer, HostCalls, SwitchQuestion
from pytest_icbench.testbed.remote.uplinks import check_uplink
from pytest_icbench.testbed.undo_kinds import UNDO_KINDS


class HostEnd(HostCalls):
    """The host at this end of a connection, which answers the calls.

    ``wake``: descriptor that becomes readable when there is another call, which ends a poll.
    """

    def __init__(self, wake: int | None = None) -> None:
        self._wake = wake
        self._switches = builtin_switches()
        self._session = HostSession.probing()
        self._rigs: dict[str, HostRig] = {}
        self._numbers = itertools.count(1)

    def answer(self, name: str, arguments: Sequence[Any]) -> Any:
        """Answers a call by its name, with plain JSON data in and out.

        Raises UsageError for an unknown call, and what the call raises.
        """
        if name in HOST_CALLS:
            return HOST_CALLS[name].answer(self, arguments)
        if name not in RIG_CALLS:
            raise UsageError(f"there is no call '{name}': install the same version on both hosts")
        rig, *rest = arguments
        if rig not in self._rigs:
            raise ProvisionError("the rig is not built")
        return RIG_CALLS[name].answer(self._rigs[rig], rest)

    def versions(self) -> WorkloadVersion:
        return workload_version()

    def examine(self, pf: str | None, asked: tuple[str, ...]) -> tuple[Finding, ...]:
        return tuple(examine(pf=pf, asked=asked))

    def unsupported_reason(self, question: SwitchQuestion) -> str | None:
        cls = self._switches.get(question.switch)
        if cls is None:
            return f"{question.switch} comes from another package, and such a switch runs on one host only"
        binary = None if question.binary is None else Path(question.binary)
        if binary is not None and not binary.is_file():
            return f"there is no file {binary}, which is named for {question.switch}"
        uplink = question.uplink
        if uplink is not None and (reason := find_refusal(lambda: check_uplink(uplink))) is not None:
            return reason
        session = HostSession.probing(SessionOptions(question.hugepage_size_kib))
        return find_refusal(lambda: probe(cls, question.port, question.api, session, node=question.node, binary=binary))

    def resolve_auto(self, needs: tuple[tuple[int, int], ...]) -> Policy:
        return resolve_auto(Topology.read(self._session.root), needs)

    def plan(self, workers: int, endpoints: int, policy: Any, cpus: tuple[int, ...] = ()) -> Placement:
        topology = Topology.read(self._session.root)
        if cpus:
            return plan_given(topology, workers=workers, endpoints=cpus, policy=policy)
        return plan(topology, workers=workers, endpoints=endpoints, policy=policy)

    def identity(self) -> dict[str, Any]:
        return host_facts.identity(self._session.root)

    def treatment(self) -> dict[str, Any]:
        known = host_facts.treatment(self._session.root)
        return {**known, "workload": asdict(self.versions()), "precedence": self._session.precedence}

    def conditions(self, cpus: tuple[int, ...]) -> dict[str, Any]:
        return host_facts.conditions(self._session.root, cpus)

    def hold(self, options: SessionOptions, precedence: str) -> tuple[str, ...]:
        if self._session.live:
            return ()
        try:
            self._session = HostSession(UNDO_KINDS, options)
        except Unsupported as error:
            raise ProvisionError(str(error)) from None
        if precedence == "all":
            precede(self._session)
        return tuple(self._session.recovered)

    def prepare_cpus(self, cpus: tuple[int, ...]) -> tuple[str, ...]:
        poll_idle(self._session, cpus)
        return tuple(prepare_cpus(self._session, set(cpus)).warnings)

    def build(self, spec: RigSpec) -> BuildAnswer:
        rig = HostRig(self._session, self._switches, wake=self._wake)
        rig_facts = rig.prepare(spec)
        rig_id = f"x{next(self._numbers)}"
        self._rigs[rig_id] = rig
        return BuildAnswer(rig_id, rig_facts)

    def undo(self, rig: str) -> None:
        built = self._rigs.pop(rig, None)
        if built is not None:
            built.undo()

    def give_back(self) -> None:
        failures = []
        for rig in [self._rigs.pop(rig_id) for rig_id in list(self._rigs)]:
            try:
                rig.undo()
            except (ProvisionError, WorkloadError) as error:
                failures.append(str(error))
        session, self._session = self._session, HostSession.probing()
        session.close()
        if failures:
            raise ProvisionError("\n".join(failures))


log = logging.getLogger(__name__)


def serve(channel: Any) -> None:
    """Serves an execnet channel until its end."""
    Server(channel).run()


class Server:
    """The main thread's loop over the calls of a channel, which a thread of execnet receives."""

    def __init__(self, channel: Any) -> None:
        self._channel = channel
        self._calls: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._end = HostEnd(self._wake)

    def _hear(self, message: str | None) -> None:
        self._calls.put(message)
        if message != ALIVE:
            os.eventfd_write(self._wake, 1)

    def run(self) -> None:
        """Answers calls until the channel ends, or the other side is silent for ``SILENCE_S`` seconds."""
        self._channel.setcallback(self._hear, endmarker=None)
        guard = SignalGuard()
        guard.install()
        try:
            while (message := self._calls.get(timeout=SILENCE_S)) is not None:
                if message == ALIVE:
                    continue
                self._quiet()
                self._channel.send(json.dumps(self._answer(json.loads(message))))
        except (queue.Empty, OSError, KeyboardInterrupt):
            log.info("the other side is gone")
        finally:
            with shield_signals(), suppress(IcbenchError):  # what remains is in the journal
                self._end.give_back()
            guard.restore()

    def _quiet(self) -> None:
        """Leaves ``wake`` readable only if there is another call."""
        with suppress(BlockingIOError):
            os.eventfd_read(self._wake)
        if not self._calls.empty():
            os.eventfd_write(self._wake, 1)

    def _answer(self, call: dict[str, Any]) -> dict[str, Any]:
        try:
            answer = {"result": self._end.answer(call["call"], call["arguments"])}
        except Exception as error:  # a bug here is reported: the server has to live to give the host back
            answer = _encode_error(error)
        return {"id": call["id"], **answer}


def _encode_error(error: Exception) -> dict[str, Any]:
    """Returns an error as plain data; ``decode_error`` is the inverse. Errors of other code become ProvisionErrors."""
    match error:
        case Invalid():
            return {"error": "Invalid", "message": "", "reason": error.reason, "evidence": error.evidence}
        case WorkloadError():
            return {"error": "WorkloadError", "message": str(error), "crashed": error.crashed}
        case UsageError():  # SessionBusyError too
            return {"error": "UsageError", "message": str(error)}
        case IcbenchError():
            return {"error": type(error).__name__, "message": str(error)}
        case OSError():
            return {"error": "ProvisionError", "message": _system_error(error)}
        case _:
            return {"error": "ProvisionError", "message": f"{type(error).__name__}: {error}"}


def _system_error(error: OSError) -> str:
    where = f" ({error.filename})" if error.filename else ""
    if error.errno == errno.ENOSPC:
        return f"its disk is full{where or f' (below {RUN_DIR}, mostly)'}: free some space there"
    return f"{error.strerror or error}{where}"
