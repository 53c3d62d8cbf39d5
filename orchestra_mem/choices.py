"""The closed choices that settings and commands have."""

from __future__ import annotations

from enum import StrEnum


class Durability(StrEnum):
    """What a recorded operation survives: the end of the process (`normal`), or power loss as well (`full`)."""

    NORMAL = "normal"
    FULL = "full"


class CounterChoice(StrEnum):
    """Which token counter is used; `auto` takes the best that can be had."""

    AUTO = "auto"
    GGUF = "gguf"
    TIKTOKEN = "tiktoken"
    ESTIMATE = "estimate"


class EmbedderChoice(StrEnum):
    """What turns texts into vectors; off: search goes by words alone."""

    WORDLLAMA = "wordllama"
    ONNX = "onnx"
    GGUF = "gguf"
    HTTP = "http"
    OFF = "off"


class RedactionChoice(StrEnum):
    """What is left of a secret: its kind and a short digest (`mask`), that there was one (`drop`), or all (`off`)."""

    MASK = "mask"
    DROP = "drop"
    OFF = "off"


class IsolationChoice(StrEnum):
    """What agents see of each other's: all but catalog items, or nothing (`strict`)."""

    CATALOG = "catalog"
    STRICT = "strict"


class ImportKind(StrEnum):
    """What a file or folder is imported as."""

    TRANSCRIPTS = "transcripts"
    CHATGPT = "chatgpt"
    NOTES = "notes"
    RULES = "rules"
