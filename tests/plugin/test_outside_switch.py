# SPDX-License-Identifier: BSD-3-Clause
"""A switch from another package, loaded as pytest loads the plugins that are installed."""

from __future__ import annotations

import pytest

from tests import outside_switch
from tests.plugin.conftest import Runner
from tests.plugin.test_collection import collected


@pytest.fixture
def example(inner: Runner) -> Runner:
    """A directory with the example of docs/how-to/adding-a-switch.md in it."""
    name = f"{outside_switch.MODULE}.py"
    (inner.path / name).write_text(outside_switch.files()[name])
    inner.pytester.syspathinsert()
    return inner


def test_it_has_cases_as_the_package_s_own(example: Runner) -> None:
    example.write(test_x="@pytest.mark.icbench(switch='all')\ndef test_a(icbench): pass")
    assert collected(example, "-p", outside_switch.MODULE, "--icbench-switch=my-macvlan") == [
        "test_x.py::test_a[my-macvlan-64B-b32-1vs1-Rmax]"
    ]


def test_pytest_without_the_plugin_runs_beside_it(example: Runner) -> None:
    example.write(test_x="def test_plain(): pass")
    arguments = ("-p", "no:icbench", "-p", outside_switch.MODULE, "-p", "no:cacheprovider")
    example.pytester.runpytest_subprocess(*arguments).assert_outcomes(passed=1)
