# SPDX-License-Identifier: BSD-3-Clause
"""Pages of stored runs by pytest-html: a session that runs no test, and reports every one as recorded."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_icbench.errors import UsageError
from pytest_icbench.plugin.html import HtmlHooks
from pytest_icbench.report.html.page import Page
from pytest_icbench.store.run_directory import TestRecord
from pytest_icbench.wording import clock


def write_html(path: Path, page: Page, tests: Sequence[TestRecord]) -> None:
    """Writes the page that pytest-html makes of the tests.

    Raises UsageError if pytest-html is missing or the page cannot be written.
    """
    if importlib.util.find_spec("pytest_html") is None:
        raise UsageError("an HTML report needs pytest-html: pip install 'pytest-icbench[html]'")
    output = io.StringIO()
    arguments = [
        *("--html", str(path), "--self-contained-html", "--capture=no", "-q", "-p", "no:cacheprovider"),
        *("-c", "/dev/null", "--rootdir", str(path.parent)),
        *("-p", "pytest_metadata.plugin", "-p", "pytest_html.plugin"),
    ]
    plugins: list[Any] = [_Replay(tests), HtmlHooks(lambda: page)]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _no_autoload(), contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            pytest.main(arguments, plugins=plugins)
    except OSError as error:
        raise UsageError(f"{path} cannot be written ({error.strerror}): choose another place") from None
    if not path.is_file():
        raise UsageError(f"{path} was not written: {output.getvalue().strip()[-500:]}")
    _set_duration(path, sum(test.duration_s for test in tests))


def _set_duration(path: Path, duration_s: float) -> None:
    """Replaces the time of the replay by that of the tests."""
    took = rf"\g<1>{clock(duration_s)} when they ran.\g<2>".encode()
    path.write_bytes(re.sub(rb'(<p class="run-count">\d+ tests? took )[^<]*(</p>)', took, path.read_bytes(), count=1))


@contextlib.contextmanager
def _no_autoload() -> Any:
    """Keeps the other plugins of the environment out of the session."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
        for name in ("PYTEST_ADDOPTS", "PYTEST_PLUGINS"):
            patch.delenv(name, raising=False)
        yield


class _Replay:
    """A plugin that reports tests instead of running them."""

    def __init__(self, tests: Sequence[TestRecord]) -> None:
        self._tests = tests

    def pytest_collection(self, session: pytest.Session) -> bool:
        """Collects nothing, but counts the tests."""
        session.items = []
        session.testscollected = len(self._tests)
        return True

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Reports the tests."""
        for test in self._tests:
            for report in _reports(test):
                session.config.hook.pytest_runtest_logreport(report=report)
        return True


def _reports(test: TestRecord) -> list[pytest.TestReport]:
    """Returns the reports of a test's phases, as recorded."""
    phase = "call" if test.outcome in ("passed", "failed") or test.results else "setup"
    outcome: Any = "failed" if test.outcome == "error" else test.outcome
    longrepr: Any = test.reason if outcome == "failed" else None
    if outcome == "skipped":
        longrepr = (test.nodeid.partition("::")[0], 0, f"Skipped: {test.reason}")
    main = _report(test, phase, outcome, longrepr, test.duration_s)
    if test.repeat and outcome == "failed":
        main.sections.append(("icbench", f"repeat with: {test.repeat}"))
    before = [_report(test, "setup", "passed", None, 0.0)] if phase == "call" else []
    return [*before, main, _report(test, "teardown", "passed", None, 0.0)]


def _report(test: TestRecord, when: Any, outcome: Any, longrepr: Any, duration_s: float) -> pytest.TestReport:
    """Returns the report of one phase; the arguments are as in ``pytest.TestReport``."""
    location = (test.nodeid.partition("::")[0], 0, test.nodeid)
    return pytest.TestReport(
        test.nodeid, location, {}, outcome, longrepr, when, sections=[], duration=duration_s, start=0.0, stop=duration_s
    )
