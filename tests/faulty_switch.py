# SPDX-License-Identifier: BSD-3-Clause
"""A ``conftest.py`` with a switch ``faulty``: the kernel's bridge, of which one method is broken."""

from __future__ import annotations

TEXT = """
import os, subprocess, sys
import pytest
from pytest_icbench import api
from pytest_icbench.driver.switch.kernel.linux_bridge import LinuxBridge

METHOD, FAULT = {method!r}, {fault!r}


class Silent(Exception):
    def __str__(self):
        raise ValueError


def fault():
    if FAULT == "exits":
        sys.exit(7)
    if FAULT == "fails":
        pytest.fail("of its own")
    if FAULT == "silent":
        raise Silent
    if FAULT.startswith("returns "):
        return eval(FAULT.removeprefix("returns "))
    return {{}}["nix"]


def run(text, *words):
    return subprocess.Popen([*words, sys.executable, "-c", text], start_new_session=True)


class Faulty(LinuxBridge):
    name = "faulty"


def broken(self, *arguments, **keywords):
    return fault()


def started(self, session, spec, attachments):
    if FAULT == "leaves a process":
        run("import time; time.sleep(1000)")
    if FAULT == "forks without end":
        run("import os, time\\nwhile True:\\n try: os.fork()\\n except OSError: time.sleep(0.05)")
    if FAULT == "logs a gigabyte":
        argv = [sys.executable, "-c", "import os\\nfor _ in range(1024): os.write(2, b'x' * 2**20)"]
        self.noisy = session.spawner.start(argv, log=spec.work_dir / "noisy.log")
    return LinuxBridge.start(self, session, spec, attachments)


def stopped(self):
    if hasattr(self, "noisy"):
        self.noisy.stop()
    LinuxBridge.stop(self)


if METHOD == "processes":
    Faulty.start, Faulty.stop = started, stopped
else:
    setattr(Faulty, METHOD, broken)


@pytest.hookimpl(optionalhook=True)
def pytest_icbench_switches(config):
    return [Faulty]
"""


def conftest(method: str, fault: str = "raises") -> str:
    """The file's text.

    Args:
        method: the broken method, or ``processes``.
        fault: ``raises``, ``exits``, ``fails``, ``silent`` or ``returns EXPRESSION``; of ``processes`` also ``leaves a
            process``, ``forks without end``, ``logs a gigabyte``.
    """
    return TEXT.format(method=method, fault=fault)
