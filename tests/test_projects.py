"""Several projects: they list themselves without delaying anything, and can be searched together."""

from __future__ import annotations

import json
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import platformdirs
import pytest

from orchestra_mem import NotFoundError, Projects, StorageError, open_memory
from orchestra_mem.adapters.home import has_memory, home_folder
from orchestra_mem.search_types import SearchFilter
from orchestra_mem.serialize import to_object
from tests.conftest import START, Clock
from tests.memories import problems_of
from tests.processes import start

# Opens all projects below a folder repeatedly, in random order.
_OPENER = """
import random, sys
from pathlib import Path
from orchestra_mem import open_memory
rounds, below = int(sys.argv[1]), Path(sys.argv[2])
for _ in range(rounds):
    for project in random.sample(sorted(below.iterdir()), 8):
        open_memory(project).close()
"""
SECRET = "The vault is opened by the copper key."


@pytest.fixture
def make(tmp_path: Path, home: Path) -> Callable[..., Path]:
    """Make a project with messages of a user and with settings."""

    def made(name: str, *said: str, config: str = "", agent: str | None = None) -> Path:
        project = tmp_path / "projects" / name
        (project / ".obra").mkdir(parents=True, exist_ok=True)
        (project / ".obra" / "config.yaml").write_text(config)
        with open_memory(project) as memory:
            for text in said:
                memory.record_operation("message", {"role": "user", "text": text}, agent=agent)
            memory.facts()
            memory.update_index()
        return project

    return made


def _files(home: Path) -> list[dict[str, object]]:
    return [json.loads(path.read_text()) for path in sorted((home / "projects").glob("*.json"))]


# The list


def test_a_project_lists_itself_when_it_is_opened_and_once_a_day(tmp_path: Path, home: Path, clock: Clock) -> None:
    """Opening a project lists its id, name, tags, folder and days; further opens on the same day write nothing."""
    project = tmp_path / "bakery"
    project.mkdir()
    open_memory(project, clock=clock, config={"project": {"tags": ["food"]}}).close()
    (found,) = Projects().list()
    assert (found.name, found.label, found.path, found.tags) == ("bakery", "bakery", project, ("food",))
    assert (found.shared, found.present, found.note) == (True, True, "")
    assert (found.first_opened, found.last_opened) == ("2025-01-15", "2025-01-15")
    (file,) = (home / "projects").iterdir()
    before = file.stat().st_mtime_ns
    open_memory(project, clock=clock, config={"project": {"tags": ["food"]}}).close()
    assert file.stat().st_mtime_ns == before
    clock.now += timedelta(days=1)
    open_memory(project, clock=clock, config={"project.id": "7", "project.name": "Bread"}).close()
    (found,) = Projects().list()
    assert (found.id, found.name, found.tags, found.last_opened) == ("7", "Bread", (), "2025-01-16")
    assert [path.name for path in (home / "projects").iterdir()] == [file.name]


def test_the_id_is_the_projects_own_and_goes_with_its_folder(make: Callable[..., Path], home: Path) -> None:
    """A moved project keeps its id; a copied one and a missing one are listed with a note."""
    project = make("bakery")
    (before,) = Projects().list()
    moved = project.rename(project.with_name("mill"))
    assert [each.note for each in Projects().list()] == [
        "its memory was not found; `orchestra-mem projects remove` removes it from the list"
    ]
    open_memory(moved).close()
    (found,) = Projects().list()
    assert found == replace(before, name="mill", label="mill", path=moved)
    copy = project.with_name("copy")
    shutil.copytree(moved, copy)
    open_memory(copy).close()
    assert {each.path: each.note for each in Projects().list()} == {
        copy: f"has the id of {moved} and may be a copy; set a different project.id in one of them",
        moved: f"has the id of {copy} and may be a copy; set a different project.id in one of them",
    }
    (copy / ".obra" / "config.yaml").write_text("project: {id: 8}")
    open_memory(copy).close()
    assert [(each.id, each.note) for each in Projects().list()] == [("8", ""), (before.id, "")]
    Projects().remove("mill")
    assert [each["id"] for each in _files(home)] == ["8"], "what was left of the earlier folder goes as well"


def test_a_project_is_named_by_its_name_id_or_folder(
    make: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A project is found by name, id, folder or the beginning of its id; an unknown or ambiguous name is refused."""
    shop, bakery = make("shop"), make("bakery", config="project: {id: 12, name: Bread}")
    projects = Projects()
    listed = {each.path: each for each in projects.list()}
    found = [projects.info(each) for each in ("shop", shop, listed[shop].id, listed[shop].id[:6], "12", bakery)]
    assert found == [listed[shop]] * 4 + [listed[bakery]] * 2
    with pytest.raises(
        NotFoundError, match="no project 'mill' is listed; `orchestra-mem projects list` shows all of them"
    ):
        projects.info("mill")
    other = make("other/shop")
    with pytest.raises(
        NotFoundError, match=f"'shop' matches several projects; name one by its folder: {other}, {shop}"
    ):
        projects.remove("shop")
    assert [each.label for each in projects.list()] == ["Bread", f"shop ({other})", f"shop ({shop})"]
    monkeypatch.chdir(shop.parent)  # a folder of that name is here, but the other project may be meant
    with pytest.raises(NotFoundError, match="'shop' matches several projects"):
        projects.info("shop")
    assert projects.info("./shop").path == shop


@pytest.mark.nested
def test_a_broken_file_is_made_anew_by_the_next_open(make: Callable[..., Path], home: Path) -> None:
    """A broken file of a project is rewritten when that project is opened; until then the others are listed."""
    project = make("bakery")
    make("mill")
    (file,) = [path for path in (home / "projects").iterdir() if "bakery" in path.read_text()]
    whole = file.read_bytes()
    other = whole.replace(b'"id"', b'"x"')
    for broken in (b"", b"{", b"[]", b"null", b'{"id": 1}', b"\xff\xfe", b"[" * 100_000, other):
        file.write_bytes(broken)
        assert [each.name for each in Projects().list()] == ["mill"]
        open_memory(project).close()
        assert file.read_bytes() == whole


def test_a_temporary_project_lists_itself_in_a_temporary_home_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A project in a temporary folder is not listed in the user's home, unless it is added explicitly."""
    temporary, home = tmp_path / "temporary", tmp_path / "home"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    monkeypatch.setenv("ORCHESTRA_MEM_HOME", str(home))
    (temporary / "trial").mkdir()
    open_memory(temporary / "trial").close()
    assert not home.exists()
    with pytest.raises(StorageError, match=f"no memory in {temporary}; run `orchestra-mem init` there"):
        Projects().add(temporary)
    assert Projects().add(temporary / "trial").name == "trial"
    assert [each["name"] for each in _files(home)] == ["trial"]
    monkeypatch.setenv("ORCHESTRA_MEM_HOME", str(temporary / "home"))
    open_memory(temporary / "trial").close()
    assert [each["name"] for each in _files(temporary / "home")] == ["trial"]


@pytest.mark.parametrize("kind", ["a file", "below a file", "a circle of links"])
def test_a_home_that_cannot_be_one_is_no_failure_of_a_project(kind: str, make: Callable[..., Path], home: Path) -> None:
    """With an unusable home a project opens and records as usual; only the list reports the error."""
    if kind == "a circle of links":
        home.symlink_to(home)
    elif kind == "a file":
        home.write_text("")
    else:
        home.mkdir()
        (home / "projects").write_text("")
    project = make("bakery", "We decided to bake rye bread.")
    with open_memory(project) as memory:
        assert memory.operations()[-1].data == {"role": "user", "text": "We decided to bake rye bread."}
    with pytest.raises(StorageError, match=f"writing to {home}/projects: "):
        Projects().add(project)
    with pytest.raises(StorageError, match=f"reading {home}/projects: "):
        Projects().list()


def test_processes_open_projects_at_once_and_some_are_killed(tmp_path: Path, home: Path) -> None:
    """Each project is listed once with a stable id, though processes are killed; their leftover files are removed."""
    below = tmp_path / "projects"
    for number in range(8):
        (below / f"p{number:02}").mkdir(parents=True)
    killed = [start("-c", _OPENER, 100, below) for _ in range(2)]
    others = [start("-c", _OPENER, 2, below) for _ in range(4)]
    for each in killed:
        seen = len(_files(home))
        while len(_files(home)) == seen < 8:  # kill it while it lists projects
            time.sleep(0.01)
        each.send_signal(signal.SIGKILL)
    assert [(each.communicate(timeout=120)[1], each.returncode) for each in others] == [("", 0)] * 4
    assert [(each.communicate()[1], each.returncode) for each in killed] == [("", -signal.SIGKILL)] * 2
    listed = Projects().list()
    assert [each.name for each in listed] == [f"p{number:02}" for number in range(8)]
    assert len({each.id for each in listed}) == 8
    assert [each.note for each in listed] == [""] * 8
    assert sorted(str(each["id"]) for each in _files(home)) == sorted(each.id for each in listed)
    for project in listed:
        open_memory(project.path).close()
    assert [each.id for each in Projects().list()] == [each.id for each in listed]
    left = home / "projects" / "abc.1-1.tmp"
    left.write_text("{")
    for path in (home / "projects").glob("*.tmp"):  # also those of the killed processes
        os.utime(path, (1, 1))
    (below / "new").mkdir()
    open_memory(below / "new").close()
    assert [path.suffix for path in (home / "projects").iterdir()] == [".json"] * 9


# Searching together


def test_a_search_over_all_projects_ranks_by_likelihood_and_names_the_project(make: Callable[..., Path]) -> None:
    """A search of all projects ranks hits by likelihood, names their projects, and has each project's own answers."""
    shop = make("shop", "The gateway times out after 30 seconds when the cache is cold.", "We sell bread.")
    web = make("web", "The gateway is called Gerda.", "We paint the fence on Tuesdays.")
    make("mill", "The miller sleeps.")
    found = Projects().search("When does the gateway time out?", limit=4)
    assert found.notes == ()
    first = found.hits[0]
    assert (first.project, first.path) == ("shop", shop)
    assert "30 seconds" in first.chunk.text
    assert [hit.likelihood for hit in found.hits] == sorted((hit.likelihood for hit in found.hits), reverse=True)
    assert {hit.project for hit in found.hits} >= {"shop", "web"}
    with open_memory(web) as memory:
        alone = memory.search("When does the gateway time out?", limit=4).hits
    of_web = [hit for hit in found.hits if hit.project == "web"]
    assert {hit.chunk.text for hit in of_web} <= {hit.chunk.text for hit in alone}
    assert {round(hit.likelihood, 6) for hit in of_web} <= {round(hit.likelihood, 6) for hit in alone}


def test_an_exported_address_of_a_server_is_not_that_of_the_other_projects(
    make: Callable[..., Path], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A storage address in the environment does not apply to the listed projects or to the shared log."""
    shop = make("shop", "We decided to keep every timestamp in UTC.", "We decided to use 4 workers.")
    with open_memory(shop) as memory:
        memory.share_decision("K1")
    monkeypatch.setenv("ORCHESTRA_MEM__STORAGE__URL", "postgresql://mem@127.0.0.1:9/team")
    found, recurring = Projects().search("timestamp"), Projects().recurring(least=1)
    assert ([hit.project for hit in found.hits][:1], found.notes, recurring.notes) == (["shop"], (), ())
    assert [fact.text for (fact,) in recurring.groups] == ["We decided to use 4 workers."]
    assert Projects().add(shop).path == shop
    assert [*home.parent.rglob("working_copy.db")] == []


def test_what_the_environment_says_of_one_project_is_not_said_of_the_others(
    make: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name, a right to search or an absolute folder in the environment does not apply to the listed projects."""
    make("vault", SECRET, config="project: {shared: false}")
    shop = make("shop", "The gateway times out after 30 seconds.")
    monkeypatch.setenv("ORCHESTRA_MEM__PROJECT__SHARED", "true")
    monkeypatch.setenv("ORCHESTRA_MEM__PROJECT__NAME", "mill")
    monkeypatch.setenv("ORCHESTRA_MEM__ORCHESTRATOR__MEMORY_DIR", str(tmp_path / "mill"))
    assert {hit.project for hit in Projects().search("gateway").hits} == {"shop"}
    assert Projects().add(shop).name == "shop"
    assert not (tmp_path / "mill").exists()


def test_what_many_projects_say_alike_is_one_hit_that_names_them(make: Callable[..., Path]) -> None:
    """Equal hits of several projects, such as adopted decisions, are one; what one of them has superseded is apart."""
    rule, revoked = "Never log card numbers.", "We decided to use PostgreSQL for storage."
    with open_memory(make("shop", rule, revoked)) as memory:
        memory.share_decision("K1")
    for name in ("web", "oven"):
        with open_memory(make(name)) as memory:
            memory.adopt_decision("K1")
            memory.update_index()
    make("mill", revoked, "We decided to use MySQL for storage.")
    found = Projects().search("log card numbers", where=SearchFilter(kinds=("constraint",))).hits
    assert [(hit.chunk.text, set(hit.projects)) for hit in found] == [(rule, {"shop", "web", "oven"})]
    assert to_object(found[0])["projects"] == list(found[0].projects)
    assert found[0].project == found[0].projects[0]
    (advice,) = Projects().recommend("log card numbers").rules
    assert (advice.text.endswith(rule), advice.projects[0], set(advice.projects)) == (
        (True, advice.project, {"shop", "web", "oven"})
    )
    assert advice.label.startswith(f"{advice.project} K1 (")
    assert f"also in {advice.projects[1]}" in advice.label
    for name, year in (("tea", 2026), ("cake", 2027)):
        make(name, f"We decided to open the garden on [{year}-03-01].")
    assert {each.projects for each in Projects().recommend("open the garden").decisions} == {("tea",), ("cake",)}
    found = Projects().search("PostgreSQL for storage", where=SearchFilter(kinds=("message",))).hits
    told = {(hit.projects, bool(hit.superseded_by)) for hit in found if hit.chunk.text == revoked}
    assert told == {(("shop",), False), (("mill",), True)}
    for name, title in (("shop", "Databases that we use"), ("mill", "Databases that we refused")):
        state = make(name) / ".obra" / "memory" / "project_state.md"
        state.write_text(f"{state.read_text('utf-8')}\n## {title}\n\nMongoDB with three replicas.\n", "utf-8")
    hits = Projects().search("MongoDB replicas").hits
    assert {hit.projects for hit in hits if "MongoDB" in hit.chunk.text} == {("shop",), ("mill",)}


def test_a_project_that_refuses_is_not_searched_whoever_said_so(make: Callable[..., Path], tmp_path: Path) -> None:
    """A project whose settings or program refuse sharing is not searched; a note says so."""
    make("shop", "The shop has a door.")
    make("vault", SECRET, config="project: {shared: false}")
    safe = make("safe", SECRET)
    open_memory(safe, config={"project.shared": False}).close()
    late = make("late", SECRET)
    (late / ".obra" / "config.yaml").write_text("project: {shared: false}")
    projects = Projects()
    for found in (
        projects.search("key vault door", agent="ada"), projects.search("key vault door"),
        projects.recommend("open the vault by the key", agents=["ada"]), projects.recurring(least=1),
    ):  # fmt: skip
        assert "copper" not in str(found)
        assert found.notes == ("late, safe, vault: not searched (project.shared: false)",)


def test_an_agent_sees_in_each_project_what_it_may_see_there(make: Callable[..., Path]) -> None:
    """A project's strict isolation hides its operations and items from other agents, unless one has permission."""
    strict = "catalog: {isolation: strict, permissions: {eve: {read: [bob]}}}"
    make("open", "Bob found the copper coin in the open.", agent="bob")
    closed = make("closed", "Bob hid the copper kettle in the closed.", agent="bob", config=strict)
    with open_memory(closed) as memory:
        memory.record_operation("note", {"text": "Ada saw a copper pan."}, agent="ada")
        memory.as_agent("bob").remember("Bob dreams of copper pipes.", type="insight")
    projects = Projects()

    def texts(agent: str | None) -> str:
        return " ".join(hit.chunk.text for hit in projects.search("copper", agent=agent, limit=50).hits)

    words = ("coin", "kettle", "pan", "pipes")
    seen = {agent: [word for word in words if word in texts(agent)] for agent in (None, "ada", "bob", "eve")}
    assert seen == {None: [*words], "ada": ["coin", "pan"], "bob": ["coin", "kettle", "pipes"],
                    "eve": ["coin", "kettle", "pipes"]}  # fmt: skip
    recommended = {agent: projects.recommend("polish the copper", agents=[agent]).render() for agent in ("ada", "bob")}
    assert "kettle" not in recommended["ada"]
    assert "kettle" in recommended["bob"]


def test_a_project_that_fails_is_told_and_fails_nothing(make: Callable[..., Path]) -> None:
    """A missing, broken or misconfigured project is named in a note; the others, even a locked one, answer in time."""
    make("shop", "The gateway times out after 30 seconds.")
    gone, broken, wrong = (make(name) for name in ("gone", "broken", "wrong"))
    held = make("held", "The gateway listens on port 8443.")
    shutil.rmtree(gone / ".obra")
    (broken / ".obra" / "obra.db").write_bytes(b"no database" * 1_000)
    (wrong / ".obra" / "config.yaml").write_text("project: {shared: perhaps}")
    holder = start(
        "-c", "import sys, time\nfrom orchestra_mem import open_memory\nmemory = open_memory(sys.argv[1])\n"
        "with memory._parts.store.lock():\n    print('held', flush=True)\n    time.sleep(60)\n",
        held, env={"ORCHESTRA_MEM_HOME": "off"},
    )  # fmt: skip
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        begun = time.monotonic()
        found = Projects().search("gateway", timeout_s=4)
        assert time.monotonic() - begun < 20
    finally:
        holder.kill()
        holder.communicate()
    assert {hit.project for hit in found.hits} == {"shop", "held"}
    notes = dict(note.partition(": ")[::2] for note in found.notes)
    assert sorted(notes) == ["broken", "gone", "wrong"]
    assert "obra.db" in notes["broken"]
    assert notes["gone"] == f"no memory found in {gone}"
    assert "project.shared: must be true or false, not the text 'perhaps'" in notes["wrong"]
    assert not (gone / ".obra").exists(), "no memory is made by a search"


def test_a_project_that_hangs_holds_up_none_beyond_its_time(
    make: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A project that hangs is named in a note after the timeout, and the others answer."""
    for number in range(6):
        make(f"p{number}", "The gateway times out.")
    go_on = threading.Event()

    def hang(project: Path) -> bool:
        if project.name in ("p0", "p3"):
            go_on.wait(30)
        return has_memory(project)

    monkeypatch.setattr("orchestra_mem.home.across_projects.has_memory", hang)
    found = Projects().search("gateway", timeout_s=3)
    go_on.set()
    assert found.notes == ("p0, p3: no answer within 3 s",)
    assert {*found.hits[0].projects} == {"p1", "p2", "p4", "p5"}


def test_a_search_does_not_count_as_opening(make: Callable[..., Path], home: Path, tmp_path: Path) -> None:
    """A search does not change the days listed; invalid arguments are refused as by a single memory."""
    project = make("shop", "The shop has a door.")
    open_memory(project, clock=lambda: START).close()
    before = _files(home)
    Projects().search("door")
    assert _files(home) == before
    with pytest.raises(ValueError, match="limit is -1: must be at least 0"):
        Projects().search("door", limit=-1)
    with pytest.raises(ValueError, match="since is 2025-01-15 00:00:00, which has no time zone"):
        Projects().search("door", where=SearchFilter(since=START.replace(hour=0, tzinfo=None)))
    assert Projects(tmp_path / "nowhere").search("door").hits == ()


def test_recommendations_of_all_projects_are_the_likeliest_of_each_kind(make: Callable[..., Path]) -> None:
    """Recommendations of all projects are sorted by likelihood within each kind, and name their project."""
    make("shop", "We decided to use PostgreSQL for the orders.", "Never deploy the orders on Fridays.")
    make("web", "We decided to use SQLite for the orders of tests.")
    found = Projects().recommend("choose a database for the orders", limit=2)
    assert {each.project for each in found.decisions} == {"shop", "web"}
    assert [each.project for each in found.rules] == ["shop"]
    assert [each.likelihood for each in found.decisions] == sorted(
        (each.likelihood for each in found.decisions), reverse=True
    )
    assert "\n```recalled shop K" in found.render()


def test_what_recurs_in_three_projects_is_offered_and_its_opposite_is_not(make: Callable[..., Path]) -> None:
    """A decision of three projects recurs; its opposite or another number does not count, and copies count as one."""
    same = "We decided to keep every timestamp in UTC."
    shop = make("shop", same, same)
    make("web", "We decided to keep each timestamp in UTC.", "We decided to use 4 workers.")
    shutil.copytree(shop, shop.with_name("copy"))
    open_memory(shop.with_name("copy")).close()
    make("mill", "We decided never to keep every timestamp in UTC.", "We decided to use 8 workers.")
    assert Projects().recurring().groups == ()
    make("oven", same, "We decided to use 2 workers.")
    (group,) = Projects().recurring().groups
    assert {fact.project for fact in group} == {"copy", "oven", "shop", "web"}
    assert {fact.text for fact in group} == {same, "We decided to keep each timestamp in UTC."}
    assert Projects().recurring(least=4).groups == ()


def test_what_is_shared_or_cannot_be_is_not_offered_for_sharing(make: Callable[..., Path], home: Path) -> None:
    """A recurring decision that has been shared once is not offered again, and insights are never offered."""
    same, learnt = "We decided to keep every timestamp in UTC.", "We learned that the cache doubles the latency."
    shop = make("shop", same, learnt)
    make("web", "We decided to keep each timestamp in UTC.", learnt)
    make("oven", learnt)
    with open_memory(shop) as memory:
        assert {fact.kind for fact in memory.facts()} == {"decision", "insight"}
        assert len(Projects().recurring(least=2).groups) == 1
        memory.share_decision("K1")
    with open_memory(shop.with_name("oven")) as memory:
        memory.adopt_decision("K1")
    assert Projects().recurring(least=2).groups == ()
    log = home / "shared" / "decision_log.md"
    log.write_text(log.read_text()[: log.read_text().index("### [")])
    assert Projects().recurring(least=2).groups == ()


# The home


def test_the_home_is_where_the_variable_says_or_in_the_users_data_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The home is the absolute path in the variable, none for `off`, and otherwise the user's data folder."""
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    found = [home_folder({"ORCHESTRA_MEM_HOME": given}) for given in ("/a/b", "~/d", "off")]
    assert found == [Path("/a/b"), tmp_path / "me/d", None]
    expected = platformdirs.user_data_path("orchestra-mem", appauthor=False)
    assert home_folder({}) == home_folder({"ORCHESTRA_MEM_HOME": " "}) == expected
    with pytest.raises(StorageError, match="ORCHESTRA_MEM_HOME is c, a relative path: give an absolute path, or off"):
        home_folder({"ORCHESTRA_MEM_HOME": "c"})


def test_a_home_that_is_a_relative_path_stops_no_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With an invalid home, a project works and reports it; only sharing and the list of projects do not work."""
    monkeypatch.setenv("ORCHESTRA_MEM_HOME", "c")
    with open_memory(tmp_path) as memory:
        memory.record_operation("decision", {"text": "We bake rye bread."})
        assert "rye bread" in memory.get_orchestrator_context("next prompt").render()
        (problem,) = problems_of(memory)
        wrong = "ORCHESTRA_MEM_HOME is c, a relative path: give an absolute path, or off"
        assert (problem["subject"], problem["problem"]) == ("home folder", wrong)
        with pytest.raises(StorageError, match="there is no home folder: ORCHESTRA_MEM_HOME is off or a relative path"):
            memory.share_decision(f"K{memory.facts()[0].id}")
