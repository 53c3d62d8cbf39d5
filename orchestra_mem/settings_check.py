"""Validation across several settings that are each valid alone. Pure."""

from __future__ import annotations

from math import fsum

from orchestra_mem.choices import CounterChoice, EmbedderChoice
from orchestra_mem.settings import Settings

# Removed keys that an old configuration may still contain: the version that removed each, and its replacement.
RETIRED = {
    "documents.watch": ("0.1.0", "`orchestra-mem watch` always checks the files directly, also on network disks"),
    "retrieval.prefetch_tasks": ("0.1.0", "memories for a task are searched on request"),
}


def contradictions(settings: Settings) -> list[tuple[list[str], str]]:
    """Find settings that are valid alone but contradict each other: pairs of the keys involved and the problem."""
    orchestrator, compaction, llm, search = settings.orchestrator, settings.compaction, settings.llm, settings.search
    window = orchestrator.context_window
    warning, refresh, critical = window.warning_threshold, window.refresh_threshold, window.critical_threshold
    fill, shares, threshold = settings.context.fill_at_start, settings.context.shares, "session_compression_threshold"
    total, parts = fsum(dict(shares).values()), ", ".join(f"{name} {share}" for name, share in shares)
    most = orchestrator.session_compression_threshold
    thresholds = [f"orchestrator.context_window.{name}_threshold" for name in ("warning", "refresh", "critical")]
    rules = [
        (warning < refresh < critical, thresholds,
         f"thresholds must ascend: warning_threshold {warning} < refresh_threshold {refresh} "
         f"< critical_threshold {critical} does not hold"),
        (abs(total - 1) <= 1e-6, [f"context.shares.{name}" for name, _ in shares],
         f"the shares must sum to 1, not {round(total, 6)} ({parts})"),
        (fill < refresh, ["context.fill_at_start", thresholds[1]],
         f"context.fill_at_start {fill} must be below refresh_threshold {refresh}: a refresh would trigger the next"),
        # A small window lowers both values at run time, but as configured they must fit the configured threshold.
        *((tokens < most, [key, f"orchestrator.{threshold}"],
           f"{key} {tokens} must be below {threshold} {most}: nothing could be compacted")
          for key, tokens in (("compaction.verbatim_floor_tokens", compaction.verbatim_floor_tokens),
                              ("compaction.segment_tokens", compaction.segment_tokens))),
        (_normal(orchestrator.session_dir) != _normal(orchestrator.memory_dir),
         ["orchestrator.session_dir", "orchestrator.memory_dir"],
         f"session_dir and memory_dir must be two different folders, not both {orchestrator.session_dir!r}"),
        (settings.tokens.counter is not CounterChoice.GGUF or llm.model_path, ["tokens.counter", "llm.model_path"],
         "tokens.counter gguf needs the vocabulary of llm.model_path, which is empty"),
        (not (llm.base_url and llm.model_path), ["llm.model_path", "llm.base_url"],
         "llm.model_path and llm.base_url both name a model: set only one of them"),
        (search.embedder not in (EmbedderChoice.ONNX, EmbedderChoice.GGUF) or search.model_path,
         ["search.embedder", "search.model_path"],
         f"search.embedder {search.embedder} needs search.model_path, which is empty"),
        (search.embedder is not EmbedderChoice.HTTP or search.model, ["search.embedder", "search.model"],
         "search.embedder http needs search.model, the name of the model on the server, which is empty"),
    ]  # fmt: skip
    return [(keys, problem) for holds, keys, problem in rules if not holds]


def _normal(folder: str) -> tuple[str, ...]:
    return ("/" if folder.startswith("/") else "", *(part for part in folder.split("/") if part not in ("", ".")))
