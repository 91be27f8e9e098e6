# SPDX-License-Identifier: BSD-3-Clause
"""Runs launches of a case and of its reference link until the interval of the figure is narrow enough."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TypeVar

from pytest_icbench.errors import ConnectionLost, Invalid, ProvisionError, WorkloadError
from pytest_icbench.measure.case_progress import OnProgress, Phase, Progress
from pytest_icbench.measure.estimate import LAUNCHES_A_TURN
from pytest_icbench.measure.functions import FunctionTrack
from pytest_icbench.measure.launch.culprit import look_at_the_switch
from pytest_icbench.measure.launch.launcher import run_launch
from pytest_icbench.measure.launch.preflight import preflight
from pytest_icbench.measure.measured_rig import MeasuredRig
from pytest_icbench.measure.side import Side
from pytest_icbench.measure.stopping import MOST_FOR_A_STATE, fewest_launches, why_stop
from pytest_icbench.measure.summary.launch_log import LaunchLog, fullest, in_state, main_figure, split_by_state
from pytest_icbench.measure.summary.summarize import Environment
from pytest_icbench.model.case import Case
from pytest_icbench.model.launch import Launch
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.settings import Settings
from pytest_icbench.stats.states import same_state
from pytest_icbench.verdict_reasons import HARNESS_REASONS, PATH_REASONS

T = TypeVar("T")

#: The most faults of the harness that a case survives.
MOST_FAULTS = 2
#: The most launches of a case that are repeated because they were disturbed, and the share of its time for them.
MOST_DISTURBED, DISTURBED_TIME = 3, 0.25
#: The share of a case's time that it waits for a state of the host, and the time between two looks, in seconds.
AWAITED_TIME, LOOK_S = 0.25, 0.1
#: Estimated time for starting and ending a launch's processes, until the first one was timed, in seconds.
TYPICAL_OVERHEAD_S = 0.5


def _end_of(rig: MeasuredRig, error: ProvisionError) -> Invalid:
    """Returns INVALID, with the end of the log, after an error of a built rig: its switch died or stalled."""
    try:
        look_at_the_switch(rig)
    except ConnectionLost:
        raise
    except ProvisionError as death:
        return Invalid("died", str(death))
    return Invalid("stalled", _with_fault(rig, "stalled", str(error)))


class Strategy:
    """Runs the launches of one case; ``gathered`` has their results.

    Args:
        measured: the case on its rig.
        reference: the reference on its rig; None: the case is measured alone.
    """

    #: Text for the progress instead of the launch's number.
    detail: str | None = None
    #: Launches of the case, and as many of its reference, before the two change places.
    a_turn = 1

    def __init__(
        self,
        measured: Side,
        reference: Side | None,
        settings: Settings,
        on_progress: OnProgress | None = None,
    ) -> None:
        self._sides = measured, reference or measured
        self.rig = measured.rig
        self.reference_rig = None if reference is None else reference.rig
        self.case, self.reference = (side.launched for side in self._sides)
        self.case_id = measured.case.id
        self.settings = settings
        self.on_progress = on_progress
        self.began = time.monotonic()
        self.gathered = LaunchLog(started_at=time.time())
        self.clock_ahead_s = time.time() - self.began
        self.running: MeasuredRig | None = self.rig
        self.used: set[int] = set()
        self.seen: set[int] = set()
        self.repeated_s = 0.0
        #: Turns so far, and when the last one of a case ended whose turns others follow.
        self.turns = 0
        self.left_at: float | None = None
        #: Launches of earlier rounds.
        self.before = 0
        #: The round that this is of its case; None: it is all of it.
        self.part: Part | None = None
        #: Number of the rigs of this case, where several are built one after the other.
        self.round: int | None = None
        self.functions = FunctionTrack(self.rig, self.case)

    def run(self) -> None:
        self._step(self._all)

    def _all(self) -> bool:
        self._rounds()
        return True

    def _step(self, step: Callable[[], bool]) -> bool:
        """Runs launches. Returns whether the case is over: the step returns that, or it is INVALID."""
        try:
            over = step()
            if over and (case_ran := self.gathered.launches):
                self._turn_to(self.rig)
                self._asked(lambda: self.functions.finish(case_ran))
        except Invalid as invalid:
            self.gathered.invalid = invalid.reason, invalid.evidence
            self.gathered.ended_by = "invalid"
            over = True
        if over:
            self._end()
        return over

    def _end(self) -> None:
        self.gathered.duration_s += self._elapsed()
        self.gathered.clock_step_s += time.time() - time.monotonic() - self.clock_ahead_s

    def run_and_leave(self) -> None:
        """Runs the launches. Leaves the rigs in the state that callers expect, after an error, too."""
        with self._leaving():
            self.run()

    def take_turn(self) -> bool:
        """Runs the launches of one turn. Before and after it, the case's rig runs and its reference is paused.

        The time between two turns does not count as time of the case. Returns whether the case is over.
        """
        with self._leaving():
            over = self._step(self._next_turn)
        self.left_at = time.monotonic()
        return over

    def _next_turn(self) -> bool:
        if self.left_at is None:
            self._begin()
            return self._turn()
        self.began += time.monotonic() - self.left_at
        self.left_at = None
        # One that was closed meanwhile, to make room, was built anew.
        known = [rig for rig in (self.rig, self.reference_rig) if rig is not None and rig.preflighted]
        self.seen &= set(map(id, known))
        return self._turn()

    def interrupt(self) -> None:
        """Ends the case after the launches that it had."""
        self.gathered.ended_by = "interrupted"
        self._end()

    @contextmanager
    def _leaving(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            if self.running is not None:  # else neither runs, and making one run could take long
                self.leave()
            raise
        self.leave()

    def resume(self, part: Part) -> None:
        """Makes this strategy one round of its case, which continues the earlier rounds."""
        self.part, self.round, self.gathered = part, part.number, part.gathered
        self.before = len(part.gathered.launches)

    def _asked(self, step: Callable[[], None]) -> None:
        """Runs a step on the case's rig. Raises Invalid if something of the rig has died."""
        try:
            step()
        except ConnectionLost:
            raise
        except ProvisionError as error:
            raise _end_of(self.rig, error) from None

    def of_one_state(self) -> LaunchLog:
        """Returns what was gathered with the launches of one state of the host alone."""
        return split_by_state(self.gathered)

    def finish(self, measurement: Measurement, _around: Environment) -> Measurement:
        """Returns the measurement with what the whole strategy adds to its launches' figures."""
        return measurement

    def _begin(self) -> None:
        if self.reference_rig is not None:
            self.reference_rig.pause()
            if not self.reference_rig.endpoints:
                # It takes the other rig's resources (over two hosts the NICs), so each of its turns builds it anew.
                room = self.settings.max_duration_s / (4 * self.settings.launch_s)
                self.a_turn = LAUNCHES_A_TURN if self.settings.repeats else max(1, min(LAUNCHES_A_TURN, int(room)))
        if self.rig.preflighted:
            self.seen.add(id(self.rig))

    def _rounds(self) -> None:
        self._begin()
        self._launches()

    def _launches(self) -> None:
        while not self._turn():
            pass

    def _turn(self) -> bool:
        """Runs launches of the case and as many of its reference. Returns whether no further ones are needed."""
        fixed = self.settings.repeats if self.part is None else self.part.launches
        done = len(self.gathered.launches) - self.before
        launches = self.a_turn if fixed is None else max(min(self.a_turn, fixed - done), 1)
        # Every other turn begins with the reference: the rigs change places half as often, and drift cancels.
        if self.turns % 2:
            self._reference_turn(launches)
        for _ in range(launches):
            self._case_launch()
        if not self.turns % 2:
            self._reference_turn(launches)
        self.turns += 1
        why = self._why_ended()
        self.gathered.ended_by = why or self.gathered.ended_by
        return why is not None

    def _why_ended(self) -> str | None:
        """Returns why no further launch is needed; None if one is. The launches of one state count."""
        launches, elapsed = self.gathered.launches, self._elapsed()
        done = len(launches) - self.before
        next_s = self.a_turn * (elapsed - self.repeated_s) / done
        if self.part is not None:
            if done >= self.part.launches:
                return "rounds"
            return "max-duration" if elapsed + next_s > self.part.seconds else None
        alike = in_state(launches, fullest(launches, self.gathered.reference))
        if self.settings.repeats is not None and done >= MOST_FOR_A_STATE * self.settings.repeats:
            return "repeats"
        return why_stop([main_figure(self.case, launch) for launch in alike], self.settings, elapsed, next_s)

    def _await_state(self, distance_ns: float | None) -> None:
        """Waits until the CPUs are as far apart as given, in ns, as long as the case may wait for that."""
        began, waited = time.monotonic(), 0.0
        most = AWAITED_TIME * self.settings.max_duration_s - self.gathered.awaited_s
        while waited < most and not same_state(distance_ns, self.rig.cpu_state().distance_ns):
            self._tell("waiting", None)
            time.sleep(LOOK_S)
            waited = time.monotonic() - began
        self.gathered.awaited_s += waited

    def _case_launch(self) -> None:
        launch = self._valid_launch(self.rig, self.case, "case")
        self.gathered.launches.append(launch)

    def _reference_turn(self, launches: int) -> None:
        for _ in range(launches):
            self._reference(self._reference_launch)

    def _reference(self, step: Callable[[MeasuredRig], None]) -> None:
        """Runs a step on the reference link. An error there costs the ratio, not the case."""
        if self.reference_rig is None or self.gathered.reference_evidence is not None:
            return
        if self.running is self.rig:
            self._pause_running()  # what the case's own switch raises now is no fault of the reference link
        try:
            step(self.reference_rig)
        except (Invalid, ProvisionError, WorkloadError) as error:
            link = f"reference link {self.reference.switch}"
            of = link if self.case.noisy_neighbour is None else f"{self.reference.switch} without its noisy neighbour"
            self.gathered.reference_evidence = f"{of}: {error}"

    def _reference_launch(self, rig: MeasuredRig) -> None:
        self.gathered.reference.append(self._valid_launch(rig, self.reference, "reference"))

    def _valid_launch(self, rig: MeasuredRig, case: Case, phase: Phase) -> Launch:
        """Returns a valid launch, repeated while the harness is at fault or others disturb it. Raises Invalid."""
        self._turn_to(rig)
        self._make_ready(rig, case)
        collected = self.gathered.launches if phase == "case" else self.gathered.reference

        def launch_once() -> Launch:
            launch = self._side(rig).launch or run_launch
            return launch(
                rig,
                case,
                self.settings,
                index=len(collected),
                on_rate=lambda pps: self._tell(phase, pps),
                executable=self._side(rig).executable,
            )

        while True:
            self._tell(phase, None)
            began = time.monotonic()
            attempt = self._try(rig, launch_once)
            if attempt is None:
                continue
            (launch,) = attempt
            if launch.invalid is not None:
                self._check_fault(rig, launch, launch.invalid, phase)
                continue
            launch = replace(launch, round=self.round)
            if not self._repeats_disturbed(launch, phase, time.monotonic() - began):
                return launch

    def _side(self, rig: MeasuredRig) -> Side:
        return self._sides[rig is self.reference_rig]

    def _make_ready(self, rig: MeasuredRig, case: Case) -> None:
        """Builds the rig anew if every launch has a fresh one. Raises Invalid if frames do not pass it."""
        if self.settings.rebuild and id(rig) in self.used:
            rig.close()
            rig.build()
            self.seen.discard(id(rig))
        self.used.add(id(rig))
        self._preflight(rig, case)

    def _try(self, rig: MeasuredRig, run: Callable[[], T]) -> tuple[T] | None:
        """Returns the result of ``run``; None if the harness was at fault and has to repeat it. Raises Invalid."""
        try:
            return (run(),)
        except ConnectionLost:
            raise  # no fault of the switch
        except ProvisionError as error:
            raise _end_of(rig, error) from None
        except WorkloadError as error:
            if not self._is_tried_again(rig, error):
                raise
        return None

    def _check_fault(self, rig: MeasuredRig, launch: Launch, fault: str, phase: Phase) -> None:
        """Raises Invalid for an invalid launch, unless the harness or others are at fault and it is repeated."""
        evidence = _with_fault(rig, fault, launch.evidence or "")
        # An endpoint that others keep from its CPU takes no frames, as if none arrived.
        kept_off = fault in PATH_REASONS and launch.disturbed is not None
        evidence += f"; {launch.disturbed}" if kept_off else ""
        if (kept_off or fault in HARNESS_REASONS) and self._another_try(fault, evidence):
            return
        if phase == "case":
            self.gathered.rejected.append(launch)
        raise Invalid(fault, evidence)

    def _preflight(self, rig: MeasuredRig, case: Case) -> None:
        """Raises Invalid if frames do not pass undamaged, after as many tries as a fault of the harness has."""
        if rig is self.rig:
            self._asked(self.functions.begin)
        while not rig.preflighted:
            self._tell("preflight", None)
            attempt = self._try(
                rig, lambda: preflight(rig, _of_frames(case), self.settings, executable=self._side(rig).executable)
            )
            if attempt is None:
                continue
            (fault,) = attempt
            if fault is None:
                rig.preflighted = True
                self.seen.add(id(rig))
            elif not self._another_try(*fault):
                raise Invalid(fault[0], _with_fault(rig, *fault))
        if rig is self.rig:
            self._asked(lambda: self.functions.police(self.settings, self._side(rig).executable))

    def _is_tried_again(self, rig: MeasuredRig, error: WorkloadError) -> bool:
        """Whether an endpoint's failure may be the harness's. Raises Invalid if a fault of the path explains it."""
        if (fault := rig.path_fault()) is not None:
            raise Invalid("no-forwarding", f"{fault}; {str(error).splitlines()[0]}") from None
        return error.crashed and self._another_try("died", str(error).splitlines()[0])

    def _repeats_disturbed(self, launch: Launch, phase: Phase, spent_s: float) -> bool:
        """Whether a launch is repeated because it was disturbed; it is then kept beside the others.

        What was measured has no say. A long run and trains of frames have one launch, which is not repeated.
        """
        repeated = self.gathered.repeated
        alone = self.settings.stream is not None or self.settings.train is not None
        if launch.disturbed is None or alone or len(repeated) >= MOST_DISTURBED:
            return False
        if self.repeated_s + spent_s > DISTURBED_TIME * self.settings.max_duration_s or self._takes_fewest(spent_s):
            return False
        self.repeated_s += spent_s
        repeated.append(replace(launch, index=len(repeated), repeated=phase))
        return True

    def _takes_fewest(self, launch_s: float) -> bool:
        """Whether the time for the case would end it before its fewest launches, if one more were repeated."""
        if self.settings.repeats is not None or self.case.rate.varies:
            return False
        sides = [self.gathered.launches]
        sides += [] if self.reference_rig is None else [self.gathered.reference]
        missing = sum(max(self.settings.min_launches - len(launches), 0) for launches in sides)
        return missing > 0 and self._elapsed() + missing * launch_s > self.settings.max_duration_s

    def _another_try(self, reason: str, evidence: str) -> bool:
        if len(self.gathered.faults) >= MOST_FAULTS:
            return False
        self.gathered.faults.append(f"{reason}: {evidence}")
        return True

    def _turn_to(self, rig: MeasuredRig) -> None:
        """Lets only this rig run: an idle poller beside it would halve the measured rate."""
        if self.reference_rig is None or self.running is rig:
            return
        self._pause_running()
        built = bool(rig.endpoints)
        rig.resume()
        # Within one case the launches themselves show whether frames still pass, but not those of a rig built anew.
        rig.preflighted = built and id(rig) in self.seen
        self.running = rig

    def _pause_running(self) -> None:
        """Pauses the rig that runs. None runs afterwards, also if this or the next step fails."""
        rig, self.running = self.running, None
        if rig is not None:
            rig.pause()

    def leave(self) -> None:
        """Restores the state on which callers rely: the rig runs, the reference is paused."""
        self._turn_to(self.rig)

    def _elapsed(self) -> float:
        return (self.left_at or time.monotonic()) - self.began

    def _tell(self, phase: Phase, pps: float | None) -> None:
        if self.on_progress is None:
            return
        done = len(self.gathered.launches)
        left, launches = self._outlook(done)
        self.on_progress(
            Progress(
                case=self.case_id,
                phase=phase,
                launch=0 if phase in ("preflight", "waiting") else done + 1,
                launches=launches,
                receive_mpps=None if pps is None else pps / 1e6,
                elapsed_s=self._elapsed(),
                left_s=left,
                detail=self.detail,
            )
        )

    def _outlook(self, done: int) -> tuple[float, int]:
        """Returns the seconds that the case still takes, and the number of launches that it will have."""
        elapsed = self._elapsed()
        if self.part is not None:
            done = sum(launch.round == self.part.number for launch in self.gathered.launches)
        launches = max(fewest_launches(self.settings) if self.part is None else self.part.launches, done + 1)
        launch_s = elapsed / done if done else self.settings.launch_s + TYPICAL_OVERHEAD_S
        left = (launches - done) * launch_s
        if not done:  # a launch can take hours
            left = max(left - elapsed, 0.0)
        if self.settings.repeats is None:
            left = min(left, max(self.settings.max_duration_s - elapsed, 0.0))
        return left, launches


def _of_frames(case: Case) -> Case:
    """Returns the case with frames of the workload instead of an application."""
    return case if case.load is case.frames else replace(case, dimension="throughput", load=case.frames)


def _with_fault(rig: MeasuredRig, reason: str, evidence: str) -> str:
    """Returns the evidence; a known fault of the path comes first if it explains the reason."""
    fault = rig.path_fault() if reason in PATH_REASONS else None
    return evidence if fault is None else f"{fault}; {evidence}"


@dataclass(frozen=True, slots=True)
class Part:
    """What one round measures of a case.

    Attributes:
        number: of the round, from 0.
        launches: the most launches of this round.
        seconds: the time for them; the first launch may take longer.
        gathered: what earlier rounds gathered, to which this one adds.
    """

    number: int
    launches: int
    seconds: float
    gathered: LaunchLog


def parts(settings: Settings, rounds: int, gathered: LaunchLog, seconds: float) -> Iterator[Part]:
    """Yields the parts of a case: a fixed number of launches spread evenly, else those that precision takes.

    Args:
        seconds: the time for the whole case; without effect on a fixed number of launches.
    """
    launches = settings.repeats
    for number in range(rounds):
        if launches is None:
            yield Part(number, math.ceil(fewest_launches(settings) / rounds), seconds / rounds, gathered)
        else:
            share = launches // rounds + (number < launches % rounds)
            yield Part(number, share, math.inf, gathered)
