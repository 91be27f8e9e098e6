# SPDX-License-Identifier: BSD-3-Clause
"""Texts of options that name another host or files, and values that are no texts."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_icbench.config import values
from pytest_icbench.errors import UsageError


@pytest.mark.parametrize("text", ["lab7", "root@lab7", "admin@lab-7.example.org", "10.0.0.7", "root@fe80::1%eth0"])
def test_hosts_as_ssh_takes_them(text: str) -> None:
    assert values.host_name(text, "--icbench-remote") == text


@pytest.mark.parametrize("text", ["", "-oProxyCommand=x", "a b", "lab7;reboot", "a@b@c", "lab7:22", "$(id)", "root@-x"])
def test_everything_else_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"^--icbench-remote: '.*' is no \[USER@\]HOST"):
        values.host_name(text, "--icbench-remote")


@pytest.mark.parametrize("text", ["", "python 3", "$(id)", "a//b", "/opt/x;y", "-c'"])
def test_a_python_is_a_path(text: str) -> None:
    with pytest.raises(UsageError, match=r"^here: '.*' is not a path of a Python"):
        values.python_path(text, "here")


@pytest.mark.parametrize(
    "text", ["ovs=a b/x.toml vpp=y.toml", "ovs='a b/x.toml' vpp=\"y.toml\"", "ovs=a b/x.toml\nvpp=y.toml"]
)
def test_names_of_files_may_have_blanks(text: str) -> None:
    assert values.files(text, "--option", Path("/")) == {"ovs": Path("/a b/x.toml"), "vpp": Path("/y.toml")}


def test_a_list_whose_items_have_blanks_keeps_them_apart() -> None:
    assert values.as_text(["trace:a b", 1], "x") == "trace:a b\n1"
    assert values.as_text([1, 2.50, True], "x") == "1 2.5 yes"
