"""Test helpers that drive a real browser against a real server, and the checks that every page must pass."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, sync_playwright

from benchmarks._operations import Generator, WorkClock
from orchestra_mem import open_memory
from tests.faces.server_process import running

NARROW, WIDE = 400, 1280
HOSTILE = "<script>document.title = 'taken over'</script><img src=x onerror=alert(1)> zephyrberg"
"""A recorded text that pages must show as text."""
SCREENSHOTS = "ORCHESTRA_MEM_SCREENSHOTS"
"""Environment variable with the folder for screenshots; if it is unset, none are made."""
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@dataclass
class Site:
    """A server and a browser page; `problems` holds the errors and warnings of the browser's console."""

    url: str
    token: str
    page: Page
    problems: list[str]

    def open(self, path: str = "/") -> Page:
        """Open a view; the first call logs in with the token."""
        if not self.page.context.cookies():
            self.page.goto(f"{self.url}/?token={self.token}")
        self.page.goto(f"{self.url}{path}")
        return self.page

    def show(self, *, width: int = WIDE, dark: bool = False) -> None:
        """Set the page's width and colour scheme."""
        self.page.set_viewport_size({"width": width, "height": 1_200})
        self.page.emulate_media(color_scheme="dark" if dark else "light")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """The system's Chromium. One per module, since its thread can run no other event loop meanwhile."""
    program = next(filter(None, map(shutil.which, _NAMES)), None)
    if program is None:
        pytest.skip("needs Chromium: apt-get install chromium")
    options = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright, playwright.chromium.launch(executable_path=program, args=options) as started:
        yield started


@contextmanager
def browsing(browser: Browser, project: Path) -> Iterator[Site]:
    """Serve a project and open it in a browser page."""
    with running(project) as server, browser.new_context() as context:
        page = context.new_page()
        site = Site(server.url, server.token, page, [])
        page.on("console", lambda told: site.problems.append(told.text) if told.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: site.problems.append(str(error)))
        yield site


def fill(project: Path, operations: int) -> None:
    """Record several days' work of several agents in a small window, as two sessions of which the first has ended."""
    clock = WorkClock()
    with open_memory(project, clock=clock) as memory:
        for number, work in enumerate(islice(Generator(3).works(), operations)):
            clock.advance(work.seconds)
            if number == operations // 2:
                memory.flush_session()
            memory.record_operation(work.type, work.data, agent=work.agent)
        memory.record_operation("message", {"text": HOSTILE}, agent=HOSTILE)
        memory.update_index()


def no_serious_fault(page: Page) -> None:
    """Fail if axe-core finds a serious or critical accessibility fault on a page."""
    page.evaluate("() => new Promise(requestAnimationFrame)")
    found: list[dict[str, Any]] = Axe().run(page).response["violations"]
    bad = [
        f"{each['id']} ({each['impact']}): {[(node['target'], node.get('failureSummary')) for node in each['nodes']]}"
        for each in found
        if each["impact"] in ("serious", "critical")
    ]
    assert bad == [], page.url


def fits(page: Page) -> None:
    """Fail if a page needs horizontal scrolling."""
    wide = page.evaluate("() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    assert wide[0] <= wide[1], page.url


@pytest.fixture(scope="module")
def screenshot() -> Callable[[Page, str], None]:
    """Save a screenshot if the environment variable names a folder."""
    folder = os.environ.get(SCREENSHOTS)

    def keep(page: Page, name: str) -> None:
        if folder:
            Path(folder).mkdir(parents=True, exist_ok=True)
            page.screenshot(path=Path(folder) / f"{re.sub('[^a-zA-Z0-9]+', '-', name)}.png")

    return keep
