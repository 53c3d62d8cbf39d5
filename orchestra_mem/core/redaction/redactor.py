"""Remove secrets from texts and values before they are stored. The detectors are loaded when the first text arrives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from orchestra_mem.choices import RedactionChoice
from orchestra_mem.types import Json

if TYPE_CHECKING:
    from orchestra_mem.core.redaction.masking import Redacted, RedactionSettings


@dataclass(frozen=True, kw_only=True)
class Redactor:
    """Replaces secrets in texts and JSON values by placeholders.

    `key` is the project's key, `personal` switches all personal data on. For the other fields see `RedactionSettings`.
    """

    key: bytes
    mode: RedactionChoice = RedactionChoice.MASK
    personal: bool = False
    add_kinds: Sequence[str] = ()
    skip_kinds: Sequence[str] = ()
    names: Sequence[str] = ()
    allow: Sequence[str] = ()
    allow_patterns: Sequence[str] = ()
    patterns: Mapping[str, str] | None = None

    @cached_property
    def _settings(self) -> RedactionSettings:
        from orchestra_mem.core.redaction.masking import RedactionSettings

        return RedactionSettings(
            mode=self.mode, on=frozenset(self.add_kinds) | ({"personal"} if self.personal else set()),
            off=frozenset(self.skip_kinds), names=tuple(self.names), patterns=tuple((self.patterns or {}).items()),
            allow=frozenset(self.allow), allow_patterns=tuple(self.allow_patterns),
        )  # fmt: skip

    def text(self, text: str) -> str:
        """Return a text without its secrets."""
        return self._redacted(text).text

    def places(self, text: str) -> list[tuple[int, str]]:
        """Return the line, from 1, and the kind of each secret in a text."""
        return [(text.count("\n", 0, each.start) + 1, each.kind) for each in self._redacted(text).found]

    def _redacted(self, text: str) -> Redacted:
        from orchestra_mem.core.redaction.masking import redact

        return redact(text, self._settings, self.key)

    def value(self, value: Json) -> Json:
        """Return a JSON value without the secrets in its strings and keys."""
        return self._cleaned(value)[0]

    def counts(self, value: Json) -> Mapping[str, int]:
        """Count the secrets of each kind in a JSON value."""
        return self._cleaned(value)[1]

    def _cleaned(self, value: Json) -> tuple[Json, Mapping[str, int]]:
        from orchestra_mem.core.redaction.masking import redact_value

        return redact_value(value, self._settings, self.key)

    def faults(self) -> Sequence[str]:
        """Describe each setting that cannot be used, in a sentence."""
        if not (self.add_kinds or self.skip_kinds or self.patterns or self.allow_patterns):
            return ()
        from orchestra_mem.core.redaction.masking import faults

        return faults(self._settings)
