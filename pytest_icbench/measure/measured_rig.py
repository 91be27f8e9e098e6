# SPDX-License-Identifier: BSD-3-Clause
"""The part of a rig that a measurement needs: so little that it can be tested without a host."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path

from pytest_icbench.model.endpoint import Address, Endpoint
from pytest_icbench.model.function_facts import FunctionTerms
from pytest_icbench.model.noisy_neighbour import NoisyNeighbourUse
from pytest_icbench.model.placement import Placement
from pytest_icbench.model.rig import RigCalls


class MeasuredRig(RigCalls, ABC):
    """A built rig; its endpoints are numbered as ``Case.path`` says.

    Attributes:
        preflighted: whether traffic passed in both directions since the rig was built or resumed.
        endpoints: the endpoints by index; empty while the rig is not built.
        placement: CPUs of the endpoints, by index.
        peers: addresses at which endpoints see their peers, by index; empty without network functions between them.
        files: directory that all nodes share with the host, at the same path; once the rig is built.
        terms: what launches have to show of the network function of each pair; empty without any.
        noisy_neighbour_use: what the noisy neighbour did in this rig's launches; None without one.
        untimed: why times of the endpoints are none, in one sentence, so that no launch is valid; None: they are.
        tsc_hz: cycles per second of the endpoints' clock, known after a preflight.
    """

    preflighted: bool
    endpoints: Sequence[Endpoint]
    placement: Placement
    files: Path
    peers: Sequence[Address] = ()
    terms: Sequence[FunctionTerms] = ()
    untimed: str | None = None
    tsc_hz: int | None = None
    noisy_neighbour_use: NoisyNeighbourUse | None = None

    @abstractmethod
    def build(self) -> None:
        """Builds the rig. Raises ProvisionError."""

    @abstractmethod
    def close(self) -> None:
        """Removes everything that was built. Idempotent. Raises ProvisionError if something remains."""
