# SPDX-License-Identifier: BSD-3-Clause
"""The command line of an engine: its calls, and the words of ``create``. Both engines take the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from pytest_icbench.driver.node.confinement import Device
from pytest_icbench.driver.node.protocol import NodeSpec
from pytest_icbench.errors import ProvisionError
from pytest_icbench.host.process import run
from pytest_icbench.host.root import format_cpu_list

#: The time in seconds that a call of an engine may take.
TIMEOUT_S = 30.0


class Answer(NamedTuple):
    """What came of a call: exit code, standard output and standard error."""

    code: int
    out: str
    err: str

    @property
    def complaint(self) -> str:
        """The last line of what the command complains of."""
        lines = (self.err.strip() or self.out.strip()).splitlines()
        return lines[-1].removeprefix("Error: ") if lines else f"exit code {self.code}"


@dataclass(frozen=True, slots=True)
class Engine:
    """An engine.

    Attributes:
        program: its program.
        options: the options of every call.
        env: variables in addition to this process' environment.
    """

    program: str
    options: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict)

    def run(self, *arguments: str) -> Answer:
        """Runs a command, whatever its exit code. Raises ProvisionError if it cannot be started or hangs."""
        words = [self.program, *self.options, *arguments]
        try:
            done = run(words, timeout_s=TIMEOUT_S, check=False, env=self.env)
        except ProvisionError as error:
            raise ProvisionError(str(error).replace(" ".join(words), f"{self.program} {arguments[0]}")) from None
        return Answer(done.returncode, done.stdout, done.stderr)

    def call(self, *arguments: str) -> str:
        """Runs a command. Returns what it prints. Raises ProvisionError with the end of its complaint."""
        done = self.run(*arguments)
        if done.code != 0:
            raise ProvisionError(f"{self.program} {arguments[0]} failed: {done.complaint}")
        return done.out.strip()


def container(
    spec: NodeSpec, *, env: Mapping[str, str], binds: Mapping[Path, Path], devices: Sequence[Device]
) -> Iterator[str]:
    """Yields the options of ``create``, without the container's root file system.

    Args:
        binds: directories of the host that are bound for reading, by their paths there.
        devices: the device nodes of ``spec``.
    """
    yield from ("--name", spec.name, "--hostname", spec.hostname or spec.name)
    yield from ("--network", "none", "--ipc", "none", "--userns", "host")
    yield from ("--cpuset-cpus", format_cpu_list(spec.cpus), "--pids-limit", "-1", "--log-driver", "none")
    # The init only waits: it needs no capability, and few files. Processes that enter keep pytest's limits and those
    # capabilities that a node has. Without limits, engines raise them, which takes CAP_SYS_RESOURCE.
    yield from ("--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024")
    for limit in ("seccomp=unconfined", "apparmor=unconfined", "label=disable"):
        yield from ("--security-opt", limit)
    yield from ("--cap-drop", "all")
    for name, value in env.items():
        yield from ("--env", f"{name}={value}")
    yield from ("--read-only", "--tmpfs", "/run:rw,mode=755,size=16m", "--tmpfs", "/tmp:rw,mode=1777,size=64m")
    for path, source in binds.items():
        yield from ("--volume", f"{source}:{path}:ro")
    for path in spec.sockets:
        yield from ("--volume", f"{path}:{path}:rw")
    for device in devices:
        yield from ("--device", f"{device.path}:{device.path}:rw")
