# SPDX-License-Identifier: BSD-3-Clause
"""Programs that end in another way than by telling their version: the host may have them all the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_icbench.driver.switch.registry import builtin_switches
from pytest_icbench.errors import ProvisionError, Unsupported
from pytest_icbench.host.host_session import HostSession

OF_PROGRAMS = ("ovs", "testpmd", "basicfwd", "snabb")


def probe(name: str, program: Path, script: str) -> None:
    program.write_text(script)
    program.chmod(0o755)
    builtin_switches()[name]().probe(HostSession.probing(), program)


@pytest.mark.parametrize("name", OF_PROGRAMS)
def test_a_program_that_is_killed_is_an_error_and_no_reason_to_skip(name: str, tmp_path: Path) -> None:
    with pytest.raises(ProvisionError, match=r"was killed by signal 9 \(Killed\)"):
        probe(name, tmp_path / name, "#!/bin/sh\nkill -9 $$\n")


@pytest.mark.parametrize("name", OF_PROGRAMS)
def test_a_file_that_is_no_program_of_this_machine_is_reported(name: str, tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match="cannot be used as"):
        probe(name, tmp_path / name, "\x7fELF, but of another machine")
