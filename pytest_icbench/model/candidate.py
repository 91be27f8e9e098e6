# SPDX-License-Identifier: BSD-3-Clause
"""What is measured side by side with what there is."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pytest_icbench.model.case import Case
from pytest_icbench.model.toml import TomlFile

#: Instead of a switch: the program that sends, receives and measures.
WORKLOAD = "workload"


@dataclass(frozen=True, slots=True)
class Candidate:
    """One side that is compared with what there is.

    Attributes:
        target: name of a switch, or ``workload``.
        name: the user's, part of the case's id.
        kind: what is another one.
        value: a path, or the name of one of the switch's modes.
        config: the file of another configuration, as it was read.
    """

    target: str
    name: str
    kind: Literal["binary", "config", "variant"]
    value: str
    config: TomlFile | None = field(default=None, compare=False, repr=False)

    @property
    def key(self) -> str:
        """By which binaries and configurations of it are known: ``ovs:new``."""
        return f"{self.target}:{self.name}"

    @property
    def path(self) -> Path:
        return Path(self.value)


def candidate_key(case: Case) -> str:
    """By which the binary and the configuration of a case's switch are known."""
    return case.switch if case.candidate is None else f"{case.switch}:{case.candidate}"
