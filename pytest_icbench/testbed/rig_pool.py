# SPDX-License-Identifier: BSD-3-Clause
"""The living rigs: a case's and its reference link's, and the rigs of cases that take turns. At most one runs."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from pytest_icbench.errors import ConnectionLost, IcbenchError, NoRoom, ProvisionError
from pytest_icbench.model.case import Case
from pytest_icbench.model.placement import Placement


class PoolMember(Protocol):
    """The calls of a rig that the pool makes."""

    preflighted: bool

    def build(self) -> None: ...
    def pause(self) -> None: ...
    def resume(self) -> None: ...
    def check(self) -> None: ...
    def close(self) -> None: ...


R = TypeVar("R", bound=PoolMember)


@dataclass(frozen=True, slots=True)
class BuildRequest:
    """A request for a rig. Requests with the same ``key`` are served by one rig."""

    case: Case
    placement: Placement
    key: Hashable


@dataclass(frozen=True, slots=True)
class SetupRequest:
    """The requests of a case: for its rig, and for its reference link's rig if it has one."""

    rig: BuildRequest
    reference: BuildRequest | None
    #: Why a case over two hosts lacks the reference link that it would have on one host.
    missing: str | None = None


#: The key of a rig in the pool: whether it is a reference link's, and the key of its requests.
_Key = tuple[bool, Hashable]


@dataclass(frozen=True, slots=True)
class Setup(Generic[R]):
    """The rigs of a case: its own and the reference's. ``trouble`` is the reason why the reference is missing."""

    rig: R
    reference: R | None
    trouble: str | None = None


class RigPool(Generic[R]):
    """Keeps rigs while the next case can use them, and the rigs of cases that take turns.

    ``make``: returns a rig for a request, not yet built.
    """

    def __init__(self, make: Callable[[BuildRequest], R]) -> None:
        self._make = make
        #: Those that are built, or over two hosts are built in their turn; the one that was used last comes last.
        self._held: dict[_Key, R] = {}
        #: Those that were closed to make room. Their cases go on with the same objects, which are built again.
        self._closed: dict[_Key, R] = {}
        self._running: _Key | None = None
        #: Errors from closing a rig to make room for another one; they are raised for its own case.
        self._unclosed: dict[_Key, ProvisionError] = {}

    def acquire(self, requests: SetupRequest, *, keep_rigs: bool = False) -> Setup[R]:
        """Returns the case's rig, running, and the reference's, paused, or over two hosts not yet built.

        A rig whose switch has died is rebuilt. Without a reference rig the case runs, but has no ratio. Raises what
        building the case's rig raises; a rig that could not be built is closed. ``keep_rigs``: keeps the rigs of other
        cases as long as the host has room for them; they are paused.
        """
        if not keep_rigs:
            self.release(requests)
        keys = _keys(requests)
        self._bury(keys)
        if not keep_rigs:
            self._closed.clear()
        rig = self._run(keys[0], requests.rig, keys)
        if requests.reference is None:
            return Setup(rig, None, requests.missing)
        if keys[1] in self._held:
            self._held[keys[1]] = self._held.pop(keys[1])
            return Setup(rig, self._held[keys[1]])
        if requests.reference.case.remote:  # it takes the same NICs as the case's rig, and is built in its turn
            self._held[keys[1]] = reference = self._make(requests.reference)
            return Setup(rig, reference)
        trouble = None
        try:
            self._run(keys[1], requests.reference, keys)
        except ProvisionError as error:
            trouble = f"reference link {requests.reference.case.switch}: {error}"
        self._run(keys[0], requests.rig, keys)
        return Setup(rig, self._held[keys[1]] if trouble is None else None, trouble)

    def _bury(self, keys: Sequence[_Key]) -> None:
        """Closes rigs whose switch has died since they were used. No case fails for that; a warning is given."""
        for key in [key for key in keys if key in self._held]:
            try:
                self._held[key].check()
            except ConnectionLost:
                raise
            except ProvisionError as error:
                self._close(key)
                warnings.warn(f"a switch died between two cases and is started again: {error}", stacklevel=2)

    def _run(self, key: _Key, request: BuildRequest, keep: Sequence[_Key]) -> R:
        """Pauses all rigs but this one, which is built if necessary.

        ``keep``: rigs that are not closed to make room for it.
        """
        if self._running != key:
            self._pause(keep)
            if key in self._held:
                self._resume(self._held[key])
            else:
                self._build(key, request, keep)
            self._running = key
        self._held[key] = self._held.pop(key)
        return self._held[key]

    def _pause(self, keep: Sequence[_Key]) -> None:
        running = self._running
        if running is None:
            return
        try:
            self._held[running].pause()
        except ProvisionError:
            if running in keep:
                raise
            self._close(running)  # the fault is not this case's, whose rig only has to run alone
        self._running = None

    @staticmethod
    def _resume(rig: R) -> None:
        seen = rig.preflighted
        rig.resume()
        rig.preflighted = seen  # the launches of its cases show whether frames still pass

    def _build(self, key: _Key, request: BuildRequest, keep: Sequence[_Key]) -> None:
        if key not in self._closed:
            self._closed[key] = self._make(request)
        rig = self._closed[key]
        while True:
            try:
                rig.build()
            except BaseException as error:
                rig.close()
                others = [other for other in self._held if other not in keep]
                if not isinstance(error, ProvisionError) or not others:
                    raise
                # Without room one rig fewer may do; what else failed may be a name that another rig has.
                for other in others[:1] if isinstance(error, NoRoom) else others:
                    try:
                        self._close(other)
                    except ProvisionError as fault:
                        self._unclosed[other] = fault
            else:
                self._held[key] = self._closed.pop(key)
                return

    def _close(self, key: _Key) -> None:
        """Closes a rig, which is built again when it is requested."""
        if self._running == key:
            self._running = None
        self._closed[key] = rig = self._held.pop(key)
        rig.close()

    def rest(self) -> None:
        """Pauses the running rig, so that a fault in pausing counts for its own case. Raises ProvisionError."""
        running = self._running
        if running is not None:
            self._held[running].pause()
            self._running = None

    def finish(self, requests: SetupRequest, others: Iterable[SetupRequest]) -> None:
        """Closes the rigs of a case that is over, but those that others share. Raises the first error, after all."""
        shared = {key for other in others for key in _keys(other)}
        with ExitStack() as closing:
            for key in reversed([key for key in _keys(requests) if key not in shared]):
                self._closed.pop(key, None)
                if key in self._held:
                    self._running = None if self._running == key else self._running
                    closing.callback(self._held.pop(key).close)
                if (error := self._unclosed.pop(key, None)) is not None:
                    raise error

    def drop(self, requests: SetupRequest) -> None:
        """Closes the rigs of a case, whose state is unknown. Errors are dropped: an earlier one says more."""
        for key in _keys(requests):
            if key in self._held:
                with suppress(IcbenchError):
                    self._close(key)

    def release(self, next_requests: SetupRequest | None) -> None:
        """Closes what the next case cannot use; all with None. Raises the first error, after closing everything."""
        keep = () if next_requests is None else _keys(next_requests)
        self._closed.clear()
        with ExitStack() as closing:
            # The stack closes the one that runs first, and the case's before the reference's.
            for key in sorted(self._held, key=lambda key: (key == self._running, not key[0])):
                if key not in keep:
                    self._running = None if self._running == key else self._running
                    closing.callback(self._held.pop(key).close)

    def close(self) -> None:
        """Closes everything, at the end, or after an error that leaves the rigs' state unknown. Idempotent."""
        self.release(None)


def _keys(requests: SetupRequest) -> tuple[_Key, ...]:
    reference = requests.reference
    return ((False, requests.rig.key), *([] if reference is None else [(True, reference.key)]))
