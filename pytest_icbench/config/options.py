# SPDX-License-Identifier: BSD-3-Clause
"""Command line and ini file to frozen ``Options``.

Every option ``--icbench-x-y`` has an ini twin ``icbench_x_y``. One rule for all: the command line wins over the ini
file, the ini file over what a scenario asks for (its marker, then the arguments of a call), and that over the default.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from pytest_icbench.config import candidates, values
from pytest_icbench.config.option_table import BINARIES, INI_ONLY, TABLE, Row
from pytest_icbench.errors import UsageError
from pytest_icbench.model import circumstances, toml
from pytest_icbench.model.candidate import Candidate
from pytest_icbench.model.rate import Rate
from pytest_icbench.model.toml import TomlFile
from pytest_icbench.model.uplink import Uplink, name_of
from pytest_icbench.model.verdict import DEFAULT_FAILING

if TYPE_CHECKING:
    import pytest

    from pytest_icbench.config.topology.model import Topology

Raw = Callable[[str], "tuple[str, str] | None"]

#: Descriptors a ring unless the user says otherwise; a burst must fit in.
DEFAULT_RING = 256


@dataclass(frozen=True, slots=True)
class Options:
    """What the user asked for. None and empty tuples: nothing was said, the scenario decides.

    Attributes:
        switch: keep only these switches and groups.
        packet_size, burst, rate, pairs, switch_cores, api, port, blocking, touch: replacements of an axis.
        settings: names of ``measure.Settings`` that the user set.
        ring: descriptors a ring.
        budget: seconds for all cases together.
        soak_duration: seconds of a long run.
        incomparable: patterns over facts that have to be the same in a comparison.
        save, compare: names of baselines. baselines: their directory.
        fail: verdicts that fail a test. exit_codes: pytest's exit status tells regressed from undecided from broken.
        reports: directory of the runs.
        history: file to which every result is appended.
        binaries: the user's paths, by tool.
        switch_config: the user's own configurations, by switch, as their files say.
        resume: the run to go on with.
        remote: the second host, ``[USER@]HOST``; ``remote_python`` is the Python there.
        uplink: NIC that leads to the other host, by host; this one's name is empty.
        host_names: results may have the hosts' names.
        topology: who the endpoints are and where they run, where somebody says so.
        variant: what is measured side by side with what there is.
        run_files: write junit.xml (and report.html with pytest-html) into the run's directory.
        given: the options and ini values that were set, as the user would write them.
    """

    switch: tuple[str, ...] = ()
    packet_size: tuple[int, ...] | None = None
    burst: tuple[int, ...] | None = None
    rate: tuple[Rate, ...] | None = None
    pairs: tuple[int, ...] | None = None
    switch_cores: tuple[int, ...] | None = None
    api: tuple[str, ...] | None = None
    port: tuple[str, ...] | None = None
    blocking: bool | None = None
    touch: bool | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    ring: int = DEFAULT_RING
    budget: float | None = None
    soak_duration: float | None = None
    incomparable: tuple[str, ...] = circumstances.DEFAULT
    frequency: Literal["fix", "keep"] = "fix"
    placement: Literal["auto", "dedicated", "cooperative"] = "auto"
    node: Literal["lxc", "netns"] = "lxc"
    hugepage_size_kib: int | None = None
    fresh: bool = False
    save: str | None = None
    compare: str | None = None
    baselines: Path = Path("baselines")
    fail: tuple[str, ...] = DEFAULT_FAILING
    exit_codes: bool = False
    strict: bool = False
    plan: bool = False
    debug: bool = False
    pf: str | None = None
    resume: str | None = None
    reports: Path = Path("reports")
    history: Path | None = None
    thresholds: Path | None = None
    binaries: Mapping[str, Path] = field(default_factory=dict)
    switch_config: Mapping[str, TomlFile] = field(default_factory=dict)
    remote: str | None = None
    remote_python: str | None = None
    uplink: Mapping[str, Uplink] = field(default_factory=dict)
    host_names: bool = False
    topology: Topology | None = None
    variant: tuple[Candidate, ...] = ()
    run_files: bool = False
    given: tuple[str, ...] = ()


def add_options(parser: pytest.Parser) -> None:
    """Declares the group ``icbench`` and every ini twin."""
    group = parser.getgroup("icbench", "inter-container benchmarks (pytest-icbench)")
    for row in TABLE:
        if row.flag:
            group.addoption(row.option, action="store_true", default=None, dest=row.dest, help=row.help)
        elif row.repeated:
            group.addoption(
                row.option, metavar=row.metavar, action="append", default=None, dest=row.dest, help=row.help
            )
        else:
            group.addoption(row.option, metavar=row.metavar, default=None, dest=row.dest, help=row.help)
        parser.addini(row.ini, f"the same as {row.option}", type="string", default="")
    for name, text in INI_ONLY.items():
        parser.addini(name, text, type="string", default="")


def from_config(config: pytest.Config) -> Options:
    """Options of a run.

    Raises:
        UsageError: one sentence naming the option or the ini value.
    """

    def raw(name: str) -> tuple[str, str] | None:
        row = _ROWS.get(name)
        if row is not None:
            typed = config.getoption(row.dest, default=None)
            if typed is not None:
                text = "\n".join(typed) if row.repeated else str(typed)
                return row.option, "yes" if typed is True else text
        ini = row.ini if row is not None else name
        text = str(config.getini(ini) or "").strip()
        return (ini, text) if text else None

    return read(raw, root=config.rootpath, directory=config.invocation_params.dir)


def read(raw: Raw, *, root: Path, directory: Path) -> Options:
    """Options out of texts. The files that they name are read here, and nowhere else.

    Args:
        raw: gives for a row's name where its value was written (option or ini name) and the text, None if nowhere.
        root: what paths of the ini file and the default of ``reports`` are relative to.
        directory: what paths of the command line are relative to.

    Raises:
        UsageError: one sentence naming the option or the ini value.
    """
    found: dict[str, Any] = {}
    where: dict[str, str] = {}
    for name in (*_ROWS, *INI_ONLY):
        value = raw(name)
        if value is None:
            continue
        origin, text = value
        where[name] = origin
        row = _ROWS.get(name)
        if row is None:
            found[name] = values.boolean(text, origin)
        elif name == "switch_config":
            base = directory if origin.startswith("--") else root
            files = {switch: toml.read(_path(path, base), origin) for switch, path in row.parse(text, origin)}
            found[name] = MappingProxyType(files)
        elif name == "uplink":
            found[name] = MappingProxyType(dict(row.parse(text, origin)))
        elif name == "variant":
            found[name] = candidates.parse(text, origin, directory if origin.startswith("--") else root)
        elif row.path:
            found[name] = _path(text, directory if origin.startswith("--") else root)
        else:
            found[name] = row.parse(text, origin)
    if "topology" in found:
        from pytest_icbench.config.topology.reading import read as read_topology  # other suites load this module, too

        dedicated = found.get("placement") == "dedicated"
        found["topology"] = read_topology(found["topology"], where["topology"], dedicated=dedicated)
    options = Options(
        **{_RENAMED.get(name, name): found[name] for name in found if _RENAMED.get(name, name) in _FIELDS},
        settings=MappingProxyType({_ROWS[name].setting: found[name] for name in found if _is_setting(name)}),
        binaries=MappingProxyType(_binaries(found, where)),
        run_files=bool(found.get("icbench_run_files", False)),
        given=tuple(where.values()),
    )
    if "reports" not in found:
        options = replace(options, reports=root / "reports")
    if "baselines" not in found:
        options = replace(options, baselines=root / "baselines")
    _check(options, where)
    return options


def _path(text: str, base: Path) -> Path:
    try:
        return base / Path(text).expanduser()
    except RuntimeError:
        return base / text


def _binaries(found: Mapping[str, Any], where: Mapping[str, str]) -> dict[str, Path]:
    paths = {name: Path(found[name]) for name in BINARIES if name in found}
    for name, path in paths.items():
        if not path.is_file():
            raise UsageError(f"{where[name]}: there is no file {path}")
        if not path.stat().st_mode & 0o111:
            raise UsageError(f"{where[name]}: {path} is not executable")
    return paths


def _check(options: Options, where: Mapping[str, str]) -> None:
    """What only several values together can break."""
    for burst in options.burst or ():
        if burst > options.ring:
            raise UsageError(f"{where['burst']}: {too_large_burst(burst, options.ring)}")
    if options.thresholds is not None and not options.thresholds.is_file():
        raise UsageError(f"{where['thresholds']}: there is no file {options.thresholds}")
    if options.reports.exists() and not options.reports.is_dir():
        raise UsageError(f"{where.get('reports', '--icbench-reports')}: {options.reports} is no directory")
    if options.remote is not None and options.uplink:
        name_of(options.remote, options.uplink, where["uplink"])
    _check_baselines(options, where)


def _check_baselines(options: Options, where: Mapping[str, str]) -> None:
    if options.baselines.exists() and not options.baselines.is_dir():
        raise UsageError(f"{where.get('baselines', '--icbench-baselines')}: {options.baselines} is no directory")
    if options.save is not None and options.save == options.compare:
        raise UsageError(
            f"{where['save']}: '{options.save}' is the baseline to compare with, and would follow every small loss;"
            " give another name, or take this run's figures over afterwards: icbench accept"
        )


def too_large_burst(burst: int, ring: int) -> str:
    return f"a burst of {burst} does not fit into a ring of {ring}; take a lesser burst or a greater --icbench-ring"


def _is_setting(name: str) -> bool:
    return name in _ROWS and bool(_ROWS[name].setting)


_ROWS: dict[str, Row] = {row.name: row for row in TABLE}
_RENAMED = {"hugepage_size": "hugepage_size_kib"}
_FIELDS = frozenset(Options.__dataclass_fields__) - {"settings", "binaries", "run_files", "given"}
