"""What turns texts into vectors: WordLlama's table, which ships with its package, ONNX models, servers over HTTP.

Models are loaded at the first use, and their packages imported no sooner.
"""

from orchestra_mem.adapters.embedders.http import HttpEmbedder
from orchestra_mem.adapters.embedders.onnx import OnnxEmbedder
from orchestra_mem.adapters.embedders.wordllama import WordLlamaEmbedder

__all__ = ["HttpEmbedder", "OnnxEmbedder", "WordLlamaEmbedder"]
