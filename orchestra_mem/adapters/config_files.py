"""Load a project's settings from `.obra/config.yaml`, the environment and overrides; find the packaged template files.

`settings.py` defines which values are valid. This module reads each source into values by dotted key, each with its
origin, validates the source separately, merges all sources, and finds settings that are valid alone but contradict.
"""

from __future__ import annotations

import logging
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from math import fsum
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_origin

from pydantic import ValidationError

from orchestra_mem.choices import CounterChoice, EmbedderChoice
from orchestra_mem.core.addresses import clipped
from orchestra_mem.errors import ConfigError, ConfigFault
from orchestra_mem.settings import Settings, schema, sections

if TYPE_CHECKING:
    import yaml  # imported on demand: most projects configure nothing

logger = logging.getLogger(__name__)

CONFIG_PATH = Path(".obra") / "config.yaml"
ENVIRONMENT_PREFIX = "ORCHESTRA_MEM__"

_CHECKOUT = Path(__file__).parents[2]
# Plain decimal integers. YAML 1.1 reads 010 as 8 and 1:30 as 90, which nobody intends: these count as text, which
# numeric keys reject. The digits are limited because `int` refuses more than 4,300 of them.
_WHOLE_NUMBER = re.compile(r"[-+]?(0|[1-9](_?[0-9]){0,30})")
_WITHIN = {
    "extra_forbidden": "unknown key", "list_type": "must be a list", "string_type": "must be text",
    "model_type": "must be a mapping", "model_attributes_type": "must be a mapping",
}  # fmt: skip
_EMPTY: Mapping[str, object] = {"MappingNode": {}, "SequenceNode": []}
# A line that is not a comment. The file that `init` creates has no such line.
_SAYS_SOMETHING = re.compile(rb"^[ \t\xef\xbb\xbf]*[^#\s\xef\xbb\xbf]", re.MULTILINE)
_TRUTH = {"yes": True, "no": False, "true": True, "false": False, "on": True, "off": False}
# Removed keys that an old configuration may still contain: the version that removed each, and its replacement.
RETIRED = {
    "documents.watch": ("0.1.0", "`orchestra-mem watch` always checks the files directly, also on network disks"),
    "retrieval.prefetch_tasks": ("0.1.0", "memories for a task are searched on request"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Given:
    """A value and its origin. `line` counts from 1; 0 if the source has no lines."""

    value: object
    source: str
    line: int = 0

    @property
    def place(self) -> str:
        return f"{self.source}:{self.line}" if self.line else self.source

    def fault(self, key: str, problem: str) -> ConfigFault:
        return ConfigFault(source=self.source, key=key, problem=problem, line=self.line)


def load_settings(
    project_dir: Path, environ: Mapping[str, str], overrides: Mapping[str, object] | None = None
) -> Settings:
    """Load a project's settings: defaults, overridden by `.obra/config.yaml`, then `environ`, then `overrides`.

    The variable `ORCHESTRA_MEM__ORCHESTRATOR__CONTEXT_WINDOW__MAX_TOKENS` sets
    `orchestrator.context_window.max_tokens`; an empty variable counts as unset. In the file and in `overrides`, keys
    are nested in sections or joined by dots.

    Raises:
        ConfigError: Lists the faults of all sources, including faults of values that a later source replaces.
    """
    faults: list[ConfigFault] = []
    wrong: set[str] = set()
    sources = [_in_file(project_dir / CONFIG_PATH, faults), *_in_environment(environ)]
    sources.append(_first(_in_value(overrides), faults))
    for given in sources:
        for key in RETIRED.keys() & given:  # an old configuration stays valid
            version, instead = RETIRED[key]
            place = given.pop(key).place
            logger.warning("%s: %s has no effect since %s: %s; remove it", place, key, version, instead)
        for key, problem in _problems(given).items():
            faults.append(given.pop(key).fault(key, problem))
            wrong.add(key)
    settings = _combined(*sources)
    winners = {key: (rank, each) for rank, given in enumerate(sources) for key, each in given.items()}
    for keys, problem in contradictions(settings):
        given_keys = [key for key in keys if key in winners]
        if given_keys and wrong.isdisjoint(keys):  # a contradiction with an invalid value would only confuse
            blamed = max(given_keys, key=lambda key: winners[key][0])
            faults.append(winners[blamed][1].fault(blamed, problem))
    if faults:
        raise ConfigError(tuple(faults))
    origins = {key: each.place for key, (_, each) in winners.items()}
    return settings.of_project(project_dir.resolve().name or "project", origins)


def contradictions(settings: Settings) -> list[tuple[list[str], str]]:
    """Find settings that are valid alone but contradict each other: pairs of the keys involved and the problem."""
    orchestrator, compaction, llm, search = settings.orchestrator, settings.compaction, settings.llm, settings.search
    window = orchestrator.context_window
    warning, refresh, critical = window.warning_threshold, window.refresh_threshold, window.critical_threshold
    fill, shares, threshold = settings.context.fill_at_start, settings.context.shares, "session_compression_threshold"
    total, parts = fsum(dict(shares).values()), ", ".join(f"{name} {share}" for name, share in shares)
    most = orchestrator.session_compression_threshold
    thresholds = [f"orchestrator.context_window.{name}_threshold" for name in ("warning", "refresh", "critical")]
    rules = [
        (warning < refresh < critical, thresholds,
         f"thresholds must ascend: warning_threshold {warning} < refresh_threshold {refresh} "
         f"< critical_threshold {critical} does not hold"),
        (abs(total - 1) <= 1e-6, [f"context.shares.{name}" for name, _ in shares],
         f"the shares must sum to 1, not {round(total, 6)} ({parts})"),
        (fill < refresh, ["context.fill_at_start", thresholds[1]],
         f"context.fill_at_start {fill} must be below refresh_threshold {refresh}: a refresh would trigger the next"),
        # A small window lowers both values at run time, but as configured they must fit the configured threshold.
        *((tokens < most, [key, f"orchestrator.{threshold}"],
           f"{key} {tokens} must be below {threshold} {most}: nothing could be compacted")
          for key, tokens in (("compaction.verbatim_floor_tokens", compaction.verbatim_floor_tokens),
                              ("compaction.segment_tokens", compaction.segment_tokens))),
        (_normal(orchestrator.session_dir) != _normal(orchestrator.memory_dir),
         ["orchestrator.session_dir", "orchestrator.memory_dir"],
         f"session_dir and memory_dir must be two different folders, not both {orchestrator.session_dir!r}"),
        (settings.tokens.counter is not CounterChoice.GGUF or llm.model_path, ["tokens.counter", "llm.model_path"],
         "tokens.counter gguf needs the vocabulary of llm.model_path, which is empty"),
        (not (llm.base_url and llm.model_path), ["llm.model_path", "llm.base_url"],
         "llm.model_path and llm.base_url both name a model: set only one of them"),
        (search.embedder not in (EmbedderChoice.ONNX, EmbedderChoice.GGUF) or search.model_path,
         ["search.embedder", "search.model_path"],
         f"search.embedder {search.embedder} needs search.model_path, which is empty"),
        (search.embedder is not EmbedderChoice.HTTP or search.model, ["search.embedder", "search.model"],
         "search.embedder http needs search.model, the name of the model on the server, which is empty"),
    ]  # fmt: skip
    return [(keys, problem) for holds, keys, problem in rules if not holds]


def _normal(folder: str) -> tuple[str, ...]:
    return ("/" if folder.startswith("/") else "", *(part for part in folder.split("/") if part not in ("", ".")))


def _combined(*sources: Mapping[str, _Given]) -> Settings:
    """Merge sources into the defaults; later sources win."""
    tree: dict[str, Any] = {}
    for given in sources:
        for key, each in given.items():
            *path, name = key.split(".")
            section = tree
            for part in path:
                section = section.setdefault(part, {})
            section[name] = each.value
    return Settings.model_validate(tree) if tree else Settings.model_construct()  # faster: no validation


def _problems(given: Mapping[str, _Given]) -> dict[str, str]:
    """Validate the values of one source. Return the problems by key, in the order of the source."""
    found = {key: _unknown(key, each.value) for key, each in given.items() if key not in schema()}
    try:
        _combined({key: each for key, each in given.items() if key not in found})
    except ValidationError as error:
        for each in error.errors(include_url=False):
            whole = ".".join(map(str, each["loc"]))
            key = next(name for name in given if name in schema() and f"{whole}.".startswith(f"{name}."))
            if each["type"] == "value_error" or key != whole:
                problem = str(each.get("ctx", {}).get("error") or _WITHIN.get(each["type"], each["msg"]))
            else:
                problem = _expected(key, given[key].value)
            within = whole.removeprefix(f"{key}.") if key != whole else ""
            found[key] = f"{within}: {problem}" if within else problem
    return {key: found[key] for key in given if key in found}


def _unknown(key: str, value: object) -> str:
    """Describe the fault of a name that is not a key, and suggest the key that was probably meant."""
    if key in sections() or (not key and not isinstance(value, Mapping)):  # the root's key is empty
        return f"must be a section with keys below it, not {_type_name(value)}"
    import difflib  # only needed after a typing mistake

    known = [*sections(), *schema()]
    section, _, name = key.rpartition(".")
    siblings = [other for other in known if other.rpartition(".")[0] == section]
    namesakes = [other for other in known if other.rpartition(".")[2] == name]
    close = namesakes or difflib.get_close_matches(key, siblings, n=1, cutoff=0.75)
    close = close or difflib.get_close_matches(key, known, n=1, cutoff=0.75)
    return f"unknown key; did you mean {' or '.join(sorted(close))}?" if close else "unknown key"


def _expected(key: str, value: object) -> str:
    """Describe the values that a key accepts, and the value that was found."""
    field, type_name = schema()[key], _type_name(value)
    kind: Any = field.annotation
    if kind is str:
        quotes = "; put it in quotes" if isinstance(value, int | float) else ""
        return "must not be empty" if value == "" else f"must be text, not {type_name}{quotes}"
    if not isinstance(kind, type):
        return f"must be a {'list' if get_origin(kind) is list else 'mapping'}, not {type_name}"
    if issubclass(kind, StrEnum):
        return f"must be one of {', '.join(kind)}, not {type_name}"
    if kind is bool:
        return f"must be true or false, not {type_name}"
    low, high = field.metadata
    return f"must be {'a whole number' if kind is int else 'a number'} from {low.ge} to {high.le}, not {type_name}"


def _type_name(value: object) -> str:
    if value is None or isinstance(value, bool):
        return {None: "an empty value", True: "true", False: "false"}[value]
    if isinstance(value, int) and abs(value) >= 10**40:  # `str` refuses more than 4,300 digits
        return "a number of 40 or more digits"
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, str):
        return f"the text {clipped(value)}"
    if isinstance(value, Mapping):
        return "a section"
    return "a list" if isinstance(value, list | tuple) else f"a value of type {type(value).__name__}"


def _first(leaves: Iterator[tuple[str, _Given]], faults: list[ConfigFault]) -> dict[str, _Given]:
    """Collect values by key; a second value for the same key is a fault."""
    found: dict[str, _Given] = {}
    for key, given in leaves:
        if key in found:
            other = f"appears here and on line {found[key].line}" if given.line else "is given twice"
            faults.append(given.fault(key, f"{other}; remove one"))
        else:
            found[key] = given
    return found


def _in_value(value: object, key: str | None = None) -> Iterator[tuple[str, _Given]]:
    """Yield the overrides at and below `key`. `key`: None for the root."""
    if isinstance(value, Mapping) and (key is None or key in sections()):
        for name, child in value.items():
            yield from _in_value(child, f"{name}" if key is None else f"{key}.{name}")
    elif value is not None or (key is not None and key not in sections()):  # an empty section sets nothing
        yield key or "", _Given(value=value, source="overrides")


def _in_environment(environ: Mapping[str, str]) -> Iterator[dict[str, _Given]]:
    """Yield one source for each `ORCHESTRA_MEM__` variable that is set, in the order of their names."""
    for name, text in sorted(environ.items()):
        if name.startswith(ENVIRONMENT_PREFIX) and text:
            key = name.removeprefix(ENVIRONMENT_PREFIX).lower().replace("__", ".")
            value = text if key in schema() and schema()[key].annotation is str else _typed(text)
            yield {key: _Given(value=value, source=f"environment variable {name}")}


def _typed(text: str) -> object:
    import yaml

    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError, ValueError, OverflowError):
        return text
    return _scalar(node) if isinstance(node, yaml.ScalarNode) else text


def _in_file(path: Path, faults: list[ConfigFault]) -> dict[str, _Given]:
    """Read a configuration file and add its syntax faults to `faults`; a missing file counts as empty."""
    try:
        if stat.S_ISFIFO(path.stat().st_mode):  # opening it would wait for a writer
            raise OSError(0, "it is a named pipe, not a file")
        raw = path.read_bytes()
    except FileNotFoundError:
        return {}
    except OSError as error:
        faults.append(ConfigFault(source=str(path), key="", problem=f"cannot be read: {error.strerror}"))
        return {}
    if not _SAYS_SOMETHING.search(raw):
        return {}
    import yaml

    try:
        root = yaml.compose(raw.decode("utf-8-sig"), Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError, ValueError, OverflowError) as error:
        problem, line = _unreadable(error, raw)
        faults.append(ConfigFault(source=str(path), key="", problem=problem, line=line))
        return {}
    return {} if root is None else _first(_in_node(root, str(path), root.start_mark.line + 1), faults)


def _unreadable(error: Exception, raw: bytes) -> tuple[str, int]:
    """Return why a file cannot be parsed, and the line, 0 if it is unknown."""
    import yaml

    if isinstance(error, UnicodeDecodeError):
        data, at = error.object, error.start  # without a byte order mark
        return f"is not UTF-8 (byte 0x{data[at]:02x}); save it as UTF-8", data.count(b"\n", 0, at) + 1
    if isinstance(error, ValueError | OverflowError):
        return "has an escape above \\U0010FFFF; correct it", 0
    if isinstance(error, yaml.reader.ReaderError):
        line = raw.decode("utf-8-sig").count("\n", 0, error.position) + 1
        return f"has a control character (U+{error.character:04X}); remove it", line
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark:
        mark = error.problem_mark
        if "'\\t'" in str(error.problem):
            return "is indented with a tab; YAML allows only spaces", mark.line + 1
        return f"is not YAML: {error.problem} (column {mark.column + 1})", mark.line + 1
    return "is nested too deeply" if isinstance(error, RecursionError) else f"is not YAML: {error}", 0


def _in_node(node: yaml.Node, source: str, line: int, key: str | None = None) -> Iterator[tuple[str, _Given]]:
    """Yield the values at and below a node. Tags for Python objects are ignored."""
    import yaml

    if isinstance(node, yaml.MappingNode) and (key is None or key in sections()):
        for name_node, child in node.value:
            name = name_node.value if isinstance(name_node, yaml.ScalarNode) else "?"
            yield from _in_node(child, source, name_node.start_mark.line + 1, name if key is None else f"{key}.{name}")
        return
    value = _plain(node) if isinstance(node, yaml.ScalarNode) or key in schema() else _EMPTY[type(node).__name__]
    if value is not None or (key is not None and key not in sections()):  # an empty section sets nothing
        yield key or "", _Given(value=value, source=source, line=line)


def _plain(node: yaml.Node, room: int = 8) -> object:
    """Return the value of any node, cut off below `room` levels: a node may contain itself."""
    import yaml

    if isinstance(node, yaml.ScalarNode):
        return _scalar(node)
    if not room:
        return _EMPTY[type(node).__name__]
    if isinstance(node, yaml.MappingNode):
        return {str(name.value): _plain(child, room - 1) for name, child in node.value}
    return [_plain(child, room - 1) for child in node.value]


def _scalar(node: yaml.ScalarNode) -> object:
    """Return a scalar's value: None, a boolean, a number or text."""
    text: str = node.value
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


def with_values(text: str, values: Mapping[str, str]) -> tuple[str, list[str]]:
    """Replace existing values in a configuration text by `values`; return the new text and the changed keys."""
    import yaml

    def scalars(node: yaml.Node | None, key: str = "") -> Iterator[tuple[str, yaml.ScalarNode]]:
        if isinstance(node, yaml.MappingNode):
            for name, child in node.value:
                yield from scalars(child, f"{key}.{name.value}".removeprefix("."))
        elif isinstance(node, yaml.ScalarNode) and values.get(key, node.value) != node.value:
            yield key, node

    changed = [*scalars(yaml.compose(text, Loader=yaml.SafeLoader))]
    places = {node.start_mark.index: (node.end_mark.index, values[key]) for key, node in changed}  # aliases count once
    for start, (end, value) in sorted(places.items(), reverse=True):
        anchor = "".join(re.findall(r"^&\S+\s+", text[start:end]))
        newline = "\n" if text[start:end].endswith("\n") else ""  # a block scalar includes its line feed
        text = f'{text[:start]}{anchor}"{value}"{newline}{text[end:]}'
    return text, [key for key, _ in changed]


def default_config_text() -> str:
    """Return the text of `config/default_config.yaml`: every key with its default, unit and reason."""
    return _shipped("default_config.yaml", _CHECKOUT / "config" / "default_config.yaml").read_text(encoding="utf-8")


def template_files() -> dict[str, str]:
    """Return the texts of the files that `init` creates in `.obra/`, by relative path, sorted."""
    folder = _shipped("obra-template", _CHECKOUT / ".obra-template")
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    return {name: path.read_text(encoding="utf-8") for name, path in sorted(files.items())}


def _shipped(name: str, in_checkout: Path) -> Path:
    """Return the path of a packaged file: in the installed package, else in the checkout."""
    packed = Path(__file__).parents[1] / "_data" / name
    return packed if packed.exists() else in_checkout
