# SPDX-License-Identifier: BSD-3-Clause
"""What does not fit is refused in one sentence that names the place."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from pytest_icbench.model.codec import DamagedData, check_schema, decode, refuse_constant


@dataclass(frozen=True)
class Inner:
    number: int
    text: str = ""


@dataclass(frozen=True)
class Outer:
    many: tuple[Inner, ...] = ()
    one: Inner | None = None


@dataclass(frozen=True)
class Exact:
    EXACT: ClassVar[bool] = True

    name: str = ""
    inner: Inner | None = None


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ({"many": [{"number": 1}, {"number": "x"}]}, "f: many[1].number: expected an integer, found 'x'"),
        ({"many": [{"text": "x"}]}, "f: many[0]: number is missing"),
        ({"many": [3]}, "f: many[0]: expected an object, found 3"),
        ({"one": {"number": True}}, "f: one: number: expected an integer, found True"),
    ],
)
def test_a_mistake_is_named_by_its_place(data: dict[str, Any], sentence: str) -> None:
    with pytest.raises(DamagedData) as caught:
        decode(Outer, data, "f")
    assert str(caught.value) == sentence


def test_what_a_user_writes_has_no_unknown_keys() -> None:
    assert decode(Outer, {"more": 1}, "f") == Outer()
    assert decode(Exact, {"inner": {"number": 1, "more": 2}}, "f") == Exact(inner=Inner(1))
    with pytest.raises(DamagedData, match=r"^f: there is no key 'nam'; did you mean name\?$"):
        decode(Exact, {"nam": "x"}, "f")


def test_the_latest_version_is_read() -> None:
    check_schema({"schema": 2}, 2, "f", "this is none")


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ({"schema": 3}, "f: written with schema 3, but this version reads 2; update pytest-icbench"),
        (
            {"schema": 1},
            "f: written by an earlier version (schema 1, this one reads 2); measure and save again",
        ),
        ({"schema": 0}, "f: schema is 0; this is none"),
        ({"schema": True}, "f: schema is True; this is none"),
        ({"schema": "1"}, "f: schema is '1'; this is none"),
        ({}, "f: schema is None; this is none"),
        ([], "f: schema is None; this is none"),
    ],
)
def test_other_versions_are_refused(data: Any, sentence: str) -> None:
    with pytest.raises(DamagedData) as caught:
        check_schema(data, 2, "f", "this is none")
    assert str(caught.value) == sentence


@pytest.mark.parametrize("text", ["NaN", "-Infinity"])
def test_constants_that_json_does_not_have(text: str) -> None:
    with pytest.raises(ValueError, match=f"^{text} is no JSON number$"):
        json.loads(text, parse_constant=refuse_constant)
