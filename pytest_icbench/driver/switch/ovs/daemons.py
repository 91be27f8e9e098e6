# SPDX-License-Identifier: BSD-3-Clause
"""A private Open vSwitch: database, daemons, tools and their output, separate from any other on the host."""

from __future__ import annotations

import json
import re
import shutil
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_icbench.driver.switch.common.daemon import Daemon
from pytest_icbench.driver.switch.dpdk import dpdk_process
from pytest_icbench.driver.switch.protocol import Busy, SwitchSpec
from pytest_icbench.errors import ProvisionError, Unsupported
from pytest_icbench.host.answers import read_answer
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.net import links

_FLOW = re.compile(r"\bn_packets=(\d+),.*\bin_port=(\d+)")
_DESCRIBED = re.compile(r"^\s*(\w+)\(.*\): addr:")
_PORT = re.compile(r"^\s*port\s+(\S+?):")
_TX_DROPS = re.compile(r"\bovs_tx_\w*drops=(\d+)")
_CYCLES = re.compile(r"^\s*(idle|processing) cycles\s*:\s*(\d+)")
_RECEIVED = re.compile(r"^\s*packets received\s*:\s*(\d+)")
_THREAD = re.compile(r"^pmd thread .*core_id (\d+)")
_QUEUE = re.compile(r"^ *port: (\S+) +queue-id: +(\d+) +\((?:enabled|(disabled))\)", re.MULTILINE)
#: The versions of Open vSwitch and of its DPDK, if it has one.
_VERSIONS = r"\(Open vSwitch\) (\S+)(?:(?s:.*)^DPDK (\S+))?"
_REMEDY = "run `icbench get ovs`, or install Debian's package openvswitch-switch-dpdk"
#: Debian has one daemon with DPDK and one without.
_DAEMONS = (
    "/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk",
    "ovs-vswitchd-dpdk",
    "ovs-vswitchd",
    "/usr/sbin/ovs-vswitchd",
)
_SCHEMAS = ("/usr/share/openvswitch", "/usr/local/share/openvswitch")
_TOOL_S = 10


def send_request(path: Path, command: str, *arguments: str, timeout_s: float) -> str:
    """Sends a command to a control socket (``--unixctl``, JSON-RPC), as ``ovs-appctl`` does; returns the answer.

    No program is started, because it would take CPU time from an endpoint during a launch. Raises ProvisionError with
    the daemon's reason if it refuses, if it does not run, or after ``timeout_s``.
    """
    with open_request(path, command, *arguments, timeout_s=timeout_s) as answer:
        return answer()


@contextmanager
def open_request(path: Path, command: str, *arguments: str, timeout_s: float) -> Iterator[Callable[[], str]]:
    """Sends a command as ``send_request`` does, and yields the function that waits for the answer."""
    deadline = time.monotonic() + timeout_s
    request = json.dumps({"id": 0, "method": command, "params": list(arguments)}).encode()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:

        @contextmanager
        def explained() -> Iterator[None]:
            try:
                yield
            except TimeoutError:
                raise ProvisionError(f"{path} has not answered {command} within {timeout_s:g} s") from None
            except OSError as error:
                raise ProvisionError(f"{path} does not take {command}: {error.strerror or error}") from None

        def answer() -> str:
            with explained():
                reply = _read(connection, deadline)
            if reply.get("error") is not None:
                raise ProvisionError(f"{path} refuses {command}: {str(reply['error']).strip()}")
            return str(reply.get("result") or "")

        with explained():
            connection.settimeout(timeout_s)
            connection.connect(str(path))
            connection.sendall(request)
        yield answer


def _read(connection: socket.socket, deadline: float) -> dict[str, object]:
    """Reads one JSON object. Raises OSError."""
    try:
        return dict(json.loads(read_answer(connection, _is_object, deadline)))
    except (ValueError, TypeError):
        raise ConnectionError("it has hung up") from None


def _is_object(text: bytearray) -> bool:
    if not text.rstrip().endswith(b"}"):
        return False
    try:
        json.loads(text)
    except ValueError:
        return False  # the brace is inside the object
    return True


def parse_flows(text: str) -> dict[int, int]:
    """Returns packets by ingress port, from ``ovs-ofctl dump-flows``, of the flows that match on it."""
    return {int(port): int(packets) for packets, port in _FLOW.findall(text)}


def parse_drops(text: str) -> dict[int, int]:
    """Returns unsent packets by port, from ``ovs-ofctl dump-ports`` of OpenFlow 1.4."""
    drops: dict[int, int] = {}
    port: int | None = None
    for line in text.splitlines():
        if match := _PORT.match(line):
            port = int(match.group(1)) if match.group(1).isdigit() else None
        elif port is not None:
            counts = [int(number) for number in _TX_DROPS.findall(line)]
            if counts:
                drops[port] = drops.get(port, 0) + sum(counts)
    return drops


def parse_down(text: str) -> set[int]:
    """Returns the ports without a link, from ``ovs-ofctl dump-ports-desc``."""
    down: set[int] = set()
    port: int | None = None
    for line in text.splitlines():
        if match := _DESCRIBED.match(line):
            port = int(match.group(1)) if match.group(1).isdigit() else None
        if port is not None and "LINK_DOWN" in line:
            down.add(port)
    return down


def parse_cycles(text: str) -> Busy:
    """Returns the cycles of all PMD threads, and the frames of each, from ``dpif-netdev/pmd-stats-show``."""
    cycles = {"idle": 0, "processing": 0}
    frames: dict[str, int] = {}
    thread: re.Match[str] | None = None
    for line in text.splitlines():
        if not line.startswith(" "):
            thread = _THREAD.match(line)
        elif thread and (match := _CYCLES.match(line)):
            cycles[match.group(1)] += int(match.group(2))
        elif thread and (match := _RECEIVED.match(line)):
            frames[thread[1]] = int(match[1])
    return Busy(busy_cycles=cycles["processing"], idle_cycles=cycles["idle"], frames=frames)


def parse_table(text: str) -> list[dict[str, Any]]:
    """Returns rows of ``ovs-vsctl --format=json``: sets as lists, maps as dicts, UUIDs as text. Raises ValueError."""
    table = json.loads(text)
    names = table["headings"]
    return [dict(zip(names, map(_plain, row), strict=True)) for row in table["data"]]


def _plain(value: Any) -> Any:
    if isinstance(value, list) and len(value) == 2:
        kind, content = value
        if kind == "set":
            return [_plain(member) for member in content]
        if kind == "map":
            return {key: _plain(entry) for key, entry in content}
        if kind in ("uuid", "named-uuid"):
            return content
    return value


def parse_polling_cores(text: str) -> dict[str, int]:
    """Returns the core that polls each port's first queue, from ``ovs-appctl dpif-netdev/pmd-rxq-show``."""
    cores: dict[str, int] = {}
    core = -1
    for line in text.splitlines():
        if thread := _THREAD.match(line):
            core = int(thread[1])
        elif queue := re.search(r"port: (\S+) +queue-id: +0 ", line):
            cores[queue[1]] = core
    return cores


def find_disabled_queue(text: str, queues: int = 1) -> bool:
    """Whether a port lacks one of its ``queues``, or its endpoint has not enabled it (``dpif-netdev/pmd-rxq-show``)."""
    enabled_by_port: dict[str, set[int]] = {}
    for port, queue, disabled in _QUEUE.findall(text):
        enabled_by_port.setdefault(port, set()).update(() if disabled else (int(queue),))
    return any(not enabled >= set(range(queues)) for enabled in enabled_by_port.values())


@dataclass(frozen=True, slots=True)
class Installation:
    """The files of an Open vSwitch. ``dpdk``: version of the DPDK in it; empty: it was built without."""

    vswitchd: Path
    ovsdb_server: Path
    ovsdb_tool: Path
    vsctl: Path
    ofctl: Path
    schema: Path
    version: str
    dpdk: str


def find_installation(session: HostSession, given: Path | None, *, needs_dpdk: bool = True) -> Installation:
    """Returns the daemon with its tools, preferably of the same prefix or build.

    Raises Unsupported with the remedy if a file or the needed DPDK is missing, ProvisionError if the daemon hangs.
    """
    daemon = dpdk_process.find_binary(session, "ovs", given, _DAEMONS, _REMEDY)
    shown = dpdk_process.query_version(session, "ovs", daemon, [daemon, "--version"], _VERSIONS)
    version, dpdk = shown[1], shown[2] or ""
    if needs_dpdk and not dpdk:
        raise Unsupported(f"{daemon} was built without DPDK: {_REMEDY}, or name one with it: --icbench-binary ovs=PATH")
    # A prefix, a package's, whose daemon is one directory deeper, or a build.
    above = daemon.parents[1:3]
    places = [parent / place for parent in above for place in ("bin", "sbin", "ovsdb", "utilities")]

    def tool(name: str) -> Path:
        for candidate in (*(str(place / name) for place in places), name, f"/usr/sbin/{name}"):
            if path := shutil.which(candidate):
                return Path(path)
        raise Unsupported(f"{name} of Open vSwitch is not installed: install it (Debian's package openvswitch-switch)")

    for place in (*(parent / "share" / "openvswitch" for parent in above), daemon.parent, *map(Path, _SCHEMAS)):
        schema = Path(place, "vswitch.ovsschema")
        if schema.is_file():
            break
    else:
        raise Unsupported(f"Open vSwitch's vswitch.ovsschema is not in {_SCHEMAS[0]}: {_REMEDY}")
    return Installation(
        vswitchd=daemon,
        ovsdb_server=tool("ovsdb-server"),
        ovsdb_tool=tool("ovsdb-tool"),
        vsctl=tool("ovs-vsctl"),
        ofctl=tool("ovs-ofctl"),
        schema=schema,
        version=version,
        dpdk=dpdk,
    )


def _serves(path: Path) -> bool:
    """Whether a process listens at a socket, whose file exists earlier."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(_TOOL_S)
        try:
            client.connect(str(path))
        except OSError:
            return False
    return True


class OvsDaemons:
    """``ovsdb-server`` and ``ovs-vswitchd`` with a fresh database.

    All files are below ``spec.work_dir``. ``ovs-vswitchd`` has its own network namespace, with which its tap devices
    end.
    """

    def __init__(self, session: HostSession, spec: SwitchSpec, installation: Installation, ports: int = 0) -> None:
        self.spec = spec
        #: Seconds for an answer. The daemon needs half a second for each new endpoint and does not answer meanwhile.
        self.patience_s = max(_TOOL_S, ports)
        self.installation = installation
        self._session = session
        self._netns: str | None = None
        self._database: Daemon | None = None
        self._switch: Daemon | None = None
        directory = str(spec.work_dir)
        self._env = {
            "OVS_RUNDIR": directory,
            "OVS_LOGDIR": directory,
            "OVS_DBDIR": directory,
            "OVS_SYSCONFDIR": directory,
        }

    @property
    def _db(self) -> Path:
        return self.spec.work_dir / "db.sock"

    @property
    def _ctl(self) -> Path:
        return self.spec.work_dir / "vswitchd.ctl"

    def start_database(self) -> None:
        """Makes the database and serves it. Raises ProvisionError with the log's tail."""
        files, directory = self.installation, self.spec.work_dir
        database = directory / "conf.db"
        self._session.spawner.run([files.ovsdb_tool, "create", database, files.schema], timeout_s=_TOOL_S)
        argv: list[str | Path] = [
            files.ovsdb_server,
            database,
            f"--remote=punix:{self._db}",
            f"--unixctl={directory}/ovsdb.ctl",
            "--no-chdir",
            "-vconsole:info",
            "-vsyslog:off",
        ]
        self._database = self._start("ovsdb-server", argv, None)
        self._database.wait_until(lambda: _serves(self._db), failure=f"has not opened {self._db}", timeout_s=_TOOL_S)

    def start_switch(self, cpus: Sequence[int] | None = None) -> None:
        """Starts the daemon with the configuration in the database. Raises ProvisionError.

        ``cpus``: CPUs of the threads that poll no DPDK port; None: the service CPUs.
        """
        self._netns = links.create_netns(self._session, f"{self.spec.name}-ovs")
        argv: list[str | Path] = [
            self.installation.vswitchd,
            f"unix:{self._db}",
            f"--unixctl={self._ctl}",
            "--no-chdir",
            "-vconsole:info",
            "-vsyslog:off",
        ]
        self._switch = self._start("ovs-vswitchd", argv, self._netns, cpus)

    def _start(
        self, name: str, argv: Sequence[str | Path], netns: str | None, cpus: Sequence[int] | None = None
    ) -> Daemon:
        options = dpdk_process.DaemonOptions(netns, self._env, cpus or self.spec.service_cpus)
        return dpdk_process.start_daemon(self._session, self.spec, name, argv, options)

    @property
    def netns(self) -> str:
        """The path of the daemon's network namespace. Raises ProvisionError if it was not started."""
        if self._netns is None:
            raise ProvisionError("ovs-vswitchd was not started")
        return self._netns

    @property
    def switch(self) -> Daemon:
        """The running ``ovs-vswitchd``. Raises ProvisionError if it was not started."""
        if self._switch is None:
            raise ProvisionError("ovs-vswitchd was not started")
        return self._switch

    def vsctl(self, *arguments: str, timeout_s: int = 0) -> str:
        """Returns the output of ``ovs-vsctl`` on the private database. Raises ProvisionError with the daemon's log."""
        timeout_s = timeout_s or self.patience_s
        argv: list[str | Path] = [
            self.installation.vsctl,
            f"--timeout={timeout_s}",
            f"--db=unix:{self._db}",
            *arguments,
        ]
        return self._tool(argv, timeout_s)

    def check_ports(self, numbers: Mapping[str, int]) -> None:
        """Raises ProvisionError if the database has an error for a port, although ovs-vsctl succeeded."""
        rows = parse_table(self.vsctl("--format=json", "--columns=name,ofport,error", "list", "Interface"))
        for row in rows:
            if row["name"] in numbers and (row["error"] or row["ofport"] != numbers[row["name"]]):
                reason = row["error"] or "no port number"
                raise ProvisionError(
                    f"Open vSwitch could not make the port {row['name']} ({reason}){self.switch.evidence()}"
                )

    def appctl(self, *arguments: str, timeout_s: float = 0.0) -> str:
        """Returns the daemon's answer to a command of ``ovs-appctl``. Raises ProvisionError with the daemon's log."""
        with self._explained():
            return send_request(self._ctl, *arguments, timeout_s=timeout_s or self.patience_s)

    def revalidate(self) -> None:
        """Updates OpenFlow's counters from the datapath now. Raises ProvisionError with the daemon's log.

        ``revalidator/wait`` alone waits for the rest of the revalidators' half second. After a pause they start again.
        """
        with self._explained():
            send_request(self._ctl, "revalidator/pause", timeout_s=self.patience_s)
            resumed = False
            try:
                with open_request(self._ctl, "revalidator/wait", timeout_s=self.patience_s) as answer:
                    # Only once: the daemon hangs at a second resume.
                    resumed = True
                    send_request(self._ctl, "revalidator/resume", timeout_s=self.patience_s)
                    answer()
            finally:
                if not resumed:
                    send_request(self._ctl, "revalidator/resume", timeout_s=self.patience_s)

    def ofctl(self, command: str, bridge: str, *arguments: str, text: str | None = None, timeout_s: int = 0) -> str:
        """Returns the output of ``ovs-ofctl`` on a bridge, in OpenFlow 1.4.

        Args:
            command: its subcommand, which the bridge and ``arguments`` follow.
            text: its standard input.
            timeout_s: seconds for an answer; 0: as usual.

        Raises ProvisionError with the daemon's log.
        """
        target = f"unix:{self.spec.work_dir}/{bridge}.mgmt"
        timeout_s = timeout_s or self.patience_s
        words = [f"--timeout={timeout_s}", "-O", "OpenFlow14", "--no-names", command, target, *arguments]
        return self._tool([self.installation.ofctl, *words], timeout_s, text)

    def _tool(self, argv: Sequence[str | Path], timeout_s: int, text: str | None = None) -> str:
        with self._explained():
            return self._session.spawner.run(argv, timeout_s=timeout_s + 1.0, env=self._env, input=text).stdout

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Adds the end of the daemon's log to an error, or reports the daemon that has died or is stopped."""
        try:
            yield
        except ProvisionError as error:
            self.check()
            tail = self._switch.evidence() if self._switch is not None else ""
            faults = [fault for daemon in self._daemons if (fault := daemon.fault())]
            raise ProvisionError(f"{'; '.join([*faults, str(error)])}{tail}") from None

    @property
    def _daemons(self) -> list[Daemon]:
        return [daemon for daemon in (self._switch, self._database) if daemon is not None]

    def check(self) -> None:
        """Raises ProvisionError with the log's tail if a daemon has died."""
        for daemon in self._daemons:
            daemon.check()

    def end(self) -> None:
        """Ends both daemons and leaves their namespace. Idempotent."""
        for daemon in self._daemons:
            daemon.stop()

    def stop(self) -> None:
        """Ends both daemons and removes the namespace. Idempotent."""
        self.end()
        if self._netns is not None:
            with suppress(ProvisionError):
                links.delete_netns(self._session, self._netns)
            self._netns = None
