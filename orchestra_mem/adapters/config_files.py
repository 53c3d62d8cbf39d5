"""Reading what a project is configured with: `.obra/config.yaml`, the environment, and the files that ship along.

What the values may be stands in `settings.py` and `settings_check.py`; here they are only found and read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from orchestra_mem.errors import ConfigFault
from orchestra_mem.settings import Settings
from orchestra_mem.settings_check import Given, resolve

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    import yaml

CONFIG_PATH = Path(".obra") / "config.yaml"
ENVIRONMENT_PREFIX = "ORCHESTRA_MEM__"

_CHECKOUT = Path(__file__).parents[2]
# YAML 1.1 reads 010 as eight and 1:30 as ninety; whoever writes that means something else and is told. No setting has
# more digits than these, and Python refuses to read some thousands.
_WHOLE_NUMBER = re.compile(r"[-+]?(0|[1-9](_?[0-9]){0,30})")


def load_settings(
    project_dir: Path, environ: Mapping[str, str], overrides: Mapping[str, object] | None = None
) -> Settings:
    """Read a project's settings: defaults, then its `.obra/config.yaml`, then `environ`, then `overrides`.

    A variable `ORCHESTRA_MEM__ORCHESTRATOR__CONTEXT_WINDOW__MAX_TOKENS` sets
    `orchestrator.context_window.max_tokens`; an empty one counts as not set. `overrides` is nested like the file.

    Raises:
        ConfigError: with every fault of all of these.
    """
    in_file, faults = read_config(project_dir / CONFIG_PATH)
    sources = [in_file, *_environment(environ), Given(overrides, "overrides")]
    return resolve(sources, project_name=project_dir.resolve().name or "project", faults=faults)


def read_config(path: Path) -> tuple[Given, list[ConfigFault]]:
    """Read a configuration file, with the faults of its form; a file that does not exist is like an empty one."""
    nothing = Given(None, str(path))
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return nothing, []
    except OSError as error:
        return nothing, [_fault(path, f"cannot be read: {error.strerror}")]
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        return nothing, [_fault(path, f"is not UTF-8 (byte 0x{raw[error.start]:02x}); save it as UTF-8", line)]
    return _parse(text, path)


def default_config_text() -> str:
    """Give the text of `config/default_config.yaml`: every key with its default, unit and reason."""
    return _shipped("default_config.yaml", _CHECKOUT / "config" / "default_config.yaml").read_text(encoding="utf-8")


def template_files() -> dict[str, str]:
    """Give the files that `init` lays down in `.obra/`, by their names there, sorted."""
    folder = _shipped("obra-template", _CHECKOUT / ".obra-template")
    return {
        file.name: file.read_text(encoding="utf-8") for file in sorted(folder.iterdir(), key=lambda file: file.name)
    }


def _shipped(name: str, in_checkout: Path) -> Traversable:
    """Find what ships along: within the installed package, or where the package is run from its checkout."""
    from importlib.resources import files  # 15 ms that only `init` and `config` need

    packed = files("orchestra_mem").joinpath("_data", name)
    return packed if packed.is_file() or packed.is_dir() else in_checkout


def _fault(path: Path, problem: str, line: int = 0, key: str = "") -> ConfigFault:
    return ConfigFault(source=str(path), key=key, problem=problem, line=line)


def _parse(text: str, path: Path) -> tuple[Given, list[ConfigFault]]:
    import yaml  # slow to load; the package must be quick to import

    nothing = Given(None, str(path))
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        return nothing, [_syntax_fault(error, text, path)]
    except RecursionError:
        return nothing, [_fault(path, "is nested too deeply")]
    if root is None:
        return nothing, []
    reader = _NodeReader(path)
    return reader.read(root, "", root.start_mark.line + 1), reader.faults


def _syntax_fault(error: yaml.YAMLError, text: str, path: Path) -> ConfigFault:
    import yaml

    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        mark = error.problem_mark
        indent = re.match(r"\s*", (text.splitlines() + [""] * 2)[mark.line])
        if indent and "\t" in indent[0]:
            return _fault(path, "is indented with a tab; YAML takes spaces only", mark.line + 1)
        return _fault(path, f"is not YAML: {error.problem} (column {mark.column + 1})", mark.line + 1)
    if isinstance(error, yaml.reader.ReaderError):
        line_number = text.count("\n", 0, error.position) + 1
        return _fault(path, f"has a control character (U+{error.character:04X}); remove it", line_number)
    return _fault(path, f"is not YAML: {error}")


class _NodeReader:
    """Turns YAML nodes into `Given`s. Constructs nothing: tags of Python objects stay text."""

    def __init__(self, path: Path) -> None:
        self.faults: list[ConfigFault] = []
        self._path = path
        # By the node's identity: an alias shares its anchor's children, and one that holds itself comes to an end.
        self._children: dict[int, dict[str, Given]] = {}

    def read(self, node: yaml.Node, key: str, line: int) -> Given:
        """Turn the node at `key`, which stands on `line`, into a `Given`."""
        import yaml

        if isinstance(node, yaml.MappingNode):
            return Given(self._mapping(node, key), str(self._path), line)
        value = _scalar(node) if isinstance(node, yaml.ScalarNode) else []
        return Given(value, str(self._path), line)

    def _mapping(self, node: yaml.MappingNode, key: str) -> dict[str, Given]:
        import yaml

        if id(node) in self._children:
            return self._children[id(node)]
        children = self._children[id(node)] = {}
        for name_node, value_node in node.value:
            line = name_node.start_mark.line + 1
            if not isinstance(name_node, yaml.ScalarNode):
                self._report("a key must be a name", line, key)
                continue
            name = name_node.value
            path = f"{key}.{name}" if key else name
            if name == "<<":
                self.faults.append(
                    _fault(self._path, "merging with << is not supported; write the keys out", line, path)
                )
            elif name in children:
                self._report(f"stands here and on line {children[name].line}; remove one", line, path)
            else:
                children[name] = self.read(value_node, path, line)
        return children

    def _report(self, problem: str, line: int, key: str) -> None:
        self.faults.append(_fault(self._path, problem, line, key))


def _scalar(node: yaml.ScalarNode) -> object:
    """Give a scalar's value: none, a truth value, a number or text."""
    text = node.value
    match node.tag.rpartition(":")[2]:
        case "null":
            return None
        case "bool" if text.lower() in _TRUTH:
            return _TRUTH[text.lower()]
        case "int" if _WHOLE_NUMBER.fullmatch(text):
            return int(text)
        case "float":
            try:
                return float(text)
            except ValueError:
                return text
    return text


_TRUTH = {"yes": True, "no": False, "true": True, "false": False, "on": True, "off": False}


def _environment(environ: Mapping[str, str]) -> list[Given]:
    """Give one source for each variable of ours that is set, in the order of their names."""
    return [
        _variable(name, text) for name, text in sorted(environ.items()) if name.startswith(ENVIRONMENT_PREFIX) and text
    ]


def _variable(name: str, text: str) -> Given:
    import yaml

    source = f"environment variable {name}"
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError):
        node = None  # not a YAML value, so it is text
    value = _scalar(node) if isinstance(node, yaml.ScalarNode) else text
    given = Given(value, source, text=text)
    for part in reversed(name.removeprefix(ENVIRONMENT_PREFIX).lower().split("__")):
        given = Given({part: given}, source)
    return given
