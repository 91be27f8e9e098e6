# SPDX-License-Identifier: BSD-3-Clause
"""Makes a ``conftest.py`` with switches that are the kernel's bridge with one broken method each."""

from __future__ import annotations

from collections.abc import Mapping

TEXT = """
import os, subprocess, sys
import pytest
from pytest_icbench import api
from pytest_icbench.driver.switch.kernel.linux_bridge import LinuxBridge


class Silent(Exception):
    def __str__(self):
        raise ValueError


def meet(fault):
    if fault == "exits":
        sys.exit(7)
    if fault == "fails":
        pytest.fail("of its own")
    if fault == "silent":
        raise Silent
    if fault.startswith("returns "):
        return eval(fault.removeprefix("returns "))
    return {{}}["nix"]


def run(text, *words):
    return subprocess.Popen([*words, sys.executable, "-c", text], start_new_session=True)


def with_processes(fault):
    def start(self, session, spec, attachments):
        if fault == "leaves a process":
            run("import time; time.sleep(1000)")
        if fault == "forks without end":
            run("import os, time\\nwhile True:\\n try: os.fork()\\n except OSError: time.sleep(0.5)")
        if fault == "logs a gigabyte":
            argv = [sys.executable, "-c", "import os\\nfor _ in range(1024): os.write(2, b'x' * 2**20)"]
            self.noisy = session.spawner.start(argv, log=spec.work_dir / "noisy.log")
        return LinuxBridge.start(self, session, spec, attachments)

    def stop(self):
        if hasattr(self, "noisy"):
            self.noisy.stop()
        LinuxBridge.stop(self)

    return {{"start": start, "stop": stop}}


def faulty(name, method, fault):
    broken = {{method: lambda self, *arguments, **keywords: meet(fault)}}
    members = with_processes(fault) if method == "processes" else broken
    return type("Faulty", (LinuxBridge,), {{"name": name, **members}})


@pytest.hookimpl(optionalhook=True)
def pytest_icbench_switches(config):
    return [faulty(name, *what) for name, what in {faults!r}.items()]
"""


def conftest(faults: Mapping[str, tuple[str, str]]) -> str:
    """Returns the file's text.

    Args:
        faults: by the switch's name its broken method and the fault: ``raises``, ``exits``, ``fails``, ``silent`` or
            ``returns EXPRESSION``; or ``processes`` and ``leaves a process``, ``forks without end`` or ``logs a
            gigabyte``.
    """
    return TEXT.format(faults=dict(faults))
