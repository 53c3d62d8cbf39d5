"""Open the language model and the token counter that the settings name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from orchestra_mem.adapters.tokenizers import Calibration, open_counter
from orchestra_mem.choices import CounterChoice
from orchestra_mem.core.context.rendered import OrchestratorContext
from orchestra_mem.errors import ModelError
from orchestra_mem.ports import TokenCounter
from orchestra_mem.settings import LlmSettings, Settings
from orchestra_mem.types import Operation

if TYPE_CHECKING:
    from orchestra_mem.adapters.llama import LlamaModel
    from orchestra_mem.adapters.openai_http import OpenAiModel, Server, ServerTokenCounter


# `weakref_slot`: the memory's signals hold only a weak reference to `operation_recorded`.
@dataclass(frozen=True, slots=True, weakref_slot=True, kw_only=True)
class Models:
    """The model, in this process or on a server, and the token counter. `model` is None if the settings name none.

    `counts` is the counter if a server may be able to count; contexts are then assembled by `counts`. `calibration`
    corrects estimates by the token counts that are reported with operations.
    """

    model: LlamaModel | OpenAiModel | None
    counter: TokenCounter
    calibration: Calibration
    counts: ServerTokenCounter | None = None

    def operation_recorded(self, memory: object, operation: Operation) -> None:
        """Calibrate the estimates with the token count reported for an operation."""
        if operation.tokens != operation.entry_tokens:
            self.calibration.report(operation.entry_tokens, operation.tokens)

    def busy(self) -> bool:
        """Check whether the model is answering another program, as far as its server reports it."""
        return self.model is not None and self.model.busy()

    def assemble(self, build: Callable[[int], OrchestratorContext]) -> OrchestratorContext:
        """Build a context, with exact counts if a server counts; see `ServerTokenCounter.assemble`."""
        return self.counts.assemble(build) if self.counts is not None else build(0)

    def doubts(self) -> list[str]:
        """Return warnings about the model and the counter that have been noticed so far, as messages."""
        return [*(self.model.doubts if self.model else []), *(self.counts.doubts if self.counts else [])]

    def close(self) -> None:
        """Unload the model."""
        if self.model is not None:
            self.model.close()


def open_server(llm: LlmSettings) -> Server:
    """Open the model server that the settings name, without connecting to it.

    Raises:
        ModelError: The address or the API key is invalid, or the `http` extra is not installed.
    """
    try:
        from orchestra_mem.adapters.openai_http import Server
    except ImportError as error:
        raise ModelError(f"llm.base_url needs `pip install 'orchestra-mem[http]'`: {error}") from error
    return Server(llm.base_url, api_key=llm.api_key)


def open_models(folder: Path, settings: Settings, *, counter: TokenCounter | None = None) -> Models:
    """Open the model and the token counter that the settings name. The model is loaded on first use.

    Args:
        folder: The project's folder, the base of a relative `llm.model_path`.
        settings: The project's settings.
        counter: Token counter to use instead of the one that the settings name.

    Raises:
        TokenizerError: The counter that the settings name is unavailable.
        ModelError: The server's address or API key is invalid, or the `http` extra is not installed.
    """
    llm, choice, calibration = settings.llm, settings.tokens.counter, Calibration()
    model: LlamaModel | OpenAiModel | None = None
    vocabulary = counts = None
    entries = settings.tokens.cache_entries
    # Lazy imports: only programs with a model need these adapters.
    if llm.base_url:
        server = open_server(llm)
        from orchestra_mem.adapters.openai_http import OpenAiModel, ServerTokenCounter

        wanted = settings.orchestrator.context_window.max_tokens
        model = OpenAiModel(server, model=llm.model, context_tokens=llm.context_tokens, wanted_tokens=wanted)
        if choice is CounterChoice.AUTO and counter is None:
            near = open_counter(choice.value, calibration=calibration, cache_entries=entries)
            counter = counts = ServerTokenCounter(server, model=llm.model, near=near)
    elif llm.model_path:
        from orchestra_mem.adapters.llama import GgufVocabulary, LlamaModel

        vocabulary = GgufVocabulary(folder / Path(llm.model_path).expanduser())
        model = LlamaModel(
            vocabulary, context_tokens=llm.context_tokens, threads=llm.threads, idle_unload_s=llm.idle_unload_s
        )
    if counter is None:
        file = folder / ".obra" / "index" / "token_counts.json"
        counter = open_counter(choice.value, own=vocabulary, calibration=calibration, cache_entries=entries, file=file)
    return Models(model=model, counter=counter, calibration=calibration, counts=counts)
