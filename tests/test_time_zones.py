"""Dates for a user whose day is not the day in UTC: on a Friday evening in Los Angeles it is Saturday there."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from orchestra_mem import Orchestrator, OrchestratorContextManager, open_memory
from orchestra_mem.faces.cli import app
from orchestra_mem.work_types import WorkKind, WorkStatus
from tests.conftest import Clock
from tests.faces.http_client import serving

FRIDAY_EVENING = datetime(2026, 3, 6, 19, tzinfo=UTC) + timedelta(hours=8)


@pytest.fixture
def memory(tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Iterator[OrchestratorContextManager]:
    """A memory on a machine in Los Angeles, with a decision of a Friday evening."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "America/Los_Angeles")
        time.tzset()
        clock.now = FRIDAY_EVENING - timedelta(hours=12)
        with open_memory(tmp_path, clock=lambda: clock().astimezone()) as memory:
            memory.record_operation("note", {"text": "The week ends."})
            clock.now = FRIDAY_EVENING
            memory.record_operation("decision", {"text": "We decided to page the winch crew by radio."})
            yield memory
    time.tzset()


def test_a_model_reads_the_dates_of_the_users_day(memory: OrchestratorContextManager) -> None:
    """Contexts date operations, decisions and recalled passages by the day in the time zone of the machine."""
    for _ in range(2):
        shown = memory.get_orchestrator_context("chat", 2000, query="How do we page the winch crew?").render()
        assert "2026-03-06" in shown
        assert "2026-03-07" not in shown
        memory.flush_session()


def test_pages_show_the_times_of_the_users_day(
    memory: OrchestratorContextManager, tmp_path: Path, clock: Clock
) -> None:
    """The server's pages show times in the time zone of its machine, and say which that is."""
    memory.refresh()
    memory.close()
    with serving(tmp_path, clock=clock) as served:
        page, document = (served.client.get(path).text for path in ("/sessions", "/documents/decision_log"))
    assert "2026-03-06 07:00:00" in page
    assert re.search(r"the time zone of the server, now UTC-0[78]:00; those in the text of documents are in UTC", page)
    assert '<time datetime="2026-03-07T03:00Z">2026-03-06 19:00</time>' in document


def test_a_time_at_the_end_of_the_calendar_is_shown(
    memory: OrchestratorContextManager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`9999-12-31T23:59:59Z`, as for an item kept for ever, has no local time east of UTC and is shown in UTC."""
    memory.catalog.store({"content": "The winch is green.", "agent": "ada", "expires": "9999-12-31T23:59:59Z"})
    memory.close()
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Europe/Berlin")
        time.tzset()
        shown = CliRunner().invoke(app, ["--project", str(tmp_path), "catalog", "list"])
    assert "9999-12-31 23:59" in shown.stdout


def test_questions_mean_the_users_days(memory: OrchestratorContextManager, clock: Clock) -> None:
    """On Saturday, `yesterday` is all of Friday, and answers date the decision by Friday."""
    shell = Orchestrator(memory, clock=clock)
    said = "We decided to page the winch crew by radio. [K1, 2026-03-06]"
    assert shell.execute("what did we decide today?").text == said
    clock.now += timedelta(hours=13)
    assert shell.execute("what did we decide yesterday?").text == said
    assert shell.execute("what did we decide today?").text == "No decided records match that."


def test_documents_have_times_in_utc_whatever_the_clocks_zone(memory: OrchestratorContextManager) -> None:
    """Documents may be read on machines in other zones: their times are in UTC, and say so."""
    memory.state.set_status(memory.state.create(WorkKind.EPIC, "Winch").id, WorkStatus.DONE)
    memory.flush_session()
    log = memory.documents.path("decision_log").read_text()
    assert "**Last Updated**: 2026-03-07 03:00:00 UTC\n" in log
    assert "### [2026-03-07 03:00:00] We decided to page the winch crew by radio. (K1)\n" in log
    state = memory.documents.path("project_state").read_text()
    assert '- Epic #1 "Winch": done 2026-03-07 03:00:00\n' in state
    assert '- Epic #1 "Winch": done 2026-03-06\n' in memory.get_orchestrator_context("chat", 2000).render()


def test_machines_in_two_zones_write_the_same_documents(
    memory: OrchestratorContextManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A document does not change because a machine in another zone writes it, not even a decision shown in brief."""
    for number in range(60):
        memory.record_operation("decision", {"text": f"We decided to grease winch {number} " + "with fat " * 12})
    memory.state.set_status(memory.state.create(WorkKind.EPIC, "Winch").id, WorkStatus.DONE)
    memory.refresh()
    texts = [memory.documents.path(name).read_text() for name in ("decision_log", "project_state")]
    assert "## Older Decisions" in texts[0]
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Pacific/Auckland")
        time.tzset()
        memory.refresh()
    assert [memory.documents.path(name).read_text() for name in ("decision_log", "project_state")] == texts


def test_commands_print_the_users_time(memory: OrchestratorContextManager, tmp_path: Path) -> None:
    """Commands print times in the time zone in which they read them."""
    memory.flush_session()
    memory.close()
    command = [sys.executable, "-m", "orchestra_mem", "-C", str(tmp_path)]
    for told in (["ops"], ["search", "page the winch crew"], ["blame", "decision_log"]):
        shown = subprocess.run([*command, *told], capture_output=True, text=True, check=True).stdout
        assert "2026-03-06 19:00" in shown
