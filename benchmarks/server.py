"""Measure the server under load: how long clients wait, whether acknowledged writes are lost, and what a chat costs.

A server in a separate process serves a memory of 2,000 operations. Clients read and write concurrently, each about once
in two seconds; then the server is killed during writes, and the memory is reopened. `requests_lost`: acknowledged
writes that are missing. The clients run on the same machine and take processor time from the server.

`chat_added`: the time from a request to the first byte of its response through the server, less the median of the same
request sent directly to the model's server, which is a stub that answers at once.

`prompt_reused` (only with `--model`): share of the prompts' tokens in a talk of 30 turns that the model had in its
cache, by the model's count; the model runs in the server's process.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median
from typing import Any

import httpx2

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks._harness import CHECKOUT, Options, Report, Target, model_path, run, say
from orchestra_mem.build import open_memory

TARGETS: dict[str, Target] = {
    "start_s": ("<=", 1.5),
    "answers_5xx": ("<=", 0),
    "requests_lost": ("<=", 0),
    "request_p99_ms": ("<=", 250),
    "chat_added_p95_ms": ("<=", 30),
    "prompt_reused": (">=", 0.9),
}
_OPERATIONS, _TURNS, _PAUSE_S = 2_000, 30, 4.0
_READS = ("window", "operations?limit=20", "facts?limit=20", "search?q=batch+7&limit=5", "status")
_ANSWER: dict[str, Any] = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "Yes."}}]}


@contextmanager
def served(project: Path, **environment: str) -> Iterator[tuple[subprocess.Popen[str], str, str, float]]:
    """Start a server; yield the process, its address, its token, and the seconds until its first response."""
    begun = time.perf_counter()
    arguments = [sys.executable, "-m", "orchestra_mem", "serve", "--port", "0", "--json"]
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT), **environment}
    with subprocess.Popen(arguments, cwd=project, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            told = json.loads("".join(process.stdout.readline() for _ in range(4)))
            httpx2.get(f"{told['url']}/api/memory/window", headers=_own(told["token"])).raise_for_status()
            yield process, told["url"], told["token"], time.perf_counter() - begun
        finally:
            process.send_signal(signal.SIGKILL)


def _own(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def fill(project: Path) -> None:
    """Record the operations that the server serves."""
    with open_memory(project) as memory:
        for number in range(_OPERATIONS):
            memory.record_operation(
                "decision" if number % 9 == 0 else "build", {"text": f"Batch {number} goes to t{number % 40}."}
            )


async def _client(client: httpx2.AsyncClient, number: int, until: float, told: dict[str, list[Any]]) -> None:
    rng = random.Random(number)
    await asyncio.sleep(rng.uniform(0, _PAUSE_S))
    while time.perf_counter() < until:
        key, begun = f"{number}-{rng.getrandbits(60)}", time.perf_counter()
        try:
            if rng.random() < 0.3:
                answer = await client.post("operations", json={"type": "note", "data": key, "key": key})
                if answer.status_code == 201:
                    told["acknowledged"].append(key)
            else:
                answer = await client.get(rng.choice(_READS))
        except httpx2.HTTPError:
            return  # the server has been killed
        told["ms"].append((time.perf_counter() - begun) * 1_000)
        told["status"].append(answer.status_code)
        await asyncio.sleep(rng.uniform(0, _PAUSE_S))


def load(project: Path, clients: int, seconds: float, report: Report) -> None:
    """Let clients send requests, kill the server meanwhile, and check what was stored."""
    told: dict[str, list[Any]] = {"ms": [], "status": [], "acknowledged": []}
    with served(project) as (process, url, token, start_s):
        report.add("start_s", start_s, note="from the command to the first answer")
        killer = threading.Timer(seconds, lambda: process.send_signal(signal.SIGKILL))
        killer.start()

        async def everybody() -> None:
            until = time.perf_counter() + seconds + 5
            limits = httpx2.Limits(max_connections=clients, max_keepalive_connections=clients)
            base = f"{url}/api/memory/"
            async with httpx2.AsyncClient(base_url=base, headers=_own(token), limits=limits, timeout=60) as client:
                await asyncio.gather(*(_client(client, number, until, told) for number in range(clients)))

        asyncio.run(everybody())
        killer.join()
    with open_memory(project) as memory:
        there = {each.idempotency_key for each in memory.operations()}
    lost = [key for key in told["acknowledged"] if key not in there]
    report.add("requests_lost", len(lost), n=len(told["acknowledged"]), note="acknowledged before kill -9, but missing")
    report.add("answers_5xx", sum(status >= 500 for status in told["status"]), n=len(told["status"]))
    report.percentiles(
        "request", told["ms"], (50, 99), note=f"{clients} clients, each with about one request in two seconds"
    )


class _Model(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""

    def do_GET(self) -> None:
        """Answer 404: this stub does not describe its model."""
        self._send(404, {"error": {"message": "not here"}})

    def do_POST(self) -> None:
        """Answer a chat at once."""
        self.rfile.read(int(self.headers["Content-Length"]))
        self._send(*((200, _ANSWER) if self.path == "/v1/chat/completions" else (404, {"error": {"message": "no"}})))

    def _send(self, status: int, body: Any) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def _talk(url: str, token: str, turns: int) -> Iterator[tuple[float, Any]]:
    """Chat; yield each turn's milliseconds and response."""
    messages: list[dict[str, str]] = [{"role": "system", "content": "Answer in one short sentence."}]
    with httpx2.Client(base_url=url, headers=_own(token), timeout=600) as client:
        for turn in range(turns):
            messages.append(
                {"role": "user", "content": f"To which table does batch {7 * turn} go, and why is that so?"}
            )
            begun = time.perf_counter()
            answer = client.post("/v1/chat/completions", json={"model": "m", "messages": messages, "max_tokens": 24})
            took_ms = (time.perf_counter() - begun) * 1_000
            answer.raise_for_status()
            messages.append({"role": "assistant", "content": answer.json()["choices"][0]["message"]["content"]})
            yield took_ms, answer.json()


def chat_cost(project: Path, report: Report) -> None:
    """Measure the time that the server adds to a chat with its model."""
    model = ThreadingHTTPServer(("127.0.0.1", 0), _Model)
    threading.Thread(target=model.serve_forever, daemon=True).start()
    direct = f"http://127.0.0.1:{model.server_address[1]}"
    with served(project, ORCHESTRA_MEM__LLM__BASE_URL=direct) as (_, url, token, _start):
        list(_talk(url, token, 3))  # warm-up
        least = median(ms for ms, _ in _talk(direct, token, _TURNS))
        report.percentiles("chat_added", [ms - least for ms, _ in _talk(url, token, _TURNS)], (50, 95))
    model.shutdown()


def prompt_reuse(project: Path, model: str, report: Report) -> None:
    """Measure the share of each prompt of a talk that the model has in its cache."""
    asked = cached = 0
    path = str(model_path(model))
    with served(project, ORCHESTRA_MEM__LLM__MODEL_PATH=path, ORCHESTRA_MEM__COMPRESSION__AUTO="false") as (
        _,
        url,
        token,
        _s,
    ):
        for turn, (_, answer) in enumerate(_talk(url, token, _TURNS)):
            usage = answer["usage"]
            asked += usage["prompt_tokens"]
            cached += usage["prompt_tokens_details"]["cached_tokens"]
            say(f"turn {turn}: {usage}")
    report.add("prompt_reused", cached / asked, n=asked, note=f"share of prompt tokens in {_TURNS} turns; {model}")


def measure(options: Options, report: Report) -> None:
    """Measure the load, the chat and the prompt cache."""
    with tempfile.TemporaryDirectory(prefix="server-") as folder:
        project = Path(folder)
        fill(project)
        chat_cost(project, report)
        if options.model:
            prompt_reuse(project, options.model, report)
        else:
            report.unmeasured("prompt_reused", "needs --model")
        load(project, 50 if options.quick else 200, 10 if options.quick else 60, report)


if __name__ == "__main__":
    sys.exit(run("server", measure, TARGETS))
