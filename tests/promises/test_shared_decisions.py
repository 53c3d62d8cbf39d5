"""Shared decisions: each is in the shared log once under concurrency, and the memory's promises hold for it too."""

from __future__ import annotations

import os
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from orchestra_mem import (
    InvalidChangeError,
    LockTimeoutError,
    NotFoundError,
    OrchestratorContextManager,
    StorageError,
    StorageReadOnlyError,
    open_memory,
)
from orchestra_mem.core.context.items import Part
from orchestra_mem.core.documents.shared_document import read_shared
from tests.builders import cases
from tests.faces.conftest import Program
from tests.memories import closed_to_writing, edit, problems_of, record_decisions
from tests.processes import start

CHILD = "tests.promises.sharing_child"
EVERYBODYS = "Never log card numbers."
_THINGS = (
    "invoices parcels tickets coupons badges playlists recipes sensors vouchers blueprints canaries drones engines "
    "fossils garages harbours islands jackets kettles lanterns"
).split()
_TOOLS = (
    "PostgreSQL Kafka Redis Terraform Ansible Grafana Prometheus Django Rust Elixir Kotlin Svelte Nginx HAProxy Vault "
    "Consul Airflow Spark DuckDB Parquet"
).split()
Open = Callable[..., OrchestratorContextManager]


@pytest.fixture
def opened(home: Path, tmp_path: Path) -> Iterator[Open]:
    """Open projects by name, each with user messages recorded; they are closed at the end."""
    memories: list[OrchestratorContextManager] = []

    def open_project(name: str, *said: str, **config: Any) -> OrchestratorContextManager:
        folder = tmp_path / "projects" / name
        folder.mkdir(parents=True, exist_ok=True)
        memories.append(memory := open_memory(folder, config=config))
        for text in said:
            memory.record_operation("message", {"role": "user", "text": text})
        return memory

    yield open_project
    for memory in memories:
        memory.close()


@pytest.fixture
def run(home: Path, tmp_path: Path) -> Program:
    """The command line, for commands that name their project."""
    return Program(tmp_path)


def log_of(home: Path) -> Path:
    """Return the path of the shared decision log."""
    return home / "shared" / "decision_log.md"


def part_of(memory: OrchestratorContextManager, budget: int | None = None, query: str | None = None) -> list[str]:
    """Return the shared decisions in a context of the project."""
    found = memory.get_orchestrator_context("next prompt", budget, query=query).as_dict().get("shared_decisions", [])
    assert isinstance(found, list)
    return [str(each) for each in found]


def _children(folder: Path, count: int, projects: int) -> list[subprocess.Popen[str]]:
    return [start("-m", CHILD, folder, seed, projects) for seed in range(count)]


def check_log(home: Path, folder: Path, told: list[list[str]]) -> None:
    """Check that each acknowledged decision is once in the shared log and at most once active where it was adopted."""
    shared = {(row[1], row[3].strip()) for row in told if row[0] == "shared"}
    entries = read_shared(log_of(home).read_text(encoding="utf-8"))
    stands = {(each.number, each.text) for each in entries}
    assert shared <= stands
    assert [text for text, count in Counter(each.text for each in entries).items() if count > 1] == []
    with open_memory(home / "shared") as log:
        assert sorted(fact.text for fact in log.facts()) == sorted(each.text for each in entries)
    for row in told:
        if row[0] == "adopted":
            with open_memory(folder / row[1]) as memory:
                texts = [[fact.text for fact in memory.facts(standing=only)] for only in (False, True)]
            # A later adoption may have superseded it, so zero is allowed.
            assert row[3].strip() in texts[0]
            assert texts[1].count(row[3].strip()) <= 1


def test_projects_and_processes_share_and_adopt_at_once_and_some_are_killed(home: Path, tmp_path: Path) -> None:
    """Processes that share and adopt at once, some killed, lose no acknowledged decision and duplicate none."""
    folder = tmp_path / "projects"
    for thing, tool in zip(_THINGS[:8], _TOOLS[:8], strict=True):
        (folder / thing).mkdir(parents=True)
        with open_memory(folder / thing) as memory:
            memory.record_operation("message", {"role": "user", "text": f"We decided to keep {thing} with {tool}."})
            memory.record_operation("message", {"role": "user", "text": EVERYBODYS})
    children = _children(folder, 6, 3)
    said = []
    for child in children[:2]:
        with child:
            assert child.stdout is not None
            first = child.stdout.readline()
            time.sleep(0.1)
            child.kill()
            said.append(first + child.stdout.read())
    others = [*children[2:], *_children(folder, 1, 8)]
    said += [child.communicate(timeout=300)[0] for child in others]
    assert [child.returncode for child in others] == [0] * 5
    lines = [line for each in said for line in each.splitlines(keepends=True)]
    told = [line.split("\t") for line in lines if line.endswith("\n")]  # a killed process may have torn its last one
    check_log(home, folder, told)
    assert sum(row[0] == "shared" and row[2] == "True" for row in told) >= 5
    assert sum(row[0] == "adopted" for row in told) >= 15  # of 20; an early process may have nothing to adopt


def _edited(text: str, number: int) -> str:
    """Add a rule at each edit; reword a decision at the second edit and delete one at the third."""
    text = text.replace("## Rules\n", f"## Rules\n\n- {_rule(number)}\n", 1)
    if number == 2:
        return text.replace("write all times in UTC.", "write all times in UTC, and show them in local time.", 1)
    if number == 3:
        start, end = text.rindex("### [", 0, text.index("sign every release")), text.index("sign every release")
        rest = text.find("### [", end)
        return text[:start] + (text[rest:] if rest > 0 else "")
    return text


def _rule(number: int) -> str:
    return f"Rule {number} of ours: nobody may merge on day {number}."


def test_a_persons_edits_stand_while_projects_share(home: Path, tmp_path: Path, opened: Open) -> None:
    """A person's added, reworded and deleted lines of the shared log stay so while two processes share."""
    shop = opened("zoo", "We decided to write all times in UTC.", "We decided to sign every release with minisign.")
    for fact in ("K1", "K2"):
        shop.share_decision(fact)
    for thing, tool in zip(_THINGS[:8], _TOOLS[:8], strict=True):
        opened(thing, f"We decided to keep {thing} with {tool}.").close()
    children, path, edits = _children(tmp_path / "projects", 2, 8), log_of(home), 0
    deadline = time.monotonic() + 240
    while (edits < 4 or any(child.poll() is None for child in children)) and time.monotonic() < deadline:
        edits += 1
        temporary = path.with_name("edit.tmp")
        temporary.write_text(_edited(path.read_text(encoding="utf-8"), edits), encoding="utf-8")
        os.replace(temporary, path)
        time.sleep(0.25)
    for child in children:
        child.communicate(timeout=60)
    assert [child.returncode for child in children] == [0, 0]
    opened("last", "We decided to number versions by date.").share_decision("K1")
    text = path.read_text(encoding="utf-8")
    assert [number for number in range(1, edits + 1) if text.count(_rule(number)) != 1] == []
    assert "write all times in UTC, and show them in local time." in text
    assert "sign every release" not in text


def test_a_decision_is_shared_once_with_where_it_comes_from(home: Path, opened: Open) -> None:
    """A decision shared twice, even from another project, is one entry with its first project, id and number."""
    shop = opened("shop", "We decided to use PostgreSQL for storage.", project={"id": "7", "name": "Shop"})
    first, again = shop.share_decision("K1", tags=["web"]), shop.share_decision("K1")
    assert (first.number, first.is_new, again.number, again.is_new) == ("K1", True, "K1", False)
    web = opened("web", "We decided to use PostgreSQL for storage.")
    assert web.share_decision("K1").is_new is False
    [entry] = web.shared_decisions()
    assert (entry.project, entry.origin, entry.tags) == ("Shop (ID: 7)", "K1", ("web",))


def test_a_log_whose_database_was_lost_has_nothing_twice(home: Path, opened: Open) -> None:
    """After the log's database was deleted, its document prevents duplicates and new decisions are added to it."""
    shop = opened("shop", EVERYBODYS, "We decided to use PostgreSQL for storage.")
    shop.share_decision("K1")
    for file in (home / "shared" / ".obra").glob("obra.db*"):
        file.unlink()
    assert shop.share_decision("K1").is_new is False
    assert shop.share_decision("K2").is_new is True
    assert sorted(each.text for each in shop.shared_decisions()) == [
        EVERYBODYS, "We decided to use PostgreSQL for storage.",
    ]  # fmt: skip


def test_what_a_project_has_superseded_is_told_and_its_successor_takes_the_place(home: Path, opened: Open) -> None:
    """A superseded decision stays shared, with a problem reported, until its successor is shared in its place."""
    first, second, third = (
        f"We decided to {what} for storage." for what in ("use PostgreSQL", "use MySQL", "drop MySQL and use files")
    )
    shop, web = opened("shop", first), opened("web", "Hello.", project={"tags": ["web"]})
    shop.share_decision("K1", tags=["web"])
    shop.record_operation("message", {"role": "user", "text": second})
    assert [fact.text for fact in shop.facts()] == [second]
    told = (
        "this project shared K1, which is no longer current here; `orchestra-mem decisions share K2` replaces it with"
    )
    place = f"{log_of(home)}:{shop.shared_decisions()[0].line}"
    assert [each["problem"] for each in problems_of(shop)] == [f"{place}: {told}: {second}"]
    assert part_of(web) == [f"- {first} (from shop)"]
    done = shop.share_decision("K2")
    assert (done.number, [each.text for each in done.superseded]) == ("K2", [first])
    assert [(each.text, each.tags) for each in web.shared_decisions()] == [(second, ("web",))]
    edit(log_of(home), ("use MySQL for storage. (K2)", "use MySQL 9 for storage. (K2)"))
    shop.record_operation("message", {"role": "user", "text": third})
    assert [fact.text for fact in shop.facts()] == [third]
    shop.share_decision("K3")
    assert [each.text for each in web.shared_decisions()] == [second.replace("MySQL", "MySQL 9"), third]
    assert problems_of(shop) == []


def test_what_a_person_reworded_in_its_project_is_told_and_shared_again(home: Path, opened: Open) -> None:
    """A shared rule that its project rewords by hand is a problem, and sharing it again shares the new words."""
    old, new = (f"Refunds must be paid within {days} days." for days in (21, 18))
    shop, web = opened("shop", old), opened("web", "Hello.")
    shop.refresh()
    shop.share_decision("K1")
    edit(shop.episodic_memory.folder / "project_state.md", ("21 days. (K1)", "18 days. (K1)"))
    assert [fact.text for fact in shop.facts()] == [new]
    (problem,) = problems_of(shop)
    told = "is no longer current here; `orchestra-mem decisions share K1` replaces it with"
    assert problem["problem"].endswith(f"{told}: {new}")
    done = shop.share_decision("K1")
    assert (done.is_new, done.text, [each.text for each in done.superseded]) == (True, new, [old])
    assert part_of(web) == [f"- {new} (from shop)"]
    assert problems_of(shop) == []
    assert shop.share_decision("K1").is_new is False


def test_a_moved_project_keeps_what_it_shared_and_another_of_its_name_has_no_part_in_it(
    home: Path, opened: Open, tmp_path: Path
) -> None:
    """A project in another folder is still told to replace what it shared; another project of its old name is not."""
    first, second = (f"We decided to use {what} for storage." for what in ("PostgreSQL", "MySQL"))
    shop = opened("shop", first)
    shop.share_decision("K1")
    shop.close()
    (tmp_path / "projects" / "shop").rename(tmp_path / "projects" / "mill")
    mill, other = opened("mill", second), opened("shop", first, second)
    assert [fact.text for memory in (mill, other) for fact in memory.facts()] == [second, second]
    assert (len(problems_of(mill)), problems_of(other)) == (1, [])
    assert [each.text for each in mill.share_decision("K2").superseded] == [first]
    assert [(each.text, each.project) for each in mill.shared_decisions()] == [(second, "mill")]


def test_what_a_person_took_out_of_the_project_is_told(home: Path, opened: Open, tmp_path: Path) -> None:
    """A shared decision that a person deleted from its project is a problem until deleted from the log too."""
    shop = opened("shop", "We decided to use PostgreSQL for storage.")
    shop.share_decision("K1")
    shop.refresh()
    own = tmp_path / "projects" / "shop" / ".obra" / "memory" / "decision_log.md"
    own.write_text(own.read_text("utf-8").partition("### [")[0], encoding="utf-8")
    assert shop.facts() == []
    [problem] = problems_of(shop)
    assert problem["problem"].endswith(
        "is no longer current here; delete it there if it should not apply to any project"
    )
    with pytest.raises(InvalidChangeError, match="a person has removed K1 from this project's documents: `--again`"):
        shop.adopt_decision("K1")
    assert shop.adopt_decision("K1", again=True).is_new
    log_of(home).write_text(log_of(home).read_text("utf-8").partition("### [")[0], encoding="utf-8")
    assert problems_of(shop) == []


def test_what_a_person_has_put_in_other_words_stays_one(home: Path, opened: Open, tmp_path: Path) -> None:
    """A decision reworded in the shared log and in the project's document is still one shared entry."""
    shop = opened("shop", "We decided to use PostgreSQL for storage.")
    shop.share_decision("K1")
    edit(log_of(home), ("use PostgreSQL for storage.", "use PostgreSQL 17 for storage."))
    assert shop.share_decision("K1").text == "We decided to use PostgreSQL 17 for storage."
    shop.refresh()
    own = tmp_path / "projects" / "shop" / ".obra" / "memory" / "decision_log.md"
    edit(own, ("use PostgreSQL for storage.", "keep everything in PostgreSQL."))
    done = shop.share_decision("K1")
    assert (done.number, done.is_new) == ("K1", False)
    assert [each.text for each in shop.shared_decisions()] == ["We decided to use PostgreSQL 17 for storage."]


def test_what_is_adopted_is_the_projects_own(home: Path, opened: Open) -> None:
    """An adopted decision is one fact of the project and stays after it is deleted from the shared log."""
    opened("shop", EVERYBODYS).share_decision("K1")
    web = opened("web")
    first, again = web.adopt_decision("K1"), web.adopt_decision("k1")
    assert (first.number, first.is_new, again.is_new) == ("K1", True, False)
    _take_out(home)
    assert [fact.text for fact in web.facts()] == [EVERYBODYS]
    with pytest.raises(NotFoundError, match="K1 is not in the shared decision log"):
        web.adopt_decision("K1")
    web.refresh()
    assert web.get_orchestrator_context("next prompt").render().count(EVERYBODYS) >= 1
    assert part_of(web) == []


def _take_out(home: Path) -> None:
    """Delete the rules of the shared log as a person would."""
    text = log_of(home).read_text(encoding="utf-8")
    log_of(home).write_text(text[: text.index("### [")] + text[text.index("## Decisions") :], encoding="utf-8")


def test_a_project_changes_the_tags_of_what_it_shared_and_takes_it_back(home: Path, opened: Open) -> None:
    """Sharing again with other tags changes the entry of that project alone, as does taking it back."""
    shop, web = opened("shop", EVERYBODYS), opened("web", EVERYBODYS, "We decided to sign releases.")
    web.share_decision("K2")
    shop.share_decision("K1", tags=["pay"])
    edit(log_of(home), ("; for pay.*\n", "; for pay.*\n\n- Never deploy on Mondays.\n"))

    def told() -> list[tuple[str, tuple[str, ...]]]:
        return [(each.text, each.tags) for each in web.shared_decisions()]

    rest = [("Never deploy on Mondays.", ("pay",)), ("We decided to sign releases.", ())]
    assert web.share_decision("K1", tags=["web"]).entry == shop.share_decision("K1").entry == web.shared_decisions()[0]
    assert told() == [(EVERYBODYS, ("pay",)), *rest]
    assert shop.share_decision("K1", tags=["web", "phone"]).is_new is False
    assert told()[0] == (EVERYBODYS, ("web", "phone"))
    with pytest.raises(NotFoundError, match="K1 of this project is not in the shared decision log"):
        web.unshare_decision("K1")
    with pytest.raises(InvalidChangeError, match="change this by hand, as people have added lines to it"):
        shop.unshare_decision("K1")
    edit(log_of(home), ("- Never deploy on Mondays.", "The bank demands it."))
    with pytest.raises(InvalidChangeError, match="change this by hand, as people have added lines to it"):
        shop.unshare_decision("K1")
    edit(log_of(home), ("The bank demands it.", "### Never deploy on Mondays."))
    assert shop.unshare_decision("K1").text == EVERYBODYS
    web.share_decision("K2")
    assert [text for text, _ in told()] == [text for text, _ in rest]
    assert "*Shared by shop" not in log_of(home).read_text("utf-8")
    with pytest.raises(InvalidChangeError, match="a person has removed K2 from the shared decision log: `--again`"):
        web.share_decision("K1")


def test_a_copied_project_takes_back_no_other_decision_of_the_same_number(home: Path, opened: Open) -> None:
    """A project takes back what has both its number and its text: a copy may give the number to another decision."""
    shop = opened("shop", EVERYBODYS)
    shop.share_decision("K1")
    edit(log_of(home), (EVERYBODYS, "Never log the numbers of anything."))
    with pytest.raises(
        NotFoundError, match=r"says 'Never log the numbers of anything.', but K1 here .* by hand: /.*:17$"
    ):
        shop.unshare_decision("K1")


def test_what_a_person_took_out_is_not_shared_again(home: Path, opened: Open) -> None:
    """A decision that a person deleted from the shared log can be shared again only with `again=True`."""
    shop, web = opened("shop", EVERYBODYS), opened("web", EVERYBODYS)
    shop.share_decision("K1")
    _take_out(home)
    for memory in (shop, web):
        with pytest.raises(InvalidChangeError, match="a person has removed K1 from the shared decision log: `--again`"):
            memory.share_decision("K1")
    assert shop.shared_decisions() == []
    assert EVERYBODYS not in log_of(home).read_text(encoding="utf-8")
    assert [web.share_decision("K1", again=True).is_new for _ in range(2)] == [True, False]
    assert [(each.number, each.text) for each in shop.shared_decisions()] == [("K2", EVERYBODYS)]


def test_every_context_has_what_is_shared_behind_its_own_decisions(home: Path, opened: Open) -> None:
    """A context has matching shared decisions after the project's own, except its own and those with other tags."""
    shop = opened("shop", EVERYBODYS, "We decided to use PostgreSQL for storage.")
    shop.share_decision("K1")
    shop.share_decision("K2", tags=["web"])
    web = opened("web", "We decided to render pages on the server.", project={"tags": ["Web", "pages"]})
    app = opened("app", project={"tags": ["phone"]})
    rule, decision = f"- {EVERYBODYS} (from shop)", "- We decided to use PostgreSQL for storage. (from shop)"
    web.refresh()
    assert part_of(web) == part_of(web, query="how do we store things?") == [rule, decision]
    assert part_of(app) == [rule]
    assert part_of(shop) == []
    shown = web.get_orchestrator_context("next prompt").render()
    assert shown.index("render pages on the server") < shown.index(EVERYBODYS) < shown.index('part="working_memory"')


def test_a_person_may_say_in_the_document_for_whom_a_decision_is(home: Path, opened: Open) -> None:
    """Tags that a person writes into the log take effect, and a rule that a person adds there is shared."""
    opened("shop", "We decided to use PostgreSQL for storage.").share_decision("K1")
    edit(log_of(home), ("*Shared by shop, K1.*", "*Shared by shop, K1; for web, pages.*"))
    edit(log_of(home), ("## Rules\n\n- None", "## Rules\n\n- Nobody deploys on Fridays."))
    app = opened("app", "We decided to release every Monday morning.")
    assert part_of(app) == ["- Nobody deploys on Fridays."]
    app.share_decision("K1")
    assert "*Shared by shop, K1; for web, pages.*" in log_of(home).read_text(encoding="utf-8")
    assert [each.number for each in app.shared_decisions()] == ["K2", "K1", "K3"]


@pytest.mark.parametrize("line", cases("a_line_of_tags_that_cannot_be_read_lets_nobody_have_it"))
def test_a_line_of_tags_that_cannot_be_read_lets_nobody_have_it(home: Path, opened: Open, line: str) -> None:
    """A tag line that cannot be parsed hides its entry from all projects and is reported as a problem."""
    opened("shop", EVERYBODYS).share_decision("K1")
    edit(log_of(home), ("*Shared by shop, K1.*", line))
    web = opened("web", "We decided to number versions by date.", project={"tags": ["pay", "web"]})
    for _ in range(2):
        assert part_of(web) == []
        [problem] = problems_of(web)
        assert f"{line!r} does not say for which projects it is" in problem["problem"]
        web.share_decision("K1")  # rewrites the document


def test_an_entry_that_has_lost_its_line_is_for_nobody(home: Path, opened: Open) -> None:
    """An entry without its tag line is hidden and reported until the line is back; a person's own entry is for all."""
    opened("shop", EVERYBODYS).share_decision("K1", tags=["pay"])
    edit(log_of(home), ("*Shared by shop, K1; for pay.*\n\n", ""))
    edit(log_of(home), ("## Decisions\n\n- None", "## Decisions\n\n### Number versions by date"))
    web = opened("web", "We decided to sign releases.", project={"tags": ["pay"]})
    entry = next(row for row in log_of(home).read_text(encoding="utf-8").split("\n") if EVERYBODYS in row)
    for _ in range(2):
        assert part_of(web) == ["- Number versions by date"]
        [problem] = problems_of(web)
        assert (
            f"{entry!r} does not say for which projects it is, so it applies to none; write the line below it like"
            in problem["problem"]
        )
        with open_memory(home / "shared") as log:
            log.refresh()  # rewrites the document
    edit(log_of(home), (f"{entry}\n", f"{entry}\n\n*Shared by shop, K1; for pay.*\n"))
    assert problems_of(web) == []
    web.refresh()
    assert f"- {EVERYBODYS} (from shop)" in part_of(web)


def test_a_line_that_a_person_adds_behind_an_entry_is_shared_with_whom_that_is(home: Path, opened: Open) -> None:
    """A decision that a person adds below an entry keeps its place and gets a number and that entry's tags."""
    shop = opened("shop", EVERYBODYS, "We decided to use PostgreSQL for storage.")
    shop.share_decision("K1", tags=["pay"])
    last = "*Shared by shop, K1; for pay.*"
    edit(log_of(home), (last, f"- as the law says\n\n{last}\n\n- Never deploy on Mondays."))
    for _ in range(2):
        found = [(each.text, each.tags) for each in shop.shared_decisions()][:2]
        assert found == [(EVERYBODYS, ("pay",)), ("Never deploy on Mondays.", ("pay",))]
        shop.share_decision("K2")  # rewrites the document
    assert f"{last}\n\n- Never deploy on Mondays. (K2)\n" in log_of(home).read_text(encoding="utf-8")
    assert problems_of(shop) == []


def test_the_projects_own_word_stands_however_old_it_is(home: Path, opened: Open) -> None:
    """A project's own decision overrides a shared one after any number of later decisions."""
    opened("shop", "We decided to use PostgreSQL for storage.").share_decision("K1")
    web = opened("web", "We decided to use MySQL for storage.")
    record_decisions(web, 450)
    assert len(web.facts()) > 350
    own = 'in this project: "We decided to use MySQL for storage." (K1)'
    assert part_of(web) == [f'- Not here: "We decided to use PostgreSQL for storage." (from shop); {own}']


def test_a_shared_rule_that_its_own_project_has_reworded_is_not_against_it(home: Path, opened: Open) -> None:
    """A project that rewords a rule which it shared is not told that the shared words do not apply to it."""
    shop = opened("shop", "Never log card numbers or CVVs, not even masked.")
    shop.share_decision("K1")
    shop.refresh()
    edit(shop.episodic_memory.path("project_state"), (" or CVVs, not even masked. (K1)", " or CVVs. (K1)"))
    shop.refresh()
    assert shop.facts()[0].text == "Never log card numbers or CVVs."
    assert part_of(shop) == []


@pytest.mark.parametrize("reworded", [False, True])
def test_the_log_says_which_decision_is_perhaps_superseded(
    home: Path, opened: Open, run: Program, tmp_path: Path, *, reworded: bool
) -> None:
    """A decision that a later one contradicts stays, marked in the log, in contexts, and in `decisions shared`."""
    opened("shop", "We use MySQL for the ledger.").share_decision("K1")
    (log,) = home.rglob("decision_log.md")
    if reworded:
        edit(log, ("for the ledger.", "for the whole ledger."))
    app = opened("app", later := "We use PostgreSQL for the ledger instead of MySQL.")
    app.share_decision("K1")
    assert "(K1)\n\n*Perhaps superseded by K2.*\n\n*Shared by shop, K1.*" in log.read_text()
    earlier, web = app.shared_decisions()[0].text, opened("web", "Hello.")
    told = [f'- {earlier} (from shop); perhaps superseded by "{later}" (from app)', f"- {later} (from app)"]
    assert part_of(web) == told
    assert part_of(app) == [f'- Not here: "{earlier}" (from shop); in this project: "{later}" (K1)']
    shown = run("decisions", "shared", "-C", str(tmp_path / "projects" / "web"))
    assert f"K1: {earlier} (decision of shop, for all projects; perhaps superseded by K2)\n" in shown
    edit(log, ("superseded by K2", "superseded by K9"))
    assert [each.perhaps_superseded_by for each in web.shared_decisions()] == ["", ""]


def test_the_budget_holds_at_any_size(home: Path, opened: Open) -> None:
    """A context with shared decisions stays within its budget at any size, with and without a query."""
    shop = opened("shop")
    for thing, tool in zip(_THINGS, _TOOLS, strict=True):
        shop.record_operation("message", {"role": "user", "text": f"We decided to keep {thing} with {tool}."})
    for fact in shop.facts():
        shop.share_decision(f"K{fact.id}")
    web = opened("web", *(f"We decided that hall {number} has {number} doors." for number in range(9)))
    web.refresh()
    for budget in (*range(0, 400, 57), 700, 4_000):
        for query in (None, "how many doors has hall 3?"):
            context = web.get_orchestrator_context("next prompt", budget, query=query)
            assert context.tokens <= budget
            assert web.counter.count(context.render()) <= budget
    assert len(part_of(web)) == len(web.shared_decisions())


def test_the_prefix_stays_and_what_is_shared_meanwhile_is_told_at_the_end(home: Path, opened: Open) -> None:
    """A decision shared within an epoch is appended to the context; the next epoch has it in the prefix."""
    shop, web = opened("shop", EVERYBODYS, "We decided to use PostgreSQL for storage."), opened("web", "Hello.")
    shop.share_decision("K1")
    web.refresh()
    before = web.get_orchestrator_context("next prompt")
    assert web.get_orchestrator_context("next prompt").render() == before.render()
    shop.share_decision("K2")
    after = web.get_orchestrator_context("next prompt")
    assert after.epoch == before.epoch
    assert after.render().startswith(before.render())
    assert "> +- We decided to use PostgreSQL for storage. (from shop)" in after.render()
    web.refresh()
    assert "We decided to use PostgreSQL" in web.get_orchestrator_context("next prompt").prefix


def test_a_project_without_a_home_or_with_nothing_shared_is_as_ever(
    opened: Open, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With nothing shared there is no shared part and no problem; without a home, sharing raises an error."""
    web = opened("web", EVERYBODYS)
    assert "shared" not in web.explain()
    assert problems_of(web) == []
    assert not (home / "shared").exists()
    monkeypatch.setenv("ORCHESTRA_MEM_HOME", "off")
    off = opened("app", EVERYBODYS)
    for call in (off.share_decision, off.adopt_decision):
        with pytest.raises(StorageError, match="there is no home folder: ORCHESTRA_MEM_HOME is off"):
            call("K1")
    assert (off.shared_decisions(), problems_of(off)) == ([], [])


def test_a_shared_log_that_is_gone_or_none_stops_no_project(home: Path, opened: Open) -> None:
    """Without a readable shared log contexts still work and the problem is reported; sharing writes the log anew."""
    shop, web = opened("shop", EVERYBODYS), opened("web", "Hello.")
    shop.share_decision("K1")
    before = web.get_orchestrator_context("next prompt").render()
    log_of(home).unlink()
    assert web.get_orchestrator_context("next prompt").render() == before
    web.refresh()
    assert part_of(web) == []
    [problem] = problems_of(web)
    assert problem["problem"] == f"{log_of(home)} is missing; it is created again when a decision is shared"
    log_of(home).mkdir()
    assert "is a folder" in problems_of(web)[0]["problem"]
    assert web.get_orchestrator_context("next prompt").tokens > 0
    log_of(home).rmdir()
    assert shop.share_decision("K1").is_new is False
    web.refresh()
    assert (problems_of(web), part_of(web)) == ([], [f"- {EVERYBODYS} (from shop)"])


def test_a_locked_shared_log_is_waited_for_no_longer_than_the_project_waits(home: Path, opened: Open) -> None:
    """Sharing into a locked log fails after the project's lock timeout, and contexts do not wait for the lock."""
    shop = opened("shop", EVERYBODYS, "We decided to use PostgreSQL for storage.", storage={"lock_timeout_s": 0.1})
    web = opened("web", "Hello.")
    shop.share_decision("K1")
    with FileLock(home / "shared" / ".obra" / "obra.lock"):
        with pytest.raises(LockTimeoutError, match="has locked"):
            shop.share_decision("K2")
        assert part_of(web) == [f"- {EVERYBODYS} (from shop)"]
    assert shop.share_decision("K2").is_new


def test_a_shared_log_that_may_only_be_read_is_read(home: Path, opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """A read-only shared log is still read; sharing something new raises an error that says so."""
    shop = opened("shop", EVERYBODYS, "We decided to use PostgreSQL for storage.")
    shop.share_decision("K1")
    closed_to_writing(home / "shared" / ".obra", monkeypatch)
    with pytest.raises(StorageReadOnlyError, match="this memory is read-only"):
        shop.share_decision("K2")
    assert shop.share_decision("K1").is_new is False
    assert part_of(opened("web", "Hello.")) == [f"- {EVERYBODYS} (from shop)"]


def test_a_broken_database_of_the_shared_log_refuses_what_is_new_and_nothing_else(home: Path, opened: Open) -> None:
    """With the log's database broken, sharing raises an error and the log's document is still read."""
    shop, web = opened("shop", EVERYBODYS, "We decided to use PostgreSQL for storage."), opened("web", "Hello.")
    shop.share_decision("K1")
    database = home / "shared" / ".obra" / "obra.db"
    for leftover in database.parent.glob("obra.db-*"):
        leftover.unlink()
    database.write_bytes(b"no database at all " * 200)
    with pytest.raises(StorageError, match=r"obra\.db"):
        shop.share_decision("K2")
    assert part_of(web) == [f"- {EVERYBODYS} (from shop)"]
    assert EVERYBODYS in [fact.text for fact in shop.facts()]


def test_a_project_may_share_nothing_and_read_all_the_same(home: Path, opened: Open) -> None:
    """A project with `project.shared: false` cannot share, but reads and adopts shared decisions."""
    opened("shop", EVERYBODYS).share_decision("K1")
    web = opened("web", "We decided to use PostgreSQL for storage.", project={"shared": False})
    with pytest.raises(InvalidChangeError, match=r"its setting project\.shared is false"):
        web.share_decision("K1")
    assert part_of(web) == [f"- {EVERYBODYS} (from shop)"]
    assert web.adopt_decision("K1").is_new


def test_what_is_no_decision_or_rule_is_refused(home: Path, opened: Open) -> None:
    """Sharing an open item, an unknown fact or an invalid tag raises an error and creates no log."""
    shop = opened("shop", "TODO: write the migration guide for operators.", EVERYBODYS)
    [task] = [fact for fact in shop.facts() if fact.text.startswith("TODO") or "migration" in fact.text]
    with pytest.raises(InvalidChangeError) as refused:
        shop.share_decision(f"K{task.id}")
    told = f"K{task.id} (open item, standing) cannot be shared; only current decisions and rules can"
    assert str(refused.value) == told
    with pytest.raises(InvalidChangeError, match="is not a tag"):
        shop.share_decision("K1", tags=["a, b"])
    with pytest.raises(NotFoundError, match="K99"):
        shop.share_decision("K99")
    assert not (home / "shared").exists()


def test_with_strict_isolation_what_an_agent_said_is_not_shared(home: Path, opened: Open, tmp_path: Path) -> None:
    """With strict isolation an agent's decision is shareable only once a person edited it; the owner's always is."""
    shop = opened("shop", EVERYBODYS, catalog={"isolation": "strict"})
    bob = shop.as_agent("bob")
    bob.record_operation("message", {"role": "user", "text": "We decided to use PostgreSQL for storage."})
    assert not hasattr(bob, "share_decision")
    assert [fact.id for fact in shop.shareable()] == [1]
    with pytest.raises(InvalidChangeError, match="K2 belongs to agent 'bob', and catalog"):
        shop.share_decision("K2")
    shop.refresh()
    own = tmp_path / "projects" / "shop" / ".obra" / "memory" / "decision_log.md"
    edit(own, ("PostgreSQL for storage.", "PostgreSQL 17 for storage."))
    assert shop.share_decision("K2").is_new
    assert shop.share_decision("K1").is_new


def test_secrets_stay_out_of_the_shared_log_and_reach_no_project(home: Path, opened: Open, tmp_path: Path) -> None:
    """A secret in a shared decision is redacted in the log, and one that a person writes into the log on reading."""
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    shop, web = opened("shop", "Hello."), opened("web", "Hello.")
    shop.refresh()
    own = tmp_path / "projects" / "shop" / ".obra" / "memory" / "decision_log.md"
    edit(own, ("## Decisions\n\n- None", f"## Decisions\n\n### We deploy with {secret}."))
    [fact] = shop.facts()
    assert secret in fact.text
    shop.share_decision(f"K{fact.id}")
    assert secret.encode() not in b"".join(each.read_bytes() for each in home.rglob("*") if each.is_file())
    edit(log_of(home), ("## Rules\n\n- None", f"## Rules\n\n- Deploy with {secret}, nothing else."))
    assert [each.text[:12] for each in web.shared_decisions()] == ["Deploy with ", "We deploy wi"]
    assert secret not in f"{web.shared_decisions()} {part_of(web)}"


def test_every_command_of_documents_works_on_the_shared_log(home: Path, opened: Open) -> None:
    """The shared log is a memory with one document, whose blame and history work."""
    shop = opened("shop", EVERYBODYS, "We decided to use PostgreSQL for storage.")
    for number in ("K1", "K2"):
        shop.share_decision(number)
    with open_memory(home / "shared") as log:
        assert log.shared_decisions() == shop.shared_decisions() != []
        assert log.documents.names() == ["decision_log"]
        [line] = [each for each in log.blame("decision_log") if EVERYBODYS in each.text]
        assert line.origin.operations == ((1, 1),)
        assert len(log.documents.history("decision_log")) == 2
        assert log.get_orchestrator_context("next prompt").as_dict().get(Part.SHARED.value) is None
    assert sorted(path.name for path in (home / "shared").glob("*.md")) == ["decision_log.md"]


def test_the_commands_say_for_whom_and_what_could_not_be_written(
    home: Path, opened: Open, run: Program, tmp_path: Path
) -> None:
    """`decisions share` reports an existing entry, where to edit it, and that the log could not be written."""
    opened("shop", EVERYBODYS, "We decided to use PostgreSQL for storage.").close()
    here = ("-C", str(tmp_path / "projects" / "shop"))
    assert run("decisions", "share", "K1", *here) == f"shared as K1: {EVERYBODYS}\n"
    assert run("decisions", "share", "K1", *here) == f"already shared as K1, for all projects: {EVERYBODYS}\n"
    assert run.errors == f"edit its line in {log_of(home)} to change that\n"
    run("decisions", "share", "K1", "--tag", "x;y", *here, exit_code=2)
    assert run("decisions", "share", "K1", "--tag", "x", *here) == f"already shared as K1, now for x: {EVERYBODYS}\n"
    assert run("decisions", "unshare", "K1", *here) == f"no longer shared: {EVERYBODYS}\n"
    run("decisions", "unshare", "K1", *here, exit_code=1)
    assert run("decisions", "share", "K1", "--again", *here) == f"shared as K2: {EVERYBODYS}\n"
    log_of(home).unlink()
    log_of(home).mkdir()
    assert run("decisions", "shared", *here, exit_code=1) == "the shared log cannot be read\n"
    assert "is a folder" in run.errors
    assert run.json("decisions", "shared", *here, exit_code=1) == []
    for _ in range(2):
        assert run("decisions", "share", "K2", *here).startswith("recorded as K3: We decided")
        assert "; it is added there when the document can be written and a decision is shared again" in run.errors
        assert "is a folder" in run.errors
    log_of(home).rmdir()
    assert run("decisions", "share", "K2", *here).startswith("already shared as K3, for all projects: ")


def test_adopting_names_what_it_takes_the_place_of(home: Path, opened: Open, run: Program, tmp_path: Path) -> None:
    """`decisions adopt` names the project's own decision that the adopted one supersedes."""
    opened("shop", "We decided to use PostgreSQL for storage.").share_decision("K1")
    own = "We decided to use MySQL for storage."
    opened("web", own).close()
    told = run("decisions", "adopt", "K1", "-C", str(tmp_path / "projects" / "web"))
    assert told == f"adopted as K2: We decided to use PostgreSQL for storage.\nit supersedes K1: {own}\n"
