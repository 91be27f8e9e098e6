# SPDX-License-Identifier: BSD-3-Clause
"""Parsers of a user's text for options and arguments of markers, named by what they parse.

Every error is one sentence that begins with ``where``: the name of the option, or the place of the marker.

A SPEC is lists and sequences of whole numbers, which can be mixed: ``64 128..128..1024 1500``. A value is taken once.

========================  =====================================================
``64 512`` or ``64,512``  a list
``64 .32 .256``           a sequence: from, step, to (the last value is at most *to*)
``64..32..256``           the same, short
``1.5M``, ``500k``        decimals and the suffixes k (1,000) and M (1,000,000), also inside a sequence
========================  =====================================================
"""

from __future__ import annotations

import re
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from math import isfinite
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

from pytest_icbench.errors import UsageError
from pytest_icbench.model.api_techniques import APIS
from pytest_icbench.model.application import is_load
from pytest_icbench.model.switch_tree import installed_programs, places_in, program_in
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

    Raises UsageError: a comma has nothing on one side.
    """
    parts = [part.strip() for part in re.sub(r"""'[^']*'|"[^"]*\"""", "x", text).split(",")]
    if any(parts) and not all(parts):
        raise UsageError(f"{where}: '{_quote(text)}' has a comma with no value on one side; leave the comma out")
    return [re.sub(r"""'([^']*)'|"([^"]*)\"""", r"\1\2", word) for word in _WORD.findall(text)]


def parse_spec(
    text: str | list[str], where: str, *, word: Callable[[str], int | None] | None = None
) -> tuple[int, ...]:
    """Returns the values of a SPEC in order, each once.

    ``word``: turns a name such as ``max`` into a value; returns None for any other text. Raises UsageError: one
    sentence that names ``where`` and the part that is wrong.
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
    """Returns the sequence that a range in another notation probably means; its step is its first value."""
    match = _RANGE.fullmatch(text)
    return "64..32..256" if match is None else f"{match['first']}..{match['first']}..{match['last']}"


def _quote(text: str) -> str:
    """Returns a user's text as a message quotes it: printable and short."""
    shown = "".join(char if char.isprintable() else "?" for char in text)
    return shown if len(shown) <= 60 else shown[:57] + "..."


_Value = TypeVar("_Value")

#: What stands between SWITCH=FILE and the next one: names of files can have blanks.
_NEXT_FILE = re.compile(r"\s*\n\s*|\s+(?=[\w.:+-]+=)")

_SECONDS = re.compile(r"(\d+(?:\.\d+)?|\.\d+)\s*(ms|s|min|m|h)?", re.ASCII)
_UNITS_S = {"ms": 0.001, "s": 1.0, "": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


def as_text(value: object, where: str) -> str:
    """Returns a value of a marker or a TOML file as the user would write it on the command line.

    Raises UsageError for other types than numbers, texts, booleans and lists of these.
    """
    if isinstance(value, list | tuple | range):
        parts = [as_text(part, where) for part in value]
        return ("\n" if any(" " in part for part in parts) else " ").join(parts)  # a name with blanks has its own line
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, int | float):
        raise UsageError(f"{where}: {value!r} is neither a number nor a text nor a list of these")
    return f"{value:.9f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def numbers(unit: str, least: int, greatest: int) -> Callable[[str, str], tuple[int, ...]]:
    """Returns a parser for a SPEC whose values lie between ``least`` and ``greatest``, both included."""

    def parse(text: str, where: str) -> tuple[int, ...]:
        return in_range(parse_spec(text, where), where, unit, least, greatest)

    return parse


def in_range(values: Sequence[int], where: str, unit: str, least: int, greatest: int) -> tuple[int, ...]:
    """Returns the values if all of them lie in the range. Raises UsageError naming the first that does not."""
    for value in values:
        if not least <= value <= greatest:
            raise UsageError(f"{where}: {value} is outside {least} to {greatest} {unit}")
    return tuple(values)


def labels(
    parse: Callable[[str], _Value], missing: str, wrong: str, *, commas: bool = True
) -> Callable[[str, str], tuple[_Value, ...]]:
    """Returns a parser for words with blanks between, which gives the value of each once.

    Args:
        parse: returns the value of a word, or raises ValueError with the end of a sentence.
        missing: the sentence if there is no word.
        wrong: what a bad word is, such as ``is not a mix``.
        commas: whether commas separate words, too.
    """

    def parse_each(text: str, where: str) -> tuple[_Value, ...]:
        words = (text.replace(",", " ") if commas else text).split()
        if not words:
            raise UsageError(f"{where}: {missing}")
        parsed: dict[_Value, None] = {}
        for word in words:
            try:
                parsed[parse(word)] = None
            except ValueError as error:
                raise UsageError(f"{where}: '{word[:60]}' {wrong}: {error}") from None
        return tuple(parsed)

    return parse_each


def apis(text: str, where: str) -> tuple[str, ...]:
    """Parses API techniques. ``all`` stands for every one that a switch can use."""
    words = parse_words(text, where)
    for word in words:
        if word not in (*APIS, "all"):
            raise UsageError(f"{where}: there is no API '{word}'; known are {' '.join(APIS)} and all")
    return words


def rx_modes(text: str, where: str) -> tuple[str, ...]:
    """Parses ways in which a switch's workers learn of frames. Raises UsageError."""
    from pytest_icbench.model.case import RX_MODES

    words = parse_words(text, where)
    for word in words:
        one_of(*RX_MODES)(word, where)
    return words


def one_of(*choices: str) -> Callable[[str, str], str]:
    """Returns a parser for one word out of ``choices``."""

    def parse(text: str, where: str) -> str:
        if text.strip() not in choices:
            raise UsageError(f"{where}: '{text.strip()}' is none of {', '.join(choices)}")
        return text.strip()

    return parse


def order(text: str, where: str) -> str:
    """Parses ``given``, ``random`` or the seed of a random order, up to nine digits."""
    word = text.strip()
    if word in ("given", "random") or (word.isascii() and word.isdigit() and len(word) <= 9):
        return word
    raise UsageError(f"{where}: '{word}' is neither given nor random nor a seed (a whole number of up to nine digits)")


def boolean(text: str, where: str) -> bool:
    """Parses ``yes no true false on off 1 0``."""
    word = text.strip().lower()
    if word in ("yes", "true", "on", "1"):
        return True
    if word in ("no", "false", "off", "0"):
        return False
    raise UsageError(f"{where}: '{text.strip()}' is neither yes nor no")


class Seconds:
    """A parser for a time in seconds (``0.5``, ``2s``, ``100ms``, ``20m``, ``1h``) between two bounds."""

    __slots__ = ("greatest", "least")

    def __init__(self, least: float, greatest: float) -> None:
        self.least, self.greatest = least, greatest

    def __call__(self, text: str, where: str) -> float:
        match = _SECONDS.fullmatch(text.strip())
        if match is None:
            raise UsageError(f"{where}: '{text.strip()}' is not a time; write seconds (0.5, 10) or a unit (100ms, 20m)")
        value = float(match[1]) * _UNITS_S[match[2] or ""]
        if not isfinite(value) or not self.least <= value <= self.greatest:
            raise UsageError(f"{where}: {value:g} s is outside {self.least:g} to {self.greatest:g} s")
        return value


def precision(text: str, where: str) -> float:
    """Parses the relative half-width of an interval: ``3%`` or ``0.03``, from 0.1 % to 50 %."""
    word = text.strip()
    try:
        value = float(word.removesuffix("%").strip()) / (100 if word.endswith("%") else 1)
    except ValueError:
        raise UsageError(f"{where}: '{word}' is not a precision; write 3% or 0.03") from None
    if not 0.001 <= value <= 0.5:
        raise UsageError(f"{where}: {value:g} is outside 0.001 to 0.5; write 3% or 0.03 for three per cent")
    return value


def count(least: int, greatest: int, unit: str) -> Callable[[str, str], int]:
    """Returns a parser for one whole number between two bounds, both included."""

    def parse(text: str, where: str) -> int:
        values = parse_spec(text, where)
        if len(values) != 1:
            raise UsageError(f"{where}: one number is required, '{text.strip()}' has {len(values)}")
        return in_range(values, where, unit, least, greatest)[0]

    return parse


def rounds(text: str, where: str) -> int:
    """Parses a number of rounds: 1, or enough to estimate the spread between rounds. Raises UsageError."""
    number = count(1, 100, "rounds")(text, where)
    if number == 2:
        raise UsageError(f"{where}: two rounds cannot show the spread between rounds: give 3 or more, or 1 for none")
    return number


def ring(text: str, where: str) -> int:
    """Parses the number of descriptors per ring, a power of two."""
    value = count(16, 4096, "descriptors")(text, where)
    if value & (value - 1):
        raise UsageError(f"{where}: {value} is not a power of two; take 256, 512 or 1024")
    return value


def hugepage_size_kib(text: str, where: str) -> int:
    return {"2M": 2048, "1G": 1_048_576}[one_of("2M", "1G")(text, where)]


def path(text: str, _where: str, base: Path) -> Path:
    """Returns a path relative to ``base``; ``~`` is the user's directory."""
    try:
        return base / Path(text).expanduser()
    except (RuntimeError, ValueError):  # no such user, or a name that none can have
        return base / text


def files(text: str, where: str, base: Path) -> Mapping[str, Path]:
    """Parses ``ovs=a.toml vpp=b.toml`` to paths by switch. Raises UsageError."""
    paths: dict[str, Path] = {}
    for word in filter(None, _NEXT_FILE.split(text.strip())):
        name, equals, file = word.partition("=")
        file = file.strip()
        if len(file) > 1 and file[0] == file[-1] and file[0] in "'\"":
            file = file[1:-1]
        if not (name and equals and file):
            raise UsageError(f"{where}: '{word}' is not SWITCH=FILE (ovs=ovs.toml; several with spaces between)")
        if name in paths:
            raise UsageError(f"{where}: there are two files for {name}")
        paths[name] = path(file, where, base)
    return MappingProxyType(paths)


def programs(text: str, where: str, base: Path) -> Mapping[str, Path]:
    """Parses lines like ``vpp=/opt/vpp/bin/vpp`` to programs by switch. Raises UsageError."""
    paths: dict[str, Path] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        name, equals, file = line.partition("=")
        if not (name and equals and file):
            raise UsageError(f"{where}: '{line}' is not SWITCH=PATH (vpp=/opt/vpp/bin/vpp)")
        if name in paths:
            raise UsageError(f"{where}: there are two programs for {name}; give one")
        paths[name] = program(name, file, where, base)
    return MappingProxyType(paths)


def file_mode(file: Path, where: str) -> int:
    """Returns the mode of a file. Raises UsageError if there is none, or if no file can have that name."""
    if not stat.S_ISREG(mode := mode_of(file)):
        raise UsageError(f"{where}: there is no file {file}")
    return mode


def mode_of(file: Path) -> int:
    """Returns a file's mode; 0 if there is none, also for a name that no file can have."""
    try:
        return file.stat().st_mode
    except (OSError, ValueError):  # ValueError: a zero byte
        return 0


def program(switch: str, text: str, where: str, base: Path) -> Path:
    """Returns a program that is named by its path, by a tree that has it, or by a tree's version. Raises UsageError."""
    file = path(text, where, base)
    places = places_in(switch)
    mode = mode_of(file)
    if places and stat.S_ISDIR(mode):
        found = program_in(switch, file)
        if found is None:
            raise UsageError(f"{where}: {file} has no program of {switch} ({', '.join(places)}): name the program")
        return found
    if places and "/" not in text and not mode and (programs := installed_programs(switch, text)):
        return programs[0]
    if not file_mode(file, where) & 0o111:
        raise UsageError(f"{where}: {file} is not executable")
    return file


def flags(value: object, where: str) -> tuple[bool, ...]:
    """Returns the values of an argument that is True, False or a list of these. Raises UsageError."""
    given = tuple(dict.fromkeys(value)) if isinstance(value, list | tuple) else (value,)
    if not given or not all(isinstance(flag, bool) for flag in given):
        raise UsageError(f"{where}: {value!r} is neither True nor False nor a list of these")
    return tuple(flag for flag in given if isinstance(flag, bool))


def applications(text: str, where: str) -> tuple[str, ...]:
    """Parses loads of applications (``redis iperf3:c4``), whose names are checked where applications are known."""
    loads = parse_words(text, where)
    for load in loads:
        if not is_load(load):
            raise UsageError(
                f"{where}: '{load}' is not an application; write NAME[:MODE][:cN][:NB][:rN], as redis:set:c16"
            )
    return loads


_BASELINE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,99}")


def baseline_name(text: str, where: str) -> str:
    """Parses the name of a baseline, which becomes the name of a directory."""
    if not _BASELINE_NAME.fullmatch(text):
        raise UsageError(f"{where}: '{text}' is not a name of a baseline; take letters, digits and _ . + -")
    return text


_HOST = re.compile(r"(?:[A-Za-z0-9._-]+@)?[A-Za-z0-9_][A-Za-z0-9._-]*|(?:[A-Za-z0-9._-]+@)?[0-9A-Fa-f:]+(?:%\w+)?")
_PYTHON = re.compile(r"[\w./+-]+")


def host_name(text: str, where: str) -> str:
    """Parses ``[USER@]HOST`` as ssh takes it, including an alias of its configuration. Raises UsageError."""
    if not _HOST.fullmatch(text):
        raise UsageError(f"{where}: '{text}' is no [USER@]HOST; ports and the like belong into ssh's configuration")
    return text


def python_path(text: str, where: str) -> str:
    """Parses the path of a Python on the second host. Raises UsageError."""
    if not _PYTHON.fullmatch(text) or "//" in text:
        raise UsageError(f"{where}: '{text}' is not a path of a Python: letters, digits and . / + - _ only")
    return text
