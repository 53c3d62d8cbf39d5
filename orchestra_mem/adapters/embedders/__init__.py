"""Embedders that run in this process: WordLlama's table, which ships with its package, and ONNX models.

A WordLlama embedder is loaded at its first use, an ONNX model when its embedder is created, each with its packages.
"""

from orchestra_mem.adapters.embedders.onnx import OnnxEmbedder
from orchestra_mem.adapters.embedders.wordllama import WordLlamaEmbedder

__all__ = ["OnnxEmbedder", "WordLlamaEmbedder"]
