# SPDX-License-Identifier: BSD-3-Clause
"""QEMU: its command line, its monitor (QMP), and whether this host lets it use KVM."""

from __future__ import annotations

import fcntl
import json
import os
import re
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_icbench.errors import ProvisionError
from pytest_icbench.host.answers import left_s
from pytest_icbench.host.process import wait_until
from pytest_icbench.host.root import Root

PROGRAM = "qemu-system-x86_64"
#: The ports for commands: as many processes can run in a machine at a time (workload/src/machine/channel.h).
CHANNELS = 4
#: The place of the network device on the machine's bus, and its address there.
_SLOT = 0x10
PCI_ADDRESS = f"0000:00:{_SLOT:02x}.0"
#: The tap in the machine's network namespace on this host.
TAP = "tap0"
_KVM_CREATE_VM = 0xAE01
_VIRTUALIZES = re.compile(r"^flags\b.*\b(vmx|svm)\b", re.MULTILINE)
_ANSWER_S, _LISTENS_S, _POLL_S = 10.0, 2.0, 0.005
_ANSWER_MAX_BYTES = 2**20


def explain_no_kvm(device: Path = Path("/dev/kvm"), root: Root | None = None) -> str | None:
    """Returns why this process cannot run any kernel by KVM; None if it can.

    KVM without the CPU's own virtualization (its module kvm_pvm) makes machines, but only for kernels built for that.
    """
    if not _VIRTUALIZES.search((root or Root()).read("/proc/cpuinfo") or ""):
        return "the CPU shows neither VT-x nor AMD-V"
    try:
        opened = os.open(device, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        return f"{device} cannot be opened ({error.strerror})"
    try:
        os.close(fcntl.ioctl(opened, _KVM_CREATE_VM, 0))
    except OSError as error:
        return f"{device} makes no machine ({error.strerror})"
    finally:
        os.close(opened)
    return None


@dataclass(frozen=True, slots=True)
class Machine:
    """A virtual machine as it is at its start, without its network device.

    Attributes:
        init: path of its first program in the initramfs.
        memory_mib: its memory.
        page_kib: size of the host's pages that it has its memory in; None: ordinary ones.
        numa_node: node of the host that its memory is bound to; None: any.
        tap: whether it has a tap.
        vhost: whether the kernel carries the tap's frames (vhost-net).
    """

    name: str
    kernel: Path
    initramfs: Path
    init: Path
    directory: Path
    cpus: int
    memory_mib: int
    kvm: bool
    page_kib: int | None = None
    numa_node: int | None = None
    tap: bool = False
    vhost: bool = False

    @property
    def monitor(self) -> Path:
        """The socket of its monitor."""
        return self.directory / "qmp"

    def channel(self, number: int) -> Path:
        """Returns the socket of a port for commands."""
        return self.directory / f"c{number}"

    def argv(self, program: str = PROGRAM) -> list[str]:
        """Returns QEMU's command line. It waits for ``cont`` before the machine boots. Pure."""
        memory = f"memory-backend-memfd,id=memory,size={self.memory_mib}M,share=on"
        if self.page_kib is not None:
            memory += f",hugetlb=on,hugetlbsize={self.page_kib}K,prealloc=on"
        if self.numa_node is not None:
            memory += f",host-nodes={self.numa_node},policy=bind"
        argv = [program, "-name", self.name, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-S"]
        argv += ["-machine", "pc,memory-backend=memory", "-object", memory, "-m", str(self.memory_mib)]
        # A clock that stops, or a rate that changes, would be no clock: the machine sees that the host's does not.
        argv += ["-accel", "kvm", "-cpu", "host,migratable=off"] if self.kvm else []
        argv += [] if self.kvm else ["-accel", "tcg,thread=multi", "-cpu", "max,x-force-features=on,+invtsc"]
        # Emulation leaves memory barriers out for a machine that can have one CPU alone, and devices, which are threads
        # of their own, then miss what it does (until QEMU 10).
        argv += ["-smp", f"{self.cpus},maxcpus={self.cpus + (not self.kvm)}"]
        argv += ["-kernel", str(self.kernel), "-initrd", str(self.initramfs)]
        argv += ["-append", self._kernel_line(), "-serial", "stdio"]
        argv += ["-qmp", f"unix:{self.monitor},server=on,wait=off", "-device", "virtio-serial-pci"]
        for number in range(CHANNELS):
            argv += ["-chardev", f"socket,id=c{number},path={self.channel(number)},server=on,wait=off"]
            argv += ["-device", f"virtserialport,chardev=c{number},name=icbench.{number}"]
        if self.tap:
            vhost = ",vhost=on" if self.vhost else ""
            argv += ["-netdev", f"tap,id=net,ifname={TAP},script=no,downscript=no{vhost}"]
        return argv

    def _kernel_line(self) -> str:
        words = ["console=ttyS0", "quiet", "panic=-1", "tsc=reliable", "ipv6.disable=1", "net.ifnames=0"]
        words += [] if self.kvm else ["no_timer_check", "rcupdate.rcu_cpu_stall_suppress=1"]
        return " ".join([*words, f"rdinit={self.init}", "--", "guest"])


def device_properties(mac: str, *, packed: bool = False, mtu: int | None = None) -> dict[str, Any]:
    """Returns the arguments of ``device_add`` for the machine's network device."""
    properties: dict[str, Any] = {"driver": "virtio-net-pci", "id": "nic", "netdev": "net", "bus": "pci.0"}
    properties |= {"addr": f"{_SLOT:#x}", "mac": mac, "disable-legacy": "on", "packed": packed}
    return properties if mtu is None else {**properties, "host_mtu": mtu}


class Lines:
    """The lines of a monitor, from pieces of any length."""

    def __init__(self) -> None:
        self._rest = b""

    def take(self, data: bytes) -> list[Mapping[str, Any]]:
        """Returns the whole messages so far. Raises ValueError if one is no JSON object, or has no end."""
        *whole, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > _ANSWER_MAX_BYTES:
            raise ValueError("a message without an end")
        messages = [json.loads(line) for line in whole if line.strip()]
        if not all(isinstance(message, dict) for message in messages):
            raise ValueError("a message that is no object")
        return messages


class Monitor:
    """A connection with QEMU's monitor. A context manager. Raises ProvisionError, as all calls do."""

    def __init__(self, path: Path) -> None:
        self._lines, self._waiting = Lines(), list[Mapping[str, Any]]()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(_ANSWER_S)
        # Its path is there before it listens.
        if not wait_until(lambda: self._socket.connect_ex(str(path)) == 0, _LISTENS_S, _POLL_S):
            self._socket.close()
            raise ProvisionError(f"QEMU's monitor {path} does not answer: nothing listens there")
        self._next("QMP", "the greeting")
        self.call("qmp_capabilities")

    def call(self, command: str, **arguments: Any) -> Any:
        """Returns the answer to a command."""
        request = {"execute": command, "arguments": arguments} if arguments else {"execute": command}
        try:
            self._socket.sendall(json.dumps(request).encode() + b"\n")
        except OSError as error:
            raise ProvisionError(f"QEMU does not take {command}: {error.strerror}") from None
        return self._next("return", command)

    def _next(self, key: str, what: str) -> Any:
        """Returns what the next message with a key has; events are ignored."""
        deadline, late = time.monotonic() + _ANSWER_S, False
        while True:
            for message in iter(lambda: self._waiting.pop(0) if self._waiting else None, None):
                if "error" in message:
                    raise ProvisionError(f"QEMU refuses {what}: {message['error'].get('desc', message['error'])}")
                if key in message:
                    return message[key]
            if late:  # events may never end
                raise ProvisionError(f"QEMU does not answer {what} within {_ANSWER_S:g} s")
            late = time.monotonic() >= deadline  # what came while this process was stopped is read first
            self._receive(what, deadline)

    def _receive(self, what: str, deadline: float) -> None:
        try:
            self._socket.settimeout(left_s(deadline))
            data = self._socket.recv(65536)
            if not data:
                raise ValueError("it has closed the connection")
            self._waiting += self._lines.take(data)
        except (OSError, ValueError) as error:
            raise ProvisionError(f"QEMU does not answer {what}: {error}") from None

    def close(self) -> None:
        """Closes the connection. Idempotent."""
        self._socket.close()

    def __enter__(self) -> Monitor:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def threads(answer: Sequence[Mapping[str, Any]]) -> list[int]:
    """Returns the host's thread of each virtual CPU, in their order, from ``query-cpus-fast``."""
    return [int(cpu["thread-id"]) for cpu in sorted(answer, key=lambda cpu: int(cpu["cpu-index"]))]
