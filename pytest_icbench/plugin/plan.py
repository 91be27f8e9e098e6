# SPDX-License-Identifier: BSD-3-Clause
"""The time of a session: the budget of each host that takes part, and the lines of ``--icbench-plan``.

A budget is shared out over its cases. Each case gets its least. The rest goes, launch by launch, to the case whose
interval it narrows most per second: half-widths shrink with the square root of the number of launches. The width of a
case is unknown before it is measured, so the rest is shared out anew whenever a case begins, over those that are left.
The others get the time that a precise case did not need, and measured cases predict the widths of similar ones. Tests
run one after the other and are judged at their end, so no case is measured again later.

With several hosts each has its own budget over all cases, since it is unknown which ones a host will be given. It
knows the cases that it has had, and assumes that the other hosts are as far as it is.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from math import sqrt

import pytest

from pytest_icbench.config.options import Options
from pytest_icbench.errors import ProvisionError, Unsupported, UsageError
from pytest_icbench.gate.baseline_comparison import Comparer
from pytest_icbench.kinds.runs import estimate_s
from pytest_icbench.kinds.startup.startup_run import startup_estimate_s
from pytest_icbench.kinds.throughput.throughput_run import TRAINS_S
from pytest_icbench.measure.estimate import RIG_OVERHEAD_S, comparison_estimate_s, launch_estimate_s
from pytest_icbench.measure.soak import SOAK_S, soak_estimate_s
from pytest_icbench.measure.stopping import fewest_launches
from pytest_icbench.model.case import Case, rig_group
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.settings import Settings
from pytest_icbench.plugin.fitness_check import check_baseline, check_history
from pytest_icbench.plugin.items import Benchmark, benchmarks
from pytest_icbench.stats.dependence import FEWEST_DECIDING
from pytest_icbench.stats.quantiles import median
from pytest_icbench.store.baselines import load as load_baseline
from pytest_icbench.testbed.testbed import Testbed
from pytest_icbench.wording import clock, counted, grouped, printable, wrapped

#: The share of a budget that is kept back for retests of possible regressions, at least one, where the cases leave it.
RETESTS = 0.2
#: Width of a line with a reason; a plan indents it.
REASON_WIDTH = 92
#: The ratio of half-width to precision that is assumed before anything was measured.
UNKNOWN_WIDTH = 2.0


def is_adaptive(case: Case, settings: Settings) -> bool:
    """Whether more time makes the case more precise; it does not for a search or a fixed number of launches."""
    return settings.repeats is None and not case.rate.varies


def longest_s(benchmark: Benchmark, least_s: float) -> float:
    """Returns the most seconds of a case that takes ``least_s`` at least: it may go on until it is precise."""
    settings, rate = benchmark.settings, benchmark.case.rate
    if least_s and rate.is_search:
        return max(least_s, settings.search_limit_s)
    if least_s and is_adaptive(benchmark.case, settings) and benchmark.measures is None:
        return max(least_s, settings.max_duration_s)
    return least_s


def count_hosts(config: pytest.Config) -> int:
    """Returns how many hosts share the session's cases: the number of xdist's workers."""
    return int(getattr(config, "workerinput", {}).get("icbench_hosts", 1))


def plan_budget(
    testbed: Testbed, total_s: float, planned: Sequence[Benchmark], soak_s: float | None = None, hosts: int = 1
) -> Budget:
    """Returns the budget of a session.

    Args:
        planned: the cases in the order in which one host runs them.
        soak_s: the user's length of a long run in seconds; None: the tests say it.
        hosts: the number of hosts that share the cases.
    """
    entries = []
    for benchmark, least_s in zip(planned, estimates(testbed, planned, soak_s, budgeted=True), strict=True):
        settings, case = benchmark.settings, benchmark.case
        reference = least_s > 0 and has_noisy_neighbour(testbed, benchmark)
        entries.append(
            Entry(
                least_s=least_s,
                launch_s=launch_estimate_s(settings, reference=reference),
                launches=settings.min_launches + 1,
                precision=settings.precision,
                adaptive=is_adaptive(case, settings) and benchmark.measures is None,
                group=(case.dimension, case.switch),
            )
        )
    return Budget(total_s, entries, hosts)


def make_budget(testbed: Testbed, options: Options, planned: Sequence[Benchmark], hosts: int) -> Budget | None:
    """Returns the budget, or None without ``--icbench-budget``. Raises UsageError if the cases take longer at least."""
    if options.budget is None:
        return None
    budget = plan_budget(testbed, options.budget, planned, options.soak_duration, hosts)
    if budget.least_s > budget.total_s:
        over = f" on {hosts} hosts" if hosts > 1 else ""
        take = f"{counted(len(planned), 'case')} {'takes' if len(planned) == 1 else 'take'}"
        raise UsageError(
            f"--icbench-budget: {take} at least {clock(budget.least_s)}{over}, more than"
            f" {clock(budget.total_s)}; give more time, or select fewer cases"
        )
    kept_back_s = _kept_back_s(options, budget, planned)
    return plan_budget(testbed, options.budget - kept_back_s, planned, options.soak_duration, hosts)


def _kept_back_s(options: Options, budget: Budget, planned: Sequence[Benchmark]) -> float:
    """Returns the seconds of a budget that are kept back for retests; 0 where the cases leave none."""
    if options.compare is None:
        return 0.0
    wanted_s = max(RETESTS * budget.total_s, quickest_retest_s(planned))
    return wanted_s if budget.least_s <= budget.total_s - wanted_s else 0.0


def explain_missing_retests(options: Options, budget: Budget, planned: Sequence[Benchmark]) -> str | None:
    """Returns a sentence if a comparison's budget keeps nothing back for retests; None if it does, or has none."""
    total_s = options.budget
    if options.compare is None or total_s is None or budget.total_s < total_s or budget.least_s > total_s:
        return None
    enough_s = max(budget.least_s / (1 - RETESTS), budget.least_s + quickest_retest_s(planned))
    return (
        f"budget {clock(total_s)}: no time for a retest, without which nothing is called a regression: give"
        f" {clock(math.ceil(enough_s))}, or select fewer cases"
    )


def plan(
    testbed: Testbed, options: Options, items: Sequence[pytest.Item], hosts: int, *, by_case: bool = False
) -> list[str]:
    """Returns the lines of ``--icbench-plan``: the cases with their time, as this host forecasts it, and the sums.

    Args:
        hosts: the number of hosts that would share them.
        by_case: a line for each case, not for each switch of a test.
    """
    cases, total_s, soak_s = benchmarks(items), options.budget, options.soak_duration
    forecast = estimates(testbed, cases, soak_s, budgeted=total_s is not None)
    allotted: list[float] | list[None] = [None] * len(forecast)
    sentences = check_history(options)
    if total_s is not None:
        kept_back_s = _kept_back_s(options, plan_budget(testbed, total_s, cases, soak_s, hosts), cases)
        budget = plan_budget(testbed, total_s - kept_back_s, cases, soak_s, hosts)
        allotted = budget.allotments()
        sentences += filter(None, [explain_missing_retests(options, budget, cases)])
    planned = []
    for item, least_s, allotted_s, benchmark in zip(items, forecast, allotted, cases, strict=True):
        reason, fails, where = None, False, ""
        try:
            where = testbed.placement(benchmark.case).where
        except (Unsupported, ProvisionError) as error:
            reason, fails = str(error), not isinstance(error, Unsupported)
        planned.append(Planned(item.nodeid, least_s, reason, allotted_s, fails, where))
    lines = plan_lines(planned, testbed.policy, total_s, hosts, by_case=by_case)
    if options.compare is not None:
        baseline = load_baseline(options.baselines, options.compare)
        sentences += check_baseline(testbed, cases, Comparer(baseline, options.must_match))
    return lines + [line for sentence in sentences for line in wrapped(printable(sentence))]


@dataclass(frozen=True, slots=True)
class Planned:
    """A planned case.

    Attributes:
        seconds: the time that it takes at least.
        skipped: why it would not be measured; None: it runs.
        allotted: seconds that a budget gives it, as far as is known before anything is measured.
        fails: whether it would fail instead of being skipped: what it takes did not answer.
        where: the L3 caches and NUMA nodes of its threads, in words.
    """

    nodeid: str
    seconds: float
    skipped: str | None
    allotted: float | None = None
    fails: bool = False
    where: str = ""


def plan_lines(
    planned: Sequence[Planned], policy: str, budget_s: float | None = None, hosts: int = 1, *, by_case: bool = False
) -> list[str]:
    """Returns a line for each switch of a test, each reason of skips once, and the sums.

    With a budget the line has the least time and the allotted time.

    Args:
        budget_s: the budget of each host.
        hosts: the number of hosts that share the cases.
        by_case: a line for each case instead.
    """
    lines = _each(planned) if by_case else [*_by_switch(planned), *_reasons(planned)]
    run = [entry for entry in planned if entry.skipped is None]
    total_s = sum(entry.seconds for entry in run)
    failing = sum(entry.fails for entry in planned)
    lines.append(
        f"{len(run)} of {counted(len(planned), 'case')}, at least {clock(total_s)}"
        f" (h:mm:ss or m:ss), placement {policy}; {len(planned) - len(run) - failing} would be skipped"
        + (f", {failing} would fail" if failing else "")
    )
    for where, cases in Counter(entry.where for entry in run if entry.where).items():
        lines += wrapped(f"{counted(cases, 'case')} on {where}")
    if hosts > 1 and run:
        lines.append(_over(run, total_s, hosts))
    if budget_s is not None:
        rest = hosts * budget_s - total_s
        shared = f"{clock(rest)} beyond the least, shared out anew whenever a case begins"
        of = f" of each of {hosts} hosts" if hosts > 1 else ""
        lines.append(f"budget {clock(budget_s)}{of}: " + (shared if rest >= 0 else "too short, nothing would be run"))
    return lines


def _each(planned: Sequence[Planned]) -> list[str]:
    """Returns a line for each case."""
    lines = []
    for entry in planned:
        name = printable(entry.nodeid)
        if entry.skipped is None:
            lines.append(f"{_time([entry])}  {name}")
        else:
            lines.append(f"{'fail' if entry.fails else 'skip':>8}  {name}: {_first_line(entry.skipped)}")
    return lines


def _by_switch(planned: Sequence[Planned]) -> list[str]:
    """Returns a head for each test with a case that runs, and below it a line for each switch."""
    lines, run = [], [entry for entry in planned if entry.skipped is None]
    for test, of_test in grouped(run, lambda entry: entry.nodeid.partition("[")[0]).items():
        lines.append(printable(test))
        for switch, entries in grouped(of_test, lambda entry: _switch(entry.nodeid)).items():
            lines.append(f"{_time(entries)}  {_cases(entries):>9}  {printable(switch)}")
    return lines


def _reasons(planned: Sequence[Planned]) -> list[str]:
    """Returns a line for each reason of skips and then of failures, wrapped."""
    lines = []
    for head, fails in (("skipped", False), ("failing", True)):
        found = [
            (entry.nodeid, entry.skipped) for entry in planned if entry.skipped is not None and entry.fails == fails
        ]
        lines += [head, *(f"{'':8}{line}" for line in reason_lines(found))] if found else []
    return lines


def reason_lines(found: Iterable[tuple[str, str]]) -> list[str]:
    """Returns a line for each reason, wrapped: the number of its cases, and their switches.

    ``found``: node ids of cases, with their reasons.
    """
    lines = []
    for reason, group in grouped(found, lambda skip: _first_line(skip[1])).items():
        switches = ", ".join(dict.fromkeys(_switch(nodeid) for nodeid, _ in group))
        lines += wrapped(f"  {counted(len(group), 'case'):>9}  {printable(switches)}: {reason}", REASON_WIDTH)
    return lines


def _time(entries: Sequence[Planned]) -> str:
    """Returns the least time of cases, and with a budget the time that it gives them."""
    text = f"{clock(sum(entry.seconds for entry in entries)):>8}"
    if any(entry.allotted is None for entry in entries):
        return text
    return f"{text} of {clock(sum(entry.allotted or 0.0 for entry in entries)):>7}"


def _switch(nodeid: str) -> str:
    """Returns the switch of a case, with its port, mode and cores, as far as the id shows it."""
    group = rig_group(nodeid)
    return str(group[0]) if group is not None else nodeid.partition("[")[2].removesuffix("]")


def _cases(entries: Sequence[Planned]) -> str:
    return counted(len(entries), "case")


def _first_line(reason: str) -> str:
    return printable(reason.partition("\n")[0])


def _over(run: Sequence[Planned], total_s: float, hosts: int) -> str:
    """Returns the line about several hosts: they share the time, but a case runs on one host."""
    rigs = grouped(run, lambda entry: rig_group(entry.nodeid)).values()
    longest = max(rigs, key=lambda entries: sum(entry.seconds for entry in entries))
    least_s = max(total_s / hosts, *(entry.seconds for entry in run))
    cases = counted(len(longest), "case")
    return (
        f"over {hosts} hosts like this one at least {clock(least_s)}; the longest rig, of {cases}, takes"
        f" {clock(sum(entry.seconds for entry in longest))}: {printable(longest[0].nodeid)}"
    )


def estimates(
    testbed: Testbed, planned: Sequence[Benchmark], soak_s: float | None = None, *, budgeted: bool = False
) -> list[float]:
    """Returns the seconds that each case takes at least; 0 for one that is skipped.

    A test's marker says what it measures besides the rate of its case: a long run, trains, a sweep, a search.

    Args:
        planned: the cases in their order.
        soak_s: the user's length of a long run in seconds; None: the tests say it.
        budgeted: a budget may end a case with the fewest launches that have an interval, before its precision is known.
    """
    forecast, compared = [], count_comparisons(planned)
    previous: object = None
    searched = set[Case]()
    for benchmark in planned:
        try:
            testbed.placement(benchmark.case)
        except (Unsupported, ProvisionError):
            forecast.append(0.0)
            continue
        key = benchmark.case.rig_key
        if benchmark.case.candidate is not None:
            seconds = benchmark.request.comparisons * comparison_estimate_s(benchmark.settings, compared)
        else:
            seconds = _without_search_s(testbed, benchmark, build=key != previous, soak_s=soak_s, budgeted=budgeted)
        whole = _looked_for(benchmark)
        if whole is not None and whole not in searched:  # searched for once per run
            searched.add(whole)
            seconds += estimate_s(benchmark.settings, reference=False, build=False, rate=whole.rate)
        forecast.append(seconds)
        previous = key
    return forecast


def count_comparisons(planned: Iterable[Benchmark]) -> int:
    """Returns the number of comparisons with a base, which keep the session's error rate together."""
    return sum(benchmark.request.comparisons for benchmark in planned if benchmark.case.candidate is not None)


def _without_search_s(
    testbed: Testbed, benchmark: Benchmark, *, build: bool, soak_s: float | None, budgeted: bool
) -> float:
    """Returns the seconds without the search for a rate that the load is a share of."""
    settings, rate, request = benchmark.settings, benchmark.case.rate, benchmark.request
    launches = settings.min_launches + 1 if budgeted else None
    if (crowd := benchmark.case.load.crowd) is not None:
        return startup_estimate_s(crowd)
    if request.measure == "soak":
        return soak_estimate_s(settings, soak_s or request.soak_duration or SOAK_S, build=build)
    if request.measure == "back_to_back":
        return TRAINS_S + (RIG_OVERHEAD_S if build else 0.0)
    if request.measure == "sweep" and rate.is_max:
        return estimate_s(settings, reference=False, build=build, rate=Rate(loads=()), launches=launches)
    if request.measure == "search" and not rate.is_search:
        rate = Rate(loss_ratio=0.0)
    noisy_neighbour, in_turn = has_noisy_neighbour(testbed, benchmark), benchmark.case.remote
    rounds = testbed.options.rounds if benchmark.takes_part else 1
    if rounds > 1:
        launches = rounds * math.ceil((launches or fewest_launches(settings)) / rounds)
    seconds = estimate_s(
        settings, reference=noisy_neighbour, build=build, rate=rate, in_turn=in_turn, launches=launches
    )
    return seconds + (rounds - 1) * RIG_OVERHEAD_S * (2 if noisy_neighbour else 1) * build


def _looked_for(benchmark: Benchmark) -> Case | None:
    """Returns the case whose rate is searched for first; None if no search is needed."""
    case, measure = benchmark.case, benchmark.request.measure
    if measure == "soak":
        return None
    if measure == "back_to_back":
        return case.sending(rate=Rate(loss_ratio=0.0))
    return None if case.rate.share is None else case.search


def has_noisy_neighbour(testbed: Testbed, benchmark: Benchmark) -> bool:
    """Whether each launch has a second one: of a candidate's base, of the reference link, or without a noisy
    neighbour.
    """
    if benchmark.case.candidate is not None:
        return True
    wanted = benchmark.settings.reference or benchmark.case.noisy_neighbour is not None
    return wanted and testbed.reference(benchmark.case) is not None


def retest_settings(settings: Settings, seconds: float, rate: Rate) -> Settings:
    """Returns the settings of a retest: each launch has its own rigs, and so has a search.

    ``seconds``: the most time for it.
    """
    if rate.is_search:
        return replace(settings, search_time_s=min(settings.search_limit_s, seconds))
    fresh = replace(settings, rebuild=True)
    return replace(fresh, max_duration_s=min(max(fresh.max_duration_s, 2 * retest_least_s(fresh, rate)), seconds))


def retest_least_s(settings: Settings, rate: Rate) -> float:
    """Returns the seconds of a retest with the fewest launches, or with another search."""
    if rate.is_search:
        return estimate_s(settings, reference=settings.reference, rate=rate)
    fresh = replace(settings, rebuild=True)
    return (fresh.min_launches + 1) * launch_estimate_s(fresh, reference=fresh.reference)


def quickest_retest_s(planned: Sequence[Benchmark]) -> float:
    """Returns the seconds of the quickest retest of these cases; 0 if none is compared."""
    compared = [one for one in planned if one.case.candidate is None and one.measures is None]
    return min((retest_least_s(one.settings, one.case.rate) for one in compared), default=0.0)


@dataclass(frozen=True, slots=True)
class Entry:
    """A case in the budget.

    Attributes:
        least_s: the time that the case takes at least; 0 for one that is skipped.
        launch_s: the time of another launch, with its reference.
        launches: the fewest launches, those of ``least_s``.
        precision: the relative half-width at which the case ends.
        adaptive: whether more time makes it more precise; it does not for a search or a fixed number of launches.
        group: cases of one group are assumed to have equal widths.
    """

    least_s: float
    launch_s: float
    launches: int
    precision: float
    adaptive: bool = True
    group: Hashable = None


def share_out(rest_s: float, entries: Sequence[Entry], widths: Sequence[float]) -> list[float]:
    """Returns the seconds for each entry in addition to its least.

    Args:
        rest_s: the seconds to share out; if negative, all shares are 0.
        widths: the relative half-width that each entry is expected to have after its least.
    """
    extra = [0.0] * len(entries)
    places = [place for place, entry in enumerate(entries) if entry.adaptive and entry.least_s > 0]
    queue = [(-_gain(entries[place], widths[place], 0), place, 0) for place in places]
    heapq.heapify(queue)
    while queue and queue[0][0] < 0:
        _, place, more = heapq.heappop(queue)
        entry = entries[place]
        if entry.launch_s > rest_s:
            continue
        rest_s -= entry.launch_s
        extra[place] += entry.launch_s
        heapq.heappush(queue, (-_gain(entry, widths[place], more + 1), place, more + 1))
    # Cases that turn out wider than expected share what is left.
    for place in places:
        extra[place] += max(rest_s, 0.0) / len(places)
    return extra


def _gain(entry: Entry, width: float, more: int) -> float:
    """Returns by how much the next launch narrows the interval, per second; 0 once it is narrow enough."""
    scale, launches = width * sqrt(entry.launches), entry.launches + more
    now = scale / sqrt(launches)
    # Fewer launches claim no precision, however narrow their interval is.
    wanted = now > entry.precision or launches <= FEWEST_DECIDING
    return (now - scale / sqrt(launches + 1)) / entry.launch_s if wanted else 0.0


class Budget:
    """The time that is left of a session while its cases run.

    Args:
        total_s: the time of the session.
        entries: its cases in the order of the plan.
        hosts: the number of hosts that share the cases.
    """

    def __init__(self, total_s: float, entries: Sequence[Entry], hosts: int = 1) -> None:
        self.total_s = total_s
        self._hosts = hosts
        self._entries = list(entries)
        #: Places of entries that have not been finished here, the current one first.
        self._left = list(range(len(self._entries)))
        self._done_s = 0.0
        self._spent_s = 0.0
        self._seen: list[tuple[Hashable, float]] = []

    @property
    def least_s(self) -> float:
        """The least time of all cases, spread evenly over the hosts; a case is on one host."""
        seconds = [entry.least_s for entry in self._entries]
        return max(sum(seconds) / self._hosts, *seconds, 0.0)

    def begin(self, place: int) -> None:
        """Makes the case at a place of the plan the current one, if it has not been finished."""
        if place in self._left:
            self._left.remove(place)
            self._left.insert(0, place)

    def _open_s(self) -> float:
        """Returns the least time of the cases that no host has finished."""
        left_s = sum(self._entries[place].least_s for place in self._left)
        return max(left_s - (self._hosts - 1) * self._done_s, self._entries[self._left[0]].least_s)

    def allotments(self) -> list[float]:
        """Returns the seconds for each case that is left, the current one first; none is less than the case's least."""
        if not self._left:
            return []
        left = [self._entries[place] for place in self._left]
        host_s, open_s = self.total_s - self._spent_s, self._open_s()
        # Only open cases share the rest. It is scaled up as if all cases that are left here were open.
        scale = sum(entry.least_s for entry in left) / open_s if open_s > 0 else 1.0
        extra = share_out((self._hosts * host_s - open_s) * scale, left, [self._width(entry) for entry in left])
        # The current case leaves each host its part of the other cases, or the last ones would begin too late.
        most_s = [self.most_s(), *(host_s for _ in left[1:])]
        return [
            max(min(entry.least_s + more, most), entry.least_s)
            for entry, more, most in zip(left, extra, most_s, strict=True)
        ]

    def allotted(self) -> dict[int, float]:
        """Returns the seconds for each case that is left, by its place in the plan."""
        return dict(zip(self._left, self.allotments(), strict=True))

    def most_s(self) -> float:
        """Returns the time of the current case that leaves the other cases their least, but never less than its own."""
        least_s = self._entries[self._left[0]].least_s
        left_s = self.total_s - self._spent_s - (self._open_s() - least_s) / self._hosts
        return max(left_s, least_s)

    def _width(self, entry: Entry) -> float:
        of_group = [width for group, width in self._seen if group == entry.group]
        known = of_group or [width for _, width in self._seen]
        return (median(known) if known else UNKNOWN_WIDTH) * entry.precision

    def charge(self, elapsed_s: float) -> None:
        """Sets the time that has passed since the session began, in cases or between them."""
        self._spent_s = max(self._spent_s, elapsed_s)

    def finish(self, elapsed_s: float, width: float | None = None, launches: int = 0) -> None:
        """Ends the current case, whose rigs are closed unless the next one needs them.

        Args:
            elapsed_s: the seconds since the session began.
            width: the relative half-width that it reached; None if it has none.
            launches: the number of launches that it took.
        """
        if not self._left:
            return
        entry = self._entries[self._left.pop(0)]
        self._done_s += entry.least_s
        self.charge(elapsed_s)
        if width is not None and entry.adaptive and launches:
            self._seen.append((entry.group, width * sqrt(launches / entry.launches) / entry.precision))
