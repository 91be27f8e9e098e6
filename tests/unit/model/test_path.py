# SPDX-License-Identifier: BSD-3-Clause
"""Who is whose peer and who leads, and that nobody but ``model.path`` reckons it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_icbench.model.case import Case
from pytest_icbench.model.endpoint import Address
from pytest_icbench.model.path import FramePath

PACKAGE = Path(__file__).parents[3] / "pytest_icbench"
#: What the source of an expression has in it that is about endpoints or pairs.
ABOUT_ENDPOINTS = re.compile(r"index|pair|endpoint|attachment|output", re.IGNORECASE)

paths = st.integers(1, 254).map(FramePath)


def test_the_numbering_is_that_of_ids_and_files() -> None:
    path = FramePath(2)
    assert list(path.endpoints) == [0, 1, 2, 3]
    assert (list(path.leaders), list(path.followers)) == ([0, 2], [1, 3])
    assert [path.pair(index) for index in path.endpoints] == [1, 1, 2, 2]
    assert [path.side(index) for index in path.endpoints] == ["a", "b", "a", "b"]
    assert [path.peer(index) for index in path.endpoints] == [1, 0, 3, 2]
    assert (list(path.numbers), path.ends(1), path.ends(2)) == ([1, 2], (0, 1), (2, 3))
    assert path.by_pair("abcd") == path.wires("abcd") == [("a", "b"), ("c", "d")]
    assert Case("ovs", pairs=2).path == path


@given(paths)
def test_every_endpoint_has_one_peer_in_its_pair(path: FramePath) -> None:
    for index in path.endpoints:
        peer = path.peer(index)
        assert peer != index
        assert path.peer(peer) == index
        assert path.pair(peer) == path.pair(index)
        assert path.leads(peer) != path.leads(index)
        assert path.side(index) == ("a" if path.leads(index) else "b")
        assert sorted(path.ends(path.pair(index))) == sorted((index, peer))


@given(paths)
def test_leaders_and_followers_are_all(path: FramePath) -> None:
    assert sorted([*path.leaders, *path.followers]) == list(path.endpoints)
    assert all(map(path.leads, path.leaders))
    assert not any(map(path.leads, path.followers))
    assert [path.pair(index) for index in path.leaders] == list(path.numbers)
    assert [path.ends(number) for number in path.numbers] == path.by_pair(path.endpoints)


@pytest.mark.slow
@settings(max_examples=30)  # each walks through all ports for each of them
@given(paths)
def test_a_wire_joins_every_port_once(path: FramePath) -> None:
    assert sorted(chain.from_iterable(path.wires(path.endpoints))) == list(path.endpoints)
    assert all(path.across(path.across(index)) == index for index in path.endpoints)


@given(paths)
def test_a_path_over_its_endpoints_is_itself(path: FramePath) -> None:
    assert FramePath.over(path.endpoints) == path


def test_an_endpoint_without_a_peer_is_no_path() -> None:
    with pytest.raises(ValueError, match="3 endpoints are no pairs"):
        FramePath.over(range(3))


def _reckons(node: ast.AST) -> bool:
    """Whether an expression finds a peer, a pair or a number of endpoints by arithmetic.

    That is: exclusive or with 1; product, quotient or rest with 2, a slice or a range in steps of 2, where the rest of
    the expression is about endpoints or pairs.
    """
    match node:
        case ast.BinOp(left=left, op=ast.BitXor(), right=right):
            return any(isinstance(side, ast.Constant) and side.value == 1 for side in (left, right))
        case (
            ast.BinOp(left=ast.Constant(value=2), op=ast.Mult(), right=other)
            | ast.BinOp(left=other, op=ast.Mult() | ast.FloorDiv() | ast.Mod(), right=ast.Constant(value=2))
            | ast.Call(func=ast.Name(id="divmod"), args=[other, ast.Constant(value=2)])
            | ast.Subscript(value=other, slice=ast.Slice(step=ast.Constant(value=2)))
            | ast.Call(func=ast.Name(id="range"), args=[_, other, ast.Constant(value=2)])
        ):
            return ABOUT_ENDPOINTS.search(ast.unparse(other)) is not None
    return False


def reckoning(source: str) -> Iterator[str]:
    """The expressions in a module's source that reckon."""
    return (ast.unparse(node) for node in ast.walk(ast.parse(source)) if _reckons(node))


@pytest.mark.parametrize(
    "expression",
    [
        "index ^ 1", "1 ^ i", "index // 2 + 1", "output.index % 2", "2 * case.pairs", "pairs * 2", "2 * pairs * 2",
        "len(attachments) // 2", "outputs[2 * pair]", "endpoints[::2]", "attachments[1::2]", "range(1, 2 * pairs, 2)",
        "divmod(len(endpoints), 2)",
    ],
)  # fmt: skip
def test_reckoning_is_found(expression: str) -> None:
    assert list(reckoning(expression))


@pytest.mark.parametrize("expression", ["2 * width", "n // 2", "turn % 2", "parts[::2]", "pairs * 3", "index + 1"])
def test_other_arithmetic_is_not(expression: str) -> None:
    assert not list(reckoning(expression))


def test_nobody_else_reckons() -> None:
    found = {
        str(path.relative_to(PACKAGE)): expressions
        for path in sorted(PACKAGE.rglob("*.py"))
        if (expressions := list(reckoning(path.read_text(encoding="utf-8"))))
    }
    assert found.pop("model/path.py")
    assert found == {}


@given(paths)
def test_peers_have_the_addresses_of_two_sides(path: FramePath) -> None:
    addresses = [Address.of(path.pair(index), path.side(index)) for index in path.endpoints]
    assert len(set(addresses)) == len(addresses)
    assert all(
        leader.other_side == follower and follower.other_side == leader for leader, follower in path.by_pair(addresses)
    )


def test_a_function_has_two_ports_between_the_ends_of_its_pair() -> None:
    path = FramePath(2, functions=1)
    assert path.ports == [0, 4, 5, 1, 2, 6, 7, 3]
    assert [path.between(pair) for pair in path.numbers] == [[(4, 5)], [(6, 7)]]
    assert [path.across(index) for index in path.ports] == [4, 0, 1, 5, 6, 2, 3, 7]
    assert [path.peer(index) for index in path.endpoints] == [1, 0, 3, 2]
    assert path.wires(path.ports) == [(0, 4), (5, 1), (2, 6), (7, 3)]
    assert (path.wires_count, FramePath(2).wires_count, FramePath(3, 2).wires_count) == (4, 2, 9)
    assert Case("veth", pairs=2, function="wire").path == path
    assert Case("veth", function="wire", chain=2).path.ports == [0, 2, 3, 4, 5, 1]
