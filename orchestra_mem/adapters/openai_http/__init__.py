"""Models on a server that speaks OpenAI's protocol: llama-server, Ollama, vLLM and others."""

from orchestra_mem.adapters.openai_http.counter import ServerTokenCounter
from orchestra_mem.adapters.openai_http.model import OpenAiModel
from orchestra_mem.adapters.openai_http.server import Server

__all__ = ["OpenAiModel", "Server", "ServerTokenCounter"]
