# SPDX-License-Identifier: BSD-3-Clause
"""Builds the command line of the workload. Pure; docs/reference/workload.md is the contract."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pytest_icbench.driver.workload.eal import eal_arguments
from pytest_icbench.model.api_techniques import APPLICATION_API, NETDEV_APIS, SOCKET_OPTIONS, TAP_API
from pytest_icbench.model.endpoint import Address, Endpoint, Memif, Tap, Veth, VhostUser
from pytest_icbench.model.path import Direction
from pytest_icbench.model.routes import Share
from pytest_icbench.model.traffic import Traffic

Application = Literal["send", "recv", "client", "server", "duplex"]

#: The exit codes of the workload and their meaning.
EXIT_CODES = {
    0: "ended as requested",
    2: "bad usage",
    3: "set-up failed",
    4: "I/O failed while running",
    5: "the link did not come up in time",
    6: "this machine's TSC is not invariant",
}
#: The exit code on a machine whose clock cannot measure.
NO_INVARIANT_CLOCK = 6


def natural_api(api: str | None, endpoint: Endpoint) -> str:
    """Returns the API technique to use: ``api``, else the one that suits the endpoint (a switch may prefer another)."""
    if api is not None:
        return api
    return APPLICATION_API if isinstance(endpoint, Veth) else TAP_API if isinstance(endpoint, Tap) else "dpdk"


def exit_meaning(code: int) -> str:
    """Returns the meaning of an exit code as the end of a sentence; negative codes are signals."""
    if code < 0:
        return f"was ended by signal {-code}"
    return f"ended with exit code {code} ({EXIT_CODES.get(code, 'unknown')})"


@dataclass(frozen=True, slots=True)
class WorkloadCommand:
    """The command of one process of a launch.

    Attributes:
        peer: the address at the other end.
        api: one of ``APIS``.
        burst: frames per burst.
        stream: number of the stream that its frames carry.
        peer_stream: number of the stream that its peer's frames carry; None: the same.
        direction: the way of its frames, where its peer sends too; else None.
        rate_pps: frames per second, 0 for the maximum.
        duration_s: measured time; 0 for a process that runs until it is stopped (a receiver).
        window_s: length of a measuring window.
        drain_s: ``--drain``.
        ring: descriptors per ring; a power of two for DPDK.
        yield_every: ``--yield``; 0 where no other poller shares the CPU.
        train: ``--train``, None for a stream.
        trace: ``--trace``, frames per second in each second; empty for a constant load.
        wait: ``--wait``; None: it polls.
        catch_up: the largest burst with which a late sender catches up; 0 without a limit.
        awaits: whether the server of the endpoint's socket starts at the same time.
        acl_drops, peer_acl_drops: ``--acl-drops`` of the frames that it sends, and of those that it counts; None: no
            frame is dropped.
        routes: the routes of the switch's table that its frames take; None: they go to the peer's address.
    """

    application: Application
    endpoint: Endpoint
    peer: Address
    api: str
    cpu: int
    traffic: Traffic
    burst: int
    stream: int
    peer_stream: int | None = None
    direction: Direction | None = None
    rate_pps: int = 0
    duration_s: float = 0.0
    warmup_s: float = 0.0
    window_s: float = 0.1
    drain_s: float = 2.0
    ring: int = 256
    yield_every: int = 0
    catch_up: int = 0
    blocking: bool = False
    wait: str | None = None
    check_payload: bool = False
    silent: bool = False
    train: str | None = None
    trace: tuple[int, ...] = ()
    awaits: bool = False
    acl_drops: str | None = None
    peer_acl_drops: str | None = None
    routes: Share | None = None

    @property
    def uses_dpdk(self) -> bool:
        """Whether the process uses DPDK."""
        return self.api == "dpdk" or self.api in NETDEV_APIS

    def argv(self, executable: Path) -> list[str]:
        """Returns the command line, with ``--supervised``. Raises ValueError if the API does not suit the endpoint."""
        local = self.endpoint.address
        name = f"dpdk-{self.application}" if self.uses_dpdk else self.application
        argv = [str(executable), name, local.ip, local.mac, self.peer.ip, self.peer.mac, "--supervised"]
        argv += [*self.traffic.options, "-b", str(self.burst), "-r", str(self.rate_pps)]
        argv += ["--stream-id", str(self.stream), "--ring", str(self.ring)]
        argv += [word for option, value in self._values() if value is not None for word in (option, value)]
        flags = (("-B", self.blocking), ("-c", self.check_payload), ("-s", self.silent))
        argv += [flag for flag, chosen in flags if chosen]
        if self.awaits and isinstance(self.endpoint, VhostUser | Memif):
            argv += ["--await", self.endpoint.socket]
        if self.uses_dpdk:
            jumbo, queues = self.traffic.jumbo, self.traffic.queues
            eal = eal_arguments(self.endpoint, self.api, cpu=self.cpu, ring=self.ring, jumbo=jumbo, queues=queues)
            return [*argv, "--", *eal]
        return argv + self._socket_options()

    def _values(self) -> tuple[tuple[str, str | None], ...]:
        """Returns the options with values; None leaves the option out."""
        return (
            ("--peer-stream", None if self.peer_stream is None else str(self.peer_stream)),
            ("--duration", f"{self.duration_s:g}"),
            ("--warmup", f"{self.warmup_s:g}"),
            ("--window", f"{self.window_s:g}"),
            ("--drain", f"{self.drain_s:g}"),
            ("--yield", str(self.yield_every) if self.yield_every else None),
            ("--wait", self.wait),
            ("--acl-drops", self.acl_drops),
            ("--peer-acl-drops", self.peer_acl_drops),
            ("--routes", None if self.routes is None else self.routes.option),
            ("--train", self.train),
            ("--trace", ",".join(map(str, self.trace)) or None),
            ("--catch-up", str(self.catch_up) if self.catch_up else None),
        )

    def _socket_options(self) -> list[str]:
        if isinstance(self.endpoint, Tap) and self.api == TAP_API:
            return ["--io", "tap", "-R", self.endpoint.device]
        if not isinstance(self.endpoint, Veth):
            raise ValueError(f"api {self.api} needs a kernel interface, the endpoint is a {self.endpoint.kind} port")
        return [word.format(self.endpoint.interface) for word in SOCKET_OPTIONS[self.api].split()]
