"""Write the generated parts of the reference pages in `docs/`: commands, settings, HTTP routes, Python calls.

Two comments in the page enclose a generated part; the text around it is written by hand. `--check` changes nothing, and
exits with 1 if a page is out of date.

    python tools/reference.py [--check]
"""

from __future__ import annotations

import argparse
import inspect
import re
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import typer.main

import orchestra_mem
from orchestra_mem.faces.cli import app
from orchestra_mem.memory.agent_view import AgentMemory
from orchestra_mem.retrieval.search import Answer
from orchestra_mem.search_types import Chunk, Hit
from orchestra_mem.settings import ServerSettings
from orchestra_mem.types import MustKeep, Operation
from orchestra_mem.work_types import WorkItem

CHECKOUT = Path(__file__).parents[1]
_PART = re.compile(r"(?<=<!-- generated: )(\w+)( by tools/reference\.py -->\n)(.*?)(?=<!-- end -->)", re.DOTALL)
# Options that every command has; the page describes them once.
_COMMON = {"--project", "--debug", "--help", "--version", "--install-completion", "--show-completion"}
# Classes that a program instantiates itself, so that their arguments are listed; the others come from a memory.
_MADE_BY_USERS = {"Orchestrator", "MemoryService", "Projects"}
_WIDTH = 90
_JSON = "Print one JSON document instead."


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(row)} |" for row in [heads, *rows]]
    return "\n".join([lines[0], f"|{'---|' * len(heads)}", *lines[1:]]) + "\n"


def _command(name: str, command: Any, context: Any) -> str:
    """Return the section of a command: description, example, arguments and options."""
    about, _, example = inspect.cleandoc(command.help or "").partition("\n\nExample: ")
    rows = []
    for parameter in command.params:
        record = parameter.get_help_record(context)
        if record is None or _COMMON & {*parameter.opts} or ("--json" in parameter.opts and record[1] == _JSON):
            continue
        rows.append((f"`{re.sub(r' <.*>', '', record[0])}`", _cell(record[1])))
    code = f"```sh\n{' '.join(example.split())}\n```\n" if example else ""
    table = f"\n{_table(('argument or option', 'meaning'), rows)}" if rows else ""
    return f"### {name}\n\n{' '.join(about.split())}\n\n{code}{table}\n"


def walk(group: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every command below a group, with its full name."""
    for name, command in group.commands.items():
        if not hasattr(command, "commands") or command.invoke_without_command:
            yield prefix + name, command
        if hasattr(command, "commands"):
            yield from walk(command, f"{prefix}{name} ")


def commands() -> str:
    """Describe every command, under the headings of the help."""
    top: Any = typer.main.get_command(app)
    context = typer.Context(top, info_name="orchestra-mem")
    panels: dict[str, list[str]] = {}
    for name, command in walk(top):
        panel = top.commands[name.split()[0]].rich_help_panel
        panels.setdefault(panel, []).append(_command(name, command, context))
    return "\n" + "".join(f"## {panel}\n\n{''.join(sections)}" for panel, sections in panels.items())


def settings() -> str:
    """Describe every setting with the comments of the defaults file, in one table per section."""
    place: list[tuple[int, str]] = []
    words: list[str] = []
    about: dict[str, str] = {}
    rows: dict[str, list[tuple[str, str, str]]] = {}
    text = (CHECKOUT / "config" / "default_config.yaml").read_text(encoding="utf-8")
    for line in text.partition("\n\n")[2].splitlines():
        if said := re.fullmatch(r"\s*# ?(.*)", line):
            words.append(said[1])
        elif key := re.fullmatch(r"( *)([a-z_0-9]+):(?: (.*))?", line):
            place = [*(each for each in place if each[0] < len(key[1])), (len(key[1]), key[2])]
            section, default = place[0][1], key[3]
            if default is not None:
                path = ".".join(name for _, name in place)
                rows[section].append((f"`{path}`", f"`{default}`", _cell(" ".join(words) or "see the line above")))
                words = []
            elif len(place) == 1:
                about[section], rows[section], words = " ".join(words), [], []
    heads = ("setting", "default", "unit, range and reason")
    return "\n" + "".join(f"## {name}\n\n{about[name]}\n\n{_table(heads, each)}\n" for name, each in rows.items())


def _names(operation: dict[str, Any], schemas: dict[str, Any]) -> str:
    """List a route's parameters and the fields of its body, required ones in bold."""
    found = [(each["name"], each.get("required")) for each in operation.get("parameters", ())]
    for content in operation.get("requestBody", {}).get("content", {}).values():
        schema = schemas.get(content["schema"].get("$ref", "").rpartition("/")[2], {})
        found += [(name, name in schema.get("required", ())) for name in schema.get("properties", ())]
    return ", ".join(f"**`{name}`**" if required else f"`{name}`" for name, required in found)


def routes() -> str:
    """Describe every route of the server by tag, from the server's OpenAPI document."""
    from fastapi.routing import iter_route_contexts

    from orchestra_mem.faces.http.application import make_application

    with tempfile.TemporaryDirectory() as folder, orchestra_mem.open_memory(folder) as memory:
        server = make_application(memory, Path(folder), ServerSettings())
        api = server.openapi()
        endpoints = {(each.path_format, method): each.endpoint for each in iter_route_contexts(server.routes)
                     for method in each.methods or ()}  # fmt: skip
    subjects: dict[str, list[tuple[str, str, str]]] = {}
    for path, methods in api["paths"].items():
        for method, operation in methods.items():
            owner = "OwnerMemory" in endpoints[path, method.upper()].__annotations__.values()
            what = _cell(operation["description"].partition("\n\n")[0]) + (" (owner)" if owner else "")
            row = (f"`{method.upper()} {path}`", what, _names(operation, api["components"]["schemas"]))
            subjects.setdefault(operation["tags"][0], []).append(row)
    heads = ("route", "what it does", "parameters and fields")
    return "\n" + "".join(f"## {subject}\n\n{_table(heads, rows)}\n" for subject, rows in subjects.items())


class _Verbatim:
    """Text that a signature shows as it is: an annotation without quotes, or `…` for a long default."""

    def __init__(self, text: object) -> None:
        self.text = str(text)

    def __repr__(self) -> str:
        return self.text


def _signature(name: str, call: Any) -> str:
    """Format the signature of a callable."""
    signature = inspect.signature(call)
    parameters = []
    for each in signature.parameters.values():
        if each.name != "self":
            short = each.default is each.empty or isinstance(each.default, str | int | float | None)
            default = each.default if short else _Verbatim("…")
            parameters.append(each.replace(default=default, annotation=_Verbatim(each.annotation)))
    made = name + str(inspect.Signature(parameters, return_annotation=_Verbatim(signature.return_annotation)))
    kept = re.sub(r"(?<!,) ", "\0", made)  # break lines only after commas
    return textwrap.fill(kept, _WIDTH, subsequent_indent="    ").replace("\0", " ")


def _described(text: str) -> str:
    """Convert a docstring to markdown: section names in bold, their entries as a list."""
    made = re.sub(r"^(Args|Raises|Returns|Yields):$", r"**\1**\n", text, flags=re.MULTILINE).replace(
        "**Args**", "**Arguments**"
    )
    made = re.sub(r"\n {8}\s*", " ", made)
    made = re.sub(r"^    (\w+(?:, \w+)*): ", r"- `\1`: ", made, flags=re.MULTILINE)
    return re.sub(r"^    ", "", made, flags=re.MULTILINE).replace("<", "&lt;") + "\n"


def _class(kind: type) -> str:
    """Describe a class: its docstring, properties and methods, without aliases."""
    about = inspect.getdoc(kind) or ""
    if kind.__name__ not in _MADE_BY_USERS:
        about = re.split(r"\n\n(?:Args:|Attributes:|    )", about)[0]
    members: dict[str, Any] = {}
    for each in reversed(kind.__mro__):  # what a class builds on comes first
        if each.__module__.startswith("orchestra_mem"):
            members |= vars(each)
    properties, methods = [], []
    for name, value in members.items():
        text = inspect.getdoc(value) or ""
        if name.startswith("_") or name != getattr(value, "__name__", name):
            continue
        if inspect.isfunction(value):
            methods.append(f"### {name}\n\n```py\n{_signature(name, value)}\n```\n\n{_described(text)}\n")
        elif isinstance(value, property | cached_property):
            properties.append(f"- `{name}`: {' '.join(text.split())}\n")
    listed = "".join(properties) + "\n" if properties else ""
    return f"## {kind.__name__}\n\n{_described(about)}\n{listed}{''.join(methods)}"


def calls() -> str:
    """Describe the methods of the public classes with their docstrings."""
    opened = _signature("open_memory", orchestra_mem.open_memory)
    text = _described(inspect.getdoc(orchestra_mem.open_memory) or "")
    kinds: list[type] = [
        orchestra_mem.OrchestratorContextManager, AgentMemory, orchestra_mem.MemoryCatalog,
        orchestra_mem.ContextRetriever, orchestra_mem.ResponseCache, orchestra_mem.StateManager,
        orchestra_mem.Orchestrator, orchestra_mem.MemoryService, orchestra_mem.Projects,
    ]  # fmt: skip
    records: list[type] = [
        orchestra_mem.SearchFilter, orchestra_mem.OperationFilter, orchestra_mem.ItemFilter, orchestra_mem.AuditFilter,
        orchestra_mem.WorkFilter, Answer, Hit, Chunk, Operation, MustKeep, WorkItem,
    ]  # fmt: skip
    rows = (
        f"### {each.__name__}\n\n```py\n{_signature(each.__name__, each).removesuffix(' -> None')}\n```\n\n"
        f"{_described(inspect.getdoc(each) or '')}\n"
        for each in records
    )
    listed = "".join([*map(_class, kinds), "## Filters and results\n\n", *rows])
    return f"\n## open_memory\n\n```py\n{opened}\n```\n\n{text}\n{listed}"


PARTS: dict[str, Callable[[], str]] = {"commands": commands, "settings": settings, "routes": routes, "calls": calls}


def main(arguments: Sequence[str] | None = None) -> int:
    """Update the pages that are out of date; with `--check` only list them."""
    parser = argparse.ArgumentParser(description="Write the generated parts of the reference pages.")
    parser.add_argument("--check", action="store_true", help="change nothing; exit with 1 if a page is out of date")
    check = parser.parse_args(arguments).check
    stale = []
    for page in sorted((CHECKOUT / "docs").glob("*.md")):
        text = page.read_text(encoding="utf-8")
        made = _PART.sub(lambda part: f"{part[1]}{part[2]}{PARTS[part[1]]()}", text)
        if made != text:
            stale.append(str(page.relative_to(CHECKOUT)))
            if not check:
                page.write_text(made, encoding="utf-8")
    if stale:
        print(f"{'out of date' if check else 'written'}: {', '.join(stale)}", file=sys.stderr)
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
