"""The models that benchmarks run: a GGUF of the user's, or one that `tools/models.py` downloads."""

from __future__ import annotations

from pathlib import Path

from orchestra_mem.adapters.llama import GgufVocabulary, LlamaModel
from tools.models import MODELS, fetch


def model_path(name: str) -> Path:
    """Return the path of a known model's GGUF, downloaded if missing; any other name is taken as a path."""
    return fetch(MODELS[name]) if name in MODELS else Path(name).expanduser()


def find_model(name: str, *, context_tokens: int) -> LlamaModel:
    """Open a model by name or path; it is loaded at its first use and runs on all cores but one."""
    return LlamaModel(GgufVocabulary(model_path(name)), context_tokens=context_tokens)
