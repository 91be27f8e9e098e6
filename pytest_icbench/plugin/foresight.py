# SPDX-License-Identifier: BSD-3-Clause
"""What a plan and a run say about their baseline before anything is measured."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pytest_icbench.errors import ProvisionError, Unsupported
from pytest_icbench.gate.foresight import PlannedCase, foresee, of_history, utc
from pytest_icbench.plugin.items import Benchmark
from pytest_icbench.store.history_file import newest_at

if TYPE_CHECKING:
    from pytest_icbench.config.options import Options
    from pytest_icbench.gate.against import Comparer
    from pytest_icbench.testbed.testbed import Testbed


def foreseen(testbed: Testbed, planned: Sequence[Benchmark], comparer: Comparer) -> list[str]:
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


def history_foreseen(options: Options) -> list[str]:
    """Returns a sentence for what hinders the run's history. Raises UsageError if that cannot be read."""
    newest = None if options.history is None else newest_at(options.history)
    sentence = None if newest is None else of_history(str(options.history), newest, time.time())
    return [] if sentence is None else [sentence]
