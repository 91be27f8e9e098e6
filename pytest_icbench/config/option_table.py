# SPDX-License-Identifier: BSD-3-Clause
"""The options that are not axes: group, name, type, default, parser and help of each. No other place lists them.

They are declared to pytest here, so every pytest run loads this module and what it imports. Every option
``--icbench-x-y`` has an ini twin ``icbench_x_y``. ``options`` reads their values.
"""

from __future__ import annotations

import tomllib
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import pytest

from pytest_icbench.config import values
from pytest_icbench.config.axes import Axes
from pytest_icbench.config.axis import (
    FIRST,
    GATING,
    GROUPS,
    HOST,
    MEASURED,
    REPORTS,
    SEARCHES,
    TIME,
    Applies,
    Row,
    flag,
    option,
    rows,
)
from pytest_icbench.config.values import as_text, parse_words
from pytest_icbench.errors import UsageError
from pytest_icbench.model import comparability, uplink
from pytest_icbench.model.search_goal import PRESETS
from pytest_icbench.model.settings import PROTOCOLS
from pytest_icbench.model.uplink import Uplink
from pytest_icbench.model.verdict import (
    BAD,
    DEFAULT_FAILING,
    EXIT_STATUS,
    GOOD,
    UNDECIDED,
    WEAK,
    WEAK_STATUS,
    Verdict,
    parse_verdicts,
)
from pytest_icbench.wording import alternatives

if TYPE_CHECKING:  # every pytest run loads this module, and few have such files: ``options`` reads them
    from pytest_icbench.config.topology import Topology
    from pytest_icbench.model.candidate import Candidate
    from pytest_icbench.model.case import Case
    from pytest_icbench.model.text_files import TomlFile


#: The parser for the length of a long run.
SOAK_LENGTHS = values.Seconds(1.0, 2_592_000.0)
_OF_SEARCHES = Applies(lambda case: case.rate.loss_ratio is not None, "no selected case searches for ndr or pdr")
#: The ini twin that ``--help`` shows, and which says that there are others.
SHOWN_TWIN = "icbench_switch"


def _parse_uplinks(text: str, where: str) -> Mapping[str, Uplink]:
    """Parses the interfaces that lead to the second host. Raises UsageError."""
    return MappingProxyType(dict(uplink.parse_all(text, where)))


@dataclass(frozen=True, slots=True)
class Options(Axes):
    """The options of a run. An option that is None or empty was not given: the scenario decides.

    Attributes:
        run_files, benchmark: ini values without an option.
        given: the names of the options and ini values that were set, as the user would write them.
    """

    switch: tuple[str, ...] = option(
        FIRST,
        "LIST",
        "keep only these switches; kernel, dpdk and all are groups, vpp:xconnect is a switch in that mode (default:"
        " what each scenario names)",
        parse_words,
        default=(),
        marker="'all'",
    )
    precision: float | None = option(
        TIME,
        "P",
        "measure until the 95 %% interval is within this share of the value (default: 3%%, with a baseline what its"
        " margin needs)",
        values.precision,
        setting="precision",
    )
    max_duration: float | None = option(
        TIME,
        "S",
        "measure a case for at most this long, in seconds or with a unit (90, 20m; default: 60, for a search its"
        " preset's: csit 2m, rfc2544 and icpe2018 1h, tst009 2h)",
        values.Seconds(0.1, 86_400.0),
        setting="max_duration_s",
    )
    plan: bool = flag(FIRST, "print the cases, the time they need and which would be skipped; run nothing")
    budget: float | None = option(
        FIRST,
        "T",
        "time budget of the session (20m, 2h): every case gets its minimum, the rest goes to the widest intervals",
        values.Seconds(1.0, 604_800.0),
    )
    candidate: tuple[Candidate, ...] = option(
        FIRST,
        "TARGET:NAME=WHAT",
        "measure this side by side with its base, launch by launch in turn, and decide whether it is worse; TARGET is a"
        " switch (another binary's path, config:FILE, mode:NAME, lib:DIR), function:COMPONENT (path, config:FILE),"
        " workload for the endpoints (path, api:API, node:KIND, image:DIR) or host (sysctl:KEY=VALUE); can be repeated",
        default=(),
    )
    duration: float | None = option(
        TIME, "S", "measured seconds of one launch (default: 1)", values.Seconds(0.05, 3600.0), setting="duration_s"
    )
    soak_duration: float | None = option(
        TIME, "S", "seconds of a long run (icbench.soak), or with a unit: 8h (default: 20)", SOAK_LENGTHS
    )
    window: float | None = option(
        TIME, "S", "length of a window in seconds (default: 0.1)", values.Seconds(0.001, 60.0), setting="window_s"
    )
    repeats: int | None = option(
        TIME,
        "N",
        "exactly this many launches a case, whatever the precision (default: at least 6, until it is precise enough)",
        values.count(1, 10_000, "launches"),
        setting="repeats",
    )
    skip: float | None = option(
        TIME,
        "S",
        "discard the first seconds of each launch's measured time (default: 0)",
        values.Seconds(0.0, 3600.0),
        setting="skip_s",
    )
    keep: float | None = option(
        TIME,
        "S",
        "keep this many seconds after the skipped ones and discard the rest (default: all)",
        values.Seconds(0.05, 3600.0),
        setting="keep_s",
    )
    protocol: str | None = option(
        TIME,
        "NAME",
        "quick (6 launches of 0.2 s without a reference link), or as a publication: thesis (a minute, without the first"
        " and last second) or paper (a minute, 20 seconds of it after the first 20); single options still win",
        values.one_of(*PROTOCOLS),
        setting="protocol",
    )
    warmup: float | None = option(
        TIME,
        "S",
        "seconds of traffic before the first window (default: until the rate is stationary)",
        values.Seconds(0.0, 600.0),
        setting="warmup_s",
    )
    max_warmup: float | None = option(
        TIME,
        "S",
        "wait at most this long for a stationary rate, then measure anyway and say so; 0: do not wait (2 unless given)",
        values.Seconds(0.0, 600.0),
        setting="max_warmup_s",
    )
    drain: float | None = option(
        TIME,
        "S",
        "wait at most this long for frames under way after the last window (default: 0.5, where RFC 2544 takes 2)",
        values.Seconds(0.0, 600.0),
        setting="drain_s",
    )
    search_preset: str | None = option(
        SEARCHES,
        "NAME",
        "goals of the searches for ndr and pdr: csit (trials of 1 s), rfc2544 (60 s, no loss), tst009 (60 s, a loss is"
        " verified) or icpe2018 (60 s, for pdr:0.01%%) (default: csit)",
        values.one_of(*PRESETS),
        setting="search_preset",
        applies=_OF_SEARCHES,
    )
    search_width: float | None = option(
        SEARCHES,
        "P",
        "end a search when its bounds are this close, as a share of the upper one (default: the preset's, 0.5%%)",
        values.precision,
        setting="search_width",
        applies=_OF_SEARCHES,
    )
    search_trial: float | None = option(
        SEARCHES,
        "S",
        "length of a search's final trials in seconds (default: the preset's)",
        values.Seconds(0.05, 3600.0),
        setting="search_trial_s",
        applies=_OF_SEARCHES,
    )
    search_sum: float | None = option(
        SEARCHES,
        "S",
        "measure one load of a search for at most this long (default: the preset's, as many trials)",
        values.Seconds(0.05, 3600.0),
        setting="search_sum_s",
        applies=_OF_SEARCHES,
    )
    ring: int = option(HOST, "N", "descriptors a ring, a power of two (default: 256)", values.ring, default=256)
    wait_quiet: float = option(
        HOST,
        "T",
        "before the first case, wait at most this long until no other process uses the CPUs (10m); then go on and"
        " report what was found (default: do not wait)",
        values.Seconds(0.0, 86_400.0),
        default=0.0,
    )
    reference: bool | None = option(
        TIME,
        "yes|no",
        "measure the same endpoints without a switch in between, interleaved, for ratio_to_reference and"
        " to calibrate searches (default: yes)",
        values.boolean,
        setting="reference",
    )
    placement: Literal["auto", "dedicated", "cooperative"] = option(
        HOST,
        "POLICY",
        "auto, dedicated (a core for each thread) or cooperative (endpoints share cores and yield) (default: auto)",
        values.one_of("auto", "dedicated", "cooperative"),
        default="auto",
    )
    frequency: Literal["fix", "keep"] = option(
        HOST,
        "fix|keep",
        "fix sets the governor of the measuring CPUs to performance and turbo off, where the machine has them, and"
        " restores them, and lets them poll instead of halt in a virtual machine; keep leaves them alone (default:"
        " fix)",
        values.one_of("fix", "keep"),
        default="fix",
    )
    precedence: str = option(
        HOST,
        "all|none",
        "precedence of the pollers over other processes of this host: over all of them, or none (default: all)",
        values.one_of("all", "none"),
        default="all",
    )
    node: str = option(
        HOST,
        "KIND",
        "where the workloads run: lxc, netns, oci, podman, docker, vm or a plugin's kind; of two, as lxc+vm, side a has"
        " the first (default: lxc)",
        default="lxc",
    )
    vm_kernel: Path | None = option(
        HOST,
        "FILE",
        "the kernel that nodes of kind vm boot (default: the host's, from /boot)",
        path=True,
    )
    hugepage_size_kib: int | None = option(
        HOST, "SIZE", "size of huge pages: 2M or 1G (default: 2M)", values.hugepage_size_kib, name="hugepage_size"
    )
    node_memory: int | None = option(
        HOST,
        "MIB",
        "bound of the memory of each node in MiB, without its huge pages; at most that of pytest's own control group"
        " (default: half of the host's)",
        values.count(16, 2**31, "MiB"),
    )
    node_pids: int = option(
        HOST,
        "N",
        "bound of the processes and threads of each node; at most that of pytest's own control group (default: 4096)",
        values.count(8, 4_194_304, "processes"),
        default=4096,
    )
    rebuild: bool = flag(HOST, "build switch and nodes again for each launch")
    must_match: tuple[str, ...] = option(
        GATING,
        "LIST",
        "facts that must match before results are compared: patterns over their names; a leading ! excludes"
        " (default: identity.* placement metric rules treatment.node)",
        comparability.parse_patterns,
        default=comparability.DEFAULT,
    )
    save: str | None = option(
        FIRST,
        "NAME",
        "keep the values of this run as a baseline of this name, for each case and host; cases that are not run keep"
        " their values",
        values.baseline_name,
    )
    compare: str | None = option(
        FIRST,
        "NAME",
        "compare with the baseline of this name; thresholds.toml says how much worse a case may be",
        values.baseline_name,
    )
    baselines: Path = option(
        GATING,
        "DIR",
        "where baselines and waivers are (default: baselines/ in the root directory)",
        default=Path("baselines"),
        path=True,
    )
    fail: tuple[str, ...] = option(
        GATING,
        "LIST",
        f"verdicts that fail a test, of {' '.join(BAD)}, or none (default: {' '.join(DEFAULT_FAILING)}); {WEAK} ends"
        f" pytest with {WEAK_STATUS} if the comparison would miss a loss of a tenth more often than not",
        parse_verdicts,
        default=DEFAULT_FAILING,
        name="fail_on",
    )
    exit_codes: bool = flag(
        GATING,
        f"end pytest with {EXIT_STATUS['regressed']} if all failures are {Verdict.REGRESSED}, and with"
        f" {EXIT_STATUS['undecided']} if nothing failed and a case is {alternatives(UNDECIDED)}; 1 then means"
        " broken. --icbench-compare and --icbench-candidate imply it",
    )
    plain_exit_codes: bool = flag(GATING, "end pytest with its own exit status, in a comparison too")
    strict: bool = flag(
        GATING, f"all verdicts but {' and '.join(reversed(GOOD))} fail, and so does what would be skipped"
    )
    require: bool = flag(GATING, "fail a session that measured nothing, because every case was skipped")
    debug: bool = flag(REPORTS, "workloads log every window while they run")
    reports: Path = option(
        REPORTS,
        "DIR",
        "where runs are written (default: reports/ in the root directory)",
        default=Path("reports"),
        path=True,
    )
    budgets: bool = flag(
        REPORTS,
        "end with a table of latency budgets: which functional splits of a radio access network (3GPP TR 38.801) fit on"
        " which path, at which load and size",
    )
    resume: str | None = option(
        REPORTS,
        "RUN",
        "resume an interrupted run (its name below the reports, or its directory): cases that it finished are not run"
        " again; refused if command line, host or versions differ",
    )
    order: str = option(
        TIME,
        "ORDER",
        "the order of cases: given (that of the files), random, or the seed of a random one (default: given)",
        values.order,
        default="given",
    )
    rounds: int = option(
        TIME,
        "N",
        "spread each case's launches over N rounds of the session, each in another random order and on fresh rigs: 3 to"
        " 100, or 1 for each case at once (default: 1)",
        values.rounds,
        default=1,
    )
    turns: bool = option(
        TIME,
        "yes|no",
        "cases take turns, so that their launches lie far apart (default: yes)",
        values.boolean,
        default=True,
    )
    history: Path | None = option(
        REPORTS, "FILE", "append every result to this history, for icbench history and its change points", path=True
    )
    thresholds: Path | None = option(
        GATING, "FILE", "limits (default: thresholds.toml in the directory of the scenario's file)", path=True
    )
    pf: str | None = option(
        HOST,
        "PF",
        "the card whose virtual functions sriov uses: the interface of its physical function, or its PCI address",
        applies=Applies(lambda case: case.switch == "sriov", "no selected case is of sriov"),
    )
    remote: str | None = option(
        HOST,
        "[USER@]HOST",
        "the second host: senders and clients here, their peers there, over the network interfaces of --icbench-uplink;"
        " reached by ssh without a password, as root or with sudo",
        values.host_name,
    )
    remote_python: str | None = option(
        HOST,
        "PATH",
        "the Python with this package on the second host (default: one at the path that it has here, else python3)",
        values.python_path,
    )
    uplink: Mapping[str, Uplink] = option(
        HOST,
        "[HOST=]NIC",
        "the network interface that leads to the second host; with HOST= the one there if its name differs;"
        " several with spaces between; NIC+af_xdp for AF_XDP, a PCI address for DPDK's own driver",
        _parse_uplinks,
        default=MappingProxyType({}),
        applies=Applies(lambda case: case.remote, "no selected case is on two hosts"),
    )
    host_names: bool = flag(HOST, "write the names of the hosts into results")
    topology: Topology | None = option(
        MEASURED,
        "FILE",
        "who the endpoints are and where they run: containers, CPUs, addresses, VFs, hosts (icbench topology 4vs4"
        " writes one to start from)",
        path=True,
    )
    binaries: Mapping[str, Path] = option(
        MEASURED,
        "SWITCH=PATH",
        "a program of a switch, or of a network function (suricata, l3fwd, ip_pipeline), that is not where its driver"
        " looks for it: its path, a directory where it is installed or built (vpp=/opt/vpp), or a version that"
        " icbench get unpacked (vpp=26.06); can be repeated",
        default=MappingProxyType({}),
        name="binary",
        parse_at=values.programs,
    )
    switch_config: Mapping[str, TomlFile] = option(
        MEASURED,
        "SWITCH=FILE",
        "the user's own configuration of a switch, in TOML (docs/reference/switches.md); several with spaces between",
        default=MappingProxyType({}),
        parse_at=values.files,
    )
    function_config: Mapping[str, TomlFile] = option(
        MEASURED,
        "COMPONENT=FILE",
        "the user's own configuration of functions' components (linux, forwarder, ovs, suricata, vpp), in TOML; several"
        " with spaces between",
        default=MappingProxyType({}),
        parse_at=values.files,
    )
    run_files: bool = flag(
        REPORTS,
        "write junit.xml, and report.html with pytest-html, into the run's directory unless --junitxml or --html say"
        " otherwise (default: yes)",
        ini_only=True,
        default=True,
    )
    benchmark: bool = flag(
        REPORTS,
        "show pytest-benchmark's table of the cases, too; without this, an option of pytest-benchmark does",
        ini_only=True,
    )
    given: tuple[str, ...] = ()

    @property
    def has_exit_codes(self) -> bool:
        """Whether regressed, undecided and broken runs have different exit statuses.

        Status 0 then means that no case is undecided.
        """
        asked = self.exit_codes or self.compare is not None or bool(self.candidate)
        return asked and not self.plain_exit_codes

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings that the user gave, by their names in ``Settings``."""
        given = {row.setting: getattr(self, row.field) for row in rows(Options) if row.setting}
        return {name: value for name, value in given.items() if value is not None}

    def node_of(self, case: Case) -> str:
        """Returns the kind of a case's nodes: its candidate's, else its own, else the session's."""
        candidates = (one.value for one in self.candidate if one.kind == "node" and one.name == case.candidate)
        return next(candidates, case.node or self.node)


TABLE = tuple(row for row in rows(Options) if not row.ini_only)
#: The names of settings; markers and calls take them, too.
SETTINGS = tuple(row.name for row in TABLE if row.setting)
#: Ini values without an option.
INI_ONLY = {row.ini: row.help for row in rows(Options) if row.ini_only}


def add_options(parser: pytest.Parser, kind: type[Options] = Options) -> None:
    """Declares the options in their groups, and every ini twin."""
    for title in GROUPS:
        parser.getgroup(title)  # in this order
    for row in rows(kind):
        if not row.ini_only:
            more: dict[str, Any] = {"metavar": row.metavar}
            if row.flag:
                more = {"action": "store_true"}
            elif row.repeated:
                more["action"] = "append"
            parser.getgroup(row.group).addoption(row.option, default=None, dest=row.dest, help=row.help, **more)
        parser.addini(row.ini, _ini_help(row), type="string", default="")


def _ini_help(row: Row) -> str:
    if row.ini_only:
        return row.help
    text = f"the same as {row.option}"
    return text if row.ini != SHOWN_TWIN else f"{text}; each option --icbench-x-y is also an ini value icbench_x_y"


def hide_ini_twins(config: pytest.Config) -> None:
    """Hides the ini twins of options, except for one, from ``--help``, which would list some sixty lines.

    pytest has no interface for this, so its internal list is changed. Without that list the help is only longer.
    """
    shown = getattr(getattr(config, "_parser", None), "_inidict", {})
    for row in rows(Options):
        if not row.ini_only and row.ini != SHOWN_TWIN:
            shown.pop(row.ini, None)


def is_any_given(config: pytest.Config) -> bool:
    """Whether an option or an ini value is given."""
    return any(find_text(config, row) is not None for row in rows(Options))


def find_text(config: pytest.Config, row: Row) -> tuple[str, str] | None:
    """Returns the origin of an option's value and its text; None if it is not given. Raises ``pytest.UsageError``."""
    typed = None if row.ini_only else config.getoption(row.dest, default=None)
    if typed is not None:
        text = "\n".join(typed) if row.repeated else str(typed)
        return row.option, "yes" if typed is True else text
    text = _ini_text(config, row).strip()
    return (row.ini, text) if text else None


def _ini_text(config: pytest.Config, row: Row) -> str:
    """Returns the text of an ini value, of whatever type a TOML file gives it. Raises ``pytest.UsageError``."""
    try:
        with warnings.catch_warnings(action="ignore"):  # pytest's, of a list in [tool.pytest.ini_options]
            value = config.getini(row.ini)
    except (TypeError, pytest.UsageError):  # a type of [tool.pytest] for which addini has none that fits all releases
        assert config.inipath is not None
        document = tomllib.loads(config.inipath.read_text(encoding="utf-8"))
        value = {**document.get("pytest", {}), **document.get("tool", {}).get("pytest", {})}[row.ini]
    if isinstance(value, list) and len(value) > 1 and not row.repeated:
        raise pytest.UsageError(f"{row.ini}: a list of {len(value)} values where one belongs")
    try:
        return as_text(value, row.ini)
    except UsageError as error:
        raise pytest.UsageError(str(error)) from None
