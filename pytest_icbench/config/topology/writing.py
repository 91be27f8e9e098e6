# SPDX-License-Identifier: BSD-3-Clause
"""Writes a topology as a TOML file, with comments on what can be changed. Pure; ``reading`` is the inverse."""

from __future__ import annotations

import json
from typing import Any

from pytest_icbench.config.topology.model import Topology, to_table

_HEAD = """\
# A topology of pytest-icbench: who the endpoints are and where they run. Edit it, then give it to pytest:
#     pytest scenarios --icbench-topology FILE
# Only name, application and peer have to be there; what is left out is chosen for each case.
"""
_OPTIONAL = {
    "cpus": "# cpus = [2]               # of its host; the workload polls on the first",
    "socket": '# socket = "sock0"         # file name of its vhost-user or memif socket',
    "pci": '# pci = "0000:04:02.0"     # its virtual function (sriov); or vf = "enp4s2", by interface',
}


def to_toml(topology: Topology, *, hints: bool = False) -> str:
    """Returns the text of the file. With ``hints`` the first table has comments on the keys that can be added."""
    parts = [_HEAD if hints else "", f'pairs = "{topology.pairs}vs{topology.pairs}"\n']
    for number, container in enumerate(topology.containers):
        table = to_table(container)
        lines = [f"{key} = {_value(value)}" for key, value in table.items()]
        if hints and not number:
            lines += [text for key, text in _OPTIONAL.items() if key not in table]
        parts.append("\n[[container]]\n" + "\n".join(lines) + "\n")
    return "".join(parts)


def _value(value: Any) -> str:
    """Returns a value as JSON. It is TOML, too, for texts, numbers and lists of these without surrogates."""
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], str):
        return _value(value[0])
    return json.dumps(value, ensure_ascii=False)
