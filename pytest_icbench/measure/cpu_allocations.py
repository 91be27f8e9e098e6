# SPDX-License-Identifier: BSD-3-Clause
"""What functions that share a CPU got of it, held against their allocations. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import median

from pytest_icbench.measure.summary.launch_log import over
from pytest_icbench.model.case import Case
from pytest_icbench.model.cpu_allocation import CpuAllocation
from pytest_icbench.model.function_facts import FunctionWork
from pytest_icbench.model.launch import Launch


def by_cpu_allocation(
    works: Sequence[FunctionWork] | None, case: Case, launches: Sequence[Launch], alone: Sequence[Launch]
) -> tuple[FunctionWork, ...] | None:
    """Returns the work of functions with what each got of their CPU; unchanged for functions that share none.

    Args:
        launches: those of the case.
        alone: those of the first function, which then has the CPU for itself, in turn with them. They say nothing of
            functions of another kind, and nothing where there are no allocations.
    """
    if works is None or not case.one_cpu or not launches:
        return None if works is None else tuple(works)
    if not case.cpu_allocations or case.rate.varies:
        alone = ()  # its launches are of another path, or at other loads
    cpu_ns = sum(work.cpu_ns or 0 for work in works)
    cpu_allocations = case.cpu_allocations or (CpuAllocation(),) * len(works)
    judged = []
    for work, function, cpu_allocation in zip(works, case.functions, cpu_allocations, strict=True):
        cpu_used_share = work.cpu_ns / cpu_ns if work.cpu_ns is not None and cpu_ns else None
        work = replace(
            work, cpu_used_share=cpu_used_share, cpu_share=cpu_allocation.cpu_share, cpu_quota=cpu_allocation.cpu_quota
        )
        if case.one_way:
            work = _with_goodput(work, cpu_allocation, launches, alone if function == case.functions[0] else ())
        judged.append(work)
    return tuple(judged)


def _with_goodput(
    work: FunctionWork, cpu_allocation: CpuAllocation, launches: Sequence[Launch], alone: Sequence[Launch]
) -> FunctionWork:
    rates = [counts.throughput_pps for launch in launches for counts in launch.pairs if counts.pair == work.pair]
    due = [cpu_allocation.part * launch.throughput_pps for launch in alone]
    reported = [(launch, rate / part) for launch, rate, part in zip(launches, rates, due, strict=False) if part]
    # The unit is the ratio, which is never negative: rounds have a geometric mean, and no error is below -100 %.
    ratio = over([launch for launch, _ in reported], [value for _, value in reported]) if reported else None
    return replace(
        work,
        goodput_pps=median(rates),
        alone_pps=median(launch.throughput_pps for launch in alone) if alone else None,
        goodput_error=None if ratio is None else ratio.value - 1,
        goodput_error_low=None if ratio is None or ratio.low is None else ratio.low - 1,
        goodput_error_high=None if ratio is None or ratio.high is None else ratio.high - 1,
    )
