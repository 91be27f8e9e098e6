# SPDX-License-Identifier: BSD-3-Clause
"""Judges the recorded sessions of the gate again, by the rule of now, from the results of their runs.

A rule that changes leaves a record of verdicts that it did not reach. The launches are as they were: a case is judged
as a first look, and one that was measured again then as a second look. A suspect of the rule of now that the rule of
then did not measure again stays INCONCLUSIVE: a slower one that the rule of now alone suspects does not count as found.

``python -m validation.pools.gate_again`` rewrites the verdicts, reasons and changes of all records whose runs are here,
and adds the commit to that by which a session was judged. Launches, times and what others took stay.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path

from pytest_icbench.gate.against import BaselineComparison, Comparer
from pytest_icbench.gate.entry import Baseline, Entry, entry_of
from pytest_icbench.gate.judge import judge
from pytest_icbench.gate.margins import Margins
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.verdict import Verdict
from pytest_icbench.store.read import read_run
from validation.pools.gate_sessions import ALONE, BASELINE, RECORDS, Judged, Record, Session, commit, records, rounded

#: Seconds between the beginning of a session and the time in the name of its run, at most.
_APART_S = 10.0
_AGAIN = ", again by "


def run_of(record: Record, session: Session) -> Path | None:
    """The directory of a session's run; None if it is not here."""
    runs = [(abs(_began(run) - session.at), run) for run in (record.work / "runs").glob("2*") if not run.is_symlink()]
    apart, nearest = min(runs, default=(_APART_S, None))
    return nearest if apart < _APART_S else None


def _began(run: Path) -> float:
    return datetime.strptime(run.name[:16], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp()


def looks(run: Path) -> dict[str, list[Measurement]]:
    """The measurements of each case of a run: one, or two if it was a suspect."""
    found: dict[str, list[Measurement]] = {}
    for stored in read_run(run).results:
        found.setdefault(stored.measurement.case, []).append(stored.measurement)
    return found


def judged_again(session: Session, measured: dict[str, list[Measurement]], before: Sequence[Entry]) -> Session:
    """The session with the verdicts of the rule of now, against the baseline that it had."""
    comparer, margins = Comparer(Baseline("main", tuple(before)), cases=len(measured)), Margins()
    firsts = {case: comparer.compare(each[0], margins, first=True) for case, each in measured.items()}
    cases = dict(session.cases)
    for case, each in measured.items():
        comparison, result = firsts[case], each[0]
        if len(each) > 1 and comparison is not None and any(finding.suspect for finding in comparison.findings):
            comparison, result = comparer.compare(each[-1], margins), each[-1]
        if comparison is not None and result.verdict != Verdict.INVALID:
            cases[case] = _with(session.cases[case], result, comparison)
    return replace(session, cases=cases, commit=f"{session.commit.partition(_AGAIN)[0]}{_AGAIN}{commit()}")


def _with(old: Judged, result: Measurement, comparison: BaselineComparison) -> Judged:
    fields = judge(result, against=comparison).fields()
    change = rounded(fields.get("ratio_to_baseline"), 4)
    return replace(old, verdict=fields["verdict"], reason=fields["reason"] or "", change=change)


def again(record: Record) -> list[Session] | None:
    """The sessions of a record, judged again; None if the run of one is not here."""
    found: list[Session] = []
    entries: dict[str, Entry] = {}
    for session in record.sessions:
        run = run_of(record, session)
        if run is None:
            return None
        measured = looks(run)
        known = list(entries.values())
        found.append(session if session.kind == BASELINE else judged_again(session, measured, known))
        for each in measured.values() if session.kind in (BASELINE, ALONE) else ():
            entry = entry_of(each[-1])
            if entry is not None:
                entries[entry.key] = entry.after(entries[entry.key]) if entry.key in entries else entry
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=Path, default=RECORDS, help="where records are (default: %(default)s)")
    for record in records(parser.parse_args(arguments).records.absolute()):
        sessions = again(record)
        if sessions is None:
            print(f"{record.file.name}: left as it is, since the runs of its sessions are not here")
            continue
        lines = [json.dumps(record.host), *(json.dumps(asdict(session)) for session in sessions)]
        record.file.write_text("\n".join(lines) + "\n")
        print(f"{record.file.name}: {len(sessions)} sessions judged again")
    return 0


if __name__ == "__main__":
    sys.exit(main())
