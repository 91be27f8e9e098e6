# SPDX-License-Identifier: BSD-3-Clause
"""``filtered-bridge``: a Linux bridge whose frames pass rules of nftables. A plugin of pytest.

Its mode ``rulesN`` has N rules, of which none matches. Without a mode it has as many as ``$FILTERED_RULES`` says:
another configuration under the same name.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_icbench.driver.switch.kernel.linux_bridge import LinuxBridge
from pytest_icbench.driver.switch.protocol import Attachment, SwitchFacts, SwitchSpec
from pytest_icbench.errors import Unsupported
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.model.endpoint import Endpoint

_RULES = re.compile(r"rules(\d+)")
VARIABLE = "FILTERED_RULES"
#: Of ports that nobody uses.
FIRST_PORT = 60000


def ruleset(number: int) -> str:
    """A chain that every forwarded frame passes, with rules for ports that nobody uses."""
    rules = "\n".join(f"  udp dport {FIRST_PORT + place} counter drop" for place in range(number))
    return f"table bridge slow {{\n chain forward {{\n  type filter hook forward priority 0;\n{rules}\n }}\n}}\n"


class FilteredBridge(LinuxBridge):
    name = "filtered-bridge"
    mode_help = "rulesN: N rules of nftables"
    by_name_only = True

    @classmethod
    def has_mode(cls, mode: str) -> bool:
        return _RULES.fullmatch(mode) is not None

    def probe(self, session: HostSession, spec_binary: Path | None) -> SwitchFacts:
        if shutil.which("nft") is None:
            raise Unsupported("no nft: install it (Debian's package nftables)")
        return super().probe(session, spec_binary)

    def start(self, session: HostSession, spec: SwitchSpec, attachments: Sequence[Attachment]) -> list[Endpoint]:
        endpoints = super().start(session, spec, attachments)
        asked = _RULES.fullmatch(spec.mode or "")
        number = int(asked[1] if asked else os.environ.get(VARIABLE, "0"))
        if number:
            session.spawner.run(["nft", "-f", "-"], timeout_s=10, netns=self._netns, input=ruleset(number))
        return endpoints


@pytest.hookimpl(optionalhook=True)
def pytest_icbench_switches() -> list[Any]:
    return [FilteredBridge]
