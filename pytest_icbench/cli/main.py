# SPDX-License-Identifier: BSD-3-Clause
"""The command ``icbench``. A subcommand is a function that takes the parsed arguments and returns the exit code."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from pytest_icbench.cli import baseline_sessions, bisect, doctor, get, history
from pytest_icbench.cli.baseline import add_commands
from pytest_icbench.cli.report import add_arguments
from pytest_icbench.cli.scenarios import packaged_scenarios
from pytest_icbench.config.topology import default, pair_number, to_toml
from pytest_icbench.errors import IcbenchError, UsageError
from pytest_icbench.host.host_session import RUN_DIR
from pytest_icbench.host.inherited import put_aside
from pytest_icbench.host.recover import recover
from pytest_icbench.host.resource.cpu import Topology
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.path import FramePath
from pytest_icbench.model.text_files import MOST_STORED_BYTES, read_text
from pytest_icbench.store.raw import write_log
from pytest_icbench.testbed.cpu_placement import plan
from pytest_icbench.testbed.undo_kinds import UNDO_KINDS
from pytest_icbench.version import package_version
from pytest_icbench.wording import counted, printable

Command = Callable[[argparse.Namespace], int]


def _recover(arguments: argparse.Namespace) -> int:
    """Undoes the changes of dead sessions. The exit code is 1 if some remain. Raises UsageError without root."""
    if os.geteuid() != 0:
        raise UsageError("recover undoes changes of the host and needs root: run it as root")
    recovery = recover(RUN_DIR, UNDO_KINDS, forget=arguments.forget)
    for sentence in recovery.sentences() or ["nothing to undo"]:
        print(sentence)
    for sentence in recovery.failures + recovery.refused:
        print(f"failed: {sentence}", file=sys.stderr)
    return int(bool(recovery.failures or recovery.refused))


def _scenarios(arguments: argparse.Namespace) -> int:
    """Copies the packaged scenarios. Raises UsageError if one exists or cannot be written."""
    source, target = packaged_scenarios(), Path(arguments.directory)
    names = sorted(
        path.relative_to(source)
        for path in source.rglob("*")
        if path.is_file()
        and "__pycache__" not in path.parts
        and path.suffix != ".pyc"
        and not path.name.startswith((".", "__init__"))
    )
    present = [str(target / name) for name in names if (target / name).exists()]
    if present and not arguments.force:
        raise UsageError(
            f"{present[0]} exists ({counted(len(present), 'file')} in all): choose another directory, or --force"
        )
    try:
        for name in names:
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            (target / name).write_bytes((source / name).read_bytes())
            print(target / name)
    except OSError as error:
        raise UsageError(f"{error.filename} cannot be written ({error.strerror}): choose another directory") from None
    return 0


def _demo(arguments: argparse.Namespace) -> int:
    """Runs the demo's scenario with pytest; the results are below the current directory. Returns pytest's exit code."""
    import pytest

    directory = packaged_scenarios()
    others = [f"--ignore={path}" for path in sorted(directory.glob("test_*.py")) if path.name != "test_demo.py"]
    # The ids of a single file outside of the root directory would lack its name.
    # Without a root directory pytest takes one somewhere in the installation. The pytest files of projects around it,
    # or around the current directory, would change what is measured.
    options = ["--rootdir=.", "-c", os.devnull, f"--confcutdir={directory}", *others]
    # Pytest cannot rewrite the assertions of this package, because it is imported already. It has no assertions.
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
    return int(pytest.main([str(directory), *options, *arguments.others]))


def _hlog(arguments: argparse.Namespace) -> int:
    """Writes latencies as a log for HdrHistogram's tools. Raises UsageError if there are none."""
    source = Path(arguments.results)
    lines = read_text(source, MOST_STORED_BYTES, remedy=": name a results.jsonl").splitlines()
    measurements = [
        Measurement.from_json(line, f"{source} line {number}") for number, line in enumerate(lines, 1) if line
    ]
    selected = [item for item in measurements if arguments.case is None or arguments.case in item.case]
    if not write_log(Path(arguments.output), selected):
        restriction = f" of a case with {arguments.case!r} in its id" if arguments.case else ""
        raise UsageError(f"{source} has no latency{restriction}: nothing was written")
    return 0


def _topology(arguments: argparse.Namespace) -> int:
    """Prints a topology to edit. Raises UsageError."""
    try:
        pairs = pair_number(arguments.pairs)
    except ValueError as error:
        raise UsageError(f"topology: {error}") from None
    local_endpoints = len(FramePath(pairs).leaders if arguments.remote else FramePath(pairs).endpoints)
    cpus = plan(Topology.read(), workers=arguments.switch_cores, endpoints=local_endpoints, policy="auto").endpoints
    print(to_toml(default(pairs, remote=arguments.remote, cpus=cpus), hints=True), end="")
    return 0


def _cores(text: str) -> int:
    """Parses a number of cores. Raises ArgumentTypeError."""
    if re.fullmatch("[0-9]{1,2}", text) and int(text) <= 64:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a number of cores: give 0 to 64")


def _help(top: argparse.ArgumentParser) -> int:
    """Prints the help of the whole command, when no subcommand is given."""
    top.print_help()
    return 0


class _Parser(argparse.ArgumentParser):
    """A parser whose messages have no control characters, although they quote arguments."""

    def error(self, message: str) -> NoReturn:
        super().error(printable(message))


class _Subcommands:
    """The subcommands of a parser. The help of each begins with its sentence in the list of subcommands."""

    def __init__(self, top: argparse.ArgumentParser) -> None:
        self._commands = top.add_subparsers(metavar="COMMAND")

    def add_parser(self, name: str, *, help: str) -> argparse.ArgumentParser:  # noqa: A002 - as argparse calls it
        """Adds one."""
        return self._commands.add_parser(name, help=help, description=f"{help[:1].upper()}{help[1:]}.")


def parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line. Each subcommand sets the default ``command``, its ``Command``."""
    top = _Parser(prog="icbench", description="Companion of the pytest plugin pytest-icbench.")
    top.add_argument("--version", action="version", version=f"pytest-icbench {package_version()}")
    top.set_defaults(command=lambda _arguments: _help(top), takes_others=False)
    commands = _Subcommands(top)

    demo = commands.add_parser("demo", help="measure every switch of this host, in 2 minutes, into reports/ (root)")
    demo.usage = "icbench demo [options of pytest, such as -k ovs or --icbench-node netns]"
    demo.set_defaults(command=_demo, takes_others=True)

    doctor.add_to(commands)
    get.add_to(commands)

    recover = commands.add_parser("recover", help="undo what a killed session left on this host (root)")
    recover.add_argument("--forget", action="store_true", help="drop the journal of changes that cannot be undone")
    recover.set_defaults(command=_recover)

    scenarios = commands.add_parser("scenarios", help="write the packaged scenarios into a directory, to start from")
    scenarios.add_argument("directory", metavar="DIR")
    scenarios.add_argument("--force", action="store_true", help="overwrite files")
    scenarios.set_defaults(command=_scenarios)

    add_arguments(
        commands.add_parser("report", help="show stored runs, recomputed from raw data: a table, a page, CSV, Parquet")
    )

    hlog = commands.add_parser("hlog", help="write the latencies of a results.jsonl as a log for HdrHistogram's tools")
    hlog.add_argument("results", metavar="RESULTS")
    hlog.add_argument("output", metavar="FILE", help="the log; its usual suffix is .hlog")
    hlog.add_argument("--case", metavar="TEXT", help="only cases with this text in their id")
    hlog.set_defaults(command=_hlog)

    history.add_to(commands)
    add_commands(commands)
    baseline_sessions.add_to(commands)
    bisect.add_to(commands)

    topology = commands.add_parser("topology", help="write a topology to edit, for --icbench-topology")
    topology.add_argument("pairs", metavar="NvsN", help="its pairs, such as 4vs4")
    topology.add_argument(
        "--remote", action="store_true", help="put the second endpoint of each pair on the remote host"
    )
    topology.add_argument(
        "--switch-cores", type=_cores, default=1, metavar="N", help="cores left for the switch (default: 1)"
    )
    topology.set_defaults(command=_topology)
    return top


def _run(argv: Sequence[str] | None) -> int:
    """Runs a subcommand and prints its error. Returns the exit code."""
    words = sys.argv[1:] if argv is None else argv
    try:
        # argparse takes "--" out of what follows an option, which leaves it an empty list.
        if emptied := [word for word in words if word.startswith("-") and word.endswith("=--")]:
            parser().error(f"{emptied[0]}: give a value")
        arguments, others = parser().parse_known_args(words)
        command: Command = arguments.command
        if others and not arguments.takes_others:
            parser().error(f"unrecognized arguments: {' '.join(others)}")
        arguments.others = others
        return command(arguments)
    except UsageError as error:
        print(f"icbench: {error}", file=sys.stderr)
        return 2
    except IcbenchError as error:
        print(f"icbench: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        raise
    except (OSError, UnicodeError) as error:  # a name that no file can have
        print(f"icbench: {printable(str(error))}", file=sys.stderr)
        return 2
    finally:
        sys.stdout.flush()


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a subcommand. Returns the exit code: 0, 1 (something is missing or failed), 2 (usage)."""
    if sys.stdout is None:  # `icbench recover >&-`
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")
    try:
        with put_aside():
            return _run(argv)
    except BrokenPipeError:  # `icbench doctor | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


if __name__ == "__main__":
    sys.exit(main())
