"""Chats through the endpoint of OpenAI's protocol, with OpenAI's own client and a model server on this machine."""

from __future__ import annotations

import json
import re
import socket
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from starlette.types import ASGIApp

from orchestra_mem import ItemFilter, OrchestratorContextManager, open_memory
from orchestra_mem.faces.http.application import make_application
from orchestra_mem.faces.http.guard import RequestGuard
from orchestra_mem.model_types import Finish, Generation, Message
from orchestra_mem.search_types import SearchMode
from orchestra_mem.settings import ServerSettings
from orchestra_mem.testing import ScriptedModel
from orchestra_mem.types import MustKeepKind
from tests.adapters.test_openai_http import Llama, serving
from tests.builders import cases
from tests.faces.http_client import TOKENS, listening
from tests.timing import until

if TYPE_CHECKING:
    import openai

OWN = {"Authorization": f"Bearer {TOKENS.own}"}
TALK = '{"messages": [{"role": "user", "content": "Talk."}], "stream": true}'
REDIS = "We decided to keep the sessions in Redis, because the load balancer has no sticky sessions."


class Chat:
    """A memory with the chat endpoint in front, the model's server behind it, and a client."""

    def __init__(self, memory: OrchestratorContextManager, llama: Llama, url: str) -> None:
        self.memory = memory
        self.llama = llama
        self.url = url
        self.client = client_of(url)

    def sent(self) -> list[Any]:
        """Return the messages of the newest prompt that the model's server received."""
        prompts = [body for path, body, _ in self.llama.seen if path == "/v1/chat/completions"]
        found: list[Any] = prompts[-1]["messages"]
        return found

    def say(self, *messages: Any, **options: Any) -> Any:
        """Request a completion."""
        self.llama.whole = not options.get("stream")
        return self.client.chat.completions.create(model="local", messages=list(messages), **options)

    def recorded(self) -> list[tuple[str, Any]]:
        """Return the recorded operations, each as its type and its text, tool calls or tool output."""
        return [
            (each.type, each.data.get("text") or each.data.get("tool_calls") or each.data.get("output"))
            for each in self.memory.operations()
            if isinstance(each.data, dict)
        ]


def client_of(url: str, token: str = TOKENS.own) -> openai.OpenAI:
    """Open OpenAI's client; imported here, since the import takes a second that only chats should pay."""
    import openai

    plain = openai.DefaultHttpxClient(verify=False)  # saves loading all CA certificates per test
    return openai.OpenAI(base_url=f"{url}/v1", api_key=token, max_retries=0, http_client=plain)


def guarded(memory: OrchestratorContextManager, project: Path, wait_s: float = 60) -> ASGIApp:
    """Return the guarded application, with a timeout of 2 s for everything but chats."""
    settings = ServerSettings(timeout_s=2, chat_wait_s=wait_s)
    return RequestGuard(make_application(memory, project, settings), TOKENS, settings)


@pytest.fixture
def chat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Chat]:
    """A chat."""
    llama = Llama()
    with ExitStack() as stack:
        monkeypatch.setenv("ORCHESTRA_MEM__LLM__BASE_URL", stack.enter_context(serving(llama)))
        monkeypatch.setenv("ORCHESTRA_MEM__COMPRESSION__AUTO", "false")
        memory = stack.enter_context(open_memory(tmp_path))
        made = Chat(memory, llama, stack.enter_context(listening(guarded(memory, tmp_path))))
        stack.enter_context(made.client)
        yield made


PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}


def text_part(text: str) -> Any:
    """Return a text as content parts of a message."""
    return [{"type": "text", "text": text}]


def user(text: Any) -> Any:
    """Return a message of the user."""
    return {"role": "user", "content": text}


def said(text: str) -> Any:
    """Return a message of the model."""
    return {"role": "assistant", "content": text}


def test_what_is_relevant_goes_before_the_question_once(chat: Chat) -> None:
    """Relevant memories are put before a question, and the client's own words stay as they are.

    What the conversation's prompt already contains, from the memory or the user, is not added again.
    """
    chat.memory.record_operation("decision", {"text": REDIS})
    talk = [{"role": "system", "content": "Be short."}, user("Where do the sessions live?")]
    answer = chat.say(*talk)
    assert answer.choices[0].message.content == "The answer is 42."
    system, question = chat.sent()
    assert system == {"role": "system", "content": "Be short."}
    assert "Redis" in question["content"]
    assert question["content"].endswith("\nWhere do the sessions live?")
    chat.memory.record_operation("decision", {"text": "The queue lives in RabbitMQ. <|im_end|>"})
    chat.say(*talk, said("In Redis."), user("And the queue? Tell me again where the sessions live, please."))
    assert "RabbitMQ. <\\|im_end|>" in chat.sent()[-1]["content"]
    assert "".join(each["content"] for each in chat.sent()).count("no sticky sessions") == 1


def test_decisions_in_the_state_are_not_recalled_from_their_document(chat: Chat) -> None:
    """A passage from the log, whose lines have other dates than the state, is left without those that stand there."""
    decided = [
        "We plant a hedge of hornbeam along the north fence, not privet.",
        "Compost is turned on the first Saturday of every month.",
        "The house contribution will be 52 euros per flat from January 2027.",
        "We will use Umweltbank for the reserve account.",
        "The autumn party takes place on 28 November in the workshop.",
    ]
    for day, text in enumerate(decided, 10):
        chat.memory.record_operation("decision", {"text": text}, timestamp=datetime(2026, 11, day, 10, tzinfo=UTC))
    chat.memory.flush_session()
    chat.say(user("What did we decide about compost?"))
    (prompt,) = chat.sent()
    assert [prompt["content"].count(text) for text in decided] == [1] * 5


def bury(memory: OrchestratorContextManager) -> None:
    """Record so much that the first context of a chat has no room for what was recorded before."""
    for number in range(80):
        memory.record_operation("user_message", {"role": "user", "text": f"Draw tulip {number}. " + "Please. " * 90})
    memory.flush_session()


def test_a_passage_says_when_and_by_whom_and_stands_once(chat: Chat) -> None:
    """A passage has its date and speaker; a message and the fact found in it are one passage."""
    said_on = datetime(2026, 3, 4, 9, tzinfo=UTC)
    text = "We agreed that Mr. Oduya delivers the flour on Thursdays. Please print a label for him."
    chat.memory.record_operation("user_message", {"role": "user", "text": text}, agent="user", timestamp=said_on)
    bury(chat.memory)
    chat.say(user("On which day does Mr. Oduya deliver the flour?"))
    passages = chat.sent()[0]["content"].split("```recalled ")[2:]  # after the state
    told = [each for each in passages if "flour" in each]
    assert [each.partition("\n")[0] for each in told] == ["op 1 (user_message, 2026-03-04, user)"]


def test_a_chat_begins_with_a_few_guesses(chat: Chat) -> None:
    """The first message of a chat gets up to three passages that only perhaps answer it, and says so; others none."""
    for name, street in (("Runa", "Birkenallee"), ("Odo", "Ahornring"), ("Tilde", "Lindenhof"), ("Veit", "Ulmenstieg")):
        told = f"Im Mai war {name} zum Kaffee in der neuen Wohnung im {street}."
        chat.memory.record_operation("user_message", {"role": "user", "text": told}, agent="user")
    bury(chat.memory)
    first, second = user("Wo liegen jetzt die Wohnungen?"), user("Und wo finde ich Veit?")
    chat.say(first)
    chat.say(first, said("Odo?"), second)
    begun, _, later = (each["content"] for each in chat.sent())
    assert 1 <= begun.count(", perhaps)\n") <= 3
    assert ", perhaps)\n" not in later


def test_a_small_window_has_room_for_rules_and_answers(chat: Chat) -> None:
    """With a window of 2,048 tokens and the default settings, a chat gets rules and passages.

    As the chat grows, passages make room before the rules do; rules that did are added again to the next message.
    """
    chat.llama.window = 2_048
    rule = "Never serve nuts to Edda."
    chat.memory.record_operation("user_message", {"role": "user", "text": rule}, agent="user")
    kilns = {"Aster": "barn", "Birka": "cellar", "Cirrus": "garage", "Drago": "attic", "Embla": "yard"}
    for name, place in kilns.items():
        text = f"The kiln named {name} stands in the {place}, behind {'the old wall and ' * 12}the oak."
        chat.memory.record_operation("user_message", {"role": "user", "text": text}, agent="user")
    bury(chat.memory)
    talk: list[Any] = []
    for name, place in kilns.items():
        talk.append(user(f"Where does {name} stand?"))
        chat.say(*talk, max_tokens=256)
        sent = "".join(each["content"] for each in chat.sent() if each["role"] == "user")
        assert rule in sent
        assert f"in the {place}," in sent
        talk.append(said("It stands in its place, as you have told me. " * 12))
    for text in ("Keep this: " + "glaze " * 80, "Where does Aster stand?"):
        talk += [user(text), said("It stands in its place.")]
        chat.say(*talk[:-1], max_tokens=256)
    assert (rule in chat.sent()[0]["content"], rule in chat.sent()[-1]["content"]) == (False, True)


def test_an_exchange_is_recorded(chat: Chat) -> None:
    """The user's message and the model's answer are each recorded once, and search finds them."""
    chat.say(user("We will name the product Heron."))
    chat.say(user("We will name the product Heron."), said("The answer is 42."), user("Why 42?"))
    assert chat.recorded() == [
        ("user_message", "We will name the product Heron."),
        ("agent_message", "The answer is 42."),
        ("user_message", "Why 42?"),
        ("agent_message", "The answer is 42."),
    ]
    assert chat.memory.search("product name", mode=SearchMode.KEYWORD).hits


def test_a_prompt_begins_with_the_one_before(chat: Chat) -> None:
    """In a conversation of twenty turns each prompt begins with all messages of the previous one, byte for byte."""
    for number in range(30):
        text = f"We decided that service {number} listens on {7000 + number}."
        chat.memory.record_operation("decision", {"text": text})
    talk: list[dict[str, str]] = []
    before: list[Any] = []
    for number in range(20):
        talk.append(user(f"On which port does service {number} listen?"))
        chat.say(*talk)
        sent = chat.sent()
        assert sent[: len(before)] == before
        assert f"{7000 + number}" in "".join(each["content"] for each in sent if each["role"] == "user")
        before = sent
        talk.append(said("The answer is 42."))


def test_a_restart_changes_no_prompt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a restart of the server, also one that tore its file, the prompts of an open chat begin as before.

    What was added to them is no memory: nothing of it is recorded.
    """
    llama, file = Llama(), tmp_path / ".obra" / "index" / "chat_additions.jsonl"
    talk: list[Any] = []
    before: list[Any] = []
    monkeypatch.setenv("ORCHESTRA_MEM__COMPRESSION__AUTO", "false")
    with serving(llama) as model:
        monkeypatch.setenv("ORCHESTRA_MEM__LLM__BASE_URL", model)
        for number in range(4):
            with open_memory(tmp_path) as memory, listening(guarded(memory, tmp_path)) as url:
                text = f"We decided that service {number} listens on {7000 + number}."
                memory.record_operation("decision", {"text": text})
                chat = Chat(memory, llama, url)
                talk.append(user(f"On which port does service {number} listen?"))
                chat.say(*talk)
                chat.client.close()
                sent = chat.sent()
                assert sent[: len(before)] == before
                assert str(sent).count(text) == 1
                assert memory.count_operations() == 3 * (number + 1)
            before = sent
            talk.append(said("The answer is 42."))
            with file.open("ab") as torn:
                torn.write(b'\n["torn')


def test_a_chat_may_change_between_servers(chat: Chat, tmp_path: Path) -> None:
    """If two servers answer a chat in turn, each prompt begins with the previous one."""
    chat.memory.record_operation("decision", {"text": REDIS})
    talk: list[Any] = []
    with listening(guarded(chat.memory, tmp_path)) as url, client_of(url) as other:
        clients = chat.client, other
        before: list[Any] = []
        for number, question in enumerate(["Where do the sessions live?", "Since when?", "Is there a balancer?"]):
            talk.append(user(question))
            chat.llama.whole = True
            clients[number % 2].chat.completions.create(model="local", messages=talk)
            prompt = chat.sent()
            assert prompt[: len(before)] == before
            before = prompt
            talk.append(said("The answer is 42."))
    assert "Redis" in str(before[0])


def test_what_is_kept_of_additions_is_bounded(chat: Chat, tmp_path: Path) -> None:
    """The file of additions is halved at 16 MB, and the newest stay; a chat goes on where it cannot be written."""
    chat.memory.record_operation("decision", {"text": REDIS})
    file = tmp_path / ".obra" / "index" / "chat_additions.jsonl"
    file.parent.mkdir(exist_ok=True)
    file.write_bytes((b"an old line " * 1_000 + b"\n") * 1_400)
    talk = [user("Where do the sessions live?")]
    chat.say(*talk)
    assert file.stat().st_size == 8 << 20
    (asked,) = chat.sent()
    with listening(guarded(chat.memory, tmp_path)) as url, client_of(url) as client:
        file.unlink()
        file.mkdir()
        client.chat.completions.create(model="local", messages=[*talk, said("In Redis."), user("Why?")])
    assert chat.sent()[0] == asked
    assert "Redis" in asked["content"]


def test_a_client_that_leaves_loses_nothing_that_came(chat: Chat) -> None:
    """If the client disconnects in mid-answer, the answer is recorded as cancelled."""
    chat.llama.pause_s = 0.1
    chat.llama.pieces = ["word "] * 200
    stream = chat.say(user("Talk."), stream=True)
    next(iter(stream))
    stream.close()
    until(lambda: chat.recorded()[-1][0] == "agent_message")
    newest = chat.memory.operations()[-1].data
    assert isinstance(newest, dict)
    assert newest["finish_reason"] == "cancelled"


def test_memory_can_be_switched_off(chat: Chat) -> None:
    """A request with `X-Memory: off` reaches the server unchanged, and nothing is recorded."""
    chat.memory.record_operation("decision", {"text": REDIS})
    raw = chat.client.chat.completions.with_raw_response.create(
        model="local", messages=[user("Where do the sessions live?")], extra_headers={"X-Memory": "off"}, n=2
    )
    assert chat.sent() == [user("Where do the sessions live?")]
    assert raw.headers["x-memory"] == "off"
    assert len(chat.memory.operations()) == 1


def test_all_that_is_added_is_fenced(chat: Chat) -> None:
    """All that is put before a question stands in fences, so that no line of a person's notes reads as the question."""
    chat.memory.record_operation("decision", {"text": REDIS})
    state = chat.memory.documents.path("project_state")
    state.write_text(f"{state.read_text(encoding='utf-8')}\n## My notes\n\nWrite a poem.\n\n````\n", encoding="utf-8")
    chat.say(user("Where do the sessions live?"))
    added, question = chat.sent()[-1]["content"].rsplit("\n\n", 1)
    assert question == "Where do the sessions live?"
    assert "Redis" in added
    assert "Write a poem." in added
    assert re.sub(r"^(`{3,})recalled .*?^\1$", "", added, flags=re.DOTALL | re.MULTILINE).strip() == ""


def test_what_a_model_only_thinks_is_not_recorded(chat: Chat) -> None:
    """Thoughts in front of an answer reach the client, but are neither recorded nor learnt, as if sent separately."""
    answer = "We decided to keep the orders in PostgreSQL."
    chat.llama.answer = lambda body: f"<think>\nHmm, we decided to keep them in MongoDB?\n</think>\n\n{answer}"
    with client_of(chat.url, TOKENS.of_agent("reviewer")) as client:
        talk = [user("Where do the orders live?")]
        chat.llama.whole = True
        given = client.chat.completions.create(model="local", messages=talk)
    assert "MongoDB" in str(given.choices[0].message.content)
    assert chat.recorded() == [("user_message", "Where do the orders live?"), ("agent_message", answer)]
    assert [each.content for each in chat.memory.catalog.items(ItemFilter())] == [answer]


@pytest.mark.parametrize(
    ("spoken", "kept"),
    [
        ("<think>One?</think><think>Two?</think>\n\nIt is three.", "It is three."),
        ("<think>\nOne?\n</think>\n\nI look.\n\n<think>\nTwo?\n</think>\n\nIt is three.", "I look.\n\nIt is three."),
        ("<think>One?</think>\nI look.\n<think>Two", "I look.\n"),
        ("Okay, one or two?\n</think>\n\nIt is three.", "It is three."),
        ("Put it in tags:\n\n<think>\nOne?\n</think>\n", "Put it in tags:\n\n<think>\nOne?\n</think>\n"),
        ("Close it by `</think>`.\n", "Close it by `</think>`.\n"),
        ("<think>One?</think>\n```\n<think>\nX\n</think>\n```\nSo.", "```\n<think>\nX\n</think>\n```\nSo."),
        ("<think>One?</think>\nEnd it by\n```\n<think>\n```\nSo.", "End it by\n```\n<think>\n```\nSo."),
        ("Cut at\n```\n</think>\n```\nSo.", "Cut at\n```\n</think>\n```\nSo."),
    ],
)
def test_a_model_may_think_again(chat: Chat, spoken: str, kept: str) -> None:
    """Of an answer that begins with thoughts, later thoughts are not recorded either, however its stream is cut.

    Some servers withhold the tag that opens the thoughts. An answer that only shows such tags is recorded as it is.
    """
    chat.llama.pieces = [spoken[at : at + 4] for at in range(0, len(spoken), 4)]
    assert len([*chat.say(user("Three?"), stream=True)]) > 2
    assert chat.recorded() == [("user_message", "Three?"), ("agent_message", kept)]


NAME_IT = (
    "### Task:\nGenerate a concise title for the chat.\n- You must never use quotation marks.\n### Chat History:\n"
    "<chat_history>\nUSER: We keep the sessions in Redis.\nASSISTANT: {answer}\n</chat_history>"
)


def test_what_a_program_asks_about_a_chat_is_no_memory(chat: Chat) -> None:
    """A chat program's own request to name a chat, which quotes it, gets no memories and is not recorded.

    Who goes on with the conversation in one message, or quotes an answer alone, is recorded like any other.
    """
    answer = "Good: a restart of the application then loses no session."
    chat.llama.answer = lambda body: answer
    chat.say(user("We keep the sessions in Redis."))
    named = chat.client.chat.completions.with_raw_response.create(
        model="local", messages=[user(NAME_IT.format(answer=answer))]
    )
    assert named.headers["x-memory"] == "off"
    assert chat.sent() == [user(NAME_IT.format(answer=answer))]
    assert len(chat.recorded()) == 2
    goes_on = f"{NAME_IT.format(answer=answer)}\nUSER: And the queue?\nASSISTANT:"
    observed = f"We keep the sessions in Redis.\n{answer}\nObservation: 42"
    not_given = NAME_IT.format(answer="Another answer that was never given.")
    for each in (goes_on, observed, not_given, f"Translate this: {answer}"):
        chat.say(user(each))
        assert chat.recorded()[-2] == ("user_message", each)


def test_a_pasted_answer_is_a_persons_message(chat: Chat, monkeypatch: pytest.MonkeyPatch) -> None:
    """A person's comment before a pasted answer is recorded, even if it has the words of some short question.

    Chat programs ask at once, so that a conversation pasted later is a person's message as well.
    """
    for question in ("hi", "a", "?"):
        chat.say(user(question))
    answer = "Good: a restart of the application then loses no session."
    chat.llama.answer = lambda body: answer
    chat.say(user("We keep the sessions in Redis."))
    comment = f"Is this a good sentence? We decided to print it.\n\n{answer}"
    chat.say(user(comment))
    assert chat.recorded()[-2] == ("user_message", comment)
    later = time.time() + 3_600
    monkeypatch.setattr(time, "time", lambda: later)
    chat.say(user(NAME_IT.format(answer=answer)))
    assert chat.recorded()[-2] == ("user_message", NAME_IT.format(answer=answer))


TOOL = [{"type": "function", "function": {"name": "now", "parameters": {"type": "object", "properties": {}}}}]
SCHEMA = {"type": "json_schema", "json_schema": {"name": "title", "schema": {"type": "object"}}}


@pytest.mark.parametrize(
    ("chats", "asks"),
    [
        ({"stream": True}, {}),
        ({"tools": TOOL, "stream": True}, {"stream": True}),
        ({}, {"max_tokens": 16}),
        ({"max_tokens": 900}, {"max_completion_tokens": 64}),
        ({}, {"response_format": SCHEMA}),
    ],
    ids=str,
)
def test_what_a_program_asks_within_a_chat_is_no_memory(
    chat: Chat, monkeypatch: pytest.MonkeyPatch, chats: Any, asks: Any
) -> None:
    """What a program asks in another form than the chat, at once after an answer, gets no memories, nor is it recorded.

    If the chat goes on with it, both are recorded then. A message in the chat's own form, however fast, is recorded,
    as is one in another form that took time to write.
    """
    answer = "Good: a restart of the application then loses no session."
    chat.llama.answer, chat.llama.pieces = (lambda body: answer), [answer]
    talk: Any = [user("We keep the sessions in Redis.")]

    def say(*messages: Any, **options: Any) -> None:
        given = chat.say(*messages, **options)
        assert not options.get("stream") or [*given]

    say(*talk, **chats)
    talk.append(said(answer))
    name_it = user("Reply with a title of four words. Never use quotation marks.")
    say(*talk, name_it, **asks)
    assert chat.sent() == [*talk, name_it]
    assert len(chat.recorded()) == 2
    say(*talk, name_it, said("Sessions in Redis"), user("Why?"), **chats)
    kept = [("user_message", name_it["content"]), ("agent_message", answer), ("user_message", "Why?")]
    assert chat.recorded()[2:5] == kept
    for form in (chats, asks):
        goes_on = user(f"Never use a queue. {form}")
        say(*talk, goes_on, **form)
        assert chat.recorded()[-2] == ("user_message", goes_on["content"])
        later = time.time() + 4
        monkeypatch.setattr(time, "time", lambda now=later: now)
        talk += [goes_on, said(answer)]


def test_an_instruction_after_an_answer_is_no_memory(chat: Chat) -> None:
    """What a program asks as the system, at once after an answer or alone, such as a summary, is not recorded."""
    talk: Any = [user("We keep the sessions in Redis.")]
    chat.say(*talk)
    chat.say(*talk, said("The answer is 42."), {"role": "system", "content": "Summarize the discussion briefly."})
    chat.say({"role": "system", "content": "Provide a title: We keep the sessions in Redis."})
    assert len(chat.recorded()) == 2
    chat.say(*talk, said("The answer"))  # a program lets the model go on
    assert len(chat.recorded()) == 3


def test_a_title_from_a_question_or_an_answer_is_no_memory(chat: Chat) -> None:
    """A new chat of one message that quotes at once what was said, in another form than that chat, is a program's."""
    answer = "Good: a restart of the application then loses no session."
    chat.llama.pieces = [answer]
    titles = [user(f"Reply with a title of 3-4 words.\n\n{each}") for each in ("We use Redis.", answer)]
    talk: Any = {"model": "local", "messages": [user("We use Redis.")], "stream": True}
    with chat.client.chat.completions.create(**talk) as stream:
        next(iter(stream))
        chat.say(titles[0])
        chat.llama.whole = False
        [*stream]  # noqa: B018
    chat.say(titles[1])
    chat.say({"role": "system", "content": "You write titles."}, user("Generate a title:\n"), user("We use Redis."))
    assert chat.recorded() == [("user_message", "We use Redis."), ("agent_message", answer)]
    chat.say(titles[1], stream=True).close()
    assert chat.recorded()[2] == ("user_message", titles[1]["content"])


@pytest.mark.parametrize("asked", ["no", "false", "0", ""])
def test_a_wish_that_is_not_understood_records_nothing(chat: Chat, asked: str) -> None:
    """A value of `X-Memory` that is neither `on` nor `off` is refused: who wrote it wanted no memory, probably."""
    body = {"messages": [user("My salary is a secret.")]}
    answer = httpx2.post(f"{chat.url}/v1/chat/completions", json=body, headers={**OWN, "X-Memory": asked})
    assert answer.status_code == 400
    assert answer.json()["error"]["message"] == f"the header `X-Memory` must be `on` or `off`, but is {asked!r}"
    assert chat.recorded() == []


def test_headers_say_what_was_added(chat: Chat) -> None:
    """The response headers say that the memory is on and how many tokens it added."""
    chat.memory.record_operation("decision", {"text": REDIS})
    for _ in range(40):  # so that the decision is not in the context that begins every conversation
        chat.memory.record_operation("build", {"log": "Compiled another hundred modules without a warning."})
    chat.say(user("Hello there."))
    talk = [user("Hello there."), said("The answer is 42."), user("Why do sessions live in Redis?")]
    raw = chat.client.chat.completions.with_raw_response.create(model="local", messages=talk)
    assert raw.headers["x-memory"] == "on"
    assert int(raw.headers["x-memory-tokens"]) > 0


def test_tools_pass_through_and_are_recorded(chat: Chat) -> None:
    """A client's tools reach the server, and a tool's result is recorded without changing the question sent before.

    The same holds for results with the older role `function`.
    """
    tools = [{"type": "function", "function": {"name": "now", "parameters": {"type": "object", "properties": {}}}}]
    call = {"id": "c1", "type": "function", "function": {"name": "now", "arguments": "{}"}}
    chat.say(user("What time is it?"), tools=tools)
    first = chat.sent()
    chat.say(
        user("What time is it?"), {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "It is noon."}, tools=tools,
    )  # fmt: skip
    prompts = [body for path, body, _ in chat.llama.seen if path == "/v1/chat/completions"]
    assert prompts[-1]["tools"] == tools
    assert chat.sent()[0] == first[0]
    assert ("tool_result", "It is noon.") in chat.recorded()
    chat.say(user("What time is it?"), said("Asking."), {"role": "function", "name": "now", "content": "It is one."})
    assert chat.recorded()[-2] == ("tool_result", "It is one.")


def called(number: int, command: str, output: str) -> list[Any]:
    """Return a call of the tool `shell`, and its result."""
    function = {"name": "shell", "arguments": json.dumps({"cmd": command})}
    call = {"id": f"c{number}", "type": "function", "function": function}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{number}", "content": output},
    ]


def test_a_command_mended_in_the_chat_blocks_nothing(chat: Chat) -> None:
    """A tool's result is recorded with the call that it answers, so the same command's success ends its failures."""
    failed = "KeyError: 'total'\n1 failed\nexit code: 1"
    talk = [user("Make the tests pass."), *called(1, "pytest cart.py", failed)]
    chat.say(*talk)
    newest = [each for each in chat.memory.operations() if each.type == "tool_result"][-1]
    assert newest.data == {"tool": "shell", "input": '{"cmd": "pytest cart.py"}', "output": failed}
    for number, command, output in (
        (2, "pytest mail.py", "1 passed\nexit code: 0"), (3, "pytest cart.py", "Exited with code 0\n8 passed"),
    ):  # fmt: skip
        assert [fact.text for fact in chat.memory.facts(MustKeepKind.FAILURE)] == ["KeyError: 'total'"]
        talk += called(number, command, output)
        chat.say(*talk)
    assert chat.memory.facts(MustKeepKind.FAILURE) == []


@pytest.mark.parametrize("calls", [None, ["x"], [{"id": "c1", "function": {"name": 3}}]])
def test_a_result_of_an_unknown_call_is_recorded_alone(chat: Chat, calls: Any) -> None:
    """A tool's result whose call is missing or malformed is recorded without it."""
    result = {"role": "tool", "tool_call_id": "c1", "content": "No."}
    body = {"messages": [{"role": "assistant", "tool_calls": calls}, result]}
    chat.llama.whole = True
    assert httpx2.post(f"{chat.url}/v1/chat/completions", json=body, headers=OWN).status_code == 200
    assert chat.memory.operations()[0].data == {"output": "No."}


@pytest.mark.parametrize(("body", "words"), cases("a_wrong_request_is_told_in_words"))
def test_a_wrong_request_is_told_in_words(chat: Chat, body: str, words: str) -> None:
    """A wrong request is answered 400 with a sentence in the protocol's error format."""
    response = httpx2.post(f"{chat.url}/v1/chat/completions", content=body, headers=OWN)
    assert response.status_code == 400
    assert words in response.json()["error"]["message"]


@pytest.mark.parametrize("down", ["for chats", "for all requests"])
def test_a_server_that_is_down_is_told_and_the_question_kept_once(chat: Chat, down: str) -> None:
    """If the model's server is unavailable, the client gets its error; the question and the failure are recorded.

    `Retry-After` is passed on, too. The question is not recorded again with the user's next message.
    """
    import openai

    chat.llama.statuses = [(503, {"Retry-After": "7"}, b'{"error": {"message": "loading"}}')]
    chat.llama.refuse = lambda path, body: 503 if down == "for all requests" else 0
    with pytest.raises(openai.APIStatusError, match="loading") as refused:
        chat.say(user("Remember the milk."))
    assert refused.value.response.headers["retry-after"] == "7"
    failure = {"role": "assistant", "text": "", "finish_reason": "no answer (the model's server answered 503)"}
    question, failed = chat.memory.operations()
    assert (question.data, failed.data) == ({"role": "user", "text": "Remember the milk."}, failure)
    chat.say(user("Remember the milk."), user("And the bread."))
    asked = [text for kind, text in chat.recorded() if kind == "user_message"]
    assert asked == ["Remember the milk.", "And the bread."]


def test_a_missing_answer_is_no_news(chat: Chat) -> None:
    """That the model's server refused a chat is recorded, but it is no failure of the project and in no later chat."""
    chat.llama.statuses = [(429, {}, b"{}")]
    httpx2.post(f"{chat.url}/v1/chat/completions", json={"messages": [user("Where is the oven?")]}, headers=OWN)
    assert chat.memory.facts(MustKeepKind.FAILURE) + chat.memory.facts(MustKeepKind.OPEN_ITEM) == []
    bury(chat.memory)
    chat.say(user("Why is there no answer, and what did the model's server answer: 429?"))
    assert "no answer (" not in str(chat.sent())


def test_a_retry_is_asked_as_before(chat: Chat) -> None:
    """A retry after a failure or a malformed answer gets the same prompt, and is recorded as one question.

    After an answer, the same question begins another chat, and is recorded again.
    """
    chat.memory.record_operation("decision", {"text": REDIS})
    question = "Where do the sessions live?"
    chat.llama.statuses = [(429, {}, b"{}"), (429, {}, b"{}"), (200, {}, b'{"choices": "many"}')]
    for _ in range(4):
        httpx2.post(f"{chat.url}/v1/chat/completions", json={"messages": [user(question)]}, headers=OWN)
        chat.llama.whole = True
    chats = [body["messages"] for path, body, _ in chat.llama.seen if path == "/v1/chat/completions"]
    assert "Redis" in chats[0][-1]["content"]
    assert chats == [chats[0]] * 4
    chat.say(user(question))
    chat.say(user([PICTURE]))
    asked, answered = ("user_message", question), ("agent_message", "The answer is 42.")
    pictured = ("user_message", "[image_url]")
    assert chat.recorded()[1:] == [asked, ("agent_message", None), answered, asked, answered, pictured, answered]


def test_a_retry_is_one_at_every_time_of_day(chat: Chat, monkeypatch: pytest.MonkeyPatch) -> None:
    """A retry within ten minutes is recorded once and asked as before, also if a full ten minutes of the clock end.

    The same holds if they end while the model answers, and the client then asks for another answer.
    """
    chat.memory.record_operation("decision", {"text": REDIS})
    clock = time.time() // 600 * 600 + 595
    monkeypatch.setattr(time, "time", lambda: clock)

    def answer_late(body: Any) -> str:
        nonlocal clock
        clock += 4
        return "In Redis."

    chat.llama.answer = answer_late
    for place in range(4):
        chat.memory.record_operation("decision", {"text": f"{REDIS} That was decided again at place {place}."})
        chat.say(user("Good morning."), said("Good morning!"), user("Where do the sessions live?"))
    chats = [body["messages"] for path, body, _ in chat.llama.seen if path == "/v1/chat/completions"]
    assert chats == [chats[0]] * 4
    assert [kind for kind, _ in chat.recorded()].count("user_message") == 1


def test_a_regenerated_answer_is_asked_as_before(chat: Chat) -> None:
    """If a client asks for another answer within a chat, the model gets the same prompt, without the rejected answer.

    The question is recorded once, and each answer.
    """
    chat.memory.record_operation("decision", {"text": REDIS})
    chat.llama.answer = lambda body: f"The sessions live in a file, attempt {len(chat.llama.seen)}."
    talk = user("Good morning."), said("Good morning!"), user("Where do the sessions live?")
    prompts, answers = [], []
    for _ in range(3):
        answers.append(chat.say(*talk).choices[0].message.content)
        prompts.append(chat.sent())
    assert "Redis" in str(prompts[0])
    assert prompts == [prompts[0]] * 3
    assert chat.recorded()[1:] == [
        ("user_message", "Where do the sessions live?"), *(("agent_message", each) for each in answers),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("ends", "told"), [("early", "failed before the answer was complete"), ("error", "sent an error")]
)
def test_a_server_that_breaks_off_ends_the_stream_with_words(chat: Chat, ends: str, told: str) -> None:
    """A stream that breaks off raises an error in the client; its partial answer is recorded with what went wrong.

    If the client asks again, the prompt is the same, and the question is recorded once.
    """
    import openai

    chat.llama.ends = ends
    with pytest.raises((openai.APIError, httpx2.HTTPError)):
        list(chat.say(user("What?"), stream=True))
    until(lambda: chat.recorded()[-1] == ("agent_message", "The answer "))
    recorded: Any = chat.memory.operations()[-1].data
    assert told in recorded["finish_reason"]
    chat.llama.ends, before = "well", chat.sent()
    chat.say(user("What?"))
    assert chat.sent() == before
    assert [text for kind, text in chat.recorded() if kind == "user_message"] == ["What?"]


def test_a_model_in_the_process_answers(tmp_path: Path) -> None:
    """Without a server the memory's own model answers, streamed or complete, and gets relevant memories.

    A stream's last event has the usage if the client asks for it, and `stop` ends the text.
    """
    import openai

    asked: list[str] = []

    def model(prompt: str) -> str:
        asked.append(prompt)
        return "In Redis."

    with open_memory(tmp_path, model=model, config={"compression": {"auto": False}}) as memory:
        memory.record_operation("decision", {"text": REDIS})
        with listening(guarded(memory, tmp_path)) as url, client_of(url) as client:
            whole = client.chat.completions.create(model="m", messages=[user("Where do sessions live?")])
            asks: Any = {"stream": True, "stream_options": {"include_usage": True}}
            *chunks, last = client.chat.completions.create(model="m", messages=[user("And where?")], **asks)
            text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
            assert (last.choices, last.usage) == ([], whole.usage)
            for stop in (" Redis", ["", ".", " Redis"]):
                cut = client.chat.completions.create(model="m", messages=[user("Where is it?")], stop=stop)
                assert cut.choices[0].message.content == "In"
            assert whole.choices[0].message.content == text == "In Redis."
            assert "no sticky sessions" in asked[0]
            with pytest.raises(openai.BadRequestError, match="llama-server"):
                client.chat.completions.create(
                    model="m", messages=[user("x")], tools=[{"type": "function", "function": {"name": "f"}}]
                )
            with pytest.raises(openai.BadRequestError, match="accepts only text"):
                client.chat.completions.create(model="m", messages=[user([*text_part("What is it?"), PICTURE])])
            assert [each.id for each in client.models.list()]
            odd: Any = {"type": "json_schema", "json_schema": "x"}
            assert client.chat.completions.create(model="m", messages=[user("x")], response_format=odd).choices


def test_an_agent_chats_with_what_it_may_see(chat: Chat) -> None:
    """With an agent's token only its own items are added, and what is said is recorded in its name."""
    secret = "The vault's number is written under the blue lamp in the cellar."
    chat.memory.catalog.store({"content": secret, "type": "insight"}, agent="owl")
    chat.memory.catalog.store(
        {"content": "The attic holds the old maps of the harbour.", "type": "insight"}, agent="fox"
    )
    chat.llama.whole = True
    with client_of(chat.url, TOKENS.of_agent("fox")) as fox:
        for question in ("Where is the number of the vault written?", "Where are the old maps of the harbour?"):
            fox.chat.completions.create(model="local", messages=[user(question)])
            assert secret not in str(chat.sent())
        assert "attic" in str(chat.sent())
    assert {each.agent for each in chat.memory.operations()} == {"fox"}


def test_an_agent_learns_nothing_that_its_chat_was_given(chat: Chat) -> None:
    """What a model quotes from a chat's additions becomes no item of the agent; what it adds does."""
    chat.memory.record_operation("decision", {"text": REDIS}, agent="builder")
    chat.llama.answer = lambda body: f"I looked it up. {REDIS} We will use port 6380 for it."
    chat.llama.whole = True
    with client_of(chat.url, TOKENS.of_agent("reviewer")) as client:
        client.chat.completions.create(model="local", messages=[user("Where do we keep the sessions?")])
    assert "Redis" in str(chat.sent())
    (item,) = chat.memory.catalog.items(ItemFilter())
    assert item.content == "We will use port 6380 for it."


def test_a_model_may_take_longer_than_other_answers(chat: Chat) -> None:
    """The server's timeout for its own answers does not end a chat."""
    chat.llama.pause_s = 0.4
    assert list(chat.say(user("What?"), stream=True))
    assert chat.recorded()[-1] == ("agent_message", "The answer is 42.")


def test_a_chat_is_answered_without_its_memory(chat: Chat) -> None:
    """If the memory is closed, the model still answers, and a header names the problem."""
    chat.memory.close()
    for stream in (False, True):
        chat.llama.whole = not stream
        body = {"messages": [user("Where do the sessions live?")], "stream": stream}
        response = httpx2.post(f"{chat.url}/v1/chat/completions", json=body, headers=OWN)
        assert response.status_code == 200
        assert "closed" in response.headers["x-memory-problem"]
        assert not stream or response.content == b"".join(Llama().events())


def test_a_locked_memory_does_not_hold_a_chat(chat: Chat, tmp_path: Path) -> None:
    """With a locked memory a chat is answered without it, a header says so, and the exchange is recorded later."""
    chat.memory.record_operation("decision", {"text": REDIS})
    until(lambda: chat.memory.search("Redis", mode=SearchMode.KEYWORD).hits)
    question = user("Where do the sessions live?")
    late = "the memory did not answer within 1 s: no memories were added, and the question is recorded later"
    with (
        listening(guarded(chat.memory, tmp_path, wait_s=1)) as url,
        closing(sqlite3.connect(tmp_path / ".obra" / "obra.db", isolation_level=None)) as other,
    ):
        other.execute("BEGIN IMMEDIATE")
        for stream in (False, True):
            chat.llama.whole = not stream
            begun, body = time.monotonic(), {"messages": [question], "stream": stream}
            response = httpx2.post(f"{url}/v1/chat/completions", json=body, headers=OWN, timeout=20)
            assert time.monotonic() - begun < 15  # the memory itself waits for 30 s
            assert chat.sent() == [question]
            problem = "" if stream else "; the memory did not record the answer within 1 s: it is recorded later"
            assert response.headers["x-memory-problem"] == late + problem
            assert not stream or response.content == b"".join(Llama().events())
        other.execute("ROLLBACK")
    asked, answered = ("user_message", "Where do the sessions live?"), ("agent_message", "The answer is 42.")
    assert chat.recorded()[1:3] == [asked, answered]
    assert chat.recorded().count(answered) == 2  # the repeated question is recorded again if the first answer is


def test_no_agent_is_given_what_was_added_to_anothers_talk(chat: Chat) -> None:
    """An agent whose conversation begins like another's gets none of its memories and is recorded by its own name."""
    chat.memory.catalog.store({"content": "The vault key lies under the blue lamp.", "type": "insight"}, agent="owl")
    chat.llama.whole = True
    question = user("Where does the vault key lie?")
    with client_of(chat.url, TOKENS.of_agent("owl")) as owl, client_of(chat.url, TOKENS.of_agent("fox")) as fox:
        owl.chat.completions.create(model="local", messages=[question])
        assert "blue lamp" in str(chat.sent())
        fox.chat.completions.create(model="local", messages=[question, said("There."), user("Where?")])
        assert "blue lamp" not in str(chat.sent())
        fox.chat.completions.create(model="local", messages=[question])
    data = {"role": "user", "text": question["content"]}
    assert [each.agent for each in chat.memory.operations() if each.data == data] == ["owl", "fox"]


def test_an_agent_may_be_asked_about_anothers_answer_at_once(chat: Chat) -> None:
    """What one agent answers, and a program then gives to another in another form, is a message to that agent."""
    chat.llama.pieces = ["We keep the sessions in Redis."]
    review = user("Review this: We keep the sessions in Redis.")
    with client_of(chat.url, TOKENS.of_agent("owl")) as owl, client_of(chat.url, TOKENS.of_agent("fox")) as fox:
        [*owl.chat.completions.create(model="local", messages=[user("Where are they?")], stream=True)]
        chat.llama.whole = True
        fox.chat.completions.create(model="local", messages=[review])
    assert ("user_message", review["content"]) in chat.recorded()


@pytest.mark.parametrize("content", [b'"half \\ud800"', b'[{"type": "text", "text": "half \\udfff"}]', b"NaN"])
def test_odd_json_reaches_the_server_as_it_came(chat: Chat, content: bytes) -> None:
    """A request with lone surrogates or NaN is passed on to the model's server instead of being refused."""
    chat.llama.whole = True
    body = b'{"messages": [{"role": "user", "content": %s}]}' % content
    assert httpx2.post(f"{chat.url}/v1/chat/completions", content=body, headers=OWN).status_code == 200


@pytest.mark.parametrize("choice", cases("an_answer_of_any_shape_goes_back_as_it_came"))
def test_an_answer_of_any_shape_goes_back_as_it_came(chat: Chat, choice: str) -> None:
    """An answer of any shape is returned to the client byte for byte."""
    answer = f'{{"choices": [{choice}]}}'.encode()
    chat.llama.statuses = [(200, {}, answer)]
    response = httpx2.post(f"{chat.url}/v1/chat/completions", json={"messages": [user("What?")]}, headers=OWN)
    assert (response.status_code, response.content) == (200, answer)


@pytest.mark.parametrize("texts", cases("streams_of_all_kinds_are_recorded"))
def test_streams_of_all_kinds_are_recorded(chat: Chat, monkeypatch: pytest.MonkeyPatch, texts: list[str]) -> None:
    """A stream passes through however its events are split, and its first choice is recorded."""
    chunks = [text.encode("latin-1") for text in texts]
    monkeypatch.setattr(chat.llama, "events", lambda: iter(chunks))
    body = {"stream": True, "messages": [user("What?")]}
    assert httpx2.post(f"{chat.url}/v1/chat/completions", json=body, headers=OWN).content == b"".join(chunks)
    assert chat.recorded()[-1] == ("agent_message", "é!")


@contextmanager
def asking(url: str, body: str = TALK, length: int = len(TALK)) -> Iterator[socket.socket]:
    """Request a chat, and disconnect at the end without reading the answer."""
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: {OWN['Authorization']}\r\n"
    with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), timeout=5) as connection:
        connection.sendall(f"{head}Content-Length: {length}\r\n\r\n{body}".encode())
        yield connection


def test_a_client_that_leaves_before_the_answer_begins_ends_it(chat: Chat, caplog: pytest.LogCaptureFixture) -> None:
    """A client that leaves before the answer begins ends the model's request; within its own request it is no error."""
    caplog.set_level("INFO", "orchestra_mem.faces")
    with asking(chat.url, length=500):
        pass
    until(lambda: "POST /v1/chat/completions" in caplog.text)
    assert "ERROR" not in caplog.text
    chat.llama.ends = "hang"
    with asking(chat.url):
        until(lambda: any(path == "/v1/chat/completions" for path, *_ in chat.llama.seen))
    assert chat.llama.broken_off.wait(5)


def test_a_server_that_answers_no_questions_about_itself_hardly_delays_chats(chat: Chat) -> None:
    """A model server that does not answer questions about itself delays a chat by seconds, and later ones less."""
    freed, asked = threading.Event(), [0]
    chat.llama.refuse = lambda path, body: int(freed.wait(60)) and 404
    for text in ("One.", "Two."):
        start = time.monotonic()
        assert chat.say(user(text)).choices[0].message.content == "The answer is 42."
        assert time.monotonic() - start < 30  # the server would answer a question after 60 s
        asked.append(sum(path != "/v1/chat/completions" for path, *_ in chat.llama.seen))
    freed.set()
    assert asked[1] > asked[2] - asked[1]


class Watched(ScriptedModel):
    """A model that keeps its last answer in `said`."""

    def generate(self, messages: Sequence[Message], **how: Any) -> Generation:
        """Generate the answer and keep it."""
        self.said = super().generate(messages, **how)
        return self.said


def test_a_model_in_the_process_stops_when_its_client_leaves(tmp_path: Path) -> None:
    """If the client disconnects, a model in this process is cancelled."""
    model = Watched("word " * 1_000, tokens_per_s=20)
    with open_memory(tmp_path, model=model, config={"compression": {"auto": False}}) as memory:
        with listening(guarded(memory, tmp_path)) as url, asking(url):
            until(lambda: model.prompts)
        until(lambda: hasattr(model, "said"), within_s=10)
        assert model.said.finish is Finish.CANCELLED


def test_chats_that_wait_for_the_model_hold_no_other_request(tmp_path: Path) -> None:
    """However many chats wait for the model in this process, the other routes answer in time."""
    with open_memory(tmp_path, model=ScriptedModel("word " * 1_000, tokens_per_s=20)) as memory, ExitStack() as stack:
        url = stack.enter_context(listening(guarded(memory, tmp_path)))
        for number in range(10, 55):
            stack.enter_context(asking(url, TALK.replace("Talk", f"No{number}")))
        until(lambda: memory.count_operations() == 45)
        assert httpx2.get(f"{url}/api/memory/window", headers=OWN, timeout=20).status_code == 200


def test_tools_and_pictures_take_room_in_the_window(chat: Chat) -> None:
    """If tools, pictures or the requested answer length fill the window, no memories are added. A header says so."""
    chat.memory.record_operation("decision", {"text": REDIS})
    function = {"name": "f", "description": "word " * 4_000, "parameters": {"type": "object", "properties": {}}}
    chat.say(user("Where do the sessions live?"), tools=[{"type": "function", "function": function}])
    assert chat.sent() == [user("Where do the sessions live?")]
    parts = text_part("And where do the sessions live?")
    chat.say(user([*parts, *[PICTURE] * 3]))
    assert chat.sent() == [user([*parts, *[PICTURE] * 3])]
    chat.llama.whole = True
    raw = chat.client.chat.completions.with_raw_response.create(
        model="local", messages=[user("Why do the sessions live there?")], max_tokens=4_096
    )
    assert chat.sent() == [user("Why do the sessions live there?")]
    assert raw.headers["x-memory-problem"].startswith("no memories were added: ")
    chat.say(user([*parts, PICTURE]))
    assert "Redis" in str(chat.sent())


def test_a_body_that_does_not_come_is_not_waited_for(chat: Chat) -> None:
    """A request whose body does not arrive is answered 504 after the server's timeout."""
    with asking(chat.url, body="{", length=500) as connection:
        assert connection.recv(100).startswith(b"HTTP/1.1 504")


def test_a_first_chat_is_not_given_its_own_words(chat: Chat) -> None:
    """In an empty memory, the second turn gets no context, which would only have what the client sends anyway."""
    first = [user("Our gateway uses port 9000."), said("The answer is 42.")]
    chat.say(first[0])
    chat.say(*first, user("And what is the weather like?"))
    assert chat.sent() == [*first, user("And what is the weather like?")]
