# SPDX-License-Identifier: BSD-3-Clause
"""The rig of a case: its switch, its nodes and its endpoints, by the host part that it drives."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pytest_icbench.driver.switch.protocol import Switch
from pytest_icbench.driver.switch.registry import builtin_switches
from pytest_icbench.errors import ProvisionError
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.measure.measured_rig import MeasuredRig
from pytest_icbench.model.calls import Call
from pytest_icbench.model.candidate import Replaced
from pytest_icbench.model.case import Case
from pytest_icbench.model.endpoint import Endpoint, EndpointSpec, default_endpoint_specs
from pytest_icbench.model.function_facts import FunctionFacts
from pytest_icbench.model.placement import Placement
from pytest_icbench.model.rig import RigSpec
from pytest_icbench.model.switch_facts import SwitchFacts
from pytest_icbench.testbed.host_rig import HostPart, HostRig

_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """The choices with which a rig is built, apart from its case and placement.

    Attributes:
        switches: drivers by name; None for the package's own.
        endpoint_specs: names, addresses and places of the endpoints, by index; None for the default.
        host_part: makes the part that the rig drives, at each ``build``; None: everything is on this host.
        replaced: programs, configurations and the like that take the place of the installed ones.
        ring: descriptors of an endpoint's ring.
    """

    switches: Mapping[str, type[Switch]] | None = None
    endpoint_specs: Sequence[EndpointSpec] | None = None
    host_part: Callable[[], HostPart] | None = None
    replaced: Replaced = field(default_factory=Replaced)
    ring: int = 256


_DEFAULTS = BuildOptions()


class Rig(MeasuredRig):
    """A case's switch with its nodes, to be built, launched on any number of times, paused, resumed and closed.

    The rig of a reference link is of the same class, for the case's ``veth`` or ``direct`` twin. ``RigCalls`` declares
    the calls of a built rig; they raise ProvisionError while it is not built.

    A rig over two hosts exists only while it runs: the other rig of its case takes the same two NICs. So it is removed
    when it is paused, and built again when it is resumed.

    Args:
        placement: CPUs of workers (none for a switch without pollers), endpoints and everything else.
        node: kind of the nodes.

    Attributes:
        preflighted: whether frames passed both ways since it was built or resumed; the measurement sets it.
        endpoints: by index; empty until built.
        endpoint_specs: their names, addresses and places, by index.
        remote_switch: facts of the second host's switch.
        function_facts: facts of the network functions, by pair.
        files: directory with a directory for each node, at the same path there; once built.
    """

    def __init__(
        self, case: Case, placement: Placement, session: HostSession, node: str, options: BuildOptions = _DEFAULTS
    ) -> None:
        self.case = case
        self.placement = placement
        self.session = session
        self._node = node
        self.preflighted = False
        self.endpoints: list[Endpoint] = []
        self.files = Path()
        self.switch_facts = SwitchFacts()
        self.remote_switch: SwitchFacts | None = None
        self.peers = ()
        self.terms = ()
        self.function_facts: tuple[FunctionFacts, ...] = ()
        specs = options.endpoint_specs
        self.endpoint_specs = default_endpoint_specs(case.pairs) if specs is None else list(specs)
        drivers = builtin_switches() if options.switches is None else options.switches
        self._make_part = options.host_part or (lambda: HostRig(session, drivers))
        self._part: HostPart | None = None
        self._replaced, self._ring = options.replaced, options.ring

    def build(self) -> None:
        """Builds everything. Raises ProvisionError, after undoing what was done by then."""
        if self._part is not None:
            raise ProvisionError(f"the rig of {self.case.id} is built already")
        replaced, switch = self._replaced, self.case.switch
        spec = RigSpec(
            name=f"r{next(_numbers) % 1000}",
            case=self.case,
            placement=self.placement,
            node=self._node,
            endpoint_specs=tuple(self.endpoint_specs),
            env=replaced.env,
            sysctl=replaced.sysctl,
            image=None if replaced.image is None else str(replaced.image),
            ring=self._ring,
        )
        part = self._make_part()
        with self.session.using(replaced.programs, replaced.configs):
            binary = self.session.binaries.get(switch)
            config = dict(self.session.configs.get(switch, {}))
            facts = part.prepare(replace(spec, binary=None if binary is None else str(binary), config=config))
        self._part = part
        self.endpoints = list(facts.endpoints)
        self.files = Path(facts.files)
        self.switch_facts = facts.switch
        self.remote_switch = facts.remote_switch
        self.peers, self.terms, self.function_facts = facts.peers, facts.terms, facts.functions
        self.untimed = facts.untimed
        self.preflighted = False

    @property
    def part(self) -> HostPart:
        """The part that it drives. Raises ProvisionError if it is not built."""
        if self._part is None:
            raise ProvisionError(f"the rig of {self.case.id} is not built")
        return self._part

    @property
    def host(self) -> HostRig:
        """The part on this host. Raises ProvisionError if it is not built."""
        return self.part.here

    def forward(self, call: Call, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        """Forwards every call to the host part."""
        return getattr(self.part, call.name)(*arguments, **keywords)

    def check(self) -> None:
        """Raises as ``RigCalls.check`` does. A rig over two hosts may not exist; then nothing can be dead."""
        if self._part is not None or not self.case.remote:
            super().check()

    def pause(self) -> None:
        """Stops everything from using the CPUs. Raises ProvisionError for what remains of a rig over two hosts."""
        if self.case.remote:
            self.close()
        else:
            super().pause()

    def resume(self) -> None:
        """Resumes everything. The next launch needs a preflight.

        Raises ProvisionError if a rig over two hosts cannot be built.
        """
        if not self.case.remote:
            self.part.resume()
            self.preflighted = False
        elif self._part is None:
            self.build()

    def close(self) -> None:
        """Removes everything. Idempotent. Raises ProvisionError for what remains."""
        part, self._part = self._part, None
        self.endpoints = []
        self.preflighted = False
        if part is not None:
            part.undo()


class EmptyRig(Rig):
    """A rig without a switch and nodes, for a case whose nodes exist only while they are measured."""

    def build(self) -> None:
        """Does nothing."""

    def check(self) -> None:
        """Does nothing: nothing can be dead."""

    def pause(self) -> None:
        """Does nothing."""

    def resume(self) -> None:
        """Does nothing."""
