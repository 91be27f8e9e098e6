# SPDX-License-Identifier: BSD-3-Clause
"""What stands beside a result's main figure, in words that the table and the page share. Pure."""

from __future__ import annotations

from pytest_icbench.report.axes import Result, number, short

#: Part of a figure by which it drifts before that is said.
NOTABLE_DRIFT = 0.01
#: Metrics of rates that are looked for.
SEARCHES = ("ndr", "pdr")

_QUANTILES = {"p50": "p50", "p90": "p90", "p99": "p99", "p99_9": "p99.9", "p99_99": "p99.99", "max": "max"}


def is_search(result: Result) -> bool:
    """Whether the rate was looked for: its interval is a bracket then, and no confidence interval."""
    return result.get("metric") in SEARCHES


def bounds(result: Result, between: str = " to ") -> str:
    """The relevant bounds of a search in Mpps; empty where none is proven, or for a result that is none.

    RFC 9971 wants the lower one in every report; an upper one that is not the device's is left out.
    """
    lower, upper = number(result, "search_lower_pps"), number(result, "search_upper_pps")
    if not is_search(result) or lower is None:
        return ""
    if upper is None or number(result, "throughput_pps_high") is None:
        return f"≥{short(lower / 1e6)}"
    return f"{short(lower / 1e6)}{between}{short(upper / 1e6)}"


def relevant_bounds(result: Result) -> str:
    """The same as a sentence, with an upper bound that is not the device's too."""
    lower, upper = number(result, "search_lower_pps"), number(result, "search_upper_pps")
    if not is_search(result) or (lower is None and upper is None):
        return ""
    ends = [
        f"no {name} bound proven" if value is None else f"{name} {short(value / 1e6)} Mpps"
        for name, value in (("lower", lower), ("upper", upper))
    ]
    return f"{', '.join(ends)} (offered load over all pairs, RFC 9971)"


def percentiles(result: Result, prefix: str) -> str:
    """``p50 20 µs, p99 31 µs``: the percentiles ``{prefix}_p50_ns`` … that there are."""
    found = ((label, number(result, f"{prefix}_{name}_ns")) for name, label in _QUANTILES.items())
    return ", ".join(f"{label} {short(value / 1e3)} µs" for label, value in found if value is not None)


def bands(result: Result) -> str:
    """The two bands of the launches, and where the median lies; empty for one band."""
    found = result.get("bands")
    if not found:
        return ""
    latency = result.get("dimension") == "latency"
    parts = []
    for name in ("low", "high"):
        value = f"{found[name] / 1e3:.1f} µs" if latency else f"{mpps(found[name])} Mpps"
        parts.append(f"{found[f'launches_{name}']} launches at {value}")
    if found["launches_low"] == found["launches_high"]:
        where = "equally full, so the median may lie anywhere between them"
    else:
        where = "the median lies in the fuller one"
    return f"two bands, {' and '.join(parts)}; {where}"


def drift(result: Result) -> str:
    """By how much the figure drifted, if that is worth a sentence."""
    found = result.get("drift") or 0.0
    if abs(found) < NOTABLE_DRIFT:
        return ""
    return f"drifted by {found:+.1%} while it was measured; the level is that halfway"


def mpps(pps: float) -> str:
    """Two or three digits behind the point."""
    return f"{pps / 1e6:.2f}" if pps >= 1e6 else f"{pps / 1e6:.3f}"
