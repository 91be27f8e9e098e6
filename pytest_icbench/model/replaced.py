# SPDX-License-Identifier: BSD-3-Clause
"""What a rig is built with in place of what is installed: the whole difference between a candidate and its base."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Replaced:
    """The replacements of one rig; empty for a base.

    Attributes:
        programs: paths by the names that ``--icbench-binary`` takes (``ovs``, ``suricata``).
        configs: configurations by switch, and by ``function:COMPONENT``.
        env: variables of the switch's environment.
        sysctl: kernel options by name, which hold while the rig runs.
        node: kind of the nodes.
        image: root directory of the nodes' programs and libraries.
    """

    programs: Mapping[str, Path] = field(default_factory=dict)
    configs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    sysctl: Mapping[str, str] = field(default_factory=dict)
    node: str | None = None
    image: Path | None = None
