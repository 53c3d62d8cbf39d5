"""The models that benchmarks run: a GGUF of the user's, or one that `tools/models.py` fetches."""

from __future__ import annotations

from pathlib import Path

from orchestra_mem.adapters.llama import GgufVocabulary, LlamaModel
from tools.models import MODELS, fetch


def model_path(name: str) -> Path:
    """Give the GGUF of a name that is known, fetched if need be; any other name is a path."""
    return fetch(MODELS[name]) if name in MODELS else Path(name).expanduser()


def find_model(name: str, *, context_tokens: int) -> LlamaModel:
    """Open a model by name or path; loaded at its first use, on all cores but one."""
    return LlamaModel(GgufVocabulary(model_path(name)), context_tokens=context_tokens)
