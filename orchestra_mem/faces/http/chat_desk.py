"""The memory's part in a chat: add relevant memories to the prompt, and record the messages.

See `chat_additions` for what becomes of the additions in later requests.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any
from uuid import uuid4

from orchestra_mem.core.context.repeats import new_lines, texts_in
from orchestra_mem.core.control_tokens import neutralise
from orchestra_mem.core.search.disclosure import recalled_item
from orchestra_mem.core.search.echoes import Echoes, fenced
from orchestra_mem.core.search.terms import is_statement
from orchestra_mem.errors import ModelError, OrchestraMemError
from orchestra_mem.faces.http.chat_additions import (
    STATE,
    Addition,
    Additions,
    ChatMessage,
    Talk,
    answer_tokens,
    others_of,
    text_of,
    with_additions,
)
from orchestra_mem.faces.http.chat_asides import ChatForm, NewestWords, quotes_a_chat
from orchestra_mem.faces.records import Caller
from orchestra_mem.memory.manager import OrchestratorContextManager
from orchestra_mem.settings import ServerSettings
from orchestra_mem.types import OWNERS_CHAT, Json, OperationFilter

_MOST_HITS = 12
# With three, a memory in several languages answered as many first questions as with any number of guesses.
_MOST_GUESSES = 3
_FEW_OPERATIONS = 50  # contexts show the facts of as many without documents
# Share of the room for additions that the addition to one message may take; the rest is for the conversation to grow.
_ROOM_SHARE = 2 / 3
_END = b"[DONE]"
# What Qwen 3, DeepSeek R1 and others think before they answer and between, if their server does not send it separately;
# or, as group 1, fenced code of the answer.
_THOUGHTS = re.compile(r"(^```.*?^```)|(?:\A\s*|^)(?:<think>.*?(?:</think>\s*|\Z))+", re.DOTALL | re.MULTILINE)
_FENCE_TOKENS = 40  # upper limit of the tokens of a fence with its source
_MARKS_TOKENS = 8  # upper limit of the tokens that a chat template adds to a message
# An image takes 256 tokens with Gemma 3, 576 with LLaVA 1.5, 765 with GPT-4o, 1,369 with Qwen2.5-VL at 1036 x 1036.
_PICTURE_TOKENS = 1_024
# A message repeated within this time is a client's retry, and is not recorded again.
_SAME_SAYING_S = 600
_MOST_LEFT_OUT = 10  # newest requests that were taken for a program's, with all their messages


@dataclass(slots=True, kw_only=True)
class Collected:
    """The answer of a model as received so far. `finish` is "" until known; `ended` is set by the event `[DONE]`.

    `cut`: Whether an error or the client ended it early, so that the question still waits for an answer.
    """

    text: str = ""
    finish: str = ""
    ended: bool = False
    cut: bool = False
    tools: dict[int, dict[str, str]] = field(default_factory=dict)

    @classmethod
    def of_body(cls, raw: bytes) -> Collected:
        """Parse a complete response body; an invalid body gives an empty answer."""
        collected = cls()
        collected._take(raw, "message")
        return collected

    @property
    def calls(self) -> Json:
        """The tool calls, each with name and arguments; None if there are none."""
        return [dict(tool) for tool in self.tools.values()] or None

    async def events(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Yield server-sent events unchanged, in complete lines. Collect contents before yielding them."""
        rest = b""
        async for chunk in chunks:
            whole, end, rest = (rest + chunk).rpartition(b"\n")
            self._read(whole)
            if whole or end:
                yield whole + end
        self._read(rest)
        if rest:
            yield rest

    def _read(self, lines: bytes) -> None:
        for line in lines.split(b"\n"):
            if line.startswith(b"data:"):
                data = line.removeprefix(b"data:").strip()
                self.ended = self.ended or data == _END
                self._take(data, "delta")

    def _take(self, raw: bytes, where: str) -> None:
        """Collect the contents of the first choice. Malformed JSON is skipped, because a server may send anything."""
        with suppress(ValueError, LookupError, TypeError, AttributeError, RecursionError, StopIteration):
            event: Any = json.loads(raw)
            if event.get("error"):
                self.finish, self.cut = "the model's server sent an error", True
            choice: Any = next(each for each in event["choices"] if not each.get("index"))
            delta = choice.get(where) or {}
            self.text += text_of(delta)
            self.finish = choice.get("finish_reason") or self.finish
            for number, call in enumerate(delta.get("tool_calls") or ()):
                tool = self.tools.setdefault(call.get("index", number), {"name": "", "arguments": ""})
                for name, text in (call.get("function") or {}).items():
                    if name in tool:
                        tool[name] += text or ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """The prompt for the model: a client's messages with additions.

    `tokens`: Size of all additions. `sources`: Sources of the addition to the last user message. `problem`: The error
    of adding memories or of recording the question; "" if both succeeded. `aside`: Whether a program asks about a
    recorded chat; then nothing is added, and nothing is recorded.
    """

    messages: list[ChatMessage]
    talk: Talk
    form: ChatForm
    caller: Caller
    tokens: int = 0
    sources: tuple[str, ...] = ()
    problem: str = ""
    aside: bool = False


class ChatDesk:
    """Adds memories to prompts, and records conversations. Thread-safe; its calls block on the disk."""

    def __init__(self, memory: OrchestratorContextManager, settings: ServerSettings, additions: Additions) -> None:
        self._memory = memory
        self._settings = settings
        self._additions = additions
        self._newest = NewestWords()
        self._left_out: tuple[tuple[Prompt, Collected], ...] = ()
        self._refreshed: date | None = None

    def prompt(self, body: Mapping[str, Any], caller: Caller, problem: str = "") -> Prompt:
        """Add relevant memories to a client's messages. If the memory fails, the prompt reports it as its `problem`.

        Args:
            body: The request body.
            caller: The caller that the client authenticated as.
            problem: If set, the memory is not searched for this reason, and only earlier additions are used.
        """
        talk, form = Talk.of(body["messages"], agent=caller.acting(None)), ChatForm.of(body)
        room = self._room(talk, body)
        additions = self._additions.of(talk)
        # Made for this message, or for an earlier conversation that began with the same messages and was answered.
        before = additions.pop(talk.asked, None) if talk.is_new else None
        try:
            if not problem and (self._newest.are_asked_about(talk, caller, form) or quotes_a_chat(talk, caller)):
                return Prompt(messages=[*talk.messages], talk=talk, form=form, caller=caller, aside=True)
            if talk.is_new and talk.question.strip() and not problem:
                recorded = OperationFilter(idempotency_key=_key(talk, talk.asked, caller.view))
                if before is None or not caller.view.count_operations(recorded):
                    before, problem = self._relevant(talk, additions, caller, room)
                additions[talk.asked] = before
        except OrchestraMemError as error:
            problem = str(error)
        found = additions.get(talk.asked)
        additions = self._additions.keep(talk, additions, room)
        if not room or additions.get(talk.asked) != found:
            full = "the messages, the tools and the answer (`max_tokens`) fill the model's window"
            problem = problem or f"no memories were added: {full}"
        return Prompt(
            messages=with_additions(talk.messages, additions), talk=talk, form=form, caller=caller,
            tokens=sum(each.tokens for each in additions.values()),
            sources=additions[talk.asked].sources if talk.asked in additions else (), problem=problem,
        )  # fmt: skip

    def _relevant(
        self, talk: Talk, before: Mapping[int, Addition], caller: Caller, room_tokens: int
    ) -> tuple[Addition, str]:
        """Select memories for the last user message; also return why none could be searched, "" if they could.

        A conversation's first addition also has the project's state, and so has a later one if that had to make room,
        but not one that had none to show: all that has been recorded since may be this conversation.
        Only the first has guesses, and few, because they would fill a long conversation, and none if anything is likely
        to answer, because they divert a small model.
        """
        count = self._memory.counter.count
        # The name of a document is that of many passages.
        given = {source for each in before.values() for source in each.sources if not source.endswith(".md")}
        states = [each for each in before.values() if each.has_state]
        needs_state = not any(each.text for each in states) if states else not before
        first, turn = self._settings.chat_first_tokens if needs_state else 0, self._settings.chat_turn_tokens
        share = min(1.0, _ROOM_SHARE * room_tokens / max(1, first + turn))
        texts, sources, left = [], [], int(turn * share)
        if needs_state:
            self._refresh_daily()
            budget = max(0, int(first * share) - _FENCE_TOKENS)
            context = caller.view.get_orchestrator_context("chat", budget)
            if context.tokens:
                texts, sources = [fenced(context.render(), STATE)], [STATE]
        there = [*(each.text for each in before.values()), *texts]
        says, known = talk.says(there), texts_in("\n".join(there))
        found = caller.retrieving("passages")(talk.question, limit=_MOST_HITS)
        guesses = _MOST_GUESSES if not before and all(each.hit.perhaps for each in found.recollections) else 0
        for whole in found.recollections:
            each = replace(whole, passage="".join(new_lines(whole.passage, known)).strip())
            # An earlier question is like this one, but seldom has its answer.
            may_help = not each.hit.fate and is_statement(each.passage)
            is_known = each.source in given or not each.passage or says(each.passage)
            if is_known or (each.hit.perhaps and not (guesses and may_help)):
                continue
            text = neutralise(recalled_item(replace(each, whole=each.passage)).forms[-1])
            if (tokens := count(text)) <= left:
                left -= tokens
                guesses -= each.hit.perhaps
                texts.append(text)
                sources += [each.source, *each.also]
        text = "".join(texts)
        problem = "" if found.recollections else "; ".join(found.notes)
        return Addition(text, count(text), tuple(dict.fromkeys(sources))), problem

    def _refresh_daily(self) -> None:
        """Refresh before the first chat of a day: until a large window is full, rules would be in no document."""
        today = date.today()
        if self._refreshed != today and self._memory.count_operations() > _FEW_OPERATIONS:
            self._refreshed = today
            with suppress(OrchestraMemError):  # chats go on with the documents as they are
                self._memory.refresh()

    def _room(self, talk: Talk, body: Mapping[str, Any]) -> int:
        """Return how many tokens of the model's window remain for additions after messages, tools and answer."""
        if self._memory.model is None:
            return self._settings.chat_first_tokens + self._settings.chat_turn_tokens
        try:
            window = self._memory.model.context_tokens
        except ModelError:  # reported when the answer is requested; earlier additions stay as they are
            return sys.maxsize
        count = self._memory.counter.count
        request_tokens = sum(count(text_of(message)) + _MARKS_TOKENS for message in talk.messages)
        pictures = sum(len(others_of(message)) for message in talk.messages) * _PICTURE_TOKENS
        calls = sum(count(json.dumps(message["tool_calls"])) for message in talk.messages if message.get("tool_calls"))
        tools = count(json.dumps([body[name] for name in ("tools", "functions", "response_format") if body.get(name)]))
        return max(0, window - request_tokens - pictures - calls - tools - answer_tokens(body))

    def record_question(self, prompt: Prompt) -> None:
        """Record the messages since the model's last answer: the user's, and the results of tools.

        If a message and its answer that were taken for a program's are part of the chat, they are recorded first.

        Raises:
            StorageError: A message could not be stored.
        """
        if prompt.aside:
            return
        for left, answer in self._left_out:
            if left.talk.keys[-1] in prompt.talk.keys[:-1]:
                self._left_out = tuple(each for each in self._left_out if each[0] is not left)
                self.record_question(replace(left, aside=False))
                self.record_answer(replace(left, aside=False), answer)
        if prompt.talk.is_new:
            self._newest.add(prompt.talk, prompt.caller, prompt.form, prompt.talk.question)
        for place in prompt.talk.unanswered:
            message = prompt.talk.messages[place]
            by_user = message.get("role") == "user"
            text = "\n".join(filter(None, [text_of(message), *others_of(message)]))
            call = _call_of(prompt.talk, place)
            if not text.strip() and not call:
                continue
            data: dict[str, Json] = {"role": "user", "text": text} if by_user else {**call, "output": text}
            prompt.caller.view.record_operation(
                "user_message" if by_user else "tool_result", data, agent=prompt.caller.agent or OWNERS_CHAT[0],
                idempotency_key=_key(prompt.talk, place, prompt.caller.view),
            )  # fmt: skip

    def record_answer(self, prompt: Prompt, answer: Collected) -> None:
        """Record the model's answer, or why there is none. If the caller is an agent, queue the exchange for learning.

        Nothing is learnt from sentences that the answer repeats from the prompt.

        Raises:
            StorageError: The answer could not be stored.
        """
        if prompt.aside:
            if prompt.talk.is_new:
                self._left_out = (*self._left_out[-_MOST_LEFT_OUT:], (prompt, answer))
            return
        agent, view, last = prompt.caller.agent, prompt.caller.view, len(prompt.talk.messages) - 1
        text = _without_thoughts(answer.text)
        data: dict[str, Json] = {"role": "assistant", "text": text}
        key = f"{_prefix(prompt.talk, last, view)}{'part' if answer.cut else 'answer'} {uuid4().hex}"
        if answer.calls:
            data["tool_calls"] = answer.calls
        elif not text.strip():
            data["finish_reason"] = f"no answer ({answer.finish or 'it could not be read'})"
            key = f"{_key(prompt.talk, last, view)} failed"
        if answer.finish not in ("", "stop"):
            data.setdefault("finish_reason", answer.finish)
        view.record_operation("agent_message", data, agent=agent or OWNERS_CHAT[1], idempotency_key=key)
        self._newest.add(prompt.talk, prompt.caller, prompt.form, text)
        if agent and text.strip() and prompt.talk.question.strip():
            given = Echoes()
            given.note(map(text_of, prompt.messages), after=0)
            self._memory.learn(prompt.talk.question, str(given.without(text, 1)), agent=agent)


def _without_thoughts(text: str) -> str:
    """Remove thoughts from an answer that begins with some, even if the opening tag was left in the prompt."""
    head, closed, _ = text.partition("\n</think>\n")
    if closed and "<think>" not in head and head.count("```") % 2 == 0:
        text = f"<think>{text}"
    return _THOUGHTS.sub(lambda found: found[1] or "", text) if text.lstrip().startswith("<think>") else text


def _call_of(talk: Talk, place: int) -> dict[str, Json]:
    """Return the tool and input of the call that a tool's result answers; {} if the call is missing or malformed."""
    number = talk.messages[place].get("tool_call_id")
    earlier: Any = reversed(talk.messages[:place])
    with suppress(LookupError, TypeError, AttributeError, StopIteration):
        calls = (call for message in earlier for call in message.get("tool_calls") or ())
        function = next(call for call in calls if number and call["id"] == number)["function"]
        return {"tool": function["name"], "input": function["arguments"]}
    return {}


def _key(talk: Talk, place: int, view: Any) -> str:
    """Return a message's idempotency key: the same for a retry, and for another answer within a chat.

    Once the first message of a chat has been answered, it gets another key, as it may begin another chat; so does a
    result of a tool, as a command may run again.
    """
    prefix = _prefix(talk, place, view)
    roles = [message.get("role") for message in talk.messages[: place + 1]]
    if roles[-1] == "user" and "assistant" in roles:
        return f"{prefix}0"
    return f"{prefix}{view.count_operations(OperationFilter(idempotency_prefix=f'{prefix}answer '))}"


def _prefix(talk: Talk, place: int, view: Any) -> str:
    """Return the prefix of a message's keys, which names an interval of time.

    That is the interval before, if the message was recorded in it, so that no retry is new because an interval ends.
    """
    interval = int(time.time() // _SAME_SAYING_S)
    before = f"chat {talk.keys[place]} {interval - 1} "
    known = view.count_operations(OperationFilter(idempotency_prefix=before))
    return before if known else f"chat {talk.keys[place]} {interval} "
