# SPDX-License-Identifier: BSD-3-Clause
"""Hides the names of hosts in what is written about a run: its command line and its files. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_icbench.config.options import Options

#: Replaces a name.
HIDDEN = "HOST"
#: The hosts of xdist's workers.
_SSH = re.compile(r"\b(ssh|vagrant_ssh|socket)=[^/\s'\"]+")


def names(options: Options) -> list[str]:
    """Returns the names of hosts in the options, with and without the user's name, the longest first."""
    given = {name for name in (options.remote, *options.uplink) if name}
    given |= {name.rpartition("@")[2] for name in given}
    return sorted(given, key=len, reverse=True)


def hidden(text: str, options: Options) -> str:
    """Returns the text without names of hosts, or as it is with ``--icbench-host-names``."""
    if options.host_names:
        return text
    for name in names(options):
        text = re.sub(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", HIDDEN, text)
    return _SSH.sub(rf"\1={HIDDEN}", text)
