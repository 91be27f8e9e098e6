# SPDX-License-Identifier: BSD-3-Clause
"""What reports say of functions that share a machine: where a chain lost frames, and who got which CPU. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from pytest_icbench.model.result import Result
from pytest_icbench.report.axes import short
from pytest_icbench.wording import counted

#: The most hops that are named.
_FEW = 3


def losses(result: Result) -> str:
    """Returns the hops at which a chain lost frames, those that lost most first; empty without losses."""
    by_hop: Counter[int] = Counter()
    for account in result.chains or ():
        by_hop.update({hop: lost for hop, lost in enumerate(account.lost_by_hop, start=1) if lost})
    if not by_hop:
        return ""
    hops, ranked = result.point.chain, by_hop.most_common()
    names = [
        f"{f'function {hop} of {hops}' if hop <= hops else 'the receiver'} {lost:,}" for hop, lost in ranked[:_FEW]
    ]
    if rest := ranked[_FEW:]:
        names.append(f"{len(rest)} others {sum(lost for _, lost in rest):,}")
    full = sum(account.table_full or 0 for account in result.chains or ())
    why = f"; {full:,} of them because a table of connections was full" if full else ""
    return f"{counted(by_hop.total(), 'frame')} lost by hop (warm-up included): {', '.join(names)}{why}"


def crowding(result: Result) -> str:
    """Returns who shares CPUs with a chain's functions, and what that means flat out; empty where each has its own."""
    if result.point.chain == 1:
        return ""
    treatment = result.treatment
    cpus, functions = treatment.get("cpus"), treatment.get("function")
    if not isinstance(cpus, Mapping) or not isinstance(functions, Mapping):
        return ""
    own, ends = list(functions.get("cpus") or ()), list(cpus.get("endpoints") or ())
    if not own:
        return f"{result.point.chain} functions in a row work on their sender's CPU"
    if len({*own, *ends}) == len(own) + len(ends):
        return ""
    text = f"{len(own)} functions and {len(ends)} endpoints share {counted(len({*own, *ends}), 'CPU')}"
    if result.metric == "frmol":
        text += "; flat out, each spends its time on frames that a later one drops: search for a rate (pdr:0.5%)"
    return text


def contracts(result: Result) -> str:
    """Returns what functions with a share or a cap of a CPU got, with the error; empty for others."""
    texts = []
    for work in result.functions or ():
        if work.goodput_pps is None or not result.is_number:
            continue
        words = [f"{name} {value} %" for name, value in (("share", work.share), ("cap", work.cap)) if value is not None]
        text = f"function {work.pair} ({', '.join(words)}) {short(work.goodput_pps)} frames/s"
        if work.goodput_error is not None and work.alone_pps is not None:
            text += f" of {short(work.alone_pps)} alone, error {work.goodput_error:+.1%}"
        if work.goodput_error_low is not None and work.goodput_error_high is not None:
            text += f" ({work.goodput_error_low:+.1%} to {work.goodput_error_high:+.1%})"
        texts.append(text)
    return f"{'; '.join(texts)}. Each has a CPU group of its own, in which its yields are weaker" if texts else ""
