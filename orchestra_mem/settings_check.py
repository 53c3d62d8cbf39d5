"""Several sources of settings become one `Settings`, or one error with all their faults. Pure: reads nothing.

A source is a tree of `Given`s: what stands where. The file and the environment are read elsewhere
(`adapters/config_files.py`); here lies what may stand in them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import fsum
from urllib.parse import urlsplit

from orchestra_mem.errors import ConfigError, ConfigFault
from orchestra_mem.settings import (
    CounterChoice,
    EmbedderChoice,
    Key,
    Settings,
    hidden,
    make_settings,
    schema,
    sections,
    without_user,
)


@dataclass(frozen=True, slots=True)
class Given:
    """A value as a source gives it, and where it stands.

    `value` is a scalar, a list, or a mapping whose values are `Given`s or plain ones (of the same source). `line`
    counts from 1, 0 where the source has no lines. `text` is the value as it was typed, where the source knows only
    text (the environment): a key that takes text takes this.
    """

    value: object
    source: str
    line: int = 0
    text: str | None = None

    @property
    def place(self) -> str:
        """The source, with the line where there is one."""
        return f"{self.source}:{self.line}" if self.line else self.source


@dataclass(frozen=True, slots=True)
class _Chosen:
    """The value that won at a key; `rank` is the place of its source in the order of precedence."""

    value: object
    given: Given
    rank: int


def resolve(sources: Sequence[Given], *, project_name: str, faults: Sequence[ConfigFault] = ()) -> Settings:
    """Lay `sources` over the defaults, later ones over earlier ones, and check everything.

    `project_name` stands in where no name is given. `faults` are those already found while reading.

    Raises:
        ConfigError: with every fault of every source, those of values that a later source replaces too.
    """
    found = list(faults)
    chosen: dict[str, _Chosen] = {}
    wrong: set[str] = set()
    for rank, source in enumerate(sources):
        for key, given in _walk("", source, found):
            value, problem = _checked(key, given)
            if problem:
                found.append(_fault(key.name, given, problem))
                wrong.add(key.name)
            else:
                chosen[key.name] = _Chosen(value, given, rank)
    settings = make_settings(
        {name: choice.value for name, choice in chosen.items()},
        {name: choice.given.place for name, choice in chosen.items()},
    )
    found += _impossible(settings, chosen, wrong)
    if found:
        raise ConfigError(tuple(found))
    if settings.project.name:
        return settings
    return replace(settings, project=replace(settings.project, name=project_name))


def _fault(key: str, given: Given, problem: str) -> ConfigFault:
    return ConfigFault(source=given.source, key=key, problem=problem, line=given.line)


def _walk(section: str, given: Given, faults: list[ConfigFault]) -> Iterator[tuple[Key, Given]]:
    """Yield what stands at known keys; unknown ones become faults."""
    if given.value is None:  # a section of which every key is commented out
        return
    if not isinstance(given.value, Mapping):
        faults.append(_fault(section, given, f"must be a section with keys below it, not {_told(given.value)}"))
        return
    for name, child in given.value.items():
        below = child if isinstance(child, Given) else Given(child, given.source, given.line)
        path = f"{section}.{name}" if section else f"{name}"
        if not isinstance(name, str) or "." in name:
            faults.append(_fault(path, below, "keys are names nested in sections, not joined by dots"))
        elif path in schema():
            yield schema()[path], below
        elif path in sections():
            yield from _walk(path, below, faults)
        else:
            faults.append(_fault(path, below, "unknown key" + _suggestion(path)))


def _suggestion(path: str) -> str:
    """Name the known key that was most likely meant: of the same name, of the same section, or else the closest."""
    import difflib  # needed by none but the one who mistyped

    known = [*sections(), *schema()]
    section, _, name = path.rpartition(".")
    siblings = [other for other in known if other.rpartition(".")[0] == section]
    namesakes = [other for other in known if other.rpartition(".")[2] == name]
    close = namesakes or difflib.get_close_matches(path, siblings, n=1, cutoff=0.75)
    close = close or difflib.get_close_matches(path, known, n=1, cutoff=0.75)
    return f"; did you mean {' or '.join(sorted(close))}?" if close else ""


def _checked(key: Key, given: Given) -> tuple[object, str]:
    """Give the value in the key's type and no problem, or what is wrong with it."""
    value = given.value
    if key.kind is str:
        return _checked_text(key, value if given.text is None else given.text)
    if issubclass(key.kind, StrEnum):
        choices = [choice.value for choice in key.kind]
        # YAML reads a bare off as false.
        meant = "off" if value is False and "off" in choices else value
        if isinstance(meant, str) and meant in choices:
            return key.kind(meant), ""
        return None, f"must be one of {', '.join(choices)}, not {_told(value)}"
    if key.kind is bool:
        return (value, "") if isinstance(value, bool) else (None, f"must be true or false, not {_told(value)}")
    return _checked_number(key, value)


def _checked_text(key: Key, value: object) -> tuple[object, str]:
    if not isinstance(value, str):
        quotes = "; put it in quotes" if isinstance(value, bool | int | float) else ""
        return None, f"must be text, not {_told(value)}{quotes}"
    if not value.strip() and (value or not key.may_be_empty):
        return None, f"must not be {'blank' if value else 'empty'}"
    if not value.isprintable():
        return None, f"must be one line without control characters, not {hidden(key.name, value)!r}"
    if key.name.endswith(".base_url") and value and (problem := address_fault(value)):
        return None, problem
    return value, ""


def address_fault(address: str) -> str:
    """Say why no server can be at `address`, without the name and the password in it; empty where one can."""
    try:
        parts = urlsplit(address)
        if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0 and address.isprintable():
            return ""
    except ValueError:  # its words may quote a piece of a password
        pass
    return (
        f"{_clipped(without_user(address))} is no address of a server: give one as http://127.0.0.1:8080 or "
        "http://[::1]:8080, its port up to 65535"
    )


def _checked_number(key: Key, value: object) -> tuple[object, str]:
    numeric = isinstance(value, int if key.kind is int else int | float) and not isinstance(value, bool)
    assert key.between is not None
    low, high = key.between.low, key.between.high
    if numeric and isinstance(value, int | float) and low <= value <= high:
        return key.kind(value), ""
    kind = "a whole number" if key.kind is int else "a number"
    return None, f"must be {kind} from {low} to {high}, not {_told(value)}"


def _told(value: object) -> str:
    """Say in words what was found instead."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        # Python refuses to print whole numbers of some thousand digits.
        return str(value) if isinstance(value, float) or abs(value) < 10**40 else "one of 40 digits or more"
    if isinstance(value, str):
        return f"the text {_clipped(value)}"
    if isinstance(value, Mapping):
        return "a section"
    return "a list" if isinstance(value, list | tuple) else f"a value of type {type(value).__name__}"


def _clipped(text: str) -> str:
    return repr(text) if len(text) <= 60 else f"{text[:60]!r} and {len(text) - 60} more characters"


@dataclass(frozen=True, slots=True)
class _Combination:
    """Keys that can be right one by one and wrong together. `check` tells what is wrong, or gives an empty text."""

    keys: tuple[str, ...]
    check: Callable[[Settings], str]


def _impossible(settings: Settings, chosen: Mapping[str, _Chosen], wrong: set[str]) -> Iterator[ConfigFault]:
    """Check the combinations. One with a key that is itself wrong is passed over: it would only confuse."""
    for combination in _COMBINATIONS:
        given = [key for key in combination.keys if key in chosen]
        if not given or not wrong.isdisjoint(combination.keys):
            continue
        problem = combination.check(settings)
        if problem:
            blamed = max(given, key=lambda key: chosen[key].rank)
            yield _fault(blamed, chosen[blamed].given, problem)


def _thresholds(settings: Settings) -> str:
    window = settings.orchestrator.context_window
    warning, refresh, critical = window.warning_threshold, window.refresh_threshold, window.critical_threshold
    if warning < refresh < critical:
        return ""
    return (
        f"thresholds must ascend: warning_threshold {warning} < refresh_threshold {refresh} "
        f"< critical_threshold {critical} does not hold"
    )


def _shares(settings: Settings) -> str:
    shares = {name: value for name, value in settings.flat().items() if name in _SHARES and isinstance(value, float)}
    total = fsum(shares.values())
    if abs(total - 1) <= 1e-6:
        return ""
    parts = ", ".join(f"{name.rpartition('.')[2]} {value}" for name, value in shares.items())
    return f"the shares must sum to 1, not {round(total, 6)} ({parts})"


def _fill(settings: Settings) -> str:
    fill, refresh = settings.context.fill_at_start, settings.orchestrator.context_window.refresh_threshold
    if fill < refresh:
        return ""
    return f"context.fill_at_start {fill} must be below refresh_threshold {refresh}: a refresh would call for the next"


def _floor(settings: Settings) -> str:
    return _below_threshold("compaction.verbatim_floor_tokens", settings.compaction.verbatim_floor_tokens, settings)


def _segment(settings: Settings) -> str:
    return _below_threshold("compaction.segment_tokens", settings.compaction.segment_tokens, settings)


def _below_threshold(key: str, tokens: int, settings: Settings) -> str:
    """For a small window both are scaled down with the document; as configured they must fit into it."""
    threshold = settings.orchestrator.session_compression_threshold
    if tokens < threshold:
        return ""
    return f"{key} {tokens} must be below session_compression_threshold {threshold}: nothing could be compacted"


def _folders(settings: Settings) -> str:
    sessions, memory = settings.orchestrator.session_dir, settings.orchestrator.memory_dir
    if _normal(sessions) != _normal(memory):
        return ""
    return f"session_dir and memory_dir must be two folders, not both {sessions!r}"


def _gguf(settings: Settings) -> str:
    if settings.tokens.counter is not CounterChoice.GGUF or settings.llm.model_path:
        return ""
    return "tokens.counter gguf counts with the vocabulary of llm.model_path, which is empty"


def _one_model(settings: Settings) -> str:
    if not (settings.llm.base_url and settings.llm.model_path):
        return ""
    return "llm.model_path and llm.base_url both name a model: give one of them"


def _model_file(settings: Settings) -> str:
    choice = settings.search.embedder
    if choice not in (EmbedderChoice.ONNX, EmbedderChoice.GGUF) or settings.search.model_path:
        return ""
    return f"search.embedder {choice.value} needs search.model_path, which is empty"


def _server_model(settings: Settings) -> str:
    if settings.search.embedder is not EmbedderChoice.HTTP or settings.search.model:
        return ""
    return "search.embedder http needs search.model, the name that the server has for it, which is empty"


def _normal(folder: str) -> tuple[str, ...]:
    absolute = folder.startswith("/")
    return ("/" if absolute else "", *(part for part in folder.split("/") if part not in ("", ".")))


_ADDRESS = "llm.base_url"
_WINDOW = "orchestrator.context_window"
_SHARES = tuple(name for name in schema() if name.startswith("context.shares."))
_THRESHOLD = "orchestrator.session_compression_threshold"
_COMBINATIONS = (
    _Combination(
        (f"{_WINDOW}.warning_threshold", f"{_WINDOW}.refresh_threshold", f"{_WINDOW}.critical_threshold"), _thresholds
    ),
    _Combination(_SHARES, _shares),
    _Combination(("context.fill_at_start", f"{_WINDOW}.refresh_threshold"), _fill),
    _Combination(("compaction.verbatim_floor_tokens", _THRESHOLD), _floor),
    _Combination(("compaction.segment_tokens", _THRESHOLD), _segment),
    _Combination(("orchestrator.session_dir", "orchestrator.memory_dir"), _folders),
    _Combination(("tokens.counter", "llm.model_path"), _gguf),
    _Combination(("llm.model_path", _ADDRESS), _one_model),
    _Combination(("search.embedder", "search.model_path"), _model_file),
    _Combination(("search.embedder", "search.model"), _server_model),
)
