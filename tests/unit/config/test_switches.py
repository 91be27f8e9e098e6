# SPDX-License-Identifier: BSD-3-Clause
"""The user's own configuration: read, checked, and handed to each switch."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from pytest_icbench.config.switches import check_config
from pytest_icbench.config.values import files
from pytest_icbench.driver.switch.registry import builtin_switches
from pytest_icbench.errors import UsageError
from pytest_icbench.model.text_files import TomlFile, read_toml

KEYS: Any = {"a": "text", "n": "number", "list": "texts", "map": "table"}


def config(**data: Any) -> TomlFile:
    return TomlFile(Path("x.toml"), "", data)


def test_files_of_switches() -> None:
    assert files("ovs=a.toml  vpp=/b=c.toml", "o", Path("/x")) == {"ovs": Path("/x/a.toml"), "vpp": Path("/b=c.toml")}
    for text in ("ovs", "=a", "ovs="):
        with pytest.raises(UsageError, match=r"^o: '.*' is not SWITCH=FILE"):
            files(text, "o", Path("/x"))
    with pytest.raises(UsageError, match="two files for ovs"):
        files("ovs=a ovs=b", "o", Path("/x"))


def test_a_file_is_kept_with_its_hash(tmp_path: Path) -> None:
    file = tmp_path / "ovs.toml"
    file.write_text('flows = ["actions=drop"]')
    found = check_config(read_toml(file, "o"), "ovs", {"flows": "texts"})
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    assert found.treatment() == {"file": "ovs.toml", "sha256": digest, "content": {"flows": ["actions=drop"]}}
    file.write_text("flows = [")
    with pytest.raises(UsageError, match=r"^o: .*ovs.toml is not valid TOML"):
        read_toml(file, "o")
    with pytest.raises(UsageError, match=r"^o: .*no.toml cannot be read"):
        read_toml(tmp_path / "no.toml", "o")


def test_values_are_of_their_kind() -> None:
    found = check_config(config(a="t", n=3, list=["x"], map={"b": True, "n": 1, "t": "x"}), "s", KEYS)
    assert found.values == {"a": "t", "n": 3, "list": ["x"], "map": {"b": "true", "n": "1", "t": "x"}}


@pytest.mark.parametrize(
    ("data", "reported"),
    [
        ({"b": 1}, "x.toml: s has no key 'b'"),
        ({"a": 1}, "x.toml: a is not a text"),
        ({"n": 0}, "x.toml: n is not a whole number from 1 on"),
        ({"n": True}, "x.toml: n is not a whole number from 1 on"),
        ({"list": "x"}, "x.toml: list is not a list of texts"),
        ({"list": [1]}, "x.toml: list is not a list of texts"),
        ({"map": {"a": [1]}}, "x.toml: map is not a table of texts and numbers"),
    ],
)
def test_anything_else_is_one_sentence(data: dict[str, Any], reported: str) -> None:
    with pytest.raises(UsageError) as caught:
        check_config(config(**data), "s", KEYS)
    assert str(caught.value).startswith(reported)
    assert "\n" not in str(caught.value)


def test_a_switch_without_keys_takes_none() -> None:
    with pytest.raises(UsageError, match=r"x.toml: veth takes no configuration"):
        check_config(config(a=1), "veth", builtin_switches()["veth"].config_keys)


def test_the_documents_list_every_key() -> None:
    text = (Path(__file__).parents[3] / "docs" / "reference" / "switches.md").read_text()
    section = text.partition("## A configuration of your own")[2].partition("\n## ")[0]
    rows = [line.split("|")[1:3] for line in section.splitlines() if line.startswith("| `")]
    documented = {
        (switch.strip(" `"), key.strip(" `"))
        for switches, keys in rows
        for switch in switches.split(",")
        for key in keys.split(",")
    }
    assert documented == {(name, key) for name, driver in builtin_switches().items() for key in driver.config_keys}


@pytest.mark.parametrize("key", ["rxd", "txd"])
def test_ring_sizes_are_the_endpoints_and_no_key_of_testpmd(key: str) -> None:
    with pytest.raises(UsageError, match=f"x.toml: testpmd has no key '{key}'"):
        check_config(config(**{key: 512}), "testpmd", builtin_switches()["testpmd"].config_keys)
