# SPDX-License-Identifier: BSD-3-Clause
"""Calls of a rig: declared once, done by ``HostRig``, forwarded by everybody else."""

from __future__ import annotations

from inspect import signature
from typing import Any

import pytest

from pytest_icbench.errors import ProvisionError
from pytest_icbench.model.calls import Forwarding, call, calls_of
from pytest_icbench.model.case import Case
from pytest_icbench.model.codec import DamagedData
from pytest_icbench.model.rig import RigCalls
from pytest_icbench.testbed.case_rig import Rig
from pytest_icbench.testbed.host_rig import HostRig
from pytest_icbench.testbed.remote.host_calls import HostCalls
from pytest_icbench.testbed.remote.server import HostEnd
from tests.unit.testbed.in_process import InProcess, host_rig, rigs


@pytest.mark.parametrize(("declared", "done"), [(RigCalls, HostRig), (HostCalls, HostEnd)])
def test_every_declared_call_is_done_on_a_host(declared: type, done: type) -> None:
    calls = calls_of(declared)
    assert len(calls) > 10
    # A method that the class has not defined, itself or by a part of it, would still be the declaration.
    assert [name for name in calls if hasattr(getattr(done, name), "call")] == []
    for name, found in calls.items():
        assert list(signature(getattr(done, name)).parameters) == list(signature(found.function).parameters)


def test_whose_call_it_is_is_what_it_says() -> None:
    near, remote, both = rigs({0: 11, 2: 12}, {1: 21, 3: 22})
    assert near.pids("l1") == {0: 11, 2: 12}
    assert remote.pids("l1") == {1: 21, 3: 22}
    assert both.pids("l1+l1") == {0: 11, 1: 21, 2: 12, 3: 22}


def test_calls_of_a_rig_need_a_rig() -> None:
    rig = Rig(Case("veth"), None, None, "netns")  # type: ignore[arg-type]
    with pytest.raises(ProvisionError, match="is not built"):
        rig.busy()
    rig._part = host_rig({0: 11})
    assert rig.pids(launch_id="l1") == {0: 11}
    with pytest.raises(ProvisionError, match="the rig is not built"):
        InProcess().call("pids", "x9", "l1")


class Declared(Forwarding):
    @call()
    def add(self, one: int, others: tuple[int, ...] = ()) -> dict[int, str]:
        """Sums."""
        raise NotImplementedError


class Done(Declared):
    def add(self, one: int, others: tuple[int, ...] = ()) -> dict[int, str]:
        return {one: str(sum((one, *others)))}


def test_arguments_and_results_have_the_types_of_the_declaration() -> None:
    add = calls_of(Declared)["add"]
    assert add.bind((1,), {}) == {"one": 1, "others": ()}
    assert add.encode_arguments(add.bind((1,), {"others": (2, 3)})) == [1, [2, 3]]
    answer: Any = add.answer(Done(), [1, [2, 3]])
    assert answer == {"1": "6"}
    assert add.decode_result(answer) == {1: "6"}
    with pytest.raises(DamagedData, match="add: one: expected an integer"):
        add.answer(Done(), ["1"])
    with pytest.raises(DamagedData, match="add: expected an object"):
        add.decode_result(None)
    with pytest.raises(NotImplementedError, match="Declared has no add"):
        Declared().add(1)
