# SPDX-License-Identifier: BSD-3-Clause
"""Reports before a run whether the host is fit, and what keeps cases from being judged; waits for a quiet host."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from pytest_icbench.config.options import Options
from pytest_icbench.errors import ProvisionError, Unsupported
from pytest_icbench.gate.baseline_comparison import Comparer
from pytest_icbench.gate.entry import Entry
from pytest_icbench.gate.precheck import PlannedCase, foresee, of_history, utc
from pytest_icbench.model.fitness import Control, Fitness
from pytest_icbench.plugin.items import Benchmark
from pytest_icbench.store.history_file import newest_at
from pytest_icbench.testbed.testbed import Testbed
from pytest_icbench.wording import clock, printable, span, wrapped

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

        Args:
            hindrances: sentences on what limits the run's verdicts, in addition to those on its baseline.
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
            if reference is None or entry is None or entry.reference_pps is None or reference.switch in seen:
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
                controls.append(link.beside(comparer.baseline.name, [*sessions, entry.reference_pps]))
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
            and entry.reference_pps
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
    now = utc(datetime.now(UTC))
    return foresee(comparer.baseline, cases, testbed.facts[0], now, comparer.patterns)


def check_history(options: Options) -> list[str]:
    """Returns a sentence for what hinders the run's history. Raises UsageError if that cannot be read."""
    newest = None if options.history is None else newest_at(options.history)
    sentence = None if newest is None else of_history(str(options.history), newest, time.time())
    return [] if sentence is None else [sentence]
