"""Escape in recorded text what a model would take for the border of an item or for a control token, and undo it."""

from __future__ import annotations

import json
import re
from contextlib import suppress

from orchestra_mem.types import Json

# The start of a border line, or of a control token of a model family's chat template, within an item's text. It is
# escaped by a backslash, or by one more if it is escaped already, so that the original can be restored.
_FORGED = re.compile(
    r"<(?=\\*(?:/?\s*memory\b|(?:\|[^\s|<>[\\]{1,80}\|?|[^\s|<>[\\]{1,80}\|)>|\uff5c[^\uff5c<>\n]{1,40}\uff5c>|</?SYS>>"
    r"|(?:start|end|begin)_of_\w+>|/?(?:s|pad|unk|(?-i:[bes]o[adhmpst])|(?:seed:)?think(?:ing)?|(?:bos|eos|pad)_token"
    r"|(?:tool|fim)[_-]\w+|function=[^<>\n]+|(?:unused|extra_id_|reserved_|special_)\d+)>))"
    r"|\[(?=\\*/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_(?:CALLS|RESULTS|CONTENT)|THINK)\])"
    r"|(?<![\w)\]])\[(?=\\*(?-i:[gs]?MASK)\])",
    re.IGNORECASE,
)
_NEUTRALISED = re.compile(rf"({_FORGED.pattern})\\", re.IGNORECASE)


def neutralise(text: str) -> str:
    r"""Escape imitations of border lines and control tokens in `text`: `<memory …>` becomes `<\memory …>`."""
    return _FORGED.sub(r"\g<0>\\", text) if "<" in text or "[" in text else text


def restore(answer: str) -> str:
    """Undo `neutralise` in a model's answer, in JSON within its texts, so that a quote is in its source again."""
    if answer.lstrip()[:1] in ("{", "["):  # a text in quotes is plain text, too
        # JSON may be invalid, as the model did not double a backslash.
        with suppress(ValueError, RecursionError):
            return json.dumps(_restored(json.loads(answer)), ensure_ascii=False)
    return _NEUTRALISED.sub(r"\1", answer)


def _restored(value: Json) -> Json:
    if isinstance(value, dict):
        return {key: _restored(each) for key, each in value.items()}
    if isinstance(value, list):
        return [*map(_restored, value)]
    return _NEUTRALISED.sub(r"\1", value) if isinstance(value, str) else value
