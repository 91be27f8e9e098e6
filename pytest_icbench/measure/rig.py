# SPDX-License-Identifier: BSD-3-Clause
"""What a measurement needs of a rig: so little that it can be tested without a host."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_icbench.model.endpoint import Endpoint
from pytest_icbench.model.placement import Placement
from pytest_icbench.model.rig import RigCalls


class MeasuredRig(RigCalls):
    """A built rig; its endpoints are numbered as ``Case.path`` says.

    Attributes:
        preflighted: whether traffic was seen in both directions since the rig was built or resumed.
        endpoints: by index; empty while it is not built.
        placement: CPUs of the endpoints, by index.
    """

    preflighted: bool
    endpoints: Sequence[Endpoint]
    placement: Placement

    def build(self) -> None:
        """Makes everything. Raises ProvisionError."""
        raise NotImplementedError

    def close(self) -> None:
        """Unmakes everything. Idempotent. Raises ProvisionError for what remains."""
        raise NotImplementedError
