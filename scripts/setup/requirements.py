# SPDX-License-Identifier: BSD-3-Clause
"""Prints the requirements of a pyproject.toml with some extras, without the project itself."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path


def requirements(pyproject: Path, extras: list[str]) -> list[str]:
    """Returns the dependencies and the extras, sorted. An extra that names another one includes it.

    Raises:
        KeyError: an extra that the project does not have.
    """
    project = tomllib.loads(pyproject.read_text())["project"]
    own = re.compile(re.escape(project["name"]) + r"\[([\w,-]+)\]$")
    found = set(project["dependencies"])
    pending, seen = list(extras), set[str]()
    while pending:
        extra = pending.pop()
        if extra in seen:
            continue
        seen.add(extra)
        for requirement in project["optional-dependencies"][extra]:
            if match := own.match(requirement):
                pending += match[1].split(",")
            else:
                found.add(requirement)
    return sorted(found)


if __name__ == "__main__":
    print("\n".join(requirements(Path(sys.argv[1]), sys.argv[2].split(","))))
