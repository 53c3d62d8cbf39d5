"""Tell what chat programs ask by themselves, to name a chat or to suggest what to ask next, from what people say.

Only signs that no person gives count: what a program asks comes at once after an answer, in another form than the chat,
or quotes a recorded question and its answer. What gives no such sign is a person's, and is recorded.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from orchestra_mem.core.search.echoes import LEAST_WORDS
from orchestra_mem.faces.http.chat_additions import Talk, answer_tokens, text_of
from orchestra_mem.faces.records import Caller
from orchestra_mem.types import OWNERS_CHAT, OperationFilter

_MOST_CHATS = 100  # newest questions and answers that a program may ask about
_LABEL_CHARS = 60  # between a question and its answer: a label such as ASSISTANT
_TAG = re.compile(r"<[^<>]*>")
_JUST_NOW_S = 600
_AT_ONCE_S = 3  # within this time after an answer, nobody changes the chat's settings and writes a message
_FEW_TOKENS = 64  # for a title


class ChatForm(NamedTuple):
    """What a chat's requests have in common, unless a person changes its settings."""

    streams: bool
    has_tools: bool
    is_free: bool
    may_be_long: bool

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> ChatForm:
        """Read the form from the body of a request."""
        may_be_long = answer_tokens(body) > _FEW_TOKENS
        return cls(body.get("stream") is True, bool(body.get("tools")), not body.get("response_format"), may_be_long)


@dataclass(frozen=True, slots=True)
class _Said:
    time: float
    agent: str
    key: str
    form: ChatForm
    text: str

    def lacked_by(self, form: ChatForm) -> bool:
        return any(had and not has for had, has in zip(self.form, form, strict=True))


class NewestWords:
    """The newest questions and answers of this process. Thread-safe."""

    def __init__(self) -> None:
        self._newest: tuple[_Said, ...] = ()

    def add(self, talk: Talk, caller: Caller, form: ChatForm, text: str) -> None:
        """Note a question before it is recorded, and an answer before its end is sent."""
        if text := text.strip():
            said = _Said(time.time(), caller.agent, talk.keys[-1], form, text)
            self._newest = (said, *self._newest[: _MOST_CHATS - 1])

    def are_asked_about(self, talk: Talk, caller: Caller, form: ChatForm) -> bool:
        """Return whether a program asks about words of a moment ago.

        After an answer, the program puts an instruction of the system, or a user's message in a form that lacks
        something: it does not stream, has no tools, wants JSON or a few tokens, unlike the chat. Or it does so in a new
        chat that ends with the answer or the question. A request with nothing but instructions of the system is a
        program's at any time.
        """
        return not (talk.unanswered or talk.answered >= 0) or any(
            each.agent == caller.agent and 0 <= time.time() - each.time <= _AT_ONCE_S
            and (_follows(talk, form, each) or _quotes(talk, form, each))
            for each in self._newest
        )  # fmt: skip


def _follows(talk: Talk, form: ChatForm, said: _Said) -> bool:
    at = talk.answered
    if at < 1 or said.key != talk.keys[at - 1] or said.text not in text_of(talk.messages[at]):
        return False
    if not talk.unanswered:
        return at < len(talk.messages) - 1  # only an instruction of the system comes after the answer
    return talk.unanswered == (talk.asked,) and said.lacked_by(form)


def _quotes(talk: Talk, form: ChatForm, said: _Said) -> bool:
    asked = "\n".join(text_of(talk.messages[place]) for place in talk.unanswered)
    begin, quote, end = asked.rpartition(said.text)
    is_last = bool(quote and re.search(r"\W\Z", begin)) and not re.search(r"\w", _TAG.sub("", end))
    return is_last and talk.answered < 0 and said.lacked_by(form)


def quotes_a_chat(talk: Talk, caller: Caller) -> bool:
    """Return whether a chat of one message ends with a recorded question and its answer, both word for word.

    After the answer come at most quotation marks and closing tags: who goes on with the conversation in one message
    adds words.
    """
    if talk.answered >= 0 or talk.unanswered != (talk.asked,):
        return False

    def recorded(type: str, agent: str, since: datetime | None = None) -> dict[int, str]:
        where = OperationFilter(type=type, agent=caller.agent or agent, since=since, limit=_MOST_CHATS)
        found = (
            (each.id, each.data.get("text")) for each in caller.view.operations(where) if isinstance(each.data, dict)
        )
        return {number: text.strip() for number, text in found if isinstance(text, str) and text.strip()}

    just_now = datetime.fromtimestamp(time.time() - _JUST_NOW_S, UTC)
    for number, answer in recorded("agent_message", OWNERS_CHAT[1], just_now).items():
        before, at, after = talk.question.rpartition(answer)
        if at and len(answer.split()) >= LEAST_WORDS and not re.search(r"\w", _TAG.sub("", after)):
            asked = recorded("user_message", OWNERS_CHAT[0])
            question = asked.get(max((each for each in asked if each < number), default=0), "")
            if question and re.search(rf"(?<!\w){re.escape(question)}(?!\w)", before[-len(question) - _LABEL_CHARS :]):
                return True
    return False
