# SPDX-License-Identifier: BSD-3-Clause
"""DPDK processes: their program, their EAL arguments, their start, and their telemetry."""

from __future__ import annotations

import json
import re
import shutil
import socket
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_icbench.driver.switch.common.daemon import Daemon, DaemonSwitch
from pytest_icbench.driver.switch.common.userspace_ports import (
    MEMIF,
    VHOST_USER,
    VHOST_USER_PACKED,
    make_endpoint,
    socket_path,
    wait_for_sockets,
)
from pytest_icbench.driver.switch.protocol import Attachment, SwitchFacts, SwitchSpec
from pytest_icbench.errors import NotStarted, ProvisionError, Unsupported
from pytest_icbench.host.answers import ANSWER_MAX_BYTES
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.process import ProcessPlace
from pytest_icbench.model.endpoint import Endpoint
from pytest_icbench.model.switch_tree import installed_programs, unpacked_tree

_PROBE_S = 10.0

#: Seconds within which a DPDK process has to open its ports, also if other pollers share its cores.
START_S = 15.0
_TIMEOUT_S = 5.0


def find_binary(
    session: HostSession, name: str, given: Path | None, candidates: Sequence[str | Path], remedy: str
) -> Path:
    """Returns the user's binary, else the first candidate that exists, else the newest in a tree of this host.

    Args:
        name: name of the switch in ``--icbench-binary``.
        given: the user's binary; None: the session's, if it has one.
        candidates: names on PATH, or paths.
        remedy: how to install it, for the message.

    Raises Unsupported with ``remedy``, or with the user's path if it is not a program.
    """
    given = given or session.binaries.get(name)
    if given is not None:
        path = shutil.which(given)
        if path is None:
            raise Unsupported(f"{given} is not an executable file: name one with --icbench-binary {name}=PATH")
        return Path(path)
    for candidate in candidates:
        path = shutil.which(candidate)
        if path is not None:
            return Path(path)
    for program in installed_programs(name):
        return program
    raise Unsupported(f"{name} is not installed: {remedy}, or name it with --icbench-binary {name}=PATH")


def plugin_options(binary: Path) -> list[str]:
    """Returns EAL's options for DPDK's drivers in a tree of ``icbench get``; empty for any other program.

    Its EAL would look for them only where the package is installed.
    """
    tree = unpacked_tree(binary)
    places = [] if tree is None else sorted(tree.glob("usr/lib/*/dpdk/pmds-*"))
    return ["-d", str(places[-1])] if places else []


def query_version(
    session: HostSession,
    name: str,
    binary: Path,
    argv: Sequence[str | Path],
    pattern: str,
    env: Mapping[str, str] | None = None,
) -> re.Match[str]:
    """Runs a program and returns the match of a pattern in its output.

    Args:
        name: name of the program in ``--icbench-binary``.
        argv: its command line, which may have a wrapper before ``binary``.
        env: additional environment variables.

    Raises Unsupported if it is another program, ProvisionError if it hangs or is killed.
    """
    try:
        shown = session.spawner.run(argv, timeout_s=_PROBE_S, check=False, env=env)
    except NotStarted as error:
        raise Unsupported(f"{binary} cannot be used as {name}: {error}") from None
    match = re.search(pattern, shown.stdout + shown.stderr, re.MULTILINE)
    if match is None:
        lines = (shown.stderr or shown.stdout).strip().splitlines()
        output = f" (it says: {lines[-1][:80]})" if lines and shown.returncode != 0 else ""
        raise Unsupported(f"{binary} is not {name}{output}: name one with --icbench-binary {name}=PATH")
    return match


def eal_version(session: HostSession, binary: Path, name: str) -> str:
    """Returns the version of DPDK in a program. Raises as ``query_version`` does."""
    return query_version(session, name, binary, [binary, "-v", "--help"], r"RTE Version: '([^']+)'")[1]


def eal_arguments(*, main_cpus: Sequence[int], worker_cpus: Sequence[int], hugepages_mib: int) -> list[str]:
    """Returns EAL's arguments: lcore 0 is the main lcore on any of ``main_cpus``, each worker CPU has one lcore."""
    cpus = ",".join(map(str, main_cpus))
    lcores = [f"0@({cpus})", *(f"{lcore}@{cpu}" for lcore, cpu in enumerate(worker_cpus, start=1))]
    return [
        "-v",
        "--lcores",
        ",".join(lcores),
        "--main-lcore",
        "0",
        "--no-pci",
        "--in-memory",
        "--single-file-segments",
        "-m",
        str(hugepages_mib),
    ]


def runtime_directory(spec: SwitchSpec) -> Path:
    """Returns the directory that replaces /var/run/dpdk for EAL."""
    return spec.work_dir / "eal"


@dataclass(frozen=True, slots=True)
class DaemonOptions:
    """The environment of a switch's process.

    Attributes:
        netns: path of its network namespace; None: the host's.
        env: additional environment variables.
        cpus: its affinity; None: service and worker CPUs. EAL's control threads then use the CPUs of no lcore.
        pipes: whether its standard input and output are pipes.
        mount_ns: whether it gets its own mount namespace.
        wrapper: command line that runs the process, such as ``stdbuf``.
    """

    netns: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    cpus: Sequence[int] | None = None
    pipes: bool = False
    mount_ns: bool = False
    wrapper: Sequence[str] = ()


def start_daemon(
    session: HostSession,
    spec: SwitchSpec,
    name: str,
    argv: Sequence[str | Path],
    options: DaemonOptions = DaemonOptions(),
) -> Daemon:
    """Starts the process with its files in the work directory. Raises ProvisionError."""
    runtime = runtime_directory(spec)
    runtime.mkdir(parents=True, exist_ok=True)
    process = session.spawner.start(
        [*options.wrapper, *argv],
        log=spec.work_dir / f"{name}.log",
        cpus=sorted({*spec.service_cpus, *spec.worker_cpus}) if options.cpus is None else options.cpus,
        place=ProcessPlace(options.netns, spec.work_dir, options.mount_ns),
        # Without it EAL creates a directory in /var/run/dpdk and leaves it there, even with --in-memory.
        env={"RUNTIME_DIRECTORY": str(runtime), **options.env},
        pipes=options.pipes,
    )
    return Daemon(name, process)


class PortForwarder(DaemonSwitch):
    """A driver whose switch is a DPDK application that connects the two ports of each pair."""

    ports = (VHOST_USER, VHOST_USER_PACKED, MEMIF)
    machine_ports = (VHOST_USER, VHOST_USER_PACKED)
    learns = False
    max_pairs = 16  # RTE_MAX_ETHPORTS is 32
    segments = True

    @abstractmethod
    def binary(self, session: HostSession, given: Path | None) -> Path:
        """Returns its program, the user's one if given. Raises Unsupported."""

    def launch(
        self,
        session: HostSession,
        spec: SwitchSpec,
        attachments: Sequence[Attachment],
        argv: Sequence[str],
        options: DaemonOptions = DaemonOptions(),
    ) -> list[Endpoint]:
        """Starts the program and waits for its sockets; returns the endpoints. Raises ProvisionError."""
        self.daemon = start_daemon(session, spec, self.name, argv, options)
        version = eal_version(session, Path(argv[0]), self.name)
        self._facts = SwitchFacts(version=version, config={"argv": list(argv[1:])})
        wait_for_sockets([socket_path(attachment) for attachment in attachments], self.daemon, timeout_s=START_S)
        return [make_endpoint(spec.port, attachment) for attachment in attachments]

    def probe(self, session: HostSession, spec_binary: Path | None) -> SwitchFacts:
        """Returns the binary and its DPDK version. Raises Unsupported."""
        binary = self.binary(session, spec_binary)
        return SwitchFacts(version=eal_version(session, binary, self.name), program=str(binary))


def telemetry_socket(runtime: Path) -> Path | None:
    """Returns the telemetry socket of the process with this ``RUNTIME_DIRECTORY``; None if there is none."""
    sockets = sorted(path for path in runtime.glob("dpdk/*/dpdk_telemetry.v2*") if path.is_socket())
    return sockets[0] if sockets else None


def query(path: Path, *commands: str) -> list[Any]:
    """Returns the answers to telemetry commands, in order. Raises ProvisionError if the process does not answer."""
    answers = []
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
            client.settimeout(_TIMEOUT_S)
            client.connect(str(path))
            greeting = json.loads(client.recv(65536))
            size = min(int(greeting["max_output_len"]), ANSWER_MAX_BYTES)
            for command in commands:
                client.sendall(command.encode())
                answers.append(json.loads(client.recv(size))[command.partition(",")[0]])
    except (OSError, ValueError, KeyError) as error:
        raise ProvisionError(
            f"the telemetry socket {path} does not answer ({error}): check whether its process is alive"
        ) from None
    return answers
