"""What a chat endpoint does with the memory: it adds what is relevant to a prompt, and records what was said."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orchestra_mem.core.search.echoes import fenced
from orchestra_mem.errors import OrchestraMemError
from orchestra_mem.faces.caller import Caller
from orchestra_mem.faces.http.chat_additions import (
    Addition,
    Additions,
    ChatMessage,
    Talk,
    others_of,
    text_of,
    with_additions,
)
from orchestra_mem.faces.http.chat_answers import Collected, answer_tokens
from orchestra_mem.memory.manager import OrchestratorContextManager
from orchestra_mem.settings import ServerSettings
from orchestra_mem.types import Json

_MOST_HITS = 12
# What a chat template puts around a message, at the most.
_MARKS_TOKENS = 8
# A picture takes 256 tokens with Gemma 3, 576 with LLaVA 1.5, 765 with GPT-4o, 1,369 with Qwen2.5-VL at 1036 x 1036.
_PICTURE_TOKENS = 1_024
# Said again within this time, by a client that tries once more, it is the same saying.
_SAME_SAYING_S = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """What goes to the model: the client's messages with what was added to them.

    `tokens` of the memory are in it, `sources` are those added to the last message; `problem` says why there is none.
    """

    messages: list[ChatMessage]
    talk: Talk
    caller: Caller
    tokens: int = 0
    sources: tuple[str, ...] = ()
    problem: str = ""


class ChatDesk:
    """Adds to prompts and records talks. Safe to share between threads; its calls wait for the disk."""

    def __init__(self, memory: OrchestratorContextManager, settings: ServerSettings) -> None:
        self._memory = memory
        self._settings = settings
        self._additions = Additions()

    def prompt(self, body: Mapping[str, Any], caller: Caller, problem: str = "") -> Prompt:
        """Add what is relevant to a client's messages; whatever is wrong with the memory, a prompt comes of it.

        Args:
            body: the request, as the client sent it.
            caller: for whom the client speaks.
            problem: why the memory cannot be asked, where that is known already.
        """
        talk = Talk.of(body["messages"], agent=caller.acting(None))
        additions = self._additions.of(talk)
        try:
            if talk.is_new and talk.question.strip() and not problem:
                additions[talk.asked] = self._relevant(talk, additions, caller.view)
        except OrchestraMemError as error:
            problem = str(error)
        additions = self._additions.keep(talk, additions, self._room(talk, body))
        return Prompt(
            messages=with_additions(talk.messages, additions),
            talk=talk,
            caller=caller,
            tokens=sum(each.tokens for each in additions.values()),
            sources=additions[talk.asked].sources if talk.asked in additions else (),
            problem=problem,
        )

    def _relevant(self, talk: Talk, before: Mapping[int, Addition], view: Any) -> Addition:
        """What the model should know with the user's line; at a talk's first also where the project stands."""
        count = self._memory.counter.count
        given = {source for each in before.values() for source in each.sources}
        texts, sources, left = [], [], self._settings.chat_turn_tokens
        if not before:
            context = view.get_orchestrator_context("chat", self._settings.chat_first_tokens)
            texts = [context.render()] * bool(context.tokens)
        says = talk.says([*(each.text for each in before.values()), *texts])
        for hit in view.search(talk.question, limit=_MOST_HITS).hits:
            said = hit.chunk.text
            if hit.perhaps or hit.chunk.source in given or says(said):
                continue
            text = fenced(said, hit.chunk.source)
            if (tokens := count(text)) <= left:
                left -= tokens
                texts.append(text)
                sources.append(hit.chunk.source)
        text = "".join(texts)
        return Addition(text, count(text), tuple(dict.fromkeys(sources)))

    def _room(self, talk: Talk, body: Mapping[str, Any]) -> int:
        """What the model's window leaves for additions, beside the talk, the client's tools and the answer."""
        model = self._memory.model
        if model is None:
            return self._settings.chat_first_tokens + self._settings.chat_turn_tokens
        count = self._memory.counter.count
        said = sum(count(text_of(message)) + _MARKS_TOKENS for message in talk.messages)
        pictures = sum(map(others_of, talk.messages)) * _PICTURE_TOKENS
        calls = sum(count(json.dumps(message["tool_calls"])) for message in talk.messages if message.get("tool_calls"))
        tools = count(json.dumps([body[name] for name in ("tools", "functions", "response_format") if body.get(name)]))
        return max(0, model.context_tokens - said - pictures - calls - tools - answer_tokens(body))

    def record_question(self, prompt: Prompt) -> None:
        """Record what has been said since the model last answered.

        Raises:
            StorageError: it could not be stored.
        """
        when = int(time.time() // _SAME_SAYING_S)
        for place in prompt.talk.unanswered:
            message = prompt.talk.messages[place]
            by_user, text = message.get("role") == "user", text_of(message)
            if not text.strip():
                continue
            said: dict[str, Json] = {"role": "user", "text": text} if by_user else {"output": text}
            prompt.caller.view.record_operation(
                "user_message" if by_user else "tool_result",
                said,
                agent=prompt.caller.agent or "user",
                idempotency_key=f"chat {prompt.talk.keys[place]} {when}",
            )

    def record_answer(self, prompt: Prompt, answer: Collected) -> None:
        """Record what the model has answered, and let the agent learn from it.

        Raises:
            StorageError: it could not be stored.
        """
        agent = prompt.caller.agent
        if not (answer.text.strip() or answer.calls):
            return
        said: dict[str, Json] = {"role": "assistant", "text": answer.text}
        if answer.calls:
            said["tool_calls"] = answer.calls
        if answer.finish not in ("", "stop"):
            said["finish"] = answer.finish
        prompt.caller.view.record_operation("agent_message", said, agent=agent or "assistant")
        if agent and answer.text.strip() and prompt.talk.question.strip():
            self._memory.learn(prompt.talk.question, answer.text, agent=agent)
