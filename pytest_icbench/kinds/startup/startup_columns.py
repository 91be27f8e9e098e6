# SPDX-License-Identifier: BSD-3-Clause
"""Start-up in reports: its figures as texts and as columns. Pure."""

from __future__ import annotations

from functools import partial

from pytest_icbench.display.case_names import number, short
from pytest_icbench.display.table import Column, In
from pytest_icbench.kinds.kind import Charts, InPart, Kind
from pytest_icbench.kinds.startup.startup_charts import startup_charts
from pytest_icbench.model.figures import Startup
from pytest_icbench.model.measurement import Result
from pytest_icbench.stats.quantiles import median


def _ms(time_ns: float | None) -> str:
    return "" if time_ns is None else short(time_ns / 1e6)


def each(result: Result) -> str:
    """Returns the median time to create a container in ms."""
    return _ms(number(result, result.startup_ns))


def sentence(result: Result) -> str:
    """Returns the figures as a sentence; empty for other results, and for a case without any container."""
    startups = result.containers.startups
    if startups is None or not startups.total_ns:
        return ""
    count = len(startups.total_ns)
    parts = [f"{short(median(startups.total_ns) / 1e6)} ms to create each of {count:,}"]
    parts += [f"the last tenth {growth(result)} times the first"] if growth(result) else []
    trips = [first_trip(result, 0.5), first_trip(result, 0.9)]
    parts += [f"first round trip of a client {trips[0]} ms, 90th percentile {trips[1]}"] if all(trips) else []
    if startups.retired:
        took, silent = (
            median([getattr(retirement, name) for retirement in startups.retired]) for name in ("took_ns", "silent_ns")
        )
        parts.append(
            f"{len(startups.retired):,} removed while others came, {short(took / 1e6)} ms each, gone"
            f" {silent / 1e9:.2f} s after the last frame of their client"
        )
    parts += [f"{memory(result)} MB each while idle"] if memory(result) else []
    missing = "" if count == startups.asked else f"; {startups.asked:,} were asked for"
    return f"{', '.join(parts)}{missing}."


def growth(result: Result) -> str:
    """Returns the median time of the last tenth over that of the first."""
    ratio = number(result, result.startup_growth)
    return "" if ratio is None else f"{ratio:.2f}"


def phase(result: Result, place: int) -> str:
    """Returns the median time of a phase in ms; empty for one that the kind does not have."""
    times = () if result.containers.startups is None else list(result.containers.startups.phases.values())[place]
    return _ms(median(times)) if result.is_number and any(times) else ""


def first_trip(result: Result, share: float) -> str:
    """Returns a quantile of the clients' first round trips in ms; empty if it is unknown."""
    known = result.containers.startups is not None and result.is_number
    return _ms(result.containers.startups.first_trip_quantile_ns(share)) if known and result.containers.startups else ""


def removal(result: Result) -> str:
    """Returns the median time to remove a container in ms."""
    times = () if result.containers.startups is None else result.containers.startups.removed_ns
    return _ms(median(times)) if result.is_number and times else ""


def memory(result: Result) -> str:
    """Returns the memory of an idle container in MB."""
    octets = number(result, result.containers.startup_memory_bytes)
    return "" if octets is None else f"{octets / 1e6:.2f}"


def cpu(result: Result) -> str:
    """Returns the CPU time of an idle container in percent of a CPU."""
    share = number(result, result.containers.startup_cpu_share)
    return "" if share is None else f"{share * 100:.3f}"


def value(result: Result) -> str:
    """Returns the main value with its unit."""
    return f"{each(result)} ms to create a container"


#: The titles of the tables, by the kind of table. They explain the columns.
TITLES = {
    "startup": "start-up: time to create a container in ms, median; growth: last tenth over first",
    "just in time": (
        "start-up, just in time: ms to create a container, median; first, p90: first round trips of clients"
    ),
}


def table_of(result: Result) -> str:
    """Returns the key of a result's table in ``TITLES``."""
    crowd = result.point.load.crowd
    return "startup" if crowd is None or crowd.every_ms is None else "just in time"


COLUMNS = (
    Column("each", "ms", each, In.LINE, phrase="{text} ms each"),
    Column("growth", "", growth, In.LINE, phrase="the last tenth {text} times the first"),
    Column("each", "", each, In.STARTUP, always=In.STARTUP, main=True),
    *(
        Column(name, "", partial(phase, place=place), In.STARTUP)
        for place, name in enumerate(("prepare", "process", "network", "answer"))
    ),
    Column("growth", "", growth, In.STARTUP),
    Column("first", "", partial(first_trip, share=0.5), In.STARTUP),
    Column("p90", "", partial(first_trip, share=0.9), In.STARTUP),
    Column("remove", "", removal, In.STARTUP),
    Column("idle", "MB", memory, In.STARTUP | In.PAGE, phrase="{text} MB each"),
    Column("CPU", "", cpu, In.PAGE, phrase="idle {text} % of a CPU each"),
)

STARTUP = Kind(
    figures=Startup,
    columns=COLUMNS,
    value=value,
    shown=In.STARTUP,
    titles=TITLES,
    table=table_of,
    sentence=sentence,
    question="How long does another container take to start? {paths}",
    charts=(Charts("startups", "Creation of containers", startup_charts, "first"),),
    in_part=InPart(
        "creation of containers",
        "the time of each and its growth with their number",
        "these times without clients and containers on the CPUs that create them",
    ),
)
