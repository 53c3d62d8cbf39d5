"""The commands `catalog` and `audit`: what they do, what they refuse, and what each agent may do with them."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from orchestra_mem import open_memory
from tests.builders import cases
from tests.faces.conftest import Program

TEA, RULE, LEAK = "Tea is at four.", "We never deploy on Fridays.", "The old store leaks memory on reload."


@pytest.fixture(scope="module")
def stock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Items M1 of all agents, M2 (permanent) of ada, M3 of bob, whose items eve may read."""
    folder = tmp_path_factory.mktemp("stock")
    (folder / ".obra").mkdir()
    (folder / ".obra" / "config.yaml").write_text("catalog:\n  permissions:\n    eve: {read: [bob]}\n")
    with open_memory(folder) as memory:
        memory.catalog.store({"content": TEA, "tags": ["tea"]})
        memory.catalog.store({"content": RULE, "type": "decision", "agent": "ada", "priority": 9, "tags": ["deploy"]})
        memory.catalog.store({"content": LEAK, "type": "insight", "agent": "bob", "tags": ["store", "memory"]})
    return folder


@pytest.fixture
def stocked(run: Program, stock: Path) -> Program:
    """The program in a folder with these items."""
    shutil.copytree(stock, run.folder, dirs_exist_ok=True)
    return run


def _listed(program: Program, *options: str) -> list[int]:
    return [item["number"] for item in program.json("catalog", "list", *options)]


def test_an_item_is_added_as_it_was_given(run: Program) -> None:
    """`catalog add` stores every option, reads stdin for `-`, and creates the memory if there is none."""
    expires = datetime.now(UTC) + timedelta(days=3)
    item = run.json(
        "catalog", "add", "-", "--type", "plan", "--of", "ada", "--priority", "7", "--expires", "3d", "--tag", "tea",
        "--summary", "Tea", "--reference", "op12", stdin=TEA,
    )  # fmt: skip
    assert run.errors == f"created a new memory in {run.folder / '.obra'}\n"
    expected = {"number": 1, "ci_source": "ada", "type": "plan", "summary": "Tea", "content": TEA, "priority": 7,
                "relevance_tags": ["tea"], "references": ["op12"], "author": "person", "status": "live",
                "said": 1, "superseded_by": None}  # fmt: skip
    assert {name: item[name] for name in expected} == expected
    assert abs(datetime.fromisoformat(item["expires"]) - expires) < timedelta(minutes=1)
    assert re.fullmatch(r"mem_\d+_\w{6}", item["id"])
    assert run.json("catalog", "show", item["id"]) == run.json("catalog", "show", "M1") == item
    assert run.json("expand", "M1")["memory_item"] == item
    assert run("expand", "M1") == run("catalog", "show", "M1")
    assert run.json("catalog", "add", RULE, "--expires", "never")["expires"] is None
    assert run.json("catalog", "add", LEAK, "--expires", "2099-12-01T00:00Z")["expires"] == "2099-12-01T00:00:00+00:00"
    assert run("catalog", "add", TEA, "--of", "ada") == f"M1 {item['id']} (said 2 times so far)\n"


@pytest.mark.parametrize(("options", "found"), cases("items_are_listed_as_they_are_asked_for"))
def test_items_are_listed_as_they_are_asked_for(stocked: Program, options: Sequence[str], found: list[int]) -> None:
    """`catalog list` applies all filters and shows an agent its own, global and permitted items."""
    assert _listed(stocked, *options) == found


def test_a_list_is_for_people_too(stocked: Program) -> None:
    """The table of items fits 80 columns and says when there are more items."""
    shown = stocked("catalog", "list", "--limit", "2").splitlines()
    assert shown[2].split()[:4] == ["M3", "insight", "bob", "5"]
    assert "M2   decision   ada      9   forever" in shown[3]
    assert max(map(len, shown)) <= 80
    assert stocked.errors == "showing the newest 2; --limit 0 shows all\n"


def test_fields_are_changed_and_the_others_stay(stocked: Program) -> None:
    """`catalog edit` changes only the named fields and rewrites the document, which can then be edited by hand."""
    before = stocked.json("catalog", "show", "M3")
    after = stocked.json("catalog", "edit", "M3", "--priority", "8", "--tag", "heap")
    assert after == before | {"priority": 8, "relevance_tags": ["heap"], "expires": None}
    assert stocked.json("catalog", "edit", "M3", "--text", TEA, "--agent", "bob")["content"] == TEA
    document = stocked.folder / ".obra" / "memory" / "catalog" / "bob.md"
    assert f"- {TEA} (priority: 8) (M3)" in document.read_text()
    document.write_text(document.read_text().replace("four", "five"))
    assert stocked.json("catalog", "show", "M3")["content"] == "Tea is at five."


def test_what_is_removed_is_hidden_and_a_purge_removes_it_for_good(stocked: Program) -> None:
    """`catalog remove` hides an item; `purge` deletes hidden ones after a yes, and silence counts as no."""
    stocked("catalog", "remove", "M1")
    assert _listed(stocked) == [3, 2]
    assert _listed(stocked, "--all-statuses") == [3, 2, 1]
    stocked("catalog", "purge", exit_code=2)
    assert stocked("catalog", "purge", "--expired") == "deleted 0 items permanently\n"
    for answer in ("n\n", ""):
        assert stocked("catalog", "purge", "--deleted", exit_code=1, stdin=answer) == "nothing was deleted\n"
        assert "Delete 1 item permanently?" in stocked.errors
    assert stocked("catalog", "purge", "--all", stdin="y\n") == "deleted 1 item permanently\n"
    stocked("catalog", "show", "M1", exit_code=1)
    stocked("catalog", "remove", "M2")
    assert stocked.json("catalog", "purge", "--deleted", "--yes") == {"purged": 1}


def test_old_archives_are_removed_on_demand_and_told(run: Program) -> None:
    """`catalog expire` deletes old archives by name except those with a person's text; `status` shows the sizes."""
    archives = []
    for said in ("alpha", "beta"):
        run("record", "note", "--text", said)
        archives.append(Path(run("flush").strip()))
    archives[1].write_text(archives[1].read_text() + "\nMine.\n")
    sizes = run.json("status")["sizes"]
    assert sizes["archives"] == sum(path.stat().st_size for path in archives)
    assert all(sizes[part] > 0 for part in ("database", "documents", "versions"))
    (run.folder / ".obra" / "config.yaml").write_text("archives: {keep_mb: 0.000001}\n")
    told = run("catalog", "expire").splitlines()[1:]
    assert told == [
        f"{archives[0].name} removed",
        f"{archives[1].name} kept: it contains a person's text or could not be read",
    ]
    assert [path.exists() for path in archives] == [False, True]
    assert f"archives {archives[1].stat().st_size / 1e3:,.1f} KB" in run("status")
    assert "alpha" in run("ops")
    assert run.json("doctor")["faults"] == 0


def test_what_has_expired_is_hidden_on_demand_and_items_are_counted(stocked: Program) -> None:
    """`catalog expire` reports what it cleaned up; `catalog stats` counts items by agent and `status` all items."""
    assert stocked.json("catalog", "expire") == {
        "expired": 0, "displaced": 0, "audit_entries": 0, "archives": [], "archives_kept": [],
    }  # fmt: skip
    assert stocked("catalog", "expire") == "0 expired, 0 displaced, 0 audit entries deleted\n"
    found = stocked.json("catalog", "stats")
    assert {agent: each["total_memories"] for agent, each in found.items()} == {"ada": 1, "bob": 1, "global": 1}
    assert found["ada"]["last_cleanup"] is not None
    assert list(stocked.json("catalog", "stats", "--agent", "bob")) == ["bob", "global"]
    assert stocked("catalog", "stats", "--of", "ada").splitlines()[2].split()[:3] == ["ada", "1", "6"]
    assert stocked.json("status")["catalog"] == {"items": 3, "tokens": 20, "agents": 3, "waiting": 0}
    assert "catalog  3 items of 3 agents, 20 tokens" in stocked("status")


def test_a_catalog_goes_out_and_comes_in_elsewhere(stocked: Program, tmp_path: Path) -> None:
    """An exported catalog imports elsewhere, a second import adds nothing, and an agent cannot import for another."""
    file = stocked.folder / "catalog_bob.json"
    assert stocked("catalog", "export", "bob", "--out", file) == f"exported 1 item to {file}\n"
    document = json.loads(file.read_text())
    assert (document["version"], document["ci_name"], document["memories"][0]["content"]) == ("1.0.0", "bob", LEAK)
    assert json.loads(stocked("catalog", "export", "bob"))["memories"] == document["memories"]
    other = tmp_path / "other"
    other.mkdir()
    for at, src in ((file, file), ("-", "standard input")):
        assert stocked("catalog", "import", at, "-C", other, stdin=file.read_bytes()) == f"imported 1 item from {src}\n"
    (item,) = stocked.json("catalog", "list", "-C", other)
    assert (item["content"], item["ci_source"], item["said"]) == (LEAK, "bob", 2)
    stocked("catalog", "import", file, "--agent", "ada", exit_code=1)
    assert "write: [bob]" in stocked.errors


def test_the_audit_trail_tells_who_looked_and_who_changed(stocked: Program) -> None:
    """`audit` filters by agent, call, outcome and item, and `audit injections` counts what agents were given."""
    stocked("catalog", "remove", "M1", "--agent", "ada", exit_code=1)
    item = stocked.json("catalog", "show", "M2", "--agent", "ada")["id"]
    found = stocked.json("audit", "--agent", "ada")
    assert [(each["call"], each["outcome"]) for each in found] == [("get", "given"), ("delete", "refused")]
    assert stocked.json("audit", "entries", "--agent", "ada") == found
    assert [each["call"] for each in stocked.json("audit", "--item", item, "--call", "store")] == ["store"]
    assert [each["agent"] for each in stocked.json("audit", "--outcome", "changed")] == ["", "", ""]
    assert "write: [global]" in " ".join(stocked("audit", "--outcome", "refused").split())
    assert stocked.json("audit", "--since", "2099-01-01") == []
    assert stocked("audit", "injections") == "no items were given to agents\n"
    with open_memory(stocked.folder) as memory:
        memory.relevant("deploy", agent="ada")  # a preview does not count
        memory.inject("deploy", agent="ada", max_tokens=30)
    (given,) = stocked.json("audit", "injections", "--unused", "1")
    expected = {"agent": "ada", "item": item, "times": 1, "messages": 1, "token_share": 1.0, "unused": 1}
    assert {name: given[name] for name in expected} == expected
    assert given["warnings"] == ["unused", "share"]
    assert re.search(rf"ada +{item} +1 of 1 +\d+ +100% +1\s*$", stocked("audit", "injections"), re.MULTILINE)
    assert stocked.json("audit", "injections", "--agent", "bob") == []


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        *cases("what_cannot_be_is_refused_in_words"),
        (("add", "x" * 5_000_000), 2, r"content: must have at most 200000 characters, not 'x+… \(5,000,002 charact"),
    ],
)
def test_what_cannot_be_is_refused_in_words(stocked: Program, arguments: Sequence[str], code: int, told: str) -> None:
    """A request that cannot be done is refused with its faults on stderr and changes no item."""
    (stocked.folder / "bad.json").write_text('{"ci_name": "ada", "memories": [')
    (stocked.folder / "list.json").write_text("[]")
    faulty = {"ci_name": "ada", "memories": [{"content": 7}, {"content": "x", "priority": 99}, {"content": "fine"}]}
    (stocked.folder / "faulty.json").write_text(json.dumps(faulty))
    assert stocked("catalog", *arguments, exit_code=code) == ""
    assert re.search(told, stocked.errors)
    assert _listed(stocked) == [3, 2, 1]
    if code != 2:
        assert re.search(told, stocked.json("catalog", *arguments, exit_code=code)["error"]["message"])


def test_what_is_recalled_for_an_agent_is_in_the_audit_trail(run: Program) -> None:
    """`retrieve` and `recommend` for an agent record the items that they gave it."""
    run("init")
    item = run.json("catalog", "add", "We decided to deploy on Tuesdays.", "--type", "decision", "--of", "cook")["id"]
    assert item in str(run.json("retrieve", "deploy on Tuesdays", "--agent", "cook"))
    run("recommend", "deploy on Tuesdays", "--agent", "cook")
    told = [(each["call"], each["items"]) for each in run.json("audit", "--agent", "cook")]
    assert told == [("get_recommendations", [item]), ("retrieve_context", [item])]
