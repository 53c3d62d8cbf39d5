"""All settings with their defaults and ranges. Pure: this module does no I/O.

The pydantic models are the schema: a field that is a model is a section, any other field is a key. What each key means
is explained in `config/default_config.yaml`. `adapters/config_files.py` reads files, environment and overrides.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache, reduce
from operator import getitem
from types import MappingProxyType
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PrivateAttr
from pydantic.fields import FieldInfo

from orchestra_mem.choices import CounterChoice, Durability, EmbedderChoice, IsolationChoice, RedactionChoice
from orchestra_mem.core.addresses import address_fault, checked_schema, database_address, mask_credentials

DEFAULT_ORIGIN = "default"
_SECRET = "(set, not shown)"


def hidden(key: str, value: object) -> object:
    """Return a value for display: API keys and the database URL are hidden, other addresses lose their credentials."""
    if (key.endswith(".api_key") or key == "storage.url") and value:
        return _SECRET
    return mask_credentials(value) if key.endswith(".base_url") and isinstance(value, str) else value


def _line(text: str) -> str:
    if text and not text.strip():
        raise ValueError("must not be blank")
    if not text.isprintable():
        raise ValueError("must be one line without control characters")  # not quoted: it may be a password
    return text


def _address(text: str) -> str:
    if text and (problem := address_fault(text)):
        raise ValueError(problem)
    return text


def _between(low: float, high: float) -> Any:
    return Field(ge=low, le=high)


_Line = Annotated[str, AfterValidator(_line)]
_Address = Annotated[_Line, AfterValidator(_address)]
_NotEmpty = Field(min_length=1)
_Share = Annotated[float, _between(0, 1)]
_Seconds = Annotated[float, _between(0, 86_400)]
# In strict mode, pydantic rejects enumeration values given as text. YAML parses an unquoted off as false.
_Choice = Field(strict=False)
_OffChoice = BeforeValidator(lambda value: "off" if value is False else value)


class _Section(BaseModel):
    """A section of the settings. Unknown keys and values of the wrong type are errors; instances are immutable."""

    # defer_build: pydantic builds the validator of a section once, as a part of Settings.
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False, defer_build=True)


class ContextWindowSettings(_Section):
    """Size of the model's context window, and the shares of it that trigger a warning, a refresh and an error."""

    max_tokens: Annotated[int, _between(1_024, 16_777_216)] = 128_000
    warning_threshold: Annotated[float, _between(0.01, 1)] = 0.70
    refresh_threshold: Annotated[float, _between(0.01, 1)] = 0.80
    critical_threshold: Annotated[float, _between(0.01, 1)] = 0.95


class WorkingMemorySettings(_Section):
    """Limits of working memory, beyond which it spills its older half."""

    max_operations: Annotated[int, _between(2, 100_000)] = 50
    max_tokens: Annotated[int, _between(100, 16_777_216)] = 10_000


class OrchestratorSettings(_Section):
    """The window, working memory and documents, under the key names of the source design (section 4.3)."""

    context_window: ContextWindowSettings = ContextWindowSettings.model_construct()
    working_memory: WorkingMemorySettings = WorkingMemorySettings.model_construct()
    session_dir: Annotated[_Line, _NotEmpty] = ".obra/sessions"
    session_compression_threshold: Annotated[int, _between(500, 16_777_216)] = 40_000
    session_compression_ratio: Annotated[float, _between(0.05, 0.95)] = 0.7
    memory_dir: Annotated[_Line, _NotEmpty] = ".obra/memory"
    episodic_compression_threshold: Annotated[int, _between(500, 16_777_216)] = 30_000
    keep_versions: Annotated[int, _between(1, 100_000)] = 10
    auto_refresh_enabled: bool = True
    refresh_latency_target_ms: Annotated[int, _between(1, 3_600_000)] = 5_000


class ProjectSettings(_Section):
    """The project's name (default: the name of its folder), id and tags, and whether other projects may search it."""

    id: Annotated[_Line, BeforeValidator(lambda value: str(value) if type(value) is int else value)] = ""
    name: _Line = ""
    tags: list[Annotated[_Line, _NotEmpty]] = []
    shared: bool = True

    @property
    def title(self) -> str:
        """The name, followed by the id if there is one."""
        return f"{self.name} (ID: {self.id})" if self.id else self.name


class StorageSettings(_Section):
    """The database, its durability, and the lock timeouts."""

    durability: Annotated[Durability, _Choice] = Durability.NORMAL
    url: Annotated[_Line, AfterValidator(database_address)] = ""
    schema_name: Annotated[str, AfterValidator(checked_schema)] = "orchestra_mem"
    machine: _Line = ""
    lock_timeout_s: _Seconds = 30.0
    busy_timeout_s: _Seconds = 30.0


class TokensSettings(_Section):
    """The token counter and its cache."""

    counter: Annotated[CounterChoice, _Choice] = CounterChoice.AUTO
    cache_entries: Annotated[int, _between(1, 10_000_000)] = 20_000


class SharesSettings(_Section):
    """Shares of the context budget for each part; they must sum to 1."""

    project_state: _Share = 0.25
    work_plan: _Share = 0.15
    decision_history: _Share = 0.10
    session_summary: _Share = 0.20
    working_memory: _Share = 0.30


class ContextSettings(_Section):
    """How the parts of a context share its budget."""

    shares: SharesSettings = SharesSettings.model_construct()
    shared_share: _Share = 0.05
    fill_at_start: Annotated[float, _between(0.05, 1)] = 0.5


class CompactionSettings(_Section):
    """What stays verbatim, and how older operations are cut into segments and summarised."""

    verbatim_window_s: Annotated[float, _between(0, 31_536_000)] = 3_600.0
    verbatim_floor_tokens: Annotated[int, _between(0, 16_777_216)] = 2_000
    segment_tokens: Annotated[int, _between(100, 1_000_000)] = 2_000
    summary_ratio: Annotated[float, _between(0.02, 0.9)] = 0.23
    fan_in: Annotated[int, _between(2, 64)] = 8
    window_share: Annotated[float, _between(0.01, 1)] = 0.5


class EntriesSettings(_Section):
    """Size of an operation's entry in the session document."""

    max_chars: Annotated[int, _between(100, 10_000_000)] = 4_000


class DocumentsSettings(_Section):
    """How many decisions and achievements the episodic documents show."""

    decisions_in_full: Annotated[int, _between(1, 100_000)] = 50
    decisions_in_brief: Annotated[int, _between(0, 100_000)] = 200
    progress_items: Annotated[int, _between(1, 100_000)] = 30
    only_decisions: bool = False


class SearchSettings(_Section):
    """The embedder for semantic search, its processor use, and the circuit breaker around it."""

    embedder: Annotated[EmbedderChoice, _Choice, _OffChoice] = EmbedderChoice.WORDLLAMA
    model_path: _Line = ""
    base_url: Annotated[_Address, _NotEmpty] = "http://127.0.0.1:8080/v1"
    model: _Line = ""
    api_key: Annotated[_Line, Field(repr=False)] = ""
    dimensions: Annotated[int, _between(0, 65_536)] = 0
    threads: Annotated[int, _between(1, 64)] = 1
    breaker_failures: Annotated[int, _between(1, 1_000)] = 5
    breaker_reset_s: _Seconds = 60.0


class RetrievalSettings(_Section):
    """The context share of recalled memories, and the cache of retrieved results."""

    context_share: _Share = 0.80
    cache_entries: Annotated[int, _between(0, 1_000_000)] = 100
    cache_ttl_s: Annotated[float, _between(0, 31_536_000)] = 3_600.0


class ResponsesSettings(_Section):
    """The cache of model responses: which questions count as the same, and how long responses stay valid."""

    similarity: Annotated[float, _between(0.5, 1)] = 0.90
    max_entries: Annotated[int, _between(0, 1_000_000)] = 1_000
    factual_ttl_s: Annotated[float, _between(0, 31_536_000)] = 86_400.0
    tool_ttl_s: Annotated[float, _between(0, 31_536_000)] = 3_600.0
    greeting_ttl_s: Annotated[float, _between(0, 31_536_000)] = 300.0


class PermissionSettings(_Section):
    """The other agents whose items an agent may read or write; `*` means all agents."""

    read: list[Annotated[_Line, _NotEmpty]] = []
    write: list[Annotated[_Line, _NotEmpty]] = []


class PatternSettings(_Section):
    """Regular expressions that assign an item type to a sentence, in addition to the classifier.

    They match entire words. The defaults are from the source design, without its bare "will", which is too frequent.
    """

    decision: _Line = "decided|chose|selected|will use"
    insight: _Line = "learned|discovered|realized|found that"
    error: _Line = "error|failed|exception|bug"
    plan: _Line = "plan to|next step|todo"


class CatalogSettings(_Section):
    """The catalog of agents' items: extraction, expiry, access, and how much is injected into a message."""

    hooks: bool = False
    max_injection_tokens: Annotated[int, _between(0, 16_777_216)] = 2_000
    min_relevance: _Share = 0.0
    max_memories_per_ci: Annotated[int, _between(1, 10_000_000)] = 1_000
    default_expiration_days: Annotated[float, _between(0.001, 36_500)] = 7.0
    cleanup_interval_hours: Annotated[float, _between(0.01, 87_600)] = 24.0
    min_priority_for_permanent: Annotated[int, _between(0, 11)] = 8
    summary_max_length: Annotated[int, _between(1, 1_000)] = 50
    audit_retention_days: Annotated[float, _between(0.01, 36_500)] = 365.0
    isolation: Annotated[IsolationChoice, _Choice] = IsolationChoice.CATALOG
    permissions: dict[Annotated[_Line, _NotEmpty], PermissionSettings] = Field(default_factory=dict)
    extraction_patterns: PatternSettings = PatternSettings.model_construct()


class ArchivesSettings(_Section):
    """How long, and up to which total size, documents of ended sessions are kept; 0 means no limit."""

    keep_days: Annotated[float, _between(0, 36_500)] = 0.0
    keep_mb: Annotated[float, _between(0, 1_000_000)] = 0.0


class SecretsSettings(_Section):
    """Redaction of secrets and, optionally, personal data in everything that is recorded, before it is stored."""

    mode: Annotated[RedactionChoice, _Choice, _OffChoice] = RedactionChoice.MASK
    personal: bool = False
    add_kinds: list[_Line] = []
    skip_kinds: list[_Line] = []
    names: list[_Line] = []
    allow: list[_Line] = []
    allow_patterns: list[_Line] = []
    patterns: dict[Annotated[_Line, _NotEmpty], _Line] = Field(default_factory=dict)


class CategorizationSettings(_Section):
    """Categorization of orchestrations by a model: limits, retries, batches, and the fallback to rules."""

    max_tokens: Annotated[int, _between(50, 1_000_000)] = 500
    temperature: Annotated[float, _between(0, 2)] = 0.3
    timeout_ms: Annotated[int, _between(1, 86_400_000)] = 10_000
    fallback_to_rules: bool = True
    retries: Annotated[int, _between(0, 100)] = 2
    batch_interval_ms: Annotated[int, _between(0, 86_400_000)] = 1_000
    max_batch_size: Annotated[int, _between(1, 1_000)] = 5


class LlmSettings(_Section):
    """The language model: a GGUF file that runs in this process, with its resource limits, or a server."""

    model_path: _Line = ""
    context_tokens: Annotated[int, _between(512, 16_777_216)] = 8_192
    threads: Annotated[int, _between(0, 256)] = 0
    idle_unload_s: _Seconds = 300.0
    base_url: _Address = ""
    model: _Line = ""
    api_key: Annotated[_Line, Field(repr=False)] = ""
    timeout_s: Annotated[float, _between(1, 86_400)] = 300.0


class CompressionSettings(_Section):
    """Background improvement of summaries by the model, and the limits of its queue."""

    auto: bool = True
    max_jobs: Annotated[int, _between(1, 1_000_000)] = 200
    max_attempts: Annotated[int, _between(1, 100)] = 3


class ServerSettings(_Section):
    """The HTTP server: its address, who may connect, request limits, and the context that chats receive."""

    host: Annotated[_Line, _NotEmpty] = "127.0.0.1"
    port: Annotated[int, _between(0, 65_535)] = 8_377
    allowed_hosts: list[Annotated[_Line, _NotEmpty]] = []
    allowed_origins: list[Annotated[_Address, _NotEmpty]] = []
    max_body_bytes: Annotated[int, _between(1, 1_073_741_824)] = 33_554_432
    requests_per_s: Annotated[float, _between(0.01, 1_000_000)] = 1_000.0
    timeout_s: Annotated[float, _between(0.01, 86_400)] = 30.0
    chat_first_tokens: Annotated[int, _between(0, 16_777_216)] = 1_500
    chat_turn_tokens: Annotated[int, _between(0, 16_777_216)] = 500
    chat_wait_s: Annotated[float, _between(0.01, 86_400)] = 5.0


class Settings(BaseModel):
    """All settings of a project. `Settings()` holds the defaults; `load_settings` loads a project's settings."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)

    project: ProjectSettings = ProjectSettings.model_construct()
    orchestrator: OrchestratorSettings = OrchestratorSettings.model_construct()
    storage: StorageSettings = StorageSettings.model_construct()
    tokens: TokensSettings = TokensSettings.model_construct()
    context: ContextSettings = ContextSettings.model_construct()
    compaction: CompactionSettings = CompactionSettings.model_construct()
    entries: EntriesSettings = EntriesSettings.model_construct()
    documents: DocumentsSettings = DocumentsSettings.model_construct()
    search: SearchSettings = SearchSettings.model_construct()
    retrieval: RetrievalSettings = RetrievalSettings.model_construct()
    responses: ResponsesSettings = ResponsesSettings.model_construct()
    llm: LlmSettings = LlmSettings.model_construct()
    compression: CompressionSettings = CompressionSettings.model_construct()
    catalog: CatalogSettings = CatalogSettings.model_construct()
    archives: ArchivesSettings = ArchivesSettings.model_construct()
    redaction: SecretsSettings = SecretsSettings.model_construct()
    categorization: CategorizationSettings = CategorizationSettings.model_construct()
    server: ServerSettings = ServerSettings.model_construct()
    _origins: Mapping[str, str] = PrivateAttr(default_factory=dict)

    @property
    def session_compaction_tokens(self) -> int:
        """Tokens at which the session document is compacted: the smaller of its threshold and its window share."""
        return min(self.orchestrator.session_compression_threshold, self._window_share_tokens)

    @property
    def episodic_compaction_tokens(self) -> int:
        """Tokens at which an episodic document is compacted: the smaller of its threshold and its window share."""
        return min(self.orchestrator.episodic_compression_threshold, self._window_share_tokens)

    @property
    def _window_share_tokens(self) -> int:
        return int(self.orchestrator.context_window.max_tokens * self.compaction.window_share)

    def of_project(self, name: str, origins: Mapping[str, str]) -> Settings:
        """Return a copy that knows the origins of its values and, if no project name is set, uses `name`."""
        project = self.project.model_copy(update={} if self.project.name else {"name": name})
        copy = self.model_copy(update={"project": project})
        copy._origins = dict(origins)
        return copy

    def origin_of(self, key: str) -> str:
        """Return the origin of a value (its file and line, variable or override), or `"default"`.

        Raises:
            KeyError: There is no such key. Keys are dotted, as in `storage.durability`.
        """
        if key not in schema():
            raise KeyError(key)
        return self._origins.get(key, DEFAULT_ORIGIN)

    def flat(self) -> dict[str, object]:
        """Return all values by dotted key, in the order of declaration: enumerations as text, secrets hidden."""
        values: Any = self.model_dump(mode="json")
        return {key: hidden(key, reduce(getitem, key.split("."), values)) for key in schema()}


@cache
def schema() -> Mapping[str, FieldInfo]:
    """Return all fields by dotted key, in the order of declaration."""
    return MappingProxyType(dict(_fields(Settings, "")))


@cache
def sections() -> frozenset[str]:
    """Return the dotted names of all sections."""
    parts = [name.split(".") for name in schema()]
    return frozenset(".".join(part[:depth]) for part in parts for depth in range(1, len(part)))


def _fields(section: type[BaseModel], prefix: str) -> Iterator[tuple[str, FieldInfo]]:
    for name, field in section.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from _fields(field.annotation, f"{prefix}{name}.")
        else:
            yield prefix + name, field
