# SPDX-License-Identifier: BSD-3-Clause
"""The kernel's functions, made by another component, which a word among their parts asks for (``vpp+nat``). Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from pytest_icbench.driver.function.linux import LinuxFunction
from pytest_icbench.driver.function.linux_parts import Parts
from pytest_icbench.driver.function.parts_function import PartsFunction
from pytest_icbench.driver.function.protocol import Ends, Probe
from pytest_icbench.model.endpoint import Address


class WordFunction(PartsFunction):
    """A driver that does to frames what the kernel does, so that the same frames prove it.

    Attributes:
        word: what asks for it, where another component has the function, too.
    """

    word: ClassVar[str]

    @classmethod
    def able(cls, parts: Parts) -> bool:
        """Whether it can make a function of these parts."""
        raise NotImplementedError

    @classmethod
    def plain(cls, function: str) -> str:
        """Returns a function's name without the word, once."""
        words = function.split("+")
        if cls.word in words:
            words.remove(cls.word)
        return "+".join(words)

    @classmethod
    def parts(cls, function: str) -> Parts | None:
        parts = Parts.of(cls.plain(function))
        return parts if parts is not None and cls.able(parts) else None

    @classmethod
    def seen(cls, function: str, ends: Ends) -> tuple[Address, Address]:
        """Returns the sides' IP addresses, or the pool's, behind the function's own MAC addresses."""
        return LinuxFunction.seen(cls.plain(function), ends)

    @classmethod
    def proof(cls, function: str, ends: Ends) -> Sequence[Sequence[Probe]]:
        """Returns the frames that prove such a function of any component."""
        return LinuxFunction.proof(cls.plain(function), ends)
