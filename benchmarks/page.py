"""Measure the web page in a real browser: time until it is visible, and until a search answers while typing.

`first_view`: from requesting the address to the loaded page, in a new browser window right after the start of the
server, on a memory of 5,000 operations. `view`: the same for other views. `typed`: a question is typed letter by letter
into the search of a memory of 100,000 passages; for each letter, the time until its hits are in the page.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks._harness import Options, Report, Target, run, say, stopwatch
from benchmarks._operations import Generator, WorkClock
from benchmarks.server import served
from orchestra_mem.build import open_memory
from orchestra_mem.doctor.documents import inspect_index

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

TARGETS: dict[str, Target] = {"first_view_max_ms": ("<=", 500), "typed_100k_p95_ms": ("<=", 100)}
_OPERATIONS, _STARTS, _QUESTIONS = 5_000, 5, 12
_VIEWS = (
    "/", "/sessions", "/search", "/search?q=session+store+lock", "/prompt", "/original?of=S12", "/documents",
    "/documents/decision_log", "/versions/decision_log", "/facts", "/catalog", "/work", "/audit",
)  # fmt: skip
# Types a letter and returns the milliseconds until the hits for the current input are in the page.
_TYPE = """([text]) => new Promise((done) => {
  const field = document.querySelector("#q"), begun = performance.now();
  new MutationObserver((_, watch) => { watch.disconnect(); done(performance.now() - begun); })
    .observe(document.querySelector("#hits"), { childList: true });
  field.value = text;
  field.dispatchEvent(new Event("input", { bubbles: true }));
})"""
_LETTERS = 40  # of each question


@contextmanager
def browsing(program: str) -> Iterator[Browser]:
    """Start the browser."""
    from playwright.sync_api import sync_playwright

    with (
        sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=program, args=["--no-sandbox"]) as browser,
    ):
        yield browser


def _opened(browser: Browser, url: str, token: str) -> Page:
    page = browser.new_context().new_page()
    page.goto(f"{url}/?token={token}", wait_until="commit")
    return page


def fill(project: Path, operations: int) -> int:
    """Record work; return the number of passages in the search index."""
    clock, begun = WorkClock(), time.monotonic()
    with open_memory(project, clock=clock) as memory:
        for number, work in enumerate(islice(Generator(5).works(), operations)):
            clock.advance(work.seconds)
            memory.record_operation(work.type, work.data, agent=work.agent)
            if number % 5_000 == 0:
                say(f"{number:,} of {operations:,} operations, {time.monotonic() - begun:.0f} s")
        memory.update_index()
    return inspect_index(project).chunks


def views(project: Path, browser: Browser, report: Report) -> None:
    """Measure how soon a view is loaded, after several starts of the server."""
    fill(project, _OPERATIONS)
    first: list[float] = []
    others: list[float] = []
    for _ in range(_STARTS):
        with served(project) as (_process, url, token, _start_s):
            page = browser.new_context().new_page()
            with stopwatch(first):
                page.goto(f"{url}/?token={token}", wait_until="load")
            for path in _VIEWS:
                with stopwatch(others):
                    page.goto(url + path, wait_until="load")
            page.context.close()
    report.percentiles("first_view", first, (50,), note="the first view after the start of the server")
    report.percentiles("view", others, (50, 95), note=f"{len(_VIEWS)} views, each after {_STARTS} starts")


def typing(project: Path, browser: Browser, operations: int, name: str, report: Report) -> None:
    """Measure how soon hits follow the typed letters."""
    report.add(f"passages_{name}", fill(project, operations), note=f"of {operations:,} operations")
    asked = (work.data for work in Generator(6).works() if work.type == "nl_command")
    typed: list[float] = []
    with served(project) as (_process, url, token, _start_s):
        page = _opened(browser, url, token)
        page.goto(f"{url}/search?q=where+did+we+stop", wait_until="load")
        for data in islice(asked, _QUESTIONS):
            assert isinstance(data, dict)
            question = str(data["user_input"])[:_LETTERS]
            typed += [page.evaluate(_TYPE, [question[:end]]) for end in range(1, len(question) + 1)]
        page.context.close()
    report.percentiles(f"typed_{name}", typed, (50, 95), note=f"letters of {_QUESTIONS} questions")


def measure(options: Options, report: Report) -> None:
    """Measure the views, then the typing."""
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        for key in TARGETS:
            report.unmeasured(key, "needs Chromium")
        return
    with tempfile.TemporaryDirectory(prefix="page-") as folder, browsing(program) as browser:
        for each in ("views", "typing"):
            Path(folder, each).mkdir()
        views(Path(folder, "views"), browser, report)
        operations, name = (3_000, "10k") if options.quick else (30_000, "100k")
        if options.quick:
            report.unmeasured("typed_100k_p95_ms", "full run only")
        typing(Path(folder, "typing"), browser, operations, name, report)


if __name__ == "__main__":
    sys.exit(run("page", measure, TARGETS))
