# SPDX-License-Identifier: BSD-3-Clause
"""What imports alone do not tell; who may import whom is import-linter's (``make lint``).

Everything is read from the syntax trees of the modules.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from pytest_icbench.model.figures import KINDS

_PACKAGE = Path(__file__).parents[3] / "pytest_icbench"
_MODULES = {
    "pytest_icbench." + ".".join(path.relative_to(_PACKAGE).with_suffix("").parts): path
    for path in sorted(_PACKAGE.rglob("*.py"))
}
#: The first starts them, the second does within the namespaces of another one; liblxc, which the third calls, starts
#: its own, and has to be called from a child.
_STARTERS = ("pytest_icbench.host.process", "pytest_icbench.host.nsenter", "pytest_icbench.driver.node.lxc")
#: Modules as an import names them, but for the package itself: its name is that of files and of a logger, too.
_DOTTED = {module.removesuffix(".__init__") for module in _MODULES} - {"pytest_icbench"}
_IMPORTERS = {"import_module", "__import__", "find_spec", "resolve_name"}
#: Run on another host, where nothing of the package is imported yet, and so texts there.
_RUN_ELSEWHERE = ("pytest_icbench.testbed.remote.connection", "pytest_icbench.plugin.xdist_workers")
#: Modules at the top of the package; others belong into its folders.
MOST_MODULES = 8
#: Names that modules of several folders have, because each has the same place in its folder.
_SHARED = {"__init__", "protocol", "registry"}
#: Where the types of loads and figures are.
_TYPES_OF_KINDS = ("pytest_icbench.model.load", "pytest_icbench.model.figures")
_PROCESS_STARTERS = {"fork", "forkpty", "posix_spawn", "posix_spawnp", "system", "popen", "execv", "execve", "execvp"}


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


def called(call: ast.Call) -> str | None:
    """Name of the function or method."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", None)


def imports(path: Path, module: str) -> Iterator[str]:
    """Every module that a file imports, wherever in it and by a text, too; ``from a import b`` counts as a.b too."""
    for node in nodes_of(path):
        if isinstance(node, ast.Call) and called(node) in _IMPORTERS:
            yield from (str(name.value) for name in node.args if isinstance(name, ast.Constant))
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parent = module.split(".")[: -node.level]
                base = ".".join([*parent, *([node.module] if node.module else [])])
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


def strings(path: Path) -> Iterator[str]:
    """Every text in a file but docstrings and folders of resources; of one with values in it the fixed parts."""
    passed_over: set[ast.AST] = {node.value for node in nodes_of(path) if isinstance(node, ast.Expr)}
    for call in nodes_of(path):
        if isinstance(call, ast.Call) and called(call) == "files":
            passed_over.update(call.args)
    for node in nodes_of(path):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in passed_over:
            yield node.value


def within(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.")


def test_there_is_something_to_look_at() -> None:
    packages = {module.split(".")[1] for module in _MODULES}
    assert {"model", "stats", "gate", "host", "driver", "store", "report"} <= packages


@pytest.mark.parametrize("module", _MODULES)
def test_processes_are_started_in_one_place(module: str) -> None:
    names = set(imports(_MODULES[module], module))
    if module != "pytest_icbench.host.process":
        assert not any(within(name, "subprocess") or within(name, "multiprocessing") for name in names)
        assert not any(within(name, "asyncio.subprocess") for name in names)
    if module not in _STARTERS:
        for node in nodes_of(_MODULES[module]):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "os":
                assert node.attr not in _PROCESS_STARTERS, f"{module}, line {node.lineno}: os.{node.attr}"


@pytest.mark.parametrize("module", _MODULES)
def test_liblxc_is_used_in_one_place(module: str) -> None:
    if module != "pytest_icbench.driver.node.lxc":
        assert "lxc" not in set(imports(_MODULES[module], module))


@pytest.mark.parametrize("module", _MODULES)
def test_no_module_of_ours_is_named_by_a_string(module: str) -> None:
    """import-linter sees no such import. Only what runs elsewhere is text, and the names that others know us by."""
    names = {name for name in strings(_MODULES[module]) if name in _DOTTED}
    assert not names
    if module not in _RUN_ELSEWHERE:
        imported = re.compile(r"\b(?:import|from) pytest_icbench\b")
        assert not [text for text in strings(_MODULES[module]) if imported.search(text)]


@pytest.mark.parametrize("module", _MODULES)
def test_what_is_imported_by_name_is_a_librarys(module: str) -> None:
    """The name is a plain text, so that it can be seen here what it is."""
    for call in nodes_of(_MODULES[module]):
        if isinstance(call, ast.Call) and called(call) in _IMPORTERS:
            (name,) = call.args
            assert isinstance(name, ast.Constant), f"{module}, line {call.lineno}"
            assert not str(name.value).startswith((".", "pytest_icbench")), f"{module}, line {call.lineno}"


def test_the_package_and_its_subpackages_hand_on_no_names() -> None:
    """Else a module would be reached by way of its package, and everything that the package names with it."""
    for module, path in _MODULES.items():
        if module.endswith(".__init__"):
            (module_node, *_) = nodes_of(path)
            assert isinstance(module_node, ast.Module)
            assert all(isinstance(node, ast.Expr) for node in module_node.body), module


@pytest.mark.parametrize("module", _MODULES)
def test_scapy_is_for_tests(module: str) -> None:
    """It is GPL-2.0-only: nothing imports it but the conformance suite, which nothing imports."""
    suite = "pytest_icbench.conformance"
    if within(module, suite):
        return
    assert not any(within(name, suite) for name in imports(_MODULES[module], module))
    assert not any(within(name, "scapy") for name in imports(_MODULES[module], module))


def test_the_test_sees_texts(tmp_path: Path) -> None:
    source = tmp_path / "x.py"
    source.write_text("\"\"\"a\"\"\"\nX = ('b', f'c{X}d', files('x'))\ndef f(): 'e'\n")
    assert list(strings(source)) == ["b", "c", "d"]


def test_the_test_sees_imports(tmp_path: Path) -> None:
    source = tmp_path / "x.py"
    source.write_text("import a.b\nfrom c import d\ndef f():\n    from ..e import g\n    from . import h\n    m('i')\n")
    with source.open("a") as file:
        file.write("import_module('j.k')\nimportlib.util.find_spec('l')\n")
    assert set(imports(source, "p.q.r")) == {"j.k", "l", "a.b", "c", "c.d", "p.e", "p.e.g", "p.q", "p.q.h"}


def test_few_modules_lie_at_the_top_of_the_package() -> None:
    modules = [path.name for path in _PACKAGE.glob("*.py")]
    assert "api.py" in modules
    assert len(modules) <= MOST_MODULES


def test_no_two_modules_have_the_same_name() -> None:
    names = Counter(path.stem for path in _MODULES.values())
    assert {name for name, times in names.items() if times > 1} == _SHARED


@pytest.mark.parametrize("module", [module for module in _MODULES if within(module, "pytest_icbench.measure")])
def test_measuring_asks_for_no_kind(module: str) -> None:
    """What all kinds share is there; ``kinds.runs`` has a row for each."""
    kinds = {f"{part}.{kind.__name__}" for part in _TYPES_OF_KINDS for kind in KINDS}
    assert not kinds & set(imports(_MODULES[module], module))
