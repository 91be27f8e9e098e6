# SPDX-License-Identifier: BSD-3-Clause
"""Latency histograms in HdrHistogram's encoding, read by its library: nothing is rounded on the way."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_icbench.cli import main
from pytest_icbench.errors import ProvisionError, UsageError
from pytest_icbench.model.case import Case
from pytest_icbench.model.launch import Launch
from pytest_icbench.model.load import Frames
from pytest_icbench.model.rate import Rate
from pytest_icbench.stats.quantiles import Histogram
from pytest_icbench.store import raw
from pytest_icbench.store.raw import write_hlog, write_raw
from pytest_icbench.store.run_directory import append_line
from tests.measurements import measurement

histogram = pytest.importorskip("hdrh.histogram", reason="the extra hdr is not installed")
log = pytest.importorskip("hdrh.log", reason="the extra hdr is not installed")

RTT = Case("ovs", Frames(burst=4, rate=Rate(1000)), dimension="latency")


def bucket_value(value: int, digits: int) -> int:
    """The highest value of the workload's bucket, as rtt.c computes it."""
    half_bits = (int(10**digits) - 1).bit_length()
    shift = (value | (1 << half_bits)).bit_length() - 1 - half_bits
    return (((value >> shift) + 1) << shift) - 1


def of(values: list[int], digits: int = 3) -> Histogram:
    buckets = [bucket_value(value, digits) for value in values]
    counts = tuple((value, buckets.count(value)) for value in sorted(set(buckets)))
    return Histogram(counts, min(values), max(values), sum(values) / len(values), digits)


def decoded(read: Any) -> tuple[tuple[int, int], ...]:
    """The counts of a histogram that the library has read, by the highest values of their buckets.

    Its own iterator walks through all buckets step by step, for seconds where there are millions.
    """
    return tuple(
        (read.get_highest_equivalent_value(read.get_value_from_index(index)), count)
        for index, count in enumerate(read.counts)
        if count
    )


values = st.lists(st.integers(1, 10**6) | st.integers(1, raw.GREATEST_NS), min_size=1, max_size=40)


@pytest.mark.slow
@settings(deadline=None, max_examples=30)
@given(values, st.integers(1, 5))
def test_every_count_survives(samples: list[int], digits: int) -> None:
    found = of(samples, digits)
    text = raw.encode_histogram(found)
    assert text.startswith("HISTFAAA")
    again = histogram.HdrHistogram.decode(text.encode())
    assert decoded(again) == found.counts
    assert again.significant_figures == digits


@settings(deadline=None)
@given(values, st.sampled_from([50.0, 90.0, 99.0]))
def test_the_library_finds_the_same_percentiles(samples: list[int], percent: float) -> None:
    found = of(samples)
    # The library's percentile is the highest value of the bucket, ours is at most the greatest sample.
    wide = replace(found, counts=tuple((value, number * 1000) for value, number in found.counts), maximum=None)
    read = histogram.HdrHistogram.decode(raw.encode_histogram(wide).encode())
    assert read.get_total_count() == 1000 * len(samples)
    assert read.get_value_at_percentile(percent) == wide.percentile(percent / 100)


def test_an_empty_histogram_is_one_too() -> None:
    text = raw.encode_histogram(Histogram((), None, None, None, 3, lost=5))
    assert decoded(histogram.HdrHistogram.decode(text.encode())) == ()


def launch(index: int, started_at: float, **changed: Any) -> Launch:
    plain = Launch(index, started_at, 0.5, 0.2, 990.0, 1000.0, 0.0, False, (), rtt=of([1000, 2000, 3_500_000]))
    return replace(plain, **changed)


def found_latency() -> Any:
    return measurement(
        RTT,
        per_launch=(launch(0, 100.0, rtt_first=of([900])), launch(1, 104.0)),
        per_reference_launch=(launch(0, 102.0, rtt=of([77])),),
    )


def intervals(path: Path) -> list[tuple[str, float, int]]:
    """Tag, start and greatest value of each interval, as the library reads them."""
    reader = log.HistogramLogReader(str(path), histogram.HdrHistogram(1, raw.GREATEST_NS, 3))
    found = []
    while (interval := reader.get_next_interval_histogram()) is not None:
        found.append((interval.get_tag(), interval.get_start_time_stamp() / 1000, interval.get_max_value()))
    reader.close()
    return found


def test_a_log_is_read_by_the_library(tmp_path: Path) -> None:
    path = tmp_path / "x.hlog"
    assert raw.write_log(path, [found_latency()])
    name = "ovs-64B-b4-1vs1-R1k"
    assert intervals(path) == [
        (f"{name}/rtt", 100.0, bucket_value(3_500_000, 3)),
        (f"{name}/rtt_first", 100.0, 900),
        (f"{name}/reference/rtt", 102.0, 77),
        (f"{name}/rtt", 104.0, bucket_value(3_500_000, 3)),
    ]
    (first,) = [line for line in path.read_text().splitlines() if "rtt_first" in line]
    assert first.startswith(f"Tag={name}/rtt_first,0.000,0.500,0.000900,HISTFAAA")


def test_without_latency_there_is_no_log(tmp_path: Path) -> None:
    assert not raw.write_log(tmp_path / "x.hlog", [measurement()])
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ProvisionError, match="cannot be written"):
        raw.write_log(tmp_path / "no" / "x.hlog", [found_latency()])


def test_a_run_has_the_log_beside_its_windows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_raw(tmp_path, Path("raw"), "test_x", found_latency())
    write_hlog(path, found_latency())
    assert len(intervals(path.with_suffix(".hlog"))) == 4
    monkeypatch.setattr(raw, "has_hdr_library", lambda: False)
    path = write_raw(tmp_path, Path("raw"), "test_y", found_latency())
    write_hlog(path, found_latency())
    assert not path.with_suffix(".hlog").exists()


def test_the_command_writes_a_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results, output = tmp_path / "results.jsonl", tmp_path / "x.hlog"
    for each in (measurement(), found_latency()):
        append_line(results, each.to_json())
    assert main.main(["hlog", str(results), str(output)]) == 0
    assert len(intervals(output)) == 4
    assert main.main(["hlog", str(results), str(tmp_path / "y"), "--case", "testpmd"]) == 2
    assert "no latency of a case with 'testpmd' in its id" in capsys.readouterr().err
    assert main.main(["hlog", str(tmp_path / "none"), str(output)]) == 2
    assert "name a results.jsonl" in capsys.readouterr().err
    results.write_text("{}\n")
    assert main.main(["hlog", str(results), str(output)]) == 2
    assert "line 1: schema is None" in capsys.readouterr().err


def test_without_the_library_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr("importlib.import_module", missing)
    with pytest.raises(UsageError, match=r"pip install 'pytest-icbench\[hdr\]'"):
        raw.encode_histogram(of([1]))
