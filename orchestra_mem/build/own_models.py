"""Open the model and the token counter that the settings name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from orchestra_mem.adapters.tokenizers import open_counter
from orchestra_mem.choices import CounterChoice
from orchestra_mem.core.context.calibration import Calibration
from orchestra_mem.core.context.rendered import OrchestratorContext
from orchestra_mem.errors import ModelError
from orchestra_mem.ports import TokenCounter
from orchestra_mem.settings import LlmSettings, Settings
from orchestra_mem.types import Operation

if TYPE_CHECKING:
    from orchestra_mem.adapters.llama import LlamaModel
    from orchestra_mem.adapters.openai_http import OpenAiModel, Server, ServerCounts


# The memory's signals hold its method weakly.
@dataclass(frozen=True, slots=True, weakref_slot=True, kw_only=True)
class Models:
    """The model, in this process or behind a server, None where none is set, and the counter, which may be its own.

    `counts` is the counter where a server counts, or may; contexts are assembled by it. `calibration` learns from what
    the model reports for texts that the counter has counted.
    """

    model: LlamaModel | OpenAiModel | None
    counter: TokenCounter
    calibration: Calibration
    counts: ServerCounts | None = None

    def operation_recorded(self, memory: object, operation: Operation) -> None:
        """Learn from the tokens that were reported with an operation."""
        if operation.tokens != operation.entry_tokens:
            self.calibration.report(operation.entry_tokens, operation.tokens)

    def busy(self) -> bool:
        """Return whether the model answers somebody outside of this program, as far as it can be seen."""
        return self.model is not None and self.model.busy()

    def assemble(self, build: Callable[[int], OrchestratorContext]) -> OrchestratorContext:
        """Have a context built, with exact counts where the server counts; see `ServerCounts.assemble`."""
        return self.counts.assemble(build) if self.counts is not None else build(0)

    def doubts(self) -> list[str]:
        """Return what is not as it should be with the model, as far as was seen; in words."""
        return [*(self.model.doubts if self.model else []), *(self.counts.doubts if self.counts else [])]

    def close(self) -> None:
        """Let go of the model's memory."""
        if self.model is not None:
            self.model.close()


def open_server(llm: LlmSettings) -> Server:
    """Open the model's server that the settings name.

    Raises:
        ModelError: the address is none, or what speaks to it is not installed.
    """
    try:
        from orchestra_mem.adapters.openai_http import Server
    except ImportError as error:
        raise ModelError(f"llm.base_url needs `pip install 'orchestra-mem[http]'`: {error}") from error
    return Server(llm.base_url, api_key=llm.api_key)


def open_models(folder: Path, settings: Settings, *, counter: TokenCounter | None = None) -> Models:
    """Open the model and the token counter that the settings name; neither is loaded before its first use.

    Args:
        folder: the project's, from which a relative `llm.model_path` goes.
        settings: those in force.
        counter: one that is used in place of the settings' own.

    Raises:
        TokenizerError: the counter that is asked for by name cannot be had.
        ModelError: a server is named, and what speaks to it is not installed.
    """
    llm, choice, calibration = settings.llm, settings.tokens.counter, Calibration()
    model: LlamaModel | OpenAiModel | None = None
    vocabulary = counts = None
    entries = settings.tokens.cache_entries
    # Adapters of models are imported here, as they are needed by those alone who have one.
    if llm.base_url:
        server = open_server(llm)
        from orchestra_mem.adapters.openai_http import OpenAiModel, ServerCounts

        wanted = settings.orchestrator.context_window.max_tokens
        model = OpenAiModel(server, model=llm.model, context_tokens=llm.context_tokens, wanted_tokens=wanted)
        if choice is CounterChoice.AUTO and counter is None:
            near = open_counter(choice.value, calibration=calibration, cache_entries=entries)
            counter = counts = ServerCounts(server, model=llm.model, near=near)
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
