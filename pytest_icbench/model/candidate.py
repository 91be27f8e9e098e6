# SPDX-License-Identifier: BSD-3-Clause
"""Candidates: versions of a switch or of the workload that are compared with their base."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pytest_icbench.model.case import Case
from pytest_icbench.model.toml import TomlFile

#: The target that is no switch, but the program that sends, receives and measures.
WORKLOAD = "workload"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A version that is compared with its base.

    Attributes:
        target: name of a switch, or ``workload``.
        name: given by the user; part of the case's id.
        kind: the part in which the candidate differs from its base.
        value: a path, or the name of one of the switch's modes.
        config: the file of the other configuration, as it was read.
    """

    target: str
    name: str
    kind: Literal["binary", "config", "variant"]
    value: str
    config: TomlFile | None = field(default=None, compare=False, repr=False)

    @property
    def key(self) -> str:
        """The key of its binary and its configuration: ``ovs:new``."""
        return f"{self.target}:{self.name}"

    @property
    def path(self) -> Path:
        return Path(self.value)


def candidate_key(case: Case) -> str:
    """Returns the key of the binary and the configuration of a case's switch."""
    return case.switch if case.candidate is None else f"{case.switch}:{case.candidate}"
