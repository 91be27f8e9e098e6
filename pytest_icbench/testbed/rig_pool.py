# SPDX-License-Identifier: BSD-3-Clause
"""The living rigs: at most two, a case's and its reference link's, of which at most one runs."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from pytest_icbench.errors import ConnectionLost, ProvisionError
from pytest_icbench.model.case import Case

if TYPE_CHECKING:
    from pytest_icbench.model.placement import Placement


class RigLike(Protocol):
    """The part of a rig that the pool uses."""

    def build(self) -> None: ...
    def pause(self) -> None: ...
    def resume(self) -> None: ...
    def check(self) -> None: ...
    def close(self) -> None: ...


R = TypeVar("R", bound=RigLike)


@dataclass(frozen=True, slots=True)
class RigRequest:
    """A rig that a case needs. Requests with the same ``key`` are served by one rig."""

    case: Case
    placement: Placement
    key: Hashable


@dataclass(frozen=True, slots=True)
class RigRequests:
    """The rigs that a case needs."""

    rig: RigRequest
    reference: RigRequest | None
    #: Why a case over two hosts lacks the reference link that it would have on one host.
    missing: str | None = None


@dataclass(slots=True)
class _Held(Generic[R]):
    key: Hashable
    rig: R


@dataclass(frozen=True, slots=True)
class Rigs(Generic[R]):
    """The rigs of a case. ``trouble`` says why its reference is missing."""

    rig: R
    reference: R | None
    trouble: str | None = None


class RigPool(Generic[R]):
    """Keeps rigs while the next case can use them.

    Args:
        make: returns a rig for a request, not yet built.
    """

    def __init__(self, make: Callable[[RigRequest], R]) -> None:
        self._make = make
        self._held: dict[bool, _Held[R]] = {}

    def acquire(self, requests: RigRequests) -> Rigs[R]:
        """Returns the case's rig, running, and the reference's, paused, or over two hosts not yet built.

        A rig whose switch has died meanwhile is built anew. Without a reference rig the case has no ratio, but runs.
        Raises what building the case's rig raises; a rig that could not be built is closed.
        """
        self.release(requests)
        self._bury()
        fresh = False not in self._held
        if fresh and (idle := self._held.get(True)) is not None:
            idle.rig.pause()  # only the rig that is built or measured runs
        rig = self._get(False, requests.rig)
        if requests.reference is None:
            return Rigs(rig, None, requests.missing)
        if True in self._held:
            return Rigs(rig, self._held[True].rig)
        if requests.reference.case.remote:  # it takes the same NICs as the case's rig, and is built in its turn
            return Rigs(rig, self._get(True, requests.reference, build=False))
        rig.pause()
        trouble = None
        try:
            self._get(True, requests.reference).pause()
        except ProvisionError as error:
            trouble = f"reference link {requests.reference.case.switch}: {error}"
        rig.resume()
        return Rigs(rig, self._held[True].rig if trouble is None else None, trouble)

    def _bury(self) -> None:
        """Closes rigs whose switch has died since they were used. That costs no case, but there is a warning."""
        for reference, held in list(self._held.items()):
            try:
                held.rig.check()
            except ConnectionLost:
                raise
            except ProvisionError as error:
                del self._held[reference]
                held.rig.close()
                warnings.warn(f"a switch died between two cases, and is started anew: {error}", stacklevel=2)

    def _get(self, reference: bool, request: RigRequest, *, build: bool = True) -> R:
        held = self._held.get(reference)
        if held is None:
            rig = self._make(request)
            try:
                if build:
                    rig.build()
            except BaseException:
                rig.close()
                raise
            held = self._held[reference] = _Held(request.key, rig)
        return held.rig

    def release(self, next_requests: RigRequests | None) -> None:
        """Closes what the next case cannot use; all with None. Raises the first error, after closing everything."""
        next_by_kind = {False: next_requests.rig, True: next_requests.reference} if next_requests is not None else {}
        with ExitStack() as closing:
            for reference in (True, False):  # the stack closes the case's rig first
                held, keep = self._held.get(reference), next_by_kind.get(reference)
                if held is not None and (keep is None or keep.key != held.key):
                    del self._held[reference]
                    closing.callback(held.rig.close)

    def close(self) -> None:
        """Closes everything, at the end, or after an error that leaves the rigs' state unknown. Idempotent."""
        self.release(None)
