# SPDX-License-Identifier: BSD-3-Clause
"""The conformance suite in its short form, over the paths of the kernel."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.host.node_tools import clean
from tests.host.test_conformance import OF_THE_KERNEL, conforms

__all__ = ["clean"]  # fixture

pytestmark = [
    pytest.mark.own_host,
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="containers and links need root: run pytest with sudo"),
]


@pytest.mark.usefixtures("clean")
def test_every_path_of_the_kernel_does_what_its_driver_declares(tmp_path: Path) -> None:
    conforms(tmp_path, OF_THE_KERNEL)
