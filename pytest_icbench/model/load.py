# SPDX-License-Identifier: BSD-3-Clause
"""What puts load on the path of a case: frames of the workload, an application, or containers that start. Frozen, pure.

A new kind of load is one more type: its part of the id, its axes, and its words in messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import ClassVar, Literal, Self

from pytest_icbench.model.rate import MAXIMUM, Rate
from pytest_icbench.model.startup import Crowd
from pytest_icbench.model.traffic import SHORTEST, Traffic


@dataclass(frozen=True, slots=True)
class _Load:
    """The defaults of loads: those of one that sends no frames of the workload."""

    #: What a case with it has, as messages name it; None where messages need not.
    NAMED: ClassVar[str | None] = None
    #: What can only run on one host, as messages name it; None for a load that can run over two.
    ON_ONE_HOST: ClassVar[str | None] = None
    #: Whether endpoints send and receive by the API technique of the case.
    USES_API: ClassVar[bool] = False
    #: Whether each pair has a load of its own.
    PAIRED: ClassVar[bool] = True
    #: The method of ``icbench`` that measures nothing else; None where several can.
    MEASURED_BY: ClassVar[str | None] = None

    @property
    def frames(self) -> Frames:
        """Its frames; the default ones for a load without frames of the workload."""
        return NO_FRAMES

    @property
    def crowd(self) -> Crowd | None:
        """The containers that are created; None without any, and for a label that only a later version knows."""
        return None

    @property
    def largest_burst(self) -> int:
        """The most frames that are handed over at once; 0 where nobody hands over frames."""
        return 0

    @property
    def rig(self) -> str:
        """What its rig has to be made for; empty for a load that every rig can have."""
        return ""

    @property
    def row(self) -> str | None:
        """The name of a result among others of its table; None where that is the case's id."""
        return None

    def path(self, switch: str) -> str:
        """Returns the beginning of a path's name."""
        return switch


@dataclass(frozen=True, slots=True)
class Frames(_Load):
    """Frames of the workload.

    Attributes:
        traffic: the frames that are sent.
        burst: frames handed over at once, 1 to 1024.
        rate: how much is offered, or which rate is searched for.
        kind: the name of the type where a case is written whole.
    """

    USES_API = True

    traffic: Traffic = SHORTEST
    burst: int = 32
    rate: Rate = MAXIMUM
    kind: Literal["frames"] = field(default="frames", repr=False)

    @property
    def frames(self) -> Frames:
        return self

    @property
    def largest_burst(self) -> int:
        return self.burst

    @property
    def label(self) -> str | None:
        """The text that says the whole load; None for one of several choices."""
        return None

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts of a case's id."""
        return self.traffic.label, f"b{self.burst}"

    @property
    def axes(self) -> dict[str, str]:
        """The axes that only it has."""
        return {}

    @property
    def comparable(self) -> str:
        """What results have to share to be compared, in words; empty where the frames say it."""
        return ""

    def measured_as(self, dimension: str) -> str:
        """Returns the kind of its measurements, as their figures in files name it."""
        return "latency" if dimension == "latency" else "search" if self.rate.is_search else "throughput"

    def sending(self, *, traffic: Traffic | None = None, burst: int | None = None, rate: Rate | None = None) -> Frames:
        """Returns the load with other frames; None keeps the load's own."""
        return Frames(traffic or self.traffic, burst or self.burst, rate or self.rate)


@dataclass(frozen=True, slots=True)
class _Labelled(_Load):
    """A load that one text says."""

    #: The key of the label among the axes.
    KEY: ClassVar[str]
    #: What stands before the label in a case's id.
    ID_WORD: ClassVar[str]
    #: The kind of its measurements, as their figures in files name it.
    KIND: ClassVar[str]

    label: str

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts of a case's id."""
        return (f"{self.ID_WORD}{self.label}",)

    @property
    def axes(self) -> dict[str, str]:
        """The axes that only it has."""
        return {self.KEY: self.label}

    @property
    def comparable(self) -> str:
        """What results have to share to be compared, in words."""
        return self.label

    def measured_as(self, _dimension: str) -> str:
        """Returns the kind of its measurements, as their figures in files name it."""
        return self.KIND

    def sending(self, **_changes: object) -> Self:
        """Returns the load unchanged: it has no frames."""
        return self


@dataclass(frozen=True, slots=True)
class Application(_Labelled):
    """The load of an application, as ``model.application`` has it: ``redis:set:c16``. Its traffic is its own."""

    KEY = "app"
    ID_WORD = "app:"
    KIND = "application"
    NAMED = "an application (app=)"
    ON_ONE_HOST = "applications"

    kind: Literal["application"] = field(default="application", repr=False)


@dataclass(frozen=True, slots=True)
class Startup(_Labelled):
    """Containers that are created one after the other: ``netns:1000``. No traffic of the workload passes."""

    KEY = "startup"
    ID_WORD = "birth:"
    KIND = "startup"
    NAMED = "containers to create (startup=)"
    PAIRED = False
    MEASURED_BY = "startup"

    kind: Literal["startup"] = field(default="startup", repr=False)

    @property
    def crowd(self) -> Crowd | None:
        return Crowd.of(self.label)

    @property
    def rig(self) -> str:
        return self.label

    @property
    def row(self) -> str | None:
        return self.label

    @property
    def comparable(self) -> str:
        return "containers created one after the other"

    def path(self, switch: str) -> str:  # noqa: ARG002
        """Returns the kind of containers that are created: ``netns``, ``netns every 25 ms``."""
        crowd = self.crowd
        if crowd is None:
            return self.label
        return crowd.kind if crowd.every_ms is None else f"{crowd.kind} every {crowd.every_ms} ms"


Load = Frames | Application | Startup
#: Loads with a label, by its key among the axes.
LABELLED: Mapping[str, type[Application] | type[Startup]] = MappingProxyType(
    {kind.KEY: kind for kind in (Application, Startup)}
)
#: The frames of a case that has none: what its axes then say.
NO_FRAMES = Frames()
