"""Run llama.cpp in this process: the vocabulary of a GGUF (`library.py`) and the model itself (`model.py`)."""

from orchestra_mem.adapters.llama.library import GgufVocabulary, default_threads
from orchestra_mem.adapters.llama.model import LlamaModel
from orchestra_mem.adapters.llama.trial import INSTALL

__all__ = ["INSTALL", "GgufVocabulary", "LlamaModel", "default_threads"]
