"""Write the table of `core/redaction/likelihood.py`: how much likelier two neighbours are by chance than in a name.

The names come from the sources of the running Python's standard library. A tenth of them is held out and used as a
test, together with as many random strings.
"""

from __future__ import annotations

import math
import random
import re
import string
import sys
import sysconfig
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from orchestra_mem.core.redaction.likelihood import ALPHABET, folded, is_random

TABLE = Path(__file__).resolve().parents[1] / "orchestra_mem" / "core" / "redaction" / "neighbours.txt"
_NAME = re.compile(r"[A-Za-z][\w.-]{5,60}")
_NO_NAME = re.compile(r"[0-9a-f]{8,}|\d{4}")  # digests and numbers


def read_names() -> list[str]:
    """Read the names in the library's own modules, each once, in a reproducible random order."""
    library = Path(sysconfig.get_path("stdlib"))
    texts = (
        path.read_text(encoding="utf-8", errors="ignore")
        for path in sorted(library.rglob("*.py"))
        if "-packages" not in str(path)
    )
    names = sorted({name for text in texts for name in _NAME.findall(text) if not _NO_NAME.search(name)})
    random.Random(17).shuffle(names)
    return names


def table_of(names: list[str]) -> dict[str, float]:
    """Return for each pair of characters the log2 ratio of its likelihood by chance to that in names."""
    pairs = Counter(a + b for name in names for a, b in zip(folded(name), folded(name)[1:], strict=False))
    by_chance = dict.fromkeys(ALPHABET, 2 / 64) | {"0": 10 / 64, "-": 2 / 64}
    firsts = {a: sum(pairs[a + b] for b in ALPHABET) for a in ALPHABET}
    return {
        a + b: math.log2(by_chance[b] * (firsts[a] + len(ALPHABET)) / (pairs[a + b] + 1))
        for a in ALPHABET
        for b in ALPHABET
    }


def _level(bits: float) -> str:
    return string.ascii_lowercase[min(25, max(0, round(2 * bits) + string.ascii_lowercase.index("k")))]


def main() -> None:
    """Train the table, test the previous table on held-out names and random strings, and write the new one."""
    names = read_names()
    held_out, learnt = names[: len(names) // 10], names[len(names) // 10 :]
    table = table_of(learnt)
    chance = random.Random(17)
    made = ["".join(chance.choices(string.ascii_letters + string.digits, k=20)) for _ in held_out]
    for what, texts in (("names", held_out), ("20 by chance", made)):
        print(f"{what}: {sum(map(is_random, texts)) / len(texts):.2%} of {len(texts):,} look random")
    rows = ("".join(_level(table[a + b]) for b in ALPHABET) for a in ALPHABET)
    TABLE.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")


if __name__ == "__main__":
    main()
