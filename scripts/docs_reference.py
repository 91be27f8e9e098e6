# SPDX-License-Identifier: BSD-3-Clause
"""Makes the parts of the documents that are in the code: options, keys of files, abilities of switches, the API.

They exist in the site alone, in the place of `<!-- built: NAME -->`.
"""

from __future__ import annotations

import inspect
import re
import sys
import textwrap
import tokenize
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from docs_programs import subcommands, targets, workload_options
from docs_records import cell, described_keys, keys_of
from docs_tables import application_table, fixture, traits

from pytest_icbench import api
from pytest_icbench.config.axis import GROUPS
from pytest_icbench.config.option_table import INI_ONLY, TABLE
from pytest_icbench.config.topology import Table
from pytest_icbench.driver.switch.protocol import ForwardingBehaviour, read_behaviour
from pytest_icbench.driver.switch.registry import builtin_switches
from pytest_icbench.host.rights import GRANTS
from pytest_icbench.model.figures import KINDS, Application, FrameFigures, Latency, Search, Startup, Throughput
from pytest_icbench.model.finding import Finding, SideBySide
from pytest_icbench.model.function_facts import ChainAccount, FunctionWork
from pytest_icbench.model.launch import EndpointWork, Launch, PairCounts, PairResult, SwitchPort, Window
from pytest_icbench.model.measurement import Measurement
from pytest_icbench.model.noisy_neighbour import NoisyNeighbourEffect
from pytest_icbench.model.routes import ROUTER_MODES
from pytest_icbench.model.trace import LoadChange
from pytest_icbench.model.trials import BackToBack, LossEvent, SearchLog, SweepPoint, Trial
from pytest_icbench.store.history_file import Entry
from pytest_icbench.store.run_directory import ResultPlace, TestRecord
from pytest_icbench.store.run_json import RunInfo

ROOT = Path(__file__).parents[1]
#: Members that are shown with their whole docstring; of others the first paragraph says enough.
IN_FULL = ("Icbench", "Switch", "Node")


def table_of(rows: Iterable[tuple[str, str]]) -> str:
    """Returns a table of options with their meanings."""
    lines = [f"| `{cell(name.strip())}` | {cell(meaning.replace('%%', '%'))} |" for name, meaning in rows]
    return "\n".join(["| option | meaning |", "| --- | --- |", *lines])


def grants() -> str:
    """Returns what gives a job's container the rights of a session."""
    rows = [f"| {runner} | `{grant}` |" for runner, grant in GRANTS.items()]
    return "\n".join(["| runner | grants them by |", "| --- | --- |", *rows])


def options() -> str:
    """Returns the options of the command line in the groups of `pytest --help`."""
    parts = []
    for title in GROUPS:
        heading = title.removeprefix("icbench, ").capitalize()
        rows = ((f"{row.option} {row.metavar}", row.help) for row in TABLE if row.group == title)
        parts += [f"## {heading}", table_of(rows)]
    return "\n\n".join(parts)


def ini_values() -> str:
    """Returns the values of the ini file that no option has."""
    rows = ["| ini value | meaning |", "| --- | --- |"]
    rows += [f"| `{name}` | {cell(text.replace('%%', '%'))} |" for name, text in INI_ONLY.items()]
    return "\n".join(rows)


WORDS = {"all": "all", "peer": "the peer", "none": "nobody", True: "yes", False: "no"}


def frames() -> str:
    """Returns what each switch does with frames, with the modes that differ."""
    reached = "learns addresses | forgets them after | broadcast, multicast reach | unknown addresses reach"
    rows = [f"| switch | {reached} | VLAN tags pass | jumbo frames |", f"|{' --- |' * 7}"]
    for name, driver in builtin_switches().items():
        rows.append(frames_of(f"`{name}`", read_behaviour(driver)))
        modes = (*driver.wire_modes, *(mode for mode in driver.modes if mode in ROUTER_MODES))
        rows += [frames_of(f"`{name}:{mode}`", read_behaviour(driver, mode)) for mode in modes]
    return "\n".join(rows)


def ports() -> str:
    """Returns the port kinds and worker cores of each switch."""
    rows = ["| switch | ports | worker cores |", "| --- | --- | --- |"]
    for name, driver in builtin_switches().items():
        cores = ("1, or up to 2 a pair" if driver.scalable else "1") if driver.default_cores else "none"
        rows.append(f"| `{name}` | {', '.join(driver.ports)} | {cores} |")
    return "\n".join(rows)


def frames_of(name: str, declared: ForwardingBehaviour) -> str:
    """Returns the row of a switch, as its driver declares it."""
    age = "\N{EN DASH}" if declared.least_ageing_s is None else f"{declared.least_ageing_s:g} s"
    reach = [WORDS[declared.learns], age, WORDS[declared.broadcast], WORDS[declared.unknown_unicast]]
    vlan = "as the card lets them" if declared.filters else WORDS[declared.vlan]
    return f"| {' | '.join([name, *reach, vlan, WORDS[declared.jumbo]])} |"


def paragraphs(documentation: str | None) -> list[str]:
    """Returns a docstring as paragraphs of Markdown; sections such as `Args:` become lists."""
    text = re.sub(r"``(.+?)``", r"`\1`", inspect.cleandoc(documentation or ""), flags=re.S)
    parts = []
    for part in re.split(r"\n{2,}", text):
        head, _, rest = part.partition("\n")
        if head not in ("Args:", "Attributes:", "Returns:", "Raises:"):
            parts.append(part.replace("\n", " "))
            continue
        if head == "Returns:":
            parts.append(f"Returns: {' '.join(rest.split())}")
            continue
        entries = re.split(r"\n(?=\S)", textwrap.dedent(rest))
        listed = [re.sub(r"^([\w, ]+?): ", r"`\1`: ", " ".join(entry.split())) for entry in entries]
        parts.append(f"{head.removesuffix(':')}:\n\n" + "\n".join(f"* {entry}" for entry in listed))
    return parts


def signature(what: Callable[..., Any]) -> str:
    """Returns arguments and result with their types, as the code has them."""
    try:
        shown = str(inspect.signature(what))
    except ValueError:
        return "()"
    shown = re.sub(r"\((self|cls)(, )?", "(", shown).replace("'", "")
    shown = re.sub(r"pytest_icbench\.[\w.]+\.(\w+)", r"\1", shown)
    shown = re.sub(r" = <[^>]*>", " = ...", shown)
    return re.sub(r" -> None$", "", shown)


def members(kind: type) -> Iterator[tuple[str, str, Any]]:
    """Yields the public methods and properties of a class: name, spelling with arguments, and function."""
    names = dict.fromkeys(
        name for base in kind.__mro__ if base.__module__.startswith("pytest_icbench") for name in vars(base)
    )
    for name in names:
        member = inspect.getattr_static(kind, name)
        if name.startswith("_"):
            continue
        if isinstance(member, property):
            yield name, name, member.fget
        elif isinstance(member, classmethod | staticmethod):
            yield name, name + signature(member.__func__), member.__func__
        elif inspect.isfunction(member):
            yield name, name + signature(member), member


def attributes(kind: type) -> Iterator[tuple[str, str]]:
    """Yields the annotated attributes of a class that is no record, with their types."""
    if not is_dataclass(kind) and not issubclass(kind, Enum):
        for base in reversed(kind.__mro__):
            if base.__module__.startswith("pytest_icbench"):
                for name, kind_of_value in vars(base).get("__annotations__", {}).items():
                    if not name.startswith("_"):
                        yield name, re.sub(r"^ClassVar\[(.*)\]$", r"\1", str(kind_of_value))


def described(name: str) -> str:
    """Describes one public name and its members."""
    what = getattr(api, name)
    head = f"### `{name}`"
    if hasattr(what, "__args__"):
        choices = (getattr(choice, "__name__", repr(choice)) for choice in what.__args__)
        return f"{head}\n\nOne of {', '.join(f'`{choice}`' for choice in choices)}."
    if not callable(what):
        return f"{head}\n\n`{name} = {what!r}`"
    if inspect.isfunction(what):
        return "\n\n".join([head, f"`{name}{signature(what)}`", *paragraphs(what.__doc__)])
    return "\n\n".join([head, *_class_parts(name, what)])


def _class_parts(name: str, kind: type) -> Iterator[str]:
    """Yields what a class is, its attributes, its values, and its members."""
    protocol = bool(getattr(kind, "_is_protocol", False))
    if not (protocol or issubclass(kind, Enum | Exception) or name in IN_FULL):
        yield f"`{name}{signature(kind)}`"
    documentation = kind.__doc__ or ""
    if documentation and not documentation.startswith(f"{name}("):  # made by dataclass
        yield from paragraphs(documentation)
    yield from _attribute_parts(kind)
    if issubclass(kind, Enum):
        yield "Values: " + ", ".join(f"`{member.name}`" for member in kind) + "."
    listed = list(members(kind))
    if name in IN_FULL:
        for member, written, function in listed:
            yield from (f"#### `{name}.{member}`", f"`{written}`", *paragraphs(function.__doc__))
    elif listed:
        rows = [f"| `{cell(written)}` | {cell((paragraphs(f.__doc__) or [''])[0])} |" for _, written, f in listed]
        yield "\n".join(["| member | what it does |", "| --- | --- |", *rows])


def _attribute_parts(kind: type) -> Iterator[str]:
    """Yields the attributes of a class as the docstrings of its bases describe them, else with their types."""
    if not (typed := dict(attributes(kind))):
        return
    documented = [part for base in kind.__mro__[1:] for part in paragraphs(base.__doc__)]
    found = [part for part in documented if part.startswith("Attributes:")]
    yield from found or ["Attributes: " + ", ".join(f"`{name}: {type_}`" for name, type_ in typed.items()) + "."]


def grouped() -> dict[str, list[str]]:
    """Returns the names of the interface by the comments above them."""
    groups: dict[str, list[str]] = {}
    inside = False
    with tokenize.open(inspect.getsourcefile(api) or "") as source:
        for token in tokenize.generate_tokens(source.readline):
            if token.type == tokenize.NAME and token.string == "__all__":
                inside = True
            elif inside and token.type == tokenize.COMMENT and "noqa" not in token.string:
                groups[token.string.removeprefix("# ")] = []
            elif inside and token.type == tokenize.STRING:
                groups[next(reversed(groups))].append(token.string.strip('"'))
            elif inside and token.string == "]":
                break
    return groups


def interface() -> str:
    """Describes every public name of `pytest_icbench.api`, by use."""
    parts = []
    for title, names in grouped().items():
        parts.append(f"## {title}")
        for name in names:
            parts.append(
                "### `Measurement`\n\n[Members of a measurement](measurement.md)."
                if name == "Measurement"
                else described(name)
            )
    return "\n\n".join(parts)


def measurement_fields() -> str:
    """Returns the fields of a measurement with type and meaning."""
    parts = [_rows_of_fields(Measurement)]
    kinds: tuple[type, ...] = (FrameFigures, *KINDS)
    for kind in kinds:
        views = {"FrameFigures": "frames", "Search": "searched", "Throughput": "rates", "Startup": "containers"}
        views["Latency"] = "round_trips"
        parts += [f"### `measurement.{views.get(kind.__name__, kind.__name__.lower())}`", _rows_of_fields(kind)]
    return "\n\n".join(parts)


def _rows_of_fields(kind: type) -> str:
    types = {field.name: str(field.type).replace("|", "\\|") for field in fields(kind)}
    rows = ["| field | type | meaning |", "| --- | --- | --- |"]
    for names, meaning in described_keys(kind):
        meaning = meaning.replace("](#", "](result-format.md#")
        for name in names:
            bold = "**" if kind is not Measurement and hasattr(Measurement, name) else ""
            rows.append(f"| {bold}`{name}`{bold} | `{types[name]}` | {meaning} |")
    return "\n".join(rows)


def measurement_members() -> str:
    """Returns the methods and properties of a measurement."""
    rows = ["| member | what it is |", "| --- | --- |"]
    for _, written, function in members(Measurement):
        rows.append(f"| `{cell(written)}` | {cell(' '.join(paragraphs(function.__doc__)))} |")
    return "\n".join(rows)


def _imported(module: str) -> Any:
    """Imports a module of the source tree that no package has."""
    for directory in (ROOT, ROOT / "benchmarks"):
        if str(directory) not in sys.path:
            sys.path.append(str(directory))
    return import_module(module)


def faults() -> str:
    """Returns the faults of the torture with what becomes of each."""
    return str(_imported("tests.torture.page").table())


def of_validation(part: str) -> str:
    """Returns a part of the page of validation: ``sections`` or ``hosts``."""
    claims = _imported("validation.claims").load()
    records = _imported("validation.__main__").read(ROOT / "docs" / "explanation" / "validation", claims)
    page = _imported("validation.page")
    return str(page.sections(claims, records) if part == "sections" else page.hosts(records))


#: The parts by name.
BUILT: dict[str, Callable[[], str]] = {
    "options": options,
    "ini": ini_values,
    "ports": ports,
    "behaviour": frames,
    "workload options": workload_options,
    "commands": subcommands,
    "topology": partial(keys_of, Table),
    "traits": traits,
    "applications": application_table,
    "history": partial(keys_of, Entry),
    "fixture": fixture,
    "grants": grants,
    "targets": targets,
    "faults": faults,
    "claims": partial(of_validation, "sections"),
    "hosts": partial(of_validation, "hosts"),
    "api": interface,
    "members": measurement_members,
    "fields": measurement_fields,
    "run": partial(keys_of, RunInfo),
    "test": partial(keys_of, TestRecord),
    "result of a test": partial(keys_of, ResultPlace),
    "result": partial(keys_of, Measurement),
    "frames": partial(keys_of, FrameFigures),
    "throughput": partial(keys_of, Throughput),
    "searched": partial(keys_of, Search),
    "latency": partial(keys_of, Latency),
    "application": partial(keys_of, Application),
    "startup": partial(keys_of, Startup),
    "finding": partial(keys_of, Finding),
    "side by side": partial(keys_of, SideBySide),
    "search": partial(keys_of, SearchLog),
    "trial": partial(keys_of, Trial),
    "point": partial(keys_of, SweepPoint),
    "launch": partial(keys_of, Launch),
    "endpoint": partial(keys_of, EndpointWork),
    "pair of a launch": partial(keys_of, PairCounts),
    "pair of a result": partial(keys_of, PairResult),
    "port": partial(keys_of, SwitchPort),
    "function": partial(keys_of, FunctionWork),
    "chain": partial(keys_of, ChainAccount),
    "noisy_neighbour": partial(keys_of, NoisyNeighbourEffect),
    "change": partial(keys_of, LoadChange),
    "loss event": partial(keys_of, LossEvent),
    "back-to-back": partial(keys_of, BackToBack),
    "window": partial(keys_of, Window),
}


def built(markdown: str) -> str:
    """Returns a page with the parts that are made when the site is built."""
    return re.sub(r"<!-- built: ([\w -]+) -->", lambda mark: BUILT[mark[1]](), markdown)
