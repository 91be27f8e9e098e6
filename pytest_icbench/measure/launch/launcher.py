# SPDX-License-Identifier: BSD-3-Clause
"""Runs one launch: starts fresh processes for all pairs together, reads their output to the end, and judges it.

Every wait has a bound. No process of the launch survives it, whatever happens.
"""

from __future__ import annotations

import itertools
import logging
import math
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NoReturn

from pytest_icbench.driver.workload.command import NO_INVARIANT_CLOCK, exit_meaning
from pytest_icbench.driver.workload.executable import workload_path
from pytest_icbench.errors import Invalid, WorkloadError
from pytest_icbench.measure.launch import acl_drops, hops, validity
from pytest_icbench.measure.launch import windows as assemble
from pytest_icbench.measure.launch.commands import commands, launch_plan
from pytest_icbench.measure.launch.culprit import switch_first
from pytest_icbench.measure.launch.disturbance import StealTrack, beside_cpu_states, why_disturbed
from pytest_icbench.measure.launch.processes import LaunchOutput, both_ways, workload_error
from pytest_icbench.measure.launch.stationarity import Settling, SettlingTimes
from pytest_icbench.measure.launch.switch_work import Ports, WorkTrack, ports_between
from pytest_icbench.measure.launch.windows import WindowStream
from pytest_icbench.measure.measured_rig import MeasuredRig
from pytest_icbench.model.case import Case
from pytest_icbench.model.codec import DamagedData
from pytest_icbench.model.interference import Interference
from pytest_icbench.model.launch import Launch, Window
from pytest_icbench.model.settings import Settings
from pytest_icbench.verdict_reasons import PATH_REASONS


class Freezing:
    """The schedule of one launch; nothing happens for a load that freezes no function.

    ``due``: when the next change is due, by ``time.monotonic``; inf if none is.
    """

    def __init__(self, rig: MeasuredRig, case: Case, settings: Settings) -> None:
        trace = case.rate.trace
        self._trace = trace if trace is not None and trace.freezes else None
        self._rig, self._pairs, self._window_s = rig, case.pairs, settings.window_s
        self._first_window = self.due = math.inf
        self._second = 0

    def begin(self) -> None:
        """Freezes those of the first second, for the warm-up too."""
        self._freeze(0)

    def follow(self, first_window: float) -> None:
        """Takes note of when the first second begins, by ``time.monotonic``."""
        if self._trace is not None:
            self._first_window, self.due = first_window, first_window + 1

    def step(self, now: float) -> float:
        """Does what is due; returns the seconds that it took."""
        if self._trace is None or now < self.due:
            return 0.0
        self._second += 1
        self.due = self._first_window + self._second + 1 if self._second + 1 < self._trace.seconds else math.inf
        self._freeze(self._second)
        return time.monotonic() - now

    def end(self) -> None:
        """Lets all run. Idempotent."""
        if self._trace is not None:
            self.due = math.inf
            self._rig.freeze(())

    def awaits(self, window: Window) -> bool:
        """Whether the function of a window's pair ran, so that its frames should arrive."""
        second = int((window.number - 1) * self._window_s + 1e-9)
        return self._trace is None or window.pair not in self._trace.frozen(second, self._pairs)

    def _freeze(self, second: int) -> None:
        if self._trace is not None:
            self._rig.freeze(self._trace.frozen(second, self._pairs))


#: The switch's cycles are read this long before the first window, and before the senders end, while they all send.
BUSY_MARGIN_S = 0.03
#: The rest ends this long after the last frame is due, in seconds: its answer is on the way.
REST_S = 0.005


@dataclass(slots=True)
class Moments:
    """Moments of a launch at which the harness does something, in seconds of CLOCK_MONOTONIC.

    Between them it rests, since it may share an endpoint's CPU. Lines wait in the pipes meanwhile, and only the end of
    a process wakes it early.

    Attributes:
        first_window, senders_end: begin of the first window, and end of the last one.
        rests_until: until then no line is read; -inf if each is read when it comes.
        samples: when the switch's work is read.
        deadline: when a launch that is not over hangs.
        check_at: when the switch is checked next.
        stop_at: when followers are stopped: None while leaders run, inf once the followers were asked.
    """

    first_window: float = math.inf
    senders_end: float = math.inf
    rests_until: float = -math.inf
    samples: list[float] = field(default_factory=list)
    deadline: float = math.inf
    check_at: float = math.inf
    stop_at: float | None = None

    @classmethod
    def of(cls, begin: float, settings: Settings, *, watched: bool, pings: bool) -> Moments:
        """Returns the moments of a launch that begins at ``begin``.

        Args:
            watched: whether each line is awaited, because any may be the one after which the launch ends.
            pings: whether all frames are answered. The switch is then read after the last frame, because it may answer
                on a CPU of the path.
        """
        first_window = begin + settings.warmup_s
        senders_end = first_window + settings.sending_s
        fewest_s = settings.duration_s if settings.settles else settings.sending_s
        rests_until = -math.inf if watched or settings.debug else first_window + fewest_s + REST_S
        last = senders_end + REST_S if pings else senders_end - BUSY_MARGIN_S
        first = first_window - min(BUSY_MARGIN_S, settings.warmup_s / 2)
        return cls(first_window, senders_end, rests_until, [first, last])

    def quiet(self, now: float) -> bool:
        """Whether the harness rests."""
        return now < self.rests_until

    def next_after(self, now: float, *others: float) -> float:
        """Returns when the harness wakes after ``now``, at the first of the ``others`` at the latest."""
        wakes = [self.deadline, *self.samples[:1], *others]
        if self.stop_at is not None:
            wakes.append(self.stop_at)
        wakes += [self.rests_until, self.check_at] if self.quiet(now) else [now + TICK_S]
        return min(wakes)


log = logging.getLogger(__name__)

#: Longest time until processes are ``ready``, and at least for each on one CPU: DPDK takes a second of it, a link ten.
READY_TIMEOUT_S, READY_EACH_S = 15.0, 1.0
#: A process that has not ended this long after it should have hangs.
END_MARGIN_S = 3.0
#: A sender that says nothing for this long (or five windows) hangs.
SILENCE_S = 3.0
#: Share of the time that a process waits for its CPU from which that is why it says nothing.
STARVED_SHARE = 0.5
#: Longest wait for a line once frames are no longer sent, in seconds.
TICK_S = 0.25
#: How often a long launch reads lines while frames are sent, and checks whether the switch is alive, in seconds. A
#: launch of one second is not disturbed.
CHECK_S = 2.0
#: Remedy for a clock that is not invariant.
CLOCK_REMEDY = "measure on another machine, or let the hypervisor pass the flag invtsc"
#: All processes have read their start line after this.
START_DELAY_S = 0.02
#: Time between the end of a client and the stop of its server, in seconds.
FOLLOWER_GRACE_S = 0.2
#: A client sends what it owes until it is this late (docs/reference/workload.md), in seconds.
CLIENT_BACKLOG_S = 2.0

#: Numbers of launches, of all rigs.
_LAUNCHES = itertools.count()

#: Called with the frames received per second in the newest window over all pairs.
OnRate = Callable[[float], None]


def run_launch(
    rig: MeasuredRig,
    case: Case,
    settings: Settings,
    *,
    index: int = 0,
    on_rate: OnRate | None = None,
    executable: Path | None = None,
) -> Launch:
    """Runs one launch of a case on a rig.

    Args:
        index: number of the launch in its case, from 0.
        on_rate: called with the rate of each new window.
        executable: the workload; the installed one by default.

    Raises:
        WorkloadError: a process failed, hangs (both with the tail of its log), or wrote a line that
            docs/reference/workload.md does not define.
        ProvisionError: the switch is dead; with the tail of its log.
        Invalid: the machine has no invariant clock.
    """
    return beside_cpu_states(rig, lambda: Run(rig, case, settings, on_rate).run(index, executable))


class Run:
    """A launch in progress; ``launch_output`` has the output of its processes."""

    def __init__(
        self,
        rig: MeasuredRig,
        case: Case,
        settings: Settings,
        on_rate: OnRate | None = None,
        *,
        enough: Callable[[LaunchOutput], bool] | None = None,
    ) -> None:
        """Prepares a launch, which ends early once ``enough`` returns True for the output so far."""
        self.rig = rig
        self.case = case
        self.settings = settings if case.one_way else settings.for_histograms
        self.on_rate = on_rate
        self.ended_early_s: float | None = None
        self.commands = commands(rig, case, self.settings, next(_LAUNCHES))
        self.launch_output = LaunchOutput(self.commands)
        self.settling: Settling | None = None
        if enough is None and self.settings.settles:
            rates = case.one_way
            self.settling = (
                Settling(self.settings) if rates else SettlingTimes(self.settings, self.launch_output, self._restart)
            )
        self.enough = enough if self.settling is None else self.settling.enough
        self.away = rig.placement.away
        self.cpus = [-1 if index in self.away else command.cpu for index, command in self.commands.items()]
        self.patience_s = max(READY_TIMEOUT_S, READY_EACH_S * max(map(self.cpus.count, self.cpus)))
        self.steal = StealTrack([cpu for cpu in self.cpus if cpu >= 0])
        self.id = ""
        self.work = WorkTrack(rig.busy, lambda: rig.hardware(self.id), rig.batches, rig.check)
        #: The switch's counters before the launch and after it; a preflight does not read them.
        self.counted: list[Ports] = []
        self.counts = enough is None
        #: Those of the functions in a chain, likewise. What a server answers comes back by another way.
        self.hops: list[hops.Counters] = []
        self.counts_hops = self.counts and case.counts_hops and case.one_way
        self.interference: Interference | None = None
        self.freezing = Freezing(rig, case, self.settings)
        self.moments = Moments()
        self.last_line_at: dict[int, float] = {}
        #: When the newest poll began. Time limits compare with it, because the harness may be kept off its CPU, too.
        self.polled_at = 0.0
        self.stream: WindowStream | None = None

    def run(self, index: int, executable: Path | None) -> Launch:
        if executable is None:
            executable = workload_path()
        began = time.monotonic()
        if self.settings.stream is not None:
            self.stream = WindowStream(Path(self.settings.stream))
        with switch_first(self.rig):
            self.id = self.rig.launch(launch_plan(self.commands, executable, self.patience_s))
        try:
            with switch_first(self.rig):
                self._until_ready(began + self.patience_s)
                self._count()
                self.freezing.begin()
                started_at = time.time() + START_DELAY_S
                asked_ns = self.rig.start(self.id, START_DELAY_S)
                # Earlier lines are no sign of life: the harness itself may have been kept off its CPU since.
                self.last_line_at = dict.fromkeys(self.launch_output.outputs, time.monotonic())
                over = self._until_over(asked_ns)
                if self.counts:
                    self.interference = self.rig.interference(self.id)
                self._count()
        finally:
            with ExitStack() as ends:  # the last one first, whichever of them fails
                if self.stream is not None:
                    ends.callback(self.stream.close)
                ends.callback(self.rig.end, self.id)
                self.freezing.end()
        self.rig.check()
        sent_s = self.settings.warmup_s + self.settings.sending_s
        if self.ended_early_s is not None:
            sent_s = min(sent_s, self.ended_early_s - asked_ns / 1e9)
        drained = over - (asked_ns / 1e9 + sent_s)
        measured = sent_s + min(max(drained, 0.0), self.settings.drain_s)
        return self._judged(index, started_at, asked_ns, lambda: time.monotonic() - began - measured)

    def _count(self) -> None:
        """Reads the switch's counters; outside of all windows, because some switches are read by programs."""
        if self.counts:
            self.counted.append(self.work.ask(self.rig.counters))
        if self.counts_hops:
            self.hops.append(hops.at_rest(self.rig.functions))

    def _poll(self, timeout_s: float, *, quiet: bool = False) -> None:
        self.polled_at = time.monotonic()
        polled = self.rig.poll(self.id, max(timeout_s, 0.0), quiet)
        now = time.monotonic()
        if quiet:  # lines are read after the wait
            self.polled_at = min(self.polled_at + timeout_s, now)
        try:
            windows = self.launch_output.take(polled)
        except DamagedData as error:
            raise WorkloadError(str(error)) from None
        for index, _ in polled.lines:
            self.last_line_at[index] = now
        self._check_processes()
        if windows:
            self._tell_rate()
            if self.stream is not None:
                self.stream.take(windows)
            if self.settings.debug:
                for line in windows:
                    log.info("%s", line)

    def _check_processes(self) -> None:
        """Raises Invalid or WorkloadError if a process has failed."""
        failed = self.launch_output.failed()
        if failed is None:
            return
        if failed.exit_code == NO_INVARIANT_CLOCK:
            raise Invalid("clock", f"{failed.name} {exit_meaning(failed.exit_code)}: {CLOCK_REMEDY}")
        tail = self.rig.log_tail(self.id, failed.index)
        raise workload_error(str(failed.failure()), tail, crashed=failed.crashed)

    def _tell_rate(self) -> None:
        if self.on_rate is None:
            return
        receivers = [output for output in self.launch_output.outputs.values() if output.receives]
        newest = [output.windows[max(output.windows)] for output in receivers if output.windows]
        self.on_rate(sum(line.received.received for line in newest if line.received) / self.settings.window_s)

    def _until_ready(self, deadline: float) -> None:
        while not self.launch_output.ready:
            if self.polled_at >= deadline:
                self._give_up("ready", f"not ready within {self.patience_s:g} s")
            self._poll(min(TICK_S, deadline - time.monotonic()))

    def _give_up(self, line: Literal["ready", "summary"], sentence: str) -> NoReturn:
        missing = self.launch_output.missing(line)
        names = ", ".join(output.name for output in missing)
        why = f"; {self._why_hangs(missing[0].index)}" if line == "summary" else ""
        raise workload_error(f"{names}: {sentence}{why}", self.rig.log_tail(self.id, missing[0].index))

    def _until_over(self, asked_ns: int) -> float:
        """Polls until every process wrote its summary; returns when the last came, in seconds of CLOCK_MONOTONIC."""
        watched = self.enough is not None and self.settling is None
        self.moments = moments = Moments.of(asked_ns / 1e9, self.settings, watched=watched, pings=self._pings)
        # A client waits for its last answers, then its server drains: twice the drain.
        moments.deadline = moments.senders_end + self._backlog_s + 2 * self.settings.drain_s + END_MARGIN_S
        moments.check_at = time.monotonic() + CHECK_S
        self.freezing.follow(moments.first_window)
        while not self.launch_output.over:
            now = time.monotonic()
            self._do_due(now)
            self._check_time()
            if self.enough is not None and self.enough(self.launch_output):
                self._end_early()
            self._stop_followers(now)
            self._poll(moments.next_after(now, self.freezing.due) - now, quiet=moments.quiet(now))
        self.steal.sample(time.monotonic_ns())
        return time.monotonic()

    def _do_due(self, now: float) -> None:
        """Does what is due. The deadline moves by the time that it took, if no process was polled meanwhile."""
        moments = self.moments
        if now >= moments.check_at:
            self.rig.check()
            moments.check_at = now + CHECK_S
        self.steal.sample(time.monotonic_ns())
        moments.deadline += self.freezing.step(now)
        if moments.samples and now >= moments.samples[0]:
            moments.samples.pop(0)
            moments.deadline += self._sample_work()

    def _check_time(self) -> None:
        """Raises WorkloadError if a process hangs: it is not over in time, or sends nothing while it should."""
        senders_end = self.moments.senders_end
        if self.polled_at >= self.moments.deadline:
            late = self.polled_at - senders_end
            self._give_up("summary", f"still running {late:.1f} s after the measured time")
        self._check_silence(self.polled_at, senders_end)

    def _end_early(self) -> None:
        """Ends a launch whose output is enough: all its processes, or of round trips the clients."""
        self.enough = None
        if self.moments.samples and self.settling is not None:
            self.moments.samples.clear()
            self.moments.deadline += self._sample_work()
        self.ended_early_s = time.monotonic()
        self.launch_output.stop_early()
        # A server has to answer the requests under way; it is stopped after its client has ended.
        self._tell("stop\n", leaders_only=self.case.round_trips)

    def _stop_followers(self, now: float) -> None:
        """Stops the processes that follow, some time after those that lead have ended."""
        moments = self.moments
        if self.launch_output.leaders_over and moments.stop_at is None:
            moments.stop_at = now + self._grace
            self.freezing.end()
            # Senders may end late on a busy host: followers have their time from then on, to drain among it.
            moments.deadline = max(moments.deadline, moments.stop_at + self.settings.drain_s + END_MARGIN_S / 2)
        if moments.stop_at is None:
            return
        if self.launch_output.only_servers and math.isfinite(moments.stop_at):
            moments.stop_at = min(moments.stop_at, now + FOLLOWER_GRACE_S)
        if now >= moments.stop_at:
            self.rig.tell(self.id, "stop\n")
            moments.stop_at = math.inf

    def _sample_work(self) -> float:
        """Samples the switch's work; returns how long that took: no process is polled meanwhile."""
        began = time.monotonic()
        self.work.sample()
        return time.monotonic() - began

    @property
    def _backlog_s(self) -> float:
        """How long a client that is behind its schedule goes on after its last window."""
        return CLIENT_BACKLOG_S if self.case.round_trips else 0.0

    @property
    def _grace(self) -> float:
        """How long followers may run on by themselves: a receiver drains, but a server has nothing to wait for."""
        return FOLLOWER_GRACE_S if self._pings else self.settings.drain_s + END_MARGIN_S / 2

    @property
    def _pings(self) -> bool:
        """Whether all frames are answered."""
        return self.case.round_trips and not self.case.mixed

    def _restart(self) -> None:
        """Makes clients begin their histograms anew."""
        self._tell("measure\n", leaders_only=True)
        self.moments.rests_until = time.monotonic() + self.settings.duration_s

    def _tell(self, text: str, *, leaders_only: bool) -> None:
        if not leaders_only:
            self.rig.tell(self.id, text)
            return
        for output in self.launch_output.outputs.values():
            if output.leads:
                self.rig.tell(self.id, text, output.index)

    def _check_silence(self, now: float, senders_end: float) -> None:
        if now >= senders_end:
            return
        patience = max(SILENCE_S, 5 * self.settings.window_s + self.settings.warmup_s) + self._backlog_s
        for output in self.launch_output.outputs.values():
            silent = now - self.last_line_at.get(output.index, now)
            if output.leads and not output.over and silent > patience:
                sentence = f"said nothing for {silent:.1f} s while it should send; {self._why_hangs(output.index)}"
                raise workload_error(f"{output.name} {sentence}", self.rig.log_tail(self.id, output.index))

    def _why_hangs(self, index: int) -> str:
        """Returns why a process says nothing: it waits for a CPU that others have, or it hangs."""
        seen = self.rig.interference(self.id) if self.counts else None
        if seen is None or seen.waited_by != f"endpoint {index}" or (seen.waited or 0.0) < STARVED_SHARE:
            return "it hangs"
        return f"it did not get its CPU, so nothing is claimed: {seen.words}"

    def _judged(self, index: int, started_at: float, asked_ns: int, overhead: Callable[[], float]) -> Launch:
        outputs = list(self.launch_output.outputs.values())
        couples = [pair for pair in both_ways(self.case.path.by_pair(outputs)) if pair[0].pair in self.case.measured]
        matched = [window for couple in couples for window in assemble.match_windows(*couple, self.settings)]
        matched = assemble.by_one_clock(matched, self.case, self.away)
        placement = self.rig.placement
        # Without a CPU for the rest the harness takes turns with an endpoint, which says nothing about the host.
        dedicated = placement.policy == "dedicated" and not {*placement.service} & {*placement.local}
        if self.settling is not None:
            matched = self.settling.keep(matched)
        endpoints = tuple(
            assemble.endpoint_work(o, [w for w in matched if w.account == (o.pair, o.direction)]) for o in outputs
        )
        kept_s = assemble.kept_s(matched)
        disturbed = why_disturbed(self.interference, endpoints, kept_s, shared=placement.shared)
        windows = tuple(
            assemble.mark_disturbed(
                matched, self.steal, self.cpus, dedicated=dedicated, throughout=disturbed is not None
            )
        )
        pairs = tuple(
            assemble.count_pair(*couple, [w for w in windows if w.account == (couple[0].pair, couple[0].direction)])
            for couple in couples
        )
        awaited = list(filter(self.freezing.awaits, windows))
        invalid = validity.judge_launch(outputs, windows, awaited, asked_ns=asked_ns, warmup_s=self.settings.warmup_s)
        chains, contradiction = hops.of_launch(self.hops, self.case, self.case.path.by_pair(outputs))
        if invalid is not None and invalid[0] in PATH_REASONS and self.hops:
            lost = sum(pair.lost for pair in pairs)
            invalid = None if hops.full_tables_explain(self.hops[0], self.hops[-1], lost) else invalid
        if (fault := acl_drops.fault(self.case, self.rig.terms, couples, self.hops)) is not None:
            invalid = "function", fault
        if invalid is None and contradiction is not None:
            invalid = "accounts", contradiction
        if invalid is None and self.rig.untimed is not None:
            invalid = "emulated", self.rig.untimed
        throughput = sum(pair.throughput_pps for pair in pairs)
        tsc_hz = next((output.hello.tsc_hz for output in outputs if output.hello), None)
        work = self.work.between(throughput, tsc_hz)
        trips = assemble.round_trips(couples, pairs, self.case.burst)
        return Launch(
            index=index,
            started_at=started_at,
            duration_s=kept_s,
            overhead_s=overhead(),
            throughput_pps=throughput,
            offered_pps=sum(pair.offered_pps for pair in pairs),
            steal_share=self.steal.share,
            generator_bound=validity.generator_bound(self.case, windows),
            pairs=pairs,
            rtt=trips.rtt,
            rtt_actual=trips.rtt_actual,
            rtt_first=trips.rtt_first,
            pdv=trips.pdv,
            busy_share=work.busy_share,
            cycles_per_packet=work.cycles_per_packet,
            hardware=dict(work.hardware or {}),
            vectors_per_call=work.vectors_per_call,
            frames_by_core=work.frames_by_core,
            wakeups_per_s=work.wakeups_per_s,
            tsc_hz=tsc_hz,
            endpoints=endpoints,
            invalid=invalid[0] if invalid else None,
            evidence=invalid[1] if invalid else None,
            windows=windows,
            discarded_s=self.settling.discarded_s if self.settling else 0.0,
            stationary=self.settling.stationary if self.settling else None,
            switch_counters=ports_between(*self.counted) if self.counts else None,
            chains=chains,
            interference=self.interference,
            disturbed=disturbed,
        )
