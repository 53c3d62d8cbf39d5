"""Check the search index through edits, a change of model, a deleted folder and killed processes: nothing is lost.

`chunks_reembedded`: the most chunks that are embedded again after one changed line in a document of 30,000 tokens.

`answers_while_switching`: share of the dense queries, sent while another model re-embeds the memory, whose first hit is
the expected passage.

`same_answers`: share of queries with the same hits in the same order after `.obra/index` was deleted.

`chunks_unindexed_after_restart`: a child that indexes is killed with SIGKILL at the index's write points, every second
one while it changes the model; then a fresh start updates the index. The count includes missing chunks, surplus chunks
(both compared with a new index of the same memory) and chunks without a vector.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import numpy as np

from benchmarks._harness import Options, Report, Target, run, say
from benchmarks._merges import document
from orchestra_mem.adapters.embedders import WordLlamaEmbedder
from orchestra_mem.adapters.search_index.index import DiskSearchIndex
from orchestra_mem.adapters.tokenizers import open_counter
from orchestra_mem.build import HOME, open_memory
from orchestra_mem.core.search.terms import ANALYSIS_VERSION, index_text
from orchestra_mem.memory.manager import OrchestratorContextManager
from orchestra_mem.search_types import Chunk, Embedder, EmbeddingModel, SearchMode, Vector, Vectors
from orchestra_mem.types import DocumentName

TARGETS: dict[str, Target] = {
    "chunks_reembedded": ("<=", 2),
    "answers_while_switching": (">=", 1.0),
    "same_answers": (">=", 1.0),
    "chunks_unindexed_after_restart": ("<=", 0),
}
_CONFIG = {"orchestrator": {"auto_refresh_enabled": False}, "tokens": {"counter": "estimate"}}
_TOKENS = 30_000
_NOUNS = (
    "garnet lantern meadow copper velvet harbour walnut saffron glacier thistle marble cobalt juniper pebble".split()
)
_VERBS = "paint mend sell count carry wash measure photograph".split()


@dataclass(slots=True)
class Counting:
    """The bundled model, with a log of the texts it embeds. A `share` below 1 of each vector acts as another model."""

    share: float = 1.0
    pause_s: float = 0.0
    embedded: list[str] = field(default_factory=list)
    _whole: WordLlamaEmbedder = field(default_factory=WordLlamaEmbedder)

    @property
    def model(self) -> EmbeddingModel:
        """The bundled model, or one of fewer dimensions."""
        if self.share == 1:
            return self._whole.model
        return EmbeddingModel(name=f"{self.share:.0%} of a table", version="1", dimensions=int(256 * self.share))

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed texts, after a pause."""
        self.embedded += texts
        time.sleep(self.pause_s)
        part = self._whole.embed(texts)[:, : self.model.dimensions]
        lengths = np.linalg.norm(part, axis=1, keepdims=True)
        unit: Vectors = np.divide(part, lengths, out=np.zeros_like(part), where=lengths > 0)
        return unit

    def embed_query(self, query: str) -> Vector:
        """Embed a query, without a pause."""
        pause, self.pause_s = self.pause_s, 0.0
        vector: Vector = self.embed([query])[0]
        self.pause_s = pause
        return vector


def _use(embedder: Embedder) -> None:
    """Make memories that are opened from now on use an embedder."""
    from orchestra_mem.build import search as wiring_search

    wiring_search.open_embedder = lambda project, settings, words: embedder


def _said(number: int) -> str:
    noun, verb = _NOUNS[number % len(_NOUNS)], _VERBS[number // len(_NOUNS) % len(_VERBS)]
    return f"Order {number}: {verb} the {noun} boxes of shelf {number * 7 % 1_000}."


def _record(memory: OrchestratorContextManager, first: int, count: int) -> None:
    for number in range(first, first + count):
        memory.record_operation("note", {"text": _said(number)})


def reembedded(edits: int) -> Iterator[int]:
    """Change one line of a long document repeatedly; yield how many chunks each change embeds again."""
    rng = random.Random("lines")
    embedder = Counting()
    _use(embedder)
    with tempfile.TemporaryDirectory(prefix="lifecycle-") as folder, open_memory(folder, config=_CONFIG) as memory:
        path = memory.episodic_memory.path(DocumentName.DECISION_LOG)
        head = path.read_text(encoding="utf-8").partition("# Decision Log")[0]
        lines = document(rng, open_counter("estimate"), _TOKENS).partition("# Decision Log")[2].split("\n")
        path.write_text(f"{head}# Decision Log{chr(10).join(lines)}", encoding="utf-8")
        memory.update_index()
        for number in range(edits):
            place = rng.choice([at for at, line in enumerate(lines) if line.startswith("- ")])
            if number % 3 == 0:
                lines.insert(place, f"- A line that was put in, number {number}")
            elif number % 3 == 1:
                lines[place] = f"- A line that was changed, number {number}"
            else:
                del lines[place]
            path.write_text(f"{head}# Decision Log{chr(10).join(lines)}", encoding="utf-8")
            embedder.embedded.clear()
            memory.update_index()
            yield len(embedder.embedded)


def switching(operations: int) -> tuple[int, int]:
    """Query while another model embeds; return how many queries had their passage first, and how many there were."""
    with tempfile.TemporaryDirectory(prefix="lifecycle-") as folder:
        _use(WordLlamaEmbedder())
        with open_memory(folder, config=_CONFIG) as memory:
            _record(memory, 0, operations)
            memory.record_operation("note", {"text": "The physician advised more sleep."})
            memory.update_index()
        _use(Counting(share=0.5, pause_s=0.6))
        answered = asked = 0
        with open_memory(folder, config=_CONFIG) as memory:
            while True:
                found = memory.search("doctor", mode=SearchMode.DENSE)
                asked += 1
                answered += bool(found.hits) and "physician" in found.hits[0].chunk.text
                if not found.notes:
                    return answered, asked


def same_answers(operations: int) -> tuple[int, int]:
    """Delete the index; return how many queries have the same hits afterwards, and how many there were."""
    _use(WordLlamaEmbedder())
    queries = [f"who shall {verb} the {noun}" for noun in _NOUNS for verb in _VERBS]
    with tempfile.TemporaryDirectory(prefix="lifecycle-") as folder:
        answers: list[list[list[str]]] = []
        for _ in range(2):
            with open_memory(folder, config=_CONFIG) as memory:
                if not answers:
                    _record(memory, 0, operations)
                    memory.refresh()
                memory.update_index()
                answers.append([[hit.chunk.key for hit in memory.search(query).hits] for query in queries])
            shutil.rmtree(Path(folder) / HOME / "index")
        before, after = answers
        return sum(map(list.__eq__, before, after)), len(queries)


def _index(folder: Path) -> tuple[dict[str, Chunk], int]:
    """Return the chunks of a memory's index by key, and the number of chunks without a vector."""
    index = DiskSearchIndex(folder / HOME / "index", index_text, analysis_version=ANALYSIS_VERSION)
    ids = np.arange(1, 1_000_000)[: 4 * index.count() + 1_000]
    chunks = {chunk.key: chunk for chunk in index.chunks(ids) if chunk is not None}
    models = index.models()
    without = (
        len(index.without_vectors(max(models, key=lambda model: models[model]), 1_000_000)) if models else len(chunks)
    )
    index.close()
    return chunks, without


def _work(project: Path, seed: int, doom: int, points: list[str] | None) -> None:
    """Record, search, use one of two models by `seed`, and die at the `doom`th write point of the index (0: never)."""
    passed = 0

    def point(name: str) -> None:
        nonlocal passed
        if name.startswith("index."):
            passed += 1
            if points is not None:
                points.append(name)
            if passed == doom:
                os.kill(os.getpid(), signal.SIGKILL)

    _use(Counting(share=(1.0, 0.5)[seed % 2]))
    with open_memory(project, config=_CONFIG, write_point=point) as memory:
        _record(memory, 1_000 * seed, 120)
        memory.search("walnut boxes")
        text = memory.episodic_memory.path(DocumentName.WORK_PLAN)
        text.write_text(text.read_text(encoding="utf-8") + f"\n- Look after shelf {seed}\n", encoding="utf-8")
        memory.update_index()


def unindexed(kills: int) -> tuple[int, int]:
    """Kill an indexing process repeatedly; return the number of wrong chunks and the number of kills."""
    with tempfile.TemporaryDirectory(prefix="lifecycle-") as folder:
        points: list[str] = []
        dry, project = Path(folder) / "dry", Path(folder) / "project"
        for each in (dry, project):
            each.mkdir()
        _work(dry, 0, 0, points)
        wrong = killed = 0
        rng = random.Random("kills")
        for number in range(kills):
            killed += _killed(project, number, rng.randint(1, len(points)))
            _use(WordLlamaEmbedder())
            with open_memory(project, config=_CONFIG) as memory:
                memory.update_index()
            if number % 5 == 4 or number + 1 == kills:
                wrong += _compared(project)
    return wrong, killed


def _killed(project: Path, seed: int, doom: int) -> bool:
    sys.stdout.flush()
    child = os.fork()
    if not child:
        _be(project, seed, doom)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def _be(project: Path, seed: int, doom: int) -> NoReturn:
    try:
        _work(project, seed, doom, None)
    finally:
        os._exit(0)


def _compared(project: Path) -> int:
    """Count missing and surplus chunks against a new index, and chunks without a vector."""
    found, without = _index(project)
    shutil.rmtree(project / HOME / "index")
    with open_memory(project, config=_CONFIG) as memory:
        memory.update_index()
    wanted, _ = _index(project)
    return len(found.keys() ^ wanted.keys()) + without


def measure(options: Options, report: Report) -> None:
    """Measure all four figures."""
    counts = list(reembedded(30 if options.quick else 300))
    report.add(
        "chunks_reembedded", max(counts), n=len(counts), note=f"the maximum; {sum(counts) / len(counts):.2f} on average"
    )
    say("another model …")
    answered, asked = switching(4_000 if options.quick else 20_000)
    report.add("answers_while_switching", answered / asked, n=asked, note="by meaning alone")
    same, n = same_answers(500 if options.quick else 3_000)
    report.add("same_answers", same / n, n=n, note="queries, before and after the index was deleted")
    say("kills …")
    wrong, killed = unindexed(25 if options.quick else 250)
    report.add("chunks_unindexed_after_restart", wrong, n=killed, note="n: processes ended with SIGKILL")


if __name__ == "__main__":
    sys.exit(run("lifecycle", measure, TARGETS))
