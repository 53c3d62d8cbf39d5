"""Shared by all tests: Hypothesis profiles, a clean environment, the order of tests, a settable clock, real models."""

from __future__ import annotations

import gc
import os
import re
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from tests.memories import START as START
from tests.memories import Clock as Clock
from tools.models import QWEN_05B, SMOLLM2_135M, ModelFile, ModelFileError, fetch

if TYPE_CHECKING:
    from orchestra_mem import OrchestratorContextManager
    from orchestra_mem.stores import SqlDatabase
    from tests.adapters.test_http_embedder import Server
    from tests.postgres_server import PostgresServer

RULES = (
    "Never log card numbers.", "Passwords must have at least 12 characters.", "Wir deployen nie am Freitag.",
    "Refunds above 500 Euro must be approved by two people.", "Customer data may not leave the building.",
    "Only Ann may drop tables in production.", "Every migration must be reversible.", "Do not push to main.",
)  # fmt: skip

# Settings in the environment of whoever runs the tests must not affect them.
for name in [name for name in os.environ if name.startswith("ORCHESTRA_MEM__")]:
    del os.environ[name]
# Tests name days; where days end at another time than in UTC, a test says so.
os.environ["TZ"] = "UTC"
time.tzset()
# With this variable set, every program that a test starts would compile the package again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# Temporary folders that tests create themselves go where pytest's are, possibly in memory.
if root := os.environ.get("PYTEST_DEBUG_TEMPROOT"):
    os.environ["TMPDIR"] = tempfile.tempdir = root
# Tests must not add their projects to the user's list of projects.
os.environ["ORCHESTRA_MEM_HOME"] = "off"

# No deadline: a busy machine does not make a property false. CI draws the same examples each time, so that a run fails
# only because of the change under test; other runs draw new examples.
settings.register_profile("home", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("home"), derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "home")


# Files whose tests load a model: two processes that each run a model would compete for the processors.
_WITH_A_MODEL = re.compile(r"/test_(\w*llama\w*|gguf\w*|bad_models|docs|examples)\.py")
# Other slow files: they start early, so that no process is still busy alone at the end.
_DEAR = re.compile(
    r"/test_(backups|http_description|package|projects|storage_failures|shared_decisions|\w+_pages|page\w*|01\w+"
    r"|postgres|moving|working_copies|hand_edits|searching|chat)\.py"
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Move the slowest tests to the front."""
    items.sort(key=lambda item: 0 if _WITH_A_MODEL.search(item.nodeid) else 1 if _DEAR.search(item.nodeid) else 2)


def pytest_collection_finish() -> None:
    """Freeze everything loaded so far, so that the garbage collector does not scan it again and again."""
    gc.freeze()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Run the finalizers of earlier tests' memories now if they would fail while the test parses nested text."""
    if item.get_closest_marker("nested"):
        gc.collect()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Use one process more than there are processors, as some wait for a server or a browser, and four at most."""
    return min(4, (os.cpu_count() or 1) + 1)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    """Run each file in one process, so that its tests share fixtures; all files that load a model share a process."""
    from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]

    config.option.loadscopereorder = False
    scheduler = LoadFileScheduling(config, log)
    by_file = scheduler._split_scope
    scheduler._split_scope = lambda nodeid: "models" if _WITH_A_MODEL.search(nodeid) else by_file(nodeid)
    return scheduler


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server for these tests, installed from a wheel."""
    from tests.postgres_server import PostgresServer

    # Not below pytest's folders: if root runs the tests, the server runs as another user, who cannot enter them.
    with tempfile.TemporaryDirectory(prefix="postgres-", ignore_cleanup_errors=True) as folder:
        server = PostgresServer(Path(folder))
        yield server
        server.stop()


@pytest.fixture(params=["sqlite", "postgres"])
def storage(request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    """Settings of each storage in turn; on the server with a separate schema."""
    if request.param == "sqlite":
        yield {}
        return
    server: PostgresServer = request.getfixturevalue("postgres")
    schema = server.schema()
    yield {"url": server.url, "schema_name": schema}
    server.drop(schema)


@pytest.fixture
def database(storage: dict[str, Any], tmp_path: Path) -> Iterator[SqlDatabase]:
    """An empty database, in each storage in turn."""
    from orchestra_mem.build.storage import open_database
    from orchestra_mem.settings import Settings

    with closing(open_database(tmp_path, Settings.model_validate({"storage": storage}))) as opened:
        yield opened


@pytest.fixture
def clock() -> Clock:
    """A clock that stands at ten o'clock."""
    return Clock()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A separate user home for the test; the folder does not exist yet."""
    monkeypatch.setenv("ORCHESTRA_MEM_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def memory(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> Iterator[OrchestratorContextManager]:
    """The memory of a new project, opened with the test module's `CONFIG`."""
    from orchestra_mem import open_memory

    with open_memory(tmp_path, config=getattr(request.module, "CONFIG", None), clock=clock) as opened:
        yield opened


def real_model(model: ModelFile) -> Path:
    """Fetch a model, as `make models` does; skip the test if the model cannot be fetched or run."""
    if find_spec("llama_cpp") is None:
        pytest.skip("needs the extra llama: pip install 'orchestra-mem[llama]'")
    try:
        return fetch(model)
    except ModelFileError as error:
        pytest.skip(f"needs a model, see `make models`: {error}")


@pytest.fixture(scope="session")
def qwen_gguf() -> Path:
    """Qwen2.5-Coder 0.5B."""
    return real_model(QWEN_05B)


@pytest.fixture(scope="session")
def smollm_gguf() -> Path:
    """SmolLM2 135M."""
    return real_model(SMOLLM2_135M)


def record(memory: OrchestratorContextManager, count: int, first: int = 1, kind: str = "step", say: str = "") -> None:
    """Record numbered operations, one sentence each; `{n}` in `say` is replaced by the number."""
    sentence = say or "Step number {n} was taken."
    for number in range(first, first + count):
        memory.record_operation(kind, {"text": sentence.format(n=number)})


@pytest.fixture
def server() -> Iterator[Server]:
    """An embedding server that a test can break."""
    from tests.adapters.test_http_embedder import serving

    with serving() as told:
        yield told
