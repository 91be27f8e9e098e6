# SPDX-License-Identifier: BSD-3-Clause
"""A recorded measurement as the parts from which it is computed again. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pytest_icbench.measure.launch.windows import count_windows, kept_s
from pytest_icbench.measure.summary.launch_log import LaunchLog
from pytest_icbench.measure.summary.summarize import Environment, Summary, summarize
from pytest_icbench.model.application import OPEN_LOOP
from pytest_icbench.model.case import Case
from pytest_icbench.model.codec import DamagedData, decode
from pytest_icbench.model.endpoint import Address, Endpoint, Pci, Veth
from pytest_icbench.model.launch import Launch
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.settings import Settings
from pytest_icbench.model.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Recorded:
    """A recorded measurement and its parts.

    Attributes:
        whole: the measurement as it was recorded.
        launches: launches of the case, with recomputed counters.
        reference: launches of the reference link, with recomputed counters.
        around: the environment of the figures.
    """

    whole: Measurement
    case: Case
    settings: Settings
    launches: tuple[Launch, ...]
    reference: tuple[Launch, ...]
    around: Environment

    @classmethod
    def of(cls, whole: Measurement) -> Recorded:
        """Returns the parts of a measurement. Raises DamagedData if some are missing."""
        return cls(
            whole=whole,
            case=_case(whole),
            settings=_settings(whole),
            launches=tuple(recounted(launch) for launch in whole.per_launch),
            reference=tuple(recounted(launch) for launch in whole.per_reference_launch),
            around=_around(whole),
        )

    def log(self, launches: Sequence[Launch], rejected: Sequence[Launch], *follows: str) -> LaunchLog:
        """Returns the log of the launches.

        Args:
            launches: valid launches of the figures.
            rejected: invalid launches, which are only evidence.
            follows: reasons of INVALID that are recomputed and not copied.
        """
        whole = self.whole
        invalid = whole.verdict == Verdict.INVALID and whole.reason not in follows
        return LaunchLog(
            launches=list(launches),
            reference=list(self.reference),
            rejected=list(rejected),
            invalid=(whole.reason or "", whole.evidence or "") if invalid else None,
            reference_evidence=whole.reference_evidence,
            faults=list(whole.faults),
            repeated=[recounted(launch) for launch in whole.per_repeated_launch],
            others=[recounted(launch) for launch in whole.per_other_launch],
            awaited_s=whole.awaited_s,
            ended_by=whole.ended_by,
            started_at=whole.started_at,
            duration_s=whole.duration_s,
        )

    def summarized(self, summary: Summary) -> Measurement:
        """Returns the measurement of launches that all have one load."""
        whole, offered = self.whole, self.case
        load, of_pps = whole.frames.load, whole.frames.load_of_pps
        if load is not None and of_pps is not None:
            offered = offered.sending(rate=Rate.part_of_found(load, of_pps, offered.senders))
        log = self.log(*split_valid(self.launches), "generator-bound")
        measurement = summarize(summary, offered, self.settings, log, self.around)
        measurement = replace(measurement, case=whole.case, axes=whole.axes)
        return measurement if load is None else measurement.with_figures(load=load, load_of_pps=of_pps)


def recounted(launch: Launch) -> Launch:
    """Returns a launch with counters and rates from its windows; unchanged without windows."""
    if not launch.windows:
        return launch
    pairs = tuple(
        replace(
            count_windows(
                *counts.account,
                [window for window in launch.windows if window.account == counts.account],
                late=counts.late,
                foreign=counts.foreign,
                corrupted=counts.corrupted,
            ),
            lossy_flows=counts.lossy_flows,
            worst_flows=counts.worst_flows,
            sent_by_queue=counts.sent_by_queue,
            received_by_queue=counts.received_by_queue,
        )
        for counts in launch.pairs
    )
    return replace(
        launch,
        pairs=pairs,
        throughput_pps=sum(pair.throughput_pps for pair in pairs),
        offered_pps=sum(pair.offered_pps for pair in pairs),
        duration_s=kept_s(launch.windows),
    )


def split_valid(launches: Sequence[Launch]) -> tuple[list[Launch], list[Launch]]:
    """Returns the valid launches and the invalid ones."""
    valid = [launch for launch in launches if launch.invalid is None]
    return valid, [launch for launch in launches if launch.invalid is not None]


def _case(whole: Measurement) -> Case:
    try:
        return Case.from_dict(whole.axes)
    except ValueError as error:
        raise DamagedData(f"{whole.case}: {error}") from None


def _settings(whole: Measurement) -> Settings:
    return decode(Settings, whole.settings, f"{whole.case}: settings")


_NOWHERE = Address("10.0.0.1", "02:00:00:00:00:01")


def _around(whole: Measurement) -> Environment:
    kinds = whole.treatment.get("endpoints")
    cpus = (whole.treatment.get("cpus") or {}).get("endpoints")
    if kinds is None or cpus is None:
        raise DamagedData(f"{whole.case}: the result does not name its endpoints: it is from an earlier version")
    # The figures depend only on whether all endpoints are kernel interfaces.
    kernel: Endpoint = Veth(_NOWHERE, "", None)
    other: Endpoint = Pci(_NOWHERE, "")
    return Environment(
        placement=whole.placement,
        endpoints=tuple(kernel if kind in ("veth", "tap") else other for kind in kinds),
        shared=len(set(cpus)) < len(cpus),
        open_loop=whole.metric == OPEN_LOOP,
        identity=whole.identity,
        treatment=whole.treatment,
        conditions=whole.conditions,
        software=whole.software,
    )
