# SPDX-License-Identifier: BSD-3-Clause
"""The entry point of pytest: the options, the marker and the fixtures.

Every pytest run of the machine imports this module. So it only declares what pytest has to know at once. Options stay
text until one is given or a marked test is collected: then ``collecting`` is imported, and before the first benchmark
runs ``session_hooks``, which imports everything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pytest_icbench.config.option_table import SETTINGS, TABLE, add_options, hide_ini_twins, is_any_given
from pytest_icbench.plugin import hookspecs

if TYPE_CHECKING:
    from pytest_icbench.model.case import Case
    from pytest_icbench.plugin.collecting import Collection, RunningSession
    from pytest_icbench.plugin.fixture import Icbench

_AXES = ", ".join(f"{row.argument}={row.marker}" for row in TABLE if row.marker)
_MARKER = (
    f"icbench({_AXES}, mode=None, node=None, remote=None, dimension='throughput', measure=None,"
    " soak_duration=None, comparisons=1, **settings): a benchmark; it runs once for each case, which is a combination"
    " of the axes."
    f" Settings: {', '.join(SETTINGS)}."
)


def pytest_addoption(parser: pytest.Parser) -> None:
    add_options(parser)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    pluginmanager.add_hookspecs(hookspecs)


@pytest.hookimpl(tryfirst=True)  # before junitxml and pytest-html look at their options
def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", _MARKER)
    config.addinivalue_line("markers", "icbench_long: a conformance test that takes long: -m 'not icbench_long'")
    config.addinivalue_line(
        "markers",
        "published: the long form of a benchmark, for example that of a publication: left out unless -m published, -k"
        " or its node id asks for it",
    )
    if is_any_given(config) or _has_early_hooks(config):
        _begin(config, early=True)
    if config.getoption("help", False):
        hide_ini_twins(config)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if metafunc.definition.get_closest_marker("icbench") is not None:
        _begin(metafunc.config).parametrize(metafunc)


def pytest_itemcollected(item: pytest.Item) -> None:
    if item.get_closest_marker("icbench") is not None:
        _begin(item.config).adopt(item)


def pytest_terminal_summary(terminalreporter: Any, exitstatus: int, config: pytest.Config) -> None:
    """Names the packaged scenarios if pytest was called without a path and found no test."""
    found_none = exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and not terminalreporter.stats
    if found_none and config.args_source is pytest.Config.ArgsSource.INVOCATION_DIR:
        terminalreporter.write_line("icbench: no test here; its scenarios: pytest --pyargs pytest_icbench.scenarios")


def _has_early_hooks(config: pytest.Config) -> bool:
    """Whether a plugin takes part that calls hooks of ours before a test is collected: pytest-xdist or pytest-html."""
    distributes = str(config.getoption("dist", "no")) != "no" or hasattr(config, "workerinput")
    return distributes or bool(getattr(config.option, "htmlpath", None))


def _begin(config: pytest.Config, *, early: bool = False) -> Collection:
    """Returns the collection of a session, which the first call begins; ``early``: before other plugins configure."""
    from pytest_icbench.plugin.collecting import begin

    return begin(config, _start, early=early)


def _start(collection: Collection) -> RunningSession:
    """Starts the session that runs the benchmarks of a collection."""
    from pytest_icbench.plugin.session_hooks import start

    return start(collection)


@pytest.fixture
def case() -> Case:
    """The case of a test with the marker ``icbench``, which passes it as a parameter."""
    pytest.fail("this test has no marker icbench: add @pytest.mark.icbench(switch=..., packet_size=...)", pytrace=False)


@pytest.fixture
def icbench(request: pytest.FixtureRequest, case: Case) -> Icbench:
    """Measures the test's case: ``throughput()``, ``latency()``, ``judge(measurement)``, ``gate(measurement)``."""
    return _begin(request.config).session.start_test(request.node, case)
