"""Odd documents, and the number of their bytes that change when there is nothing to write."""

from __future__ import annotations

import random
import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from orchestra_mem.build import HOME, open_memory
from orchestra_mem.core.documents.conflicts import mark, without_conflicts
from orchestra_mem.core.documents.markdown import join_blocks, split_blocks
from orchestra_mem.core.documents.merge import merge
from orchestra_mem.memory.manager import OrchestratorContextManager
from orchestra_mem.ports import TokenCounter
from orchestra_mem.types import DocumentName

PIECES = (
    "plain words", "\ttab and trailing blanks   ", "line with a hard break  \nand more", "Setext heading\n===",
    "Another one\n---", "```python\n## no heading\n- no item\n```", "~~~\n### [10:00] no entry (K3)\n~~~",
    "    ## indented code", "- item\n  - nested\n\n    with a paragraph\n", "1) one\n2) two", "> quoted\n> - item",
    "<div>\n## in HTML\n</div>", "<!-- a comment\nover lines -->", "A footnote[^1].\n\n[^1]: here.",
    "| a | b |\n|--|--|", "* * *", "- [x] done", "- [ ] not done", "###### deep ######", "#no heading",
    "\\# nor this", "## ", "#\ttabbed", "nul \x00 byte", "latin \udce9 byte", "\u2028 separator", "emoji \U0001f9ea",
    "\u202e right to left", "\x0c form feed", "<!-- conflict 12ab34: half",
    "<!-- /conflict 12ab34: 1 line, 00ff00 -->", "<!-- pin -->", "text <!-- pin -->", "---", "key: value", "...",
    "- None", "(K7)", "ends with a carriage return\r", "", "", "\n\n\n",
)  # fmt: skip
_TIME = re.compile(rb"^(?:written: |updated: |\*\*Last Updated\*\*: )[^\n]*$", re.MULTILINE)
_FACTS = (
    "We decided to use the walnut archive.",
    "Never restart the harbour gateway.",
    "TODO: write the lantern guide.",
)


def odd_texts(rng: random.Random, count: int) -> Iterator[str]:
    """Yield texts of odd pieces in random order, some with CR LF, some without a final line end."""
    yield from PIECES
    for _ in range(count):
        text = "\n".join(rng.choices(PIECES, k=rng.randint(1, 12))) + rng.choice(("\n", "", "\n\n"))
        yield text.replace("\n", "\r\n") if rng.random() < 0.3 else text


def noop_bytes_changed(counter: TokenCounter, config: Mapping[str, object], count: int) -> tuple[int, int]:
    """Return the number of changed bytes, and the number of documents that were checked."""
    rng = random.Random("odd")
    changed = n = 0
    for text in odd_texts(rng, count * 10):
        for whole in (text, f"\ufeff{text}", f"---\nformat: 1\n---\n{text}"):
            n += 1
            changed += _between(whole, join_blocks(split_blocks(whole)))
            bare = without_conflicts(whole)
            changed += _between(whole, mark(merge("# One\n", "# One\n", bare), whole))
    with (
        tempfile.TemporaryDirectory(prefix="edits-odd-") as folder,
        open_memory(folder, config=config, counter=counter) as memory,
    ):
        for said in (*_FACTS, "It rained.", "Tea was had.", "It rained."):
            memory.record_operation("message", {"role": "user", "text": said})
        for _ in range(4):  # until working memory has nothing left to spill
            memory.refresh()
        for text in odd_texts(rng, count):
            n += 1
            changed += _refreshed(memory, Path(folder) / HOME / "memory", text, rng)
    return changed, n


def _refreshed(memory: OrchestratorContextManager, folder: Path, odd: str, rng: random.Random) -> int:
    """Return the bytes that two refreshes change in a document with odd text at its end, and maybe odd line ends."""
    path = folder / f"{rng.choice(list(DocumentName)).value}.md"
    saved = path.read_bytes()
    text = saved + b"\n## Odd\n\n" + odd.encode("utf-8", "surrogateescape")
    if rng.random() < 0.3:
        text = re.sub(rb"\r?\n", b"\r\n", text)
    if rng.random() < 0.2:
        text = b"\xef\xbb\xbf" + text
    changed = 0
    path.write_bytes(text)
    for _ in range(2):
        memory.refresh()
        changed += difference(_timeless(text), _timeless(path.read_bytes()))
    path.write_bytes(saved)
    memory.refresh()
    return changed


def _between(before: str, after: str) -> int:
    return difference(before.encode("utf-8", "surrogateescape"), after.encode("utf-8", "surrogateescape"))


def _timeless(data: bytes) -> bytes:
    return _TIME.sub(b"", data)


def difference(before: bytes, after: bytes) -> int:
    """Return the number of bytes between the common prefix and the common suffix of two texts, in the longer one."""
    if before == after:
        return 0
    shorter = min(len(before), len(after))
    start = next((i for i in range(shorter) if before[i] != after[i]), shorter)
    end = next((i for i in range(shorter - start) if before[-1 - i] != after[-1 - i]), shorter - start)
    return max(len(before), len(after)) - start - end
