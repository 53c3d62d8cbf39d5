"""Index of the facts by hashed keys, such as their words, to find the few facts that a later fact may end."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from hashlib import blake2b

from orchestra_mem.stores.statements import Stored

_NEWEST = (
    "SELECT asked.value, (SELECT json_group_array(fact) FROM "
    "(SELECT fact FROM must_keep_words WHERE word = CAST(asked.value AS BIGINT) ORDER BY fact DESC LIMIT ?) AS newest) "
    "FROM json_each(?) AS asked"
)


class FactWords(Stored):
    """Index of facts by keys. A fact that was added or changed is in `unindexed` until `index` stores its keys."""

    def unindexed(self) -> list[int]:
        """Return the ids of the facts whose keys are not stored yet, or may have changed."""
        return [number for (number,) in self._database.rows("SELECT id FROM must_keeps WHERE indexed = 0 ORDER BY id")]

    def index(self, keys: Mapping[int, Collection[str]]) -> None:
        """Store the keys of facts, by fact id, instead of their former ones; to be called in a transaction."""
        numbers = [(number,) for number in keys]
        self._database.write_all("index", "DELETE FROM must_keep_words WHERE fact = ?", numbers)
        rows = {(_hashed(key), number) for number, own in keys.items() for key in own}
        self._database.write_all("index", "INSERT INTO must_keep_words (word, fact) VALUES (?, ?)", sorted(rows))
        self._database.write_all("index", "UPDATE must_keeps SET indexed = 1 WHERE id = ?", numbers)

    def newest(self, keys: Iterable[str], most: int) -> dict[str, dict[int, None]]:
        """Return the ids of the newest facts with each key, ascending, at most `most` a key; unused keys are absent."""
        asked = {_hashed(key): key for key in keys}
        found = self._database.rows(_NEWEST, (most, [*asked])) if asked else []
        listed = {asked[int(word)]: json.loads(numbers) for word, numbers in found}
        return {key: dict.fromkeys(sorted(numbers)) for key, numbers in listed.items() if numbers}


@lru_cache(maxsize=8_192)
def _hashed(key: str) -> int:
    """Hash a key to 63 bits, so that the index holds no text and two keys hardly ever meet."""
    return int.from_bytes(blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).digest()) >> 1
