# SPDX-License-Identifier: BSD-3-Clause
"""The SPEC syntax of an axis: lists and sequences of whole numbers. Pure.

========================  =====================================================
``64 512`` or ``64,512``  a list
``64 .32 .256``           a sequence: from, step, to (the last value is at most *to*)
``64..32..256``           the same, short
``1.5M``, ``500k``        decimals and the suffixes k (1,000) and M (1,000,000), also inside a sequence
========================  =====================================================

Lists and sequences can be mixed: ``64 128..128..1024 1500``. A value that occurs twice is taken once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from decimal import Decimal

from pytest_icbench.errors import UsageError
from pytest_icbench.wording import THOUSANDS

#: More values than this in one axis are a mistake.
MAX_VALUES = 10_000
#: 100 Gbit/s of 64-byte frames is 149 Mpps; a rate above this is a slip of the keyboard.
MAX_RATE_PPS = 1_000_000_000

#: Longer than any sensible SPEC, and a bound for what a message quotes.
_MAX_DIGITS = 15

#: Other ways to write a range.
_RANGE = re.compile(r"(?P<first>\d+[kM]?)(?:-|:|\.\.)(?P<last>\d+[kM]?)", re.ASCII)
_NUMBER = re.compile(r"(?P<digits>\d+(?:\.\d+)?|\.\d+)(?P<suffix>[kM]?)", re.ASCII)


_WORD = re.compile(r"""(?:'[^']*'|"[^"]*"|[^\s,])+""")


def split_words(text: str, where: str) -> list[str]:
    """Splits a text at blanks and commas, but not within quotes, which are removed.

    Raises:
        UsageError: a comma has nothing on one side.
    """
    parts = [part.strip() for part in re.sub(r"""'[^']*'|"[^"]*\"""", "x", text).split(",")]
    if any(parts) and not all(parts):
        raise UsageError(f"{where}: '{_quote(text)}' has a comma with no value on one side; leave the comma out")
    return [re.sub(r"""'([^']*)'|"([^"]*)\"""", r"\1\2", word) for word in _WORD.findall(text)]


def parse_spec(
    text: str | list[str], where: str, *, word: Callable[[str], int | None] | None = None
) -> tuple[int, ...]:
    """Returns the values of a SPEC in order, each once.

    Args:
        text: what the user wrote, or its words.
        where: the name of the option in a message, for example ``--icbench-packet-size``.
        word: turns a name such as ``max`` into a value; returns None for any other text.

    Raises:
        UsageError: one sentence that names ``where`` and the part that is wrong.
    """
    tokens = split_words(text, where) if isinstance(text, str) else list(text)
    if not tokens:
        raise UsageError(f"{where}: no value given; write a list (64 512) or a sequence (64..32..256)")
    values: dict[int, None] = {}
    while tokens:
        token = tokens.pop(0)
        if word is not None and (named := word(token)) is not None:
            numbers: Iterable[int] = (named,)
        elif _is_short(token):
            numbers = _short(token, where)
        elif token.startswith("."):
            raise UsageError(
                f"{where}: '{_quote(token)}' is a step without a start; a sequence is from .step .to (64 .32 .256)"
            )
        elif tokens and _is_step(tokens[0]):
            numbers = _long(token, tokens.pop(0), tokens.pop(0) if tokens else "", where)
        else:
            numbers = (_number(token, where),)
        values.update(dict.fromkeys(numbers))
        if len(values) > MAX_VALUES:
            raise UsageError(f"{where}: more than {MAX_VALUES} values; take a greater step")
    return tuple(values)


def parse_words(text: str, where: str) -> tuple[str, ...]:
    """Returns names separated by blanks or commas, each once. Raises UsageError if there is none."""
    words = tuple(dict.fromkeys(split_words(text, where)))
    if not words:
        raise UsageError(f"{where}: no value given; write names separated by blanks or commas")
    return words


def _is_short(token: str) -> bool:
    return ".." in token


def _is_step(token: str) -> bool:
    return token.startswith(".") and not _is_short(token)


def _long(first: str, step: str, last: str, where: str) -> range:
    """Returns the values of ``first step last``, where step and last begin with a dot. Raises UsageError."""
    if not _is_step(last):
        raise UsageError(
            f"{where}: the sequence '{_quote(first)} {_quote(step)}' has no end; write it as from .step .to (64 .32"
            " .256)"
        )
    bounds = _number(first, where), _number(step[1:], where), _number(last[1:], where)
    return _sequence(*bounds, f"{first} {step} {last}", where)


def _short(token: str, where: str) -> range:
    parts = token.split("..")
    if len(parts) != 3 or not all(parts):
        raise UsageError(
            f"{where}: '{_quote(token)}' is not a sequence; write it as from..step..to ({_as_sequence(token)})"
        )
    first, step, last = (_number(part, where) for part in parts)
    return _sequence(first, step, last, token, where)


def _sequence(first: int, step: int, last: int, text: str, where: str) -> range:
    if step == 0:
        raise UsageError(f"{where}: the sequence '{_quote(text)}' has step 0; take a step of at least 1")
    if last < first:
        raise UsageError(f"{where}: the sequence '{_quote(text)}' ends below its start; write the smaller value first")
    if (last - first) // step + 1 > MAX_VALUES:
        raise UsageError(
            f"{where}: the sequence '{_quote(text)}' has more than {MAX_VALUES} values; take a greater step"
        )
    return range(first, last + 1, step)


def _number(text: str, where: str) -> int:
    match = _NUMBER.fullmatch(text)
    if match is None and _RANGE.fullmatch(text) is not None:
        raise UsageError(f"{where}: '{_quote(text)}' is no sequence; write from..step..to ({_as_sequence(text)})")
    if match is None or len(match["digits"]) > _MAX_DIGITS:
        raise UsageError(
            f"{where}: '{_quote(text)}' is not a number; write whole numbers, also with k or M (64, 500k, 1.5M)"
        )
    value = Decimal(match["digits"]) * THOUSANDS[match["suffix"]]
    if value != int(value):
        raise UsageError(f"{where}: '{_quote(text)}' is not a whole number")
    return int(value)


def _as_sequence(text: str) -> str:
    """Returns what was probably meant by another way to write a range, as a sequence in steps of its first value."""
    match = _RANGE.fullmatch(text)
    return "64..32..256" if match is None else f"{match['first']}..{match['first']}..{match['last']}"


def _quote(text: str) -> str:
    """Returns a user's text as a message quotes it: printable and short."""
    shown = "".join(char if char.isprintable() else "?" for char in text)
    return shown if len(shown) <= 60 else shown[:57] + "..."
