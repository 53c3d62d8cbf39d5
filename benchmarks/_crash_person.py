"""The person of `crash.py`: edits the episodic documents at the worst moments, and checks what must survive."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from benchmarks._edits import ITEMS, NUMBER, OWN_SECTION, PERSON, Edit, Style, numbers, save, tokens
from benchmarks._survival import NOTE, Violation
from orchestra_mem.build import HOME
from orchestra_mem.core.documents.conflicts import accept, faults, reject, without_conflicts
from orchestra_mem.core.documents.session_document import SessionDocument
from orchestra_mem.core.documents.signature import written_at
from orchestra_mem.memory.manager import OrchestratorContextManager
from orchestra_mem.types import DocumentName, MustKeepStatus, VersionReason

_OPERATION = re.compile(r"^- .*\(op \d+\)")
# A line of the machine about an item of the plan; it disappears together with the item.
_MENTION = re.compile(r'^- \w+ #\d+ ".*$', re.MULTILINE)
# Documents whose facts the person rewords: all decisions stay visible, of the other facts only the newest.
_REWORDED = frozenset({DocumentName.DECISION_LOG})
# `sed` runs in a separate process, which takes longer than a life.
_STYLES = tuple(style for style in Style if style not in (Style.SED, Style.STAMPED))


@dataclass(slots=True)
class Said:
    """What a person has changed in the episodic documents, as far as it still applies.

    Each of the person's lines has a unique token. `own` maps tokens that were saved and not removed since to their
    documents, `gone` those that were removed. `removed` are numbers of the machine's facts that the person removed,
    `unseen` those of facts that an old text, saved over them, did not have yet; the next write restores them.
    """

    own: dict[str, DocumentName] = field(default_factory=dict)
    gone: dict[str, DocumentName] = field(default_factory=dict)
    removed: set[int] = field(default_factory=set)
    unseen: set[int] = field(default_factory=set)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Command:
    """A document write requested on the person's behalf, with unknown outcome so far.

    `after`: Text that it writes; a restored text also keeps what operations have recorded since, and has a new time.
    """

    name: DocumentName
    before: str
    after: str
    restores: bool

    def made(self, text: str) -> bool:
        """Check whether a text is the outcome."""
        return text == self.after or (self.restores and text != self.before and tokens(self.after) <= tokens(text))


@dataclass(slots=True)
class Person:
    """Edits the documents in `home`. Everything in `said`, and the `notes` in session documents, must survive."""

    REQUESTS: ClassVar = frozenset({"edit", "item", "collide", "save", "accept", "reject", "restore"})

    home: Path
    rng: random.Random
    said: Said = field(default_factory=Said)
    notes: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    _turn: int = 0
    _tokens: int = 0
    _open: dict[DocumentName, tuple[int, str]] = field(default_factory=dict)
    _command: _Command | None = None

    def do(self, request: str) -> None:
        """Handle a request of the process: edit, item, collide, save POINT, or the announcement of a command."""
        what, *rest = request.split(" ", 2)
        if what == "save":
            self._save_meanwhile()
        elif what in ("accept", "reject", "restore"):
            self._expect(what, DocumentName(rest[0]), rest[1])
        elif what == "item":
            name = self.rng.choice(list(DocumentName))
            text = self._read(name)
            self._save(name, text, self._item(name, text))
        elif what == "collide":
            text = self._read(DocumentName.PROJECT_STATE)
            self._save(DocumentName.PROJECT_STATE, text, self._collision(text))
        else:
            self.edit()

    def edit(self) -> None:
        """Save an edit of some document, occasionally of a text that was opened some edits ago."""
        self._turn += 1
        due = [name for name, (turn, _) in self._open.items() if turn <= self._turn]
        if due:
            name, text = due[0], self._open.pop(due[0])[1]
            if self._is_kept(name, text):
                self.counts["based on an old text"] += 1
                self._save_any(name, text)
                return
        name = self.rng.choice([name for name in DocumentName if name not in self._open])
        if len(self._open) < 2 and self.rng.random() < 0.2:
            self._open[name] = (self._turn + self.rng.randint(1, 5), self._read(name))
        else:
            self._save_any(name, self._read(name))

    def _is_kept(self, name: DocumentName, text: str) -> bool:
        """Check whether an editor's text is among the kept versions; without its base, an edit cannot be recognised."""
        kept = (self.home / "memory" / "versions").glob(f"{name.value}.*.md")
        known = [self._read(name), *(path.read_bytes().decode("utf-8", "surrogateescape") for path in kept)]
        return written_at(text) in {written_at(each) for each in known}

    def note_in_session(self) -> None:
        """Write a line into an entry of the live session document."""
        for path in (self.home / "sessions").glob("*.md"):
            self._note_entry(path)

    def finished(self, *, done: bool) -> None:
        """Note whether the announced command was done."""
        if self._command is not None and done:
            name = self._command.name
            after = self._read(name) if self._command.restores else self._command.after
            self._apply(name, self._command.before, after, told=False)
        self._command = None

    def died(self) -> str | None:
        """Check whether a killed process completed the announced command; return a fault if it was done in part."""
        command, self._command = self._command, None
        if command is None:
            return None
        text = self._read(command.name)
        if command.made(text):
            self._apply(command.name, command.before, text, told=False)
        elif text != command.before:
            return f"{command.name.value} has neither the text before a command nor the text after it"
        return None

    def _expect(self, what: str, name: DocumentName, which: str) -> None:
        before = self._read(name)
        if what == "restore":
            after = Path(which).read_bytes().decode("utf-8", "surrogateescape")
        else:
            after = (accept if what == "accept" else reject)(before, which).text
        self.counts[what] += 1
        # A person who has a document restored discards the old text in the editor.
        self._open.pop(name, None)
        self._command = _Command(name=name, before=before, after=after, restores=what == "restore")

    def _save_meanwhile(self) -> None:
        """Save the document that is about to be replaced, or any document."""
        for folder in ("memory", "sessions"):
            for aside in (self.home / folder).glob(".*.md.*.aside*"):
                path = aside.with_name(aside.name[1:].partition(".md.")[0] + ".md")
                if folder == "sessions":
                    self._note_entry(path)
                else:
                    self._save_any(DocumentName(path.stem), self._read(DocumentName(path.stem)))
                self.counts["while it was written"] += 1
                return
        self.edit()

    def _note_entry(self, path: Path) -> None:
        document = SessionDocument.parse(path.read_bytes().decode("utf-8", "surrogateescape"))
        entries = list(document.entries().values())
        if entries:
            self._tokens += 1
            note = f"{NOTE} {self._tokens}"
            old = self.rng.choice(entries).text
            text = document.text().replace(old, f"{old.rstrip()}\n{note}.\n\n", 1)
            path.write_bytes(text.encode("utf-8", "surrogateescape"))
            self.notes.append(note)

    def _read(self, name: DocumentName) -> str:
        return (self.home / "memory" / f"{name.value}.md").read_bytes().decode("utf-8", "surrogateescape")

    def _save_any(self, name: DocumentName, text: str) -> None:
        self._save(name, text, self._chosen(name, text))

    def _save(self, name: DocumentName, before: str, edit: Edit) -> None:
        lines = Counter(before.split("\n"))
        if any(lines[line] != 1 for line in edit.named()):
            edit = self._note(before)
        # A person who saves a document discards the old text in the editor.
        self._open.pop(name, None)
        standing = self._read(name)
        if self._command is not None and self._command.name is name:
            # The save came after the announced write, or before it, and then the command is refused.
            self.finished(done=self._command.made(standing))
        path = self.home / "memory" / f"{name.value}.md"
        _, after = save(path, before, edit, self.rng.choice(_STYLES))
        self.counts["saves"] += 1
        self.said.unseen |= numbers(standing) - numbers(before)
        self._apply(name, before, after, told=True)

    def _apply(self, name: DocumentName, before: str, after: str, *, told: bool) -> None:
        """Update what must survive a save; what a command (not `told`) removed may be shown again."""
        had, has = tokens(before), tokens(after)
        for token in had - has:
            self.said.own.pop(token, None)
            self.said.gone[token] = name
        for token in has:
            self.said.gone.pop(token, None)
        for token in tokens(_MENTION.sub("", after)):
            self.said.own[token] = name
        was, now = Counter(before.split("\n")), Counter(after.split("\n"))
        for token in tokens("\n".join(was - now)) - tokens("\n".join(now - was)):
            # Renaming an item in one line also changes its mention elsewhere.
            self.said.own.pop(token, None)
        if told:
            self.said.removed |= _machine_numbers(before) - numbers(after)
        self.said.removed -= numbers(after)

    def _token(self) -> str:
        self._tokens += 1
        return f"person-{self._tokens:06d}"

    def _chosen(self, name: DocumentName, text: str) -> Edit:
        """Choose an edit; a note if there is nothing to change or delete."""
        lines = [line for line in without_conflicts(text).split("\n") if not line.startswith((">", "#"))]
        own = [line for line in lines if PERSON.search(line) and not _OPERATION.match(line)]
        facts = [line for line in without_conflicts(text).split("\n") if NUMBER.search(line) and "…" not in line]
        choice = self.rng.random()
        if choice < 0.15 and own:
            old = self.rng.choice(own)
            return Edit(changed=((old, PERSON.sub(self._token(), old)),))
        if choice < 0.30 and facts and name in _REWORDED:
            old = self.rng.choice(facts)
            new = NUMBER.sub(lambda number: f"by {self._token()} {number.group()}", old, count=1)
            return Edit(changed=((old, new),))
        if choice < 0.40 and len(own) > 2:
            return Edit(gone=(self.rng.choice(own),))
        if choice < 0.55 and len(facts) > 1:
            return Edit(gone=(self.rng.choice(facts),))
        if choice < 0.70 and name is DocumentName.PROJECT_STATE:
            return self._collision(text)
        if choice < 0.85:
            return self._item(name, text)
        return self._note(text)

    def _collision(self, text: str) -> Edit:
        """Change a line that the machine will change too."""
        lines = [line for line in without_conflicts(text).split("\n") if _OPERATION.match(line)]
        if not lines:
            return self._note(text)
        old = self.rng.choice(lines)
        return Edit(changed=((old, f"{old}, says {self._token()}"),))

    def _item(self, name: DocumentName, text: str) -> Edit:
        title = self.rng.choice([title for document, title in ITEMS if document is name])
        item = ITEMS[name, title].format(token=self._token())
        return Edit(after=f"## {title}", new=("", item))

    def _note(self, text: str) -> Edit:
        if f"## {OWN_SECTION}" not in text.split("\n"):
            return Edit(end=f"\n## {OWN_SECTION}\n\n- A note, {self._token()}\n")
        return Edit(after=f"## {OWN_SECTION}", new=("", f"A remark: {self._token()}, see below."))


def _machine_numbers(text: str) -> set[int]:
    """Return the numbers of the facts that a document shows in the machine's wording."""
    return numbers("\n".join(line for line in text.split("\n") if not PERSON.search(line)))


def examine_edits(
    project: Path, memory: OrchestratorContextManager, said: Said, *, taken_in: bool
) -> Iterator[Violation]:
    """Check the invariants of a person's edits.

    Args:
        project: Folder of the project.
        memory: The memory as this process sees it.
        said: The person's edits.
        taken_in: Whether the memory has looked for edits since; if so, the ledger must reflect them too.
    """
    folder = project / HOME / "memory"
    texts = {name: (folder / f"{name.value}.md").read_text("utf-8", "surrogateescape") for name in DocumentName}
    aside = "".join(
        Path(version.path).read_text("utf-8", "surrogateescape")
        for name in DocumentName
        for version in memory.episodic_memory.history(name.value)
        if version.reason is VersionReason.CONFLICT
    )
    for token, name in said.own.items():
        if token not in texts[name] and token not in aside:
            yield Violation(kind="edit", text=f"{token} is missing from {name.value}")
    for name, text in texts.items():
        standing = tokens(text)
        for token in sorted(standing & {token for token, place in said.gone.items() if place is name}):
            yield Violation(kind="returned", text=f"{token} was removed from {name.value}, but is there again")
        for number in sorted(numbers(text) & said.removed):
            yield Violation(kind="returned", text=f"K{number} was removed, but is in {name.value} again")
        for line, problem in faults(text):
            yield Violation(kind="document", text=f"{name.value}:{line}: {problem}")
    if taken_in:
        yield from _untrue_facts(memory, said)


def _untrue_facts(memory: OrchestratorContextManager, said: Said) -> Iterator[Violation]:
    """Yield facts that are active in the ledger although a person has removed them."""
    for fact in memory.facts(standing=False):
        if fact.status is not MustKeepStatus.STANDING:
            continue
        if fact.id in said.removed:
            yield Violation(kind="returned", text=f"K{fact.id} was removed, but is active in the ledger")
        for token in PERSON.findall(fact.text):
            if token in said.gone:
                yield Violation(kind="returned", text=f"K{fact.id} contains {token}, which was removed")
