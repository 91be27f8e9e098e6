# SPDX-License-Identifier: BSD-3-Clause
"""Holds what functions got of their CPU against their contracts. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import median

from pytest_icbench.measure.summary.rounds import over
from pytest_icbench.model.case import Case
from pytest_icbench.model.function_facts import FunctionWork
from pytest_icbench.model.launch import Launch


def by_contract(
    works: Sequence[FunctionWork] | None, case: Case, launches: Sequence[Launch], alone: Sequence[Launch]
) -> tuple[FunctionWork, ...] | None:
    """Returns the work of functions with what each got by its contract; unchanged for a case without contracts.

    Args:
        launches: those of the case.
        alone: those of one function that has the CPU for itself, in turn with them.
    """
    if works is None or not case.contracts or not launches or case.dimension != "throughput":
        return None if works is None else tuple(works)
    if case.rate.is_search or case.rate.is_sweep:
        alone = ()  # its launches are at other loads
    judged = []
    for work in works:
        contract = case.contracts[work.pair - 1]
        rates = [counts.throughput_pps for launch in launches for counts in launch.pairs if counts.pair == work.pair]
        due = [contract.part * launch.throughput_pps for launch in alone]
        told = [(launch, rate / part - 1) for launch, rate, part in zip(launches, rates, due, strict=False) if part]
        error = over([launch for launch, _ in told], [value for _, value in told]).estimate if told else None
        judged.append(
            replace(
                work,
                share=contract.share,
                cap=contract.cap,
                goodput_pps=median(rates),
                alone_pps=median(launch.throughput_pps for launch in alone) if alone else None,
                goodput_error=None if error is None else error.value,
                goodput_error_low=None if error is None else error.low,
                goodput_error_high=None if error is None else error.high,
            )
        )
    return tuple(judged)
