# SPDX-License-Identifier: BSD-3-Clause
"""Names of hosts, kept out of what is written about a run: its command line and its files. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_icbench.config.options import Options

#: Stands where a name stood.
HIDDEN = "HOST"
#: Where xdist is told to go.
_SSH = re.compile(r"\b(ssh|vagrant_ssh|socket)=[^/\s'\"]+")


def names(options: Options) -> list[str]:
    """Those that the user gave, with and without the user's name, the longest first."""
    found = {name for name in (options.remote, *options.uplink) if name}
    found |= {name.rpartition("@")[2] for name in found}
    return sorted(found, key=len, reverse=True)


def hidden(text: str, options: Options) -> str:
    """The text without them, as it is for who asked for names (``--icbench-host-names``)."""
    if options.host_names:
        return text
    for name in names(options):
        text = re.sub(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", HIDDEN, text)
    return _SSH.sub(rf"\1={HIDDEN}", text)
