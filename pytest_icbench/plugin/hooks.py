# SPDX-License-Identifier: BSD-3-Clause
"""Hooks and fixtures; they only connect pytest with the session.

Every pytest run of the machine loads this module, so it imports little and does nothing until a benchmark is collected.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import pytest

from pytest_icbench.config import options as option_module
from pytest_icbench.config.option_table import SETTINGS, TABLE
from pytest_icbench.errors import Invalid, ProvisionError, Unsupported, UsageError
from pytest_icbench.model.verdict import Verdict
from pytest_icbench.plugin.session import Session
from pytest_icbench.plugin.usage import usage_errors

if TYPE_CHECKING:
    from pytest_icbench.model.case import Case
    from pytest_icbench.plugin.fixture import Icbench
    from pytest_icbench.plugin.retest import Retests

_SESSION = pytest.StashKey[Session]()
_RETESTS: pytest.StashKey[Retests] = pytest.StashKey()
_FIXTURE = pytest.StashKey["Icbench"]()
_AXES = ", ".join(f"{row.field}={row.marker}" for row in TABLE if row.marker)
_MARKER = (
    f"icbench({_AXES}, variant=None, functions='none', remote=None, dimension='throughput', measure=None,"
    " soak_duration=None, comparisons=1, **settings): a benchmark; it runs once for each case, which is a combination"
    " of the axes."
    f" Settings: {', '.join(SETTINGS)}."
)


def pytest_addoption(parser: pytest.Parser) -> None:
    option_module.add_options(parser)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    from pytest_icbench.plugin import hookspecs

    pluginmanager.add_hookspecs(hookspecs)


@pytest.hookimpl(tryfirst=True)  # before junitxml and pytest-html look at their options
def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", _MARKER)
    config.addinivalue_line("markers", "icbench_long: a conformance test that takes long: -m 'not icbench_long'")
    with usage_errors():
        config.stash[_SESSION] = Session(config, option_module.from_config(config))
    if config.stash[_SESSION].options.compare is not None:
        from pytest_icbench.plugin.retest import Retests

        config.stash[_RETESTS] = Retests(config.stash[_SESSION], lambda item: item.stash.get(_FIXTURE, None))
    if config.getoption("help", False):
        option_module.hide_ini_twins(config)


def pytest_report_header(config: pytest.Config) -> list[str]:
    return config.stash[_SESSION].header()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if metafunc.definition.get_closest_marker("icbench") is not None:
        from pytest_icbench.plugin.items import parametrize

        icbench_session = metafunc.config.stash[_SESSION]
        icbench_session.collected = True
        parametrize(metafunc, icbench_session.options)


def pytest_itemcollected(item: pytest.Item) -> None:
    if item.get_closest_marker("icbench") is not None:
        from pytest_icbench.plugin.pytest_benchmark import adopt, is_asked_for

        if is_asked_for(item.config, item.config.stash[_SESSION].options.benchmark):
            adopt(item)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Makes a worker of xdist that refuses to begin say why; its controller would only see that it ended."""
    try:
        return (yield)
    except pytest.UsageError as error:
        if hasattr(session.config, "workeroutput"):
            from pytest_icbench.plugin.xdist.workers import REFUSAL

            session.config.workeroutput[REFUSAL] = str(error)
        raise


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    icbench_session = config.stash[_SESSION]
    with usage_errors():
        try:
            icbench_session.arrange(items)
            if icbench_session.options.rounds > 1:
                from pytest_icbench.plugin.items import benchmarks
                from pytest_icbench.plugin.rounds import check_rounds

                check_rounds(icbench_session.options, benchmarks(items), distributed=icbench_session.is_worker)
        except UsageError:
            icbench_session.files.drop()
            raise


@pytest.hookimpl(tryfirst=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Checks the budget in a worker of xdist, at the last moment at which it can refuse."""
    icbench_session = session.config.stash[_SESSION]
    if icbench_session.is_worker:
        with usage_errors():
            icbench_session.check_budget(session.items)


def pytest_report_collectionfinish(config: pytest.Config, items: Sequence[pytest.Item]) -> list[str]:
    return config.stash[_SESSION].header(items)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, object, object]:
    icbench_session = session.config.stash[_SESSION]
    with usage_errors():
        icbench_session.open(session)
    retests = session.config.stash.get(_RETESTS, None)
    try:
        if icbench_session.options.rounds > 1:
            from pytest_icbench.plugin.rounds import measure_rounds

            measure_rounds(icbench_session, session.items)
        with _turns(icbench_session, session.items):
            ran = yield
            if retests is not None:
                retests.run(session)
        return ran
    finally:
        if retests is not None:
            retests.give_up()
        icbench_session.close()
        icbench_session.files.drop_unused()


def _turns(icbench_session: Session, items: Sequence[pytest.Item]) -> AbstractContextManager[None]:
    options = icbench_session.options
    if icbench_session.run is None or options.rounds > 1 or not options.turns:
        return nullcontext()
    from pytest_icbench.plugin.turns import taking_turns

    return taking_turns(icbench_session, items)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Runs a benchmark of a session that compares with a baseline: what is worse is measured again at the end."""
    retests = item.config.stash.get(_RETESTS, None)
    return None if retests is None else retests.protocol(item, nextitem)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    icbench = item.stash.get(_FIXTURE, None)
    if icbench is None:
        return (yield)
    unjudged = None
    try:
        yield
        unjudged = icbench.unjudged()
    finally:
        from pytest_icbench.host.signals import deferred

        with deferred():  # a result that is in its file is in the tables, too
            icbench.finish()  # also after Ctrl-C, so that finished measurements are kept
            item.config.stash[_SESSION].collector.measured(item.nodeid, icbench.results)
        if "benchmark" in getattr(item, "funcargs", {}):
            from pytest_icbench.plugin.pytest_benchmark import replay

            replay(item, icbench.results)
    if unjudged is not None:
        pytest.fail(f"{Verdict.INVALID} measurement that the test has not judged: {unjudged}", pytrace=False)
    return None


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    icbench = item.stash.get(_FIXTURE, None)
    icbench_session = item.config.stash[_SESSION]
    if icbench is not None and call.when == "call":
        icbench_session.collector.attach(report, icbench, icbench_session.run if icbench_session.sends else None)
    retests = item.config.stash.get(_RETESTS, None)
    if retests is not None and call.when == "teardown" and retests.holds(item):
        icbench_session.collector.forget(item.nodeid)
    else:
        icbench_session.note(item, report)
    if item.get_closest_marker("icbench") is not None:
        from pytest_icbench.plugin.outcomes import note_outcome, say_plainly

        if report.failed:
            say_plainly(call, report, item.config.getoption("tbstyle", "auto"))
        note_outcome(item, call, report, icbench.results if icbench is not None else [])
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, None, None]:
    try:
        return (yield)
    finally:
        item.config.stash[_SESSION].after(item, nextitem)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    icbench_session = session.config.stash.get(_SESSION, None)
    if icbench_session is not None:
        icbench_session.finish(session)


@pytest.hookimpl(wrapper=True, trylast=True, specname="pytest_sessionfinish")
def pytest_icbench_reports(session: pytest.Session) -> Generator[None, object, object]:
    """Makes a sentence of what the writers of JUnit XML and HTML cannot write, so that the session ends in order."""
    try:
        return (yield)
    except OSError as error:
        icbench_session = session.config.stash.get(_SESSION, None)
        if icbench_session is None or not icbench_session.collected:
            raise
        icbench_session.not_written(session, error)
        return None


def pytest_terminal_summary(terminalreporter: Any, exitstatus: int, config: pytest.Config) -> None:
    config.stash[_SESSION].summarize(terminalreporter, interrupted=exitstatus == pytest.ExitCode.INTERRUPTED)


@pytest.hookimpl(tryfirst=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    icbench_session = config.stash.get(_SESSION, None)
    if icbench_session is not None:
        icbench_session.unconfigure()


@pytest.fixture
def case() -> Case:
    """The case of a test with the marker ``icbench``, which passes it as a parameter."""
    pytest.fail("this test has no marker icbench: add @pytest.mark.icbench(switch=..., packet_size=...)", pytrace=False)


@pytest.fixture
def icbench(request: pytest.FixtureRequest, case: Case) -> Icbench:
    """Measures the test's case: ``throughput()``, ``latency()``, ``judge(measurement)``, ``gate(measurement)``."""
    from pytest_icbench.plugin.fixture import Icbench
    from pytest_icbench.plugin.outcomes import skip

    icbench_session = request.config.stash[_SESSION]
    run, benchmark = icbench_session.running(request.node)
    try:
        run.prepare(case)
    except Unsupported as error:
        skip(str(error), strict=run.options.strict)
    except ProvisionError as error:  # the second host is out of reach, or a version probe was killed
        pytest.fail(str(error), pytrace=False)
    except Invalid as error:  # its neighbour cannot be found
        pytest.fail(f"{Verdict.INVALID}: {error}", pytrace=False)
    measuring = Icbench(request.node, benchmark, run)
    request.node.stash[_FIXTURE] = measuring
    return measuring
