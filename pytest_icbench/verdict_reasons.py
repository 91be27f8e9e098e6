# SPDX-License-Identifier: BSD-3-Clause
"""The reasons of INVALID and INCONCLUSIVE, with their sentences. docs/how-to/verdicts.md has what to do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

#: Why a measurement is INVALID, unless its evidence is more exact. Those of a search alone come last.
INVALID_REASONS: Mapping[str, str] = {
    "no-forwarding": "no frame arrived in one direction",
    "corrupted": "frames arrived damaged, or several as one",
    "flooded": "a receiver got many frames of other pairs",
    "stalled": "a pair received frames, and then none",
    "accounts": "a frame came from nowhere, or is unaccounted for",
    "clock": "times contradict each other, or a sender had no CPU",
    "died": "the switch is no longer alive",
    "emulated": "a virtual machine was executed without KVM",
    "function": "the network function did not do its work",
    "noisy-neighbour": "the noisy neighbour was missing or not busy",
    "generator-bound": "the sender could not offer the load",
    "start-failed": "a container did not come up",
    "lossy": "no load passed without too much loss",
    "unfinished": "the time ran out before any load was proven",
}
#: Those that lie in the harness. Others are the switch's, whose launches are not repeated.
HARNESS_REASONS = ("clock",)
#: Those that a cable can have, or, while others take their CPUs, the endpoints.
PATH_REASONS = ("no-forwarding", "stalled")

#: Why a finding is INCONCLUSIVE.
Reason = Literal["few", "spread", "state", "host", "bound"]
#: The sentence on each, unless the finding has a more exact one. ``{units}`` is the plural of the unit.
INCONCLUSIVE_REASONS: Mapping[Reason, str] = {
    "few": "too few {units}",
    "spread": "{units} lie too far apart",
    "state": "the host's CPUs are in another state; measure again, or save this state, too",
    "host": "the host was disturbed, so the software is not known to be slower",
    "bound": "the switch was not the limit: endpoints with more cores, or a search, would tell",
}
