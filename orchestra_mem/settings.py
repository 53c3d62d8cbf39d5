"""Every setting with its default and its range. Pure: where values come from stands in `settings_check` and above.

The dataclasses are the schema: a field that is a dataclass is a section, any other field is a key, and its annotation
holds the type and the range. pydantic is not used: settings are read at each start, and of the 150 ms that importing
the package may take, it took 106 for twelve such sections, and the dataclasses with their checks 13.
"""

from __future__ import annotations

import re
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from enum import StrEnum
from functools import cache
from typing import Annotated, get_args, get_origin, get_type_hints

DEFAULT_ORIGIN = "default"
_SECRET = "(set, not shown)"


class Durability(StrEnum):
    """What a recorded operation survives: the end of the process (`normal`), or power loss as well (`full`)."""

    NORMAL = "normal"
    FULL = "full"


class CounterChoice(StrEnum):
    """Which token counter is used; `auto` takes the best that can be had."""

    AUTO = "auto"
    GGUF = "gguf"
    TIKTOKEN = "tiktoken"
    ESTIMATE = "estimate"


class EmbedderChoice(StrEnum):
    """What turns texts into vectors; off: search goes by words alone."""

    WORDLLAMA = "wordllama"
    ONNX = "onnx"
    GGUF = "gguf"
    HTTP = "http"
    OFF = "off"


class WatchChoice(StrEnum):
    """How changed documents are seen at once: by the system's events, by looking again and again, or not at all."""

    AUTO = "auto"
    POLL = "poll"
    OFF = "off"


@dataclass(frozen=True, slots=True)
class Between:
    """The range of a number, both ends included."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class NotEmpty:
    """Marks a text that may not be empty."""


_Share = Annotated[float, Between(0, 1)]
_Seconds = Annotated[float, Between(0, 86_400)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextWindowSettings:
    """The model's window, and the shares of it at which something happens."""

    max_tokens: Annotated[int, Between(1_024, 16_777_216)] = 128_000
    warning_threshold: Annotated[float, Between(0.01, 1)] = 0.70
    refresh_threshold: Annotated[float, Between(0.01, 1)] = 0.80
    critical_threshold: Annotated[float, Between(0.01, 1)] = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkingMemorySettings:
    """What the first tier holds before it spills."""

    max_operations: Annotated[int, Between(2, 100_000)] = 50
    max_tokens: Annotated[int, Between(100, 16_777_216)] = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class OrchestratorSettings:
    """The keys of the source design, section 4.3, under its names."""

    context_window: ContextWindowSettings = field(default_factory=ContextWindowSettings)
    working_memory: WorkingMemorySettings = field(default_factory=WorkingMemorySettings)
    session_dir: Annotated[str, NotEmpty()] = ".obra/sessions"
    session_compression_threshold: Annotated[int, Between(500, 16_777_216)] = 40_000
    session_compression_ratio: Annotated[float, Between(0.05, 0.95)] = 0.7
    memory_dir: Annotated[str, NotEmpty()] = ".obra/memory"
    episodic_compression_threshold: Annotated[int, Between(500, 16_777_216)] = 30_000
    keep_versions: Annotated[int, Between(1, 100_000)] = 10
    auto_refresh_enabled: bool = True
    refresh_latency_target_ms: Annotated[int, Between(1, 3_600_000)] = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectSettings:
    """What the project is called; an empty name stands for the name of its folder."""

    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageSettings:
    """The database and the locks."""

    durability: Durability = Durability.NORMAL
    lock_timeout_s: _Seconds = 30.0
    busy_timeout_s: _Seconds = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TokensSettings:
    """How tokens are counted."""

    counter: CounterChoice = CounterChoice.AUTO
    cache_entries: Annotated[int, Between(1, 10_000_000)] = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SharesSettings:
    """The parts of a context as shares of its budget; together 1."""

    project_state: _Share = 0.25
    work_plan: _Share = 0.15
    decision_history: _Share = 0.10
    session_summary: _Share = 0.20
    working_memory: _Share = 0.30


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextSettings:
    """How a context is filled."""

    shares: SharesSettings = field(default_factory=SharesSettings)
    fill_at_start: Annotated[float, Between(0.05, 1)] = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionSettings:
    """What is kept word for word, and how the rest is cut and shortened."""

    verbatim_window_s: Annotated[float, Between(0, 31_536_000)] = 3_600.0
    verbatim_floor_tokens: Annotated[int, Between(0, 16_777_216)] = 2_000
    segment_tokens: Annotated[int, Between(100, 1_000_000)] = 2_000
    summary_ratio: Annotated[float, Between(0.02, 0.9)] = 0.23
    fan_in: Annotated[int, Between(2, 64)] = 8
    window_share: Annotated[float, Between(0.01, 1)] = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class EntriesSettings:
    """An operation as the session document shows it."""

    max_chars: Annotated[int, Between(100, 10_000_000)] = 4_000


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentsSettings:
    """How much of each kind the episodic documents hold, and how it is seen that somebody has saved one."""

    decisions_in_full: Annotated[int, Between(1, 100_000)] = 50
    decisions_in_brief: Annotated[int, Between(0, 100_000)] = 200
    progress_items: Annotated[int, Between(1, 100_000)] = 30
    watch: WatchChoice = WatchChoice.AUTO


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSettings:
    """What embeds texts for search by meaning, and how much of the processor that may take."""

    embedder: EmbedderChoice = EmbedderChoice.WORDLLAMA
    model_path: str = ""
    base_url: Annotated[str, NotEmpty()] = "http://127.0.0.1:8080/v1"
    model: str = ""
    api_key: str = field(default="", repr=False)
    dimensions: Annotated[int, Between(0, 65_536)] = 0
    threads: Annotated[int, Between(1, 64)] = 1
    breaker_failures: Annotated[int, Between(1, 1_000)] = 5
    breaker_reset_s: _Seconds = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievalSettings:
    """What is recalled for a question, and how long the answer is kept."""

    context_share: _Share = 0.10
    cache_entries: Annotated[int, Between(0, 1_000_000)] = 100
    cache_ttl_s: Annotated[float, Between(0, 31_536_000)] = 3_600.0
    prefetch_tasks: Annotated[int, Between(0, 100)] = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponsesSettings:
    """Which of a model's answers are given again without it, and for how long."""

    similarity: Annotated[float, Between(0.5, 1)] = 0.90
    max_entries: Annotated[int, Between(0, 1_000_000)] = 1_000
    factual_ttl_s: Annotated[float, Between(0, 31_536_000)] = 86_400.0
    tool_ttl_s: Annotated[float, Between(0, 31_536_000)] = 3_600.0
    greeting_ttl_s: Annotated[float, Between(0, 31_536_000)] = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmSettings:
    """The language model: a file that is run in this process, with what it may take of the machine, or a server."""

    model_path: str = ""
    context_tokens: Annotated[int, Between(512, 16_777_216)] = 8_192
    threads: Annotated[int, Between(0, 256)] = 0
    idle_unload_s: _Seconds = 300.0
    base_url: str = ""
    model: str = ""
    api_key: str = field(default="", repr=False)
    timeout_s: Annotated[float, Between(1, 86_400)] = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CompressionSettings:
    """Whether the model betters summaries in the background, and how many wait for it."""

    auto: bool = True
    max_jobs: Annotated[int, Between(1, 1_000_000)] = 200
    max_attempts: Annotated[int, Between(1, 100)] = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings of a project. `load_settings` gives checked ones; the defaults alone are `Settings()`."""

    project: ProjectSettings = field(default_factory=ProjectSettings)
    orchestrator: OrchestratorSettings = field(default_factory=OrchestratorSettings)
    storage: StorageSettings = field(default_factory=StorageSettings)
    tokens: TokensSettings = field(default_factory=TokensSettings)
    context: ContextSettings = field(default_factory=ContextSettings)
    compaction: CompactionSettings = field(default_factory=CompactionSettings)
    entries: EntriesSettings = field(default_factory=EntriesSettings)
    documents: DocumentsSettings = field(default_factory=DocumentsSettings)
    search: SearchSettings = field(default_factory=SearchSettings)
    retrieval: RetrievalSettings = field(default_factory=RetrievalSettings)
    responses: ResponsesSettings = field(default_factory=ResponsesSettings)
    llm: LlmSettings = field(default_factory=LlmSettings)
    compression: CompressionSettings = field(default_factory=CompressionSettings)
    _origins: Mapping[str, str] = field(default_factory=lambda: types.MappingProxyType({}), repr=False, compare=False)

    @property
    def session_compaction_tokens(self) -> int:
        """Size at which the session document is compacted: its threshold, or its share of a small window."""
        return min(self.orchestrator.session_compression_threshold, self._window_share_tokens)

    @property
    def episodic_compaction_tokens(self) -> int:
        """Size at which an episodic document is compacted: its threshold, or its share of a small window."""
        return min(self.orchestrator.episodic_compression_threshold, self._window_share_tokens)

    @property
    def _window_share_tokens(self) -> int:
        return int(self.orchestrator.context_window.max_tokens * self.compaction.window_share)

    def origin_of(self, key: str) -> str:
        """Tell where the value of `key` (as in `storage.durability`) comes from, `"default"` where none was given.

        Raises:
            KeyError: there is no such key.
        """
        if key not in schema():
            raise KeyError(key)
        return self._origins.get(key, DEFAULT_ORIGIN)

    def flat(self) -> dict[str, object]:
        """Give every key with its value, in the order of the default file; closed choices as text, secrets hidden."""
        return dict(_flatten(self, ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """What may stand at a key. `kind` is int, float, bool, str or a `StrEnum`."""

    name: str
    kind: type
    between: Between | None = None
    may_be_empty: bool = True


@cache
def schema() -> Mapping[str, Key]:
    """Give every key by its dotted name, in the order of declaration."""
    return types.MappingProxyType({key.name: key for key in _keys(Settings, "")})


@cache
def sections() -> frozenset[str]:
    """Give the dotted names of all sections."""
    parts = [name.split(".") for name in schema()]
    return frozenset(".".join(part[:depth]) for part in parts for depth in range(1, len(part)))


def make_settings(values: Mapping[str, object], origins: Mapping[str, str]) -> Settings:
    """Make settings from checked values by dotted name; what is not given has its default."""
    made = _build(Settings, "", values)
    assert isinstance(made, Settings)
    return replace(made, _origins=types.MappingProxyType(dict(origins)))


def hidden(key: str, value: object) -> object:
    """Give the value of `key` for people to see: of a secret, and of one within an address, only that there is one."""
    if key.endswith(".api_key") and value:
        return _SECRET
    return without_user(value) if key.endswith(".base_url") and isinstance(value, str) else value


def without_user(address: str) -> str:
    """Give an address with the name and the password in it hidden, a mistyped one too: all before its last @."""
    return re.sub(r"^([a-z]+://)?.*@", r"\1***@", address, flags=re.IGNORECASE | re.DOTALL)


def _hints(section: type) -> dict[str, object]:
    """Give a section's annotations by field, private fields left out."""
    hints = get_type_hints(section, include_extras=True)
    return {name: hint for name, hint in hints.items() if not name.startswith("_")}


def _keys(section: type, prefix: str) -> Iterator[Key]:
    for name, hint in _hints(section).items():
        kind, *marks = get_args(hint) if get_origin(hint) is Annotated else (hint,)
        assert isinstance(kind, type)
        if is_dataclass(kind):
            yield from _keys(kind, f"{prefix}{name}.")
            continue
        between = next((mark for mark in marks if isinstance(mark, Between)), None)
        yield Key(
            name=prefix + name,
            kind=kind,
            between=between,
            may_be_empty=not any(isinstance(mark, NotEmpty) for mark in marks),
        )


def _build(section: type, prefix: str, values: Mapping[str, object]) -> object:
    given: dict[str, object] = {}
    for name, hint in _hints(section).items():
        if isinstance(hint, type) and is_dataclass(hint):
            given[name] = _build(hint, f"{prefix}{name}.", values)
        elif prefix + name in values:
            given[name] = values[prefix + name]
    return section(**given)


def _flatten(section: object, prefix: str) -> Iterator[tuple[str, object]]:
    for part in fields(section):  # type: ignore[arg-type]
        if part.name.startswith("_"):
            continue
        value = getattr(section, part.name)
        if is_dataclass(value) and not isinstance(value, type):
            yield from _flatten(value, f"{prefix}{part.name}.")
        else:
            shown = value.value if isinstance(value, StrEnum) else value
            yield prefix + part.name, hidden(prefix + part.name, shown)
