# SPDX-License-Identifier: BSD-3-Clause
"""A second host on this machine: namespaces that OpenSSH reaches, joined to this host by cables.

It has its own network, mount, process and time namespace, so its own ``/run`` (lock, journals), its own addresses, its
own clock and its own sshd. The kernel, its CPUs, ``/proc/sys`` and the number of huge pages are common to both.

Two veth pairs lead there: ``management``, over which ssh goes, and ``cable``, which is for frames alone.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from pytest_icbench.driver.workload.executable import workload_path
from pytest_icbench.host.lock import SEVERAL_HOSTS_VARIABLE

SSHD = "/usr/sbin/sshd"
#: The end of each cable in the second host.
THERE_NIC = "cable0"
#: What this host calls itself to a command that ``under_a_name`` runs: a real name can be so short that it stands in
#: compressed data by chance.
HERE_NAME = "icbench-first-of-two"
#: Its clock goes this much ahead of this host's, in seconds: nothing may rely on both agreeing.
CLOCK_AHEAD_S = 86_400
_WAIT_S = 10.0

_INIT = r"""
set -e
mount -t tmpfs -o mode=755,size=$RUN_SIZE tmpfs /run
mkdir -p /run/sshd /run/lock /run/netns /run/cgroup
mount --rbind /sys/fs/cgroup /run/cgroup
pools=$(sed -n 's|^tmpfs \(/sys/[^ ]*/hugepages\) .*|\1|p' /proc/mounts)  # of scripts/own_host.sh
for pool in $pools; do mkdir -p "/run/pools$pool"; mount --bind "$pool" "/run/pools$pool"; done
mount -t sysfs sysfs /sys
for pool in $pools; do mount --bind "/run/pools$pool" "$pool"; umount "/run/pools$pool"; done
[ ! -d /run/pools ] || rm -r /run/pools
mount --rbind /run/cgroup /sys/fs/cgroup
umount -R -l /run/cgroup
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
[ ! -e /etc/machine-id ] || mount --bind "$DIRECTORY/machine-id" /etc/machine-id
ip link set lo up
: >"$DIRECTORY/up"
exec "$WORKLOAD" pause
"""

_SSHD_CONFIG = """
ListenAddress {address}:22
HostKey {directory}/host_key
AuthorizedKeysFile {directory}/authorized_keys
PidFile {directory}/sshd.pid
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
StrictModes no
UsePAM no
UseDNS no
PrintMotd no
PrintLastLog no
SetEnv {variable}=1
"""

#: Of the client: nothing of the user's own configuration, keys and agent takes part.
_SSH_CONFIG = """
Host {address}
  User root
  IdentityFile {directory}/client_key
  IdentitiesOnly yes
  IdentityAgent none
  UserKnownHostsFile {directory}/known_hosts
  GlobalKnownHostsFile /dev/null
  StrictHostKeyChecking yes
"""


def under_a_name(argv: Sequence[str]) -> list[str]:
    """Returns the command line that runs another one, in the same process, on a host called ``HERE_NAME``."""
    rename = f'echo {HERE_NAME} >/proc/sys/kernel/hostname && exec "$@"'
    return ["unshare", "--uts", "sh", "-c", rename, "sh", *argv]


def unsupported_reason() -> str | None:
    """Returns why this machine cannot have a second host; None if it can."""
    if os.geteuid() != 0:
        return "namespaces need root"
    missing = [name for name in (SSHD, "ssh", "ssh-keygen", "unshare", "nsenter", "ip") if shutil.which(name) is None]
    return f"{missing[0]} is missing: apt install openssh-server iproute2" if missing else None


def _run(*argv: str | Path, check: bool = True, **more: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(word) for word in argv], capture_output=True, text=True, timeout=60, check=check, **more)


def _free_network() -> str:
    """Returns the first network for documentation (RFC 5737) that this host does not use."""
    used = _run("ip", "-4", "addr", "show", "scope", "global").stdout + _run("ip", "-4", "route").stdout
    lines = [line for line in used.splitlines() if "icbmgmt" not in line]
    return next(
        net
        for net in ("198.51.100", "203.0.113", "192.0.2")
        if not any(f" {net}." in line or line.startswith(f"{net}.") for line in lines)
    )


class SecondHost:
    """Another host. ``number`` distinguishes several. Use ``second_host``, which removes it whatever happens.

    Attributes:
        address: of its sshd.
        here_nic: this host's end of the cable; the other is ``THERE_NIC``.
        pid: its first process, by which its namespaces are entered.
    """

    def __init__(self, directory: Path, number: int = 0, *, run_mib: int = 512) -> None:
        self.number = number
        self.directory = directory / f"host{number}"
        network = _free_network()
        self.here_address, self.address = f"{network}.{4 * number + 1}", f"{network}.{4 * number + 2}"
        self.management_nic, self.here_nic = f"icbmgmt{number}", f"icbcable{number}"
        self.pid = 0
        self._run_mib = run_mib
        self._init: subprocess.Popen[bytes] | None = None
        self._sshd: subprocess.Popen[bytes] | None = None

    def build(self) -> None:
        """Makes everything and waits until its sshd answers."""
        self.directory.mkdir(parents=True)
        for name in ("host_key", "client_key", "other_key"):
            _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", self.directory / name)
        self.write("authorized_keys", self.read("client_key.pub"))
        self.write("known_hosts", f"{self.address} {self.read('host_key.pub')}")
        self.write("machine-id", f"{self.number:032x}\n")
        self.write(
            "sshd_config",
            _SSHD_CONFIG.format(address=self.address, directory=self.directory, variable=SEVERAL_HOSTS_VARIABLE),
        )
        self.write("ssh_config", _SSH_CONFIG.format(address=self.address, directory=self.directory))
        (self.directory / "bin").mkdir()
        self.write("bin/ssh", f'#!/bin/sh\nexec {shutil.which("ssh")} -F {self.directory}/ssh_config "$@"\n')
        (self.directory / "bin/ssh").chmod(0o755)
        self._start()
        for link, there in ((self.management_nic, "mgmt0"), (self.here_nic, THERE_NIC)):
            _run("ip", "link", "add", link, "type", "veth", "peer", "name", there, "netns", str(self.pid))
            _run("ip", "link", "set", link, "up")
            self.run("ip", "link", "set", there, "up")
        _run("ip", "addr", "add", f"{self.here_address}/30", "dev", self.management_nic)
        self.run("ip", "addr", "add", f"{self.address}/30", "dev", "mgmt0")
        self.start_sshd()

    def _start(self) -> None:
        offset = str(CLOCK_AHEAD_S * (self.number + 1))
        argv = ["unshare", "--net", "--mount", "--pid", "--uts", "--time", "--monotonic", offset, "--boottime", offset]
        argv += ["--fork", "--kill-child", "--mount-proc", "--propagation", "private", "sh", "-c", _INIT]
        environment = {
            **os.environ,
            "DIRECTORY": str(self.directory),
            "RUN_SIZE": f"{self._run_mib}m",
            "WORKLOAD": str(workload_path()),
        }
        with (self.directory / "init.log").open("wb") as log:
            self._init = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, process_group=0
            )
        self._await(lambda: (self.directory / "up").exists(), "its first process", "init.log")
        children = Path(f"/proc/{self._init.pid}/task/{self._init.pid}/children").read_text().split()
        self.pid = int(children[0])
        self.run("hostname", f"icbench-second{self.number}")

    def _await(self, ready: Any, what: str, log: str) -> None:
        deadline = time.monotonic() + _WAIT_S
        while not ready():
            if time.monotonic() > deadline:
                raise RuntimeError(f"second host: {what} did not come up:\n{self.read(log)}")
            time.sleep(0.01)

    def read(self, name: str) -> str:
        """Returns the text of one of its files (keys, configurations, logs)."""
        return (self.directory / name).read_text(encoding="utf-8")

    def write(self, name: str, text: str) -> None:
        """Writes one of its files."""
        (self.directory / name).write_text(text, encoding="utf-8")

    def start_sshd(self) -> None:
        """Starts its sshd and waits until it listens."""
        with (self.directory / "sshd.log").open("wb") as log:
            self._sshd = subprocess.Popen(
                self.enter([SSHD, "-D", "-e", "-f", str(self.directory / "sshd_config")]),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                process_group=0,
            )
        self._await(lambda: "Server listening" in self.read("sshd.log"), "its sshd", "sshd.log")

    def kill_sshd(self) -> None:
        """Kills its sshd and every connection that it has."""
        for pid in self.processes("sshd"):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if self._sshd is not None:
            self._sshd.kill()
            self._sshd.wait(_WAIT_S)

    def processes(self, word: str) -> list[int]:
        """Returns its processes with a word in their command line, by their ids on this host."""
        namespace = Path(f"/proc/{self.pid}/ns/pid").readlink()
        found = []
        for entry in Path("/proc").iterdir():
            with suppress(OSError):
                if entry.name.isdigit() and (entry / "ns/pid").readlink() == namespace:
                    line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                    if word in line and int(entry.name) != self.pid:
                        found.append(int(entry.name))
        return found

    def enter(self, argv: Sequence[str]) -> list[str]:
        """Returns the command line that runs another one there."""
        entered = ["env", f"{SEVERAL_HOSTS_VARIABLE}=1", *argv]
        return ["nsenter", "--target", str(self.pid), "--net", "--mount", "--pid", "--uts", "--time", "--", *entered]

    def run(self, *argv: str | Path, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Runs a short command there, without ssh."""
        return _run(*self.enter([str(word) for word in argv]), check=check)

    def python(self, source: str) -> Any:
        """Runs Python there, without ssh; returns what it prints as JSON."""
        return json.loads(self.run(sys.executable, "-c", source).stdout)

    def snapshot(self) -> dict[str, dict[str, str]]:
        """Runs ``tests.host.snapshot.take`` there."""
        checkout = str(Path(__file__).parents[1])
        found: dict[str, dict[str, str]] = self.python(
            f"import json, sys; sys.path.append({checkout!r})\n"
            "from tests.host import snapshot; print(json.dumps(snapshot.take()))"
        )
        return found

    @property
    def environment(self) -> Mapping[str, str]:
        """The environment for ``ssh``, with a configuration for this host alone."""
        return {**os.environ, "PATH": f"{self.directory}/bin:{os.environ['PATH']}"}

    def remove(self) -> None:
        """Ends every process of it; its namespaces, mounts and cables go with them. Idempotent."""
        if self.pid:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)  # and the kernel kills all others of its PID namespace
        for process in (self._init, self._sshd):
            if process is not None:
                process.kill()
                process.wait(_WAIT_S)
        for link in (self.management_nic, self.here_nic):
            _run("ip", "link", "delete", link, check=False)


@contextmanager
def second_host(directory: Path, number: int = 0, *, run_mib: int = 512) -> Iterator[SecondHost]:
    """Builds a second host, and removes it at the end."""
    host = SecondHost(directory, number, run_mib=run_mib)
    try:
        host.build()
        yield host
    finally:
        host.remove()


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecondHost]:
    """The second host of a module's tests; skips where there can be none."""
    reason = unsupported_reason()
    if reason is not None:
        pytest.skip(reason)
    with second_host(tmp_path_factory.mktemp("second")) as host:
        yield host
