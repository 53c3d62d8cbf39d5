"""What turns texts into vectors in this process: WordLlama's table, which ships with its package, and ONNX models.

Models are loaded at the first use, and their packages imported no sooner.
"""

from orchestra_mem.adapters.embedders.onnx import OnnxEmbedder
from orchestra_mem.adapters.embedders.wordllama import WordLlamaEmbedder

__all__ = ["OnnxEmbedder", "WordLlamaEmbedder"]
