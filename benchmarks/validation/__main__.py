# SPDX-License-Identifier: BSD-3-Clause
"""Checks the claims about the tool's numbers on this host, and writes the page that shows them with its figures.

Ends with 0 if every claim that was run holds, with 1 if one fails or could not be shown. Claims that are not run keep
what was found before.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from pytest_icbench.driver.switch.registry import builtin_switches
from pytest_icbench.errors import IcbenchError, Unsupported
from validation import drawing, page, priority
from validation.claims import load
from validation.facts import host_facts
from validation.model import Claim, Record, Settings, worst

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "explanation" / "validation.md"
#: Of the page's figures and records.
DIRECTORY = ROOT / "docs" / "explanation" / "validation"


def main(arguments: Sequence[str] | None = None) -> int:
    claims = load()
    options = parse(arguments, claims)
    out = options.out or DIRECTORY
    out.mkdir(parents=True, exist_ok=True)
    chosen = [] if options.draw else options.only or list(claims)
    if options.quick and out == DIRECTORY:
        raise SystemExit("validation: --quick measures nothing worth showing: give another directory with --out")
    expected = sum(claims[name].SECONDS for name in chosen)
    if chosen and not options.quick:
        tell(f"{', '.join(chosen)}: about {expected / 60:.0f} minutes")
    with priority.own_processes():
        good = [run(name, claims[name], options, out) for name in chosen]
    records = read(out, claims)
    if options.draw:
        for name, record in records.items():
            if record.missing is None:
                drawing.draw(record, claims[name], out)
    source = PAGE.read_text()
    target = PAGE if out == DIRECTORY else out / PAGE.name
    target.write_text(page.generate(source, claims, records))
    tell(f"written: {target}")
    return 0 if all(good) else 1


def parse(arguments: Sequence[str] | None, claims: Mapping[str, Claim]) -> argparse.Namespace:
    """The command line. Exits with 2 on a claim that is not known."""

    def names(text: str) -> list[str]:
        found = [name for name in text.replace(",", " ").split() if name]
        unknown = [name for name in found if name not in claims]
        if unknown or not found:
            raise argparse.ArgumentTypeError(
                f"no claim {', '.join(unknown) or text!r}: choose from {', '.join(claims)}"
            )
        return found

    parser = argparse.ArgumentParser(prog="validation", description=__doc__)
    parser.add_argument("--only", type=names, metavar="CLAIM,...", help=f"some of: {', '.join(claims)}")
    parser.add_argument(
        "--draw", action="store_true", help="measure nothing; make page and figures anew from the records"
    )
    parser.add_argument(
        "--quick", action="store_true", help="a fraction of the time, to see whether it works; needs --out"
    )
    parser.add_argument(
        "--out", type=Path, help="directory for records, figures and page (default: the repository's docs)"
    )
    parser.add_argument(
        "--node", default="lxc", choices=("lxc", "netns"), help="where workloads run (default: %(default)s)"
    )
    parser.add_argument(
        "--binary",
        type=named_path,
        action="append",
        default=[],
        metavar="SWITCH=PATH",
        help="a switch that is not on PATH, as vpp=/opt/vpp/bin/vpp; can be repeated",
    )
    return parser.parse_args(arguments)


def named_path(text: str) -> tuple[str, Path]:
    """``SWITCH=PATH`` of a switch that there is, and of a file that there is."""
    name, equals, path = text.partition("=")
    if not equals or name not in builtin_switches():
        raise argparse.ArgumentTypeError(f"{text!r} is not SWITCH=PATH with one of {', '.join(builtin_switches())}")
    if not Path(path).is_file():
        raise argparse.ArgumentTypeError(f"there is no file {path}")
    return name, Path(path)


def run(name: str, claim: Claim, options: argparse.Namespace, out: Path) -> bool:
    """Checks one claim, writes its record and its figures, prints the verdict; whether it holds."""
    tell(f"{name}: {claim.CLAIM}")
    began = time.monotonic()
    today = datetime.now(UTC).date().isoformat()
    try:
        found = claim.check(Settings(quick=options.quick, node=options.node, binaries=dict(options.binary)))
    except Unsupported as reason:
        record = Record(name, today, time.monotonic() - began, host_facts(), missing=str(reason))
    except IcbenchError as error:
        tell(f"{name}: ERROR, what was found before stays: {error}")
        return False
    else:
        took = round(time.monotonic() - began, 1)
        record = Record(name, today, took, host_facts(), found.rows, found.notes, found.data)
    record.write(out)
    if record.missing is None:
        drawing.draw(record, claim, out)
    for row in record.rows:
        print(f"{'ok  ' if row.held else 'FAIL'} {name}: {row.what}: {page.shown(row.value)}; {row.bound}")
    failed = worst(record.rows)
    why = f": {failed.what}" if failed else f": {record.missing}" if record.missing else ""
    print(f"{record.state.upper()} {name}{why}", flush=True)
    return record.state == "holds"


def read(directory: Path, claims: Mapping[str, Claim]) -> dict[str, Record]:
    """The records that are there, in the claims' order."""
    files = {name: directory / f"{name}.json" for name in claims}
    return {name: Record.read(file) for name, file in files.items() if file.exists()}


def tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
