# SPDX-License-Identifier: BSD-3-Clause
"""Limits of this process are raised or told in one sentence, with the remedy."""

from __future__ import annotations

import errno
import resource
from collections.abc import Callable

import pytest

from pytest_icbench.errors import ProvisionError
from pytest_icbench.host import process
from pytest_icbench.host.net import links
from pytest_icbench.host.process import allow_files, refused_memory

Limits = tuple[int, int]


@pytest.fixture
def limited(monkeypatch: pytest.MonkeyPatch) -> Callable[[Limits, bool], list[Limits]]:
    """Gives every limit of this process a soft and a hard value; returns those that are set afterwards."""

    def prepare(limits: Limits, may_raise: bool) -> list[Limits]:
        taken: list[Limits] = []

        def take(_kind: int, wanted: Limits) -> None:
            if wanted[1] > limits[1] and not may_raise:
                raise ValueError("not allowed to raise maximum limit")
            taken.append(wanted)

        monkeypatch.setattr(resource, "getrlimit", lambda _kind: limits)
        monkeypatch.setattr(resource, "setrlimit", take)
        return taken

    return prepare


@pytest.mark.parametrize(
    ("limits", "may_raise", "taken"),
    [((1024, 4096), False, []), ((100, 4096), False, [(288, 4096)]), ((28, 28), True, [(288, 288)])],
)
def test_files_are_allowed_where_that_is_possible(
    limited: Callable[[Limits, bool], list[Limits]], limits: Limits, may_raise: bool, taken: list[Limits]
) -> None:
    calls = limited(limits, may_raise)
    allow_files(2)
    assert calls == taken


def test_too_few_files_are_one_sentence(limited: Callable[[Limits, bool], list[Limits]]) -> None:
    limited((28, 28), False)
    with pytest.raises(ProvisionError) as reported:
        allow_files(64)
    assert str(reported.value) == (
        "this process may open 28 files, and the run takes up to 1,280: raise the limit (ulimit -Hn 1280)"
    )


def test_a_program_without_memory_is_reported_its_limit(limited: Callable[[Limits, bool], list[Limits]]) -> None:
    limited((2 * 2**30, 2 * 2**30), False)
    assert "limited to 2.0 GiB" in refused_memory("Cannot init EAL: Cannot allocate memory")
    assert refused_memory("Cannot init EAL: no such device") == ""
    limited((resource.RLIM_INFINITY, resource.RLIM_INFINITY), False)
    assert refused_memory("Cannot allocate memory") == ""


def test_no_program_is_to_be_installed_for_want_of_files() -> None:
    reported = process.refused_process(OSError(errno.EMFILE, "Too many open files"))
    assert reported == "no further file may be opened: raise the limit (ulimit -n), or fs.file-max"


@pytest.mark.parametrize(("number", "kind"), [(errno.ENOBUFS, ProvisionError), (errno.EIO, OSError)])
def test_an_answer_that_does_not_fit_a_socket_names_the_limit(
    monkeypatch: pytest.MonkeyPatch, number: int, kind: type[Exception]
) -> None:
    def refuse(_netns: str | None) -> None:
        raise OSError(number, "as it is")

    monkeypatch.setattr(links, "enter_netns", refuse)
    words = "raise net.core.rmem_max" if kind is ProvisionError else "as it is"
    with pytest.raises(kind, match=words), links.netlink(doing="the list of links"):
        pass
