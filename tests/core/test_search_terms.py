"""Terms: what is written is found, in any script, and any string is a query."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestra_mem.core.search.terms import (
    MAX_QUERY_TERMS,
    chunk_names,
    content_words,
    exact_names,
    index_text,
    read_query,
    terms_of,
)
from orchestra_mem.search_types import Chunk, Tier


def chunk(text: str, *, title: str = "", heading: tuple[str, ...] = (), operation: int = 0) -> Chunk:
    """Make a chunk that says something."""
    return Chunk(
        key="k", tier=Tier.SESSION, source="op 1", text=text, kind="message", group="s", position=1, title=title,
        heading=heading, operation=operation,
    )  # fmt: skip


def finds(query: str, text: str) -> bool:
    """Whether keyword search would find a text: they share a term."""
    held = index_text(chunk(text))
    return bool(set(read_query(query).terms) & set(f"{held.identifiers} {held.body}".split(" ")))


# Queries


@pytest.mark.parametrize(
    ("query", "terms", "names"),
    [
        ("How do we deploy the app?", ("deploy", "app"), ()),
        ("deploying deployed deploys", ("deploy",), ()),
        ("who are you", ("who", "are", "you"), ()),
        ("Where is #12?", ("#12", "12"), ("#12",)),
        ("src/app.py", ("src/app.py", "src", "app", "py"), ("src/app.py",)),
        ("record_operation", ("record_operation", "record", "oper"), ("record_operation",)),
        ("getUserName", ("getusername", "getusernam", "get", "user", "name"), ("getusername",)),
        ("3 days, $20, 18th, 1,000 and 5 May", ("3", "day", "20", "18th", "1000", "5", "may"), ()),
        ("Café ＮＡÏＶＥ", ("cafe", "naiv"), ()),
        ("機械学習", ("機械", "械学", "学習"), ()),
        ("猫", ("猫",), ()),
        ("hello世界", ("hello", "世界"), ()),
        ("한국어 검색", ("한국", "국어", "검색"), ()),
        ("หมา", ("หม", "มา"), ()),
        ("हिन्दी भाषा", ("हिन्दी", "भाषा"), ()),
        ('"a* NEAR(b) AND', ("near", "b"), ()),
        ("\x00 \ud800 🎉 *", (), ()),
        ("", (), ()),
    ],
)
def test_a_query_asks_for_its_words_and_names(query: str, terms: tuple[str, ...], names: tuple[str, ...]) -> None:
    """Stems without stop words unless there is nothing else; names whole and in parts; pairs without spaces."""
    asked = read_query(query)
    assert (asked.terms, asked.identifiers) == (terms, names)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("机器学习", "我们在研究机器学习的方法"),
        ("猫", "黒猫が好きです"),
        ("配置", "如何部署和配置这个应用程序？"),
        ("デプロイ", "アプリをデプロイする手順"),
        ("ﾃﾞﾌﾟﾛｲ", "アプリをデプロイする手順"),
        ("검색", "전체 검색을 지원합니다"),
        ("สวัสดี", "ทุกคนสวัสดีครับ"),
        ("Привет", "привет, мир"),
        ("العربية", "اللغة العَرَبِيَّة"),
        ("resume", "My résumé is ready"),
        ("user", "call getUserName()"),
        ("operation", "see record_operation in manager.py"),
        ("manager.py", "orchestra/manager.py was changed"),
        ("1000", "costs 1,000 in all"),
        ("who is it", "Who is it?"),
    ],
)
def test_what_is_written_is_found(query: str, text: str) -> None:
    """In other scripts, other forms, in parts."""
    assert finds(query, text)


@given(st.text())
def test_any_string_is_a_query_and_a_text(text: str) -> None:
    """Terms are bounded, can be stored, and have no white space; a text is found by itself."""
    asked = read_query(text)
    assert len(asked.terms) <= MAX_QUERY_TERMS
    assert set(asked.identifiers) <= set(asked.terms)
    for term in (*asked.terms, *terms_of(text)):
        assert term.encode("utf-8")
        assert not any(character.isspace() for character in term)
    assert finds(text, text) == bool(asked.terms)


# Texts


def test_a_chunk_is_indexed_by_columns() -> None:
    """Title, headings and body apart; exact names once more whole, the number of the operation among them."""
    held = index_text(chunk("Deployed src/app.py", title="Tool Call: bash", heading=("Work", "Done"), operation=12))
    assert (held.title, held.heading) == ("tool call bash", "work done")
    assert held.identifiers == "#12 src/app.py"
    assert held.body == "deploy src/app.py src app py"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("#12 and ./run.sh and /etc/hosts", ("#12", "./run.sh", "/etc/hosts")),
        ("ABC-123, 3f2a9bc, GPT-4, v1.2.3", ("abc-123", "3f2a9bc", "gpt-4", "v1.2.3")),
        ("a@b.com, __init__, maxTokens", ("a@b.com", "__init__", "maxtokens")),
        ("on 5 May 2023 at 12:30, 20 %, 250 ms, and/or 3.5", ()),
        ('he said "all of it"', ()),
    ],
)
def test_exact_names_are_names_and_no_numbers(text: str, names: tuple[str, ...]) -> None:
    """What a person would copy and look for to the letter."""
    assert exact_names(text) == names
    assert chunk_names(chunk(text, operation=5)) == ("#5", *names)


def test_words_are_compared_as_they_are_spoken() -> None:
    """Lower-case, each once, unstemmed, without stop words and possessives."""
    assert content_words("John's dogs don't “bark” at the CAFÉ, John isn’t here") == ["john", "dogs", "bark", "cafe"]
    assert content_words("猫が好き record_operation") == ["猫が", "が好", "好き", "record", "operation"]
