# SPDX-License-Identifier: BSD-3-Clause
"""A case on its rig, as it is measured alone, beside its reference link, or beside another version."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from pytest_icbench.measure.measured_rig import MeasuredRig
from pytest_icbench.measure.summary.summarize import Environment
from pytest_icbench.model.case import Case
from pytest_icbench.model.launch import Launch

#: Runs one launch of a case on a rig. Its arguments are those of ``run_launch``.
Launcher = Callable[..., Launch]


@dataclass(frozen=True, slots=True)
class Side:
    """One of the sides whose launches take turns: a case or its reference, a candidate or its base.

    Attributes:
        rig: on which it is launched.
        case: the case, by whose id the results are known.
        api: the technique of its endpoints; None: that of the case.
        executable: the workload; None: the installed one.
        around: the environment of its figures; None: as the rig reports it.
        launch: runs one launch; None: frames of the workload are sent.
    """

    rig: MeasuredRig
    case: Case
    api: str | None = None
    executable: Path | None = None
    around: Environment | None = None
    launch: Launcher | None = None

    @property
    def launched(self) -> Case:
        """The case as it is launched: by its technique."""
        return replace(self.case, api=self.api or self.case.api)

    def environment(self, *, shared: bool) -> Environment:
        """Returns the environment of its figures. ``shared``: whether two endpoints have the same CPU."""
        around = self.around
        if around is None:
            around = Environment(placement=self.rig.placement.policy, endpoints=tuple(self.rig.endpoints))
        return replace(around, shared=shared)
