# SPDX-License-Identifier: BSD-3-Clause
"""The options, one row each: name, how its text is read, help. The only place where they are listed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pytest_icbench.config import values
from pytest_icbench.config.sequences import parse_words
from pytest_icbench.model import circumstances, uplink
from pytest_icbench.model.verdict import BAD, DEFAULT_FAILING, EXIT_STATUS, GOOD, UNDECIDED, Verdict, parse_verdicts
from pytest_icbench.wording import alternatives

#: How a setting of the measurement is read from the command line, and its bounds.
DURATION_S = (0.05, 3600.0)
WINDOW_S = (0.001, 60.0)
WARMUP_S = (0.0, 600.0)
DRAIN_S = (0.01, 60.0)
SKIP_S = (0.0, 3600.0)
SOAK_S = (1.0, 2_592_000.0)
MAX_DURATION_S = (0.1, 86_400.0)
BUDGET_S = (1.0, 604_800.0)
MAX_REPEATS = 10_000


def _as_written(text: str, _where: str) -> str:
    return text


@dataclass(frozen=True, slots=True)
class Row:
    """One option.

    Attributes:
        name: of the field in ``Options``; the option is ``--icbench-`` and the name with dashes.
        parse: text and its origin to a value; raises UsageError.
        flag: takes no value on the command line.
        setting: the name in ``measure.Settings``, empty for what is none.
        path: a file or directory.
        repeated: can be given several times; its values are lines (of the ini value, too).
    """

    name: str
    metavar: str
    help: str
    parse: Callable[[str, str], Any] = _as_written
    flag: bool = False
    setting: str = ""
    path: bool = False
    repeated: bool = False

    @property
    def option(self) -> str:
        return "--icbench-" + self.name.replace("_", "-")

    @property
    def dest(self) -> str:
        return f"icbench_{self.name}"

    @property
    def ini(self) -> str:
        return f"icbench_{self.name}"


_SPEC = (
    "SPEC is a list (64 512 or 64,512) or a sequence, from .step .to (64 .32 .256) or from..step..to (64..32..256);"
    " the suffixes k and M are allowed"
)

TABLE: tuple[Row, ...] = (
    Row(
        "switch",
        "LIST",
        "keep only these switches; kernel, dpdk and all are groups (default: what each scenario names)",
        parse_words,
    ),
    Row(
        "packet_size",
        "SPEC",
        "replace the packet sizes of all scenarios: Ethernet frames with FCS in bytes, 64 to 9216. " + _SPEC,
        values.packet_sizes,
    ),
    Row(
        "burst",
        "SPEC",
        "replace the bursts: frames handed over at once, 1 to 1024 and at most --icbench-ring",
        values.bursts,
    ),
    Row(
        "rate",
        "SPEC",
        "replace the rates: max, frames per second and pair (1000, 500k, 1.5M, 1M..1M..20M), ndr or pdr:0.5%% (a search"
        " for the greatest load without loss, or with at most that loss), mfr (the maximum over offered loads)",
        values.rates,
    ),
    Row("pairs", "SPEC", "replace the numbers of sender-receiver pairs, 1 to 254", values.pairs),
    Row(
        "switch_cores",
        "SPEC",
        "replace the numbers of worker cores; left out for switches that have no choice",
        values.cores,
    ),
    Row(
        "api",
        "LIST",
        "replace the API techniques of the endpoints: udp udp-mmsg raw raw-mmsg dpdk af_packet af_xdp, or all;"
        " of these each switch takes those that it can",
        values.apis,
    ),
    Row(
        "port",
        "LIST",
        "replace the port kinds (vhost-user, vhost-user-packed, memif, ...); of these each switch takes those it has",
        parse_words,
    ),
    Row("blocking", "", "blocking sockets, no polling (socket APIs)", values.boolean, flag=True),
    Row("touch", "", "generate and check every payload byte", values.boolean, flag=True),
    Row(
        "precision",
        "P",
        "measure until the 95 %% interval is within this share of the value (default: 3%%)",
        values.precision,
        setting="precision",
    ),
    Row(
        "max_duration",
        "S",
        "measure a case for at most this long, in seconds or with a unit (90, 20m; default: 60, for a search its"
        " preset's: csit 2m, rfc2544 and icpe2018 1h, tst009 2h)",
        values.seconds(*MAX_DURATION_S),
        setting="max_duration_s",
    ),
    Row(
        "budget",
        "T",
        "share this much time out over all cases: each gets its least, the rest goes where it narrows most (20m, 2h)",
        values.seconds(*BUDGET_S),
    ),
    Row(
        "duration",
        "S",
        "measured seconds of one launch (default: 1)",
        values.seconds(*DURATION_S),
        setting="duration_s",
    ),
    Row(
        "soak_duration",
        "S",
        "seconds of a long run (icbench.soak), or with a unit: 8h (default: 20)",
        values.seconds(*SOAK_S),
    ),
    Row("window", "S", "length of a window in seconds (default: 0.1)", values.seconds(*WINDOW_S), setting="window_s"),
    Row(
        "repeats",
        "N",
        "exactly this many launches a case, whatever the precision (default: at least 6, until it is precise enough)",
        values.count(1, MAX_REPEATS, "launches"),
        setting="repeats",
    ),
    Row(
        "skip",
        "S",
        "discard the first seconds of each launch's measured time (default: 0)",
        values.seconds(*SKIP_S),
        setting="skip_s",
    ),
    Row(
        "keep",
        "S",
        "keep this many seconds after the skipped ones and discard the rest (default: all)",
        values.seconds(*DURATION_S),
        setting="keep_s",
    ),
    Row(
        "protocol",
        "NAME",
        "measure and discard as a publication did: thesis (a minute, without the first and last second) or paper"
        " (a minute, 20 seconds of it after the first 20); single options still win",
        values.one_of("thesis", "paper"),
        setting="protocol",
    ),
    Row(
        "warmup",
        "S",
        "exactly so many seconds of traffic before the first window (default: until the rate is stationary)",
        values.seconds(*WARMUP_S),
        setting="warmup_s",
    ),
    Row(
        "max_warmup",
        "S",
        "wait at most this long for a stationary rate, then measure what there is and say so; 0: do not wait"
        " (2 if nothing is said)",
        values.seconds(*WARMUP_S),
        setting="max_warmup_s",
    ),
    Row(
        "drain",
        "S",
        "wait at most this long for frames under way after the last window (default: 0.5, where RFC 2544 takes 2)",
        values.seconds(*DRAIN_S),
        setting="drain_s",
    ),
    Row(
        "search_preset",
        "NAME",
        "goals of the searches for ndr and pdr: csit (trials of 1 s), rfc2544 (60 s, no loss), tst009 (60 s, a loss is"
        " verified) or icpe2018 (60 s, for pdr:0.01%%) (default: csit)",
        values.one_of("csit", "rfc2544", "tst009", "icpe2018"),
        setting="search_preset",
    ),
    Row(
        "search_width",
        "P",
        "end a search when its bounds are this close, as a share of the upper one (default: the preset's, 0.5%%)",
        values.precision,
        setting="search_width",
    ),
    Row(
        "search_trial",
        "S",
        "length of a search's final trials in seconds (default: the preset's)",
        values.seconds(*DURATION_S),
        setting="search_trial_s",
    ),
    Row(
        "search_sum",
        "S",
        "measure one load of a search for at most this long (default: the preset's, as many trials)",
        values.seconds(*DURATION_S),
        setting="search_sum_s",
    ),
    Row("ring", "N", "descriptors a ring, a power of two (default: 256)", values.ring),
    Row(
        "reference",
        "yes|no",
        "measure the same endpoints without a switch in between, interleaved, for ratio_to_reference and"
        " to calibrate searches (default: yes)",
        values.boolean,
        setting="reference",
    ),
    Row(
        "placement",
        "POLICY",
        "auto, dedicated (a core for each thread) or cooperative (endpoints share cores and yield) (default: auto)",
        values.one_of("auto", "dedicated", "cooperative"),
    ),
    Row(
        "frequency",
        "fix|keep",
        "fix sets the governor of the CPUs that measure to performance and turbo off, where the machine has them, and"
        " puts them back; keep leaves them alone (default: fix)",
        values.one_of("fix", "keep"),
    ),
    Row("node", "KIND", "where the workloads run: lxc or netns (default: lxc)", values.one_of("lxc", "netns")),
    Row("hugepage_size", "SIZE", "size of huge pages: 2M or 1G (default: 2M)", values.hugepage_size_kib),
    Row("fresh", "", "build switch and nodes anew for each launch", values.boolean, flag=True),
    Row(
        "incomparable",
        "LIST",
        "facts around a result that have to be the same in a comparison: patterns over their names, ! takes out again"
        " (default: identity.* placement metric rules treatment.node)",
        circumstances.parse_patterns,
    ),
    Row(
        "save",
        "NAME",
        "keep the figures of this run as a baseline of this name, for each case and host; cases that are not run keep"
        " what they had",
        values.baseline_name,
    ),
    Row(
        "compare",
        "NAME",
        "compare with the baseline of this name; how much worse a case may be stands in thresholds.toml",
        values.baseline_name,
    ),
    Row("baselines", "DIR", "where baselines and waivers are (default: baselines/ in the root directory)", path=True),
    Row(
        "fail",
        "LIST",
        f"verdicts that fail a test, of {' '.join(BAD)}, or none (default: {' '.join(DEFAULT_FAILING)})",
        parse_verdicts,
    ),
    Row(
        "exit_codes",
        "",
        f"end pytest with {EXIT_STATUS['regressed']} if all that failed is {Verdict.REGRESSED}, and with"
        f" {EXIT_STATUS['undecided']} if nothing else is wrong but a case is {alternatives(UNDECIDED)}; 1 then means"
        " broken",
        values.boolean,
        flag=True,
    ),
    Row(
        "strict",
        "",
        f"all verdicts but {' and '.join(reversed(GOOD))} fail, and so does what would be skipped",
        values.boolean,
        flag=True,
    ),
    Row(
        "plan",
        "",
        "print the cases, the time they need and which would be skipped; run nothing",
        values.boolean,
        flag=True,
    ),
    Row("debug", "", "workloads log every window while they run", values.boolean, flag=True),
    Row("reports", "DIR", "where runs are written (default: reports/ in the root directory)", path=True),
    Row(
        "resume",
        "RUN",
        "go on with an interrupted run (its name below the reports, or its directory): what it had finished is taken"
        " from it; refused if command line, host or versions are others",
    ),
    Row("history", "FILE", "append every result to this history, for icbench history and its change points", path=True),
    Row("thresholds", "FILE", "limits (default: thresholds.toml beside the scenario's file)", path=True),
    Row(
        "pf",
        "PF",
        "the card whose virtual functions sriov uses: the interface of its physical function, or its PCI address",
    ),
    Row(
        "remote",
        "[USER@]HOST",
        "the second host: senders and clients here, their peers there, over the network interfaces of --icbench-uplink;"
        " reached by ssh without a password, as root or with sudo",
        values.host_name,
    ),
    Row(
        "remote_python",
        "PATH",
        "the Python with this package on the second host (default: one at the path that it has here, else python3)",
        values.python_path,
    ),
    Row(
        "uplink",
        "[HOST=]NIC",
        "the network interface that leads to the second host, and with HOST= the one there if it has another name;"
        " several with spaces between; NIC+af_xdp for AF_XDP, a PCI address for DPDK's own driver",
        uplink.parse_all,
    ),
    Row("host_names", "", "write the names of the hosts into results", values.boolean, flag=True),
    Row(
        "topology",
        "FILE",
        "who the endpoints are and where they run: containers, CPUs, addresses, VFs, hosts (icbench topology 4vs4"
        " writes one to start from)",
        path=True,
    ),
    Row("testpmd", "PATH", "dpdk-testpmd that is not on PATH", path=True),
    Row("ovs", "PATH", "ovs-vswitchd (built with DPDK) that is not on PATH", path=True),
    Row(
        "switch_config",
        "SWITCH=FILE",
        "the user's own configuration of a switch, in TOML (docs/switches.md); several with spaces between",
        values.assignments,
    ),
    Row(
        "variant",
        "SWITCH:NAME=WHAT",
        "measure this beside what there is, launch by launch in turn, and decide whether it is worse: the path of"
        " another binary, config:FILE, or variant:NAME for another of the switch's own variants; workload:NAME=PATH for"
        " another workload; can be repeated",
        repeated=True,
    ),
    Row("vpp", "PATH", "vpp that is not on PATH", path=True),
    Row("snabb", "PATH", "snabb that is not on PATH", path=True),
    Row("basicfwd", "PATH", "DPDK's skeleton example (basicfwd) that is not where the set-up built it", path=True),
)

#: Options that name a binary; the key under which a switch finds it.
BINARIES = ("testpmd", "ovs", "basicfwd", "vpp", "snabb")

#: Ini values without an option.
INI_ONLY = {
    "icbench_run_files": "write junit.xml, and report.html with pytest-html, into the run's directory"
    " unless --junitxml or --html say otherwise",
}
