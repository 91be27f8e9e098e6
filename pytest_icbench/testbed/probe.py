# SPDX-License-Identifier: BSD-3-Clause
"""Checks whether a host has what a switch, its endpoints, containers or an application need. Changes nothing."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from pytest_icbench.driver.application.protocol import Application, Program
from pytest_icbench.driver.application.registry import applications
from pytest_icbench.driver.guard import make_application, make_switch, probe_node
from pytest_icbench.driver.node.registry import has_machine
from pytest_icbench.driver.switch.protocol import Switch, SwitchFacts
from pytest_icbench.driver.workload.executable import NAME as WORKLOAD
from pytest_icbench.driver.workload.executable import REBUILD
from pytest_icbench.driver.workload.workload_version import workload_version
from pytest_icbench.errors import NotStarted, ProvisionError, Unsupported, WorkloadError
from pytest_icbench.host import rights
from pytest_icbench.host.findings import Finding, note, success
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.process import run
from pytest_icbench.kinds.application.application_launch import run_application
from pytest_icbench.measure.side import Launcher
from pytest_icbench.measure.summary.summarize import Environment
from pytest_icbench.model import load
from pytest_icbench.model.api_techniques import NETDEV_APIS, SOCKET_APIS, TAP_API
from pytest_icbench.model.case import Case
from pytest_icbench.model.startup import FORK, Crowd
from pytest_icbench.wording import alternatives

#: The kind of node that has all files of the host.
NETNS = "netns"


def find_refusal(check: Callable[[], object]) -> str | None:
    """Returns the reason and the remedy for which a check raises Unsupported; None if it does not."""
    try:
        check()
    except Unsupported as error:
        return str(error)
    return None


def explain_missing_kind(label: str, session: HostSession) -> str | None:
    """Returns why this host cannot make containers of a crowd's kind; None if it can."""
    crowd = Crowd.of(label)
    if crowd is None or crowd.kind == FORK:
        return None
    return find_refusal(lambda: probe_node(crowd.kind, session))


def explain_machine_misfit(case: Case, cls: type[Switch], node: str) -> str | None:
    """Returns why a case cannot run in virtual machines; None if it can, or its nodes are none.

    Args:
        node: kind of nodes.
    """
    if not case.load.PAIRED or not has_machine(node):
        return None
    port, ports = case.resolved_port(cls), getattr(cls, "machine_ports", ())
    if port not in ports:
        remedy = f"take --icbench-port {alternatives(ports)}" if ports else "take another switch"
        return f"no port of kind {port} of {case.switch} leads into a virtual machine (node {node}): {remedy}"
    misfits = {
        "network functions": case.function is not None,
        case.load.ON_ONE_HOST or "": case.load.ON_ONE_HOST is not None,
        "noisy neighbours": case.noisy_neighbour is not None,
        "several queues": case.traffic.queues > 1,
        "two hosts": case.remote,
        f"api {case.api}": case.api == "xdp" or case.api in NETDEV_APIS,
    }
    wanted = [name for name, found in misfits.items() if found]
    return f"{wanted[0]} are for containers, not for nodes of kind {node}: take lxc" if wanted else None


def probe(
    cls: type[Switch], port: str, api: str, session: HostSession, *, node: str, binary: Path | None
) -> SwitchFacts:
    """Returns the version and program of a switch that this host can run.

    Args:
        port: kind of its ports, resolved.
        api: technique of the endpoints.
        node: kind of nodes.
        binary: the user's binary of the switch; None for the one on PATH.

    Raises Unsupported with the reason and its remedy if it cannot be run here, ProvisionError if a program that
    prints its version was killed or hangs: this host may run the switch, so no case is skipped for it.
    """
    try:
        version = workload_version()
        if api not in (*SOCKET_APIS, TAP_API) and version.dpdk is None:
            raise Unsupported(
                f"{cls.name} needs DPDK, but the workload was built without it: apt install libdpdk-dev, and {REBUILD}"
            )
        if os.geteuid() == 0:  # else it is a plan, for a run with root
            if (lack := rights.explain_missing_capabilities(session.root)) is not None:
                raise Unsupported(lack)
            probe_node(node, session)
        driver = make_switch(cls)
        switch_facts = driver.probe(session, binary)
        driver.probe_api(session, api)
        driver.probe_port(session, port)
    except WorkloadError as error:
        raise Unsupported(str(error)) from None
    return switch_facts


#: How long a program may take to print its version, in seconds.
_VERSION_S = 10.0


def program_versions(cls: type[Application], node: str = NETNS) -> dict[str, str]:
    """Returns the versions of an application's programs by name.

    Raises Unsupported with the remedy if one of them is not installed, or not where this kind of node has files.
    """
    return {program.name: _program_version(cls, program, node) for program in (cls.server, cls.client)}


def _program_version(cls: type[Application], program: Program, node: str) -> str:
    if program.name == WORKLOAD:
        return _workload_release(cls)
    path = shutil.which(program.name)
    if path is None:
        remedy = program.remedy or f"apt install {program.package}"
        raise Unsupported(f"{cls.name} needs the program {program.name}, which is not installed: {remedy}")
    if node != NETNS and not Path(path).resolve().is_relative_to("/usr"):
        raise Unsupported(
            f"{cls.name} needs the program {program.name}, which is {path}, and a container has only /usr: install it"
            f" there, or take --icbench-node {NETNS}"
        )
    try:
        printed = run(program.version_command or [path, *program.version_argv], timeout_s=_VERSION_S, check=False)
    except NotStarted as error:
        if program.version_command:
            return "unknown"
        raise Unsupported(f"{cls.name}: {str(error).splitlines()[0]}") from None
    match = re.search(program.version_pattern, printed.stdout + printed.stderr)
    return match[1] if match else "unknown"


def _workload_release(cls: type[Application]) -> str:
    try:
        return workload_version().workload
    except WorkloadError as error:
        raise Unsupported(f"{cls.name}: {error}") from None


def probe_application(label: str, node: str = NETNS) -> Application:
    """Returns the application of a case's label, with the versions of its programs.

    Its calls are guarded. Raises Unsupported if a node of this kind has not all of them, UsageError for an unknown
    application.
    """
    return make_application(label, program_versions(applications()[label.partition(":")[0]], node))


def add_application(case: Case, around: Environment) -> tuple[Launcher | None, Environment]:
    """Returns the launcher of a case's application, or None, and ``around`` with the facts of the application."""
    if not isinstance(case.load, load.Application):
        return None, around
    chosen = probe_application(case.load.label)
    treatment = {**around.treatment, "application": dict(chosen.versions)}
    return partial(run_application, chosen), replace(around, treatment=treatment, open_loop=chosen.open_loop)


def application_findings() -> Iterator[Finding]:
    """Returns findings for ``icbench doctor``, one for each application."""
    for name, cls in applications().items():
        try:
            found = program_versions(cls)
        except (Unsupported, ProvisionError) as error:
            sentence, _, remedy = str(error).partition(": ")
            yield note(f"app {name}", sentence, remedy)
        else:
            yield success(f"app {name}", ", ".join(f"{key} {value}" for key, value in found.items()))
