# SPDX-License-Identifier: BSD-3-Clause
"""Runs of pytest inside pytest, with the real host or a bench without one."""

from __future__ import annotations

import fcntl
import os
import pkgutil
import pty
import re
import struct
import subprocess
import sys
import termios
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import pytest

import pytest_icbench.plugin.session
from tests.plugin.fakes import FakeTestbed

# Loaded before the first inner run: pytester takes back what that loads, so each one would load it again, and a patch
# must hit what it uses.
for _module in pkgutil.walk_packages(pytest_icbench.plugin.__path__, "pytest_icbench.plugin."):
    with suppress(ImportError):  # of an extra that is not here
        import_module(_module.name)
with suppress(ImportError):  # can be loaded once a process only
    import vl_convert  # noqa: F401

_PACKAGE = str(Path(pytest_icbench.__file__).parents[1])
_CHECKOUT = str(Path(__file__).parents[2])
#: Only this plugin: others of the environment cost seconds a run, and are no part of what is tested.
LOAD = ("-p", "pytest_icbench.plugin.hooks", "-p", "no:cacheprovider")
#: Leaves CPUs to the other tests, as tests/conftest.py does for all that tests start; pytester takes that away.
_BESIDE_OTHERS = "-o icbench_precedence=none"


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> type[FakeTestbed]:
    """Replaces the host by a bench in the in-process runs of a test."""

    class Testbed(FakeTestbed):
        log: ClassVar[list[str]] = []
        unsupported: ClassVar[dict[str, str]] = {}

    monkeypatch.setattr(pytest_icbench.plugin.session, "Testbed", Testbed)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    return Testbed


class Runner:
    """Runs pytest on files of this test: ``run`` in this process, ``spawn`` in another one."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester
        self.path = pytester.path
        pytester.makeini("[pytest]\n")

    def write(self, **files: str) -> None:
        self.pytester.makepyfile(**{name: "import pytest\n" + text for name, text in files.items()})

    def ini(self, text: str) -> None:
        self.pytester.makeini("[pytest]\n" + text)

    def run(self, *arguments: Any) -> pytest.RunResult:
        return self.pytester.runpytest_inprocess(*LOAD, *arguments)

    def spawn(self, *arguments: Any) -> pytest.RunResult:
        return self.pytester.runpytest_subprocess(*LOAD, *arguments)

    def spawn_with_bench(self, *arguments: Any, before: str = "") -> pytest.RunResult:
        """Runs pytest in another process; it and its workers have the bench without a host."""
        self.put_bench(before)
        return self.spawn(*arguments)

    def terminal_with_bench(self, *arguments: str) -> tuple[str, list[str]]:
        """Does the same on a terminal of 80 columns. Returns what was written, and the screen at the end."""
        self.put_bench("")
        argv = [sys.executable, "-m", "pytest", *LOAD, *arguments]
        leader, follower = pty.openpty()
        fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 80, 0, 0))
        environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80", "NO_COLOR": "1"}
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=follower, stderr=follower, cwd=self.path, env=environment
        )
        os.close(follower)
        written = b""
        with suppress(OSError):  # the other end is closed
            while part := os.read(leader, 65536):
                written += part
        os.close(leader)
        assert process.wait(timeout=60) == 0, written.decode()
        text = written.decode()
        return text, screen(text)

    def put_bench(self, before: str) -> None:
        """Puts the bench without a host into the processes that run here."""
        self.pytester.makeconftest(
            f"import os, pathlib, sys\nsys.path.append({_CHECKOUT!r})\n"
            # A controller that lost a worker undoes nothing on the real host, where other tests run meanwhile.
            "import pytest_icbench.host.host_session\nnowhere = pathlib.Path('/nonexistent')\n"
            "for name in ('pytest_icbench.host.host_session', 'pytest_icbench.plugin.xdist_workers'):\n"
            "    if name in sys.modules:\n        sys.modules[name].RUN_DIR = nowhere\n"
            "os.geteuid = lambda: 0\nimport pytest_icbench.testbed.testbed\n"
            "from pytest_icbench.errors import UsageError\nfrom tests.plugin.fakes import FakeTestbed as Testbed\n"
            f"pytest_icbench.testbed.testbed.Testbed = Testbed\n{before}\n"
        )


def screen(text: str) -> list[str]:
    """Returns the lines on a terminal after ``text`` with carriage returns and the progress line's escapes."""
    lines = [""]
    row = column = 0
    for part in re.findall(r"\x1b\[\d*[A-Za-z]|[^\x1b]", text):
        if part == "\n":
            row += 1
            column = 0
            lines += [""] * (row + 1 - len(lines))
        elif part == "\r":
            column = 0
        elif part == "\x1b[A":
            row -= 1
        elif part == "\x1b[K":
            lines[row] = lines[row][:column]
        elif part.startswith("\x1b") and part.endswith("C"):
            column += int(part[2:-1])
        elif not part.startswith("\x1b"):
            lines[row] = lines[row].ljust(column)
            lines[row] = lines[row][:column] + part + lines[row][column + 1 :]
            column += 1
    return lines


@pytest.fixture
def inner(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Runner:
    # The same package as the outer run's, installed or not.
    monkeypatch.setenv("PYTHONPATH", _PACKAGE, prepend=os.pathsep)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    # What the outer run was told is not for the inner one.
    for name in ("PYTEST_ADDOPTS", "PYTEST_XDIST_WORKER", "PYTEST_XDIST_WORKER_COUNT"):
        monkeypatch.delenv(name, raising=False)
    if request.path.name.endswith("end_to_end.py"):  # on the real host, where other tests run beside
        monkeypatch.setenv("PYTEST_ADDOPTS", _BESIDE_OTHERS)
    return Runner(pytester)
