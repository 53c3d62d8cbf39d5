"""A language model behind a server that speaks OpenAI's protocol: llama-server, Ollama, vLLM and others."""

from orchestra_mem.adapters.openai_http.model import OpenAiModel

__all__ = ["OpenAiModel"]
