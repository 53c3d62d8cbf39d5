"""Settings: defaults, three sources that override them, and all faults of all sources reported at once."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from orchestra_mem.adapters.config_files import RETIRED, default_config_text, load_settings, template_files
from orchestra_mem.errors import ConfigError
from orchestra_mem.settings import Settings, schema, sections
from tests.builders import cases

Load = Callable[..., Settings]


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Load:
    """Load settings of a project named "bakery" from a file's content, an environment and overrides."""
    folder = tmp_path / "bakery"
    (folder / ".obra").mkdir(parents=True)
    monkeypatch.chdir(folder)

    def load_with(
        content: str | bytes | None = None,
        environ: Mapping[str, str] | None = None,
        overrides: Mapping[str, object] | None = None,
    ) -> Settings:
        if content is not None:
            Path(".obra/config.yaml").write_bytes(content.encode() if isinstance(content, str) else content)
        return load_settings(Path(), environ or {}, overrides)

    return load_with


def _faults(load: Load, *args: object, **kwargs: object) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load(*args, **kwargs)
    return [str(fault) for fault in caught.value.faults]


def _flat_yaml(text: str) -> dict[str, object]:
    found: dict[str, object] = {}

    def walk(node: Mapping[str, object], prefix: str) -> None:
        for name, value in node.items():
            if isinstance(value, dict) and value:
                walk(value, f"{prefix}{name}.")
            else:
                found[prefix + name] = value

    walk(yaml.safe_load(text), "")
    return found


def _range(key: str) -> tuple[float, float] | None:
    """The range of a number in the schema, None for other types."""
    if schema()[key].annotation not in (int, float):
        return None
    low, high = schema()[key].metadata
    return low.ge, high.le


# The shipped files


def test_default_file_and_model_have_the_same_keys_in_the_same_order_with_the_same_defaults() -> None:
    """`config/default_config.yaml` has exactly the keys of the model, in the same order and with the same defaults."""
    assert list(_flat_yaml(default_config_text()).items()) == list(Settings().flat().items())


def test_default_file_and_every_default_pass_the_checks_and_change_nothing(load: Load) -> None:
    """The default file as `.obra/config.yaml`, and each default given alone, change no value and no type."""
    assert load(default_config_text()).flat() == load("").flat() == Settings().flat() | {"project.name": "bakery"}
    for key, value in Settings().flat().items():
        again = load("", overrides={key: value}).flat()[key]
        assert (again, type(again)) == (value or again, type(value))


def test_every_number_has_its_range_in_the_comment_above_it() -> None:
    """The comment above each number in the default file names the range that the program checks."""
    comment: list[str] = []
    path: list[str] = []
    for line in default_config_text().splitlines():
        if line.lstrip().startswith("#"):
            comment.append(line.strip(" #"))
            continue
        name, depth = line.partition(":")[0].strip(), (len(line) - len(line.lstrip())) // 2
        path[depth:] = [name] if name else []
        key = ".".join(path)
        between = _range(key) if key in schema() else None
        if between and not key.startswith(("context.shares.", "orchestrator.context_window.")):
            assert f", {between[0]} to {between[1]}" in " ".join(comment), key
        comment.clear()


def test_template_has_every_default_commented_out() -> None:
    """The template's config.yaml sets nothing; without its `#` it equals the default file."""
    template = template_files()["config.yaml"]
    assert yaml.safe_load(template) is None
    # Prose comments begin with `# ` or have an indented `#`.
    uncommented = re.sub(r"^#(?=(?:  )*[a-z_]+:)", "", template, flags=re.MULTILINE)
    assert _flat_yaml(uncommented) == _flat_yaml(default_config_text())
    explained = default_config_text().partition("project:\n")[2].splitlines()
    assert [line for line in explained if line.lstrip().startswith("#") and line not in template.splitlines()] == []


def test_template_keeps_database_index_and_locks_out_of_git() -> None:
    """The template's `.gitignore` ignores databases, versions, index, locks and temporary files, but no documents."""
    files = template_files()
    assert sorted(files) == [".gitignore", "commands/mem-search.md", "config.yaml"]
    patterns = [line for line in files[".gitignore"].splitlines() if not line.startswith("#")]
    assert patterns == ["obra.db*", "working_copy.db*", "memory/versions/", "index/", "*.lock", "*.tmp"]


# Sources


def test_the_environment_is_read_by_those_who_load_settings_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """`Settings()` has the defaults, whatever the environment says, and is immutable."""
    monkeypatch.setenv("ORCHESTRA_MEM__PROJECT__NAME", "elsewhere")
    monkeypatch.setenv("PROJECT", '{"name": "elsewhere"}')
    assert Settings().project.name == ""
    with pytest.raises(ValueError, match="frozen"):
        Settings().project.name = "x"


def test_file_environment_and_overrides_take_precedence_in_this_order(load: Load) -> None:
    """Each source overrides single keys of the previous one, and `origin_of` names the source."""
    variable = "ORCHESTRA_MEM__ORCHESTRATOR__CONTEXT_WINDOW__MAX_TOKENS"
    settings = load(
        "orchestrator:\n  keep_versions: 3\n  context_window:\n    max_tokens: 64000\n    warning_threshold: 0.6\n",
        {variable: "8192", "ORCHESTRA_MEM__ORCHESTRATOR__KEEP_VERSIONS": "4"},
        {"orchestrator": {"keep_versions": 5}},
    )
    window = settings.orchestrator.context_window
    assert (window.max_tokens, window.warning_threshold, settings.orchestrator.keep_versions) == (8192, 0.6, 5)
    origins = {key: settings.origin_of(key) for key in schema() if settings.origin_of(key) != "default"}
    assert origins == {
        "orchestrator.context_window.max_tokens": f"environment variable {variable}",
        "orchestrator.context_window.warning_threshold": ".obra/config.yaml:5",
        "orchestrator.keep_versions": "overrides",
    }
    with pytest.raises(KeyError, match=r"storage\.durabilty"):
        settings.origin_of("storage.durabilty")


def test_keys_may_be_joined_by_dots(load: Load) -> None:
    """Keys may be joined by dots, in the file and in overrides, also with a section below them."""
    content = "orchestrator.working_memory.max_operations: 40\norchestrator.context_window: {max_tokens: 8192}\n"
    settings = load(content, overrides={"orchestrator": {"working_memory.max_tokens": 900}})
    working = settings.orchestrator.working_memory
    assert (working.max_operations, working.max_tokens) == (40, 900)
    assert settings.orchestrator.context_window.max_tokens == 8192
    assert settings.origin_of("orchestrator.context_window.max_tokens") == ".obra/config.yaml:2"


@pytest.mark.parametrize(("written", "key", "value"), cases("values_may_be_written_as_yaml_has_them"))
def test_values_may_be_written_as_yaml_has_them(load: Load, written: str, key: str, value: object) -> None:
    """YAML's notations are accepted: quotes or none, words for booleans, whole numbers for others, anchors, CRLF."""
    settings = load(written)
    assert (settings.flat()[key], type(settings.flat()[key])) == (value, type(load("").flat()[key]))
    assert settings.origin_of(key) == f".obra/config.yaml:{3 if 'mine' in written else 1}"


@pytest.mark.parametrize("text", ["2024", "no", "[draft", "Bäckerei №5", "#1"])
def test_environment_text_is_taken_as_it_stands_where_text_is_wanted(load: Load, text: str) -> None:
    """A text in the environment is used unchanged, without YAML quoting; other types are parsed."""
    assert load("", {"ORCHESTRA_MEM__PROJECT__NAME": text}).project.name == text
    assert load("", {"ORCHESTRA_MEM__ORCHESTRATOR__AUTO_REFRESH_ENABLED": "no"}).flat() == load(
        "orchestrator: {auto_refresh_enabled: false}"
    ).flat()  # fmt: skip


@pytest.mark.parametrize(
    "content", [None, "", "# nothing\n", "---\n", "null\n", "\ufeff", "storage:\n", "context:\n  shares:\n"]
)
def test_what_sets_nothing_is_the_defaults_and_the_folder_names_the_project(load: Load, content: str | None) -> None:
    """Missing or empty files, sections and variables change no default; the folder names the project."""
    environ = {"ORCHESTRA_MEM__STORAGE__DURABILITY": "", "ORCHESTRA_MEM_HOME": "x", "PATH": "/bin"}
    settings = load(content, environ)
    assert settings.flat() == Settings().flat() | {"project.name": "bakery"}
    assert {settings.origin_of(key) for key in schema()} == {"default"}


@pytest.mark.parametrize("written", ["7", "'7'"])
def test_the_id_of_a_project_stands_behind_its_name(load: Load, written: str) -> None:
    """A project's title ends with its id, if it has one, given as a text or a number."""
    assert load(f"project:\n  id: {written}\n").project.title == "bakery (ID: 7)"
    assert load("").project.title == "bakery"


def test_a_key_of_an_earlier_time_is_left_out_and_told(load: Load, caplog: pytest.LogCaptureFixture) -> None:
    """A retired key has no effect whatever its value; a warning names its place and its replacement."""
    settings = load("documents:\n  watch: off\n  progress_items: 7\n", {"ORCHESTRA_MEM__DOCUMENTS__WATCH": "poll"})
    assert (settings.documents.progress_items, "documents.watch" in settings.flat()) == (7, False)
    told = "documents.watch has no effect since 0.1.0: `orchestra-mem watch` always checks the files directly,"
    places = (".obra/config.yaml:2", "environment variable ORCHESTRA_MEM__DOCUMENTS__WATCH")
    assert caplog.messages == [f"{place}: {told} also on network disks; remove it" for place in places]
    assert RETIRED.keys().isdisjoint(schema())


# Faults of values


MANY = "9" * 5_000
NOT_ONE = f"must be a whole number from 1 to 100000, not the text '{MANY[:60]}' and 4940 more characters"


@pytest.mark.parametrize(
    ("content", "fault"),
    [*cases("wrong_settings"), (f"orchestrator.keep_versions: {MANY}\n", f"orchestrator.keep_versions: {NOT_ONE}")],
)
def test_wrong_value_or_key_is_named_with_its_line_and_what_may_stand_there(
    load: Load, content: str, fault: str
) -> None:
    """A wrong value or key is refused with its line and the valid values; no number is rounded or read from a text."""
    line = 2 if "itself" in content else 1
    assert _faults(load, content) == [f".obra/config.yaml:{line}: {fault}"]


def test_password_in_an_address_is_used_and_not_shown(load: Load) -> None:
    """A password in an address is used but never shown, not even in the fault of a mistyped one."""
    settings = load("llm: {base_url: 'http://alice:S3@CRET@[::1]:8080/v1', api_key: K3Y}\n")
    assert settings.llm.base_url == "http://alice:S3@CRET@[::1]:8080/v1"
    shown = settings.flat()
    assert (shown["llm.base_url"], shown["llm.api_key"]) == ("http://***@[::1]:8080/v1", "(set, not shown)")
    assert shown["search.base_url"] == "http://127.0.0.1:8080/v1"
    for wrong in ("http://alice:S3/CRET@h", "alice:S3CRET@h", "http://alice:S3CRET@h:x", "http://alice:S3\\nCRET@h"):
        (fault,) = _faults(load, f'llm: {{base_url: "{wrong}"}}\n')
        assert not re.search("alice|S3|CRET", fault)
    (fault,) = _faults(load, 'llm: {api_key: "K3Y\\n"}\n')
    assert "K3Y" not in fault


def test_faults_in_the_environment_name_the_variable_and_the_key(load: Load) -> None:
    """A fault in the environment names its variable and key: an unknown one, a wrong value, a value for a section."""
    environ = {
        "ORCHESTRA_MEM__STORAGE__DURABILTY": "full",
        "ORCHESTRA_MEM__STORAGE__DURABILITY": "[full",
        "ORCHESTRA_MEM__STORAGE": "{durability: full}",
        "ORCHESTRA_MEM__COLOUR": '"\\UFFFFFFFF"',
        "ORCHESTRA_MEM__ORCHESTRATOR__CONTEXT_WINDOW__MAX_TOKENS": "8k",
    }
    named = "environment variable ORCHESTRA_MEM__"
    assert _faults(load, "", environ) == [
        f"{named}COLOUR: colour: unknown key",
        f"{named}ORCHESTRATOR__CONTEXT_WINDOW__MAX_TOKENS: orchestrator.context_window.max_tokens: must be a whole "
        "number from 1024 to 16777216, not the text '8k'",
        f"{named}STORAGE: storage: must be a section with keys below it, not the text '{{durability: full}}'",
        f"{named}STORAGE__DURABILITY: storage.durability: must be one of normal, full, not the text '[full'",
        f"{named}STORAGE__DURABILTY: storage.durabilty: unknown key; did you mean storage.durability?",
    ]


def test_faults_in_overrides_are_told_like_others(load: Load) -> None:
    """Overrides are checked as strictly as a file, whatever Python value they contain."""
    assert _faults(load, overrides=[1]) == ["overrides: must be a section with keys below it, not a list"]
    storage = {"durability": object, "lock_timeout_s": 10**5000, "busy_timeout_s": float("inf")}
    odd: dict[object, object] = {5: 1, "storage": storage, "tokens": {1, 2}, "storage.durability": "full"}
    assert _faults(load, overrides=odd) == [
        "overrides: storage.durability: is given twice; remove one",
        "overrides: 5: unknown key",
        "overrides: storage.durability: must be one of normal, full, not a value of type type",
        "overrides: storage.lock_timeout_s: must be a number from 0 to 86400, not a number of 40 or more digits",
        "overrides: storage.busy_timeout_s: must be a number from 0 to 86400, not inf",
        "overrides: tokens: must be a section with keys below it, not a value of type set",
    ]


def test_all_faults_of_all_sources_are_told_at_once(load: Load) -> None:
    """All faults of all sources are reported in one error, those of overridden values too."""
    content = "storage:\n  durability: fast\n  speed: 3\nstorage:\n  durability: full\ntokens:\n  cache_entries: -1\n"
    environ = {"ORCHESTRA_MEM__STORAGE__DURABILITY": "slow"}
    with pytest.raises(ConfigError) as caught:
        load(content, environ, {"tokens": {"counter": "abacus"}})
    assert str(caught.value) == (
        "configuration has 6 faults:\n"
        "  .obra/config.yaml:5: storage.durability: appears here and on line 2; remove one\n"
        "  .obra/config.yaml:2: storage.durability: must be one of normal, full, not the text 'fast'\n"
        "  .obra/config.yaml:3: storage.speed: unknown key\n"
        "  .obra/config.yaml:7: tokens.cache_entries: must be a whole number from 1 to 10000000, not -1\n"
        "  environment variable ORCHESTRA_MEM__STORAGE__DURABILITY: storage.durability: must be one of normal, full, "
        "not the text 'slow'\n"
        "  overrides: tokens.counter: must be one of auto, gguf, tiktoken, estimate, not the text 'abacus'"
    )


# Faults of the file


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("storage:\n\tdurability: full\n", ":2: is indented with a tab; YAML allows only spaces"),
        ("a: 1\nstorage: [1,\n", ":3: is not YAML: expected the node content, but found '<stream end>' (column 1)"),
        ("a: 1\nb: \x07\n", ":2: has a control character (U+0007); remove it"),
        (b"a: 1\nb: \xe4\n", ":2: is not UTF-8 (byte 0xe4); save it as UTF-8"),
        (b"\xef\xbb\xbfa: 1\nb: \xe4\n", ":2: is not UTF-8 (byte 0xe4); save it as UTF-8"),
        ('a: "\\U00110000"\n', ": has an escape above \\U0010FFFF; correct it"),
        ('a: "\\UFFFFFFFF"\n', ": has an escape above \\U0010FFFF; correct it"),
        ("storage: {}\n".encode("utf-16"), ":1: is not UTF-8 (byte 0xff); save it as UTF-8"),
        pytest.param("[" * 5000, ": is nested too deeply", marks=pytest.mark.nested),
    ],
)
def test_file_that_is_no_configuration_is_named_with_the_line(load: Load, content: str | bytes, fault: str) -> None:
    """A file with broken YAML, tabs or another encoding is refused with the reason and, where known, the line."""
    assert _faults(load, content) == [f".obra/config.yaml{fault}"]


# Impossible combinations


@pytest.mark.parametrize(("content", "faults"), cases("settings_that_are_impossible_together"))
def test_settings_that_are_impossible_together_are_a_fault_at_the_one_that_was_given(
    load: Load, content: str, faults: list[str]
) -> None:
    """Settings that contradict each other are refused at the line of the one given, with all values concerned."""
    assert _faults(load, content) == [f".obra/config.yaml:{fault}" for fault in faults]


@pytest.mark.parametrize("window", [1_024, 3_000, 8_192, 128_000])
def test_small_window_lowers_the_sizes_at_which_documents_are_compacted(load: Load, window: int) -> None:
    """A document's compaction threshold is at most half of the window."""
    settings = load("", {"ORCHESTRA_MEM__ORCHESTRATOR__CONTEXT_WINDOW__MAX_TOKENS": str(window)})
    assert settings.session_compaction_tokens == min(40_000, window // 2)
    assert settings.episodic_compaction_tokens == min(30_000, window // 2)


# Properties

_names = st.sampled_from(sorted({part for name in schema() for part in name.split(".")} | {*schema()} | {*sections()}))
_trees = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.lists(st.integers(), max_size=2),
    lambda below: st.dictionaries(_names | st.text(max_size=5), below, max_size=6),
    max_leaves=25,
)


@given(st.dictionaries(_names | st.text(max_size=5), _trees, max_size=6))
@example({"retrieval": False, "retrieval.cache_entries": None})
def test_any_overrides_give_settings_or_a_configuration_error(
    tmp_path_factory: pytest.TempPathFactory, tree: dict[str, object]
) -> None:
    """Any overrides become settings of the right types, or a `ConfigError` whose faults name them."""
    try:
        settings = load_settings(tmp_path_factory.getbasetemp(), {}, tree)
    except ConfigError as error:
        assert error.faults
        assert all(fault.source == "overrides" and fault.problem for fault in error.faults)
    else:
        for key, value in settings.flat().items():
            kind = schema()[key].annotation
            kind = getattr(kind, "__origin__", kind)
            assert type(value) is (kind if kind in (int, float, bool, dict, list) else str)


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=60))
def test_any_text_as_a_file_is_read_or_refused_in_words(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    """Any text as a file is read, or refused with `ConfigError`."""
    project = tmp_path_factory.mktemp("any")
    (project / ".obra").mkdir()
    (project / ".obra/config.yaml").write_bytes(text.encode())
    try:
        load_settings(project, {"ORCHESTRA_MEM__PROJECT__NAME": "p", "ORCHESTRA_MEM__STORAGE__BUSY_TIMEOUT_S": "1"})
    except ConfigError as error:
        assert all(fault.source.endswith("config.yaml") for fault in error.faults)


def test_what_cannot_be_read_is_a_fault_and_not_taken_for_missing(load: Load) -> None:
    """A folder or named pipe in the file's place, or a file in the folder's, is a fault; a pipe is never opened."""
    os.mkfifo(Path(".obra/config.yaml"))
    assert _faults(load) == [".obra/config.yaml: cannot be read: it is a named pipe, not a file"]
    Path(".obra/config.yaml").unlink()
    Path(".obra/config.yaml").mkdir()
    assert _faults(load) == [".obra/config.yaml: cannot be read: Is a directory"]
    Path(".obra/config.yaml").rmdir()
    Path(".obra").rmdir()
    Path(".obra").write_text("")
    assert _faults(load) == [".obra/config.yaml: cannot be read: Not a directory"]
