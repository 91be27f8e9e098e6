# SPDX-License-Identifier: BSD-3-Clause
"""The files that pytest and pytest-html write about a run: where they are, and which hosts they name.

Unless the ini value ``icbench_run_files`` is off, these are JUnit XML and an HTML page in the run's directory. Names of
hosts are hidden in them, and in the run's command line.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import pytest

from pytest_icbench.config.options import Options, check_directories
from pytest_icbench.errors import UsageError

#: Replaces a name.
HIDDEN = "HOST"
#: The plugins that make the writers, by their options.
_PLUGINS = {"xmlpath": ("junitxml",), "htmlpath": ("html", "pytest_html.plugin")}
#: The hosts of xdist's workers.
_SSH = re.compile(r"\b(ssh|vagrant_ssh|socket)=[^/\s'\"]+")


class PytestReports:
    """Sets the options of the writers, and takes the writers out if there is nothing to write.

    Args:
        directory: returns the directory of the run, whose name is made at the first call.
        is_worker: a worker of xdist leaves the files to its controller.

    ``has_cases``: whether a case has been reported.
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
            check_directories(self._options)
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

    def start_writers(self) -> None:
        """Makes the writers. Their plugins have read the options before a benchmark was collected."""
        manager = self._config.pluginmanager
        before = manager.get_plugins()
        for name in (name for option in self._chosen for name in _PLUGINS[option]):
            plugin: Any = manager.get_plugin(name)
            if plugin is not None:
                plugin.pytest_configure(self._config)
        manager.subset_hook_caller("pytest_sessionstart", before)(session=manager.get_plugin("session"))

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
        self._dropped += _unregister_writers(self._config, self._chosen)
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
            _hide_host(self._directory() / "junit.xml")


def is_distributed(config: pytest.Config) -> bool:
    """Whether xdist distributes the tests of this session, here or in its controller."""
    return str(config.getoption("dist", "no")) != "no" or hasattr(config, "workerinput")


def _hide_host(path: Path) -> None:
    """Replaces the host's name in a file that pytest has written by ``localhost``, since the format needs a name."""
    try:
        text = path.read_text(encoding="utf-8")
        shown = quoteattr(platform.node())
        hidden = text.replace(f"hostname={shown}", 'hostname="localhost"')
        with path.open("r+", encoding="utf-8") as file:  # in its place: a full disk has room for it
            file.write(hidden)
            file.truncate()
    except OSError:
        return  # it was not written, or has been removed


def _unregister_writers(config: pytest.Config, options: Sequence[str]) -> list[Any]:
    """Unregisters writers that only the ini switch turned on, and returns them. It is called before a session ends.

    ``options``: names of those writers' options: ``xmlpath``, ``htmlpath``.
    """
    dropped = []
    for plugin in list(config.pluginmanager.get_plugins()):
        if ("xmlpath" in options and _is_junit(plugin)) or ("htmlpath" in options and _is_html_writer(plugin)):
            config.pluginmanager.unregister(plugin)
            dropped.append(plugin)
    return dropped


def write_page(session: pytest.Session, error: BaseException) -> None:
    """Lets pytest-html write its page after another writer failed, which kept it from doing so. Raises OSError."""
    frame = error.__traceback__
    while frame is not None:
        if str(frame.tb_frame.f_globals.get("__name__", "")).startswith("pytest_html."):
            return  # it was the page
        frame = frame.tb_next
    manager = session.config.pluginmanager
    others = [plugin for plugin in manager.get_plugins() if not _is_html_writer(plugin)]
    manager.subset_hook_caller("pytest_sessionfinish", others)(session=session, exitstatus=session.exitstatus)


def _is_junit(plugin: Any) -> bool:
    return type(plugin).__name__ == "LogXML" and hasattr(plugin, "node_reporter")


def _is_html_writer(plugin: Any) -> bool:
    return type(plugin).__module__.startswith("pytest_html.")


def _names(options: Options) -> list[str]:
    """Returns the names of hosts in the options, with and without the user's name, the longest first."""
    given = {name for name in (options.remote, *options.uplink) if name}
    given |= {name.rpartition("@")[2] for name in given}
    return sorted(given, key=len, reverse=True)


def hide_names(text: str, options: Options) -> str:
    """Returns the text without names of hosts, or as it is with ``--icbench-host-names``."""
    if options.host_names:
        return text
    for name in _names(options):
        text = re.sub(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", HIDDEN, text)
    return _SSH.sub(rf"\1={HIDDEN}", text)
