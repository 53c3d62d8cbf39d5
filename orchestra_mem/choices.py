"""Enumerations for settings and commands that accept one of a fixed set of values."""

from __future__ import annotations

from enum import StrEnum


class Durability(StrEnum):
    """What a recorded operation survives: a killed process (`normal`), or power loss too (`full`)."""

    NORMAL = "normal"
    FULL = "full"


class CounterChoice(StrEnum):
    """Which token counter to use; `auto` picks the most exact one available."""

    AUTO = "auto"
    GGUF = "gguf"
    TIKTOKEN = "tiktoken"
    ESTIMATE = "estimate"


class EmbedderChoice(StrEnum):
    """Which embedder turns texts into vectors; with `off`, search is keyword-only."""

    WORDLLAMA = "wordllama"
    ONNX = "onnx"
    GGUF = "gguf"
    HTTP = "http"
    OFF = "off"


class RedactionChoice(StrEnum):
    """What replaces a secret: its kind and a short digest (`mask`), or a bare marker (`drop`); `off` keeps it."""

    MASK = "mask"
    DROP = "drop"
    OFF = "off"


class IsolationChoice(StrEnum):
    """What one agent sees of another: everything except catalog items (`catalog`), or nothing (`strict`)."""

    CATALOG = "catalog"
    STRICT = "strict"


class ImportKind(StrEnum):
    """The format of a file or folder to import."""

    TRANSCRIPTS = "transcripts"
    CHATGPT = "chatgpt"
    NOTES = "notes"
    RULES = "rules"
