# SPDX-License-Identifier: BSD-3-Clause
"""Start-up in reports. Pure."""

from __future__ import annotations

from pytest_icbench.display.table import In
from pytest_icbench.kinds.kind import Charts, InPart, Kind
from pytest_icbench.kinds.startup import startup_columns as startup
from pytest_icbench.kinds.startup.startup_charts import startup_charts
from pytest_icbench.model.figures import Startup

STARTUP = Kind(
    figures=Startup,
    columns=startup.COLUMNS,
    value=startup.value,
    shown=In.STARTUP,
    titles=startup.TITLES,
    table=startup.table_of,
    sentence=startup.sentence,
    question="How long does another container take to start? {paths}",
    charts=(Charts("startups", "Creation of containers", startup_charts, "first"),),
    in_part=InPart(
        "creation of containers",
        "the time of each and its growth with their number",
        "these times without clients and containers on the CPUs that create them",
    ),
)
