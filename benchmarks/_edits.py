"""A person at an editor: edits of a document's lines, and the ways in which editors save them.

Every line that the person writes has a unique token (`person-000123`), and so has every fact of the machine
(`machine-000123`), so that each can be found afterwards. An edit refers to complete lines, so that Python and `sed`
make the same change.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
import time
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from orchestra_mem.core.documents.conflicts import faults
from orchestra_mem.core.documents.markdown import front_matter_fault, split_blocks
from orchestra_mem.types import DocumentName, MustKeep, MustKeepStatus

OWN_SECTION = "Notes by Hand"
# Sections in which a person's list item becomes a fact, and templates of such items.
ITEMS = {
    (DocumentName.PROJECT_STATE, "Rules"): "- Never touch {token} without asking",
    (DocumentName.WORK_PLAN, "Immediate Next Steps"): "- Look after {token}",
    (DocumentName.WORK_PLAN, "Backlog"): "- [ ] Sort out {token} some day",
    (DocumentName.DECISION_LOG, "Decisions"): "- Rely on {token} from now on",
}
SECTIONS = {
    DocumentName.PROJECT_STATE: (
        "Rules", "People and Roles", "Active Work", "Recent Progress", "Blockers", "Statistics",
    ),
    DocumentName.WORK_PLAN: ("Immediate Next Steps", "Backlog", "Future Work"),
    DocumentName.DECISION_LOG: ("Decisions",),
}  # fmt: skip
PERSON = re.compile(r"person-\d{6}")
MACHINE = re.compile(r"machine-\d{6}")
NUMBER = re.compile(r"\(K(\d+)\)")
_BLOCK = re.compile(r"^<!-- conflict \w[\w-]*: .*?^<!-- /conflict [^\n]*(?:\n|\Z)", re.MULTILINE | re.DOTALL)
# Pause in seconds of an editor that writes a document in two pieces.
_BETWEEN_PIECES_S = 0.004
# Time in seconds for which a slow editor leaves a document empty or missing.
_SLOW_S = 0.1
# Share of rounds in which the person undoes the last save.
_UNDONE = 0.05
_STAMP = re.compile(r"(?<=^updated: )\S+", re.MULTILINE)


class Style(StrEnum):
    """How an editor saves."""

    IN_PLACE = "in place"
    RENAME = "temporary file and rename"
    BACKUP = "rename away, write a new file"
    SED = "sed -i"
    PIECES = "truncate, write in two pieces"
    EMPTIED = "truncate, write a while later"
    AWAY = "rename away, write a new file a while later"
    STAMPED = "in place, with its own time in the front matter"


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """A person's edit of a document. Lines are identified by their complete text.

    `after`: Line after which `new` is inserted; empty if none is. `gone`: Lines to remove. `changed`: Pairs of a line
    and its replacement. `end`: Text to append to the document. `whole`: Replacement of the complete text, not supported
    by `sed`.
    """

    after: str = ""
    new: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    changed: tuple[tuple[str, str], ...] = ()
    end: str = ""
    whole: str = ""

    def apply(self, text: str) -> str:
        """Return the document after the edit; lines that are missing are skipped."""
        if self.whole:
            return self.whole
        changed = dict(self.changed)
        lines: list[str] = []
        for line in text.split("\n"):
            if line not in self.gone:
                lines.append(changed.get(line, line))
            if self.after and line == self.after:
                lines += self.new
        return "\n".join(lines) + self.end

    def named(self) -> list[str]:
        """Return the lines that must occur exactly once in the document for the edit to be unambiguous."""
        return [*self.gone, *(old for old, _ in self.changed), *([self.after] if self.after else [])]

    def sed(self, copy: Path) -> list[str]:
        """Return the edit as a program for GNU sed, which also writes a copy of its input."""
        program = [f"w {copy}"]
        program += [f"\\|^{_escaped(old)}$|c\\\n{_text(new)}" for old, new in self.changed]
        if self.after:
            program.append(f"\\|^{_escaped(self.after)}$|a\\\n" + "\\\n".join(map(_text, self.new)))
        return [*program, *(f"\\|^{_escaped(line)}$|d" for line in self.gone)]


def _escaped(line: str) -> str:
    return re.sub(r"([\\|.*\[\]^$])", r"\\\1", line)


def _text(line: str) -> str:
    return line.replace("\\", "\\\\")


def save(path: Path, before: str, edit: Edit, style: Style) -> tuple[str, str]:
    """Save an edit of the text `before`; `sed` reads the file again instead.

    Returns:
        The text that was edited, and the text that was written.
    """
    after = edit.apply(before)
    data = after.encode()
    if style is Style.SED:
        copy = path.with_name(".sed-has-read")
        arguments = [part for line in edit.sed(copy) for part in ("-e", line)]
        subprocess.run(["sed", "-i", *arguments, str(path)], check=True)
        before = copy.read_text(encoding="utf-8")
        copy.unlink()
        return before, edit.apply(before)
    if style is Style.IN_PLACE:
        path.write_bytes(data)
    elif style is Style.STAMPED:
        after = _STAMP.sub(time.strftime("%Y-%m-%dT%H:%M"), after, count=1)
        path.write_bytes(after.encode())
    elif style is Style.EMPTIED:
        path.write_bytes(b"")
        time.sleep(_SLOW_S)
        path.write_bytes(data)
    elif style is Style.PIECES:
        with path.open("wb", buffering=0) as file:
            file.write(data[: len(data) // 2])
            time.sleep(_BETWEEN_PIECES_S)
            file.write(data[len(data) // 2 :])
    elif style is Style.RENAME:
        temporary = path.with_name(f".{path.name}.swp")
        temporary.write_bytes(data)
        os.replace(temporary, path)
    else:
        os.replace(path, path.with_name(f"{path.name}~"))
        if style is Style.AWAY:
            time.sleep(_SLOW_S)
        path.write_bytes(data)
        path.with_name(f"{path.name}~").unlink()
    return before, after


@dataclass(frozen=True, slots=True, kw_only=True)
class Save:
    """One save: end (monotonic seconds), round, document, and the text before and after."""

    at: float
    round: int
    document: DocumentName
    style: Style
    stale: bool
    before: str
    after: str


@dataclass(slots=True)
class Person:
    """Edits three documents in `folder` round by round; the other fields log edits and findings.

    `stamps`: Whether one of the editors writes its own timestamp into the front matter.
    `gone`: Lines that were deleted or changed, by document, with the number of the save.
    """

    folder: Path
    rng: random.Random
    stamps: bool
    saves: list[Save] = field(default_factory=list)
    own: dict[str, int] = field(default_factory=dict)
    gone: dict[tuple[DocumentName, str], int] = field(default_factory=dict)
    numbers: set[int] = field(default_factory=set)
    returned: list[str] = field(default_factory=list)
    unparseable: dict[str, str] = field(default_factory=dict)
    skipped: Counter[str] = field(default_factory=Counter)
    tokens: int = 0
    _open: dict[DocumentName, tuple[int, str]] = field(default_factory=dict)

    def path(self, name: DocumentName) -> Path:
        """Return the path of a document."""
        return self.folder / f"{name.value}.md"

    def begin(self) -> None:
        """Add a section of the person's own to each document."""
        for name in DocumentName:
            text = self.read(name)
            edit = Edit(end=f"\n## {OWN_SECTION}\n\n- A note, {self._token()}\n")
            self._save(0, name, text, edit, Style.RENAME, stale=False)

    def play(self, number: int) -> None:
        """Play one round: save an edit, one in five of a text opened some rounds ago, or undo the last save."""
        if number > 1 and self.rng.random() < _UNDONE:
            last = self.saves[-1]
            self._save(number, last.document, last.after, Edit(whole=last.before), Style.IN_PLACE, stale=True)
            return
        due = [name for name, (when, _) in self._open.items() if when <= number]
        if due:
            name = due[0]
            text = self._open.pop(name)[1]
        else:
            name = self.rng.choice([name for name in DocumentName if name not in self._open])
            text = self.read(name)
            if len(self._open) < len(DocumentName) - 1 and self.rng.random() < 0.25:
                self._open[name] = (number + self.rng.choice([self.rng.randint(1, 8), self.rng.randint(30, 60)]), text)
                name = self.rng.choice([name for name in DocumentName if name not in self._open])
                text = self.read(name)
        style = self.rng.choice([*Style][: None if self.stamps else -1])
        edit = self._edit(name, text)
        lines = Counter(text.split("\n"))
        if any(lines[line] != 1 for line in edit.named()):
            self.skipped["a line does not occur exactly once"] += 1
            return
        self._save(number, name, text, edit, style, stale=bool(due))

    def close(self, number: int) -> None:
        """Save the texts that are still open."""
        for name, (_, text) in list(self._open.items()):
            del self._open[name]
            self._save(number, name, text, self._note(text), Style.IN_PLACE, stale=True)

    def read(self, name: DocumentName) -> str:
        """Read a document as an editor does, and log faults and deleted lines that have returned."""
        text = self.path(name).read_text(encoding="utf-8")
        for problem in problems(name, text):
            self.unparseable.setdefault(f"{name.value}: {problem}", text)
        for _ in range(3):
            back = [line for line in standing(text) if (name, line) in self.gone]
            if not back:
                return text
            # The machine's text may be in the file for an instant before the machine sees the save and restores it.
            time.sleep(0.1)
            text = self.path(name).read_text(encoding="utf-8")
        for line in standing(text):
            if (name, line) in self.gone:
                save_number = self.gone.pop((name, line))
                self.returned.append(f"{name.value}: {line!r}, removed by save {save_number}, is there again")
        return text

    def _save(self, number: int, name: DocumentName, text: str, edit: Edit, style: Style, *, stale: bool) -> None:
        before, after = save(self.path(name), text, edit, style)
        done = time.monotonic()
        self.saves.append(
            Save(at=done, round=number, document=name, style=style, stale=stale, before=before, after=after)
        )
        was, now = Counter(standing(before)), Counter(standing(after))
        for line in now:
            self.gone.pop((name, line), None)
        for line in was - now:
            self.gone[name, line] = len(self.saves) - 1
        had, has = tokens(before), tokens(after)
        for token in had - has:
            self.own.pop(token, None)
        for token in has - had:
            self.own[token] = len(self.saves) - 1
        self.numbers |= numbers(before) - numbers(after)

    def note(self) -> str:
        """Return an unused token."""
        return self._token()

    def _token(self) -> str:
        self.tokens += 1
        return f"person-{self.tokens:06d}"

    def _edit(self, name: DocumentName, text: str) -> Edit:
        """Choose an edit; a note if there is nothing to change or delete."""
        lines = text.split("\n")
        own = [line for line in lines if PERSON.search(line) and not MACHINE.search(line) and not line.startswith(">")]
        facts = [line for line in lines if MACHINE.search(line) and NUMBER.search(line) and not line.startswith(">")]
        choice = self.rng.random()
        if choice < 0.20 and own:
            old = self.rng.choice(own)
            return Edit(changed=((old, PERSON.sub(self._token(), old)),))
        if choice < 0.35 and facts:
            old = self.rng.choice(facts)
            found = MACHINE.search(old)
            assert found is not None
            said = re.sub(r"^ person-\d{6}", "", old[found.end() :])
            return Edit(changed=((old, f"{old[: found.end()]} {self._token()}{said}"),))
        if choice < 0.50 and len(own) > 3:
            return Edit(gone=(self.rng.choice(own),))
        if choice < 0.58 and len(facts) > 1:
            return Edit(gone=(self.rng.choice(facts),))
        if choice < 0.80:
            return self._item(name, text)
        return self._note(text)

    def _item(self, name: DocumentName, text: str) -> Edit:
        if name is DocumentName.DECISION_LOG and self.rng.random() < 0.6:
            stamp = self.rng.choice(("", "[2025-03-01 10:00:00] "))
            entry = (f"### {stamp}Use {self._token()} for it", "", f"Because {self._token()} is slow.")
            return Edit(after="## Decisions", new=("", *entry))
        sections = [title for document, title in ITEMS if document is name]
        title = self.rng.choice(sections)
        item = ITEMS[name, title].format(token=self._token())
        rows = text.partition(f"\n## {title}\n")[2].partition("\n## ")[0].split("\n")
        items = [row for row in rows if row.startswith("- ") and text.split("\n").count(row) == 1]
        behind = self.rng.choice(items) if items and self.rng.random() < 0.7 else f"## {title}"
        return Edit(after=behind, new=(item,) if behind.startswith("-") else ("", item))

    def _note(self, text: str) -> Edit:
        rows = text.partition(f"## {OWN_SECTION}")[2].split("\n")
        rows = [row for row in rows if PERSON.search(row) and not row.startswith(">")]
        if not rows or self.rng.random() < 0.3:
            return Edit(after=f"## {OWN_SECTION}", new=("", f"A remark: {self._token()}, see below."))
        return Edit(after=self.rng.choice(rows), new=(f"- A note, {self._token()}",))


def standing(text: str) -> list[str]:
    """Return the lines with a token that a person may remove, outside of conflict blocks and without fact numbers."""
    lines = _BLOCK.sub("", text).split("\n")
    return [NUMBER.sub("", line).strip() for line in lines if is_told(line)]


def tokens(text: str) -> set[str]:
    """Return the person's tokens in a document, outside of conflict blocks."""
    return set(PERSON.findall(_BLOCK.sub("", text)))


def numbers(text: str) -> set[int]:
    """Return the numbers of the facts that a document shows outside of conflict blocks."""
    return {int(found) for found in NUMBER.findall(_BLOCK.sub("", text))}


def is_told(line: str) -> bool:
    """Check whether a line has a token and is not part of the list of operations."""
    return bool(PERSON.search(line) or MACHINE.search(line)) and not re.search(r"\(op \d+\)", line)


def problems(name: DocumentName, text: str) -> list[str]:
    """List the faults of a document's structure; empty if there are none."""
    found = []
    fault = front_matter_fault(text)
    if fault:
        found.append(f"line {fault[0]}: {fault[1]}")
    titles = Counter(block.title for block in split_blocks(text) if block.level == 2)
    found += [f"the section {title!r} occurs {titles[title]} times" for title in SECTIONS[name] if titles[title] != 1]
    found += [f"line {line}: {problem}" for line, problem in faults(text)]
    if not text.endswith("\n"):
        found.append("it does not end with a line break")
    return found


def lost_facts(facts: Sequence[MustKeep], removed: Collection[int], text: str) -> Iterator[str]:
    """Yield what is wrong with facts of operations that nobody removed.

    Args:
        facts: All facts of a memory.
        removed: Numbers of the facts that persons removed.
        text: The documents.
    """
    shown = {int(found) for found in NUMBER.findall(text)}
    for fact in facts:
        if not fact.operation or fact.id in removed:
            continue
        if fact.status is MustKeepStatus.REMOVED:
            yield f"K{fact.id} ({fact.text}) is removed, but nobody removed it"
        elif fact.status is MustKeepStatus.STANDING and fact.id not in shown:
            yield f"K{fact.id} ({fact.text}) is active in the ledger, but in no document"
