# SPDX-License-Identifier: BSD-3-Clause
"""The ini value ``icbench_run_files``: JUnit XML and an HTML page in the run's directory."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from pytest_icbench.config.options import Options
from pytest_icbench.errors import UsageError


class RunFiles:
    """Sets the options of the writers, and takes the writers out if there is nothing to write.

    Args:
        directory: returns the directory of the run, whose name is made at the first call.
        is_worker: a worker of xdist leaves the files to its controller.

    Attributes:
        has_cases: whether a case has been reported.
    """

    def __init__(
        self, config: pytest.Config, options: Options, directory: Callable[[], Path], *, is_worker: bool
    ) -> None:
        self.has_cases = False
        self._config = config
        self._options = options
        self._directory = directory
        self._is_worker = is_worker
        self._had_reports = True
        self._dropped: list[Any] = []
        #: The options of pytest that were set here.
        self._chosen = self._choose()

    def _choose(self) -> tuple[str, ...]:
        """Puts the files into the run's directory unless the user put them elsewhere. Returns the options it set."""
        option = self._config.option
        if not self._options.run_files or self._is_worker or option.collectonly or self._options.plan:
            return ()
        chosen = []
        self._had_reports = self._options.reports.exists()
        for name, file in (("xmlpath", "junit.xml"), ("htmlpath", "report.html")):
            if getattr(option, name, "") is None:
                setattr(option, name, str(self._directory() / file))
                chosen.append(name)
        if chosen:  # the writers would make it, and their errors have no sentence
            try:
                self._directory().mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise UsageError(
                    f"the reports cannot be written: {error}; name another directory: --icbench-reports"
                ) from None
        if "htmlpath" in chosen:
            # One file: its assets would be written before it is known whether the page is.
            option.self_contained_html = True
        return tuple(chosen)

    def drop(self) -> None:
        """Leaves the files out, since no test will run. A controller of xdist cannot know that yet and keeps them."""
        if not is_distributed(self._config):
            self._drop()

    def drop_unused(self) -> None:
        """Leaves the files out if no case was reported. Called after the last test, before the writers write."""
        if not self.has_cases and not self._is_worker:
            self._drop()

    def _drop(self) -> None:
        if not self._chosen:
            return
        from pytest_icbench.report.junit import drop_unused

        self._dropped += drop_unused(self._config, self._chosen)
        with suppress(OSError):  # pytest-html makes the directory when it is loaded
            self._directory().rmdir()
            if not self._had_reports:
                self._options.reports.rmdir()

    def unconfigure(self) -> None:
        """Puts the writers back, whose own plugins insist on finding them, and hides the host's name in JUnit XML."""
        for plugin in self._dropped:
            self._config.pluginmanager.register(plugin)
        self._dropped.clear()
        if "xmlpath" in self._chosen and not self._options.host_names:
            from pytest_icbench.report.junit import hide_host

            hide_host(self._directory() / "junit.xml")


def is_distributed(config: pytest.Config) -> bool:
    """Whether xdist distributes the tests of this session, here or in its controller."""
    return str(config.getoption("dist", "no")) != "no" or hasattr(config, "workerinput")
