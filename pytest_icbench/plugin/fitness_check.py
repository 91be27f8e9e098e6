# SPDX-License-Identifier: BSD-3-Clause
"""Reports before a run whether the host is fit, and what keeps cases from being judged; waits for a quiet host."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from pytest_icbench.config.options import Options
from pytest_icbench.errors import ProvisionError, Unsupported
from pytest_icbench.gate.baseline_comparison import Comparer, compute_power_before
from pytest_icbench.gate.entry import Baseline, Entry, format_utc
from pytest_icbench.gate.margins import Margins
from pytest_icbench.model import comparability
from pytest_icbench.model.fitness import Control, Fitness
from pytest_icbench.plugin.items import Benchmark
from pytest_icbench.report.decisions import explain_powers
from pytest_icbench.store.history_file import GAP_S, newest_at
from pytest_icbench.testbed.testbed import Testbed
from pytest_icbench.wording import clock, counted, printable, span, wrapped

#: Least time between two lines about a wait, in seconds.
WAIT_LINE_S = 10.0


class HostCheck:
    """Examines the host of a run that holds it, and writes what it found on the terminal."""

    def __init__(self, config: pytest.Config, options: Options, testbed: Testbed) -> None:
        self._reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
        self._options = options
        self._testbed = testbed
        self._waited_line_at: float | None = None

    def run(
        self, benchmarks: Sequence[Benchmark], comparer: Comparer | None, hindrances: Sequence[str] = ()
    ) -> Fitness:
        """Returns whether the host is fit, after a wait if one was asked for; the testbed keeps it for all results.

        ``hindrances``: sentences on what limits the run's verdicts, in addition to those on its baseline.
        """
        obstacles = [] if comparer is None else check_baseline(self._testbed, benchmarks, comparer)
        for sentence in (*hindrances, *obstacles):
            self._say(sentence)
        limit_s = self._options.wait_quiet
        fitness = self._testbed.examine(limit_s, self._wait)
        if limit_s and not fitness.quiet:
            self._say(f"the host did not become quiet within {span(limit_s)}; the run goes on")
        if comparer is not None:
            fitness = self._with_controls(fitness, benchmarks, comparer)
        self._say(fitness.line)
        for sentence in fitness.missing:
            self._say(sentence)
        return fitness

    def _wait(self, fitness: Fitness, left_s: float) -> None:
        now = time.monotonic()
        if self._waited_line_at is None or now - self._waited_line_at >= WAIT_LINE_S:
            self._waited_line_at = now
            self._say(f"waiting for a quiet host, {clock(left_s)} left: {fitness.sentence}")

    def _with_controls(self, fitness: Fitness, benchmarks: Sequence[Benchmark], comparer: Comparer) -> Fitness:
        """Measures one control link of each kind that the baseline has a figure for."""
        controls: list[Control] = []
        missing: list[str] = []
        seen: set[str] = set()
        for benchmark in benchmarks:
            reference = self._testbed.reference(benchmark.case)
            entry = None if reference is None else self._entry(benchmark, comparer)
            if reference is None or entry is None or entry.control is None or reference.switch in seen:
                continue
            try:
                link = self._testbed.control(benchmark.case, benchmark.settings)
            except (Unsupported, ProvisionError):  # the test says it
                continue
            seen.add(reference.switch)
            if isinstance(link, str):
                missing.append(link)
            elif link is not None:
                sessions = [
                    each.control for each in entry.earlier.values() if each.control and each.level == entry.level
                ]
                controls.append(link.beside(comparer.baseline.name, [*sessions, entry.control.middle]))
        examined = replace(fitness, controls=tuple(controls), missing=(*fitness.missing, *missing))
        self._testbed.take_fitness(examined)
        return examined

    def _entry(self, benchmark: Benchmark, comparer: Comparer) -> Entry | None:
        """Returns the baseline's newest entry of a case on this host that has a figure of the control link."""
        identity, policy = self._testbed.facts[0], self._testbed.policy
        about = [
            entry
            for entry in comparer.baseline.entries
            if entry.case == benchmark.case.id
            and entry.metric == "frmol"
            and entry.control is not None
            and entry.placement == policy
            and entry.identity.get("machine") == identity.get("machine")
        ]
        return max(about, key=lambda entry: entry.measured, default=None)

    def _say(self, sentence: str) -> None:
        if self._reporter is None:
            return
        for line in wrapped(printable(f"icbench: {sentence}"), 100):
            self._reporter.write_line(line)


def check_baseline(testbed: Testbed, planned: Sequence[Benchmark], comparer: Comparer) -> list[str]:
    """Returns a sentence for each thing that keeps cases from being judged by their baseline."""
    cases = []
    for benchmark in planned:
        case = benchmark.case
        if case.candidate is not None or benchmark.measures is not None:
            continue
        try:
            placement = testbed.placement(case)
        except (Unsupported, ProvisionError):  # the test says it
            continue
        controlled = benchmark.settings.reference and testbed.reference(case) is not None
        policy = None if placement is None else placement.policy
        margins = benchmark.thresholds.margins(*case.ids)
        cases.append(PlannedCase(case.dimension, case.id, policy, controlled, margins))
    now = format_utc(datetime.now(UTC))
    return foresee(comparer.baseline, cases, testbed.facts[0], now, comparer.patterns)


@dataclass(frozen=True, slots=True)
class PlannedCase:
    """A case of a planned session.

    Attributes:
        placement: None if not decided yet.
        controlled: whether the reference link is launched in turn with it.
        margins: the losses that are allowed.
    """

    dimension: str
    case: str
    placement: str | None
    controlled: bool
    margins: Margins = field(default_factory=Margins)


def foresee(
    baseline: Baseline,
    planned: Sequence[PlannedCase],
    identity: Mapping[str, Any],
    now: str,
    patterns: Sequence[str] = comparability.DEFAULT,
) -> list[str]:
    """Returns sentences on the losses that a session can find, and on what prevents cases from being judged.

    Args:
        identity: the facts of this host.
        now: the time in UTC, as entries have it.
        patterns: facts that must match; see ``comparability.matches``.
    """
    of, kept = f"baseline {baseline.name}", []
    others: list[list[str]] = []
    for case in planned:
        entries = baseline.about((case.dimension, case.case))
        about = [(_differing(identity, case, entry, patterns), entry) for entry in entries]
        here = [entry for differing, entry in about if not differing]
        if here:
            kept.append((case, max(here, key=lambda entry: entry.measured)))
        elif about:
            others.append(min((differing for differing, _ in about), key=len))
    lines = []
    if others:
        facts, cases = ", ".join(min(others, key=lambda facts: len(list(facts)))), counted(len(others), "case")
        lines.append(f"{of}: {cases} of another host, layout or placement ({facts}): save one here, --icbench-save")
    allowed = [(case.case, entry, case.margins.of(case.dimension)) for case, entry in kept]
    powers = [(case, compute_power_before(entry, fig[0], len(planned) * len(fig))) for case, entry, fig in allowed]
    return [*lines, *explain_powers(powers, before=True), *_explain_sessions(of, kept, now)]


def _explain_sessions(of: str, kept: Sequence[tuple[PlannedCase, Entry]], now: str) -> list[str]:
    """Returns sentences on missing reference links, sessions of the future, and old sessions."""
    lines = []
    without = sum(case.controlled and entry.control is None for case, entry in kept)
    if without:
        lines.append(
            f"{of}: {counted(without, 'case')} without a reference link, so a change of the host looks like one of the"
            " software: save new sessions"
        )
    later = [moment for _, entry in kept for moment in (*entry.earlier, entry.measured) if moment > now]
    if later:
        lines.append(
            f"{of}: a session of {max(later)} lies ahead of the clock, which went back: set it right, or drop the"
            " session (icbench baseline)"
        )
    gap = timedelta(seconds=GAP_S)
    stale = [entry.measured for _, entry in kept if entry.measured < format_utc(datetime.fromisoformat(now) - gap)]
    if stale:
        lines.append(
            f"{of}: {counted(len(stale), 'case')} last saved more than {gap.days} days ago ({max(stale)[:10]}), and the"
            " host may have changed since: add a session of the old version (--icbench-save)"
        )
    return lines


def _differing(identity: Mapping[str, Any], case: PlannedCase, entry: Entry, patterns: Sequence[str]) -> list[str]:
    """Returns a text for each fact of host and placement that must match and differs."""
    facts = {name: (identity.get(name), entry.identity.get(name)) for name in sorted({*identity, *entry.identity})}
    differing = [
        f"{name} is {here} here and {there} there"
        for name, (here, there) in facts.items()
        if here != there and comparability.matches(f"identity.{name}", patterns)
    ]
    if case.placement not in (None, entry.placement):
        differing.append(f"placement is {case.placement} here and {entry.placement} there")
    return differing


def check_history(options: Options) -> list[str]:
    """Returns a sentence for what hinders the run's history. Raises UsageError if that cannot be read."""
    newest = None if options.history is None else newest_at(options.history)
    sentence = None if newest is None else explain_history(str(options.history), newest, time.time())
    return [] if sentence is None else [sentence]


def explain_history(name: str, newest: float, now: float) -> str | None:
    """Returns a sentence if a history cannot show when a change happened: clock set back, or a long gap; else None.

    Args:
        name: of its file.
        newest: the time of its newest result; like ``now`` in seconds since the epoch.
    """
    if newest > now:
        ahead = f"a result lies {span(newest - now)} ahead of the clock, which went back"
        return f"history {name}: {ahead}: set it right, or the results of this run precede that one"
    gap = f"{(now - newest) / 86400:.0f} days without a result, so a change that this run shows may lie anywhere in"
    remedy = "compare with an old version (icbench bisect)"
    return f"history {name}: {gap} them: {remedy}" if now - newest > GAP_S else None
