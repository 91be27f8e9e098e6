# SPDX-License-Identifier: BSD-3-Clause
"""Names of places on the page, so that other reports can link to them. Pure."""

from __future__ import annotations

import re

from pytest_icbench.model.measurement import Measurement

_FOREIGN = re.compile(r"[^A-Za-z0-9_:+.-]", re.ASCII)


def case_anchor(result: Measurement) -> str:
    """Returns the page's id of a result's case: ``case-throughput-ovs-64B-b32-1vs1-Rmax``.

    The dimension is part of it, since a rate and a round trip can be measured with equal traffic. Ids of cases hold
    characters only that an id of HTML and a fragment of a URL may have as they are; all others become ``_``.
    """
    return _FOREIGN.sub("_", f"case-{result.dimension}-{result.case}")
