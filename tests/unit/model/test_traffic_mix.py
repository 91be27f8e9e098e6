# SPDX-License-Identifier: BSD-3-Clause
"""Mixes: what a user writes, and the order of lengths that follows from it."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_icbench.model import traffic_mix
from pytest_icbench.model.traffic import MAX_FRAME_BYTES, MIN_FRAME_BYTES, Traffic


def parsed(text: str) -> str:
    return traffic_mix.parse(text, MIN_FRAME_BYTES, MAX_FRAME_BYTES)


@pytest.mark.parametrize(
    ("text", "counts", "mean"),
    [
        ("simple", {64: 7, 570: 4, 1518: 1}, 353.83),
        ("nfvbench", {64: 7, 594: 4, 1518: 1}, 361.83),
        ("64:28,570:16,1518:4", {64: 7, 570: 4, 1518: 1}, 353.83),
        ("aaagb", {64: 3, 1518: 1, 128: 1}, 367.6),
        ("1518:1", {1518: 1}, 1518),
    ],
)
def test_a_cycle_has_what_the_mix_says(text: str, counts: dict[int, int], mean: float) -> None:
    traffic = Traffic.of_mix(text)
    assert Counter(traffic.sizes) == counts
    assert traffic.mean_bytes == pytest.approx(mean, abs=0.005)
    assert traffic.longest_bytes == max(counts)
    assert traffic.options == ["--sizes", ",".join(map(str, traffic.sizes))]


def test_a_genome_is_sent_as_written() -> None:
    """RFC 6985's letters; z is the frame of the path's MTU."""
    assert traffic_mix.sizes(parsed("abcdefghiz")) == (64, 128, 256, 512, 1024, 1280, 1518, 2112, 9000, 1518)


def test_equal_mixes_have_one_label() -> None:
    assert parsed("64:14,594:8") == parsed("64:7+594:4") == "64:7+594:4"
    assert Traffic.of_mix("64:14,594:8") == Traffic.of_mix("64:7,594:4")


@given(st.dictionaries(st.integers(64, 9216), st.integers(1, 60), min_size=1, max_size=traffic_mix.MAX_SIZES))
def test_each_size_is_spread_over_the_cycle(weights: dict[int, int]) -> None:
    """Two frames of a size are never further apart than twice their mean distance."""
    label = parsed(",".join(f"{size}:{weight}" for size, weight in weights.items()))
    order = traffic_mix.sizes(label)
    assert order == traffic_mix.sizes(label)
    counts = Counter(order)
    for size, count in counts.items():
        assert weights[size] * sum(counts.values()) == count * sum(weights.values())
        places = [place for place, found in enumerate(order) if found == size]
        places.append(places[0] + len(order))
        assert max(after - before for before, after in pairwise(places)) <= 2 * len(order) / count + len(counts)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("simpel", "'s', which stands for no size"),
        ("aaxb", "'x', which stands for no size"),
        ("aaj", "16000 bytes, which no path here carries"),
        ("64", "'6', which stands for no size"),
        ("", "1 to 64 letters, not 0"),
        ("a" * 65, "1 to 64 letters, not 65"),
        ("64:0", "64 has weight 0; leave the size out"),
        ("63:1", "63 is outside 64 to 9216"),
        ("9217:1", "9217 is outside 64 to 9216"),
        ("64:1,64:2", "64 occurs twice"),
        ("64:1,", "'' is no SIZE:WEIGHT"),
        ("64:-1", "'64:-1' is no SIZE:WEIGHT"),
        ("64:1.5", "'64:1.5' is no SIZE:WEIGHT"),
        ("64:1024,128:1", "a cycle of 1025 frames"),
        (",".join(f"{size}:1" for size in range(64, 81)), "17 sizes are more than 16"),
    ],
)
def test_bad_mixes_are_refused_in_one_sentence(text: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=r"^[^\n]+$") as refused:
        parsed(text)
    assert sentence in str(refused.value)


@given(st.text(max_size=30))
def test_no_text_breaks_the_parser(text: str) -> None:
    try:
        label = parsed(text)
    except ValueError:
        return
    assert parsed(label) == label
    assert all(MIN_FRAME_BYTES <= size <= MAX_FRAME_BYTES for size in traffic_mix.sizes(label))
