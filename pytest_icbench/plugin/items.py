# SPDX-License-Identifier: BSD-3-Clause
"""Test items that are benchmarks: the parameters of their markers, checks across options, and their order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pytest

from pytest_icbench.config.births import check_kinds
from pytest_icbench.config.cases import (
    Request,
    as_given,
    check_configs,
    check_names,
    expand,
    parse_marker,
)
from pytest_icbench.config.effects import check_variants
from pytest_icbench.config.fit import remote_misfit, unsupported_reason
from pytest_icbench.config.options import Options, too_large_burst
from pytest_icbench.config.reach import check_way
from pytest_icbench.config.settings import settings_for
from pytest_icbench.config.switch_config import SwitchConfig
from pytest_icbench.config.switch_names import is_named, resolve_switches
from pytest_icbench.errors import UsageError
from pytest_icbench.model.case import Case
from pytest_icbench.plugin.brought import brought_classes
from pytest_icbench.plugin.drivers import catalogue
from pytest_icbench.plugin.functions import bring_functions, check_functions
from pytest_icbench.plugin.limits import LimitsFile, LimitsFiles
from pytest_icbench.plugin.order import grouped, seed_of, shuffled

if TYPE_CHECKING:
    from pytest_icbench.driver.switch.protocol import Switch
    from pytest_icbench.gate.thresholds import Thresholds
    from pytest_icbench.model.settings import Settings

#: The name of the parameter.
PARAMETER = "case"


@dataclass(frozen=True, slots=True)
class Benchmark:
    """What an item measures.

    Attributes:
        settings: the settings of a measurement that overrides none.
        where: file and test, the beginning of a message.
        unsupported: why no host can run the case; None if some can.
    """

    case: Case
    request: Request
    settings: Settings
    limits: LimitsFile
    where: str
    unsupported: str | None

    @property
    def thresholds(self) -> Thresholds:
        """The limits and margins of its test's file."""
        return self.limits.thresholds

    @property
    def measures(self) -> str | None:
        """The method of ``icbench`` that the test calls, as its marker says; None: plain launches at its rate."""
        rate = self.case.rate
        return (
            self.case.load.MEASURED_BY
            or self.request.measure
            or ("search" if rate.is_search else "sweep" if rate.is_sweep else None)
        )

    @property
    def takes_part(self) -> bool:
        """Whether its launches are of one kind, so that the rounds of a session can share them."""
        return self.measures is None and self.case.candidate is None and self.case.rate.share is None


BENCHMARK = pytest.StashKey[Benchmark]()
#: The kind of nodes that is used unless the user asks for another one.
DEFAULT_NODE = Options().node
#: Seed of the order of a session's cases; None for that of the files.
ORDER_SEED = pytest.StashKey[int | None]()


def _check_births(cases: Iterable[Case]) -> None:
    """Raises UsageError for containers of an unknown kind."""
    births = [case for case in cases if case.load.crowd is not None]
    if births:
        from pytest_icbench.driver.node.registry import node_kinds

        check_kinds(births, (cls.kind for cls in node_kinds()))


def bring_nodes(config: pytest.Config, kind: str) -> None:
    """Registers the kinds of nodes of the hook ``pytest_icbench_nodes``.

    Args:
        kind: the kind that the session uses.

    Raises:
        UsageError: the hook brings no classes with names of their own, or ``kind`` is unknown.
    """
    brought = brought_classes(config, "pytest_icbench_nodes", "kind")
    if not brought and kind == DEFAULT_NODE:
        return
    from pytest_icbench.driver.node import registry

    registry.bring(brought)
    registry.node_kind(kind)


def parametrize(metafunc: pytest.Metafunc, options: Options) -> None:
    """Gives a marked test its cases. Raises CollectError for a mistake in the marker."""
    marker = metafunc.definition.get_closest_marker("icbench")
    if marker is None or PARAMETER not in metafunc.fixturenames:
        return
    where = _where(metafunc.definition)
    try:
        request, options = with_applications(metafunc.config, parse_marker(marker.args, marker.kwargs, where), options)
        cases = expand(request, options, catalogue(metafunc.config), where)
    except UsageError as error:
        raise pytest.Collector.CollectError(str(error)) from None
    # An empty list would become a skipped item; this one is deselected instead.
    params = [pytest.param(case, id=case.id) for case in cases] or [pytest.param(None, id="none")]
    metafunc.parametrize(PARAMETER, params)


def with_applications(config: pytest.Config, request: Request, options: Options) -> tuple[Request, Options]:
    """Returns both with the applications' names as ids have them. Raises UsageError for an unknown one."""
    if request.app is None:
        return request, options
    from pytest_icbench.driver.application import registry

    registry.bring(brought_classes(config, "pytest_icbench_applications"))
    asked = None if options.app is None else registry.labels(options.app, as_given(options, "app"))
    return replace(request, app=registry.labels(request.app, "icbench marker: app")), replace(options, app=asked)


def _where(node: pytest.Item) -> str:
    return node.nodeid.partition("[")[0]


def is_benchmark(item: pytest.Item) -> bool:
    return BENCHMARK in item.stash


def arrange(
    config: pytest.Config, items: list[pytest.Item], options: Options
) -> tuple[dict[str, type[Switch]], dict[str, SwitchConfig]]:
    """Checks items against options, markers and switches, deselects those that they leave out, and sorts the rest.

    Returns:
        All switches, and the user's configurations of switches and candidates.

    Raises:
        UsageError: one sentence; nothing has been run.
    """
    parameters = {item: _parameter(item) for item in items}
    marked = [item for item in items if parameters[item] is not _ABSENT]
    about_switches = (options.switch, options.port, options.switch_config, options.topology, options.variant)
    about_functions = (options.function, options.function_config)
    if not marked and not any((*about_switches, *about_functions, options.binaries)):
        return {}, {}
    switches = catalogue(config)
    check_names(options, switches, bring_functions(config, options))
    for kind in (options.node, *(each.value for each in options.variant if each.kind == "node")):
        bring_nodes(config, kind)
    configs = check_configs(options, switches)
    dropped = {item for item in marked if parameters[item] is None}
    if marked and len(dropped) == len(marked):
        kept = resolve_switches(options.switch, switches, as_given(options, "switch"))
        check_way(options, [switches[name] for name in kept])
    if dropped:
        config.hook.pytest_deselected(items=list(dropped))
        items[:] = [item for item in items if item not in dropped]
    tests: dict[tuple[str, int], _MarkedTest] = {}
    limits = LimitsFiles(options.thresholds)
    for item in marked:
        if item not in dropped:
            marker = item.get_closest_marker("icbench")
            key = (_where(item), id(marker))
            if key not in tests:
                tests[key] = _read_marked_test(item, options, limits)
            item.stash[BENCHMARK] = _benchmark(parameters[item], tests[key], options, switches)
    _check_births(benchmark.case for benchmark in benchmarks(items))
    configs |= check_functions(options, [(benchmark.case, benchmark.where) for benchmark in benchmarks(items)])
    check_variants(options, [benchmark.case for benchmark in benchmarks(items)])
    items[:] = grouped(items, _rig_key)
    seed = seed_of(options.order, config)
    if seed is not None:
        items[:] = shuffled(items, _rig_key, seed)
    config.stash[ORDER_SEED] = seed
    return switches, configs


def _rig_key(item: pytest.Item) -> tuple[object, ...] | None:
    benchmark = item.stash.get(BENCHMARK, None)
    return None if benchmark is None else benchmark.case.rig_key


_ABSENT = object()


def _parameter(item: pytest.Item) -> object:
    """Returns the item's case, None for a test without any, or ``_ABSENT`` for an item that is no benchmark."""
    callspec = getattr(item, "callspec", None)
    if callspec is None or item.get_closest_marker("icbench") is None:
        return _ABSENT
    params: Mapping[str, object] = callspec.params
    return params.get(PARAMETER, _ABSENT)


@dataclass(frozen=True, slots=True)
class _MarkedTest:
    """A test with the marker: what all its cases share."""

    request: Request
    settings: Settings
    limits: LimitsFile
    where: str


def _read_marked_test(item: pytest.Item, options: Options, limits: LimitsFiles) -> _MarkedTest:
    marker = item.get_closest_marker("icbench")
    assert marker is not None
    where = _where(item)
    request = parse_marker(marker.args, marker.kwargs, where)
    settings = settings_for(options, request.settings, {}, where)
    return _MarkedTest(request, settings, limits.of(item.path), where)


def _benchmark(case: object, test: _MarkedTest, options: Options, switches: Mapping[str, type[Switch]]) -> Benchmark:
    if not isinstance(case, Case):
        raise UsageError(f"{test.where}: the parameter '{PARAMETER}' belongs to the marker icbench; rename yours")
    reason = unsupported_reason(case, switches[case.switch], options.ring)
    if reason is not None:
        _refuse_if_asked_for(case, test, options, switches, reason)
    check_rate(case, test.settings, test.where)
    settings = telling_settings(case, test.settings, options, test.limits)
    return Benchmark(case, test.request, settings, test.limits, test.where, reason)


def _refuse_if_asked_for(
    case: Case, test: _MarkedTest, options: Options, switches: Mapping[str, type[Switch]], reason: str
) -> None:
    """Raises UsageError if a case that no host can run is what the user or the marker asked for."""
    # A test over many switches is no mistake of who selects one of them, unless the option that does not fit is theirs.
    axes = (options.packet_size, options.mix, options.flows, options.header, options.direction, options.queues)
    replaced = any(axis is not None for axis in (*axes, options.pairs))
    asked_for = is_named(case.switch, test.request.switch) or (is_named(case.switch, options.switch) and replaced)
    if reason == remote_misfit(case, switches[case.switch]):
        # --icbench-remote is for a whole session: a case that cannot have it is skipped unless asked for by name.
        marker_asks = bool(test.request.remote) and is_named(case.switch, test.request.switch)
        asked_for = marker_asks or (is_named(case.switch, options.switch) and not switches[case.switch].uplinks)
    if asked_for or reason == too_large_burst(case.burst, options.ring):
        raise UsageError(f"{test.where}: {reason}")


def telling_settings(case: Case, settings: Settings, options: Options, limits: LimitsFile) -> Settings:
    """Returns the settings with the precision that the case's allowance against a baseline needs, and a trace's length.

    They are unchanged without a baseline to save or to compare with, for versions side by side, and where the user
    asks for a precision.
    """
    settings = settings.following(case.rate.trace)
    if (options.compare or options.save) is None or case.candidate is not None or "precision" in options.settings:
        return settings
    from pytest_icbench.measure.stopping import telling_precision

    needed = telling_precision(limits.thresholds.margins(*case.ids).of(case.dimension)[0].allowance)
    return replace(settings, precision=needed) if 0 < needed < settings.precision else settings


def check_rate(case: Case, settings: Settings, where: str) -> None:
    """Checks what a search or a sweep needs: a suitable dimension, the library, and a suitable preset.

    Raises:
        UsageError: the message begins with ``where``.
    """
    if case.rate.is_max or case.rate.pps is not None or case.rate.trace is not None:
        return
    from pytest_icbench.measure.measure import strategy_of
    from pytest_icbench.measure.mlrsearch import check_library

    try:
        strategy_of(case)
        if case.rate.loss_ratio is not None:
            check_library()
            settings.goal(case.rate.searched)
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None


def benchmarks(items: Iterable[pytest.Item]) -> list[Benchmark]:
    return [item.stash[BENCHMARK] for item in items if is_benchmark(item)]


def judged_cases(planned: Iterable[Benchmark]) -> int:
    """Returns how many cases share a session's error rate against a baseline; at least 1.

    A candidate is compared with its base instead, and what no host can run is not compared.
    """
    return max(sum(benchmark.case.candidate is None and not benchmark.unsupported for benchmark in planned), 1)
