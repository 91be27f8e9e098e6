# SPDX-License-Identifier: BSD-3-Clause
"""Rates: how much is offered, or which rate is searched for. Frozen, pure.

==============  =====================================================================================
``max``         as much as the port takes
``1500``, ``1M``  a fixed offered load
``ndr``         search for the non-drop rate: the greatest load without loss (RFC 2544's throughput)
``pdr:0.5%``    search for the partial-drop rate: the greatest load with at most this loss ratio
``ndr*0.5``     a share of a rate that is searched for first, once per run, and then offered as a fixed load
``mfr``         the maximum forwarding rate over several offered loads (RFC 2285)
``trace:steps:30k``  a load that changes every second, see ``model.trace``
==============  =====================================================================================
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from pytest_icbench.errors import UsageError
from pytest_icbench.model.trace import Trace
from pytest_icbench.wording import shortened

#: The meaning of a rate; the value of ``metric`` in a result.
Metric = Literal["frmol", "fixed", "ndr", "pdr", "mfr", "trace"]

#: Least and greatest loss ratio of a partial-drop rate. One frame in ten million is a second at the greatest rates.
MIN_LOSS_RATIO = 1e-7
MAX_LOSS_RATIO = 0.5

#: Least and greatest share of a rate that is searched for.
MIN_SHARE, MAX_SHARE = 0.001, 1.0

_SHARE = re.compile(r"0?\.\d{1,6}|1(?:\.0{1,6})?", re.ASCII)
_PDR = re.compile(r"pdr:(\d{1,2}(?:\.\d{1,8})?|\.\d{1,8})%", re.ASCII)


@dataclass(frozen=True, slots=True)
class Rate:
    """A rate per pair; at most one of the first three attributes is set, none for ``max``.

    Attributes:
        pps: a fixed offered load, in frames per second.
        loss_ratio: the greatest trial loss ratio that a search accepts, from 0 (``ndr``) to 0.5.
        loads: the offered loads of ``mfr``, in frames per second; empty for ten loads up to the calibrated maximum.
        trace: a load that changes every second; alone.
        share: together with ``loss_ratio``: the load offered is this share of the rate that the search finds.
    """

    pps: int | None = None
    loss_ratio: float | None = None
    loads: tuple[int, ...] | None = None
    share: float | None = None
    trace: Trace | None = None

    @property
    def is_max(self) -> bool:
        return self.trace is None and self.pps is None and self.loss_ratio is None and self.loads is None

    @property
    def is_search(self) -> bool:
        """Whether the rate is found by a search over offered loads."""
        return self.loss_ratio is not None and self.share is None

    @property
    def is_sweep(self) -> bool:
        """Whether the rate is the greatest of a series of offered loads."""
        return self.loads is not None

    @property
    def varies(self) -> bool:
        """Whether launches have several offered loads: the trials of a search, the points of a sweep."""
        return self.is_search or self.is_sweep

    @property
    def at_limit(self) -> bool:
        """Whether the figure is a limit of the path, and not only the result of a given load."""
        return self.pps is None and self.share is None and self.trace is None

    @property
    def searched(self) -> Rate:
        """The whole rate that is searched for."""
        return Rate(loss_ratio=self.loss_ratio)

    def part(self, share: float) -> Rate:
        """Returns a share of a searched rate. Raises UsageError for another rate, or a share out of range."""
        if self.loss_ratio is None:
            raise UsageError(f"a load of {share:g} is a part of a searched rate (ndr, pdr:0.5%), not of {self}")
        if not MIN_SHARE <= share <= MAX_SHARE:
            raise UsageError(f"a load of {share:g} is outside {MIN_SHARE:g} to {MAX_SHARE:g} of the rate")
        return Rate(loss_ratio=self.loss_ratio, share=round(share, 6))

    @classmethod
    def part_of_found(cls, share: float, found_pps: float, pairs: int) -> Rate:
        """Returns the fixed load that is a share of a rate that a search found.

        Args:
            share: from ``MIN_SHARE`` to 1.
            found_pps: the rate found, frames per second, total over the pairs.
            pairs: number of pairs that share the load evenly.

        Returns:
            Whole frames per second and pair, at least 1.
        """
        return cls(max(1, round(share * found_pps / pairs)))

    @property
    def metric(self) -> Metric:
        """The metric of a measurement at this rate."""
        if self.trace is not None:
            return "trace"
        if self.pps is not None or self.share is not None:
            return "fixed"
        if self.loss_ratio is not None:
            return "ndr" if self.loss_ratio == 0 else "pdr"
        return "frmol" if self.loads is None else "mfr"

    def __str__(self) -> str:
        """Returns the text in ids (only ``\\w : + - .``).

        It is ``max``, ``1500k``, ``ndr``, ``pdr:0.5`` (per cent) or ``mfr``; ``ndr:x10`` and ``pdr:0.5:x10`` are a
        tenth.
        """
        if self.trace is not None:
            return f"trace:{self.trace.label}"
        if self.pps is not None:
            return shortened(self.pps)
        if self.share is not None:
            return f"{self.searched}:x{exact_percent(self.share)}"
        if self.loss_ratio:
            return f"pdr:{exact_percent(self.loss_ratio)}"
        return {"frmol": "max"}.get(self.metric, self.metric)

    @property
    def typed(self) -> str:
        """The rate as a user types it; of a file's trace with all its rates."""
        if self.trace is not None:
            return f"trace:{self.trace.typed}"
        if self.share is not None:
            return f"{self.searched.typed}*{self.share:.6f}".rstrip("0").rstrip(".")
        return f"{self}%" if self.metric == "pdr" else str(self)

    def to_json(self) -> int | str | None:
        """Returns frames per second, None for ``max``, otherwise the text that a user types.

        ``from_json`` is the inverse but for the loads of a sweep, which the result has apart.
        """
        return self.pps if self.is_max or self.pps is not None else self.typed

    @classmethod
    def from_json(cls, data: int | str | None) -> Rate:
        """Returns the rate of ``to_json``. Raises ValueError for a text that is no rate."""
        if not isinstance(data, str):
            if data is not None and (type(data) is not int or not 0 < data < 2**63):
                raise ValueError("a rate is frames per second, from 1 on, or a text")
            return cls(data)
        rate = named_rate(data)
        if rate is None:
            raise ValueError(f"{data!r} is no rate")
        return rate


#: As much as the port takes.
MAXIMUM = Rate()


def named_rate(text: str) -> Rate | None:
    """Returns the rate of ``max``, ``ndr``, ``pdr:X%``, ``mfr``, a trace or ``ndr*0.5``; None for any other text."""
    if text.startswith("trace:"):
        trace = Trace.of(text.removeprefix("trace:"))
        return None if trace is None else Rate(trace=trace)
    whole, star, share = text.partition("*")
    if star:
        whole_rate = named_rate(whole)
        if (
            whole_rate is None
            or not whole_rate.is_search
            or _SHARE.fullmatch(share) is None
            or float(share) < MIN_SHARE
        ):
            return None
        return whole_rate.part(float(share))
    if text == "max":
        return Rate()
    if text == "ndr":
        return Rate(loss_ratio=0.0)
    if text == "mfr":
        return Rate(loads=())
    match = _PDR.fullmatch(text)
    if match is None:
        return None
    # Rounded, so that 0.5 % is the float that 0.005 is.
    ratio = round(float(match[1]) / 100, 12)
    return Rate(loss_ratio=ratio) if MIN_LOSS_RATIO <= ratio <= MAX_LOSS_RATIO else None


def exact_percent(ratio: float) -> str:
    """Returns a ratio in per cent, without exponent and without trailing zeros: 0.005 is ``0.5``."""
    return f"{ratio * 100:.8f}".rstrip("0").rstrip(".")
