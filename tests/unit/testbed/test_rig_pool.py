# SPDX-License-Identifier: BSD-3-Clause
"""Which rigs live, and that never two run."""

from __future__ import annotations

from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_icbench.errors import NoRoom, ProvisionError
from pytest_icbench.model.case import Case
from pytest_icbench.testbed.rig_pool import BuildRequest, RigPool, SetupRequest


class Rig:
    """Remembers what is done to it; `world` has every rig that was made."""

    def __init__(self, name: str, world: list[Rig], broken: str = "", most: int | None = None) -> None:
        self.name, self.state, self.broken, self.preflighted = name, "new", broken, False
        self.world, self.most = world, most
        world.append(self)

    def build(self) -> None:
        assert self.state in ("new", "closed")
        assert [rig.name for rig in self.world if rig.state == "running"] == []
        if self.broken == "build":
            raise ProvisionError(self.name)
        living = sum(rig.state in ("running", "paused") for rig in self.world)
        if self.most is not None and living >= self.most:
            raise NoRoom(self.name)
        if self.broken == "alone" and living:
            raise ProvisionError("its name is taken")
        assert self.most is not None or living < 2
        self.state, self.preflighted = "running", False

    def pause(self) -> None:
        assert self.state in ("running", "paused")
        if self.broken == "pause":
            raise ProvisionError(self.name)
        self.state = "paused"

    def resume(self) -> None:
        assert self.state == "paused"
        self.preflighted = False
        assert [rig.name for rig in self.world if rig.state == "running"] == []
        self.state = "running"

    def check(self) -> None:
        if self.broken == "dead":
            raise ProvisionError(f"{self.name} was killed")

    def close(self) -> None:
        self.state = "closed"
        if self.broken == "close":
            raise RuntimeError(self.name)
        if self.broken == "leftover":
            raise ProvisionError(self.name)


class InTurn(Rig):
    """One that exists only while it runs."""

    def pause(self) -> None:
        self.state = "new"


def need(rig: str, reference: str | None = None) -> SetupRequest:
    def wanted(name: str) -> BuildRequest:
        return BuildRequest(Case(name, remote=name.endswith("-remote")), cast(Any, None), name)

    return SetupRequest(wanted(rig), None if reference is None else wanted(reference))


def pool(world: list[Rig], broken: dict[str, str] | None = None, most: int | None = None) -> RigPool[Rig]:
    def make(wanted: BuildRequest) -> Rig:
        return (InTurn if wanted.case.remote else Rig)(
            wanted.case.switch, world, (broken or {}).get(wanted.case.switch, ""), most
        )

    return RigPool(make)


def states(world: list[Rig]) -> list[tuple[str, str]]:
    return [(rig.name, rig.state) for rig in world]


def test_a_rig_stays_for_the_next_case_that_can_use_it() -> None:
    world: list[Rig] = []
    rigs = pool(world)
    first = rigs.acquire(need("a")).rig
    rigs.release(need("a"))
    assert rigs.acquire(need("a")).rig is first
    rigs.release(need("b"))
    assert states(world) == [("a", "closed")]


def test_the_reference_outlives_its_case_and_is_paused() -> None:
    world: list[Rig] = []
    rigs = pool(world)
    rigs.acquire(need("a", "direct"))
    assert states(world) == [("a", "running"), ("direct", "paused")]
    rigs.release(need("b", "direct"))
    assert states(world) == [("a", "closed"), ("direct", "paused")]
    rigs.acquire(need("b", "direct"))
    assert states(world) == [("a", "closed"), ("direct", "paused"), ("b", "running")]
    rigs.close()
    rigs.close()
    assert {rig.state for rig in world} == {"closed"}


def test_a_rig_that_cannot_be_built_is_closed_and_forgotten() -> None:
    world: list[Rig] = []
    rigs = pool(world, {"bad": "build"})
    with pytest.raises(ProvisionError):
        rigs.acquire(need("bad", "direct"))
    assert states(world) == [("bad", "closed")]
    rigs.acquire(need("a"))
    rigs.close()
    assert {rig.state for rig in world} == {"closed"}


def test_a_reference_that_cannot_be_built_costs_the_ratio_alone() -> None:
    world: list[Rig] = []
    rigs = pool(world, {"bad": "build"})
    got = rigs.acquire(need("a", "bad"))
    assert (got.rig.state, got.reference, got.trouble) == ("running", None, "reference link bad: bad")
    assert states(world) == [("a", "running"), ("bad", "closed")]


def test_a_reference_that_takes_what_the_case_holds_is_built_when_its_turn_comes() -> None:
    world: list[Rig] = []
    rigs = pool(world)
    for name in ("a-remote", "b-remote"):
        got = rigs.acquire(need(name, "direct-remote"))
        assert got.reference is world[1]
        assert (got.rig.name, got.rig.state, world[1].state) == (name, "running", "new")
    assert rigs.acquire(SetupRequest(need("b-remote").rig, None, "no link")).trouble == "no link"
    rigs.close()
    assert {rig.state for rig in world} == {"closed"}


def test_an_error_while_closing_does_not_leave_the_other_open() -> None:
    world: list[Rig] = []
    rigs = pool(world, {"a": "close"})
    rigs.acquire(need("a", "direct"))
    with pytest.raises(RuntimeError):
        rigs.close()
    assert {rig.state for rig in world} == {"closed"}
    rigs.acquire(need("b"))


@pytest.mark.parametrize("dead", ["a", "direct"])
def test_a_rig_whose_switch_died_while_nobody_used_it_is_built_anew(dead: str) -> None:
    world: list[Rig] = []
    rigs = pool(world)
    rigs.acquire(need("a", "direct"))
    next(rig for rig in world if rig.name == dead).broken = "dead"
    with pytest.warns(UserWarning, match=f"died between two cases .*: {dead} was killed"):
        got = rigs.acquire(need("a", "direct"))
    assert (got.rig.state, got.reference and got.reference.state, got.trouble) == ("running", "paused", None)
    assert [(rig.name, rig.state) for rig in world if rig.broken] == [(dead, "closed")]
    rigs.close()
    assert {rig.state for rig in world} == {"closed"}


names = st.sampled_from("abc")


@given(st.lists(st.tuples(names, st.none() | st.sampled_from("xy")), max_size=12), st.booleans())
def test_at_most_two_live_and_one_runs_whatever_comes(order: list[tuple[str, str | None]], release: bool) -> None:
    world: list[Rig] = []
    rigs = pool(world)
    for place, (rig, reference) in enumerate(order):
        acquired = rigs.acquire(need(rig, reference))
        got, beside = acquired.rig, acquired.reference
        assert acquired.trouble is None
        assert (got.name, got.state) == (rig, "running")
        assert (beside is None) == (reference is None)
        assert beside is None or (beside.name, beside.state) == (reference, "paused")
        assert sum(each.state != "closed" for each in world) == (1 if reference is None else 2)
        if release:
            rigs.release(need(*order[place + 1]) if place + 1 < len(order) else None)
    rigs.close()
    assert {each.state for each in world} <= {"closed"}


def in_turns(rigs: RigPool[Rig], *turns: tuple[str, str | None]) -> list[list[tuple[str, str]]]:
    """Lets cases take turns; returns after each which rigs run and which are paused."""
    seen = []
    for turn in turns:
        got = rigs.acquire(need(*turn), keep_rigs=True)
        seen.append([(rig.name, rig.state) for rig in got.rig.world if rig.state != "closed"])
    return seen


def test_rigs_of_cases_that_take_turns_stay_and_one_runs() -> None:
    world: list[Rig] = []
    rigs = pool(world, most=9)
    after = in_turns(rigs, ("a", "direct"), ("b", "direct"), ("a", "direct"), ("c", None))
    assert after[2] == [("a", "running"), ("direct", "paused"), ("b", "paused")]
    assert after[3] == [("a", "paused"), ("direct", "paused"), ("b", "paused"), ("c", "running")]
    rigs.release(need("b", "direct"))
    assert states(world) == [("a", "closed"), ("direct", "paused"), ("b", "paused"), ("c", "closed")]
    assert rigs.acquire(need("b", "direct")).rig.state == "running"
    rigs.close()
    assert {rig.state for rig in world} == {"closed"}


def test_what_was_preflighted_is_so_after_a_pause() -> None:
    world: list[Rig] = []
    rigs = pool(world, most=9)
    in_turns(rigs, ("a", None))
    world[0].preflighted = True
    in_turns(rigs, ("b", None), ("a", None))
    assert world[0].preflighted
    rigs.drop(need("a"))
    in_turns(rigs, ("a", None))
    assert not world[0].preflighted
    assert len(world) == 2  # built again, since its case goes on with it


def test_the_rig_that_was_used_longest_ago_makes_room() -> None:
    world: list[Rig] = []
    rigs = pool(world, most=3)
    in_turns(rigs, ("a", "direct"), ("b", "direct"), ("c", "direct"))
    assert states(world) == [("a", "closed"), ("direct", "paused"), ("b", "paused"), ("c", "running")]
    in_turns(rigs, ("a", "direct"))
    assert states(world) == [("a", "running"), ("direct", "paused"), ("b", "closed"), ("c", "paused")]


def test_a_rig_that_cannot_exist_beside_others_has_the_host_for_itself() -> None:
    world: list[Rig] = []
    rigs = pool(world, {"b": "alone"}, most=9)
    assert in_turns(rigs, ("a", None), ("c", None), ("b", None), ("a", None))[2:] == [
        [("b", "running")],
        [("a", "running"), ("b", "paused")],
    ]


def test_without_room_for_its_own_rigs_a_case_fails() -> None:
    world: list[Rig] = []
    rigs = pool(world, most=0)
    with pytest.raises(NoRoom):
        rigs.acquire(need("a"), keep_rigs=True)
    assert states(world) == [("a", "closed")]


def test_a_rig_that_cannot_be_paused_does_not_hinder_other_cases() -> None:
    world: list[Rig] = []
    rigs = pool(world, {"a": "pause"}, most=9)
    assert in_turns(rigs, ("a", None), ("b", None))[-1] == [("b", "running")]


def test_rigs_of_unknown_state_are_dropped_alone() -> None:
    world: list[Rig] = []
    rigs = pool(world, {"a": "leftover"}, most=9)
    in_turns(rigs, ("a", "direct"), ("b", None))
    rigs.drop(need("a", "direct"))  # what made its state unknown is reported instead
    assert states(world) == [("a", "closed"), ("direct", "closed"), ("b", "running")]


def test_a_fault_in_pausing_is_reported_when_its_own_turn_ends() -> None:
    world: list[Rig] = []
    rigs = pool(world, {"a": "pause"}, most=9)
    rigs.acquire(need("a"), keep_rigs=True)
    with pytest.raises(ProvisionError, match="a"):
        rigs.rest()
    rigs.drop(need("a"))
    rigs.acquire(need("b"), keep_rigs=True)
    rigs.rest()
    rigs.rest()  # none runs
    assert states(world) == [("a", "closed"), ("b", "paused")]


def test_a_case_that_is_over_leaves_the_rigs_that_others_share() -> None:
    world: list[Rig] = []
    rigs = pool(world, most=9)
    in_turns(rigs, ("a", "direct"), ("b", "direct"))
    rigs.finish(need("a", "direct"), [need("b", "direct")])
    assert states(world) == [("a", "closed"), ("direct", "paused"), ("b", "running")]
    rigs.finish(need("b", "direct"), [])
    assert {rig.state for rig in world} == {"closed"}


def test_a_fault_in_closing_to_make_room_is_its_own_cases() -> None:
    world: list[Rig] = []
    rigs = pool(world, {"a": "leftover"}, most=1)
    in_turns(rigs, ("a", None), ("b", None))
    rigs.finish(need("b"), [need("a")])
    with pytest.raises(ProvisionError, match="a"):
        rigs.finish(need("a"), [])
    rigs.finish(need("a"), [])
