"""The MCP server over stdio and HTTP, driven by the official client: what each tool answers and refuses."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import httpx2
import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from orchestra_mem import open_memory
from orchestra_mem.faces.http.application import make_application
from orchestra_mem.faces.http.guard import RequestGuard
from orchestra_mem.faces.mcp_server import TOOLS
from orchestra_mem.settings import ServerSettings
from tests.builders import cases
from tests.faces.conftest import CHECKOUT, Program, start
from tests.faces.http_client import TOKENS, listening, serving

ENVIRONMENT = os.environ | {"PYTHONPATH": str(CHECKOUT), "PYTHONDONTWRITEBYTECODE": "1", "PYTHONWARNINGS": "error"}
SETTINGS = ServerSettings(allowed_hosts=["the.server.example"])
TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")


class Connection:
    """A synchronous wrapper of a client whose event loop runs in another thread."""

    def __init__(self, portal: BlockingPortal, client: Client) -> None:
        self._portal = portal
        self.client = client

    def ask(self, call: Any, *given: Any) -> Any:
        """Call a method of the client."""
        return self._portal.call(call, *given)

    def __call__(self, tool: str, *, refused: bool = False, **arguments: Any) -> str:
        """Call a tool, expect an answer or a refusal, and return its text with times of day replaced by TIME."""
        done = self.ask(self.client.call_tool, tool, arguments)
        assert done.is_error is refused, done
        (content,) = done.content
        return TIME.sub("TIME", content.text)


@contextmanager
def connected(folder: Path, *options: str) -> Iterator[Connection]:
    """Start a server in a folder and connect to it."""
    parameters = StdioServerParameters(
        command=sys.executable, args=["-m", "orchestra_mem", "mcp", *options], cwd=folder, env=ENVIRONMENT
    )
    with (
        (folder.parent / "errors").open("w") as errors,
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(Client(stdio_client(parameters, errlog=errors))) as client,
    ):
        yield Connection(portal, client)


@contextmanager
def connected_by_http(folder: Path, *options: str) -> Iterator[Connection]:
    """Serve the memory of a folder over HTTP and connect with the token of its owner or of `--agent NAME`."""
    token = TOKENS.of_agent(options[-1]) if options else TOKENS.own
    with open_memory(folder) as memory, start_blocking_portal() as portal:
        guarded = RequestGuard(make_application(memory, folder, SETTINGS), TOKENS, SETTINGS)
        with listening(guarded) as url:
            headers = {"Authorization": f"Bearer {token}", "Host": "the.server.example"}
            http = portal.wrap_async_context_manager(httpx2.AsyncClient(headers=headers))
            with http as sender:
                transport = streamable_http_client(f"{url}/mcp", http_client=sender)
                made = Client(transport, mode="legacy" if options else "auto")  # covers both protocol versions
                with portal.wrap_async_context_manager(made) as client:
                    yield Connection(portal, client)


WAYS = {"stdio": connected, "http": connected_by_http}


@pytest.fixture(scope="module", params=WAYS)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    """A server for the owner of a memory that has some operations and work items."""
    folder = tmp_path_factory.mktemp("mcp") / "project"
    folder.mkdir()
    with WAYS[request.param](folder) as server:
        assert server("record", type="decision", data="We deploy on Tuesdays, as Ann is there.") == "Recorded as op1.\n"
        assert server("record", type="note", data={"seen": ["é", 1]}, agent="bob", key="k") == "Recorded as op2.\n"
        assert server("record", type="note", data={"seen": ["é", 1]}, agent="bob", key="k") == "Recorded as op2.\n"
        said = server("record", type="note", data="Something else.", key="k")
        assert said == "Not recorded: op2 has the key 'k'. Record anything else with another key.\n"
        assert server("work_add", kind="epic", title="Sign in") == "Added epic 1.\n"
        assert server("work_add", kind="story", title="By mail", parent=1) == "Added story 2.\n"
        assert server("work_add", kind="epic", title="Pay", depends_on=[1]) == "Added epic 3.\n"
        with (folder / ".obra" / "memory" / "decision_log.md").open("ab") as log:
            log.write(b"<!-- caf\xe9 -->\n")
        yield server
    if request.param == "stdio":
        made, *warned = (folder.parent / "errors").read_text().splitlines()
        assert made == f"created a new memory in {folder / '.obra'}"
        assert all("decision_log.md:19: is not UTF-8: 0xe9 at byte 9" in each for each in warned)


def test_every_tool_says_what_it_costs_and_whether_it_changes_anything(server: Connection) -> None:
    """Each tool states its cost, its hints say whether it reads, changes or removes, and the docs match its budget."""
    assert getattr(server.client.server_info, "version", None) == version("orchestra-mem")
    tools = server.ask(server.client.list_tools).tools
    assert [tool.name for tool in tools] == [*TOOLS]
    assert all("Costs" in tool.description and len(tool.description) < 250 for tool in tools)
    hints = {tool.name: tool.annotations for tool in tools}
    assert {name for name, each in hints.items() if not each.read_only_hint} == {
        "record", "remember", "forget", "work_add", "work_set"
    }  # fmt: skip
    assert {name for name, each in hints.items() if each.destructive_hint} == {"forget", "work_set"}
    budgeted = {tool.name for tool in tools if "max_tokens" in tool.input_schema["properties"]}
    assert budgeted == {name for name, each in hints.items() if each.read_only_hint}
    page = (CHECKOUT / "docs" / "mcp.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \|.*\| ([\d,]*) ?\|$", page, re.MULTILINE))
    schemas = {tool.name: tool.input_schema["properties"] for tool in tools}
    assert rows == {
        name: f"{schema['max_tokens']['default']:,}" if name in budgeted else "" for name, schema in schemas.items()
    }


@pytest.mark.parametrize(("tool", "arguments", "answer"), cases("lists_are_told_entry_by_entry"))
def test_lists_are_told_entry_by_entry(server: Connection, tool: str, arguments: dict[str, Any], answer: str) -> None:
    """A list is fenced, with a line per entry and the offset to continue at."""
    assert server(tool, **arguments) == answer


def test_what_was_recorded_is_found_and_given_word_for_word(server: Connection) -> None:
    """A recorded text is returned verbatim by search, retrieve, context and expand, and its session is listed."""
    said = "We deploy on Tuesdays, as Ann is there."
    found = server("search", query="When do we deploy?", limit=1)
    hit = re.fullmatch(
        r"```recalled search\n(op \d+|\S+) \(.+; \d+%\)\n  (.+)\n```\nThere is more: continue with offset=1\.\n", found
    )
    assert hit
    assert said in hit[2]
    assert said in server("expand", reference=hit[1])
    assert hit[1] not in server("search", query="When do we deploy?", limit=1, offset=1)
    for answer in (
        server("retrieve", task="deploy"), server("context", query="deploy"), server("expand", reference="op1"),
    ):  # fmt: skip
        assert re.match(r"```+recalled ", answer), answer
        assert said in answer
        assert answer.endswith("```\n")
    assert re.fullmatch(r"```recalled sessions\n[0-9a-f-]{36} active, TIME\n```\n", server("sessions"))


def test_what_is_remembered_can_be_forgotten(server: Connection) -> None:
    """A remembered item can be expanded, and after `forget` a search does not find it."""
    stored = server("remember", content="The build needs Java 21.", type="insight", tags=["build"])
    named = re.fullmatch(r"Stored as M1 \((mem_\w+)\)\.\n", stored)
    assert named
    assert f"\n{named[1]} (" in server("search", query="The build needs Java 21.")
    assert "The build needs Java 21." in server("expand", reference="M1")
    assert server("forget", item="M1") == "M1 is hidden from everybody.\n"
    assert "The build needs Java 21." not in server("search", query="The build needs Java 21.")


def test_null_leaves_an_optional_argument_out(server: Connection) -> None:
    """Null for an optional argument, which strict clients send for each that is not used, counts as left out."""
    given: dict[str, Any] = {"query": "deploy on Tuesdays", "limit": 1}
    assert server("search", **given, offset=None, max_tokens=None) == server("search", **given)
    assert server("search", query=None, refused=True).endswith("query: Input should be a valid string")


def test_work_moves_on(server: Connection) -> None:
    """A work item can be added and moved, and its history has the reason."""
    made = server("work_add", kind="task", title="Ask Ann", description="She knows.", assignee="bob")
    number = int(made.removeprefix("Added task ").removesuffix(".\n"))
    moved = server("work_set", id=number, status="in-progress", reason="she is there")
    assert moved == f"task {number} is in progress.\n"
    shown = server("work_show", id=number)
    assert "She knows." in shown
    assert "status: pending -> in progress (she is there)" in shown


@pytest.mark.parametrize(("tool", "arguments", "words"), cases("wrong_arguments_are_refused_in_words"))
def test_wrong_arguments_are_refused_in_words(
    server: Connection, tool: str, arguments: dict[str, Any], words: str
) -> None:
    """Wrong arguments are refused as an error on one line, without a traceback or a command to run."""
    told = server(tool, refused=True, **arguments)
    assert "`orchestra-mem" not in told
    assert told.startswith(words)
    assert told.count("\n") == 0
    assert "Traceback" not in told


def test_no_answer_is_over_its_budget_and_pages_lose_nothing(tmp_path: Path) -> None:
    """Long texts and lists are complete over pages, each within its token budget, whatever fences they contain."""
    folder = tmp_path / "project"
    folder.mkdir()
    text = "".join(f"Line {number}: ```` of the `text` 日本語.\n" for number in range(300))
    with open_memory(folder) as memory, connected(folder) as server:
        server("record", type="note", data=text)
        for number in range(30):
            server("record", type="step", data=f"Step {number} of the way.")
        asked: list[tuple[str, dict[str, Any]]] = [
            ("expand", {"reference": "op1"}), ("recent", {"type": "step", "limit": 100})
        ]  # fmt: skip
        for tool, given in asked:
            pages, offset = [], 0
            while True:
                page = server(tool, **given, offset=offset, max_tokens=200)
                assert memory.counter.count(page) <= 200
                fence = re.match(r"(`+)recalled \w+\n", page)
                assert fence
                body, _, behind = page.removeprefix(fence[0]).rpartition(f"\n{fence[1]}\n")
                pages.append(body)
                if not behind:
                    break
                more = re.search(r"continue with offset=(\d+)", behind)
                assert more
                assert int(more[1]) > offset
                offset = int(more[1])
            assert len(pages) > 3
            whole = "".join(pages)
            assert all(whole.count(f"Step {number} of") == 1 for number in range(30)) or tool == "expand"
            assert tool == "recent" or all(whole.count(f"Line {number}:") >= 1 for number in range(300))
        for tool, argument in (("retrieve", "task"), ("context", "query"), ("search", "query")):
            given = {argument: "text", "max_tokens": 100}
            answer = server(tool, **given)
            assert memory.counter.count(answer) <= 100


def test_documents_are_resources_and_a_prompt_goes_on(server: Connection) -> None:
    """Documents are resources by name, even if not UTF-8; the prompt to continue has the project's fenced context."""
    found = server.ask(server.client.list_resources).resources
    names = ("project_state", "work_plan", "decision_log")
    assert [str(each.uri) for each in found][:3] == [f"memory://{name}" for name in names]
    (log,) = server.ask(server.client.read_resource, "memory://decision_log").contents
    assert log.text.endswith("<!-- caf? -->\n")
    (plan,) = server.ask(server.client.read_resource, "memory://work_plan").contents
    assert plan.mime_type == "text/markdown"
    assert "Sign in" in plan.text
    with pytest.raises(MCPError, match="there is no document 'none'; use one of: project_state, "):
        server.ask(server.client.read_resource, "memory://none")
    (message,) = server.ask(server.client.get_prompt, "continue_where_we_stopped").messages
    assert message.content.text.startswith("Continue where we stopped. ")
    assert "```recalled context\n" in message.content.text


@pytest.mark.parametrize("way", WAYS)
def test_an_agent_sees_its_own_and_is_refused_the_rest(tmp_path: Path, way: str) -> None:
    """With `--agent` tools act in that agent's name, and tools that an agent may not use are neither listed nor run."""
    folder = tmp_path / "project"
    folder.mkdir()
    with open_memory(folder) as memory:
        memory.catalog.store({"content": "The key lies under the mat.", "ci_source": "ann"})
    with WAYS[way](folder, "--agent", "bob") as server:
        assert "The key lies" not in server("search", query="The key lies under the mat.")
        assert "M1" in server("expand", reference="M1", refused=True)
        assert server("remember", content="Ann is away.").startswith("Stored as M2 ")
        assert server("record", type="note", data="Seen.") == "Recorded as op1.\n"
        assert "op1 TIME note by bob: Seen." in server("recent")
        assert "op1 TIME" in server("recent", since="today")
        assert server("recent", since="9999-01-01") == "Nothing found.\n"
        assert server("record", type="rule", data="Never bake on Sundays.") == "Recorded as op2.\n"
        assert "Never bake on Sundays." in server("facts", since="today")
        assert server("facts", since="9999-01-01") == "Nothing found.\n"
        words = server("record", type="note", data="Seen.", agent="ann", refused=True)
        assert words == "agent 'bob' may not act as 'ann'"
        listed = [tool.name for tool in server.ask(server.client.list_tools).tools]
        assert listed == [name for name in TOOLS if name != "sessions" and not name.startswith("work_")]
        for tool, given in (("work_list", {}), ("work_show", {"id": 1}), ("work_set", {"id": 1, "status": "done"}),
                            ("work_add", {"kind": "epic", "title": "x"}), ("sessions", {})):  # fmt: skip
            assert server(tool, refused=True, **given) == f"Unknown tool: {tool}"
        assert server.ask(server.client.list_resources).resources == []
        with pytest.raises(MCPError, match="documents are not available to agents"):
            server.ask(server.client.read_resource, "memory://work_plan")
    with open_memory(folder) as memory:
        assert memory.catalog.get("M2").ci_source == "bob"


def test_a_request_is_answered_for_the_caller_whose_token_it_bears(tmp_path: Path) -> None:
    """Requests are answered by their token alone; a session id in the headers has no effect and none is issued."""
    versions = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18"}
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}

    def ask(method: str, given: Any, **headers: str) -> Any:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": given}
        answer = served.bare.post("/mcp", json=body, headers=versions | headers)
        assert "mcp-session-id" not in answer.headers
        return answer.json()["result"]

    with serving(tmp_path, config={"catalog": {"isolation": "strict"}}) as served:
        served.memory.record_operation("note", "The key lies under the mat.", agent="ann")
        agents = {name: served.agent(name) | {"Mcp-Session-Id": "a session"} for name in ("ann", "bob")}
        for headers in ({"Authorization": f"Bearer {TOKENS.own}"}, *agents.values()):
            assert ask("initialize", hello, **headers)["serverInfo"]["name"] == "orchestra-mem"
        seen = {name: str(ask("tools/call", {"name": "recent"}, **headers)) for name, headers in agents.items()}
        assert {name: "The key lies" in text for name, text in seen.items()} == {"ann": True, "bob": False}
        for method in ("GET", "DELETE"):
            assert served.client.request(method, "/mcp", headers=agents["ann"]).status_code == 405


def test_serve_works_without_the_sdk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the MCP SDK the server runs, and its MCP route answers 501 with what to install."""
    monkeypatch.delitem(sys.modules, "orchestra_mem.faces.mcp_server")
    monkeypatch.setitem(sys.modules, "mcp.server.mcpserver", None)
    with serving(tmp_path) as served:
        answer = served.client.post("/mcp", json={})
        assert (answer.status_code, answer.json()["detail"]) == (
            501, "MCP needs `pip install 'orchestra-mem[mcp]'` where the server runs",
        )  # fmt: skip


def test_stdout_has_the_protocol_alone(run: Program) -> None:
    """Every line on stdout is a protocol message, whatever is sent; end of input or a signal ends the program.

    A call with half a surrogate pair, as JavaScript makes when it cuts an emoji, is answered, too.
    """
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    call = {"name": "record", "arguments": {"type": "note", "data": "half an emoji: \ud83d"}}
    sent = [
        json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}),
        json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        "this is no JSON", "[]",
        json.dumps({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}),
    ]  # fmt: skip
    how: dict[str, Any] = {"cwd": run.folder, "env": ENVIRONMENT, "stdin": subprocess.PIPE}
    with start("mcp", "--debug", **how) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("".join(f"{line}\n" for line in sent))
        process.stdin.flush()
        lines: list[Any] = []
        while not any(line.get("id") == 2 for line in lines):
            lines.append(json.loads(process.stdout.readline()))
        rest, _ = process.communicate(timeout=20)
    assert [line["jsonrpc"] for line in lines] == ["2.0"] * len(lines)
    assert lines[-1]["result"]["content"][0]["text"] == "Recorded as op1.\n"
    assert (rest, process.returncode) == ("", 0)
    with start("mcp", "--debug", **how) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f"{sent[0]}\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["id"] == 1
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=20) == -signal.SIGINT


def test_a_client_that_closes_stdin_at_once_gets_its_answers(run: Program) -> None:
    """All requests that were sent before stdin was closed are answered, but no cancelled one; then the program ends."""
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    calls = [{"name": "record", "arguments": {"type": "note", "data": f"Note {each}."}} for each in range(20)]
    sent: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": hello}, {"method": "notifications/initialized"},
        *({"id": 2 + place, "method": "tools/call", "params": call} for place, call in enumerate(calls)),
        {"id": 50, "method": "no/such/method"}, {"id": 51, "method": "tools/call", "params": calls[0]},
        {"method": "notifications/cancelled", "params": {"requestId": 51}},
    ]  # fmt: skip
    with start("mcp", cwd=run.folder, env=ENVIRONMENT, stdin=subprocess.PIPE) as process:
        lines = [f"{json.dumps({'jsonrpc': '2.0'} | each)}\n" for each in sent]
        said, _ = process.communicate("".join(lines), timeout=60)
    answers = {line["id"]: line for line in map(json.loads, said.splitlines())}
    assert {*range(1, 22), 50} <= {*answers} <= {*range(1, 22), 50, 51}
    texts = sorted(answers[each]["result"]["content"][0]["text"] for each in range(2, 22))
    assert [len(texts), texts[0][:12], process.returncode] == [20, "Recorded as ", 0]


def test_what_keeps_it_from_starting_is_told_in_a_sentence(run: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing extra, or an agent with the name of all, stops `mcp` with a message."""
    run("mcp", "--agent", "global", exit_code=2)
    assert "'global' does not name a single agent; use another name" in " ".join(run.errors.replace("│", "").split())
    monkeypatch.delitem(sys.modules, "orchestra_mem.faces.mcp_server")
    monkeypatch.setitem(sys.modules, "mcp.server.mcpserver", None)
    run("mcp", exit_code=1)
    assert run.errors.startswith("orchestra-mem: mcp needs `pip install 'orchestra-mem[mcp]'`: ")


@pytest.fixture
def home(run: Program, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder that does not exist yet."""
    home = run.folder.parent / "home"
    for name in ("HOME", "USERPROFILE", "APPDATA"):
        monkeypatch.setenv(name, str(home))
    for name in ("XDG_CONFIG_HOME", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    return home


def test_clients_are_given_their_configuration(run: Program, home: Path) -> None:
    """`mcp --install` prints a client's entry with this Python and project, names its file and writes nothing."""
    arguments = ["-m", "orchestra_mem", "mcp", "--project", str(run.folder), "--agent", "bob"]
    server = {"command": sys.executable, "args": arguments}
    for client in ("claude-code", "claude-desktop", "cursor"):
        assert run.json("mcp", "--install", client, "--agent", "bob") == {"mcpServers": {"orchestra-mem": server}}
    told = run("mcp", "--install", "vs-code", "--agent", "bob")
    assert json.loads(told) == {"servers": {"orchestra-mem": {"type": "stdio", **server}}}
    assert run.errors == f"add this to {run.folder}/.vscode/mcp.json, or let --write add it\n"
    told = run("mcp", "--install", "codex", "--agent", "bob")
    assert tomllib.loads(told) == {"mcp_servers": {"orchestra-mem": server}}
    assert run.errors == f"add this to {home}/.codex/config.toml, or let --write add it\n"
    assert ([*run.folder.iterdir()], home.exists()) == ([], False)
    run("mcp", "--write", exit_code=2)
    assert "it needs --install CLIENT" in run.errors


@pytest.mark.parametrize(("client", "file", "before"), cases("a_clients_file_is_written_and_what_is_there_stays"))
def test_a_clients_file_is_written_and_what_is_there_stays(
    run: Program, home: Path, client: str, file: str, before: str
) -> None:
    """`--write` creates a client's file or adds the entry to it, keeps the rest, and a second time changes nothing."""
    path, read = run.folder.parent / file, tomllib.loads if client == "codex" else json.loads
    if sys.platform != "linux" and client == "claude-desktop":
        pytest.skip("it is elsewhere")
    printed = read(run("mcp", "--install", client))
    ((section, entries),) = printed.items()
    assert run("mcp", "--install", client, "--write") == f"written to {path}\n"
    assert read(path.read_text("utf-8")) == printed
    path.write_text(before, "utf-8")
    path.chmod(0o600)
    run("mcp", "--install", client, "--write")
    text = path.read_text("utf-8")
    there = read(before) if before.strip() else {}
    assert read(text) == {**there, section: {**there.get(section, {}), **entries}}
    assert [*read(text)][: len(there)] == [*there]
    assert client != "codex" or text.startswith(before)
    assert client != "claude-code" or text.startswith('{\n    "a": 1.5,\n    "mcpServers": {\n        "b": {\n')
    assert run("mcp", "--install", client, "--write") == f"{path} already has this entry: nothing was changed\n"
    assert (path.read_text("utf-8"), path.stat().st_mode & 0o777) == (text, 0o600)
    assert [each.name for each in path.parent.iterdir() if each.name.startswith(path.name)] == [path.name]


def test_another_entry_is_replaced_and_both_are_told(run: Program, home: Path) -> None:
    """`--write` replaces another entry in JSON and prints both; in TOML it refuses."""
    (run.folder / ".mcp.json").write_text('{"mcpServers": {"orchestra-mem": {"command": "old"}, "b": {}}}')
    done = run.json("mcp", "--install", "claude-code", "--write")
    assert (done["changed"], done["before"], done["entry"]["command"]) == (True, {"command": "old"}, sys.executable)
    assert run.errors.startswith('before: {"command": "old"}\nnow: {"command": ')
    assert [*json.loads((run.folder / ".mcp.json").read_text())["mcpServers"]] == ["orchestra-mem", "b"]
    run("mcp", "--install", "codex", "--write")
    run("mcp", "--install", "codex", "--write", "--agent", "bob", exit_code=1)
    assert run.errors.endswith("add the entry by hand: it already has a different [mcp_servers.orchestra-mem]\n")


@pytest.mark.parametrize(("client", "file", "text", "why"), cases("a_file_that_cannot_be_kept_is_refused"))
@pytest.mark.nested
def test_a_file_that_cannot_be_kept_is_refused(
    run: Program, home: Path, client: str, file: str, text: str, why: str
) -> None:
    """A client's file that cannot be rewritten safely is left unchanged, with one line that says why."""
    path = run.folder / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode("latin-1"))
    run("mcp", "--install", client, "--write", exit_code=1)
    assert run.errors.startswith(f"orchestra-mem: {path.resolve()} was not changed, add the entry by hand: {why}")
    assert run.errors.count("\n") == 1
    assert path.read_bytes() == text.encode("latin-1")
