# SPDX-License-Identifier: BSD-3-Clause
"""CPU frequency: sets the governor to ``performance`` and turbo off for a session, through the journal.

Three ways to switch turbo are known: intel_pstate's ``no_turbo``, the global ``cpufreq/boost`` (acpi-cpufreq, and
amd-pstate since Linux 6.11), and a ``boost`` per policy. A machine without cpufreq, such as most
virtual ones, has none of these.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from pytest_icbench.host.journaled_changes import Holder
from pytest_icbench.host.root import Root

_CPU = "/sys/devices/system/cpu"
GOVERNOR = "performance"


@dataclass(slots=True)
class Frequency:
    """The settings that control the CPUs' frequency, for the conditions of a result.

    Attributes:
        driver: cpufreq driver, None without one.
        governors: governor by CPU.
        turbo: whether the CPU may exceed its base frequency; None if unknown.
        warnings: one sentence for each setting that could not be made.
    """

    driver: str | None = None
    governors: dict[int, str] = field(default_factory=dict)
    turbo: bool | None = None
    warnings: list[str] = field(default_factory=list)


def _policy(cpu: int) -> str:
    return f"{_CPU}/cpu{cpu}/cpufreq"


def turbo_switches(root: Root, cpus: Iterable[int]) -> list[tuple[str, str]]:
    """Returns the files that switch turbo off for these CPUs, each with the text to write."""
    if root.read(f"{_CPU}/intel_pstate/no_turbo") in ("0", "1"):
        return [(f"{_CPU}/intel_pstate/no_turbo", "1")]
    if root.read(f"{_CPU}/cpufreq/boost") in ("0", "1"):
        return [(f"{_CPU}/cpufreq/boost", "0")]
    files = [f"{_policy(cpu)}/boost" for cpu in sorted(set(cpus))]
    return [(name, "0") for name in files if root.read(name) in ("0", "1")]


def read_frequency(root: Root, cpus: Iterable[int]) -> Frequency:
    """Returns the present settings of the CPUs' frequency."""
    cpus = sorted(set(cpus))
    state = Frequency()
    for cpu in cpus:
        state.driver = state.driver or root.read(f"{_policy(cpu)}/scaling_driver")
        governor = root.read(f"{_policy(cpu)}/scaling_governor")
        if governor:
            state.governors[cpu] = governor
    switches = turbo_switches(root, cpus)
    if switches:
        state.turbo = any(root.read(name) != off for name, off in switches)
    return state


def prepare_cpus(session: Holder, cpus: Iterable[int], *, governor: bool = True, turbo: bool = True) -> Frequency:
    """Sets the governor of ``cpus`` to performance and turbo off, as far as they exist. Both are journaled.

    A refusal of the kernel is a warning in the result, not an error.
    """
    root, cpus = session.root, sorted(set(cpus))
    warnings: list[str] = []
    if governor:
        for cpu in cpus:
            _set_governor(session, cpu, warnings)
    if turbo:
        for name, off in turbo_switches(root, cpus):
            _set(session, name, off, warnings)
    state = read_frequency(root, cpus)
    state.warnings = warnings
    return state


def _set_governor(session: Holder, cpu: int, warnings: list[str]) -> None:
    """Sets a CPU's governor to performance, or adds a warning."""
    root, policy = session.root, _policy(cpu)
    now = root.read(f"{policy}/scaling_governor")
    if now is None or now == GOVERNOR:
        return
    offered = (root.read(f"{policy}/scaling_available_governors") or "").split()
    if offered and GOVERNOR not in offered:
        warnings.append(f"CPU {cpu} has no governor {GOVERNOR} (it offers {' '.join(offered)}): its frequency may vary")
        return
    # The governor changes the preference beneath it. Undone in reverse: the governor first, then the preference.
    preference = root.read(f"{policy}/energy_performance_preference")
    if preference is not None:
        name = f"{policy}/energy_performance_preference"
        session.journal.record("file", path=str(root.path(name)), text=preference)
    _set(session, f"{policy}/scaling_governor", GOVERNOR, warnings)


def _set(session: Holder, name: str, text: str, warnings: list[str]) -> None:
    """Writes a journaled file, or adds a warning. Does nothing if the file is missing or has that text."""
    root = session.root
    old = root.read(name)
    if old is None or old == text:
        return
    entry = session.journal.record("file", path=str(root.path(name)), text=old)
    try:
        root.write(name, text)
    except OSError as error:
        session.journal.done(entry)
        warnings.append(f"{name} cannot be set to {text} ({error.strerror}): the frequency may vary")
