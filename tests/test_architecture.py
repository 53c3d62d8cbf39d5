"""The house stands as planned: imports point down only, the core is pure, files and functions stay small.

The checks read source text and take any package folder, so that they can be tried on planted faults too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "orchestra_mem"

# Layers by the names of their modules below the package; a folder's name stands for all in it, `""` for the root.
LAYERS = {
    "foundation": [
        *"errors types ports search_types work_types model_types job_types hooks signals".split(),
    ],
    "core": ["core", "settings", "settings_check", "serialize"],
    "tiers": ["tiers"],
    "adapters": ["adapters"],
    "retrieval": ["retrieval"],
    "compression": ["compression"],
    "memory": ["memory"],
    "composition": ["build", "doctor", "orchestrator"],
    "faces": ["faces", "__main__"],
    "root": [""],
    "testing": ["testing"],
    "moved": ["manager", "retriever", "compressor"],
}
# What each layer may import besides itself.
MAY_IMPORT = {
    "foundation": set[str](),
    "core": {"foundation"},
    "tiers": {"core", "foundation"},
    "adapters": {"core", "foundation"},
    "retrieval": {"tiers", "core", "foundation"},
    "compression": {"tiers", "core", "foundation"},
    "memory": {"retrieval", "compression", "tiers", "core", "foundation"},
    "composition": {"memory", "retrieval", "compression", "adapters", "tiers", "core", "foundation"},
    "faces": {"composition", "memory", "retrieval", "compression", "tiers", "core", "foundation"},
    "root": {"composition", "memory", "retrieval", "compression", "tiers", "core", "foundation"},
    "testing": {"core", "foundation"},
    "moved": set[str](),
}
# Disk, network, clock, chance, other processes: all of it is passed in to the core.
IMPURE_MODULES = frozenset(
    "asyncio glob http io multiprocessing os pathlib random secrets shutil signal socket sqlite3 ssl subprocess "
    "tempfile time uuid".split()
)
IMPURE_CALLS = frozenset({"open", "print", "input", "exec", "eval", "__import__"})
CLOCK_METHODS = frozenset({"now", "utcnow", "today"})
MAX_MODULE_LINES = 400
MAX_FUNCTION_LINES = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Import:
    """One module of the package imports another, named in full; `line` is where."""

    importer: str
    imported: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """A module of the package, parsed; `name` is its dotted name below the package, empty for the package root."""

    name: str
    path: Path
    source: str
    tree: ast.Module

    @property
    def place(self) -> str:
        """The path as the reader of a failure looks for it."""
        return f"{self.path.parent.name}/{self.path.name}"


def read_package(package: Path) -> dict[str, Module]:
    """Parse every module of a package, by dotted name below it."""
    modules = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        source = path.read_text(encoding="utf-8")
        modules[name] = Module(name=name, path=path, source=source, tree=ast.parse(source, str(path)))
    return modules


def imports_of(module: Module, modules: dict[str, Module], package: str) -> Iterator[Import]:
    """Yield what a module imports of its own package, wherever in the module it does so, for types only included."""
    for node in ast.walk(module.tree):
        for target in _targets(node, module, package):
            if target == package or target.startswith(f"{package}."):
                name = target.removeprefix(package).removeprefix(".")
                while name and name not in modules:  # a name in a module stands for the module
                    name = name.rpartition(".")[0]
                yield Import(importer=module.name, imported=name, line=node.lineno)  # type: ignore[attr-defined]


def _targets(node: ast.AST, module: Module, package: str) -> list[str]:
    """Give the dotted names that an import statement names; none for other nodes."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    base = node.module or ""
    if node.level:
        parts = [package, *filter(None, module.name.split("."))]
        up = node.level - (module.path.name == "__init__.py")
        base = ".".join([*parts[: len(parts) - up], *filter(None, [base])])
    return [f"{base}.{alias.name}" for alias in node.names]


def layer_of(name: str) -> str | None:
    """Name the layer of a module, none if the plan has no place for it."""
    head = name.partition(".")[0]
    return next((layer for layer, heads in LAYERS.items() if head in heads), None)


def forbidden_imports(package: Path) -> list[str]:
    """Find the imports that point up or sideways, with file and line, and the modules that no layer has."""
    modules = read_package(package)
    faults = [f"{module.place}: no layer has this module" for module in modules.values() if not layer_of(module.name)]
    for module in modules.values():
        for edge in imports_of(module, modules, package.name):
            problem = _why_forbidden(edge, modules[edge.imported].path.name == "__init__.py")
            if problem:
                faults.append(f"{module.place}:{edge.line}: {problem}")
    return faults


def _why_forbidden(edge: Import, into_folder: bool) -> str:
    """Say why an import is forbidden; empty if it is not. Importing one's own folder is as good as oneself."""
    from_layer, to_layer = layer_of(edge.importer), layer_of(edge.imported)
    if from_layer is None or to_layer is None:
        return ""
    if edge.imported == "":
        return f"{edge.importer or 'the package root'} imports the package root"
    if from_layer == to_layer == "adapters" and edge.importer.split(".")[1:2] != edge.imported.split(".")[1:2]:
        return f"adapter {edge.importer} imports adapter {edge.imported}"
    if from_layer != to_layer and to_layer not in MAY_IMPORT[from_layer]:
        return f"{from_layer} -> {to_layer}: {edge.importer} imports {edge.imported}"
    return ""


def import_cycle(package: Path) -> list[str]:
    """Find a circle of imports, as the modules along it with the first again at the end; empty if there is none."""
    modules = read_package(package)
    return _circle(
        {
            name: sorted({edge.imported for edge in imports_of(module, modules, package.name)} - {""})
            for name, module in modules.items()
        }
    )


def folder_cycle(package: Path, below: str) -> list[str]:
    """Find a circle of imports between the folders and modules right below a folder, as `import_cycle` does."""
    modules = read_package(package)
    edges: dict[str, set[str]] = {}
    for name, module in modules.items():
        here = _part_below(name, below)
        if here:
            there = {_part_below(edge.imported, below) for edge in imports_of(module, modules, package.name)}
            edges[here] = edges.get(here, set()) | there - {"", here}
    return _circle({name: sorted(others) for name, others in edges.items()})


def _part_below(name: str, folder: str) -> str:
    """The folder or module right below a folder that a module belongs to; empty where it is not below it."""
    parts = name.split(".")
    return ".".join(parts[:2]) if parts[0] == folder and len(parts) > 1 else ""


def _circle(edges: dict[str, list[str]]) -> list[str]:
    done: set[str] = set()

    def visit(name: str, path: list[str]) -> list[str]:
        if name in path:
            return [*path[path.index(name) :], name]
        if name in done:
            return []
        for other in edges.get(name, ()):
            if circle := visit(other, [*path, name]):
                return circle
        done.add(name)
        return []

    return next((circle for name in edges if (circle := visit(name, []))), [])


def impurities(package: Path) -> list[str]:
    """Find what the core must not touch: forbidden modules, built-ins that reach outside, and the clock."""
    faults = []
    for module in read_package(package).values():
        if layer_of(module.name) == "core":
            faults += [f"{module.place}:{line}: {what}" for line, what in _impure_nodes(module.tree)]
    return faults


def _impure_nodes(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module]
        for name in names:
            if name.partition(".")[0] in IMPURE_MODULES:
                yield node.lineno, f"imports {name}"  # type: ignore[attr-defined]
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name) and node.func.id in IMPURE_CALLS:
                yield node.lineno, f"calls {node.func.id}()"
            if isinstance(node.func, ast.Attribute) and node.func.attr in CLOCK_METHODS:
                yield node.lineno, f"asks the clock: .{node.func.attr}()"


def oversized(package: Path) -> list[str]:
    """Find modules and functions that have grown too long."""
    faults = []
    for module in read_package(package).values():
        lines = len(module.source.splitlines())
        if lines >= MAX_MODULE_LINES:
            faults.append(f"{module.place}: {lines} lines, must be under {MAX_MODULE_LINES}")
        for node in ast.walk(module.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines >= MAX_FUNCTION_LINES:
                    place = f"{module.place}:{node.lineno}: {node.name}"
                    faults.append(f"{place} has {lines} lines, must be under {MAX_FUNCTION_LINES}")
    return faults


def undocumented(package: Path) -> list[str]:
    """Find the modules without a docstring; an empty `__init__` needs none."""
    return [
        module.place
        for module in read_package(package).values()
        if not ast.get_docstring(module.tree) and (module.source.strip() or module.path.name != "__init__.py")
    ]


# The package itself


def test_imports_point_down_only() -> None:
    """No module imports from a layer above its own, an adapter another, or anybody the package root."""
    assert forbidden_imports(PACKAGE) == []


def test_no_imports_run_in_a_circle() -> None:
    """Modules can be understood one after the other."""
    assert import_cycle(PACKAGE) == []


def test_folders_of_the_core_import_one_another_in_one_direction() -> None:
    """Each folder below `core` can be understood without those that use it."""
    assert folder_cycle(PACKAGE, "core") == []


def test_core_touches_no_disk_network_clock_or_chance() -> None:
    """What the core answers depends on its arguments alone."""
    assert impurities(PACKAGE) == []


def test_modules_and_functions_stay_small() -> None:
    """One idea a file, one step a function."""
    assert oversized(PACKAGE) == []


def test_every_module_says_what_lives_in_it() -> None:
    """The first lines of a file tell what it is for."""
    assert undocumented(PACKAGE) == []


def test_the_checks_see_the_package() -> None:
    """The tests above pass because the house is in order, not because nothing was read."""
    modules = read_package(PACKAGE)
    assert {"", "errors", "settings", "adapters.config_files"} <= set(modules)
    edges = list(imports_of(modules["adapters.config_files"], modules, "orchestra_mem"))
    assert {edge.imported for edge in edges} == {"errors", "settings", "settings_check"}


# The checks, on planted faults


def _plant(folder: Path, files: dict[str, str]) -> Path:
    package = folder / "orchestra_mem"
    for name, source in {"__init__.py": "", "errors.py": '"""Errors."""\n', **files}.items():
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
        (path.parent / "__init__.py").touch()
    return package


@pytest.mark.parametrize(
    ("files", "fault"),
    [
        (
            {
                "core/window.py": "import re\n\nfrom orchestra_mem.tiers.working import x\n",
                "tiers/working.py": "x = 1\n",
            },
            "core/window.py:3: core -> tiers: core.window imports tiers.working",
        ),
        (
            {"tiers/working.py": "def f():\n    import orchestra_mem.adapters.files\n", "adapters/files.py": ""},
            "tiers/working.py:2: tiers -> adapters: tiers.working imports adapters.files",
        ),
        (
            {"adapters/files.py": "from . import watcher\n", "adapters/watcher.py": ""},
            "adapters/files.py:1: adapter adapters.files imports adapter adapters.watcher",
        ),
        (
            {"adapters/db/log.py": "from ..files import x\n", "adapters/files.py": "x = 1\n"},
            "db/log.py:1: adapter adapters.db.log imports adapter adapters.files",
        ),
        (
            {"memory/manager.py": "from orchestra_mem.build import x\n", "build.py": "x = 1\n"},
            "memory/manager.py:1: memory -> composition: memory.manager imports build",
        ),
        (
            {"faces/cli.py": "from orchestra_mem.adapters import files\n", "adapters/files.py": ""},
            "faces/cli.py:1: faces -> adapters: faces.cli imports adapters.files",
        ),
        ({"core/x.py": "from orchestra_mem import Manager\n"}, "core/x.py:1: core.x imports the package root"),
        ({"core/x.py": "import orchestra_mem\n"}, "core/x.py:1: core.x imports the package root"),
        ({"tiers/x.py": "from .. import Manager\n"}, "tiers/x.py:1: tiers.x imports the package root"),
        (
            {
                "errors.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .core import x\n",
                "core/x.py": "",
            },
            "orchestra_mem/errors.py:3: foundation -> core: errors imports core.x",
        ),
        ({"utilities.py": ""}, "orchestra_mem/utilities.py: no layer has this module"),
    ],
)
def test_forbidden_import_is_found_with_its_line(tmp_path: Path, files: dict[str, str], fault: str) -> None:
    """Each kind of upward or sideways edge fails, written in any form and anywhere in the module."""
    assert forbidden_imports(_plant(tmp_path, files)) == [fault]


def test_allowed_imports_are_let_through(tmp_path: Path) -> None:
    """Down, within the layer, and within one adapter's folder."""
    files = {
        "core/a.py": "from orchestra_mem.core.b import x\nfrom ..errors import y\n",
        "core/b.py": "x = 1\n",
        "adapters/db/log.py": "from . import rows\nfrom orchestra_mem.core import a\n",
        "adapters/db/rows.py": "",
        "build.py": "from orchestra_mem.adapters.db import log\nimport orchestra_mem.core.a as a\n",
        "__init__.py": "from orchestra_mem.build import log\n",
    }
    assert forbidden_imports(_plant(tmp_path, files)) == []


def test_circle_is_found_along_its_modules(tmp_path: Path) -> None:
    """A circle through three modules of one layer, one of its imports hidden in a function."""
    files = {
        "core/a.py": "from orchestra_mem.core import b\n",
        "core/b.py": "from .c import x\n",
        "core/c.py": "def f():\n    from orchestra_mem.core.a import b\n",
    }
    assert import_cycle(_plant(tmp_path, files)) == ["core.a", "core.b", "core.c", "core.a"]


def test_circle_of_folders_is_found_where_no_modules_run_in_one(tmp_path: Path) -> None:
    """One folder's module imports another folder's, and a second one imports back."""
    files = {
        "core/a/one.py": "from orchestra_mem.core.b import x\n",
        "core/b/x.py": "",
        "core/b/y.py": "from orchestra_mem.core.a import two\n",
        "core/a/two.py": "",
    }
    package = _plant(tmp_path, files)
    assert import_cycle(package) == []
    assert folder_cycle(package, "core") == ["core.a", "core.b", "core.a"]


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ("import os.path\n", "1: imports os.path"),
        ("from pathlib import Path\n", "1: imports pathlib"),
        ("def f():\n    import time\n", "2: imports time"),
        ("x = open('y')\n", "1: calls open()"),
        ("import datetime\nx = datetime.datetime.now()\n", "2: asks the clock: .now()"),
    ],
)
def test_impurity_in_the_core_is_found(tmp_path: Path, source: str, fault: str) -> None:
    """In the core it fails; the same in an adapter is what adapters are for."""
    package = _plant(tmp_path, {"core/x.py": source, "adapters/x.py": source})
    assert impurities(package) == [f"core/x.py:{fault}"]


def test_long_module_and_long_function_are_found(tmp_path: Path) -> None:
    """At the limit it fails, one line below it passes."""
    files = {
        "core/a.py": "x = 1\n" * 400,
        "core/b.py": "x = 1\n" * 399,
        "core/c.py": "def f():\n" + "    x = 1\n" * 59,
        "core/d.py": "def f():\n" + "    x = 1\n" * 58,
    }
    assert oversized(_plant(tmp_path, files)) == [
        "core/a.py: 400 lines, must be under 400",
        "core/c.py:1: f has 60 lines, must be under 60",
    ]


def test_module_without_docstring_is_found(tmp_path: Path) -> None:
    """A comment is no docstring; an empty `__init__` is fine."""
    assert undocumented(_plant(tmp_path, {"core/a.py": "# about\nx = 1\n"})) == ["core/a.py"]
