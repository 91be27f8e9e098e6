# SPDX-License-Identifier: BSD-3-Clause
"""The rules of a run's verdicts: policy, baseline and waivers that the options name, and candidates' allowances."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path

from pytest_icbench.config.options import Options
from pytest_icbench.errors import ProvisionError
from pytest_icbench.gate.baseline_comparison import Comparer
from pytest_icbench.gate.judge import Policy
from pytest_icbench.gate.margins import Margins
from pytest_icbench.measure.stopping import Allowances
from pytest_icbench.model.measurement import CYCLES
from pytest_icbench.store import waiver_file
from pytest_icbench.store.baselines import load as load_baseline
from pytest_icbench.store.resume import find_run
from pytest_icbench.store.run_directory import BASELINES, RUN_FILE


def keep_baseline(run: Path, options: Options) -> None:
    """Copies the baseline to the results, so that verdicts can be made anew. Raises ProvisionError."""
    name = str(options.compare)
    try:
        shutil.copytree(options.baselines / name, run / BASELINES / name)
    except (OSError, shutil.Error) as error:
        shutil.rmtree(run / BASELINES, ignore_errors=True)
        (run / RUN_FILE).unlink(missing_ok=True)
        raise ProvisionError(f"the baseline {name} cannot be copied into the reports: {error}; make room") from None


def load_gate(options: Options, cases: int = 1) -> tuple[Policy, Comparer | None]:
    """Returns the policy and the comparer. Raises UsageError if the baseline or the waivers cannot be read.

    Args:
        cases: the number of cases of the session, which share its error rate.
    """
    if options.save is not None and (options.baselines / options.save).is_dir():
        load_baseline(options.baselines, options.save)  # an error here saves hours
    policy = Policy(options.fail, options.strict, waiver_file.load(options.baselines), datetime.now(UTC).date())
    if options.compare is None:
        return policy, None
    return policy, Comparer(load_baseline(options.baselines, options.compare), options.must_match, cases)


def check_stored(options: Options) -> None:
    """Raises UsageError if a baseline, the waivers or the run to go on with cannot be read."""
    load_gate(options)
    if options.resume is not None:
        find_run(options.resume, options.reports)


def compute_allowances(margins: Margins, dimension: str) -> Allowances:
    """Returns how much worse a candidate may be than its base, which takes the place of a baseline."""
    allowed = margins.of(dimension)
    named = any(figure.name == CYCLES for figure in allowed)
    return Allowances(allowed[0].allowance, margins.for_cycles().allowance, cycles_named=named)
