# SPDX-License-Identifier: BSD-3-Clause
"""A private Open vSwitch: database, daemons and tools in a directory, apart from any other that runs on the host."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from pytest_icbench.driver.switch.common.daemon import Daemon
from pytest_icbench.driver.switch.dpdk import dpdk_process
from pytest_icbench.driver.switch.ovs.output import parse_table, parse_versions
from pytest_icbench.driver.switch.ovs.unixctl import ask, asked
from pytest_icbench.driver.switch.protocol import SwitchSpec
from pytest_icbench.errors import NotStarted, ProvisionError, Unsupported
from pytest_icbench.host.net import links
from pytest_icbench.host.session import HostSession

_REMEDY = "install it (Debian's package openvswitch-switch-dpdk)"
#: Debian has one daemon with DPDK and one without.
_DAEMONS = (
    "/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk",
    "ovs-vswitchd-dpdk",
    "ovs-vswitchd",
    "/usr/sbin/ovs-vswitchd",
)
_SCHEMAS = ("/usr/share/openvswitch", "/usr/local/share/openvswitch")
_TOOL_S = 10


@dataclass(frozen=True, slots=True)
class Installation:
    """The files of an Open vSwitch.

    Attributes:
        version: of Open vSwitch.
        dpdk: version of the DPDK in it; empty: it was built without.
    """

    vswitchd: Path
    ovsdb_server: Path
    ovsdb_tool: Path
    vsctl: Path
    ofctl: Path
    schema: Path
    version: str
    dpdk: str


def find_installation(session: HostSession, given: Path | None, *, needs_dpdk: bool = True) -> Installation:
    """Returns the daemon with its tools, those of the same prefix first. Changes nothing.

    Raises Unsupported with the remedy if something is missing, or if a daemon that needs DPDK was built without. Raises
    ProvisionError if the daemon is killed, or hangs, while it tells its version.
    """
    daemon = dpdk_process.find_binary(session, "ovs", given, _DAEMONS, _REMEDY)
    version, dpdk = _versions(session, daemon)
    if needs_dpdk and not dpdk:
        raise Unsupported(f"{daemon} was built without DPDK: {_REMEDY}, or name one with it: --icbench-binary ovs=PATH")
    prefix = daemon.parent.parent

    def tool(name: str) -> Path:
        for candidate in (prefix / "bin" / name, prefix / "sbin" / name, name, f"/usr/sbin/{name}"):
            if path := shutil.which(candidate):
                return Path(path)
        raise Unsupported(f"{name} of Open vSwitch is not installed: install it (Debian's package openvswitch-switch)")

    for place in (prefix / "share" / "openvswitch", *_SCHEMAS):
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


def _versions(session: HostSession, daemon: Path) -> tuple[str, str]:
    try:
        shown = session.spawner.run([daemon, "--version"], timeout_s=_TOOL_S, check=False)
    except NotStarted as error:
        raise Unsupported(f"{daemon} cannot be used as ovs: {error}") from None
    version, dpdk = parse_versions(shown.stdout)
    if version is None:
        raise Unsupported(f"{daemon} is not Open vSwitch: name an ovs-vswitchd with --icbench-binary ovs=PATH")
    return version, dpdk or ""


def _serves(path: Path) -> bool:
    """Whether a process listens at a socket. The file exists before that, and on a busy host long before."""
    with socket.socket(socket.AF_UNIX) as client:
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
        #: Seconds for an answer. The daemon needs half a second for each endpoint that comes, and meanwhile gives none.
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
        """Starts the daemon with the configuration that is in the database. Raises ProvisionError.

        Args:
            cpus: where its threads run that poll no port of DPDK; None: on the service CPUs.
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
        return dpdk_process.start_daemon(
            self._session, self.spec, name, argv, netns=netns, env=self._env, cpus=cpus or self.spec.service_cpus
        )

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
        """Raises ProvisionError if a port could not be made: ovs-vsctl succeeds all the same, the database shows it."""
        rows = parse_table(self.vsctl("--format=json", "--columns=name,ofport,error", "list", "Interface"))
        for row in rows:
            if row["name"] in numbers and (row["error"] or row["ofport"] != numbers[row["name"]]):
                reason = row["error"] or "no port number"
                raise ProvisionError(
                    f"Open vSwitch could not make the port {row['name']} ({reason}){self.switch.evidence()}"
                )

    def appctl(self, *arguments: str, timeout_s: float = 0.0) -> str:
        """Returns the private daemon's answer, as to ``ovs-appctl``. Raises ProvisionError with the daemon's log."""
        with self._explained():
            return ask(self._ctl, *arguments, timeout_s=timeout_s or self.patience_s)

    def revalidate(self) -> None:
        """Has the datapath's counts of running flows reach OpenFlow's now.

        ``revalidator/wait`` alone takes the rest of the revalidators' half second. After a pause they begin anew.

        Raises ProvisionError with the daemon's log.
        """
        with self._explained():
            ask(self._ctl, "revalidator/pause", timeout_s=self.patience_s)
            resumed = False
            try:
                with asked(self._ctl, "revalidator/wait", timeout_s=self.patience_s) as answer:
                    # Once only: the daemon hangs on a second resume.
                    resumed = True
                    ask(self._ctl, "revalidator/resume", timeout_s=self.patience_s)
                    answer()
            finally:
                if not resumed:
                    ask(self._ctl, "revalidator/resume", timeout_s=self.patience_s)

    def ofctl(self, command: str, bridge: str, *arguments: str, text: str | None = None) -> str:
        """Returns the output of ``ovs-ofctl`` on a bridge, in OpenFlow 1.4.

        Args:
            command: its subcommand, which the bridge and ``arguments`` follow.
            text: its standard input.

        Raises ProvisionError with the daemon's log.
        """
        target = f"unix:{self.spec.work_dir}/{bridge}.mgmt"
        words = [f"--timeout={self.patience_s}", "-O", "OpenFlow14", "--no-names", command, target, *arguments]
        return self._tool([self.installation.ofctl, *words], self.patience_s, text)

    def _tool(self, argv: Sequence[str | Path], timeout_s: int, text: str | None = None) -> str:
        with self._explained():
            return self._session.spawner.run(argv, timeout_s=timeout_s + 1.0, env=self._env, input=text).stdout

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Adds the end of the daemon's log to an error. If a daemon has died or is stopped, that is the error."""
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
