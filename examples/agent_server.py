"""An agent with its own client for any OpenAI-compatible server. The memory's context precedes each question.

    pip install 'orchestra-mem[http]'
    python examples/agent_server.py http://127.0.0.1:8080/v1 qwen2.5 my-project

The memory does not use the client: it only provides messages, and the agent records each question and answer, with the
server's token count.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import httpx2

from orchestra_mem import OrchestratorContextManager, open_memory

CONTEXT_TOKENS = 3_000


def ask(server: httpx2.Client, model: str, messages: list[dict[str, str]]) -> tuple[str, int | None]:
    """Send a prompt; return the answer, and its token count, None if the server does not report it."""
    response = server.post("chat/completions", json={"model": model, "messages": messages, "max_tokens": 300})
    response.raise_for_status()
    try:
        answer: dict[str, Any] = response.json()
        said = answer["choices"][0]["message"]["content"].strip()
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise httpx2.DecodingError(f"the answer is no chat completion: {error!r}") from error
    return said, (answer.get("usage") or {}).get("completion_tokens")


def turn(memory: OrchestratorContextManager, server: httpx2.Client, model: str, line: str) -> str:
    """Answer one line, with the memory's context, and record both."""
    context = memory.get_orchestrator_context("chat", max_tokens=CONTEXT_TOKENS, query=line)
    memory.record_operation("user_message", {"text": line}, agent="user")
    said, tokens = ask(server, model, [*context.as_messages(), {"role": "user", "content": line}])
    memory.record_operation("agent_message", {"role": "assistant", "text": said}, tokens, agent="assistant")
    return said


def main(base_url: str, model: str, project: str) -> int:
    """Answer lines from stdin until an empty line or the end."""
    Path(project).mkdir(parents=True, exist_ok=True)
    with open_memory(project) as memory, httpx2.Client(base_url=base_url.rstrip("/") + "/", timeout=300) as server:
        for line in iter(lambda: sys.stdin.readline().strip(), ""):
            try:
                print(turn(memory, server, model, line), flush=True)
            except httpx2.HTTPError as error:
                print(f"{base_url}: {error}", file=sys.stderr)
        memory.flush_session()
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit("usage: agent_server.py BASE_URL MODEL PROJECT_FOLDER")
    sys.exit(main(*sys.argv[1:]))
