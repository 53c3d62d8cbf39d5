"""Format and read the must-keeps below a summary: a line each with number and state, or numbers on higher levels."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import groupby

from orchestra_mem.core.speakers import passage_of
from orchestra_mem.core.text import squeeze
from orchestra_mem.types import Author, MustKeep, MustKeepKind, MustKeepStatus

KEPT = "Kept:"
KIND_LABELS = "|".join(kind.value.capitalize() for kind in MustKeepKind)
"""Pattern of the kinds as the lines of must-keeps name them."""
# A higher-level summary lists at most this many ranges of fact ids; for more it gives the overall range and the count.
_MAX_NAMED_RANGES = 12
_KEPT_LINE = re.compile(
    rf"^(?P<head>- (?:{KIND_LABELS}) K(?P<number>\d+))"
    r"(?P<state> \((?:done|superseded(?: by K\d+)?|perhaps superseded by K\d+)\))?: (?P<said>[^\n]*)\n?",
    re.MULTILINE,
)
_DAY = re.compile(r"^((?!- ).*:)\n- ", re.MULTILINE)  # above the bullets of that day
_BORDER = re.compile(r"\n(?=- )|\n\s*\n")


def kept_lines(facts: Sequence[MustKeep], *, numbered: bool = True) -> str:
    """Format must-keeps as the section below a summary, with numbers and states if `numbered`; empty for none."""
    lines = dict.fromkeys(f"- {_label(fact, numbered=numbered)}: {squeeze(fact.text)}\n" for fact in facts)
    return f"\n{KEPT}\n\n" + "".join(lines) if lines else ""


def _label(fact: MustKeep, *, numbered: bool) -> str:
    kind = fact.kind.value.capitalize()
    return f"{kind} K{fact.id}{state_suffix(fact)}" if numbered else kind


def state_suffix(fact: MustKeep, *, doubted: bool = False) -> str:
    """Format the state of a fact for its line; empty if nothing has replaced or completed it.

    `doubted`: Whether any fact may be shown as perhaps superseded. If not, only a person's may, which only people end;
    for others the mark would be wrong far more often than right, see `PERHAPS`.
    """
    if fact.status is MustKeepStatus.SUPERSEDED:
        return f" (superseded by K{fact.superseded_by})" if fact.superseded_by else " (superseded)"
    if fact.status is MustKeepStatus.STANDING and fact.superseded_by and (doubted or fact.author is Author.PERSON):
        return f" (perhaps superseded by K{fact.superseded_by})"
    return " (done)" if fact.status is MustKeepStatus.DONE else ""


def name_facts(numbers: Sequence[int]) -> str:
    """List must-keeps by number, as in `Kept: K3–K7, K9.`; of very many only the count, the first and the last."""
    if not numbers:
        return ""
    runs = [[n for _, n in run] for _, run in groupby(enumerate(sorted(numbers)), key=lambda pair: pair[1] - pair[0])]
    if len(runs) > _MAX_NAMED_RANGES:
        return f"{KEPT} {len(numbers):,} facts between K{min(numbers)} and K{max(numbers)}.\n"
    names = ", ".join(f"K{run[0]}" if len(run) == 1 else f"K{run[0]}–K{run[-1]}" for run in runs)
    return f"{KEPT} {names}.\n"


def body_of(text: str) -> str:
    """Return a summary's text without the must-keeps below it."""
    return f"\n{text}".partition(f"\n{KEPT}")[0][1:]


def kept_part(text: str) -> str:
    """Return the must-keeps below a summary, including their `Kept:` line; empty if there are none."""
    return "".join(f"\n{text}".partition(f"\n{KEPT}")[1:])[1:]


def without_heading(text: str) -> str:
    """Remove the `Kept:` line above the must-keeps of a summary."""
    return text.replace(f"\n{KEPT}\n", "\n")


def without_empty_heading(text: str) -> str:
    """Remove the `Kept:` line at the end of a text, below which no must-keeps are left."""
    return text.rstrip().removesuffix(KEPT)


def kept_numbers(text: str) -> list[int]:
    """Return the numbers of the must-keeps that have a line in a text."""
    return [int(match["number"]) for match in _KEPT_LINE.finditer(text)]


def with_states(text: str, facts: Mapping[int, MustKeep], removed: Sequence[MustKeep]) -> str:
    """Update the states in the must-keep lines of a text; wordings that people changed in the text stay.

    Lines of facts that a person removed are dropped, and their passages in other lines; facts that a person wrote or
    reworded get their current wording.
    """

    def line(match: re.Match[str]) -> str:
        fact = facts.get(int(match["number"]))
        if fact is None:
            return match.group()
        if fact.status is MustKeepStatus.REMOVED:
            return ""
        said = squeeze(fact.text) if fact.author is Author.PERSON else match["said"]
        return f"{match['head']}{state_suffix(fact)}: {said}{match.group()[match.end('said') - match.start() :]}"

    def without_removed(row: str) -> str:
        for fact in removed:
            row = row.replace(squeeze(passage_of(fact)), "")
        return row

    rows = _KEPT_LINE.sub(line, text).splitlines(keepends=True)
    return "".join(row if _KEPT_LINE.match(row) else without_removed(row) for row in rows)


def statements(text: str) -> list[tuple[str, str]]:
    """Split a summary into its bullets and paragraphs, each with a label: a fact's kind, number and state, else empty.

    A day above bullets becomes the beginning of the first of them. Facts that are only named by number are left out,
    and so is a label without a value.
    """
    rows = _BORDER.split(_DAY.sub(r"- \1\n", body_of(text)))
    found: list[tuple[str, str]] = []
    for row in filter(str.strip, [*rows, *(match.group() for match in _KEPT_LINE.finditer(kept_part(text)))]):
        fact = _KEPT_LINE.match(row)
        label = f"{fact['head'].removeprefix('- ')}{fact['state'] or ''}" if fact else ""
        if not fact and row.rstrip().endswith(":"):
            continue
        found.append((label, row[fact.start("said") :] if fact else row))
    return found


def without_states(text: str) -> str:
    """Remove the states from must-keep lines, so that an update of them does not count as a person's edit."""
    return _KEPT_LINE.sub(
        lambda match: f"{match['head']}: {match.group()[match.start('said') - match.start() :]}", text
    )
