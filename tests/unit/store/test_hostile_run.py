# SPDX-License-Identifier: BSD-3-Clause
"""Readers of a stored run end in one printable sentence, whatever its files hold."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pytest_icbench.cli.report import recompute
from pytest_icbench.errors import UsageError
from pytest_icbench.gate.entry import make_entry
from pytest_icbench.gate.judge import Waiver
from pytest_icbench.model.codec import from_json
from pytest_icbench.model.measurement import Measurement, Result
from pytest_icbench.report.terminal_table import table
from pytest_icbench.store import baselines, stored_run, transfer, waiver_file
from pytest_icbench.store.baselines import read_source
from pytest_icbench.store.resume import ResumedRun
from pytest_icbench.store.run_directory import parse_record
from pytest_icbench.store.run_json import RunInfo
from pytest_icbench.store.stored_run import parse_raw, read_run
from tests.hostile import mutated_data, mutated_text, refusals

RUN = Path(__file__).with_name("stored_run")
NAMES = sorted(str(path.relative_to(RUN)) for path in RUN.rglob("*.json*"))


def damaged(text: str, chance: random.Random) -> bytes:
    """Returns a file with one changed line: changed as data, as text, or cut in the middle of a character."""
    lines = text.splitlines()
    if chance.random() < 0.1:
        return mutated_text(text[:3000], chance).encode(errors="surrogatepass") + b"\xc3"
    place = chance.randrange(len(lines)) if len(text.splitlines()[0]) > 1 else None
    if place is None:  # run.json is one object over many lines
        return json.dumps(mutated_data(json.loads(text), chance)).encode() + b"\n"
    if chance.random() < 0.2:
        lines[place] = mutated_text(lines[place], chance)
    else:
        lines[place] = json.dumps(mutated_data(json.loads(lines[place]), chance))
    return ("\n".join(lines) + "\n").encode(errors="surrogatepass")


def _texts() -> dict[str, str]:
    raw = (RUN / next(name for name in NAMES if name.startswith("raw/"))).read_text(encoding="utf-8")
    entries = [make_entry(item.measurement) for item in read_run(RUN).results]
    return {
        "run.json": (RUN / "run.json").read_text(encoding="utf-8"),
        "result": (RUN / "results.jsonl").read_text(encoding="utf-8").partition("\n")[0],
        "windows": "".join(raw.splitlines(keepends=True)[:4]),  # few, so that many inputs take little time
        "baseline": baselines.format_baseline(entry for entry in entries[:2] if entry is not None),
        "waivers": waiver_file.write([Waiver("ovs-*", "known", "2031-01-31"), Waiver("*", "slow", "2030-01-31")]),
    }


TEXTS = _texts()
#: What reads one stored text.
PARSERS: dict[str, Callable[[str], object]] = {
    "run.json": lambda text: parse_record(RunInfo, text, "run.json"),
    "result": lambda text: Measurement.from_dict(from_json(text, "line"), "line"),
    "windows": lambda text: parse_raw(text, Path("raw.jsonl")),
    "baseline": lambda text: baselines.parse_baseline(text, "baseline"),
    "waivers": lambda text: waiver_file.read(text, "waivers"),
}


def _read(name: str, chance: random.Random) -> None:
    PARSERS[name](damaged(TEXTS[name], chance).decode(errors="replace"))


def _parcel() -> dict[str, Any]:
    place = next(item.place for item in read_run(RUN).results if item.place is not None)
    sent = transfer.pack(RUN, [place], first=True)
    sent["places"][0]["text"] = "".join(sent["places"][0]["text"].splitlines(keepends=True)[:4])
    return {**sent, "baseline": {"baselines/main/0123/abcd.json": TEXTS["baseline"]}}


PARCEL = _parcel()
RESULTS = [json.loads(TEXTS["result"])]


def _read_parcel(chance: random.Random) -> None:
    if chance.random() < 0.3:
        transfer.unpack(PARCEL, mutated_data(RESULTS, chance))
    else:
        transfer.unpack(mutated_data(PARCEL, chance), RESULTS)


STORED: dict[str, Callable[[random.Random], object]] = {
    **{f"stored {name}": partial(_read, name) for name in PARSERS},
    "parcel": _read_parcel,
}


def test_a_raw_file_whose_first_line_has_no_end_is_read_up_to_a_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    shutil.copytree(RUN, run)
    (run / "tests.jsonl").unlink()
    assert all(result.raw is not None for result in read_run(run).results)
    monkeypatch.setattr(stored_run, "MOST_STORED_BYTES", 100)
    with pytest.raises(UsageError, match=r"jsonl line 1: not valid JSON"):
        read_run(run)


@pytest.mark.parametrize("name", STORED)
def test_a_damaged_text_gets_a_sentence(name: str) -> None:
    refused, wrong = refusals(STORED[name], 60)
    assert wrong == {}
    assert refused > 10


def tried(directory: Path, tries: int, seed: int) -> tuple[int, dict[str, str]]:
    run = directory / "run"
    shutil.copytree(RUN, run)
    texts = {name: (RUN / name).read_text(encoding="utf-8") for name in NAMES}

    def read(chance: random.Random) -> None:
        name = chance.choice(NAMES)
        (run / name).write_bytes(damaged(texts[name], chance))
        refusal = None
        try:
            for reader in (
                lambda: table([Result.of(item.measurement) for item in recompute(read_run(run))]),
                lambda: ResumedRun(run).rates(),
                lambda: read_source(str(run), directory),
            ):
                try:
                    reader()
                except UsageError as error:
                    refusal = error
        finally:
            (run / name).write_text(texts[name], encoding="utf-8")
        if refusal is not None:
            raise refusal

    return refusals(read, tries, seed)


@pytest.mark.parametrize(
    ("key", "name", "value"),
    [
        *(("axes", "odd", 1), ("axes", "burst", "x"), ("axes", "burst", [1]), ("axes", "pairs", 0)),
        *(("axes", "rate", [1]), ("axes", "rate", {}), ("axes", "packet_size", None), ("axes", "switch", 1)),
        *(("settings", "duration_s", "1"), ("settings", "window_s", None), ("settings", "min_launches", [])),
        *(("settings", "precision", 10**400), ("identity", "cpu_model", "\ud800")),
    ],
)
def test_values_of_a_wrong_type_end_in_a_sentence(tmp_path: Path, key: str, name: str, value: Any) -> None:
    run = Path(shutil.copytree(RUN, tmp_path / "run"))
    for file in (run / "results.jsonl", *run.glob("raw/**/*.jsonl")):
        first, *rest = file.read_text(encoding="utf-8").splitlines()
        data = json.loads(first)
        data[key][name] = value
        file.write_text("\n".join([json.dumps(data), *rest]) + "\n", encoding="utf-8")
    if name == "odd":  # a later version may have added it
        reasons = [str(item.unsupported_reason) for item in recompute(read_run(run))]
        assert all("intervals are of an earlier version" in reason for reason in reasons)
        return
    with pytest.raises(UsageError) as caught:
        read_run(run)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("limit", [{"odd": 1}, {"name": "lost", "kind": "max", "value": "1", "source": ""}, {}])
def test_limits_of_a_wrong_type_end_in_a_sentence(tmp_path: Path, limit: dict[str, Any]) -> None:
    run = Path(shutil.copytree(RUN, tmp_path / "run"))
    file = run / "tests.jsonl"
    tests = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    for test in tests:
        for place in test["results"]:
            place["limits"] = [limit]
    file.write_text("".join(f"{json.dumps(test)}\n" for test in tests), encoding="utf-8")
    assert all(item.unsupported_reason for item in recompute(read_run(run)))


def test_a_raw_file_of_an_older_run_is_no_text(tmp_path: Path) -> None:
    run = Path(shutil.copytree(RUN, tmp_path / "run"))
    (run / "tests.jsonl").unlink()
    next(run.glob("raw/**/*.jsonl")).write_bytes(b"\xff\n")
    with pytest.raises(UsageError, match=r"jsonl line 1: "):
        read_run(run)


def test_the_name_of_a_raw_file_is_too_long(tmp_path: Path) -> None:
    run = Path(shutil.copytree(RUN, tmp_path / "run"))
    file = run / "tests.jsonl"
    file.write_text(file.read_text(encoding="utf-8").replace("raw/", "raw/" + "a" * 300 + "/"), encoding="utf-8")
    with pytest.raises(UsageError, match="is no name of a file"):
        read_run(run)


def test_a_damaged_run_gets_a_sentence(tmp_path: Path) -> None:
    refused, wrong = tried(tmp_path, 40, 1)
    assert wrong == {}
    assert refused > 10


@pytest.mark.slow
def test_hundreds_of_damaged_runs_get_a_sentence(tmp_path: Path) -> None:
    assert tried(tmp_path, 600, 2)[1] == {}
