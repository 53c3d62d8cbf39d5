"""Whether the language model that is set can be had, and how quick it is here: it is loaded and asked something."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from orchestra_mem.build.wiring import open_models
from orchestra_mem.doctor.findings import Finding, Health
from orchestra_mem.errors import ModelError, TokenizerError
from orchestra_mem.model_types import LanguageModel, Message, Role
from orchestra_mem.settings import Settings

if TYPE_CHECKING:
    from orchestra_mem.adapters.llama import LlamaModel
    from orchestra_mem.adapters.openai_http import OpenAiModel

# Enough to measure by, and half a minute at most for a model that reads three tokens a second.
_PROMPT = "Say in one sentence what this is about. " + "The task was done on the third try; two tests had failed. " * 4
_ANSWER_TOKENS = 16
_TIMEOUT_S = 120.0
_MEANWHILE = "until then summaries are made by extraction, and tokens are not counted with the model's vocabulary"


def check_model(project: Path, settings: Settings) -> Iterator[Finding]:
    """Find out which model there is, what it takes at once, and how many tokens a second it reads and writes."""
    try:
        models = open_models(project, settings)
    except (TokenizerError, ModelError) as error:
        yield _missing(str(error))
        return
    if models.model is None:
        yield Finding(part="model", health=Health.SOUND, words="none is set: summaries are made by extraction")
        return
    try:
        yield from _asked(models.model)
        for doubt in models.doubts():
            yield Finding(part="model's doubts", health=Health.NOTE, words=doubt)
    except ModelError as error:
        yield _missing(str(error))
    finally:
        models.close()


def why_unusable(model: LanguageModel) -> str:
    """Say why a model cannot be had and what happens meanwhile; empty where it can, as far as its window tells.

    It is asked for no answer: of a file the vocabulary is loaded, and a server is asked for its window.
    """
    try:
        _ = model.context_tokens
    except ModelError as error:
        return f"{error}; {_MEANWHILE}"
    return ""


def _missing(words: str) -> Finding:
    return Finding(part="model", health=Health.FAULT, words=words, advice=_MEANWHILE)


def _asked(model: LlamaModel | OpenAiModel) -> Iterator[Finding]:
    start = time.perf_counter()
    prompt = [Message(role=Role.USER, text=_PROMPT)]
    said = model.generate(prompt, max_tokens=_ANSWER_TOKENS, timeout_s=_TIMEOUT_S)
    loading_s = time.perf_counter() - start - said.prompt_s - said.answer_s
    yield Finding(
        part="model", health=Health.SOUND,
        words=f"{model.name} answers in a window of {model.context_tokens:,} tokens ({model.where})",
    )  # fmt: skip
    yield Finding(
        part="model's speed", health=Health.SOUND,
        words=f"{_rate(said.evaluated_tokens, said.prompt_s)} tokens a second for prompts and "
        f"{_rate(said.answer_tokens, said.answer_s)} for answers; ready after {loading_s:.1f} s",
    )  # fmt: skip


def _rate(tokens: int, seconds: float) -> str:
    return f"{tokens / seconds:,.0f}" if seconds > 0 else "0"
