# SPDX-License-Identifier: BSD-3-Clause
"""The measured software, and how to start it again. A baseline keeps it for a later comparison side by side."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any


@dataclass(frozen=True, slots=True)
class Program:
    """A program as it ran.

    Attributes:
        path: None if its driver does not report it.
        sha256: of the file.
        libraries: digest of its shared libraries, which an upgrade can replace without it; None for none.
        package: the package that installed it, with its version (``openvswitch-switch 3.1.0-2``).
        version: as the program says it.
    """

    path: str | None = None
    sha256: str | None = None
    libraries: str | None = None
    package: str | None = None
    version: str | None = None


@dataclass(frozen=True, slots=True)
class OldVersion:
    """The parts of what was measured; None for a part that the case does not have.

    Attributes:
        switch, workload, function: the programs. A switch of the kernel has none.
        component: what makes the network functions.
        config, function_config: the user's configurations: ``sha256`` of the file and its ``values``; empty without.
        kernel: its release. It cannot be started beside another one.
    """

    switch: Program | None = None
    workload: Program | None = None
    function: Program | None = None
    component: str | None = None
    config: dict[str, Any] = field(default_factory=dict)
    function_config: dict[str, Any] = field(default_factory=dict)
    kernel: str | None = None

    def programs(self) -> Iterator[tuple[str, Program]]:
        """Yields the programs with the names of their parts."""
        for part in ("switch", "workload", "function"):
            program = getattr(self, part)
            if program is not None:
                yield part, program

    def same(self, now: OldVersion) -> bool:
        """Whether the switch is certainly the same. A script or the kernel never is: it can behave differently now."""
        return self == now and self.switch is not None and self.switch.libraries is not None

    def differing(self, now: OldVersion) -> tuple[str, ...]:
        """Returns the names of the parts that differ now."""
        names = (member.name for member in fields(self))
        return tuple(name for name in names if getattr(self, name) != getattr(now, name))
