# SPDX-License-Identifier: BSD-3-Clause
"""Expands trees of /sys and /proc from compact text (tests/unit/trees/NAME.txt) into a directory.

A line is ``/path: value``; indented lines below it continue the value. ``{0-3,8}`` in a path stands for each of these
numbers, and a value ``each: a b c`` gives each of them a word of its own; ``{}`` in either is the number.
``/path -> target`` is a symbolic link, and all may have numbers.
"""

from __future__ import annotations

import re
from pathlib import Path

from pytest_icbench.host.root import Root, parse_cpu_list

_TREES = Path(__file__).parent / "trees"
NAMES = tuple(sorted(path.stem for path in _TREES.glob("*.txt")))


def expand(name: str, target: Path) -> Root:
    """Writes the tree ``name`` below ``target``."""
    items: list[tuple[str, list[str]]] = []
    for line in (_TREES / f"{name}.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("#") or not line.strip():
            continue
        if line.startswith("/") and " -> " in line:
            _link(target, *line.split(" -> "))
        elif line.startswith("/"):
            path, _, value = line.partition(": ")
            items.append((path.removesuffix(":"), [value] if value else []))
        else:
            items[-1][1].append(line.removeprefix("    "))
    for path, lines in items:
        _write(target, path, "\n".join(lines))
    return Root(target)


def _link(target: Path, path: str, to: str) -> None:
    spans = re.search(r"\{([0-9,-]+)\}", path)
    for number in parse_cpu_list(spans.group(1)) if spans else (-1,):
        file = target / (path.replace(spans.group(0), str(number)) if spans else path).lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.symlink_to(to.replace("{}", str(number)))


def _write(target: Path, path: str, value: str) -> None:
    spans = re.search(r"\{([0-9,-]+)\}", path)
    numbers = parse_cpu_list(spans.group(1)) if spans else (-1,)
    words = value.removeprefix("each: ").split(" ") if value.startswith("each: ") else None
    assert words is None or len(words) == len(numbers), f"{path}: {len(numbers)} numbers, {words}"
    for index, number in enumerate(numbers):
        name = path.replace(spans.group(0), str(number), 1).replace("{}", str(number)) if spans else path
        file = target / name.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        text = words[index] if words is not None else value.replace("{}", str(number))
        file.write_text(text + "\n", encoding="utf-8")
