# SPDX-License-Identifier: BSD-3-Clause
"""Lists and sequences of whole numbers."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pytest_icbench.config.values import MAX_VALUES, parse_spec, parse_words
from pytest_icbench.errors import UsageError

numbers = st.integers(min_value=0, max_value=10**9)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("64", (64,)),
        ("64 512", (64, 512)),
        ("64,512", (64, 512)),
        (" 64 , 512 ", (64, 512)),
        ("64 .32 .256", (64, 96, 128, 160, 192, 224, 256)),
        ("64 .32 .255", (64, 96, 128, 160, 192, 224)),
        ("64..32..256", (64, 96, 128, 160, 192, 224, 256)),
        ("64,.32,.100", (64, 96)),
        ("1M", (1_000_000,)),
        ("500k 1.5M", (500_000, 1_500_000)),
        ("1M..0.5M..2M", (1_000_000, 1_500_000, 2_000_000)),
        ("1M .500k .2M", (1_000_000, 1_500_000, 2_000_000)),
        ("0.5k", (500,)),
        ("64 64 64", (64,)),
        ("32 64..64..192 1500", (32, 64, 128, 192, 1500)),
        ("64 128 .64 .256 1500", (64, 128, 192, 256, 1500)),
        ("7..1..7", (7,)),
    ],
)
def test_values(text: str, values: tuple[int, ...]) -> None:
    assert parse_spec(text, "axis") == values


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "no value"),
        (" , ", "no value"),
        ("64,,512", "'64,,512' has a comma with no value on one side"),
        ("64,", "'64,' has a comma with no value on one side"),
        ("64-512", "(64..64..512)"),
        ("64:512", "(64..64..512)"),
        ("1M-20M", "(1M..1M..20M)"),
        ("64..512", "(64..64..512)"),
        ("abc", "'abc' is not a number"),
        ("64x", "'64x' is not a number"),
        ("-1", "'-1' is not a number"),
        ("1e6", "'1e6' is not a number"),
        ("1K", "'1K' is not a number"),
        ("²", "not a number"),
        ("1.5", "not a whole number"),
        ("0.0001k", "not a whole number"),
        ("64 .0 .256", "step 0"),
        ("64..0..256", "step 0"),
        ("256 .32 .64", "ends below its start"),
        ("256..32..64", "ends below its start"),
        (".32 .256", "step without a start"),
        ("64 .32", "no end"),
        ("64 .32 256", "no end"),
        ("64..256", "from..step..to"),
        ("64..32..256..1", "from..step..to"),
        ("64..32..", "from..step..to"),
        ("..", "from..step..to"),
        (f"0..1..{MAX_VALUES}", f"more than {MAX_VALUES}"),
        ("1..1..1000000000000", f"more than {MAX_VALUES}"),
        ("9" * 5000, "is not a number"),
    ],
)
def test_mistakes_are_one_sentence_that_names_them(text: str, part: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_spec(text, "--icbench-burst")
    message = str(caught.value)
    assert message.startswith("--icbench-burst: ")
    assert part in message
    assert "\n" not in message
    assert len(message) < 250


def test_more_values_than_allowed_in_several_parts() -> None:
    with pytest.raises(UsageError, match="more than"):
        parse_spec("0..1..9000 10000..1..19000", "axis")


@given(st.lists(numbers, min_size=1, max_size=50), st.sampled_from([" ", ",", ", "]))
def test_a_list_is_its_values(values: list[int], separator: str) -> None:
    assert parse_spec(separator.join(map(str, values)), "axis") == tuple(dict.fromkeys(values))


@given(numbers, st.integers(1, 10**6), st.integers(0, MAX_VALUES - 1), st.data())
def test_a_sequence_is_a_range_and_both_forms_agree(first: int, step: int, count: int, data: st.DataObject) -> None:
    last = first + step * count + data.draw(st.integers(0, step - 1))
    short = parse_spec(f"{first}..{step}..{last}", "axis")
    assert short == tuple(range(first, last + 1, step))
    assert len(short) == count + 1
    assert max(short) <= last
    assert parse_spec(f"{first} .{step} .{last}", "axis") == short


@given(st.integers(0, 10**6), st.sampled_from([("k", 1000), ("M", 10**6)]))
def test_suffixes_multiply(value: int, unit: tuple[str, int]) -> None:
    assert parse_spec(f"{value}{unit[0]}", "axis") == (value * unit[1],)


def outcome(text: str) -> tuple[int, ...] | str:
    """Values, or the message."""
    try:
        return parse_spec(text, "axis")
    except UsageError as error:
        return str(error)


@given(st.text(max_size=40) | st.text(alphabet="0123456789.kM ,", max_size=30))
def test_any_text_gives_values_or_one_sentence(text: str) -> None:
    found = outcome(text)
    if isinstance(found, str):
        assert "\n" not in found
        assert found.startswith("axis: ")
    else:
        assert found
        assert all(value >= 0 for value in found)


def test_words_count_before_numbers() -> None:
    assert parse_spec("1 max 2", "axis", word=lambda token: -1 if token == "max" else None) == (1, -1, 2)


@given(st.lists(st.text(alphabet="abc-", min_size=1, max_size=5), min_size=1))
def test_names(names: list[str]) -> None:
    assume(all(names))
    assert parse_words(",".join(names), "axis") == tuple(dict.fromkeys(names))


def test_no_name() -> None:
    with pytest.raises(UsageError, match=r"^--icbench-switch: no value"):
        parse_words(" ,", "--icbench-switch")
