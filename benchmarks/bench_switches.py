# SPDX-License-Identifier: BSD-3-Clause
"""Two-port switches for the cooperative benchmark: one worker on a CPU of its own, vhost-user ports that they serve."""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import bench_host as host

OVS_SWITCHD = "/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk"
OVS_SCHEMA = "/usr/share/openvswitch/vswitch.ovsschema"
# The first connection to a fresh vhost socket may wait for its server's poll, once a second.
SETTLE_S = 1.2


@contextlib.contextmanager
def testpmd(directory: Path, cpu: int) -> Iterator[tuple[Path, Path]]:
    """testpmd in io mode; yields the sockets of its two ports."""
    sockets = directory / "t0", directory / "t1"
    devices = [f"--vdev=net_vhost{i},iface={path}" for i, path in enumerate(sockets)]
    lcores = ["--lcores", f"0@{cpu},1@{cpu}", "--main-lcore", "0"]
    options = ["-i", "--auto-start", "--forward-mode=io", "--nb-cores=1"]
    binary = host.program("dpdk-testpmd", "dpdk")
    command = host.pinned(cpu, [binary, *lcores, *host.EAL, "-m", "256", *devices, "--", *options])
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True
    )
    try:
        for path in sockets:
            host.wait_for(path, process)
        time.sleep(SETTLE_S)
        yield sockets
    finally:
        host.end(process)


@contextlib.contextmanager
def ovs(directory: Path, cpu: int, main_cpu: int) -> Iterator[tuple[Path, Path]]:
    """Open vSwitch with DPDK and its default flow, in a network namespace of its own; yields its ports' sockets."""
    run = directory / "ovs"
    run.mkdir()
    if not Path(OVS_SWITCHD).exists():
        raise host.fail(f"{OVS_SWITCHD} is missing: apt install openvswitch-switch-dpdk")
    environment = {**os.environ, "OVS_RUNDIR": str(run), "OVS_LOGDIR": str(run), "OVS_DBDIR": str(run)}
    database = f"unix:{run}/db.sock"

    def call(*words: str) -> None:
        subprocess.run(words, check=True, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def vsctl(*words: str) -> None:
        call("ovs-vsctl", f"--db={database}", "--timeout=20", *words)

    def appctl(name: str, *words: str) -> None:
        call("ovs-appctl", f"--target={run}/{name}.ctl", "--timeout=10", *words)

    def daemon(name: str, *words: str) -> None:
        call(
            *words,
            f"--pidfile={run}/{name}.pid",
            f"--unixctl={run}/{name}.ctl",
            f"--log-file={run}/{name}.log",
            "--detach",
        )

    call("ovsdb-tool", "create", f"{run}/conf.db", OVS_SCHEMA)
    daemon("db", "ovsdb-server", f"{run}/conf.db", f"--remote=punix:{run}/db.sock")
    try:
        vsctl("--no-wait", "init")
        settings = {
            "dpdk-init": "true",
            "dpdk-extra": " ".join(host.EAL),
            "dpdk-socket-mem": "384",
            # Without a limit its pool of buffers takes every huge page that is free.
            "dpdk-socket-limit": "384",
            "dpdk-lcore-mask": hex(1 << main_cpu),
            "pmd-cpu-mask": hex(1 << cpu),
        }
        pairs = [f'other_config:{key}="{value}"' for key, value in settings.items()]
        vsctl("--no-wait", "set", "Open_vSwitch", ".", *pairs)
        daemon("vs", "unshare", "--net", OVS_SWITCHD, database)
        try:
            vsctl("add-br", "br0", "--", "set", "bridge", "br0", "datapath_type=netdev")
            for port in ("o0", "o1"):
                vsctl("add-port", "br0", port, "--", "set", "Interface", port, "type=dpdkvhostuser")
            time.sleep(SETTLE_S)
            yield run / "o0", run / "o1"
        finally:
            appctl("vs", "exit", "--cleanup")
    finally:
        appctl("db", "exit")
