"""An agent with a Qwen model in this process: it answers, and remembers from one session to the next.

    pip install 'orchestra-mem[llama]'
    python examples/agent_llama.py models/qwen2.5-1.5b-instruct-q4_k_m.gguf my-project

Type a line and read the answer; an empty line or Ctrl-D ends the session. Start it again and ask what was said. A line
that begins with `!` runs a shell command, whose outcome the agent sees and remembers. Its knowledge is in
`my-project/.obra/memory/*.md`: read these files, and correct them in an editor while the agent runs.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from orchestra_mem import ModelError, OrchestratorContextManager, open_memory
from orchestra_mem.model_types import Message, Role

RULES = "You help with the work of one project. Answer in a few sentences. Say so where the memory has no answer."
ANSWER_TOKENS = 200


def prompt(memory: OrchestratorContextManager, line: str) -> list[Message]:
    """Build a prompt of the rules, the context and the line that leaves room for the answer in the model's window."""
    model = memory.model
    assert model is not None
    ends = [Message(role=Role.SYSTEM, text=RULES), Message(role=Role.USER, text=line)]
    budget = model.context_tokens - ANSWER_TOKENS - model.count_prompt(ends)
    while True:
        context = memory.get_orchestrator_context("chat", max_tokens=max(budget, 0), query=line)
        # Rules and stable prefix first, so that llama.cpp's prompt cache reprocesses only what has changed.
        messages = [
            Message(role=Role.SYSTEM, text=f"{RULES}\n\n{context.prefix}"),
            Message(role=Role.USER, text=f"{context.timeline}{context.recalled}\n{line}"),
        ]
        over = model.count_prompt(messages) + ANSWER_TOKENS - model.context_tokens
        if over <= 0 or budget <= 0:
            return messages
        budget -= over


def answer(memory: OrchestratorContextManager, line: str) -> str:
    """Ask the model, and record the line and the answer."""
    messages = prompt(memory, line)
    memory.record_operation("user_message", {"text": line}, agent="user")
    assert memory.model is not None
    with memory.foreground():  # pauses background summaries
        generation = memory.model.generate(messages, max_tokens=ANSWER_TOKENS, timeout_s=300)
    said = generation.text.strip()
    data = {"role": "assistant", "text": said}
    memory.record_operation("agent_message", data, generation.answer_tokens, agent="assistant")
    return said


def run(memory: OrchestratorContextManager, command: str) -> str:
    """Run a shell command and record its outcome."""
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    output = (done.stdout + done.stderr).strip()
    status = "completed" if done.returncode == 0 else "failed"
    memory.record_operation("task_execution", {"task": command, "status": status, "output": output[-2_000:]})
    return output


def main(model_path: str, project: str) -> int:
    """Answer lines from stdin until an empty line or the end."""
    Path(project).mkdir(parents=True, exist_ok=True)
    with open_memory(project, config={"llm": {"model_path": str(Path(model_path).resolve())}}) as memory:
        if memory.model is None:
            print("No model: `orchestra-mem doctor` says why.", file=sys.stderr)
            return 1
        try:
            print(f"{memory.model.name} has a window of {memory.model.context_tokens:,} tokens.", file=sys.stderr)
        except ModelError as error:  # no such file, or no model
            print(error, file=sys.stderr)
            return 2
        for line in iter(lambda: sys.stdin.readline().strip(), ""):
            try:
                print(run(memory, line[1:]) if line.startswith("!") else answer(memory, line), flush=True)
            except ModelError as error:
                print(error, file=sys.stderr)
        memory.flush_session()
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: agent_llama.py MODEL.gguf PROJECT_FOLDER")
    sys.exit(main(*sys.argv[1:]))
