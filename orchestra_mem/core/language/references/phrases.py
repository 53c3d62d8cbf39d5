"""Referring expressions as the grammar sees them: what a phrase says of the items meant, and where it stands."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from orchestra_mem.core.language.mentions import Happening
from orchestra_mem.work_types import WorkKind, WorkStatus


class Form(StrEnum):
    """How a phrase refers."""

    IT = "it"
    THAT = "that"
    THEM = "them"
    BOTH = "both"
    ALL = "all of them"
    LAST = "the last three"
    ORDINAL = "the second story"
    NAMED = "the auth epic"
    KIND = "the epic"
    ID = "#12"
    STATUS = "the failed one"
    HAPPENED = "the one we created"
    OTHER = "the other one"
    REST = "the rest"
    PREVIOUS = "the previous one"
    NEXT = "the next one"
    CHILDREN = "the epic's stories"
    SAME = "same as before"


class Relation(StrEnum):
    """How what is meant stands to the phrase's owner."""

    BELOW = "below"
    """Items under the owner, or the one that the owner stands under where the kind is a wider one."""
    PART = "part"
    """Some of the items that the owner means."""
    ABOVE = "above"
    BESIDE = "beside"
    """The next or the previous one of the owner."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Phrase:
    """A referring expression in a line.

    `many` is False for one item, True for several, None where the words leave it open; `count` is how many are told.
    `position` counts from 1, from the end below 0; 0 is the middle. `words` are the alternatives of a description ("the
    login and MFA stories" has two), each in lower case; `loose` ones may as well belong to the rest of the line.
    `spare` are words of the grammar that may stand in a title as well. `is_bare` is a title or number that nothing
    marks as a reference; `is_choice` means any of several ("one of them").
    """

    text: str
    start: int
    end: int
    form: Form
    ids: tuple[int, ...] = ()
    kind: WorkKind | None = None
    many: bool | None = None
    count: int | None = None
    position: int | None = None
    statuses: tuple[WorkStatus, ...] = ()
    happening: Happening | None = None
    words: tuple[tuple[str, ...], ...] = ()
    loose: bool = False
    spare: tuple[str, ...] = ()
    relation: Relation | None = None
    owner: Phrase | None = None
    excepted: Phrase | None = None
    is_bare: bool = False
    is_choice: bool = False


@dataclass(slots=True)
class Parts:
    """A noun phrase while it is read."""

    determiner: str = ""
    quantifier: str = ""
    kind: WorkKind | None = None
    has_head: bool = False
    many: bool | None = None
    count: int | None = None
    position: int | None = None
    selectors: set[Form] = field(default_factory=set)
    statuses: tuple[WorkStatus, ...] = ()
    happening: Happening | None = None
    words: list[list[str]] = field(default_factory=list)
    loose: bool = False
    spare: list[str] = field(default_factory=list)
    owns: bool = False
    is_quoted: bool = False

    @property
    def is_selective(self) -> bool:
        """Tell whether the phrase says which ones without describing them."""
        return bool(self.selectors) or self.position is not None

    @property
    def is_modified(self) -> bool:
        """Tell whether anything but a determiner stands with the head."""
        return bool(self.is_selective or self.statuses or self.happening or self.words)

    @property
    def is_plural(self) -> bool | None:
        """Tell the number: of the count first, then of the head."""
        if self.quantifier in ("all", "both", "everything", "every", "each") or self.determiner in ("these", "those"):
            return True
        if self.count is not None:
            return self.count > 1
        return self.many

    def add_word(self, word: str) -> None:
        """Add a word of the description."""
        if not self.words:
            self.words.append([])
        self.words[-1].append(word)

    def form(self) -> Form:
        """Name the form by what tells most."""
        for form in (Form.SAME, Form.OTHER, Form.REST, Form.PREVIOUS, Form.NEXT):
            if form in self.selectors:
                return form
        if self.position is not None:
            return Form.LAST if self.position < 0 or (self.count or 0) > 1 else Form.ORDINAL
        if self.words:
            return Form.NAMED
        if self.happening:
            return Form.HAPPENED
        if self.statuses:
            return Form.STATUS
        return self._form_of_rest()

    def _form_of_rest(self) -> Form:
        if self.count == 2 and self.is_plural:
            return Form.BOTH
        if self.quantifier in ("all", "everything", "every", "each") and self.determiner not in ("these", "those"):
            return Form.ALL
        if self.kind:
            return Form.KIND
        return Form.THEM if self.is_plural else Form.THAT
