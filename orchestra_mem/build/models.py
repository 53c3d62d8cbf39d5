"""The language model that the settings name, and what counts tokens: both of one file, where there is one."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from orchestra_mem.adapters.tokenizers import CachedCounter, open_counter
from orchestra_mem.core.context.calibration import Calibration
from orchestra_mem.core.context.rendered import OrchestratorContext
from orchestra_mem.errors import ModelError
from orchestra_mem.model_types import LanguageModel
from orchestra_mem.ports import TokenCounter
from orchestra_mem.settings import CounterChoice, Settings
from orchestra_mem.types import Operation

if TYPE_CHECKING:
    from orchestra_mem.adapters.llama import GgufCounter, LlamaModel
    from orchestra_mem.adapters.openai_http import OpenAiModel, ServerCounts


# The memory's signals hold its method weakly.
@dataclass(frozen=True, slots=True, weakref_slot=True, kw_only=True)
class Models:
    """The model, or the server that has one, None where none is set, and the counter, which may be the model's own.

    `counts` is the counter where the server counts, or may; contexts are assembled by it. `calibration` is to be told
    what the model reports for texts that the counter has counted.
    """

    model: LlamaModel | None
    counter: TokenCounter
    calibration: Calibration
    server: OpenAiModel | None = None
    counts: ServerCounts | None = None

    @property
    def prompted(self) -> LanguageModel | None:
        """What is prompted: the model here or the server's, None where there is neither."""
        return self.model or self.server

    def operation_recorded(self, memory: object, operation: Operation) -> None:
        """Learn from the tokens that were reported with an operation."""
        if operation.tokens != operation.entry_tokens:
            self.calibration.report(operation.entry_tokens, operation.tokens)

    def busy(self) -> bool:
        """Whether the model answers somebody outside of this program, as far as it can be seen."""
        return self.server is not None and not self.server.idle()

    def assemble(self, build: Callable[[int], OrchestratorContext]) -> OrchestratorContext:
        """Have a context built, with exact counts where the server counts; see `ServerCounts.assemble`."""
        return self.counts.assemble(build) if self.counts is not None else build(0)

    def doubts(self) -> list[str]:
        """What the server does not tell, or tells wrongly, as far as was seen; in words."""
        return [*(self.server.doubts if self.server else []), *(self.counts.doubts if self.counts else [])]

    def close(self) -> None:
        """Let go of the model's memory, and of connections."""
        if self.counts is not None:
            self.counts.close()
        if self.prompted is not None:
            self.prompted.close()


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
    choice, calibration = settings.tokens.counter, Calibration()
    if not settings.llm.model_path:
        server, counts = _server(settings), None
        if server is not None and counter is None and choice is CounterChoice.AUTO:
            counter = counts = _server_counts(settings, calibration)
        counter = counter or open_counter(choice.value, calibration=calibration)
        return Models(model=None, counter=counter, calibration=calibration, server=server, counts=counts)
    # Here, as it is needed by those alone who have a model.
    from orchestra_mem.adapters.llama import GgufCounter, GgufVocabulary, LlamaModel

    llm = settings.llm
    vocabulary = GgufVocabulary(folder / Path(llm.model_path).expanduser())
    model = LlamaModel(
        vocabulary, context_tokens=llm.context_tokens, threads=llm.threads, idle_unload_s=llm.idle_unload_s
    )
    counter = counter or _counter(choice, GgufCounter(vocabulary), calibration)
    return Models(model=model, counter=counter, calibration=calibration)


def _server(settings: Settings) -> OpenAiModel | None:
    llm = settings.llm
    if not llm.base_url:
        return None
    # Here, as it is needed by those alone who have a server.
    try:
        from orchestra_mem.adapters.openai_http import OpenAiModel
    except ImportError as error:
        raise ModelError(f"llm.base_url needs `pip install 'orchestra-mem[http]'`: {error}") from error
    return OpenAiModel(
        llm.base_url,
        model=llm.model,
        api_key=llm.api_key,
        context_tokens=llm.context_tokens,
        wanted_tokens=settings.orchestrator.context_window.max_tokens,
    )


def _server_counts(settings: Settings, calibration: Calibration) -> ServerCounts:
    from orchestra_mem.adapters.openai_http import Server, ServerCounts

    return ServerCounts(
        # Counts are asked for one by one: who asks decides when to try again.
        Server(settings.llm.base_url, api_key=settings.llm.api_key, connect_s=1.0, tries=1, failures=sys.maxsize),
        model=settings.llm.model,
        near=CachedCounter(open_counter("auto", calibration=calibration), max_entries=settings.tokens.cache_entries),
    )


def _counter(choice: CounterChoice, own: GgufCounter, calibration: Calibration) -> TokenCounter:
    if choice is CounterChoice.GGUF:
        own.load()  # who asks for it by name is told at once that it cannot be had
        return own
    return open_counter(choice.value, exact=[own], calibration=calibration)
