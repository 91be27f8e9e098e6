# SPDX-License-Identifier: BSD-3-Clause
"""Parses rates: frames per second, what a search looks for, bits per second, and traces.

``10Gbps`` counts what a link carries: the frame with its FCS and 20 bytes of preamble and gap (L1), so that 10Gbps fill
a link of 10 Gbit/s, as in RFC 2544's tables and CSIT's results. ``10GbpsL2`` counts the frame alone. Bits per second
are frames per second once the frame's length is known.

A trace is a load that changes. Its file has a line a second: ``SECOND,RATE``, or a rate for each pair.
"""

from __future__ import annotations

import re
import stat
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from pytest_icbench.config import values
from pytest_icbench.config.values import MAX_RATE_PPS, parse_spec, split_words
from pytest_icbench.errors import UsageError
from pytest_icbench.model.rate import MAX_LOSS_RATIO, MIN_LOSS_RATIO, Rate, exact_percent, named_rate
from pytest_icbench.model.text_files import read_bytes
from pytest_icbench.model.trace import MOST_SECONDS, Trace
from pytest_icbench.model.traffic import Traffic

_RATE_FORMS = (
    "a rate is max, ndr, pdr:0.5%, mfr, a part of a searched rate (ndr*0.5), frames per second (1000, 500k, 1.5M,"
    " 5Mpps) or bits per second (10Gbps; 10GbpsL2 without preamble and gap), a list of them (500k 1M max) or a sequence"
    " (1M..1M..20M)"
)
#: Preamble, start of frame and smallest gap, in bytes (IEEE 802.3).
L1_BYTES = 20

_BITS = re.compile(
    r"(?P<digits>\d{1,12}(?:\.\d{1,6})?|\.\d{1,6})(?P<prefix>[kKMGT]?)(?:bps|bit|bit/s)(?P<layer>L[12])?"
)
_PREFIXES = {"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
#: The unit of frames per second, which may be left out: ``5Mpps`` is ``5M``.
_PPS = re.compile(r"(?<=[\dkM])pps\b")
#: The beginning of a rate that is a trace.
PREFIX = "trace:"
_TRACE_RATE = re.compile(r"\d{1,9}", re.ASCII)


def parse_rates(text: str, where: str) -> tuple[Rate | BitRate, ...]:
    """Parses ``max``, ``ndr``, ``pdr:X%``, ``mfr``, traces, and frames or bits per second per pair.

    Raises UsageError: the sentence has all forms.
    """
    named: list[Rate | BitRate] = []

    def word(token: str) -> int | None:
        rate = trace_rate(token, where) if token.startswith(PREFIX) else named_rate(token) or bit_rate(token)
        if rate is None:
            return None
        if rate not in named:
            named.append(rate)
        return -1 - named.index(rate)  # below every number of frames

    words = _words(text, where)
    try:
        numbers = parse_spec(words, where, word=word)
    except UsageError as error:
        raise _bad_rate(words, where) or error from None
    values.in_range([value for value in numbers if value >= 0], where, "frames per second", 1, MAX_RATE_PPS)
    return tuple(Rate(value) if value >= 0 else named[-1 - value] for value in numbers)


def _words(text: str, where: str) -> list[str]:
    """Splits rates. A line that names a trace file is one rate, even with blanks and commas."""
    words: list[str] = []
    for line in map(str.strip, text.splitlines()):
        if line.startswith(PREFIX) and stat.S_ISREG(values.mode_of(Path(line.removeprefix(PREFIX)))):
            words.append(line)
        else:
            words += (word if word.startswith(PREFIX) else _PPS.sub("", word) for word in split_words(line, where))
    return words


def _bad_rate(words: list[str], where: str) -> UsageError | None:
    """Returns a sentence on the first part that looks like no rate at all; None if only a number or step is wrong."""
    for token in words:
        if token.startswith(PREFIX) or named_rate(token) is not None or bit_rate(token) is not None:
            continue
        if token.startswith("pdr"):
            least, greatest = exact_percent(MIN_LOSS_RATIO), exact_percent(MAX_LOSS_RATIO)
            return UsageError(
                f"{where}: unknown rate '{token}'; a partial-drop rate names its largest loss ratio in per cent,"
                f" {least} to {greatest} (pdr:0.5%)"
            )
        if token.endswith("%"):
            return UsageError(
                f"{where}: '{token}' of what? A virtual link has no speed to take a share of: give a rate (5Mpps,"
                " 10Gbps), or a part of a searched one (ndr*0.5)"
            )
        if token[:1].isalpha() or (token[:1].isdigit() and token[-1:].isalpha() and token[-1:] not in "kM"):
            return UsageError(f"{where}: unknown rate '{token}'; {_RATE_FORMS}")
    return None


def parse_loads(text: str, where: str) -> tuple[int, ...]:
    """Parses the offered loads of a sweep: frames per second per pair, a list or a sequence."""
    return values.in_range(parse_spec(text, where), where, "frames per second", 1, MAX_RATE_PPS)


@dataclass(frozen=True, slots=True)
class BitRate:
    """A fixed offered load of each pair in bits per second.

    Attributes:
        layer: 1 with preamble and gap, 2 without.
        text: as the user wrote it.
    """

    bps: int
    layer: int
    text: str

    def at(self, traffic: Traffic, where: str) -> Rate:
        """Returns the frames per second of a traffic, rounded down.

        Raises UsageError: the rate is below 1, or above what any link carries.
        """
        bits = (traffic.mean_bytes + (L1_BYTES if self.layer == 1 else 0)) * 8
        pps = int(self.bps / bits)
        if pps < 1:
            raise UsageError(f"{where}: {self.text} is less than one frame of {traffic.label} a second")
        if pps > MAX_RATE_PPS:
            raise UsageError(f"{where}: {self.text} is {pps:,} frames of {traffic.label} a second; take less")
        return Rate(pps)


def bit_rate(token: str) -> BitRate | None:
    """Returns the rate that ``10Gbps``, ``500Mbit/s`` or ``10GbpsL2`` says; None for any other text."""
    match = _BITS.fullmatch(token)
    if match is None:
        return None
    bps = Decimal(match["digits"]) * _PREFIXES[match["prefix"]]
    return BitRate(int(bps), 2 if match["layer"] == "L2" else 1, token)


def trace_rate(token: str, where: str) -> Rate:
    """Returns the rate of ``trace:steps:30k`` or ``trace:FILE``; a relative path begins at the working directory.

    Raises UsageError: the file cannot be read; a second is missing, or a rate is none; with the line.
    """
    text = token.removeprefix(PREFIX)
    trace = Trace.of(text)
    if trace is not None and not trace.columns:
        return Rate(trace=trace)
    path = Path(text)
    try:
        lines = read_bytes(path).decode().splitlines()
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{where}: '{token[:80]}' is not a trace ({error.strerror if isinstance(error, OSError) else error}): write"
            " trace:steps:30k, trace:shift:30k, trace:freeze:30k or trace:random:SEED:30k (30k: highest rate),"
            " or trace:FILE"
        ) from None
    return Rate(trace=_read(lines, path, where))


def _read(lines: list[str], path: Path, where: str) -> Trace:
    rows: list[list[int]] = []
    for number, line in enumerate(lines, start=1):
        words = line.partition("#")[0].replace(",", " ").split()
        at = f"{where}: {path} line {number}"
        if not words:
            continue
        for word in words:
            if not _TRACE_RATE.fullmatch(word):
                raise UsageError(
                    f"{at}: '{word[:20]}' is not a number of frames per second: write SECOND,RATE (0 to 999999999)"
                )
        second, *rates = map(int, words)
        if second != len(rows):
            raise UsageError(f"{at}: second {second} is where {len(rows)} belongs: a trace has every second, from 0")
        if not rates or (rows and len(rates) != len(rows[0])):
            expected = f"{len(rows[0])}" if rows else "one at least"
            raise UsageError(
                f"{at}: {len(rates)} rates, and each second needs {expected}: one for all pairs, or for each"
            )
        rows.append(rates)
    if not rows or len(rows) > MOST_SECONDS or not any(map(any, rows)):
        raise UsageError(f"{where}: {path} is not a trace: it needs 1 to {MOST_SECONDS} seconds, and a rate above 0")
    label = re.sub(r"[^\w.]", "_", path.stem, flags=re.ASCII)[:40]
    return Trace(label, tuple(zip(*rows, strict=True)))
