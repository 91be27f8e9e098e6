# SPDX-License-Identifier: BSD-3-Clause
"""Which rigs live: at most two, a case's and its reference link's, and of these at most one runs."""

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
    """What the pool does with a rig."""

    def build(self) -> None: ...
    def pause(self) -> None: ...
    def resume(self) -> None: ...
    def check(self) -> None: ...
    def close(self) -> None: ...


R = TypeVar("R", bound=RigLike)


@dataclass(frozen=True, slots=True)
class RigRequest:
    """A rig that a case needs. ``key``: two with the same are served by one rig."""

    case: Case
    placement: Placement
    key: Hashable


@dataclass(frozen=True, slots=True)
class RigRequests:
    """The rigs of a case."""

    rig: RigRequest
    reference: RigRequest | None
    #: Why a case that has a reference link elsewhere has none here.
    missing: str | None = None


@dataclass(slots=True)
class _Held(Generic[R]):
    key: Hashable
    rig: R


@dataclass(frozen=True, slots=True)
class Rigs(Generic[R]):
    """The rigs of a case; ``trouble`` says why a reference that it needs is missing."""

    rig: R
    reference: R | None
    trouble: str | None = None


class RigPool(Generic[R]):
    """Keeps rigs while the next case can use them.

    Args:
        make: a rig, not yet built.
    """

    def __init__(self, make: Callable[[RigRequest], R]) -> None:
        self._make = make
        self._held: dict[bool, _Held[R]] = {}

    def acquire(self, need: RigRequests) -> Rigs[R]:
        """The case's rig, running, and the reference's, paused, or over two hosts not yet built.

        One whose switch has died meanwhile is built anew.
        A reference that cannot be had costs the ratio, not the case. Raises what building the case's rig raises; a rig
        that could not be built is closed.
        """
        self.release(need)
        self._bury()
        fresh = False not in self._held
        if fresh and (idle := self._held.get(True)) is not None:
            idle.rig.pause()  # only what is being built or measured runs
        rig = self._get(False, need.rig)
        if need.reference is None:
            return Rigs(rig, None, need.missing)
        if True in self._held:
            return Rigs(rig, self._held[True].rig)
        if need.reference.case.remote:  # it takes what the case's rig holds: it is built when its turn comes
            return Rigs(rig, self._get(True, need.reference, build=False))
        rig.pause()
        trouble = None
        try:
            self._get(True, need.reference).pause()
        except ProvisionError as error:
            trouble = f"reference link {need.reference.case.switch}: {error}"
        rig.resume()
        return Rigs(rig, self._held[True].rig if trouble is None else None, trouble)

    def _bury(self) -> None:
        """Closes rigs whose switch has died since they were used: that costs no case, and is not kept quiet either."""
        for reference, held in list(self._held.items()):
            try:
                held.rig.check()
            except ConnectionLost:
                raise
            except ProvisionError as error:
                del self._held[reference]
                held.rig.close()
                warnings.warn(f"a switch died between two cases, and is started anew: {error}", stacklevel=2)

    def _get(self, reference: bool, wanted: RigRequest, *, build: bool = True) -> R:
        held = self._held.get(reference)
        if held is None:
            rig = self._make(wanted)
            try:
                if build:
                    rig.build()
            except BaseException:
                rig.close()
                raise
            held = self._held[reference] = _Held(wanted.key, rig)
        return held.rig

    def release(self, next_need: RigRequests | None) -> None:
        """Closes what the next case cannot use. Raises the first error after having closed everything it should."""
        wanted = {False: next_need.rig, True: next_need.reference} if next_need is not None else {}
        with ExitStack() as closing:
            for reference in (True, False):  # a stack: the case's rig is closed first
                held, keep = self._held.get(reference), wanted.get(reference)
                if held is not None and (keep is None or keep.key != held.key):
                    del self._held[reference]
                    closing.callback(held.rig.close)

    def close(self) -> None:
        """Closes everything: at the end, and after an error, when the rigs' state is not known. Idempotent."""
        self.release(None)
