# SPDX-License-Identifier: BSD-3-Clause
"""``route`` in user space: DPDK's example l3fwd, which looks routes up by longest prefix match (LPM)."""

from __future__ import annotations

from pytest_icbench.driver.function.function_parts import SOURCES, RouterFunction
from pytest_icbench.driver.function.process_function import ROUTER_PORTS, DpdkFunction, check_ports
from pytest_icbench.driver.function.protocol import Ends, FunctionSpec
from pytest_icbench.driver.switch.dpdk.dpdk_process import START_S
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.node_files import write_file

_STARTED = "entering main loop"
#: Lines of its log that are looked through: its own, and those of EAL.
_LOG_LINES = 500
#: It reads routes of IPv4 only if there are routes of IPv6: one for documentation (RFC 3849).
_ROUTES_IPV6 = "R2001:db8::/32 0\n"


def routes(ends: Ends) -> str:
    """Returns the IPv4 routes: port 0 to side a and to the addresses of its flows, port 1 to side b. Pure."""
    return f"R{ends.leader.ip}/32 0\nR{SOURCES} 0\nR{ends.follower.ip}/32 1\n"


class L3fwdFunction(RouterFunction, DpdkFunction):
    """A router."""

    name = "l3fwd"
    ports = ROUTER_PORTS
    help = "route"
    hugepages_mib = 256  # two routing tables of 64 MiB each, and its buffers
    takes_binary = True

    def start(self, session: HostSession, spec: FunctionSpec) -> None:
        """Starts it in the node and waits until it polls. Raises ProvisionError with the log's tail."""
        check_ports(spec, self.name)
        texts = {"ipv4": routes(spec.ends), "ipv6": _ROUTES_IPV6}
        for family, text in texts.items():
            write_file(spec.directory, family, text)
        options = ["-p", "3", "--parse-ptype", "--lookup", "lpm", "--config", "(0,0,0),(1,0,0)"]
        options += ["--rx-queue-size", str(self.ring), "--tx-queue-size", str(self.ring)]
        for number, side in enumerate((spec.ends.leader, spec.ends.follower)):
            options += ["--eth-dest", f"{number},{side.mac}"]
        files = [f"--rule_{family}={spec.directory / family}" for family in texts]
        daemon = self.start_process(session, spec, [*options, *files])
        daemon.wait_until(
            lambda: _STARTED in daemon.process.tail(_LOG_LINES),
            failure="has not begun to poll",
            timeout_s=2 * START_S,  # it waits for links up to 9 s
        )
        self.record_facts(session, {"arguments": options, **texts})
