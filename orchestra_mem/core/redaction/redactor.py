"""Remove secrets from texts and values before they are stored. The detectors are loaded when the first text arrives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from orchestra_mem.types import Json

if TYPE_CHECKING:
    from orchestra_mem.core.redaction.masking import Redacted, Rules


class Redactor:
    """Replaces secrets in texts and JSON values by placeholders. The arguments are those of `masking.Rules`."""

    def __init__(self, **given: Any) -> None:
        self._given = given

    @cached_property
    def _rules(self) -> Rules:
        from orchestra_mem.core.redaction.masking import Rules

        return Rules(**self._given)

    def text(self, text: str) -> str:
        """Return a text without its secrets."""
        return self._redacted(text).text

    def places(self, text: str) -> list[tuple[int, str]]:
        """Return the line, from 1, and the kind of each secret in a text."""
        return [(text.count("\n", 0, each.start) + 1, each.kind) for each in self._redacted(text).found]

    def _redacted(self, text: str) -> Redacted:
        from orchestra_mem.core.redaction.masking import redact

        return redact(text, self._rules)

    def value(self, value: Json) -> Json:
        """Return a JSON value without the secrets in its strings and keys."""
        return self._cleaned(value)[0]

    def counts(self, value: Json) -> Mapping[str, int]:
        """Count the secrets of each kind in a JSON value."""
        return self._cleaned(value)[1]

    def _cleaned(self, value: Json) -> tuple[Json, Mapping[str, int]]:
        from orchestra_mem.core.redaction.masking import redact_value

        return redact_value(value, self._rules)

    def faults(self) -> Sequence[str]:
        """Describe each setting that cannot be used, in a sentence."""
        may_be_wrong = any(map(self._given.get, ("add_kinds", "skip_kinds", "patterns", "allow_patterns")))
        return self._rules.faults if may_be_wrong else ()
