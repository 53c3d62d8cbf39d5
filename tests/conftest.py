"""What holds for all tests: how properties are tried, an environment that sets nothing, a clock to set, real models."""

from __future__ import annotations

import gc
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from tests.postgres_server import PostgresServer
from tools.models import QWEN_05B, SMOLLM2_135M, ModelFile, ModelFileError, fetch

if TYPE_CHECKING:
    from orchestra_mem import OrchestratorContextManager
    from orchestra_mem.adapters.database import SqlDatabase

START = datetime(2025, 1, 15, 10, tzinfo=UTC)

# The settings of who runs the tests stay out of them.
for name in [name for name in os.environ if name.startswith("ORCHESTRA_MEM__")]:
    del os.environ[name]
# Where Python is told to keep no compiled files, every program that a test starts compiles the package anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# Folders that tests make by themselves lie where pytest's do, which may be in memory.
if root := os.environ.get("PYTEST_DEBUG_TEMPROOT"):
    os.environ["TMPDIR"] = tempfile.tempdir = root
# Nor is a test's project listed among the projects of who runs it.
os.environ["ORCHESTRA_MEM_HOME"] = "off"

# No deadline: a property is not wrong because the machine is busy. In CI the same examples are drawn each time, so that
# a change fails for what it changes; elsewhere new ones are.
settings.register_profile("home", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("home"), derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "home")


# The files whose tests load a model: in two processes at once the models would share the processors.
_WITH_A_MODEL = re.compile(r"/test_(\w*llama\w*|gguf\w*|bad_models|docs|examples)\.py")
# What else takes longest: it goes out first, so that at the end no process waits for another.
_DEAR = re.compile(
    r"/test_(backups|http_description|package|projects|storage_failures|shared_decisions|\w+_pages|page\w*|01\w+|postgres)\.py"
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put what takes longest first."""
    items.sort(key=lambda item: 0 if _WITH_A_MODEL.search(item.nodeid) else 1 if _DEAR.search(item.nodeid) else 2)


def pytest_collection_finish() -> None:
    """Take what is loaded by now for good: the garbage collector would go through all of it again and again."""
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One process more than there are processors, as some wait for a server or a browser; four are enough."""
    return min(4, (os.cpu_count() or 1) + 1)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    """Give each file to one process, which begins what its tests share once; those with a model to the same one."""
    from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]

    config.option.loadscopereorder = False
    scheduler = LoadFileScheduling(config, log)
    by_file = scheduler._split_scope
    scheduler._split_scope = lambda nodeid: "models" if _WITH_A_MODEL.search(nodeid) else by_file(nodeid)
    return scheduler


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server of these tests' own, from a wheel."""
    # Not below the tests' folders, which are closed to the user that the server runs as where root starts it.
    with tempfile.TemporaryDirectory(prefix="postgres-", ignore_cleanup_errors=True) as folder:
        server = PostgresServer(Path(folder))
        yield server
        server.stop()


@pytest.fixture(params=["sqlite", "postgres"])
def storage(request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    """The settings of each storage in turn; on the server a schema of its own."""
    if request.param == "sqlite":
        yield {}
        return
    server: PostgresServer = request.getfixturevalue("postgres")
    schema = server.schema()
    yield {"url": server.url, "schema_name": schema}
    server.drop(schema)


@pytest.fixture
def database(storage: dict[str, Any], tmp_path: Path) -> Iterator[SqlDatabase]:
    """An empty database, of each storage in turn."""
    from orchestra_mem.build.storage import open_database
    from orchestra_mem.settings import Settings

    with closing(open_database(tmp_path, Settings.model_validate({"storage": storage}))) as opened:
        yield opened


class Clock:
    """A clock that tests set; where it has a step, it goes on by that with every look at it."""

    def __init__(self, now: datetime = START, *, step_s: float = 0) -> None:
        self.now = now
        self.step = timedelta(seconds=step_s)

    def __call__(self) -> datetime:
        """The time; the next one is a step later."""
        self.now += self.step
        return self.now


@pytest.fixture
def clock() -> Clock:
    """Ten o'clock."""
    return Clock()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of the test's own, which is not there yet."""
    monkeypatch.setenv("ORCHESTRA_MEM_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def memory(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> Iterator[OrchestratorContextManager]:
    """The memory of a new project, with the `CONFIG` of the tests' module."""
    from orchestra_mem import open_memory

    with open_memory(tmp_path, config=getattr(request.module, "CONFIG", None), clock=clock) as opened:
        yield opened


def real_model(model: ModelFile) -> Path:
    """Fetch a model, as `make models` does; skip the test where it cannot be had or run."""
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
    """Operations that say their number in a sentence; the one given may name it as `{n}`."""
    sentence = say or "Step number {n} was taken."
    for number in range(first, first + count):
        memory.record_operation(kind, {"text": sentence.format(n=number)})
