# SPDX-License-Identifier: BSD-3-Clause
"""Candidates: versions that are compared with their base, what they replace, and measured software to start again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from pytest_icbench.model.case import Case
from pytest_icbench.model.text_files import TomlFile


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


#: The target that is no switch, but the endpoints: the program that sends, receives and measures, and where it runs.
WORKLOAD = "workload"
#: The target that is the host: its kernel options.
HOST = "host"
#: What targets begin with that are network functions, followed by the name of what makes them.
FUNCTION = "function:"

#: ``old`` is no choice of the user: a baseline's version, which the present one is measured beside.
Kind = Literal["binary", "config", "mode", "lib", "sysctl", "api", "node", "image", "old"]
#: Files of the kernel options (sysctl) that may be set: they decide neither over the rights of processes nor over
#: memory that the session manages.
SETTABLE = (
    r"/proc/sys/(net/(?!.*\.\.)[\w./-]+|kernel/(sched_\w+|numa_balancing\w*|timer_migration|(nmi_|soft)?watchdog)"
    r"|vm/(?!nr_|drop_caches|compact_memory|hugetlb)\w+)"
)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A version that is compared with its base.

    Attributes:
        target: name of a switch, ``workload``, ``host`` or ``function:COMPONENT``.
        name: given by the user; part of the case's id.
        kind: the part in which the candidate differs from its base.
        value: a path, a name, or kernel options (``net.core.busy_poll=50``).
        config: the file of the other configuration, as it was read.
        old: the parts of a version of kind ``old``.
    """

    target: str
    name: str
    kind: Kind
    value: str
    config: TomlFile | None = field(default=None, compare=False, repr=False)
    old: OldVersion | None = field(default=None, compare=False, repr=False)

    @property
    def key(self) -> str:
        """The key of its binary and its configuration: ``ovs:new``."""
        return f"{self.target}:{self.name}"

    @property
    def path(self) -> Path:
        return Path(self.value)

    @property
    def component(self) -> str | None:
        """The component whose network functions are replaced; None for other targets."""
        return self.target.removeprefix(FUNCTION) if self.target.startswith(FUNCTION) else None

    @property
    def everywhere(self) -> bool:
        """Whether it is compared with cases of any switch."""
        return self.target in (WORKLOAD, HOST) or self.component is not None

    @property
    def options(self) -> Mapping[str, str]:
        """The kernel options by name; none for other kinds."""
        if self.kind != "sysctl":
            return {}
        pairs = (word.partition("=") for word in self.value.split(","))
        return {name.strip(): value.strip() for name, _, value in pairs}

    def concerns(self, case: Case, node: str) -> bool:
        """Whether a case has what it replaces. ``node``: the kind of the case's nodes."""
        if not self.everywhere:
            return self.target == case.switch
        if self.component is not None:
            return case.function is not None
        if self.kind == "node":
            return self.value != node
        return self.kind != "api" or case.load.USES_API


def candidate_key(case: Case) -> str:
    """Returns the key of the binary and the configuration of a case's switch."""
    return case.switch if case.candidate is None else f"{case.switch}:{case.candidate}"


@dataclass(frozen=True, slots=True)
class Replaced:
    """The replacements of one rig; empty for a base.

    Attributes:
        programs: paths by the names that ``--icbench-binary`` takes (``ovs``, ``suricata``).
        configs: configurations by switch, and by ``function:COMPONENT``.
        env: variables of the switch's environment.
        sysctl: kernel options by name, which hold while the rig runs.
        image: root directory of the nodes' programs and libraries.
    """

    programs: Mapping[str, Path] = field(default_factory=dict)
    configs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    sysctl: Mapping[str, str] = field(default_factory=dict)
    image: Path | None = None


def file_of(option: str) -> str:
    """Returns the file of an option; as sysctl(8) has it, a name with slashes keeps its dots (``net/…/eth0.5/…``)."""
    return f"/proc/sys/{option if '/' in option else option.replace('.', '/')}"
