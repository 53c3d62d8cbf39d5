"""Writes by which words the lines for each action are known, from the written lines of the benchmarks.

Lines that are kept unread are left out, so that they still tell how strangers' lines are read. Run it again after lines
have been added:

    python tools/line_words.py
"""

from __future__ import annotations

import math
import sys
import textwrap
from collections import Counter, defaultdict
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PROJECT))

from benchmarks.intents import Case, load_cases  # noqa: E402
from orchestra_mem.core.language.intents.likeness import traits  # noqa: E402
from orchestra_mem.core.language.intents.types import Action  # noqa: E402

TARGET = PROJECT / "orchestra_mem/core/language/intents/line_words.py"
DATA = PROJECT / "benchmarks/data"
MOST_TRAITS = 1_500
LEAST_LINES = 2
LINE_CHARS = 115
NOTHING = "none"
HEAD = '''"""How many of the lines for each action have a word, or two in a row; written by `tools/line_words.py`."""

from __future__ import annotations

# Lines for each action; their order is that of the numbers below.
LINES = {
{lines}
}
# Traits of lines: behind each, for each action that has it, how many of its lines do.
WORDS = """
'''


def action_of(case: Case) -> str | None:
    """Give what a line is for; None where that is several things."""
    if not case.intents:
        return NOTHING
    action = Action(case.intents[0]["action"])
    return (Action.ADD if action is Action.CREATE else action).value if len(case.intents) == 1 else None


def telling(counts: Counter[str], lines: Counter[str]) -> float:
    """Say how much a trait tells of what a line is for, in nats, times the share of lines that have it."""
    every, having = sum(lines.values()), sum(counts.values())
    return sum(count / every * math.log(count * every / (having * lines[name])) for name, count in counts.items())


def filled(text: str) -> str:
    """Break a text into lines at its spaces."""
    return textwrap.fill(text, width=LINE_CHARS, break_long_words=False, break_on_hyphens=False)


def main() -> None:
    """Write the module."""
    lines: Counter[str] = Counter()
    found: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for path in sorted(DATA.glob("intents*.yaml")):
        for case in load_cases(path):
            action = None if case.unread else action_of(case)
            if action is not None:
                lines[action] += 1
                for trait in traits(case.line):
                    found[trait][action] += 1
    common = [trait for trait, counts in found.items() if sum(counts.values()) >= LEAST_LINES]
    best = sorted(common, key=lambda trait: (-telling(found[trait], lines), trait))[:MOST_TRAITS]
    names = sorted(lines)
    rows = [
        f"{trait}~{' '.join(f'{names.index(name)}:{found[trait][name]}' for name in sorted(found[trait]))}"
        for trait in sorted(best)
    ]
    table = "\n".join(f'    "{name}": {lines[name]},' for name in names)
    TARGET.write_text(f'{HEAD.replace("{lines}", table)}{filled("; ".join(rows))}\n"""\n', encoding="utf-8")
    print(f"{TARGET.relative_to(PROJECT)}: {len(rows):,} traits of {sum(lines.values()):,} lines")


if __name__ == "__main__":
    main()
