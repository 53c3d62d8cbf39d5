"""The server as a process: start, output, shutdown, and that no acknowledged operation is lost."""

from __future__ import annotations

import json
import re
import signal
import socket
import sys
import time
from pathlib import Path

import httpx2
import pytest

from orchestra_mem import open_memory
from orchestra_mem.types import SessionStatus
from tests.adapters.test_openai_http import Llama, serving
from tests.faces.conftest import Program, start
from tests.faces.server_process import running


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """An empty folder."""
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.mark.parametrize(("by", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_server_and_leaves_all_whole(project: Path, by: signal.Signals, code: int) -> None:
    """A signal ends the server and its event streams with the usual exit code; operations and session are kept."""
    with running(project) as server:
        assert server.client.post("operations", json={"type": "note", "data": "x"}).status_code == 201
        with server.client.stream("GET", "events") as stream:
            lines = filter(None, stream.iter_lines())
            assert [next(lines), next(lines)] == ["event: listening", "data: {}"]
            server.client.post("operations", json={"type": "note", "data": "y", "agent": "ann"})
            assert next(lines) == "event: operation_recorded"
            told = json.loads(next(lines).removeprefix("data: "))
            assert (told["operation"], told["type"], told["agent"]) == (2, "note", "ann")
            server.process.send_signal(by)
            assert [*lines] == []
        done, said = server.end(by)  # a second signal during the shutdown
        assert done == code
        assert "Traceback" not in said
    with open_memory(project) as memory:
        assert [each.data for each in memory.operations()] == ["x", "y"]
        assert [each.status for each in memory.sessions()] == [SessionStatus.ACTIVE]
        assert memory.get_stats()["problems"] == []


def test_a_chat_in_mid_stream_is_cut_off_and_recorded(project: Path) -> None:
    """A chat interrupted by shutdown breaks off for its client, and the partial answer is recorded as cancelled."""
    llama = Llama()
    llama.pause_s, llama.pieces = 0.1, ["word "] * 300
    with serving(llama) as model, running(project, env={"ORCHESTRA_MEM__LLM__BASE_URL": model}) as server:
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "recent"}}
        assert server.client.post(f"{server.url}/mcp", json=call).json()["result"]["isError"] is False
        body = {"stream": True, "messages": [{"role": "user", "content": "Talk."}]}
        with server.client.stream("POST", f"{server.url}/v1/chat/completions", json=body) as stream:
            lines = stream.iter_lines()
            next(lines)
            begun = time.monotonic()
            server.process.send_signal(signal.SIGINT)
            with pytest.raises(httpx2.RemoteProtocolError):
                list(lines)
        code, said = server.end(signal.SIGINT)
        assert (code, "Traceback" in said, time.monotonic() - begun < 15) == (130, False, True)
        assert "orchestra-mem: requests cancelled because the server is shutting down: 1\n" in said
        assert said.splitlines()[-1].startswith("orchestra-mem: interrupted; everything recorded before is kept")
    with open_memory(project) as memory:
        question, answer = [each.data for each in memory.operations()]
    assert question == {"role": "user", "text": "Talk."}
    assert isinstance(answer, dict)
    assert (answer["finish_reason"], str(answer["text"])[:10]) == ("cancelled", "word word ")


def test_the_address_is_printed_with_the_token(project: Path) -> None:
    """`serve` prints its address with the generated token; a token chosen by the user replaces the generated one."""
    process = start("serve", "--port", "0", cwd=project)
    assert process.stdout is not None
    line = process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=20)
    token = (project / ".obra" / "server" / "token").read_text().strip()
    assert re.fullmatch(rf"http://127\.0\.0\.1:\d+/\?token={token}\n", line)
    assert said.splitlines() == [
        f"created a new memory in {project}/.obra", f"serving the memory of {project}; Ctrl-C ends it", "",
        "orchestra-mem: interrupted; everything recorded before is kept, and no change was left incomplete",
    ]  # fmt: skip
    own = {"ORCHESTRA_MEM_TOKEN": "chosen-by-a-person-1234"}
    with running(project, env=own) as server:
        assert server.client.get("window").status_code == 200
        assert httpx2.get(f"{server.url}/", headers={"Authorization": f"Bearer {token}"}).status_code == 401


def test_what_keeps_it_from_starting_is_told_in_a_sentence(run: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy port, a missing own token, an unknown host and a missing extra each stop `serve` with a message."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        run("serve", "--port", str(port), exit_code=1)
        assert run.errors == (
            f"orchestra-mem: cannot listen on 127.0.0.1 port {port}: Address already in use; choose another with "
            "--port or --host\n"
        )
    assert not (run.folder / ".obra").exists()
    run("serve", "--host", "0.0.0.0", exit_code=2)
    assert (
        "0.0.0.0 can be reached from other machines: set a token with ORCHESTRA_MEM_TOKEN or --token-file"
        in " ".join(run.errors.replace("│", "").split())
    )
    for host in ("no.such.host.invalid", "a..b"):
        run("serve", "--host", host, "--token-file", "mine", exit_code=1)
        assert run.errors.startswith(f"orchestra-mem: cannot listen on {host} port 8377: ")
    for name in [name for name in sys.modules if name.startswith("orchestra_mem.faces.http.application")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    run("serve", exit_code=1)
    assert run.errors.startswith("orchestra-mem: serve needs `pip install 'orchestra-mem[server]'`: ")


def test_tokens_are_printed_for_who_asks(run: Program) -> None:
    """`serve token` prints the memory's token, or an agent's, and exits with 4 without a memory."""
    run("serve", "token", exit_code=4)
    run("init")
    own = run("serve", "token").strip()
    assert own == (run.folder / ".obra" / "server" / "token").read_text().strip()
    made = run("serve", "token", "--token-file", "typo").strip()
    assert made == (run.folder / "typo").read_text().strip()
    assert run.errors == "typo did not exist: it now has a new random token\n"
    assert run("serve", "token", "--token-file", "typo").strip() == made
    assert run.errors == ""
    agents = run.json("serve", "token", "--agent", "reviewer")
    assert agents == {"agent": "reviewer", "token": run("serve", "token", "--agent", "reviewer").strip()}
    run("serve", "token", "--agent", "*", exit_code=1)
    assert run.errors.startswith("orchestra-mem: invalid agent name '*'")
