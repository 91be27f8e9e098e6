# SPDX-License-Identifier: BSD-3-Clause
"""Data flows one way: read from the imports of every module, as they stand in its syntax tree."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

_PACKAGE = Path(__file__).parents[3] / "pytest_icbench"
_MODULES = {
    "pytest_icbench." + ".".join(path.relative_to(_PACKAGE).with_suffix("").parts): path
    for path in sorted(_PACKAGE.rglob("*.py"))
}
#: What judges and shows results.
_JUDGING = ("model", "stats")
#: What touches the machine.
_MACHINE = ("pytest_icbench.host", "pytest_icbench.driver.switch", "pytest_icbench.driver.node")
#: exec starts them; liblxc, which lxc calls, starts its own, and has to be called from a child.
_STARTERS = ("pytest_icbench.host.process", "pytest_icbench.driver.node.lxc.node")
_PROCESS_STARTERS = {"fork", "forkpty", "posix_spawn", "posix_spawnp", "system", "popen", "execv", "execve", "execvp"}


def imports(path: Path, module: str) -> Iterator[str]:
    """Every module that a file names in an import, wherever in it; ``from a import b`` counts as a.b too."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parent = module.split(".")[: -node.level]
                base = ".".join([*parent, *([node.module] if node.module else [])])
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


def within(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.")


def part(module: str) -> str:
    return module.split(".")[1]


def test_there_is_something_to_look_at() -> None:
    found = {part(module) for module in _MODULES}
    assert {"model", "stats", "gate", "host", "driver", "store", "report"} <= found


@pytest.mark.parametrize("module", [module for module in _MODULES if part(module) in _JUDGING])
def test_judging_and_showing_never_import_the_machine(module: str) -> None:
    """Neither themselves nor through another module of the package."""
    seen: set[str] = set()
    todo = [module]
    while todo:
        current = todo.pop()
        for name in imports(_MODULES[current], current):
            assert not any(within(name, package) for package in _MACHINE), f"{module} reaches {name} through {current}"
            if name in _MODULES and name not in seen:
                seen.add(name)
                todo.append(name)


@pytest.mark.parametrize("module", _MODULES)
def test_processes_are_started_in_one_place(module: str) -> None:
    names = set(imports(_MODULES[module], module))
    if module != "pytest_icbench.host.process":
        assert not any(within(name, "subprocess") or within(name, "multiprocessing") for name in names)
        assert not any(within(name, "asyncio.subprocess") for name in names)
    if module not in _STARTERS:
        tree = ast.parse(_MODULES[module].read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "os":
                assert node.attr not in _PROCESS_STARTERS, f"{module}, line {node.lineno}: os.{node.attr}"


@pytest.mark.parametrize("module", _MODULES)
def test_liblxc_is_used_in_one_place(module: str) -> None:
    if module != "pytest_icbench.driver.node.lxc.node":
        assert "lxc" not in set(imports(_MODULES[module], module))


@pytest.mark.parametrize("module", _MODULES)
def test_scapy_is_for_tests(module: str) -> None:
    """It is GPL-2.0-only: nothing imports it but the conformance suite, which nothing imports."""
    suite = "pytest_icbench.conformance"
    if within(module, suite):
        return
    assert not any(within(name, suite) for name in imports(_MODULES[module], module))
    assert not any(within(name, "scapy") for name in imports(_MODULES[module], module))


def test_the_test_sees_imports(tmp_path: Path) -> None:
    source = tmp_path / "x.py"
    source.write_text("import a.b\nfrom c import d\ndef f():\n    from ..e import g\n    from . import h\n")
    assert set(imports(source, "p.q.r")) == {"a.b", "c", "c.d", "p.e", "p.e.g", "p.q", "p.q.h"}
