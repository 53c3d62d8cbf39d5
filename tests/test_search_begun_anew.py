"""The search index is deleted or begun anew at any step of somebody's work on it: nothing is missing afterwards."""

from __future__ import annotations

import shutil
from collections import Counter
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from orchestra_mem import open_memory
from orchestra_mem.adapters.embedders import WordLlamaEmbedder
from orchestra_mem.adapters.search_index.index import DiskSearchIndex
from orchestra_mem.build import HOME
from orchestra_mem.core.search.terms import ANALYSIS_VERSION, index_text
from orchestra_mem.search_types import SearchMode

EMBEDDER = WordLlamaEmbedder()
# More than are taken in at once.
OPERATIONS = 1_300


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A memory that was never searched."""
    folder = tmp_path_factory.mktemp("recorded")
    with open_memory(folder) as memory:
        for number in range(OPERATIONS):
            memory.record_operation("note", {"text": f"Lamp number{number} was changed."})
    return folder


@pytest.mark.parametrize(
    ("point", "passes"),
    [
        ("add.commit.before", 1), ("add.commit.after", 8), ("mark.commit.after", 3), ("vectors.write.before", 2),
    ],
)  # fmt: skip
def test_an_index_deleted_in_the_middle_has_everything_at_the_end(
    recorded: Path, tmp_path: Path, point: str, passes: int
) -> None:
    """What was taken in before that is taken in once more, by whoever goes on."""
    passed: Counter[str] = Counter()

    def delete(name: str) -> None:
        passed[name] += 1
        if name == f"index.{point}" and passed[name] == passes:
            shutil.rmtree(tmp_path / HOME / "index")

    shutil.copytree(recorded, tmp_path, dirs_exist_ok=True)
    with open_memory(tmp_path, write_point=delete) as memory:
        for _ in range(2):  # what fails on the way is done by the next one
            memory.search("lamp", limit=1)
        memory.update_index()
        assert passed[f"index.{point}"] >= passes
        for number in (0, 1, 499, 500, 999, 1_000, OPERATIONS - 1):
            for mode in (SearchMode.KEYWORD, SearchMode.HYBRID):
                (hit,) = memory.search(f"number{number}", mode=mode, limit=1).hits
                assert hit.chunk.text == f"Lamp number{number} was changed."
    with closing(DiskSearchIndex(tmp_path / HOME / "index", index_text, analysis_version=ANALYSIS_VERSION)) as index:
        assert index.problems == ()
        ids = np.arange(1, index.count() + 1)
        texts = [chunk.embedded_text if chunk else "" for chunk in index.chunks(ids)]
        assert index.vectors(EMBEDDER.model, ids) == pytest.approx(EMBEDDER.embed(texts), abs=1e-5)
