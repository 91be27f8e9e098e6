# SPDX-License-Identifier: BSD-3-Clause
"""Says in one line whether the host is fit when a run begins, and waits for a quiet one if asked."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pytest

from pytest_icbench.config.options import Options
from pytest_icbench.errors import ProvisionError, Unsupported
from pytest_icbench.gate.against import Comparer
from pytest_icbench.gate.entry import Entry
from pytest_icbench.model.case import Case
from pytest_icbench.model.fitness import Control, Fitness, Link
from pytest_icbench.plugin.foresight import foreseen
from pytest_icbench.plugin.items import Benchmark
from pytest_icbench.wording import clock, printable, span, wrapped

if TYPE_CHECKING:
    from pytest_icbench.testbed.testbed import Testbed

#: Least time between two lines about a wait, in seconds.
WAIT_LINE_S = 10.0
#: Time that measuring a link takes, in seconds, and the greatest part of a run's time that links may take.
LINK_S, LINKS_SHARE = 5.0, 0.1
#: A link is measured again for a second look if that is so many seconds ago.
LINKS_AGE_S = 60.0
#: The link that shares no code with the paths beside each link, by a case that has it as its reference link. Sessions
#: are compared by it, so that it is the same in all, whatever they measure.
OTHER_LINKS: Mapping[str, Case] = MappingProxyType({"veth": Case("forward"), "direct": Case("linux-bridge")})


class HostCheck:
    """Examines the host of a run that holds it, and writes what it found on the terminal."""

    def __init__(self, config: pytest.Config, options: Options, testbed: Testbed) -> None:
        self._reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
        self._options = options
        self._testbed = testbed
        self._told_at: float | None = None
        self._links_at = 0.0
        self._again: Callable[[], Fitness] | None = None

    def run(
        self, benchmarks: Sequence[Benchmark], comparer: Comparer | None, hindrances: Sequence[str] = ()
    ) -> Fitness:
        """Returns whether the host is fit, after a wait if one was asked for; the testbed keeps it for all results.

        Args:
            hindrances: sentences on what keeps the run from telling something, beside those on its baseline.
        """
        foreseen_too = [] if comparer is None else foreseen(self._testbed, benchmarks, comparer)
        for sentence in (*hindrances, *foreseen_too):
            self._say(sentence)
        limit_s = self._options.wait_quiet
        fitness = self._testbed.examine(limit_s, self._wait)
        if limit_s and not fitness.quiet:
            self._say(f"the host did not become quiet within {span(limit_s)}; the run goes on")
        if comparer is not None:
            fitness = self._with_controls(fitness, benchmarks, comparer)
        fitness = self._with_links(fitness, benchmarks, comparer)
        if fitness.links:
            self._again = lambda: self._with_links(fitness, benchmarks, comparer)
        self._say(fitness.line)
        for sentence in fitness.missing:
            self._say(sentence)
        return fitness

    def look_again(self, seconds: float) -> None:
        """Measures the links anew that share no code with the paths, for a second look in so many seconds.

        A host that was slow when the run began would explain what is measured minutes later. Links that were measured
        just now, or would take too much of the time, stay as they were.
        """
        old = time.monotonic() - self._links_at > LINKS_AGE_S
        if self._again is not None and old and LINKS_SHARE * seconds >= LINK_S:
            self._again()

    def _wait(self, fitness: Fitness, left_s: float) -> None:
        now = time.monotonic()
        if self._told_at is None or now - self._told_at >= WAIT_LINE_S:
            self._told_at = now
            self._say(f"waiting for a quiet host, {clock(left_s)} left: {fitness.sentence}")

    def _with_controls(self, fitness: Fitness, benchmarks: Sequence[Benchmark], comparer: Comparer) -> Fitness:
        """Measures one control link of each kind of which the baseline has a figure."""
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

    def _with_links(self, fitness: Fitness, benchmarks: Sequence[Benchmark], comparer: Comparer | None) -> Fitness:
        """Measures the links that share no code with the paths, if the run is saved or its baseline has them.

        A host that cannot run such a link has none, and neither has a run of which they would take too much time.
        """
        kept = comparer is not None and any(entry.other_link_pps for entry in comparer.baseline.entries)
        judged = [one for one in benchmarks if one.case.candidate is None and one.settings.reference]
        references = [self._testbed.reference(benchmark.case) for benchmark in judged]
        wanted = {one.switch: None for one in references if one is not None and one.switch in OTHER_LINKS}
        if not (kept or self._options.save is not None) or LINK_S * len(wanted) > LINKS_SHARE * self._planned_s(judged):
            return fitness
        links: list[Link] = []
        for switch in wanted:
            try:
                link = self._testbed.control(OTHER_LINKS[switch], judged[0].settings)
            except (Unsupported, ProvisionError):
                continue
            links += [link] if isinstance(link, Link) else []
        self._links_at = time.monotonic()
        examined = replace(fitness, links=tuple(links))
        self._testbed.take_fitness(examined)
        return examined

    def _planned_s(self, benchmarks: Sequence[Benchmark]) -> float:
        """Returns the time that the run may take, in seconds."""
        return self._options.budget or sum(benchmark.settings.max_duration_s for benchmark in benchmarks)

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
