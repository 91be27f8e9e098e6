# SPDX-License-Identifier: BSD-3-Clause
"""Functions that are parts joined by ``+``, by whatever component makes them. Pure."""

from __future__ import annotations

from pytest_icbench.driver.function.linux_parts import Parts
from pytest_icbench.driver.function.protocol import Function
from pytest_icbench.errors import ProvisionError
from pytest_icbench.model.denial import Denial


class PartsFunction(Function):
    """A driver that says which parts a function has."""

    @classmethod
    def parts(cls, function: str) -> Parts | None:
        """Returns the parts of a function; None for another component's."""
        raise NotImplementedError

    @classmethod
    def parts_of(cls, function: str) -> Parts:
        """Returns the parts of a function that it has. Raises ProvisionError for another one."""
        parts = cls.parts(function)
        if parts is None:
            raise ProvisionError(f"{cls.name} has no function '{function}'; it has {cls.help}")
        return parts

    @classmethod
    def has(cls, function: str) -> bool:
        return cls.parts(function) is not None

    @classmethod
    def denial(cls, function: str) -> Denial | None:
        return cls.parts_of(function).denial
