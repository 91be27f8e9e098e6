# SPDX-License-Identifier: BSD-3-Clause
"""Changes valid inputs in hostile ways, for tests of readers."""

from __future__ import annotations

import copy
import random
import re
from collections.abc import Callable
from typing import Any

from pytest_icbench.errors import UsageError

#: Values that are put in the place of others.
VALUES: tuple[Any, ...] = (
    *(None, True, 0, -1, 2**63, 10**400, 0.5, float("nan"), float("inf"), 1e308, [], {}, [[]], "", "x", "\x1b[2J\a"),
    *("é\ud800", "a" * 5000, "../../x", "/etc/x", "\0", "1\n2", "\u202e", [1, "a"], {"a": {"b": []}}, {"": None}),
)
_TEXTS = (
    "\x00",
    "\x1b[31m",
    "\ud800",
    "9" * 5000,
    "[" * 3000,
    "nan",
    "\n",
    "=",
    '"',
    "..",
    "-",
    "1e999",
    "é",
    "\r",
    "\r\n",
    "\ufeff",
)
#: A value in a TOML file, and others that are TOML, too.
_ASSIGNED = re.compile(r"(?<== ).+")
_ODD = (
    *("nan", "-inf", "0", "-1", "9" * 400, "9" * 5000, "true", "''", '"\\u0007"', "[]", "{}", "[[[1]]]", "{a = []}"),
    *("2024-01-01", "24:00:00", '["a", 1]', f"'{'a' * 5000}'", '"\\n"', '"\\u202E"', f"0x7{'f' * 20}", "[1, 2]", "1.5"),
)


def mutated_text(text: str, chance: random.Random) -> str:
    """Returns a text with parts cut, doubled, swapped or replaced."""
    for _ in range(chance.randint(1, 3)):
        assigned = list(_ASSIGNED.finditer(text))
        if assigned and chance.random() < 0.5:  # what is still TOML comes further than noise does
            match = chance.choice(assigned)
            text = text[: match.start()] + chance.choice((*_ODD, match[0])) + text[match.end() :]
            continue
        first, second = sorted(chance.choices(range(len(text) + 1), k=2))
        second = min(second, first + 40)
        part = chance.choice(("", text[first:second] * 2, chance.choice(_TEXTS), text[first:second][::-1]))
        text = text[:first] + part + text[second:]
        if chance.random() < 0.1:
            text = text[: chance.randint(0, len(text))]
    return text


def mutated_data(data: Any, chance: random.Random) -> Any:
    """Returns plain data with one to three values removed, doubled, swapped or replaced."""
    data = copy.deepcopy(data)
    for _ in range(chance.randint(1, 3)):
        place = data
        while isinstance(place, dict | list) and place:
            key: Any = chance.choice(list(place)) if isinstance(place, dict) else chance.randrange(len(place))
            if isinstance(place[key], dict | list) and place[key] and chance.random() < 0.7:
                place = place[key]
                continue
            kind = chance.randrange(5)
            if kind == 0:
                del place[key]
            elif kind == 1 and isinstance(place, list):
                place.append(place[key])
            elif kind == 1 and isinstance(place, dict):
                place[chance.choice(("odd", "\x1b", "a" * 3000))] = place[key]
            else:
                place[key] = copy.deepcopy(chance.choice(VALUES))
            break
    return data


def refusals(read: Callable[[random.Random], object], tries: int, seed: int = 1) -> tuple[int, dict[str, str]]:
    """Reads mutated inputs. Returns the number of refused ones, and by kind what was no printable line."""
    refused, wrong = 0, {}
    for number in range(tries):
        chance = random.Random(f"{seed} {number}")
        try:
            read(chance)
        except UsageError as error:
            refused += 1
            if not str(error).isprintable():
                wrong["control characters"] = ascii(str(error))[:200]
        except Exception as error:
            trace = error.__traceback__
            while trace is not None and trace.tb_next is not None:
                trace = trace.tb_next
            where = f"{trace.tb_frame.f_code.co_filename[-40:]}:{trace.tb_lineno}" if trace else ""
            wrong.setdefault(f"{type(error).__name__} {where}", f"{ascii(str(error))[:150]} (input {seed} {number})")
    return refused, wrong
