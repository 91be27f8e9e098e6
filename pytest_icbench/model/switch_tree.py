# SPDX-License-Identifier: BSD-3-Clause
"""Trees of a switch's files: unpacked by ``icbench get``, installed below /opt, or built; and the program in each."""

from __future__ import annotations

import re
from pathlib import Path

#: Where ``icbench get`` unpacks, a tree ``NAME-VERSION`` each.
PREFIX = Path("/opt/icbench")
#: The file that a whole tree of ``icbench get`` has: its packages, one a line.
MARK = ".icbench"
#: Places of a tree that is installed by hand.
_INSTALLED = Path("/opt")
#: The program of each switch in a tree: as packages have it, as it is installed, as its build leaves it.
_PROGRAMS = {
    "ovs": (
        "usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk",
        "usr/sbin/ovs-vswitchd",
        "sbin/ovs-vswitchd",
        "vswitchd/ovs-vswitchd",
    ),
    "testpmd": ("usr/bin/dpdk-testpmd", "bin/dpdk-testpmd", "app/dpdk-testpmd", "build/app/dpdk-testpmd"),
    "vpp": (
        "usr/bin/vpp",
        "bin/vpp",
        "build-root/install-vpp-native/vpp/bin/vpp",
        "build-root/install-vpp_debug-native/vpp/bin/vpp",
    ),
    "snabb": ("bin/snabb", "src/snabb", "snabb"),
}
#: The name in front of a tree's version, where it is not the switch's.
_NAMES = {"testpmd": "dpdk"}


def program_in(switch: str, directory: Path) -> Path | None:
    """Returns the program of a switch in a tree; None if there is none."""
    return next((path for place in _PROGRAMS.get(switch, ()) if (path := directory / place).is_file()), None)


def places_in(switch: str) -> tuple[str, ...]:
    """Returns the paths at which a tree can have the program; empty for a switch that has no trees."""
    return _PROGRAMS.get(switch, ())


def installed_programs(switch: str, version: str = "") -> list[Path]:
    """Returns the programs in the trees that this host has, those of ``icbench get`` first, the newest version first.

    ``version``: only trees whose version begins so.
    """
    name = _NAMES.get(switch, switch)
    found = []
    for place in (PREFIX, _INSTALLED):
        trees = [tree for tree in place.glob(f"{name}-*") if tree.name[len(name) + 1 :].startswith(version)]
        found += sorted(trees, key=_age, reverse=True)
    found += [] if version else [_INSTALLED / name]
    return [program for tree in found if (program := program_in(switch, tree)) is not None]


def unpacked_tree(program: Path) -> Path | None:
    """Returns the tree of ``icbench get`` that a program belongs to; None for any other program."""
    return next((parent for parent in program.resolve().parents if (parent / MARK).is_file()), None)


def _age(tree: Path) -> list[tuple[int, str]]:
    """Returns a key that sorts names by the numbers in them."""
    return [(int(word), "") if word.isdigit() else (-1, word) for word in re.findall(r"\d+|\D+", tree.name)]
