# SPDX-License-Identifier: BSD-3-Clause
"""Measures applications by their own clients."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_icbench.measure.method import Method
from pytest_icbench.measure.summary.application import application_bottleneck, application_figures
from pytest_icbench.measure.summary.bottleneck import Bottleneck
from pytest_icbench.measure.summary.summarize import Environment, Summary, rate_bottleneck
from pytest_icbench.model.application import CLOSED_LOOP, OPEN_LOOP
from pytest_icbench.model.case import Case
from pytest_icbench.model.launch import Launch


def _bottleneck(case: Case, launches: Sequence[Launch], around: Environment) -> Bottleneck:
    return application_bottleneck(launches) or rate_bottleneck(case, launches, around)


METHOD = Method(
    Summary(
        lambda _case, log: application_figures(log.launches),
        _bottleneck,
        metric=lambda _case, around: OPEN_LOOP if around.open_loop else CLOSED_LOOP,
    )
)
