"""The architecture holds: imports point down only, the core is pure, folders, modules and functions stay small.

The checks read source text, without importing it.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

CHECKOUT = Path(__file__).parents[1]
PACKAGE = CHECKOUT / "orchestra_mem"

# Each layer: the names of its modules and folders below the package (`""` for the package root), and the layers that
# it may import in addition to itself.
LAYERS: dict[str, tuple[str, str]] = {
    "foundation": (
        "choices design_names errors types ports search_types work_types catalog_types categorization_types "
        "model_types job_types hooks signals",
        "",
    ),
    "core": ("core settings serialize", "foundation"),
    "stores": ("stores", "core foundation"),
    "tiers": ("tiers", "stores core foundation"),
    "adapters": ("adapters", "stores core foundation"),
    "retrieval": ("retrieval", "tiers stores core foundation"),
    "compression": ("compression", "tiers stores core foundation"),
    "memory": ("memory", "retrieval compression tiers stores core foundation"),
    "build": ("build", "memory retrieval compression adapters tiers stores core foundation"),
    "home": ("home", "build memory retrieval compression adapters tiers core foundation"),
    "doctor": ("doctor", "build memory retrieval compression adapters tiers stores core foundation"),
    "orchestrator": ("orchestrator", "build memory retrieval compression tiers core foundation"),
    "faces": ("faces __main__", "orchestrator doctor home build memory retrieval compression tiers core foundation"),
    "integrations": ("integrations", "memory core foundation"),
    "root": ("", "orchestrator home build memory retrieval compression tiers core foundation"),
    "testing": ("testing", "core foundation"),
    "old places": ("manager retriever compressor", ""),
}
# Lines of Python in each room, blank lines and docstrings included: what they have come to. The commit that raises a
# limit says why, and what was taken away elsewhere.
MAX_LINES = {
    "orchestra_mem": 57_230,
    "orchestra_mem/core": 14_350,
    "orchestra_mem/core/context": 1_320,
    "orchestra_mem/core/documents": 4_280,
    "orchestra_mem/core/facts": 2_060,
    "orchestra_mem/core/summaries": 1_320,
    "orchestra_mem/core/search": 1_850,
    "orchestra_mem/core/work": 330,
    "orchestra_mem/orchestrator": 4_180,
    "orchestra_mem/tiers": 5_540,
    "orchestra_mem/stores": 1_830,
    "orchestra_mem/adapters": 9_700,
    "orchestra_mem/memory": 3_500,
    "orchestra_mem/home": 380,
    "orchestra_mem/retrieval": 1_890,
    "orchestra_mem/compression": 1_900,
    "orchestra_mem/faces": 7_740,
    "tests": 38_750,
    "benchmarks": 10_130,
}
MAX_MODULE_LINES = 400
MAX_FUNCTION_LINES = 60
# Disk, network, clock, randomness and other processes must be passed in to the core.
IMPURE_MODULES = frozenset(
    "asyncio glob http io multiprocessing os pathlib random secrets shutil signal socket sqlite3 ssl subprocess "
    "tempfile time uuid".split()
)
IMPURE_CALLS = frozenset({"open", "print", "input", "exec", "eval", "__import__"})
CLOCK_METHODS = frozenset({"now", "utcnow", "today"})
# Names that several modules or public classes may share, each with the reason; any other name must be unique.
SHARED_NAMES = {
    "manager": "the old place", "retriever": "the old place", "compressor": "the old place",
    "model": "what an adapter runs, or reads commands by", "models": "of the build, and whether they are sound",
    "session": "a model's state of a talk, in its adapter", "store": "of files, of the index", "types": "of intents",
    "search": "its wiring", "reading": "of files, of operations, of commands", "changes": "of files, of work items",
    "classifier": "of facts, of commands", "embedder": "of a GGUF, of a server",
    "episodic": "the documents' texts, their manager",
    "Chunk": "of the index, of what a model reads",
    "Part": "of a context, of a session document", "Passage": "of a document, of an operation",
    "Reader": "of commands, of phrases", "Sentence": "of three classifiers' inputs",
    "Source": "of facts, of summaries", "Table": "of a database, of weights", "Talk": "with a model, with a person",
    "Token": "of two readers of commands",
}  # fmt: skip
# First words of a noun phrase or a question: a docstring that begins with one is not in the imperative.
_NO_VERBS = frozenset(
    "the a an what whether how where when who which it its those whose all each one of in by as no some that these "
    "none everything every there".split()
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Import:
    """An import of one module of the package by another, at `line`; both have their full dotted names."""

    importer: str
    imported: str
    line: int


@dataclass(frozen=True, kw_only=True)
class Module:
    """A module of a package with its source; `name` is its dotted name below the package, empty for the root."""

    name: str
    path: Path
    source: str

    @cached_property
    def tree(self) -> ast.Module:
        """The syntax tree of the module."""
        return ast.parse(self.source, str(self.path))

    @property
    def place(self) -> str:
        """Folder and file name, as failure messages show them."""
        return f"{self.path.parent.name}/{self.path.name}"


class Package:
    """The modules of a package by their dotted names below it, and the imports between them."""

    def __init__(self, folder: Path) -> None:
        self.name = folder.name
        self.modules: dict[str, Module] = {}
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(folder).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            self.modules[name] = Module(name=name, path=path, source=path.read_text(encoding="utf-8"))

    @cached_property
    def imports(self) -> list[Import]:
        """All imports within the package, anywhere in a module, type-checking imports included."""
        return [edge for module in self.modules.values() for edge in self._imports_of(module)]

    def _imports_of(self, module: Module) -> Iterator[Import]:
        for node in ast.walk(module.tree):
            for target in self._targets(node, module):
                if target == self.name or target.startswith(f"{self.name}."):
                    name = target.removeprefix(self.name).removeprefix(".")
                    while name and name not in self.modules:  # an imported name counts as its module
                        name = name.rpartition(".")[0]
                    yield Import(importer=module.name, imported=name, line=node.lineno)  # type: ignore[attr-defined]

    def _targets(self, node: ast.AST, module: Module) -> list[str]:
        if isinstance(node, ast.Import):
            return [alias.name for alias in node.names]
        if not isinstance(node, ast.ImportFrom):
            return []
        base = node.module or ""
        if node.level:
            parts = [self.name, *filter(None, module.name.split("."))]
            up = node.level - (module.path.name == "__init__.py")
            base = ".".join([*parts[: len(parts) - up], *filter(None, [base])])
        return [f"{base}.{alias.name}" for alias in node.names]


def layer_of(name: str) -> str | None:
    """Return the layer of a module, None if no layer has it."""
    head = name.partition(".")[0]
    return next((layer for layer, (heads, _) in LAYERS.items() if head in (heads.split() or [""])), None)


def forbidden_imports(package: Package) -> list[str]:
    """Find imports that point up or sideways, with file and line, and modules that belong to no layer."""
    modules = package.modules
    return [f"{each.place}: no layer has this module" for each in modules.values() if not layer_of(each.name)] + [
        f"{modules[edge.importer].place}:{edge.line}: {problem}"
        for edge in package.imports
        if (problem := _why_forbidden(edge))
    ]


def _why_forbidden(edge: Import) -> str:
    """Explain why an import is forbidden; empty if it is allowed."""
    from_layer, to_layer = layer_of(edge.importer), layer_of(edge.imported)
    if from_layer is None or to_layer is None:
        return ""
    if edge.imported == "":
        return f"{edge.importer or 'the package root'} imports the package root"
    if from_layer == to_layer == "adapters" and edge.importer.split(".")[1:2] != edge.imported.split(".")[1:2]:
        return f"adapter {edge.importer} imports adapter {edge.imported}"
    if from_layer != to_layer and to_layer not in LAYERS[from_layer][1].split():
        return f"{from_layer} -> {to_layer}: {edge.importer} imports {edge.imported}"
    return ""


def folder_circle(package: Package) -> list[str]:
    """Find an import cycle between the folders and modules directly below any one folder, as a list of their names.

    The list ends with its first name, and is empty if there is none. A cycle between any modules is also one here.
    """
    for folder in {"", *(name.rpartition(".")[0] for name in package.modules)}:
        edges: dict[str, set[str]] = defaultdict(set)
        for edge in package.imports:
            here, there = _part_below(edge.importer, folder), _part_below(edge.imported, folder)
            if here and there and here != there:
                edges[here].add(there)
        if circle := _circle(edges):
            return circle
    return []


def _part_below(name: str, folder: str) -> str:
    """Return the folder or module directly below `folder` that a module belongs to; empty if it is not below it."""
    above = f"{folder}." if folder else ""
    return above + name.removeprefix(above).partition(".")[0] if name.startswith(above) and name != folder else ""


def _circle(edges: dict[str, set[str]]) -> list[str]:
    done: set[str] = set()

    def visit(name: str, path: list[str]) -> list[str]:
        if name in path:
            return [*path[path.index(name) :], name]
        if name in done:
            return []
        for other in sorted(edges.get(name, ())):
            if circle := visit(other, [*path, name]):
                return circle
        done.add(name)
        return []

    return next((circle for name in sorted(edges) if (circle := visit(name, []))), [])


def impurities(package: Package) -> list[str]:
    """Find what the core must not use: forbidden modules, built-ins that reach outside, and the clock."""
    core = [module for module in package.modules.values() if layer_of(module.name) == "core"]
    return [f"{module.place}:{line}: {what}" for module in core for line, what in _impure_nodes(module.tree)]


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


def oversized(package: Package) -> list[str]:
    """Find modules and functions that are too long."""
    faults = []
    for module in package.modules.values():
        lines = len(module.source.splitlines())
        if lines >= MAX_MODULE_LINES:
            faults.append(f"{module.place}: {lines} lines, must be under {MAX_MODULE_LINES}")
        for node in _functions(module.tree):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines >= MAX_FUNCTION_LINES:
                place = f"{module.place}:{node.lineno}: {node.name}"
                faults.append(f"{place} has {lines} lines, must be under {MAX_FUNCTION_LINES}")
    return faults


def _functions(tree: ast.Module) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def public_nodes(tree: ast.Module | ast.ClassDef) -> Iterator[ast.FunctionDef | ast.ClassDef]:
    """Yield the public classes, methods and functions of a module."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_"):
            yield node
            if isinstance(node, ast.ClassDef):
                yield from public_nodes(node)


def is_imperative(docstring: str) -> bool:
    """Check whether a docstring begins with a verb in the imperative, as far as its first word shows."""
    word = re.split(r"\W", docstring.strip("`\"' ").lower(), maxsplit=1)[0]
    return word not in _NO_VERBS and not (word.endswith("s") and not word.endswith("ss"))


def shared_names(package: Package) -> dict[str, list[str]]:
    """Find names that several modules, or several public classes, have, each with the modules concerned."""
    places: dict[str, list[str]] = defaultdict(list)
    for name, module in package.modules.items():
        if module.path.name != "__init__.py":
            places[name.rpartition(".")[2]].append(name)
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(name)
    return {name: where for name, where in places.items() if len(where) > 1}


# The package itself

HOUSE = Package(PACKAGE)


def test_imports_point_down_only() -> None:
    """No module imports a higher layer, no adapter imports another, and nothing imports the package root."""
    assert forbidden_imports(HOUSE) == []


def test_no_imports_run_in_a_circle() -> None:
    """There is no import cycle between modules, nor between folders at any depth."""
    assert folder_circle(HOUSE) == []


def test_core_touches_no_disk_network_clock_or_chance() -> None:
    """The core imports no module and calls no function that reaches disk, network, clock, randomness or processes."""
    assert impurities(HOUSE) == []


def test_modules_and_functions_stay_small() -> None:
    """No module has 400 lines, no function 60; at least 80 % of functions have at most 15 lines."""
    assert oversized(HOUSE) == []
    sizes = [(node.end_lineno or 0) - node.lineno + 1 for m in HOUSE.modules.values() for node in _functions(m.tree)]
    assert sum(size <= 15 for size in sizes) / len(sizes) >= 0.8


def test_rooms_keep_to_their_lines() -> None:
    """No folder has more lines of Python than its limit."""
    lines = {room: sum(len(f.read_bytes().splitlines()) for f in (CHECKOUT / room).rglob("*.py")) for room in MAX_LINES}
    over = {room: count for room, count in lines.items() if count > MAX_LINES[room]}
    assert not over, f"{over}: take lines away, or raise MAX_LINES in the same commit, which says why"


def test_public_things_say_what_they_are_for() -> None:
    """Of the docstrings of public functions, which ruff asks for, 85 % are imperative."""
    nodes = [node for module in HOUSE.modules.values() for node in public_nodes(module.tree)]
    told = [
        docstring
        for node in nodes
        if isinstance(node, ast.FunctionDef) and (docstring := ast.get_docstring(node))
        if not {"property", "cached_property", "hookspec"} & {getattr(each, "id", "") for each in node.decorator_list}
    ]
    assert sum(map(is_imperative, told)) / len(told) >= 0.85


def test_a_name_is_of_one_thing() -> None:
    """No two modules, and no two public classes, share a name without a listed reason."""
    assert {name: where for name, where in shared_names(HOUSE).items() if name not in SHARED_NAMES} == {}


def test_each_check_finds_a_planted_fault(tmp_path: Path) -> None:
    """Upward, sideways and circular imports, impurity, length and shared names are each found, with their line."""
    files = {
        "core/a.py": "from orchestra_mem.core.b import x\n\ndef f():\n    from orchestra_mem.tiers.d import y\n",
        "core/b.py": "from . import a\nimport datetime\nx = datetime.datetime.now()\nimport os.path\nprint(x)\n",
        "core/c.py": "x = 1\n" * 400,
        "core/d.py": "def f():\n" + "    x = 1\n" * 59 + "class Hit: ...\nclass _Hit: ...\n",
        "tiers/d.py": "from .. import Manager\nclass Hit: ...\nclass _Hit: ...\n",
        "adapters/files.py": "from ..adapters import watcher\n", "adapters/watcher.py": "import os\n", "odd.py": "",
    }  # fmt: skip
    for name, source in {"__init__.py": "", "errors.py": "", **files}.items():
        path = tmp_path / "orchestra_mem" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
        (path.parent / "__init__.py").touch()
    package = Package(tmp_path / "orchestra_mem")
    assert [fault.removeprefix("orchestra_mem/") for fault in sorted(forbidden_imports(package))] == [
        "adapters/files.py:1: adapter adapters.files imports adapter adapters.watcher",
        "core/a.py:4: core -> tiers: core.a imports tiers.d",
        "odd.py: no layer has this module",
        "tiers/d.py:1: tiers.d imports the package root",
    ]
    assert folder_circle(package) == ["core.a", "core.b", "core.a"]
    found = ["3: asks the clock: .now()", "4: imports os.path", "5: calls print()"]
    assert sorted(impurities(package)) == [f"core/b.py:{fault}" for fault in found]
    assert [fault.partition(" ")[0] for fault in oversized(package)] == ["core/c.py:", "core/d.py:1:"]
    assert shared_names(package) == {"d": ["core.d", "tiers.d"], "Hit": ["core.d", "tiers.d"]}
    told = ["Give it.", "Compress it.", "The item.", "Returns it.", "Whether it is.", "`x` is it."]
    assert [is_imperative(each) for each in told] == [True, True, False, False, False, True]
