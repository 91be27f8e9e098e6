# SPDX-License-Identifier: BSD-3-Clause
"""Finds the test items that are benchmarks: parameters of their markers, checks across options, limits, order."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, TypeVar

import pytest

from pytest_icbench.config.axes import Axes, explain_burst
from pytest_icbench.config.axis import rows
from pytest_icbench.config.capabilities import check_way, remote_misfit, unsupported_reason
from pytest_icbench.config.cases import Request, check_configs, check_names, expand, name_option, parse_marker
from pytest_icbench.config.options import Options, check_candidates, merge_settings
from pytest_icbench.config.switches import SwitchConfig, is_named, resolve_switches
from pytest_icbench.driver.switch.protocol import Switch
from pytest_icbench.errors import UsageError
from pytest_icbench.model.case import Case
from pytest_icbench.model.settings import Settings
from pytest_icbench.model.text_files import LIMITS_FILE
from pytest_icbench.plugin.third_party import (
    bring_functions,
    bring_nodes,
    catalogue,
    check_functions,
    check_startups,
    with_applications,
)
from pytest_icbench.plugin.usage import refuse_rounds
from pytest_icbench.wording import counted, grouped

if TYPE_CHECKING:  # loaded for a file with limits, or when a test judges: collecting does not need it
    from pytest_icbench.store.thresholds import Thresholds

T = TypeVar("T")

#: The name of the parameter.
PARAMETER = "case"
#: The mark of a benchmark's long form.
PUBLISHED = "published"
#: Greatest seed that is drawn: short enough to be typed.
MOST_SEED = 999_999


class LimitsFile:
    """The limits of the tests in a file.

    ``path``: the file with the limits, which is read at once; None without one. Raises UsageError.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        if path is not None:
            _ = self.thresholds

    @cached_property
    def thresholds(self) -> Thresholds:
        from pytest_icbench.store.thresholds import Thresholds, load

        return Thresholds() if self.path is None else load(self.path)


def explain_unmatched(
    items: Sequence[pytest.Item], expanded: Mapping[Path, Collection[str]], options: Options
) -> Iterator[str]:
    """Yields a sentence for each pattern of limits that no case of its directory has, which is a slip of the keyboard.

    ``expanded``: the ids of all cases, selected or not, by their tests' files. Limits of a directory are checked if it
    was collected as a whole, and no option replaces its cases.
    """
    if options.switch or any(getattr(options, row.field) is not None for row in rows(Axes)):
        return
    limits = {item.path.parent: item.stash[BENCHMARK].limits for item in items}
    collected = [item.config.invocation_params.dir / argument for item in items[:1] for argument in item.config.args]
    for directory, file in limits.items():
        whole = (
            any(directory.is_relative_to(each) for each in collected)
            or {*directory.glob("test_*.py")} <= expanded.keys()
        )
        if file.path is None or not whole:
            continue
        ids = {id_ for path, found in expanded.items() if path.parent == directory for id_ in found}
        for pattern in file.thresholds.unmatched(ids):
            yield f'{file.path}: ["{pattern}"] matches none of {counted(len(ids), "case")}'


class LimitsFiles:
    """The limits of all tests; each file is read once.

    ``named``: the file that the user names for all; None: the one in the directory of each test's file, if any.
    """

    def __init__(self, named: Path | None) -> None:
        self._named = named
        self._read: dict[Path, LimitsFile] = {}

    def of(self, path: Path) -> LimitsFile:
        """Returns the limits of the tests in a file. Raises UsageError."""
        file = self._named or path.parent / LIMITS_FILE
        if file not in self._read:
            self._read[file] = LimitsFile(file if self._named is not None or file.is_file() else None)
        return self._read[file]


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
        asked = self.case.load.MEASURED_BY or self.request.measure
        return asked or ("search" if rate.is_search else "sweep" if rate.is_sweep else None)

    @property
    def takes_part(self) -> bool:
        """Whether its launches are of one kind, so that the rounds of a session can share them."""
        return self.measures is None and self.case.candidate is None and self.case.rate.share is None


BENCHMARK = pytest.StashKey[Benchmark]()
#: The long forms of benchmarks that a session leaves out.
LEFT_OUT = pytest.StashKey[list[Benchmark]]()
#: Seed of the order of a session's cases; None for that of the files.
ORDER_SEED = pytest.StashKey[int | None]()


def parametrize(metafunc: pytest.Metafunc, options: Options) -> list[Case]:
    """Gives a marked test its cases, and returns them. Raises CollectError for a mistake in the marker."""
    marker = metafunc.definition.get_closest_marker("icbench")
    if marker is None or PARAMETER not in metafunc.fixturenames:
        return []
    where = _where(metafunc.definition)
    try:
        request, options = with_applications(metafunc.config, parse_marker(marker.args, marker.kwargs, where), options)
        for kind in request.node or ():
            bring_nodes(metafunc.config, kind, f"{where}: icbench marker: node")
        cases = expand(request, options, catalogue(metafunc.config), where)
    except UsageError as error:
        raise pytest.Collector.CollectError(str(error)) from None
    # An empty list would become a skipped item; this one is deselected instead.
    params = [pytest.param(case, id=case.id) for case in cases] or [pytest.param(None, id="none")]
    metafunc.parametrize(PARAMETER, params)
    return cases


def _where(node: pytest.Item) -> str:
    return node.nodeid.partition("[")[0]


def is_benchmark(item: pytest.Item) -> bool:
    return BENCHMARK in item.stash


def arrange(
    config: pytest.Config, items: list[pytest.Item], options: Options
) -> tuple[dict[str, type[Switch]], dict[str, SwitchConfig]]:
    """Checks items against options, markers and switches, deselects those that they leave out, and sorts the rest.

    Returns all switches, and the user's configurations of switches and candidates. Raises UsageError: one sentence;
    nothing has been run.
    """
    parameters = {item: _parameter(item) for item in items}
    marked = [item for item in items if parameters[item] is not _ABSENT]
    if not marked and not _names_anything(options):
        return {}, {}
    switches = catalogue(config)
    check_names(options, switches, bring_functions(config, options))
    for kind in (options.node, *(each.value for each in options.candidate if each.kind == "node")):
        bring_nodes(config, kind)
    configs = check_configs(options, switches)
    kept = [item for item in marked if parameters[item] is not None]
    if marked and not kept:
        named = resolve_switches(options.switch, switches, name_option(options, "switch"))
        check_way(options, [switches[name] for name in named])
    _deselect(config, items, {*marked} - {*kept})
    tests = _MarkedTests(options)
    for item in kept:
        item.stash[BENCHMARK] = _benchmark(parameters[item], tests.of(item), options, switches)
    left_out = [item for item in kept if _is_left_out(item)]
    config.stash[LEFT_OUT] = benchmarks(left_out)
    _deselect(config, items, {*left_out})
    selected = benchmarks(items)
    check_startups(benchmark.case for benchmark in selected)
    configs |= check_functions(options, [(benchmark.case, benchmark.where) for benchmark in selected])
    check_candidates(options, [benchmark.case for benchmark in selected])
    _sort(config, items, options.order)
    return switches, configs


def _deselect(config: pytest.Config, items: list[pytest.Item], dropped: set[pytest.Item]) -> None:
    """Removes items in place."""
    if dropped:
        config.hook.pytest_deselected(items=[item for item in items if item in dropped])
        items[:] = [item for item in items if item not in dropped]


def _is_left_out(item: pytest.Item) -> bool:
    """Whether an item is a long form that neither ``-m``, ``-k``, its node id nor ``--last-failed`` asks for."""
    if item.get_closest_marker(PUBLISHED) is None:
        return False
    option = item.config.option
    if any(PUBLISHED in (getattr(option, name, None) or "") for name in ("markexpr", "keyword")):
        return False
    if getattr(option, "lf", False) and item.config.cache and item.config.cache.get("cache/lastfailed", {}):
        return False  # pytest keeps only those that failed
    named = [argument.partition("::")[2] for argument in item.config.args if "::" in argument]
    name = item.nodeid.partition("::")[2]
    return not any(name == one or name.startswith((f"{one}[", f"{one}::")) for one in named)


def _names_anything(options: Options) -> bool:
    """Whether an option names a switch, a function or a file of theirs, which is checked even without benchmarks."""
    about_switches = (options.switch, options.port, options.switch_config, options.topology, options.candidate)
    return any((*about_switches, options.function, options.function_config, options.binaries))


def _sort(config: pytest.Config, items: list[pytest.Item], order: str) -> None:
    """Brings the items of each rig together, in the order of their files or at random."""
    items[:] = group_items(items, _rig_key)
    seed = choose_seed(order, config)
    if seed is not None:
        items[:] = shuffle_items(items, _rig_key, seed)
    config.stash[ORDER_SEED] = seed


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


class _MarkedTests:
    """The tests with the marker; each is read once."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._limits = LimitsFiles(options.thresholds)
        self._read: dict[tuple[str, int], _MarkedTest] = {}

    def of(self, item: pytest.Item) -> _MarkedTest:
        """Returns an item's test. Raises UsageError for a mistake in its marker or limits."""
        marker = item.get_closest_marker("icbench")
        assert marker is not None
        where = _where(item)
        key = (where, id(marker))
        if key not in self._read:
            request = parse_marker(marker.args, marker.kwargs, where)
            settings = merge_settings(self._options, request.settings, {}, where)
            self._read[key] = _MarkedTest(request, settings, self._limits.of(item.path), where)
        return self._read[key]


def _benchmark(case: object, test: _MarkedTest, options: Options, switches: Mapping[str, type[Switch]]) -> Benchmark:
    if not isinstance(case, Case):
        raise UsageError(f"{test.where}: the parameter '{PARAMETER}' belongs to the marker icbench; rename yours")
    reason = unsupported_reason(case, switches[case.switch], options.ring)
    if reason is not None:
        _refuse_if_asked_for(case, test, options, switches, reason)
    check_rate(case, test.settings, test.where)
    settings = adapt_settings(case, test.settings, options, test.limits)
    return Benchmark(case, test.request, settings, test.limits, test.where, reason)


def _refuse_if_asked_for(
    case: Case, test: _MarkedTest, options: Options, switches: Mapping[str, type[Switch]], reason: str
) -> None:
    """Raises UsageError if a case that no host can run is what the user or the marker asked for."""
    # A test over many switches is no mistake of who selects one of them, unless the option that does not fit is theirs.
    replaced = options.replaces_frames or options.pairs is not None
    asked_for = is_named(case.switch, test.request.switch) or (is_named(case.switch, options.switch) and replaced)
    if reason == remote_misfit(case, switches[case.switch]):
        # --icbench-remote is for a whole session: a case that cannot have it is skipped unless asked for by name.
        marker_asks = bool(test.request.remote) and is_named(case.switch, test.request.switch)
        asked_for = marker_asks or (is_named(case.switch, options.switch) and not switches[case.switch].uplinks)
    if asked_for or reason == explain_burst(case.burst, options.ring):
        raise UsageError(f"{test.where}: {reason}")


def adapt_settings(case: Case, settings: Settings, options: Options, limits: LimitsFile) -> Settings:
    """Returns the settings with the length of the case's trace and the precision that its allowance needs.

    The precision is unchanged if no baseline is saved or compared, for versions side by side, and if the user sets it.
    """
    settings = settings.following(case.rate.trace)
    if (options.compare or options.save) is None or case.candidate is not None or "precision" in options.settings:
        return settings
    from pytest_icbench.measure.stopping import telling_precision

    needed = telling_precision(limits.thresholds.margins(*case.ids).of(case.dimension)[0].allowance)
    return replace(settings, precision=needed) if 0 < needed < settings.precision else settings


def check_rate(case: Case, settings: Settings, where: str) -> None:
    """Checks what a search or a sweep needs: a suitable dimension, the library, and a suitable preset.

    Raises UsageError: the message begins with ``where``.
    """
    if case.rate.is_max or case.rate.pps is not None or case.rate.trace is not None:
        return
    from pytest_icbench.kinds.runs import check_case

    try:
        check_case(case, settings)
        if case.rate.share is not None:
            check_case(case.search, settings)
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None


def benchmarks(items: Iterable[pytest.Item]) -> list[Benchmark]:
    return [item.stash[BENCHMARK] for item in items if is_benchmark(item)]


def count_judged_cases(planned: Iterable[Benchmark]) -> int:
    """Returns how many cases share a session's error rate against a baseline; at least 1.

    A candidate is compared with its base instead, and what no host can run is not compared.
    """
    return max(sum(benchmark.case.candidate is None and not benchmark.unsupported for benchmark in planned), 1)


def check_rounds(options: Options, benchmarks: Sequence[Benchmark], *, distributed: bool) -> None:
    """Raises UsageError if the cases of a session cannot be measured in rounds."""
    if options.rounds == 1:
        return
    if distributed:
        refuse_rounds(options)
    for benchmark in benchmarks:
        repeats = benchmark.settings.repeats
        if repeats is not None and benchmark.takes_part and repeats < options.rounds:
            raise UsageError(
                f"{benchmark.where}: --icbench-rounds {options.rounds}: {repeats} launches (repeats) are fewer than the"
                f" rounds; give {options.rounds} launches or more"
            )


def choose_seed(order: str, config: pytest.Config) -> int | None:
    """Returns the seed of an order (``given``, ``random`` or a number); None for the order of the files.

    Hosts that share the cases of a session have to agree on their order, so ``random`` draws the seed from the name of
    the session, which all workers of xdist know.
    """
    if order == "given":
        return None
    if order != "random":
        return int(order)
    shared = getattr(config, "workerinput", {}).get("testrunuid")
    return zlib.crc32(str(shared).encode()) % (MOST_SEED + 1) if shared else Random().randint(0, MOST_SEED)


def shuffle_items(items: Sequence[T], key: Callable[[T], Hashable | None], seed: int) -> list[T]:
    """Returns items without a key first, as they are, then the others at random, those of each key together.

    Args:
        items: those of each key together.
        key: items of one key share what is costly to build.
        seed: of the order; the same one gives the same order.
    """
    random = Random(seed)
    groups = grouped(items, key)
    first = groups.pop(None, [])
    order = list(groups.values())
    random.shuffle(order)
    for group in order:
        random.shuffle(group)
    return [*first, *(item for group in order for item in group)]


def group_items(items: Sequence[T], key: Callable[[T], Hashable | None]) -> list[T]:
    """Returns items without a key first, then those of each key together; keys keep the order of their first items."""
    ranks: dict[Hashable | None, int] = {None: 0}
    rank_of = [ranks.setdefault(key(item), len(ranks)) for item in items]
    return [items[place] for place in sorted(range(len(items)), key=rank_of.__getitem__)]
