# SPDX-License-Identifier: BSD-3-Clause
"""Ways of the L3 cache on made trees of resctrl, as Intel's and AMD's look."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from pytest_icbench.errors import ProvisionError
from pytest_icbench.host.resource.resctrl import CacheParts, explain_missing_resctrl, explain_refused_ways, make_masks
from pytest_icbench.host.root import Root
from tests.unit.recorded import expand

PARTS = {"path": (1, 0, 1), "noisy_neighbour": (3,)}


class Session:
    """A session's names and journal."""

    def __init__(self, root: Root) -> None:
        self.root, self.id = root, "abc123"
        self.noted: dict[str, Any] = {}
        self.journal: Any = None
        self.spawner: Any = None

    def name(self, suffix: str) -> str:
        return f"icb{self.id}-{suffix}"

    def note(self, kind: str, key: str, **data: Any) -> None:
        assert kind == "resctrl"
        assert not self.root.exists(f"/sys/fs/resctrl/{key}"), "journaled before it is made"
        self.noted[key] = data

    def forget(self, kind: str, key: str) -> None:
        del self.noted[key]


@pytest.fixture(autouse=True)
def _as_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel removes a group together with its files."""
    monkeypatch.setattr(Path, "rmdir", lambda path: shutil.rmtree(path))


def read(root: Root, name: str) -> str | None:
    return root.read(f"/sys/fs/resctrl/{name}")


def test_parts_of_intels_cache_are_made_seen_and_removed(tmp_path: Path) -> None:
    root = expand("resctrl/intel", tmp_path)
    assert (explain_missing_resctrl(root), explain_refused_ways(root, (11, 1))) == (None, None)
    before = sorted(tmp_path.rglob("*"))
    session = Session(root)
    parts = CacheParts(session, PARTS, (11, 1))
    assert read(root, "icbabc123-path/schemata") == "L3:0=7ff;1=7ff"
    assert read(root, "icbabc123-path/cpus_list") == "0-1"
    assert read(root, "icbabc123-noisy_neighbour/schemata") == "L3:0=800;1=800"
    assert read(root, "icbabc123-noisy_neighbour/cpus_list") == "3"
    assert session.noted["icbabc123-path"] == {"name": "icbabc123-path", "base": str(tmp_path)}
    assert parts.occupancy() is None
    for part, octets in (("path", (3, 4)), ("noisy_neighbour", (0, 5))):
        for cache, value in enumerate(octets):
            file = tmp_path / f"sys/fs/resctrl/icbabc123-{part}/mon_data/mon_L3_0{cache}/llc_occupancy"
            file.parent.mkdir(parents=True)
            file.write_text(f"{value}\n")
    assert parts.occupancy() == {"path": 7.0, "noisy_neighbour": 5.0}
    file.write_text("Unavailable\n")
    assert parts.occupancy() is None
    parts.remove()
    parts.remove()
    assert (sorted(tmp_path.rglob("*")), session.noted) == (before, {})


def test_parts_of_amds_four_caches_leave_others_alone(tmp_path: Path) -> None:
    root = expand("resctrl/amd", tmp_path)
    parts = CacheParts(Session(root), PARTS, (8, 8))
    assert read(root, "icbabc123-noisy_neighbour/schemata") == "L3:0=ff00;1=ff00;2=ff00;3=ff00"
    parts.remove()
    assert read(root, "batch/cpus_list") == "6"
    with pytest.raises(ProvisionError, match="the resctrl group batch has CPU 6 already: remove /sys/fs/resctrl/batch"):
        CacheParts(Session(root), {"path": (1,), "noisy_neighbour": (6,)}, (8, 8))
    assert sorted(root.list("/sys/fs/resctrl")) == ["batch", "cpus_list", "info", "schemata"]


def test_what_the_kernel_refuses_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = expand("resctrl/intel", tmp_path)
    (tmp_path / "sys/fs/resctrl/info/last_cmd_status").write_text("Mask out of range\n")

    def write(self: Root, name: str, text: str) -> None:
        if "noisy_neighbour" in name:
            raise OSError(22, "Invalid argument")
        self.path(name).write_text(text)

    monkeypatch.setattr(Root, "write", write)
    session = Session(root)
    with pytest.raises(
        ProvisionError, match=("the ways 800 of the L3 cache cannot be given to noisy_neighbour: Mask out")
    ):
        CacheParts(session, PARTS, (11, 1))
    assert (root.list("/sys/fs/resctrl"), session.noted) == (["cpus_list", "info", "mon_data", "schemata"], {})


@pytest.mark.parametrize(
    ("tree", "ways", "words"),
    [
        (
            "resctrl/intel",
            (11, 2),
            "cat:11-2 is 13 ways of the L3 cache, and this CPU has 12: they would overlap, so take 12 or fewer",
        ),
        ("resctrl/amd", (4, 4, 4, 4), "cat:4-4-4-4 takes 4 groups of resctrl, and 2 are free"),
    ],
)
def test_ways_that_a_cpu_does_not_have_are_reported(
    tree: str, ways: tuple[int, ...], words: str, tmp_path: Path
) -> None:
    assert words in (explain_refused_ways(expand(tree, tmp_path), ways) or "")


def test_a_part_has_the_fewest_ways_at_least(tmp_path: Path) -> None:
    root = expand("resctrl/intel", tmp_path)
    (tmp_path / "sys/fs/resctrl/info/L3/min_cbm_bits").write_text("2\n")
    assert "cat:11-1 has a part of 1 ways: give each 2 at least" in (explain_refused_ways(root, (11, 1)) or "")


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    nothing = explain_missing_resctrl(Root(tmp_path)) or ""
    assert "the CPU's flag cat_l3" in nothing
    assert "CONFIG_X86_CPU_RESCTRL" in nothing
    root = expand("resctrl/intel", tmp_path)
    (tmp_path / "sys/fs/resctrl/info/L3").rename(tmp_path / "sys/fs/resctrl/info/L3CODE")
    assert "without its option cdp" in (explain_missing_resctrl(root) or "")
    shutil.rmtree(tmp_path / "sys/fs/resctrl")
    found = explain_missing_resctrl(root) or ""
    assert found.endswith("missing: the mount (mount -t resctrl resctrl /sys/fs/resctrl)")


def test_masks_lie_side_by_side() -> None:
    assert [f"{mask:x}" for mask in make_masks((3, 3, 3, 3))] == ["7", "38", "1c0", "e00"]
    assert sum(make_masks((7, 4, 1))) == 0xFFF
