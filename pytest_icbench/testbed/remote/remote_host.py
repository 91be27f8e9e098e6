# SPDX-License-Identifier: BSD-3-Clause
"""The second host of a run. The first question connects to it, the first rig holds it, and it is given back at the end.

A lost connection costs the case that used it. The next case connects again, and then undoes what the lost one left.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from pytest_icbench.config import values
from pytest_icbench.config.options import Options
from pytest_icbench.driver.workload.workload_version import workload_version
from pytest_icbench.errors import IcbenchError, ProvisionError, Unsupported, UsageError
from pytest_icbench.host.findings import Finding, disturbance, lack, success
from pytest_icbench.host.host_session import SessionOptions
from pytest_icbench.measure.summary.summarize import Environment
from pytest_icbench.model.calls import Call
from pytest_icbench.model.codec import encode
from pytest_icbench.model.placement import Placement, Policy
from pytest_icbench.model.uplink import Uplink
from pytest_icbench.testbed.case_rig import Rig
from pytest_icbench.testbed.remote.connection import Connection, decode_answer
from pytest_icbench.testbed.remote.host_calls import HostCalls, SwitchQuestion
from pytest_icbench.testbed.remote.remote_rig import RemoteRig
from pytest_icbench.version import package_version

#: How long the other end of a lost connection may take to notice and to clean up, in seconds.
_CLEANING_S = 30.0
_CLEANING_POLL_S = 0.5


class RemoteCalls(HostCalls):
    """A ``HostEnd`` at the other end of a connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def forward(self, call: Call, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        answer = self._connection.call(call.name, *call.encode_arguments(call.bind(arguments, keywords)))
        return decode_answer(call, answer)


class RemoteHost:
    """The second host of a run.

    Args:
        connect: opens a connection; raises UsageError.
        options: the options of its session.
        precedence: the value of ``--icbench-precedence``.
        fixed: returns the CPUs whose frequency is fixed, when the host is taken; None: none is fixed.
    """

    def __init__(
        self,
        connect: Callable[[], Connection],
        options: SessionOptions,
        *,
        precedence: str = "none",
        fixed: Callable[[], set[int]] | None = None,
    ) -> None:
        self._connect = connect
        self._options = options
        self._precedence = precedence
        self._fixed = fixed
        self._connection: Connection | None = None
        self._refusal: str | None = None
        self._held = False
        self._left_behind = False
        self._reasons: dict[SwitchQuestion, str | None] = {}
        self._plans: dict[tuple[int, int, str, tuple[int, ...]], Placement | str] = {}
        self._facts: dict[str, dict[str, Any]] = {}
        #: Problems so far, for the result's conditions.
        self.warnings: list[str] = []

    @classmethod
    def of_run(cls, options: Options, session: SessionOptions, fixed: Callable[[], set[int]]) -> RemoteHost:
        """Returns the host that a run's options name.

        Args:
            session: the options of this host's session.
            fixed: as for the constructor.
        """
        assert options.remote is not None
        connect = partial(Connection, options.remote, options.remote_python)
        return cls(connect, session, precedence=options.precedence, fixed=fixed)

    @property
    def connection(self) -> Connection:
        """A live connection. Raises ProvisionError; a first refusal stands for the rest of the run."""
        if self._connection is not None and not self._connection.live:
            self._drop()
        if self._connection is None:
            if self._refusal is not None and not self._left_behind:
                raise ProvisionError(self._refusal)
            try:
                self._connection = self._connect()
            except UsageError as error:
                self._refusal = str(error)
                raise ProvisionError(self._refusal) from None
        return self._connection

    @property
    def calls(self) -> HostCalls:
        """The calls of the host. Raises as ``connection`` does."""
        return RemoteCalls(self.connection)

    @property
    def client(self) -> str:
        """This host's address of the connection, empty if the other end does not know it. Raises ProvisionError."""
        return self.connection.client

    def _drop(self) -> None:
        """Drops a connection that was lost."""
        connection, self._connection = self._connection, None
        self._left_behind = self._left_behind or self._held
        self._held = False
        if connection is not None:
            with suppress(IcbenchError):
                connection.close()

    def check(self) -> None:
        """Raises UsageError in one sentence if the host cannot be reached."""
        try:
            _ = self.connection
        except ProvisionError as error:
            raise UsageError(str(error)) from None

    def unsupported_reason(self, switch: str, port: str, api: str, node: str, uplink: Uplink) -> None:
        """Raises Unsupported with the reason if the host cannot run it. The answer is cached. Raises ProvisionError."""
        question = SwitchQuestion(
            switch=switch,
            port=port,
            api=api,
            node=node,
            hugepage_size_kib=self._options.hugepage_size_kib,
            binary=self._options.binaries.get(switch),
            uplink=uplink,
        )
        if question not in self._reasons:
            self._reasons[question] = self.calls.unsupported_reason(question)
        reason = self._reasons[question]
        if reason is not None:
            raise Unsupported(f"on the remote host: {reason}")

    def plan(self, workers: int, endpoints: int, policy: str, cpus: Sequence[int] = ()) -> Placement:
        """Places a case as ``cpu_placement.plan`` does, or ``plan_given`` where CPUs are given.

        Raises Unsupported, or ProvisionError without a connection.
        """
        key = (workers, endpoints, policy, tuple(cpus))
        if key not in self._plans:
            try:
                self._plans[key] = self.calls.plan(*key)
            except Unsupported as error:
                self._plans[key] = str(error)
        planned = self._plans[key]
        if isinstance(planned, str):
            raise Unsupported(planned)
        return planned

    def resolve_auto(self, needs: Sequence[tuple[int, int]]) -> Policy:
        """Returns what ``cpu_placement.resolve_auto`` does there. Raises ProvisionError."""
        return self.calls.resolve_auto(tuple(needs))

    def identity(self) -> dict[str, Any]:
        """Returns the identity of the host, cached: see ``host.host_facts``. Raises ProvisionError."""
        if "identity" not in self._facts:
            self._facts["identity"] = self.calls.identity()
        return self._facts["identity"]

    def treatment(self) -> dict[str, Any]:
        """Returns the treatment of the host, cached: see ``host.host_facts``. Raises ProvisionError."""
        if "treatment" not in self._facts:
            self._facts["treatment"] = self.calls.treatment()
        return self._facts["treatment"]

    def around(self, around: Environment, rig: Rig, name: str | None) -> Environment:
        """Returns the surroundings of a case's figures with the second host's facts added as ``remote``.

        Args:
            around: the first host's.
            name: of the second host; None if results may not have it.
        """
        there, away = rig.placement.there, rig.placement.away
        assert there is not None
        cpus = tuple(sorted({*there.switch, *(there.endpoints[index] for index in away)}))
        conditions = {**self.calls.conditions(cpus), "warnings": self.warnings}
        placed = {
            "switch": list(there.switch),
            "endpoints": [there.endpoints[index] for index in away],
            "service": list(there.service),
            "numa_node": there.numa_node,
            "where": there.where,
        }
        python, switch = self.connection.python, encode(rig.remote_switch)
        treatment = {**self.treatment(), "switch": switch, "cpus": placed, "python": python}
        return replace(
            around,
            identity={**around.identity, "remote": self.identity()},
            treatment={**around.treatment, "away": list(away), "remote": treatment},
            conditions={**around.conditions, "remote": {**conditions, **({"host": name} if name else {})}},
        )

    def hold(self) -> None:
        """Takes the host, and undoes what a dead session left there. Idempotent.

        Raises UsageError if another session runs there, ProvisionError if it cannot be had for another reason.
        """
        calls = self.calls
        if self._held:
            return
        deadline = time.monotonic() + (_CLEANING_S if self._left_behind else 0.0)
        while True:
            try:
                calls.hold(self._options, self._precedence)
                break
            except UsageError:  # the busy session may be the end of a lost connection of this run
                if time.monotonic() >= deadline:
                    raise
                time.sleep(_CLEANING_POLL_S)
        self._held, self._left_behind = True, False
        if self._fixed is not None and (cpus := self._fixed()):
            self.warnings = list(calls.prepare_cpus(tuple(sorted(cpus))))

    def rig(self) -> RemoteRig:
        """Returns a rig that is not yet built, and takes the host for it. Raises ProvisionError."""
        try:
            self.hold()
        except UsageError as error:
            raise ProvisionError(str(error)) from None
        return RemoteRig(self.connection)

    def close(self) -> None:
        """Gives the host back. Idempotent. Raises ProvisionError with what remains there."""
        if self._connection is not None and not self._connection.live:
            self._drop()
        if self._left_behind:
            self._recover()
        connection, self._connection = self._connection, None
        if connection is None:
            return
        try:
            if self._held:
                RemoteCalls(connection).give_back()
        finally:
            self._held = False
            connection.close()

    def _recover(self) -> None:
        """Connects once more, so that what a lost connection left is undone."""
        try:
            self.hold()
        except (UsageError, ProvisionError) as error:
            self._left_behind = False
            raise ProvisionError(
                f"the remote host was lost and may not be as before ({error}): run `icbench recover` there"
            ) from None


def examine_remote(host: str, python: str | None, pf: str | None, asked: Collection[str] = ()) -> list[Finding]:
    """Returns findings about the connection and the versions, then the findings of ``icbench doctor`` there.

    Args:
        host: ``[USER@]HOST``.
        python: path of the remote Python; None to look for one.
        pf: the card that ``sriov`` is to use there.
        asked: the switches to examine there, as ``testbed.doctor.examine`` takes them.

    Raises UsageError if such a Python cannot be reached, or has another version of the package.
    """
    values.host_name(host, "--remote")
    if python is not None:
        values.python_path(python, "--remote-python")
    connection = Connection(host, python)
    try:
        findings = [
            success(
                "connection",
                f"ssh leads to Python {connection.python} with pytest-icbench {package_version()}, as here",
            ),
            _workload(connection),
        ]
        return [*findings, *RemoteCalls(connection).examine(pf, tuple(asked))]
    finally:
        connection.close()


def _workload(connection: Connection) -> Finding:
    try:
        there, here = RemoteCalls(connection).versions(), workload_version()
    except IcbenchError as error:
        return lack("versions", str(error))
    versions = f"workload {there.workload} with DPDK {there.dpdk or 'absent'} there"
    if (there.workload, there.dpdk) == (here.workload, here.dpdk):
        return success("versions", f"{versions}, the same here")
    return disturbance(
        "versions",
        f"{versions}, {here.workload} with DPDK {here.dpdk or 'absent'} here",
        "build both with the same DPDK if both ends are to be equal",
    )
