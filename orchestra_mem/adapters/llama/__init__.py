"""Run llama.cpp in this process: a GGUF's vocabulary (`vocabulary.py`) and the model itself (`model.py`)."""

from orchestra_mem.adapters.llama.library import default_threads
from orchestra_mem.adapters.llama.model import LlamaModel
from orchestra_mem.adapters.llama.trial import INSTALL
from orchestra_mem.adapters.llama.vocabulary import GgufVocabulary

__all__ = ["INSTALL", "GgufVocabulary", "LlamaModel", "default_threads"]
