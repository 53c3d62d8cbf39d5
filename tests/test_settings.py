"""Settings: defaults, three sources over them, and every fault of all of them told at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from orchestra_mem.adapters.config_files import default_config_text, load_settings, template_files
from orchestra_mem.errors import ConfigError
from orchestra_mem.settings import Durability, Settings, schema, sections
from orchestra_mem.settings_check import Given, resolve

Load = Callable[..., Settings]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Give the folder of a project without configuration, named "bakery"."""
    folder = tmp_path / "bakery"
    (folder / ".obra").mkdir(parents=True)
    return folder


@pytest.fixture
def load(project: Path, monkeypatch: pytest.MonkeyPatch) -> Load:
    """Give a function that loads settings from a file's content, an environment and overrides."""
    monkeypatch.chdir(project)

    def load_with(
        content: str | bytes | None = None,
        environ: Mapping[str, str] | None = None,
        overrides: Mapping[str, object] | None = None,
    ) -> Settings:
        if content is not None:
            raw = content.encode() if isinstance(content, str) else content
            Path(".obra/config.yaml").write_bytes(raw)
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
            if isinstance(value, dict):
                walk(value, f"{prefix}{name}.")
            else:
                found[prefix + name] = value

    walk(yaml.safe_load(text), "")
    return found


def _uncommented(template: str) -> str:
    """Remove the `#` before settings; comments of prose begin with `# ` or are indented before theirs."""
    return re.sub(r"^#(?=(?:  )*[a-z_]+:)", "", template, flags=re.MULTILINE)


# The shipped files


def test_default_file_and_model_have_the_same_keys_in_the_same_order_with_the_same_defaults() -> None:
    """`config/default_config.yaml` tells the truth: each key, each default, nothing else."""
    assert list(_flat_yaml(default_config_text()).items()) == list(Settings().flat().items())


def test_default_file_loads_as_the_defaults(load: Load) -> None:
    """Copied as it is to `.obra/config.yaml`, the default file changes nothing."""
    assert load(default_config_text()) == load("")


def test_every_default_lies_in_its_range_and_has_its_type() -> None:
    """The defaults pass the checks that values of users have to pass."""
    for name, value in Settings().flat().items():
        key = schema()[name]
        assert type(value) is (key.kind if key.kind in (int, float, bool) else str), name
        if key.between:
            assert isinstance(value, int | float)
            assert key.between.low <= value <= key.between.high, name


def test_every_number_has_its_range_in_the_comment_above_it() -> None:
    """Who reads the default file learns the range that the program checks."""
    comment: list[str] = []
    path: list[str] = []
    for line in default_config_text().splitlines():
        if line.lstrip().startswith("#"):
            comment.append(line.strip(" #"))
            continue
        name, depth = line.partition(":")[0].strip(), (len(line) - len(line.lstrip())) // 2
        path[depth:] = [name] if name else []
        key = schema().get(".".join(path))
        if key and key.between and not key.name.startswith(("context.shares.", "orchestrator.context_window.")):
            assert f", {key.between.low} to {key.between.high}" in " ".join(comment), key.name
        comment.clear()


def test_template_has_every_default_commented_out() -> None:
    """Laid down as it is, the template's config.yaml sets nothing; with the `#` removed, it is the default file."""
    template = template_files()["config.yaml"]
    assert yaml.safe_load(template) is None
    assert _flat_yaml(_uncommented(template)) == _flat_yaml(default_config_text())
    explained = default_config_text().partition("project:\n")[2].splitlines()
    missing = [line for line in explained if line.lstrip().startswith("#") and line not in template.splitlines()]
    assert missing == []


def test_template_keeps_database_index_and_locks_out_of_git() -> None:
    """What `init` lays down ignores what is binary, derived or momentary, and not the documents."""
    files = template_files()
    assert sorted(files) == [".gitignore", "config.yaml"]
    patterns = [line for line in files[".gitignore"].splitlines() if not line.startswith("#")]
    assert patterns == ["obra.db*", "index/", "*.lock", "*.tmp"]


# Sources


def test_without_any_source_the_defaults_hold_and_the_folder_names_the_project(load: Load) -> None:
    """Nothing has to be configured."""
    settings = load()
    assert settings.project.name == "bakery"
    assert settings.orchestrator == Settings().orchestrator
    assert settings.origin_of("project.name") == "default"


def test_file_environment_and_overrides_take_precedence_in_this_order(load: Load) -> None:
    """Each source replaces single keys of the one before, and `origin_of` tells which did."""
    settings = load(
        "orchestrator:\n  keep_versions: 3\n  context_window:\n    max_tokens: 64000\n    warning_threshold: 0.6\n",
        {
            "ORCHESTRA_MEM__ORCHESTRATOR__CONTEXT_WINDOW__MAX_TOKENS": "8192",
            "ORCHESTRA_MEM__ORCHESTRATOR__KEEP_VERSIONS": "4",
        },
        {"orchestrator": {"keep_versions": 5}},
    )
    orchestrator = settings.orchestrator
    assert orchestrator.context_window.warning_threshold == 0.6
    assert orchestrator.context_window.max_tokens == 8192
    assert orchestrator.keep_versions == 5
    origins = {key: settings.origin_of(key) for key in schema() if settings.origin_of(key) != "default"}
    assert origins == {
        "orchestrator.context_window.max_tokens": (
            "environment variable ORCHESTRA_MEM__ORCHESTRATOR__CONTEXT_WINDOW__MAX_TOKENS"
        ),
        "orchestrator.context_window.warning_threshold": ".obra/config.yaml:5",
        "orchestrator.keep_versions": "overrides",
    }


def test_origin_of_an_unknown_key_is_a_key_error() -> None:
    """A mistyped key does not pass for one that has its default."""
    with pytest.raises(KeyError, match=r"storage\.durabilty"):
        Settings().origin_of("storage.durabilty")


def test_settings_know_their_origins_but_equal_others_by_value(load: Load) -> None:
    """Two projects with the same values have equal settings, wherever those come from."""
    assert load("storage: {durability: full}\n") == load("", overrides={"storage": {"durability": "full"}})


@pytest.mark.parametrize(
    ("written", "value"),
    [("full", Durability.FULL), ("'full'", Durability.FULL), ('"normal"', Durability.NORMAL)],
)
def test_choices_become_members(load: Load, written: str, value: Durability) -> None:
    """A closed choice is parsed once, here."""
    assert load(f"storage:\n  durability: {written}\n").storage.durability is value


@pytest.mark.parametrize(
    ("written", "value"),
    [("true", True), ("no", False), ("On", True), ("FALSE", False)],
)
def test_truth_values_may_be_written_as_yaml_has_them(load: Load, written: str, value: bool) -> None:
    """Who writes `no` means false, in the file and in the environment."""
    in_file = load(f"orchestrator:\n  auto_refresh_enabled: {written}\n")
    in_environment = load("", {"ORCHESTRA_MEM__ORCHESTRATOR__AUTO_REFRESH_ENABLED": written})
    assert in_file.orchestrator.auto_refresh_enabled is in_environment.orchestrator.auto_refresh_enabled is value


def test_whole_numbers_serve_where_numbers_are_wanted(load: Load) -> None:
    """`30` is as good as `30.0`, and `12_000` as `12000`."""
    settings = load("storage: {lock_timeout_s: 7}\norchestrator: {keep_versions: 1_000}\n")
    assert repr(settings.storage.lock_timeout_s) == "7.0"
    assert settings.orchestrator.keep_versions == 1000


@pytest.mark.parametrize("text", ["2024", "no", "1.10", "[draft", "a: b", "- x", "Bäckerei №5", "#1", "'q'"])
def test_environment_text_is_taken_as_it_stands_where_text_is_wanted(load: Load, text: str) -> None:
    """The environment knows only text: nobody has to quote a name twice."""
    assert load("", {"ORCHESTRA_MEM__PROJECT__NAME": text}).project.name == text


def test_empty_and_foreign_variables_are_passed_over(load: Load) -> None:
    """An empty variable counts as not set; others than ours are none of our business."""
    environ = {"ORCHESTRA_MEM__STORAGE__DURABILITY": "", "ORCHESTRA_MEM_HOME": "x", "PATH": "/bin"}
    assert load("", environ) == load("")


@pytest.mark.parametrize(
    "content", ["", "# nothing\n", "---\n", "null\n", "\ufeff", "storage:\n", "context:\n  shares:\n"]
)
def test_file_that_sets_nothing_is_the_defaults(load: Load, content: str) -> None:
    """An empty file, one of comments, and sections whose keys are all commented out are fine."""
    assert load(content) == load("")


def test_byte_order_mark_and_windows_lines_are_read(load: Load) -> None:
    """A file saved by an editor of another system is the same file, and its lines count the same."""
    settings = load("\ufeff# mine\r\nstorage:\r\n  durability: full\r\n".encode())
    assert settings.storage.durability is Durability.FULL
    assert settings.origin_of("storage.durability") == ".obra/config.yaml:3"


def test_alias_serves_as_a_value(load: Load) -> None:
    """YAML's anchors work between sections and values."""
    settings = load("storage: {lock_timeout_s: &t 5, busy_timeout_s: *t}\n")
    assert (settings.storage.lock_timeout_s, settings.storage.busy_timeout_s) == (5.0, 5.0)


# Faults of values


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ("ten", "the text 'ten'"),
        ("0", "0"),
        ("3.5", "3.5"),
        ("true", "true"),
        ("", "nothing"),
        ("'3'", "the text '3'"),
        ("010", "the text '010'"),
        ("[3]", "a list"),
        ("{a: 3}", "a section"),
        ("9" * 5000, f"the text '{'9' * 60}' and 4940 more characters"),
    ],
)
def test_only_a_whole_number_in_its_range_is_one(load: Load, written: str, found: str) -> None:
    """Nothing is rounded, unquoted or read as octal: what is meant is written."""
    assert _faults(load, f"orchestrator:\n  keep_versions: {written}\n") == [
        f".obra/config.yaml:2: orchestrator.keep_versions: must be a whole number from 1 to 100000, not {found}"
    ]


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("storage: {lock_timeout_s: 1:30}\n", "1: storage.lock_timeout_s: must be {seconds}, not the text '1:30'"),
        ("storage: {lock_timeout_s: .nan}\n", "1: storage.lock_timeout_s: must be {seconds}, not the text '.nan'"),
        ("storage: {lock_timeout_s: -1}\n", "1: storage.lock_timeout_s: must be {seconds}, not -1"),
        ("storage: {durability: fast}\n", "1: storage.durability: must be one of normal, full, not the text 'fast'"),
        ("storage: {durability: off}\n", "1: storage.durability: must be one of normal, full, not false"),
        (
            "orchestrator: {auto_refresh_enabled: 1}\n",
            "1: orchestrator.auto_refresh_enabled: must be true or false, not 1",
        ),
        ("project: {name: 2024}\n", "1: project.name: must be text, not 2024; put it in quotes"),
        ("project: {name: ' '}\n", "1: project.name: must not be blank"),
        ('project: {name: "a\\nb"}\n', "1: project.name: must be one line without control characters, not 'a\\nb'"),
        ("orchestrator: {session_dir: ''}\n", "1: orchestrator.session_dir: must not be empty"),
        ("storage: full\n", "1: storage: must be a section with keys below it, not the text 'full'"),
        ("- storage\n", "1: must be a section with keys below it, not a list"),
        ("just words\n", "1: must be a section with keys below it, not the text 'just words'"),
        ("project: {name: !!python/object/apply:os.getcwd []}\n", "1: project.name: must be text, not a list"),
    ],
)
def test_wrong_value_is_named_with_its_line_and_what_may_stand_there(load: Load, content: str, fault: str) -> None:
    """A fault gives the place, the key, what is wanted and what was found."""
    wanted = fault.replace("{seconds}", "a number from 0 to 86400")
    assert _faults(load, content) == [f".obra/config.yaml:{wanted}"]


@pytest.mark.parametrize(
    "address",
    ["http://[::1", "http://[zz]:1", "http://", "http://host:abc", "http://host:99999", "ftp://host", "localhost:8080"],
)
def test_address_of_no_server_is_named_with_its_line(load: Load, address: str) -> None:
    """Nothing that cannot be called is in order."""
    assert _faults(load, f"llm:\n  model_path: ''\n  base_url: '{address}'\n") == [
        f".obra/config.yaml:3: llm.base_url: {address!r} is no address of a server: give one as http://127.0.0.1:8080 "
        "or http://[::1]:8080, its port up to 65535"
    ]


def test_password_in_an_address_is_used_and_not_shown(load: Load) -> None:
    """A mistyped one and its fault included."""
    settings = load("llm: {base_url: 'http://alice:S3@CRET@[::1]:8080/v1', api_key: K3Y}\n")
    assert settings.llm.base_url == "http://alice:S3@CRET@[::1]:8080/v1"
    shown = settings.flat()
    assert (shown["llm.base_url"], shown["llm.api_key"]) == ("http://***@[::1]:8080/v1", "(set, not shown)")
    assert shown["search.base_url"] == "http://127.0.0.1:8080/v1"
    for wrong in ("http://alice:S3/CRET@h", "alice:S3CRET@h", "http://alice:S3CRET@h:x", "http://alice:S3\\nCRET@h"):
        (fault,) = _faults(load, f'llm: {{base_url: "{wrong}"}}\n')
        assert "***@h" in fault
        assert not re.search("alice|S3|CRET", fault)


def test_long_value_is_shown_in_part(load: Load) -> None:
    """A message stays readable whatever was pasted into the file."""
    (fault,) = _faults(load, f"storage: {{durability: {'x' * 500}}}\n")
    assert fault.endswith(f"not the text '{'x' * 60}' and 440 more characters")


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("storage:\n  durabilty: full\n", "2: storage.durabilty: unknown key; did you mean storage.durability?"),
        ("orchestratr:\n  keep_versions: 5\n", "1: orchestratr: unknown key; did you mean orchestrator?"),
        ("keep_versions: 5\n", "1: keep_versions: unknown key; did you mean orchestrator.keep_versions?"),
        (
            "max_tokens: 5\n",
            "1: max_tokens: unknown key; did you mean orchestrator.context_window.max_tokens "
            "or orchestrator.working_memory.max_tokens?",
        ),
        ("orchestrator: {storage: {}}\n", "1: orchestrator.storage: unknown key; did you mean storage?"),
        ("colour: red\n", "1: colour: unknown key"),
        ("storage.durability: full\n", "1: storage.durability: keys are names nested in sections, not joined by dots"),
    ],
)
def test_unknown_key_is_a_fault_with_the_nearest_known_one(load: Load, content: str, fault: str) -> None:
    """A typing mistake is never silently without effect."""
    assert _faults(load, content) == [f".obra/config.yaml:{fault}"]


def test_faults_in_the_environment_name_the_variable_and_the_key(load: Load) -> None:
    """An unknown variable of ours, a wrong value, and a value for a whole section."""
    environ = {
        "ORCHESTRA_MEM__STORAGE__DURABILTY": "full",
        "ORCHESTRA_MEM__STORAGE__DURABILITY": "[full",
        "ORCHESTRA_MEM__STORAGE": "{durability: full}",
        "ORCHESTRA_MEM__": "1",
        "ORCHESTRA_MEM__ORCHESTRATOR__CONTEXT_WINDOW__MAX_TOKENS": "8k",
    }
    named = "environment variable ORCHESTRA_MEM__"
    assert _faults(load, "", environ) == [
        f"{named}: unknown key",
        f"{named}ORCHESTRATOR__CONTEXT_WINDOW__MAX_TOKENS: orchestrator.context_window.max_tokens: must be a whole "
        "number from 1024 to 16777216, not the text '8k'",
        f"{named}STORAGE: storage: must be a section with keys below it, not the text '{{durability: full}}'",
        f"{named}STORAGE__DURABILITY: storage.durability: must be one of normal, full, not the text '[full'",
        f"{named}STORAGE__DURABILTY: storage.durabilty: unknown key; did you mean storage.durability?",
    ]


def test_faults_in_overrides_are_told_like_others(load: Load) -> None:
    """A Python mapping is checked as strictly as a file."""
    storage = {"durability": b"full", "lock_timeout_s": 10**5000, "busy_timeout_s": float("inf")}
    itself: dict[object, object] = {5: 1, "storage": storage, "tokens": {1, 2}}
    itself["project"] = itself
    assert _faults(load, overrides=itself) == [
        "overrides: 5: keys are names nested in sections, not joined by dots",
        "overrides: storage.durability: must be one of normal, full, not a value of type bytes",
        "overrides: storage.lock_timeout_s: must be a number from 0 to 86400, not one of 40 digits or more",
        "overrides: storage.busy_timeout_s: must be a number from 0 to 86400, not inf",
        "overrides: tokens: must be a section with keys below it, not a value of type set",
        "overrides: project.5: keys are names nested in sections, not joined by dots",
        "overrides: project.storage: unknown key; did you mean storage?",
        "overrides: project.tokens: unknown key; did you mean tokens?",
        "overrides: project.project: unknown key; did you mean project?",
    ]


def test_all_faults_of_all_sources_are_told_at_once(load: Load) -> None:
    """One run tells everything that has to be mended, overridden values included."""
    content = "storage:\n  durability: fast\n  speed: 3\nstorage:\n  busy_timeout_s: 1\ntokens:\n  cache_entries: -1\n"
    environ = {"ORCHESTRA_MEM__STORAGE__DURABILITY": "slow"}
    with pytest.raises(ConfigError) as caught:
        load(content, environ, {"tokens": {"counter": "abacus"}})
    assert str(caught.value) == (
        "configuration has 6 faults:\n"
        "  .obra/config.yaml:4: storage: stands here and on line 1; remove one\n"
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
        ("storage:\n\tdurability: full\n", ":2: is indented with a tab; YAML takes spaces only"),
        ("a: 1\nstorage: [1,\n", ":3: is not YAML: expected the node content, but found '<stream end>' (column 1)"),
        ("storage: {}\n---\ntokens: {}\n", ":2: is not YAML: but found another document (column 1)"),
        ("a: *b\n", ":1: is not YAML: found undefined alias 'b' (column 4)"),
        ("a: 1\nb: \x07\n", ":2: has a control character (U+0007); remove it"),
        (b"a: 1\nb: \xe4\n", ":2: is not UTF-8 (byte 0xe4); save it as UTF-8"),
        ("storage: {}\n".encode("utf-16"), ":1: is not UTF-8 (byte 0xff); save it as UTF-8"),
        ("[" * 5000, ": is nested too deeply"),
        ("? [a]\n: b\n", ":1: a key must be a name"),
        (
            "storage: &s {durability: full}\ntokens:\n  <<: *s\n",
            ":3: tokens.<<: merging with << is not supported; write the keys out",
        ),
    ],
)
def test_file_that_is_no_configuration_is_named_with_the_line(load: Load, content: str | bytes, fault: str) -> None:
    """Broken YAML, tabs, other encodings and YAML's odder corners get words, not a traceback."""
    assert _faults(load, content) == [f".obra/config.yaml{fault}"]


def test_section_that_holds_itself_comes_to_an_end(load: Load) -> None:
    """An alias to its own section is a fault like any unknown key."""
    assert _faults(load, "storage: &s\n  again: *s\n") == [".obra/config.yaml:2: storage.again: unknown key"]


def test_folder_in_the_file_s_place_is_a_fault(load: Load, project: Path) -> None:
    """What cannot be read is said, not taken for missing."""
    (project / ".obra/config.yaml").mkdir()
    assert _faults(load) == [".obra/config.yaml: cannot be read: Is a directory"]


def test_file_in_the_folder_s_place_is_a_fault(load: Load, project: Path) -> None:
    """A file named `.obra` does not pass for a project without configuration."""
    (project / ".obra").rmdir()
    (project / ".obra").write_text("")
    assert _faults(load) == [".obra/config.yaml: cannot be read: Not a directory"]


# Impossible combinations


def test_thresholds_must_ascend(load: Load) -> None:
    """The fault stands at the value that was given, with all three told."""
    assert _faults(load, "orchestrator:\n  context_window:\n    refresh_threshold: 0.70\n") == [
        ".obra/config.yaml:3: orchestrator.context_window.refresh_threshold: thresholds must ascend: "
        "warning_threshold 0.7 < refresh_threshold 0.7 < critical_threshold 0.95 does not hold"
    ]


def test_shares_must_sum_to_one(load: Load) -> None:
    """Both sums, too much and too little, are told with the parts."""
    assert _faults(load, "context:\n  shares:\n    work_plan: 0.2\n") == [
        ".obra/config.yaml:3: context.shares.work_plan: the shares must sum to 1, not 1.05 (project_state 0.25, "
        "work_plan 0.2, decision_history 0.1, session_summary 0.2, working_memory 0.3)"
    ]
    thirds = {"project_state": 1 / 3, "work_plan": 0, "decision_history": 1 / 3, "session_summary": 1 / 3}
    shares = load("", overrides={"context": {"shares": {**thirds, "working_memory": 0}}}).context.shares
    assert shares.work_plan == 0.0


def test_start_of_an_epoch_must_lie_below_its_end(load: Load) -> None:
    """A context that starts above the refresh threshold would refresh for ever; the later source is blamed."""
    content = "orchestrator: {context_window: {warning_threshold: 0.4, refresh_threshold: 0.5}}\n"
    assert _faults(load, content, overrides={"context": {"fill_at_start": 0.6}}) == [
        "overrides: context.fill_at_start: context.fill_at_start 0.6 must be below refresh_threshold 0.5: "
        "a refresh would call for the next"
    ]


def test_verbatim_floor_and_segments_must_fit_below_the_compaction_threshold(load: Load) -> None:
    """Where nothing could ever be compacted, the settings say so instead of the memory growing."""
    content = "orchestrator: {session_compression_threshold: 1500}\n"
    limit = "must be below session_compression_threshold 1500: nothing could be compacted"
    assert [fault.split(": ", 1)[1] for fault in _faults(load, content)] == [
        f"orchestrator.session_compression_threshold: compaction.verbatim_floor_tokens 2000 {limit}",
        f"orchestrator.session_compression_threshold: compaction.segment_tokens 2000 {limit}",
    ]


@pytest.mark.parametrize("window", [1_024, 3_000, 8_192])
def test_a_small_window_needs_no_other_setting(load: Load, window: int) -> None:
    """The sizes of compaction scale down with the window."""
    settings = load("", {"ORCHESTRA_MEM__ORCHESTRATOR__CONTEXT_WINDOW__MAX_TOKENS": str(window)})
    assert settings.session_compaction_tokens == window // 2


@pytest.mark.parametrize("other", [".obra/sessions", ".obra//./sessions/"])
def test_sessions_and_memory_need_two_folders(load: Load, other: str) -> None:
    """Documents of two kinds in one folder could not be told apart."""
    (fault,) = _faults(load, f"orchestrator: {{memory_dir: {other}}}\n")
    assert fault.endswith("session_dir and memory_dir must be two folders, not both '.obra/sessions'")


def test_combination_with_a_wrong_value_is_not_judged(load: Load) -> None:
    """A threshold that is no number is one fault, not two."""
    content = (
        "orchestrator: {context_window: {warning_threshold: high, refresh_threshold: 0.6, critical_threshold: 0.55}}"
    )
    assert [fault.split(": ")[1] for fault in _faults(load, content)] == [
        "orchestrator.context_window.warning_threshold"
    ]


def test_small_window_lowers_the_sizes_at_which_documents_are_compacted(load: Load) -> None:
    """With 8,192 tokens a document of 40,000 cannot stand; with 128,000 the thresholds are what they say."""
    small = load("orchestrator: {context_window: {max_tokens: 8192}}\n")
    assert (small.session_compaction_tokens, small.episodic_compaction_tokens) == (4096, 4096)
    large = load("")
    assert (large.session_compaction_tokens, large.episodic_compaction_tokens) == (40_000, 30_000)


# Laws


_trees = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.lists(st.integers(), max_size=2),
    lambda below: st.dictionaries(
        st.sampled_from(sorted({part for name in schema() for part in name.split(".")})) | st.text(max_size=5),
        below,
        max_size=6,
    ),
    max_leaves=25,
)


@given(st.lists(_trees, max_size=3))
def test_any_input_gives_settings_or_a_configuration_error(trees: list[object]) -> None:
    """Whatever the sources hold, it becomes checked settings or faults that name them."""
    try:
        settings = resolve([Given(tree, f"source {i}") for i, tree in enumerate(trees)], project_name="p")
    except ConfigError as error:
        assert error.faults
        assert all(fault.source.startswith("source ") and fault.problem for fault in error.faults)
    else:
        for key, value in zip(schema().values(), settings.flat().values(), strict=True):
            assert type(value) is (key.kind if key.kind in (int, float, bool) else str)


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=60))
def test_any_text_as_a_file_is_read_or_refused_in_words(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    """No text at all makes the reader fail with anything but its own error."""
    project = tmp_path_factory.mktemp("any")
    (project / ".obra").mkdir()
    (project / ".obra/config.yaml").write_bytes(text.encode())
    try:
        load_settings(project, {"ORCHESTRA_MEM__PROJECT__NAME": "p", "ORCHESTRA_MEM__STORAGE__BUSY_TIMEOUT_S": "1"})
    except ConfigError as error:
        assert all(fault.source.endswith("config.yaml") for fault in error.faults)


@given(st.data())
def test_every_value_in_range_comes_back_from_a_file(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """What is written to one key is what that key then has, to the last digit."""
    key = data.draw(st.sampled_from([key for key in schema().values() if key.between and "." in key.name]))
    assert key.between
    low, high = key.between.low, key.between.high
    value = data.draw(st.integers(int(low), int(high)) if key.kind is int else st.floats(low, high))
    given_value: object = value
    for part in reversed(key.name.split(".")):
        given_value = {part: given_value}
    project = tmp_path_factory.mktemp("any")
    (project / ".obra").mkdir()
    (project / ".obra/config.yaml").write_text(yaml.safe_dump(given_value))
    try:
        settings = load_settings(project, {})
    except ConfigError as error:  # alone in its range, and impossible beside the others' defaults
        assert any(
            word in str(error) for word in ("must ascend", "must sum to 1", "must be below", "must not be above")
        )
    else:
        assert settings.flat()[key.name] == value


def test_sections_and_keys_are_told_apart() -> None:
    """The schema is read off the dataclasses: each field is a key or a section, and none both."""
    assert sections().isdisjoint(schema())
    assert {field.name for field in fields(Settings) if not field.name.startswith("_")} == {
        name.partition(".")[0] for name in schema()
    }
    assert all(is_dataclass(getattr(Settings(), name)) for name in {key.partition(".")[0] for key in schema()})
