"""Take the screenshot of the web page for the README, `docs/images/page.png`, with a small example memory.

    python tools/page_picture.py

Needs the extra `server`, playwright, and a Chromium on the machine.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

from playwright.sync_api import sync_playwright

from orchestra_mem import Orchestrator, open_memory

PICTURE = Path(__file__).parents[1] / "docs" / "images" / "page.png"
START = datetime(2026, 3, 2, 4, tzinfo=UTC)
WINDOW = {"orchestrator.context_window.max_tokens": 8_192, "search.embedder": "off"}
PLAN = [
    "create an epic for the market on Wednesday",
    "add 3 stories to it: rye bread, plaits and a price list",
    "start #2",
]
SAID = {
    1: ("decision", "We bake rye bread on Tuesdays, because the market is on Wednesday."),
    150: ("task_execution", "The left oven failed: its thermostat is stuck."),
    400: ("decision", "Never bake plaits in the left oven before it has been mended."),
    700: ("observation", "The mechanic comes on Monday and brings a new thermostat."),
}


def make_memory(folder: Path) -> None:
    """Record eight hundred loaves, a plan, and the decisions in between."""
    moments = (START + number * timedelta(seconds=9) for number in count())
    with open_memory(folder, config=WINDOW, clock=lambda: next(moments)) as memory:
        shell = Orchestrator(memory)
        for line in PLAN:
            shell.execute(line)
        for number in range(1, 801):
            memory.record_operation("weighing", {"loaf": number, "grams": 740 + number * 37 % 23}, agent="scale")
            if number in SAID:
                kind, text = SAID[number]
                memory.record_operation(kind, {"text": text}, agent="baker")


def take(folder: Path, picture: Path) -> None:
    """Serve the memory, open its page in a browser, and save a screenshot."""
    (folder / ".obra" / "config.yaml").write_text(json.dumps(WINDOW), encoding="utf-8")
    command = [sys.executable, "-m", "orchestra_mem", "-C", str(folder), "serve", "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server, sync_playwright() as playwright:
        try:
            assert server.stdout is not None
            told = json.loads("".join(server.stdout.readline() for _ in range(4)))
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"))
            page = browser.new_page(viewport={"width": 1180, "height": 760})
            page.goto(f"{told['url']}/?token={told['token']}")
            picture.parent.mkdir(exist_ok=True)
            page.screenshot(path=picture)
            browser.close()
        finally:
            server.terminate()


def main() -> int:
    """Make the memory and its screenshot."""
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent) / "bakery"
        folder.mkdir()
        make_memory(folder)
        take(folder, PICTURE)
    print(f"{PICTURE}: {PICTURE.stat().st_size / 1e3:,.0f} KB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
