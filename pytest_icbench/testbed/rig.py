# SPDX-License-Identifier: BSD-3-Clause
"""A built case: its switch, its nodes, its endpoints. Composed of one HostRig, or of two on two hosts."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol, cast

from pytest_icbench.driver.switch.protocol import Batches, Busy, PortCounters, Switch, SwitchFacts
from pytest_icbench.driver.switch.registry import builtin_switches
from pytest_icbench.errors import ProvisionError
from pytest_icbench.host.session import HostSession
from pytest_icbench.model.candidate import candidate_key
from pytest_icbench.model.case import Case
from pytest_icbench.model.endpoint import Endpoint, endpoint_from_dict
from pytest_icbench.model.endpoint_spec import EndpointSpec, default_endpoint_specs, endpoint_specs_to_json
from pytest_icbench.model.placement import Placement
from pytest_icbench.testbed.host_rig import HostRig
from pytest_icbench.testbed.remote.rig import SecondHost, TwoHostRig

_numbers = itertools.count(1)


class RigOptions(Protocol):
    """What a rig wants to know of the run's options."""

    @property
    def node(self) -> str: ...


class Rig:
    """A case's switch with its nodes, to be built, launched on any number of times, paused, resumed and closed.

    The rig of a reference link is the same class, for the case's ``veth`` or ``direct`` twin.

    Args:
        placement: CPUs of workers (none for a switch without pollers), endpoints and everything else.
        options: the run's; ``node`` says which kind of node.
        switches: drivers by name; None for the package's own.
        endpoint_specs: who and where the endpoints are, by index; None for the default.
        elsewhere: the second host's part, of a case on two hosts.

    Attributes:
        preflighted: whether frames were seen both ways since it was built or resumed; the measurement keeps it.
        endpoints: by index; empty until built.
        endpoint_specs: who and where they are, by index.
        remote_switch: ``SwitchFacts`` of the second host's, as a dictionary.
        files: directory that all nodes share with the host, at the same path; once built.
    """

    def __init__(
        self,
        case: Case,
        placement: Placement,
        session: HostSession,
        options: RigOptions,
        *,
        switches: Mapping[str, type[Switch]] | None = None,
        endpoint_specs: Sequence[EndpointSpec] | None = None,
        elsewhere: SecondHost | None = None,
    ) -> None:
        self.case = case
        self.placement = placement
        self.session = session
        self.options = options
        self.preflighted = False
        self.endpoints: list[Endpoint] = []
        self.files = Path()
        self.switch_facts = SwitchFacts()
        self.remote_switch: Mapping[str, Any] | None = None
        self._switches = builtin_switches() if switches is None else switches
        self.endpoint_specs = default_endpoint_specs(case.pairs) if endpoint_specs is None else list(endpoint_specs)
        self._elsewhere = elsewhere
        self._host: HostRig | TwoHostRig | None = None

    def build(self) -> None:
        """Makes everything; what a failure leaves half done is undone. Raises ProvisionError."""
        if self._host is not None:
            raise ProvisionError(f"the rig of {self.case.id} is built already")
        key = candidate_key(self.case)
        binary = self.session.binaries.get(key)
        spec = {
            "name": f"r{next(_numbers) % 1000}",
            "case": self.case.to_dict(),
            "placement": asdict(self.placement),
            "node": self.options.node,
            "binary": None if binary is None else str(binary),
            "config": dict(self.session.configs.get(key, {})),
            "endpoint_specs": endpoint_specs_to_json(self.endpoint_specs),
        }
        host: HostRig | TwoHostRig
        if self._elsewhere is None:
            host = HostRig(self.session, self._switches)
        else:
            host, spec = self._elsewhere.twin(self.session, self._switches, self.placement, spec)
        made = host.prepare(spec)
        self._host = host
        self.endpoints = [endpoint_from_dict(each) for each in made["endpoints"]]
        self.files = Path(made["files"])
        self.switch_facts = SwitchFacts(**made["switch"])
        self.remote_switch = made.get("remote_switch")
        self.preflighted = False

    @property
    def host(self) -> HostRig:
        """What is on the host; over two hosts a TwoHostRig, which has its calls. Raises ProvisionError if not built."""
        if self._host is None:
            raise ProvisionError(f"the rig of {self.case.id} is not built")
        return cast("HostRig", self._host)

    def launch(self, plan: Mapping[str, Any]) -> str:
        """See ``HostRig.launch``."""
        return self.host.launch(plan)

    def start(self, launch_id: str, delay_s: float = 0.02) -> int:
        """Tells every process to begin ``delay_s`` seconds from now; returns the moment, CLOCK_MONOTONIC in ns."""
        return self.host.start(launch_id, delay_s)

    def tell(self, launch_id: str, text: str, index: int | None = None) -> None:
        """Writes to one process' standard input, or to all."""
        self.host.tell(launch_id, text, index)

    def poll(self, launch_id: str, timeout_s: float) -> dict[str, Any]:
        """``{"lines": [[index, text], …], "exited": {index: code}}``, as soon as there is something."""
        return self.host.poll(launch_id, timeout_s)

    def log_tail(self, launch_id: str, index: int) -> str:
        """The last lines of a process' log."""
        return self.host.log_tail(launch_id, index)

    def pids(self, launch_id: str) -> dict[int, int]:
        """Process ids on the host, by endpoint index."""
        return self.host.pids(launch_id)

    def end(self, launch_id: str) -> None:
        """Ends what still runs of a launch. Idempotent."""
        self.host.end(launch_id)

    def counters(self) -> list[PortCounters] | None:
        """The switch's own counters, a port each, by index; None where it has none."""
        found = self.host.counters()
        return None if found is None else [PortCounters(**port) for port in found]

    def busy(self) -> Busy | None:
        """Work of the switch since it exists; None where it does not tell."""
        found = self.host.busy()
        if found is None:
            return None
        far = found.get("far")
        return Busy(**{**found, "far": None if far is None else Busy(**far)})

    def hardware(self, launch_id: str) -> dict[str, dict[str, int]] | None:
        """Hardware events since the first call for this launch; None where the kernel gives none."""
        return self.host.hardware(launch_id)

    def batches(self) -> Batches | None:
        """Frames and calls of the switch's workers since it exists; None where it does not tell."""
        found = self.host.batches()
        return None if found is None else Batches(**found)

    def assignment(self) -> dict[str, int] | None:
        """CPU that polls each port, by its index as a text; None where the switch does not tell."""
        return self.host.assignment()

    def set_ageing(self, seconds: float) -> None:
        """Makes the switch forget addresses that it has not seen for so many seconds. Raises ProvisionError."""
        self.host.set_ageing(seconds)

    def check(self) -> None:
        """Raises ProvisionError with the log's tail if the switch is dead."""
        self.host.check()

    def uplink_fault(self) -> str | None:
        """What is wrong with the cable between two hosts, in one sentence; None if nothing."""
        return self.host.uplink_fault()

    def pause(self) -> None:
        """Takes everything of the rig off the CPUs."""
        self.host.pause()

    def resume(self) -> None:
        """Lets everything go on; a preflight is due."""
        self.host.resume()
        self.preflighted = False

    def close(self) -> None:
        """Unmakes everything. Idempotent. Raises ProvisionError for what remains."""
        host, self._host = self._host, None
        self.endpoints = []
        self.preflighted = False
        if host is not None:
            host.undo()


class ExclusiveRig(Rig):
    """A rig over two hosts: it exists only while it runs, since the other rig of its case takes the same two NICs."""

    def check(self) -> None:
        """As ``Rig.check``; of one that does not exist at the moment nothing can be dead."""
        if self._host is not None:
            super().check()

    def pause(self) -> None:
        """Unmakes it. Raises ProvisionError for what remains."""
        self.close()

    def resume(self) -> None:
        """Makes it anew; a preflight is due. Raises ProvisionError."""
        if self._host is None:
            self.build()
