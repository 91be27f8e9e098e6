# SPDX-License-Identifier: BSD-3-Clause
"""Applications in reports. Pure."""

from __future__ import annotations

from pytest_icbench.display.table import In
from pytest_icbench.kinds.application import application_columns as application
from pytest_icbench.kinds.kind import Kind, Ranked
from pytest_icbench.model.figures import Application

APPLICATION = Kind(
    figures=Application,
    columns=application.COLUMNS,
    value=application.value,
    shown=In.APPLICATION,
    titles={"application": "{kind} ({metric})"},
    mark=application.mark,
    legend=((lambda _result: True, "client, server: CPU time of their processes in µs per operation"),),
    facts=application.facts,
    ways=lambda result, _refused: ("asks", application.operations(result)),
    limiting_ends=("sender", "receiver"),
    ranked=Ranked("applications", "Applications"),
)
