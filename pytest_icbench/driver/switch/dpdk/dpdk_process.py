# SPDX-License-Identifier: BSD-3-Clause
"""Switches that are one DPDK process: finding its binary, its EAL arguments, its start."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from pytest_icbench.driver.switch.common.daemon import Daemon, DaemonSwitch
from pytest_icbench.driver.switch.common.ports import MEMIF, VHOST_USER, VHOST_USER_PACKED
from pytest_icbench.driver.switch.protocol import SwitchFacts, SwitchSpec
from pytest_icbench.errors import NotStarted, Unsupported
from pytest_icbench.host.process import ProcessPlace
from pytest_icbench.host.session import HostSession
from pytest_icbench.model.traffic import MAX_FRAME_BYTES

_VERSION = re.compile(r"RTE Version: '([^']+)'")
_PROBE_S = 10.0

#: How long a DPDK process may take to open its ports, in seconds, where other pollers share few cores with it.
START_S = 15.0


def find_binary(
    session: HostSession, name: str, given: Path | None, candidates: Sequence[str | Path], remedy: str
) -> Path:
    """Returns the user's binary, else the first candidate that exists.

    Args:
        name: the switch's, as ``--icbench-binary`` has it.
        given: the user's binary; None for the session's, if it has one.
        candidates: names on PATH, or paths.
        remedy: for the message if there is none.

    Raises Unsupported with ``remedy``, or with the user's path if it is no program.
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
    raise Unsupported(f"{name} is not installed: {remedy}, or name it with --icbench-binary {name}=PATH")


def eal_version(session: HostSession, binary: Path, name: str) -> str:
    """Returns the version of DPDK in a program.

    Raises Unsupported if it is no DPDK program, ProvisionError if it is one perhaps but was killed or hangs.
    """
    try:
        shown = session.spawner.run([binary, "-v", "--help"], timeout_s=_PROBE_S, check=False)
    except NotStarted as error:
        raise Unsupported(f"{binary} cannot be used as {name}: {error}") from None
    match = _VERSION.search(shown.stdout + shown.stderr)
    if match is None:
        words = (shown.stderr or shown.stdout).strip().splitlines()
        error_words = f" (it says: {words[-1][:80]})" if words and shown.returncode != 0 else ""
        raise Unsupported(f"{binary} is not a DPDK program{error_words}: name one with --icbench-binary {name}=PATH")
    return match.group(1)


def eal_arguments(*, main_cpus: Sequence[int], worker_cpus: Sequence[int], hugepages_mib: int) -> list[str]:
    """Returns EAL's arguments: lcore 0 is the main one, on any of ``main_cpus``, then each worker has one lcore."""
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
    """Returns the directory for what EAL would put into /var/run/dpdk."""
    return spec.work_dir / "eal"


def start_daemon(
    session: HostSession,
    spec: SwitchSpec,
    name: str,
    argv: Sequence[str | Path],
    *,
    netns: str | None = None,
    env: Mapping[str, str] | None = None,
    cpus: Sequence[int] | None = None,
    pipes: bool = False,
    mount_ns: bool = False,
) -> Daemon:
    """Starts the process with its files in the work directory.

    Args:
        netns: path of its network namespace; None for the host's.
        env: further variables of its environment.
        cpus: its affinity; None for service and worker CPUs: EAL's control threads then use those that are no lcore's.
        pipes: whether its standard input and output are pipes.
        mount_ns: whether it gets its own mount namespace.

    Raises ProvisionError.
    """
    runtime = runtime_directory(spec)
    runtime.mkdir(parents=True, exist_ok=True)
    process = session.spawner.start(
        argv,
        log=spec.work_dir / f"{name}.log",
        cpus=sorted({*spec.service_cpus, *spec.worker_cpus}) if cpus is None else cpus,
        place=ProcessPlace(netns, spec.work_dir, mount_ns),
        # Without it EAL makes and leaves a directory in /var/run/dpdk, even with --in-memory.
        env={"RUNTIME_DIRECTORY": str(runtime), **(env or {})},
        pipes=pipes,
    )
    return Daemon(name, process)


class PortForwarder(DaemonSwitch):
    """A driver whose switch is a DPDK application that joins the two ports of each pair."""

    family = "dpdk"
    ports = (VHOST_USER, VHOST_USER_PACKED, MEMIF)
    apis = ("dpdk",)
    default_apis = ("dpdk",)
    default_cores = 1
    learns = False
    max_frame_bytes = MAX_FRAME_BYTES
    max_pairs = 16  # RTE_MAX_ETHPORTS is 32
    segments = True

    def binary(self, session: HostSession, given: Path | None) -> Path:
        """Returns its program, the user's if one is given. Raises Unsupported."""
        raise NotImplementedError

    def probe(self, session: HostSession, spec_binary: Path | None) -> SwitchFacts:
        """Returns the binary and its DPDK version. Raises Unsupported."""
        binary = self.binary(session, spec_binary)
        return SwitchFacts(version=eal_version(session, binary, self.name), program=str(binary))

    def probe_api(self, session: HostSession, api: str) -> None: ...
