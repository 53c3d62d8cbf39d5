"""Measure search from 1,000 to 1,000,000 chunks: speed, recall against an exact search, and loading time.

One index grows from size to size. A hybrid search includes everything: parsing and embedding the question, keyword and
dense search with their filters, loading candidates, ranking, and ten hits with their reasons. At each size the words of
the questions and of the texts are new to the process.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks._harness import Options, Report, Target, fresh, percentile, run, say, stopwatch
from benchmarks._search_texts import START, Texts
from orchestra_mem.adapters.embedders import WordLlamaEmbedder
from orchestra_mem.adapters.search_index.index import APPROXIMATE_FROM, DiskSearchIndex
from orchestra_mem.core.search.hybrid import Searcher
from orchestra_mem.core.search.terms import ANALYSIS_VERSION, index_text, read_query
from orchestra_mem.search_types import SearchFilter, Vector, Vectors

TARGETS: dict[str, Target] = {
    "hybrid_p95_ms_100k": ("<=", 15.0),
    "hybrid_p95_ms_1m": ("<=", 250.0),
    "recall_vs_exact_1m": (">=", 0.97),
}
SIZES = {"1k": 1_000, "10k": 10_000, "100k": 100_000, "1m": 1_000_000}
_FULL_RUN_ONLY = ("1m",)
_BATCH = 10_000
_QUERIES = {True: 200, False: 300}  # by whether the run is quick
_EXACT_QUERIES = 60
_DEPTH = 100
_WHAT = {
    "hybrid_cpu": "a whole search", "index_cpu": "the four parts that follow", "keyword": f"first {_DEPTH}",
    "dense": f"first {_DEPTH}", "outlines": f"first {_DEPTH}",
}  # fmt: skip

_OPEN = """
import sys, time, psutil
import numpy, orchestra_mem.adapters.search_index.index as module
from orchestra_mem.adapters.embedders import WordLlamaEmbedder
from orchestra_mem.core.search.terms import ANALYSIS_VERSION, index_text, read_query
from orchestra_mem.search_types import EVERYTHING
from pathlib import Path
embedder = WordLlamaEmbedder()
vector, terms = embedder.embed_query(sys.argv[2]), read_query(sys.argv[2])
process = psutil.Process()
before = process.memory_info()
start = time.perf_counter()
index = module.DiskSearchIndex(Path(sys.argv[1]), index_text, analysis_version=ANALYSIS_VERSION)
opened = time.perf_counter()
index.keyword(terms, EVERYTHING, 100)
index.dense(embedder.model, vector, EVERYTHING, 100)
found = time.perf_counter()
after = process.memory_info()
private = (after.rss - after.shared) - (before.rss - before.shared)
print(1000 * (opened - start), 1000 * (found - opened), (after.rss - before.rss) / 2**20, private / 2**20)
"""


@dataclass(slots=True)
class Growing:
    """An index that grows, and the seconds that each step of its growth took."""

    folder: Path
    texts: Texts
    embedder: WordLlamaEmbedder
    index: DiskSearchIndex
    size: int = 0
    seconds: dict[str, float] = field(default_factory=dict)

    def grow(self, size: int) -> None:
        """Add chunks with their vectors, then run the maintenance that is due."""
        self.seconds = {"add": 0.0, "embed": 0.0, "vectors": 0.0, "upkeep": 0.0}
        while self.size < size:
            chunks = self.texts.chunks(self.size + 1, min(_BATCH, size - self.size))
            with self._timed("add"):
                ids = self.index.add(chunks)
            with self._timed("embed"):
                vectors = self.embedder.embed([chunk.embedded_text for chunk in chunks])
            with self._timed("vectors"):
                self.index.add_vectors(self.embedder.model, ids, vectors)
            self.size += len(chunks)
            if not self.size % 100_000:
                say(f"{self.size:,} chunks; {', '.join(f'{name} {s:.0f} s' for name, s in self.seconds.items())}")
        with self._timed("upkeep"):
            self.index.maintain()

    @contextmanager
    def _timed(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.seconds[name] += time.perf_counter() - start

    @property
    def rows(self) -> Vectors:
        """The index's stored vectors: float32, shape (n, dim), one row per id."""
        (path,) = self.folder.glob("vectors-*")
        return np.memmap(path, np.float32, "r").reshape(-1, self.embedder.model.dimensions)


def measure(options: Options, report: Report) -> None:
    """Grow the index from size to size, and search it at each."""
    with tempfile.TemporaryDirectory(prefix="search-speed-") as place:
        folder = Path(place)
        embedder = WordLlamaEmbedder()
        embedder.embed(["loaded"])
        index = DiskSearchIndex(folder, index_text, analysis_version=ANALYSIS_VERSION, words=embedder)
        growing = Growing(folder=folder, texts=Texts(), embedder=embedder, index=index)
        for name, size in SIZES.items():
            if options.quick and name in _FULL_RUN_ONLY:
                for key in ("hybrid_p95_ms_1m", "recall_vs_exact_1m"):
                    report.unmeasured(key, "full run only")
                continue
            before = growing.size
            growing.grow(size)
            _tell_growth(growing, report, name, size - before)
            questions = list(growing.texts.questions(_QUERIES[options.quick], size))
            measure_searches(growing, report, name, questions)
            measure_dense(growing, report, name, [question for question, _ in questions])
            measure_loading(growing, report, name, questions[0][0])
        index.close()
    report.note(
        f"Exact search up to {APPROXIMATE_FROM:,} vectors, then by codes of 8 bits per number. Recall counts the "
        "first 10 of an exact search by NumPy. FAISS uses one thread. `cpu` is processor time."
    )


def _tell_growth(growing: Growing, report: Report, name: str, added: int) -> None:
    seconds = growing.seconds
    total = seconds["add"] + seconds["embed"] + seconds["vectors"]
    key = "index_chunks_per_s" if name == "100k" else f"index_chunks_per_s_{name}"
    report.add(key, added / total, n=added, note="analysed, stored and embedded, in both halves")
    report.add(
        f"store_chunks_per_s_{name}", added / (seconds["add"] + seconds["vectors"]), n=added, note="not embedded"
    )
    report.add(f"upkeep_s_{name}", seconds["upkeep"], note="includes building the codes, if any")


def measure_searches(
    growing: Growing, report: Report, name: str, questions: Sequence[tuple[str, SearchFilter]]
) -> None:
    """Time complete searches, then each of their parts."""
    index, embedder = growing.index, growing.embedder
    searcher = Searcher(index, embedder, embedder)
    hybrid: list[float] = []
    hybrid_cpu: list[float] = []
    index_cpu: list[float] = []
    parts: dict[str, list[float]] = {"keyword": [], "dense": [], "embed": [], "outlines": []}
    for question, where in questions[:5]:
        searcher.search(question, START, where=where)
    for question, where in questions:
        start = time.process_time()
        with stopwatch(hybrid):
            searcher.search(question, START, where=where)
        hybrid_cpu.append(1000 * (time.process_time() - start))
    for question, where in questions:
        start = time.process_time()
        with stopwatch(parts["embed"]):
            vector = embedder.embed_query(question)
        terms = read_query(question)
        with stopwatch(parts["keyword"]):
            found = index.keyword(terms, where, _DEPTH)
        with stopwatch(parts["dense"]):
            index.dense(embedder.model, vector, where, _DEPTH)
        with stopwatch(parts["outlines"]):
            index.outlines(np.sort(found.ids), where)
        index_cpu.append(1000 * (time.process_time() - start))
    for percent in (50, 95):
        note = "a whole search, every fourth filtered"
        report.add(f"hybrid_p{percent}_ms_{name}", percentile(hybrid, percent), n=len(hybrid), note=note)
    for part, samples in {"hybrid_cpu": hybrid_cpu, "index_cpu": index_cpu, **parts}.items():
        report.add(f"{part}_p95_ms_{name}", percentile(samples, 95), n=len(samples), note=_WHAT.get(part, ""))


def measure_dense(growing: Growing, report: Report, name: str, questions: Sequence[str]) -> None:
    """Compare the index's dense search with an exact search in NumPy."""
    rows, model = growing.rows, growing.embedder.model
    vectors = growing.embedder.embed(questions)
    times: list[float] = []
    hits = total = 0
    for vector in vectors[: _EXACT_QUERIES if growing.size > 100_000 else len(vectors)]:
        exact = _nearest(rows, vector)
        with stopwatch(times):
            growing.index.dense(model, vector, SearchFilter(), _DEPTH)
        hits += len(np.intersect1d(growing.index.dense(model, vector, SearchFilter(), 10).ids, exact[:10]))
        total += len(exact[:10])
    report.add(f"dense_index_p50_ms_{name}", float(np.median(times)), n=len(times), note="no filter")
    report.add(f"recall_vs_exact_{name}", hits / total, n=total, note="of the first 10")


def _nearest(rows: Vectors, vector: Vector) -> NDArray[np.int64]:
    """Return the ids of the nearest vectors by exact search; row 0 is unused."""
    scores = rows[1:] @ vector
    order: NDArray[np.int64] = 1 + np.argsort(-scores, kind="stable")[:_DEPTH]
    return order


def measure_loading(growing: Growing, report: Report, name: str, question: str) -> None:
    """Open the index in fresh processes and search it once."""
    runs = [[float(word) for word in fresh(_OPEN, str(growing.folder), question).split()] for _ in range(3)]
    opened, found, resident, private = np.median(runs, axis=0).tolist()
    report.add(
        f"load_ms_{name}", opened, n=len(runs), note="opening, without imports and embedder; files cached by the system"
    )
    report.add(f"first_search_ms_{name}", found, n=len(runs), note="the first search after opening, with what it loads")
    report.add(f"resident_mb_{name}", resident, n=len(runs), note="memory added by both steps, including mapped files")
    report.add(f"private_mb_{name}", private, n=len(runs), note="the private part of it")


if __name__ == "__main__":
    sys.exit(run("search_speed", measure, TARGETS))
