# SPDX-License-Identifier: BSD-3-Clause
"""Flows: which part of the sender's addresses differs from frame to frame, and how often each comes. Pure."""

from __future__ import annotations

import re
from decimal import Decimal

from pytest_icbench.wording import THOUSANDS, shortened

#: Pattern of flows in a case's id.
LABEL = r"(?:new|\d+[kM]?(?::(?:ports|macs))?(?::zipf)?)"
#: The label of flows of which each has a single frame: a stateful function makes a session for each.
NEW = "new"
MAX_FLOWS = 1_000_000
#: Flows that are all new come again behind so many.
_NEW_FLOWS = 2**32 - 1
#: Source ports above the well-known ones.
MAX_PORTS = 64_512
_FORM = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)([kM]?)((?::[a-z]+)*)", re.ASCII)
_FIELDS = ("addresses", "ports", "macs")


def parse(text: str) -> str | None:
    """Returns the label of flows as a user writes them (``64k:ports``, ``1M:zipf``, ``new``); None for a single flow.

    Raises ValueError: the end of a sentence that begins with the text.
    """
    if text == NEW:
        return NEW
    match = _FORM.fullmatch(text)
    if match is None:
        raise ValueError("write their number, what differs and their law: 64k, 64k:ports, 1M:macs:zipf; or new")
    number = Decimal(match[1]) * THOUSANDS[match[2]]
    if number != int(number) or not 1 <= number <= MAX_FLOWS:
        raise ValueError(f"take a whole number from 1 to {MAX_FLOWS:,}")
    words = match[3].split(":")[1:]
    law = ":zipf" if words[-1:] == ["zipf"] else ""
    fields = words[:-1] if law else words
    if len(fields) > 1 or any(field not in _FIELDS for field in fields):
        raise ValueError(f"'{':'.join(words)}' is none of {', '.join(_FIELDS)}, each with or without :zipf after it")
    if fields == ["ports"] and number > MAX_PORTS:
        raise ValueError(f"there are only {MAX_PORTS:,} ports; take at most that many flows, or let addresses differ")
    if number == 1:
        return None
    differing = "" if fields in ([], ["addresses"]) else f":{fields[0]}"
    return shortened(int(number)) + differing + law


def differ_by_port(label: str | None) -> bool:
    """Whether flows differ by their source port, so that answers would come to many ports."""
    return label is not None and (":ports" in label or label == NEW)


def differ_by_mac(label: str | None) -> bool:
    """Whether flows differ by their source MAC address alone, which no card's hash sees."""
    return label is not None and ":macs" in label


def number(label: str | None) -> int:
    """Returns how many flows a label stands for."""
    if label == NEW:
        return _NEW_FLOWS
    match = _FORM.match(label or "1")
    assert match is not None
    return int(Decimal(match[1]) * THOUSANDS[match[2]])
