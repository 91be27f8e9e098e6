# SPDX-License-Identifier: BSD-3-Clause
"""Makes the tables of the records in files from the docstrings of their classes."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import fields

#: Links in the tables of records: by the record and the first name of a key's entry, a phrase of it and where it leads.
LINKS = {
    "Launch": {
        "pdv": ("delay variation", "../explanation/concepts.md#latency"),
        "endpoints": ("how evenly each process had its CPU", "#an-endpoint-of-a-launch"),
        "application": ("an application", "../how-to/applications.md"),
        "disturbed": ("what disturbed the launch", "../explanation/why-runs-differ.md#disturbance"),
        "stationary": ("became stationary", "../explanation/concepts.md#warm-up"),
        "pairs": ("the counters of each pair", "#a-pair-of-a-launch"),
    },
    "RunInfo": {"identity": ("many testbeds", "../how-to/two-hosts.md#run-cases-on-many-testbeds")},
    "TestRecord": {"results": ("its results", "#results-of-a-test")},
    "Entry": {"case": ("a result", "../reference/result-format.md#a-result")},
    "Table": {"container": ("runs already", "../how-to/attach.md")},
    "SearchLog": {"trials": ("its trials", "#a-trial-of-a-search")},
    "Measurement": {
        "case": ("id", "ids.md"),
        "metric": ("what a rate is", "../explanation/concepts.md#packet-size-and-rates"),
        "verdict": ("INVALID", "../how-to/verdicts.md"),
        "findings": ("what the gate found", "#a-finding"),
        "bottleneck": ("what limited the rate", "../how-to/verdicts.md#what-limited-a-rate"),
        "lower_bound": ('"at least"', "../how-to/verdicts.md#what-limited-a-rate"),
        "ratio_to_reference": ("reference link's", "../explanation/concepts.md#reference-link"),
        "switch_counters": ("the switch counted", "#a-port-of-the-switch"),
        "functions": ("what each network function did", "#a-function"),
        "precision": ("where none is claimed", "../explanation/concepts.md#launches-and-intervals"),
        "dependence": ("depend on those before them", "../explanation/concepts.md#launches-and-intervals"),
        "discarded_s": ("stationary", "../explanation/concepts.md#warm-up"),
        "disturbed_launches": ("disturbed", "../explanation/why-runs-differ.md#disturbance"),
        "side_by_side": ("how it was reached", "#side-by-side"),
        "identity": ("facts", "../explanation/concepts.md#facts-around-a-result"),
        "per_launch": ("launches", "#a-launch"),
    },
    "FrameFigures": {
        "throughput_pps": ("conditional throughput", "#a-search"),
        "mean_frame_bytes": ("mix", "traffic.md#lengths"),
        "scheduled": ("accounts", "../explanation/concepts.md#windows-and-accounts"),
        "cycles_per_packet": ("busy cycles", "../explanation/concepts.md#cycles"),
        "chains": ("where a chain lost frames", "#a-chain"),
        "noisy_neighbour": ("what a noisy neighbour changed", "#a-noisy-neighbour"),
        "loss_events": ("loss events", "#a-loss-event"),
        "per_pair": ("pairs", "#a-pair-of-a-result"),
    },
    "Latency": {
        "rtt_mean_ns": ("round-trip time", "../explanation/concepts.md#latency"),
        "pdv_p50_ns": ("packet delay variation", "../explanation/concepts.md#latency"),
    },
    "Application": {
        "operations_per_second": ("answered requests", "../how-to/applications.md#what-the-values-say"),
    },
    "Throughput": {
        "back_to_back": ("back-to-back frames", "#back-to-back-frames"),
        "sweep": ("points of a sweep", "#a-point-of-a-sweep"),
    },
    "Search": {
        "search_lower_pps": ("relevant bounds", "../explanation/concepts.md#searches"),
        "search": ("a search", "#a-search"),
    },
    "Startup": {
        "startup_ns": ("time to create a container", "../how-to/startup.md#what-the-values-say"),
    },
}


def cell(text: str) -> str:
    """Escapes a text for a cell of a table."""
    return re.sub(r"(?<!\\)\|", r"\\|", text).replace("\n", " ")


def keys_of(kind: type) -> str:
    """Returns the keys of a record as its docstring describes them, without the ends of intervals.

    Raises:
        ValueError: the docstring does not describe exactly the record's fields.
    """
    inherited = {name for base in kind.__mro__[1:] for name in getattr(base, "__dataclass_fields__", ())}
    types = {field.name: str(field.type) for field in fields(kind) if field.name not in inherited}
    described = list(described_keys(kind))
    listed = {name for names, _ in described for name in names}
    if listed != set(types):
        raise ValueError(f"{kind.__name__}: its docstring lists {sorted(listed ^ set(types))} wrongly")
    ends = {name for name in types if name.removesuffix("_low").removesuffix("_high") in types.keys() - {name}}
    rows = ["| key | meaning |", "| --- | --- |"]
    for names, meaning in described:
        shown = [f"`{name}` ±" if has_interval(name, types) else f"`{name}`" for name in names if name not in ends]
        rows.append(f"| {', '.join(shown)} | {meaning} |")
    return "\n".join(rows)


def described_keys(kind: type) -> Iterator[tuple[list[str], str]]:
    """Yields the keys that a docstring describes together, and their meaning. Raises ValueError for a stale link."""
    text = re.sub(r"``(.+?)``", r"`\1`", inspect.cleandoc(kind.__doc__ or ""), flags=re.S)
    section = textwrap.dedent(text.partition("Attributes:\n")[2]).strip("\n")
    for entry in re.split(r"\n(?=\S)", section):
        head, _, meaning = " ".join(entry.split()).partition(": ")
        names = head.split(", ")
        phrase, target = LINKS.get(kind.__name__, {}).get(names[0], ("", ""))
        if phrase not in meaning:
            raise ValueError(f"{kind.__name__}: {names[0]} no longer says {phrase!r}")
        linked = meaning.replace(phrase, f"[{phrase}]({target})", 1) if phrase else meaning
        yield names, cell(linked.removesuffix("."))


def has_interval(name: str, types: Mapping[str, str]) -> bool:
    """Whether a key is an estimate, by the types of all keys."""
    return "Estimate" in types[name] or (f"{name}_low" in types and "float" in types[name])
