# SPDX-License-Identifier: BSD-3-Clause
"""SIGTERM ends a run as Ctrl-C does, and clean-up is not cut short by a second signal."""

from __future__ import annotations

import faulthandler
import os
import resource
import signal
import subprocess
import sys
import threading
import time

import pytest

from pytest_icbench.host.signals import SignalGuard, defer_signals, shield_signals

_RUN = """
import signal, sys, time
from pytest_icbench.host.signals import SignalGuard, shield_signals
guard = SignalGuard()
guard.install()
try:
    print("running", flush=True)
    time.sleep(60)
except KeyboardInterrupt as interrupt:
    print("interrupted", interrupt, guard.received, flush=True)
    {clean_up}
guard.restore()
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
print("clean", flush=True)
"""
_PLAIN = "time.sleep(0.5)"
_SHIELDED = "guard.restore(); s = shield_signals(); s.__enter__(); time.sleep(0.5); s.__exit__(None, None, None)"


@pytest.mark.parametrize("clean_up", [_PLAIN, _SHIELDED])
@pytest.mark.parametrize("first", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_second_signal_does_not_cut_the_clean_up_short(first: signal.Signals, clean_up: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", _RUN.format(clean_up=clean_up)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "running\n"
    process.send_signal(first)
    assert process.stdout.readline() == f"interrupted {first.name} {int(first)}\n"
    # Enough for the shield to be entered; the guard itself needs no time.
    threading.Event().wait(0.1)
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=10)
    assert out == "clean\n"
    assert "icbench: cleaning up" in err
    assert process.returncode == 0


def _ends_a_process(number: int) -> bool:
    """Whether a child that does nothing about a signal is ended by it."""
    child = os.fork()
    if child == 0:
        try:
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            if number not in (signal.SIGKILL, signal.SIGSTOP):
                signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        finally:
            os._exit(0)
    _, status = os.waitpid(child, os.WUNTRACED)
    if os.WIFSTOPPED(status):
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def test_every_signal_that_would_end_a_process_cleans_up() -> None:
    """But for those that report a fault of this process, SIGKILL, and what Python ignores."""
    faults = {"SEGV", "BUS", "FPE", "ILL", "ABRT", "TRAP", "SYS", "KILL"}
    excluded = {getattr(signal, f"SIG{name}") for name in faults} | {signal.SIGPIPE, signal.SIGXFSZ}
    ending = [number for number in signal.valid_signals() if number not in excluded and _ends_a_process(number)]
    assert {signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGXCPU, signal.SIGRTMAX} <= set(ending)
    for number in ending:
        before = signal.getsignal(number)
        with SignalGuard() as guard, pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)
        assert guard.received == number
        assert signal.getsignal(number) == before


def test_what_others_have_decided_about_a_signal_stays() -> None:
    """As nohup ignores SIGHUP, pytest-timeout handles SIGALRM, and faulthandler handles SIGUSR1 below Python."""
    seen: list[int] = []
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN), signal.signal(signal.SIGALRM, lambda n, _: seen.append(n))
    faulthandler.register(signal.SIGUSR1, file=2)
    try:
        with SignalGuard() as guard:
            for number in (signal.SIGHUP, signal.SIGALRM, signal.SIGUSR1):
                signal.raise_signal(number)
            with shield_signals():
                signal.raise_signal(signal.SIGALRM)  # its exception would cut the clean-up short
            with defer_signals():
                signal.raise_signal(signal.SIGALRM)
                assert seen == [signal.SIGALRM]
        assert guard.received is None
        assert seen == [signal.SIGALRM] * 2
    finally:
        faulthandler.unregister(signal.SIGUSR1)
        for number, handler in zip((signal.SIGHUP, signal.SIGALRM), before, strict=True):
            signal.signal(number, handler)


def test_a_forked_child_ends_as_it_would_without_the_guard() -> None:
    with SignalGuard() as guard:
        child = os.fork()
        if child == 0:
            try:
                signal.raise_signal(signal.SIGTERM)
            finally:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGTERM
    assert guard.received is None


def test_a_later_wish_counts_again(monkeypatch: pytest.MonkeyPatch) -> None:
    from pytest_icbench.host import signals

    monkeypatch.setattr(signals, "_GRACE_S", 0.0)
    with SignalGuard() as guard:
        for _ in range(2):
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGTERM)
        assert guard.received == signal.SIGTERM


class Held:
    def __del__(self) -> None:
        signal.raise_signal(signal.SIGTERM)  # it comes while this runs, so that Python swallows the exception


def test_a_signal_whose_exception_python_swallows_is_sent_again() -> None:
    hook = sys.unraisablehook
    with SignalGuard() as guard:
        Held()
        assert guard.received == signal.SIGTERM
        with pytest.raises(KeyboardInterrupt, match="SIGTERM"):
            time.sleep(20)
    assert sys.unraisablehook == hook


def test_a_signal_that_comes_while_it_is_arranged_to_be_sent_again_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    # As on a busy host, where starting the thread that sends it again takes longer than its delay.
    start = threading.Thread.start

    def slow_start(thread: threading.Thread) -> None:
        start(thread)
        signal.raise_signal(signal.SIGTERM)
        time.sleep(0.05)

    monkeypatch.setattr(threading.Thread, "start", slow_start)
    with SignalGuard():
        Held()
        with pytest.raises(KeyboardInterrupt, match="SIGTERM"):
            time.sleep(20)


def test_what_else_python_swallows_is_shown_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda what: shown.append(what.exc_type))

    class Faulty:
        def __del__(self) -> None:
            raise ValueError

    with SignalGuard():
        Faulty()
    assert shown == [ValueError]


def test_other_threads_change_nothing() -> None:
    before = signal.getsignal(signal.SIGTERM)
    seen: list[object] = []

    def work() -> None:
        with shield_signals(), defer_signals(), SignalGuard():
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [before]


def test_the_shield_gives_the_handlers_back_after_an_error() -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with pytest.raises(ValueError, match="x"), shield_signals():
        raise ValueError("x")
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_that_is_deferred_acts_after_the_block(number: signal.Signals) -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    steps: list[str] = []

    def work() -> None:
        with defer_signals():
            signal.raise_signal(number)
            steps.append("done whole")
        steps.append("gone on")

    with SignalGuard() as guard, pytest.raises(KeyboardInterrupt):
        work()
    assert steps == ["done whole"]
    assert guard.received == number
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before
