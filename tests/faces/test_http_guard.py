"""No route answers a caller that may not ask: tested for every route in the application's own route table."""

from __future__ import annotations

import logging
import re
import stat
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from orchestra_mem import ServerError
from orchestra_mem.faces.http.guard import Rates
from orchestra_mem.faces.http.tokens import AccessTokens, load_tokens
from orchestra_mem.work_types import WorkKind
from tests.builders import cases
from tests.faces.http_client import TOKENS, Served, serving

SECRET = "zephyrberg"
ASKED = "the codename in production"  # finds the secret without containing it, as some answers repeat the question
API = ("/api/memory/", "/v1/", "/mcp")
STRICT = {"catalog": {"isolation": "strict"}}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A memory in which everything belongs to agent B and contains one secret word."""
    with serving(tmp_path_factory.mktemp("guarded"), config=STRICT) as served:
        memory = served.memory
        memory.catalog.store({"content": f"We decided that {SECRET} is the codename."}, agent="b")
        for kind in ("decision", "message"):
            memory.record_operation(kind, {"text": f"We decided: never use {SECRET} in production."}, agent="b")
        memory.state.create(WorkKind.TASK, f"Rename {SECRET}")
        memory.refresh()
        yield served


def _requests(served: Served) -> list[tuple[str, str, dict[str, Any]]]:
    """Make requests for each route that would return or change what belongs to agent B."""
    item = served.memory.catalog.get("M1").id
    session = served.memory.sessions()[0].id
    fill = {"memory_id": item, "session_id": session, "name": "decision_log", "version": "1", "conflict": "x",
            "item": "1"}  # fmt: skip
    query = {
        "/search": {"q": ASKED}, "/relevant": {"message": ASKED, "ci": "b"}, "/catalog": {"ci": "b"},
        "/observations": {"worker": "b"}, "/operations": {"agent": "b"}, "/retrieve": {"task": ASKED},
        "/recommend": {"task": ASKED}, "/expand": {"reference": "op1"}, "/context": {"query": ASKED},
        "/original": {"of": "op1"}, "/prompt": {"query": ASKED},
    }  # fmt: skip
    body: dict[str, Any] = {
        "POST /observations": {"content": "x", "worker": "b"}, "POST /catalog": {"content": "x", "ci_source": "b"},
        "POST /operations": {"type": "x", "data": "x", "agent": "b"}, "POST /work": {"kind": "task", "title": "x"},
        "PATCH /work/{item}": {"status": "done"}, "POST /conflicts/{conflict}": {"accept": True},
        "POST /mcp": {
            "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": "search", "arguments": {"query": ASKED}},
        },
    }  # fmt: skip
    form: dict[str, dict[str, str]] = {
        "/catalog/{memory_id}": {"do": "forget"},
        "/conflicts/{conflict}": {"keep": "machine"}, "/edit/{name}": {"text": "x", "opened": ""},
        "/versions/{name}": {"version": "1"},
    }  # fmt: skip
    found = []
    for method, route in served.routes:
        short = route.removeprefix("/api/memory")
        what: dict[str, Any] = {"params": query.get(short, {})}
        if method == "POST" and not route.startswith(API):
            what["data"] = form[route]
        elif method in ("POST", "PATCH", "PUT"):
            what["json"] = body.get(f"{method} {short}", {})
        found.append((method, re.sub(r"{(\w+)}", lambda name: fill[name[1]], route), what))
    return found


def test_no_route_answers_without_a_token(served: Served) -> None:
    """Every route answers 401, with the authentication header, to a missing, foreign, truncated or malformed token."""
    other = AccessTokens("the-token-of-another-memory")
    bad = [None, "Bearer x", f"Bearer {other.own}", f"Bearer {other.of_agent('b')}", f"Bearer {TOKENS.own[:-1]}",
           f"Basic {TOKENS.own}", f"Bearer {TOKENS.of_agent('b')[:-1]}", "Bearer agent..",
           "Bearer agent.\xff.x"]  # fmt: skip
    requests = _requests(served)
    assert len(requests) > 35
    for method, path, what in requests:
        for header in bad:
            headers = {} if header is None else {b"Authorization": header.encode("latin-1")}
            answer = served.bare.request(method, path, headers=headers, **what)
            assert answer.status_code == 401, (method, path, header)
            assert answer.headers["www-authenticate"] == 'Bearer realm="orchestra-mem"'
            assert SECRET not in answer.text


def test_a_browser_is_told_in_a_page_why_it_is_refused(served: Served) -> None:
    """A browser gets refusals as HTML pages with the same status, an explanation, and no inline script allowed."""
    page = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    for method, path, what in _requests(served):
        answer = served.bare.request(method, path, headers=page, **what)
        assert (answer.status_code, answer.headers["content-type"]) == (401, "text/html; charset=utf-8"), path
        assert answer.headers["www-authenticate"] == 'Bearer realm="orchestra-mem"'
        assert ("orchestra-mem serve token" in answer.text) == (method != "HEAD")
        assert SECRET not in answer.text
        assert "'unsafe" not in answer.headers["content-security-policy"]
    wrong = served.bare.get("/", params={"token": "wrong"}, headers=page)
    assert "The given token is not valid for this memory" in wrong.text
    foreign = served.client.get("/", headers=page | {"Host": "evil.example"})
    assert (foreign.status_code, "server.allowed_hosts" in foreign.text) == (403, True)
    missing = served.client.get("/api/memory/sessions/<script>", headers=page)
    assert (missing.status_code, "&#39;&lt;script&gt;&#39;" in missing.text) == (404, True)
    agents = served.bare.get("/api/memory/status", headers=page | served.agent("a"))
    assert (agents.status_code, "it requires the owner&#39;s token" in agents.text) == (403, True)


@pytest.mark.parametrize("headers", cases("no_route_answers_another_host_or_page"))
def test_no_route_answers_another_host_or_page(served: Served, headers: dict[str, str]) -> None:
    """Every route answers 403 to a foreign host or origin, even with a valid token."""
    for method, path, what in _requests(served):
        answer = served.client.request(method, path, headers=headers, **what)
        assert answer.status_code == 403, (method, path)
        assert SECRET not in answer.text


def test_a_browser_changes_something_only_from_a_page_of_the_server(served: Served) -> None:
    """With only the cookie every changing request needs an `Origin` of the server, or it is answered 403."""
    served.bare.cookies.set("orchestra-mem-8377", TOKENS.of_agent("a"))
    changing = [each for each in _requests(served) if each[0] not in ("GET", "HEAD")]
    assert len(changing) > 10
    for method, path, what in changing:
        silent = served.bare.request(method, path, **what)
        assert (silent.status_code, "`Origin` header" in silent.text) == (403, True), (method, path)
        own = served.bare.request(method, path, headers={"Origin": "http://127.0.0.1:8377"}, **what)
        assert "`Origin` header" not in own.text, (method, path)
    served.bare.cookies.clear()


def test_the_server_answers_by_its_own_names_and_to_its_own_page(served: Served) -> None:
    """The server answers requests for its own names and pages, at any port that a tunnel gives it."""
    for headers in (
        {"Host": "localhost:9000"}, {"Host": "[::1]:8377"}, {"Host": "LOCALHOST"}, {"Sec-Fetch-Site": "same-origin"},
        {"Origin": "http://127.0.0.1:8377", "Sec-Fetch-Site": "same-origin"},
    ):  # fmt: skip
        assert served.client.get("/api/memory/window", headers=headers).status_code == 200


def test_no_route_gives_an_agent_what_is_another_agents(served: Served) -> None:
    """Under strict isolation no route returns or changes agent B's data when asked with agent A's token."""
    before = [served.client.get(f"/api/memory/{path}").json() for path in ("catalog", "operations", "work")]
    for method, path, what in _requests(served):
        if path == "/api/memory/events":
            continue  # a stream, requested below
        answer = served.bare.request(method, path, headers=served.agent("a"), **what)
        assert answer.status_code != 500, (method, path)
        assert SECRET not in answer.text, (method, path)
    after = [served.client.get(f"/api/memory/{path}").json() for path in ("catalog", "operations", "work")]
    assert after == before
    refused = served.bare.get("/api/memory/events", headers=served.agent("a"))
    assert refused.status_code == 403
    called = next(what for _, path, what in _requests(served) if path == "/mcp")
    assert SECRET in served.client.post("/mcp", **called).text  # the owner gets it


def test_items_of_the_catalog_are_apart_by_default(tmp_path: Path) -> None:
    """By default no route gives agent A an item of B's, while A reads B's operations."""
    with serving(tmp_path) as served:
        served.memory.record_operation("note", {"text": "All may read this."}, agent="b")
        served.memory.state.create(WorkKind.TASK, "All may do this")
        served.memory.catalog.store({"content": f"We decided that {SECRET} is the codename."}, agent="b")
        served.memory.write_catalog()
        for method, path, what in _requests(served):
            if path != "/api/memory/events":
                answer = served.bare.request(method, path, headers=served.agent("a"), **what)
                assert SECRET not in answer.text, (method, path)
        seen = served.bare.get("/api/memory/operations", headers=served.agent("a")).json()
        assert [each["agent"] for each in seen["items"]] == ["b"]


def test_an_agent_acts_in_its_own_name(served: Served) -> None:
    """What an agent stores or records gets its own name, and the agent may not act as another.

    Text recalled from the memory, which may be private, is removed from what the agent records for others to read.
    """
    headers = served.agent("carl")
    stored = served.bare.post("/api/memory/catalog", headers=headers, json={"content": "Carl likes tea."})
    assert (stored.status_code, stored.json()["ci_source"], stored.json()["author"]) == (201, "carl", "machine")
    made = served.bare.post("/api/memory/observations", headers=headers, json={"content": "Carl made tea."})
    assert made.status_code == 201
    recalled = served.bare.get("/api/memory/relevant", headers=headers, params={"message": "tea"}).json()["text"]
    assert "Carl likes tea." in recalled
    (session,) = served.memory.sessions()
    said = {"content": f"{recalled}Carl drank it.", "session": session.id}
    assert served.bare.post("/api/memory/observations", headers=headers, json=said).status_code == 201
    seen = served.bare.get("/api/memory/observations", headers=headers).json()
    assert [each["content"] for each in seen["items"]] == ["Carl drank it.", "Carl made tea."]
    assert seen["total"] == 2
    operation = {"type": "note", "data": "Carl's", "key": "k"}
    served.send("POST", "operations", 201, json=operation | {"data": SECRET, "agent": "b"})
    taken = served.bare.post("/api/memory/operations", headers=headers, json=operation)
    assert (taken.status_code, taken.json()["detail"]) == (
        403, "idempotency key 'k' is already in use; use another",
    )  # fmt: skip
    found = served.bare.get("/api/memory/search", headers=headers, params={"q": "tea"}).json()["hits"]
    assert {hit["agent"] for hit in found} == {"carl"}
    problem = served.bare.get("/api/memory/relevant", headers=headers, params={"message": "tea", "ci": "b"})
    assert (problem.status_code, problem.json()["detail"]) == (403, "agent 'carl' may not act as 'b'")


def test_every_refusal_is_a_problem_body_in_a_sentence(served: Served) -> None:
    """Every refusal is an RFC 9457 problem with a sentence as detail and the usual security headers."""
    operations, as_json = "/api/memory/operations", {"content-type": "application/json"}
    not_read = "body: Input should be a valid dictionary or object to extract fields from"
    for answer, status, detail in (
        (served.bare.get("/"), 401, "a valid token is required"),
        (served.client.get("/nothing"), 404, "there is no such address: `/openapi.json` lists the routes"),
        (served.client.post("/v1/responses"), 404, "there is no such address: `/openapi.json` lists the routes"),
        (served.client.post("/api/memory/status"), 405, "Method Not Allowed"),
        (served.client.get("/api/memory/catalog/M99"), 404, "there is no item 'M99' in the catalog"),
        (served.client.post(operations, content=b'{"type":\n x}', headers=as_json), 422,
         "the request has 1 fault: the body is not JSON: Expecting value: line 2 column 2 (char 10)"),
        (served.client.post(operations, data={"a": "b"}), 422, f"the request has 2 faults: {not_read}; "
         "header.content-type: application/x-www-form-urlencoded was sent; send application/json"),
        (served.client.post(operations, content=b"{}"), 422,
         f"the request has 2 faults: {not_read}; header.content-type: nothing was sent; send application/json"),
        (served.client.post(operations, content=b"{}\n", headers={"content-type": "application/x-ndjson"}), 422,
         f"the request has 2 faults: {not_read}; header.content-type: application/x-ndjson was sent; send application"),
        (served.client.post(operations, json=[]), 422, f"the request has 1 fault: {not_read}"),
        (served.client.put("/api/memory/documents/work_plan", content="# A", headers=as_json), 422,
         "the request has 2 faults: the body is not JSON: Expecting value: line 1 column 1 (char 0); "
         "header.content-type: application/json was sent; send "),
        (served.client.post(operations, content=b'"\xff"', headers=as_json), 400,
         "the body cannot be read: 'utf-8' codec can't decode byte 0xff in position 1"),
    ):  # fmt: skip
        assert answer.status_code == status
        assert answer.headers["content-type"] == "application/problem+json"
        body = answer.json()
        assert body["status"] == status
        assert body["type"] == "about:blank"
        assert body["detail"].startswith(detail)
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "same-origin"
        assert answer.headers["cache-control"] == "no-store"
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'; script-src 'self';" in policy
        assert "unsafe" not in policy
        assert "access-control-allow-origin" not in answer.headers


def test_a_body_that_is_too_large_is_refused(tmp_path: Path) -> None:
    """A body over the limit is answered 413, whether its length is declared or exceeded while it is read."""
    with serving(tmp_path, max_body_bytes=1_000) as served:
        whole = {"type": "x", "data": "y" * 2_000}
        for what in ({"json": whole}, {"content": iter([b'{"type": "', b"y" * 2_000, b'"}']),
                                       "headers": {"content-type": "application/json"}}):  # fmt: skip
            answer = served.client.post("/api/memory/operations", **what)
            assert (answer.status_code, answer.headers["content-type"]) == (413, "application/problem+json")
            assert "`server.max_body_bytes`" in answer.json()["detail"]
        assert served.memory.count_operations() == 0


def test_who_asks_too_often_has_to_wait(tmp_path: Path) -> None:
    """Each token, and each address without one, has its own rate limit; others are answered meanwhile."""
    with serving(tmp_path, requests_per_s=1) as served:
        codes = [served.client.get("/api/memory/window").status_code for _ in range(3)]
        assert codes == [200, 200, 429]
        refused = served.client.get("/api/memory/window")
        assert refused.headers["retry-after"] == "1"
        assert refused.json()["detail"].startswith("too many requests")
        assert served.bare.get("/api/memory/catalog", headers=served.agent("a")).status_code == 200
        assert [served.bare.get("/").status_code for _ in range(3)] == [401, 401, 429]


def test_rates_are_counted_over_time() -> None:
    """A sender may burst to twice its rate, then refills over time; entries of old senders are dropped."""
    now = [0.0]
    rates = Rates(2, clock=lambda: now[0])
    assert [rates.wait_s("a") for _ in range(5)] == [0, 0, 0, 0, 0.5]
    now[0] = 0.6
    assert [rates.wait_s("a") > 0, rates.wait_s("a") > 0] == [False, True]
    assert rates.wait_s("a") > 0
    for number in range(20_000):
        rates.wait_s(str(number))
    assert rates.wait_s("a") == 0  # its entry has been dropped


def test_an_answer_that_takes_too_long_is_given_up(tmp_path: Path) -> None:
    """A slow answer is given up with 504 and a message, and the next request is answered normally."""
    with serving(tmp_path, timeout_s=1) as served:
        recorded, done = threading.Event(), threading.Event()

        def wait(memory: object, **what: object) -> None:
            recorded.set()
            done.wait(30)

        served.memory.events.operation_recorded.connect(wait)  # blocks while it holds the memory's lock
        problem = served.send("POST", "operations", 504, json={"type": "x", "data": "x"})
        assert problem["detail"].startswith("no answer within 1 s")
        assert recorded.wait(30)  # the request may still take effect after it is given up
        done.set()
        assert served.get("operations")["total"] == 1


def test_other_pages_may_ask_where_the_settings_say_so(tmp_path: Path) -> None:
    """Only configured origins get CORS headers, and they need a token like everybody else.

    Their scripts may send any header, such as those of OpenAI's client, and read the status and the headers of every
    answer, also of a refusal.
    """
    page = "https://app.example"
    with serving(tmp_path, allowed_origins=["https://App.example/"], allowed_hosts=["memory.example"]) as served:
        ask = {"Origin": page, "Access-Control-Request-Method": "PUT", "Access-Control-Request-Headers": "If-Match"}
        allowed = served.bare.options("/api/memory/documents/work_plan", headers=ask)
        assert (allowed.status_code, allowed.headers["access-control-allow-origin"]) == (200, page)
        ask |= {"Access-Control-Request-Method": "POST"}
        openai = "authorization,content-type,x-memory,x-stainless-lang,x-stainless-retry-count"
        for path, header in (("/mcp", "Mcp-Protocol-Version"), ("/v1/chat/completions", openai)):
            asked = served.bare.options(path, headers=ask | {"Access-Control-Request-Headers": header})
            assert asked.status_code == 200
        assert (
            served.bare.options("/api/memory/window", headers=ask | {"Origin": "https://evil.example"}).status_code
            == 403
        )
        answer = served.client.get("/api/memory/window", headers={"Origin": page, "Sec-Fetch-Site": "cross-site"})
        assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (200, page)
        exposed = answer.headers["access-control-expose-headers"].split(", ")
        assert {"ETag", "Retry-After", "X-Memory", "X-Memory-Tokens", "X-Memory-Problem"} <= {*exposed}
        refused = served.bare.get("/api/memory/window", headers={"Origin": page})
        assert (refused.status_code, refused.headers["access-control-allow-origin"]) == (401, page)
        assert served.client.get("/api/memory/window", headers={"Host": "Memory.example"}).status_code == 200


def test_a_browser_keeps_the_token_that_the_address_had(served: Served) -> None:
    """The token in the address moves to an HttpOnly, SameSite cookie, and a redirect removes it from the address.

    Neither an empty token in the address nor cookies of other servers, however malformed, replace it.
    """
    first = served.bare.get("/", params={"token": TOKENS.own})
    assert (first.status_code, first.headers["location"]) == (303, "/")
    cookie = first.headers["set-cookie"]
    assert cookie == f"orchestra-mem-8377={TOKENS.own}; HttpOnly; Path=/; SameSite=strict"
    page = served.bare.get("/")  # the client keeps the cookie, like a browser
    assert page.status_code == 200
    assert re.findall("<script.*?>", page.text) == re.findall(
        r'<script src="/static/page\.js\?v=\w+" defer>', page.text
    )
    assert "/api/memory/observations" in served.bare.get("/api").text
    empty = served.bare.get("/", params={"token": ""})
    assert (empty.status_code, "set-cookie" in empty.headers) == (200, False)
    served.bare.cookies.clear()
    foreign = {"Cookie": f'foo={{"a":1}}; b c=d; e; orchestra-mem-8377={TOKENS.own}'}
    assert served.bare.get("/", headers=foreign).status_code == 200
    assert served.bare.get("/", params={"token": "wrong"}).status_code == 401
    assert served.bare.get("/api/memory/window", params={"token": TOKENS.own}).status_code == 401


def test_logs_have_nothing_of_the_memory(served: Served, caplog: pytest.LogCaptureFixture) -> None:
    """A request's log line has method, route, status and time, an unexpected error only its type; no content."""
    memory: Any = served.memory
    with caplog.at_level(logging.INFO, "orchestra_mem"), pytest.MonkeyPatch.context() as patch:
        served.get("catalog/M1")
        served.get("search", q=SECRET)
        served.client.post("/mcp", json={"id": SECRET})
        patch.setattr(type(memory), "losses", lambda self, session, limit: [][len(SECRET)])
        patch.setattr(type(memory), "audit", lambda self, where: int(SECRET))
        assert served.get("losses", 500)["detail"].startswith("internal error: ")
        served.get("audit", 500)
    lines = [each.getMessage() for each in caplog.records if each.name == "orchestra_mem.faces.http.guard"]
    assert [re.sub(r"[\d.]+ ms", "…", line) for line in lines] == [
        "GET /api/memory/catalog/{memory_id}: 200, …", "GET /api/memory/search: 200, …",
        "POST /mcp: 400, …",
        "a request failed: IndexError; start the server with --debug to log where", "GET /api/memory/losses: 500, …",
        "a request failed: ValueError; start the server with --debug to log where", "GET /api/memory/audit: 500, …",
    ]  # fmt: skip
    assert SECRET not in caplog.text
    assert TOKENS.own not in caplog.text


# AccessTokens


def test_agents_tokens_carry_their_names() -> None:
    """An agent's token yields its name, for any valid name, and only with the memory's own key."""
    for name in ("reviewer", "Ünïcode 探", "a.b", "x" * 200):
        token = TOKENS.of_agent(f" {name} ")
        assert token.isascii()
        assert TOKENS.holder(token) == name
        assert AccessTokens("another-token-0123456789").holder(token) is None
    assert TOKENS.holder(TOKENS.own) == ""
    assert [TOKENS.holder(bad) for bad in ("", "agent", "agent.=.x", "agent.\udcff.x", "x" * 100_000)] == [None] * 5
    for name in ("", " ", "global", "*", "a\nb", "x" * 201):
        with pytest.raises(ServerError, match="invalid agent name"):
            TOKENS.of_agent(name)
    assert TOKENS.own not in repr(TOKENS)


def test_the_token_is_made_once_and_only_its_user_may_read_it(tmp_path: Path) -> None:
    """The token is created once in a git-ignored file of mode 0600, unless the environment or a file gives one."""
    made = load_tokens(tmp_path, {})
    file = tmp_path / "server" / "token"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert (tmp_path / "server" / ".gitignore").read_text() == "*\n"
    assert (load_tokens(tmp_path, {}), made.given, len(made.own) >= 40) == (made, False, True)
    given = load_tokens(tmp_path, {"ORCHESTRA_MEM_TOKEN": "chosen-by-a-person-1234"})
    assert (given.own, given.given) == ("chosen-by-a-person-1234", True)
    own = load_tokens(tmp_path, {"ORCHESTRA_MEM_TOKEN": "chosen-by-a-person-1234"}, tmp_path / "mine")
    assert (own.given, (tmp_path / ".gitignore").exists()) == (True, False)
    file.chmod(0o644)
    with pytest.raises(ServerError, match="has mode 644: other users can read the token; run chmod 600"):
        load_tokens(tmp_path, {})
    for bad in ("short", "with blanks in it 0123456789", "ümläüt-0123456789-0123"):
        with pytest.raises(ServerError, match="ORCHESTRA_MEM_TOKEN does not contain a valid token"):
            load_tokens(tmp_path, {"ORCHESTRA_MEM_TOKEN": bad})


def test_first_starts_at_once_agree_on_the_token(tmp_path: Path) -> None:
    """Eight first starts at the same time read the same token and leave no other file in the folder."""
    barrier = threading.Barrier(8)

    def start(folder: Path) -> str:
        barrier.wait(10)
        return load_tokens(folder, {}).own

    with ThreadPoolExecutor(8) as pool:
        for number in range(10):
            assert len({*pool.map(start, [tmp_path / str(number)] * 8)}) == 1
            assert {path.name for path in (tmp_path / str(number) / "server").iterdir()} == {"token", ".gitignore"}
