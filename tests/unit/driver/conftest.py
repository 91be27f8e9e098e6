# SPDX-License-Identifier: BSD-3-Clause
"""Drivers do not find what is unpacked or installed below /opt of the host that runs the tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_icbench.model import switch_tree


@pytest.fixture(autouse=True)
def no_trees(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns an empty directory in place of /opt and of the trees of ``icbench get``."""
    place = tmp_path_factory.mktemp("opt")
    monkeypatch.setattr(switch_tree, "PREFIX", place / "icbench")
    monkeypatch.setattr(switch_tree, "_INSTALLED", place)
    return place
