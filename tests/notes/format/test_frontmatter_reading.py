"""Reading of note files: healing, older key names, title and body, and unreadable files."""

from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime
from typing import Any

import pytest

from lithos.kernel.values.times import end_of_day
from lithos.notes.format.document import derive_id, given_keys, parse_document
from lithos.notes.model.note import Document, Note
from lithos.text.yaml.nodes import UnreadableNote

MODIFIED = datetime(2025, 5, 5, 5, 5, 5, tzinfo=UTC)
SOURCE_ID = "11111111-2222-4333-8444-555555555555"


def read(text: str, path: str = "folder/some-file.md") -> Document:
    return parse_document(text.encode(), path, MODIFIED)


def note(head: str, body: str = "") -> Note:
    return read(f"---\n{head}\n---\n{body}").note


def test_file_without_frontmatter_reads_with_default_values() -> None:
    """behaviours 19, 177"""
    document = read("just text\n")
    assert document.content == "just text"
    assert document.note == Note(
        id=derive_id("folder/some-file.md"), title="some-file", created_at=MODIFIED, updated_at=MODIFIED
    )
    assert (document.note.access_scope, document.note.note_type, document.note.status) == (
        "shared", "observation", "active",
    )  # fmt: skip
    assert document.note.namespace is None
    assert note("namespace: team/a").namespace == "team/a"


def test_derived_id_equals_the_documented_example() -> None:
    """behaviour 177"""
    assert derive_id("inbox/idea.md") == "647ceeaa-b2f4-5f08-9b41-0701a41c063d"
    assert derive_id("cafe\u0301.md") == derive_id("caf\u00e9.md")
    assert derive_id("A.md") != derive_id("a.md")
    assert uuid.UUID(derive_id("日本.md")).version == 5


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ("id: 0F0F0F0F-1111-4222-8333-444444444444", True),
        ("id: ' 0f0f0f0f-1111-4222-8333-444444444444'", True),
        ("lithos_id: 0f0f0f0f-1111-4222-8333-444444444444\nid: x1", True),
        ("lithos_id: x1", True),
        ("id: x1", False),
        ("id: 12", False),
        ("id:", False),
        ("id: ''", False),
        ("id: [a]", False),
        ("title: t", False),
        ("", False),
    ],
)
def test_file_is_identified_only_by_an_explicit_id(head: str, expected: bool) -> None:
    """behaviour 177"""
    data = f"---\n{head}\n---\n".encode()
    assert ("id" in given_keys(data)) is expected
    assert (parse_document(data, "a.md", MODIFIED).note.id == derive_id("a.md")) is not expected
    assert "id" not in given_keys(b"id: x\n")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0.4", 0.4), ("'0.4'", 0.4), ("1", 1.0), ("1.7", 1.0), ("-1", 0.0), ("true", 1.0), ("false", 1.0),
        ("no", 1.0), (".nan", 1.0), ("nan", 1.0), (".inf", 1.0), ("-.inf", 1.0), ("high", 1.0), ("", 1.0),
        ("null", 1.0), ("[0.2]", 1.0), ("1e-3", 0.001),
    ],
)  # fmt: skip
def test_invalid_confidence_is_healed(text: str, expected: float) -> None:
    """behaviour 15"""
    assert note(f"confidence: {text}").confidence == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("7", 7),
        ("'7'", 7),
        ("0", 1),
        ("-2", 1),
        ("true", 1),
        ("2.5", 1),
        ("x", 1),
        ("[1]", 1),
        ("", 1),
        ("9" * 30, 1),
        ("9" * 5000, 1),
    ],
)
def test_invalid_version_is_healed(text: str, expected: int) -> None:
    """behaviour 17"""
    assert note(f"version: {text}").version == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-01-02T03:04:05.000006+00:00", datetime(2026, 1, 2, 3, 4, 5, 6, UTC)),
        ("'2026-01-02T03:04:05Z'", datetime(2026, 1, 2, 3, 4, 5, 0, UTC)),
        ("2026-01-02T03:04:05", datetime(2026, 1, 2, 3, 4, 5, 0, UTC)),
        ("2026-01-02 03:04:05 +02:00", datetime(2026, 1, 2, 1, 4, 5, 0, UTC)),
        ("2026-01-02T03:04:05+02:00", datetime(2026, 1, 2, 1, 4, 5, 0, UTC)),
        ("2026-01-02", datetime(2026, 1, 2, tzinfo=UTC)),
        ("2026-1-2", datetime(2026, 1, 2, tzinfo=UTC)),
        ("2026-02-30", None),
        ("0001-01-01T00:00:00+14:00", None),
        ("soon", None),
        ("[2026-01-02]", None),
        ("", None),
    ],
)
def test_times_are_read_from_dates_or_text_in_utc(text: str, expected: datetime | None) -> None:
    """behaviour 18"""
    read_note = note(f"created_at: {text}")
    assert read_note.created_at == (expected or MODIFIED)
    is_day = expected is not None and ":" not in text
    assert note(f"expires_at: {text}").expires_at == (end_of_day(expected) if is_day else expected)


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("2026-11-28", "2026-11-28T23:59:59.999999"),
        ("'2026-11-28'", "2026-11-28T23:59:59.999999"),
        ("20261128", "2026-11-28T23:59:59.999999"),
        ("2026-2-8", "2026-02-08T23:59:59.999999"),
        ("2026-11", "2026-11-30T23:59:59.999999"),
        ("2028-02", "2028-02-29T23:59:59.999999"),
        ("2026-11-28T00:00", "2026-11-28T00:00:00"),
        ("2026-11-28 14:30", "2026-11-28T14:30:00"),
        ("2026-11-28T14:30Z", "2026-11-28T14:30:00"),
        ("2026-11-28T23:30-05:00", "2026-11-29T04:30:00"),
    ],
)
def test_expiry_date_without_time_expires_at_the_end_of_day(text: str, end: str) -> None:
    """behaviour 390"""
    assert note(f"expires_at: {text}").expires_at == datetime.fromisoformat(end).replace(tzinfo=UTC)


@pytest.mark.parametrize("text", ["2026-13", "2026-00", "2026-11-31", "2026", "next week"])
def test_nonexistent_expiry_date_is_ignored(text: str) -> None:
    """behaviour 390"""
    assert note(f"expires_at: {text}").expires_at is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[a, b c]", ("a", "b c")),
        ("\n- a\n- b c", ("a", "b c")),
        ("a, b c,, ", ("a", "b c")),
        ("'a, b'", ("a", "b")),
        ("[2024-01-01, 1.0, yes, 0x1F, null]", ("2024-01-01", "1.0", "yes", "0x1F")),
        ("\n- a: b\n-\n- [x,  y]", ("a: b", "[x, y]")),
        ("[[Wiki Link]]", ("[Wiki Link]",)),
        ("2024", ("2024",)),
        ("{a: 1}", ()),
        ("", ()),
        ("~", ()),
    ],
)
def test_lists_are_read_from_tolerated_forms(text: str, expected: tuple[str, ...]) -> None:
    """behaviour 19"""
    read_note = note(f"tags: {text}\naliases: {text}\nentities: {text}")
    assert read_note.tags == read_note.aliases == read_note.entities == expected


def test_text_keys_keep_the_source_text_of_other_scalars() -> None:
    read_note = note("title: 2024-01-01\nauthor: yes\nsource: 0012\nnamespace: 1.50")
    assert (read_note.title, read_note.author) == ("2024-01-01", "yes")
    assert (read_note.source, read_note.namespace) == ("0012", "1.50")


def test_title_is_read_as_one_line() -> None:
    assert note("title: |\n  two\n  lines\n").title == "two lines"
    assert note('title: "a\\u2028b"').title == "a b"
    assert note("title: '  '").title == "some-file"


def test_derived_from_loses_invalid_and_own_ids_when_normalised() -> None:
    other = "aaaaaaaa-2222-4333-8444-555555555555"
    read_note = note(f"id: {SOURCE_ID}\nderived_from_ids: [{other.upper()}, nonsense, {SOURCE_ID}, {other}]")
    assert read_note.derived_from_ids == (other,)


@pytest.mark.parametrize(
    ("head", "key", "expected"),
    [
        ("status: archived", "status", "archived"),
        ("status: Archived", "status", "archived"),
        ("status: draft", "status", "active"),
        ("note_type: concept", "note_type", "concept"),
        ("note_type: 3", "note_type", "observation"),
        ("access_scope: task", "access_scope", "task"),
        ("schema_version: 3", "schema_version", 3),
        ("schema_version: x", "schema_version", 1),
        ("summaries: {short: s}", "summaries", {"short": "s"}),
        ("summaries: {short: s, long: 2, other: x}", "summaries", {"short": "s", "long": "2"}),
        ("summaries: {other: x}", "summaries", None),
        ("summaries: text", "summaries", None),
        ("entities_extractor: 2", "entities_extractor", 2),
        ("entities_extractor: '2'", "entities_extractor", None),
        ("entities_extractor: true", "entities_extractor", None),
    ],
)
def test_invalid_lcma_keys_are_healed(head: str, key: str, expected: Any) -> None:
    """behaviours 19, 21"""
    assert getattr(note(head), key) == expected


def test_older_key_is_read_when_the_current_key_is_absent() -> None:
    older = "created: 2020-01-01\nupdated: '2021-01-01T00:00:00Z'\n"
    assert note(older).created_at == datetime(2020, 1, 1, tzinfo=UTC)
    assert note(older).updated_at == datetime(2021, 1, 1, tzinfo=UTC)
    assert note(older + "created_at: 2022-01-01").created_at == datetime(2022, 1, 1, tzinfo=UTC)
    lineage = note(f"source:\n  task: t-1\n  derived_from: [{SOURCE_ID}]")
    assert (lineage.source, lineage.derived_from_ids) == ("t-1", (SOURCE_ID,))
    assert note("source: {page: 3}").source is None


def test_unknown_keys_are_kept_as_json_values_in_extra() -> None:
    """behaviour 10"""
    extra = note(
        "date: 2024-01-02\nat: 2024-01-02T03:04:05Z\nclock: 12:30\nratio: .inf\nnone: ~\nflag: on\n"
        "2024: year\nnested: {a: [1, 2.5, {b: null}], when: 2024-01-02}\nbad: 2024-02-30\n"
        "tagged: !thing [1]\nbig: 0x10\nraw: !!int x\n? [c, d]\n: complex\n"
    ).extra
    assert extra == {
        "date": "2024-01-02", "at": "2024-01-02T03:04:05+00:00", "clock": "12:30", "ratio": ".inf",
        "none": None, "flag": True, "2024": "year",
        "nested": {"a": [1, 2.5, {"b": None}], "when": "2024-01-02"}, "bad": "2024-02-30",
        "tagged": [1], "big": 16, "raw": "x", "[c, d]": "complex",
    }  # fmt: skip


def test_merge_keys_are_expanded_and_the_last_duplicate_wins() -> None:
    read_note = note("base: &b {author: ann, k: 1}\n<<: *b\nk: 2\nlist: &l [x]\ntags: *l\ntitle: a\ntitle: b")
    assert (read_note.author, read_note.tags, read_note.title) == ("ann", ("x",), "b")
    assert read_note.extra == {"base": {"author": "ann", "k": 1}, "k": 2, "list": ["x"]}


@pytest.mark.parametrize(
    ("body", "title", "content"),
    [
        ("\n# T\n\ntext\n", "T", "text"),
        ("# T", "T", ""),
        ("\n\n  \n#\tT  \ntext", "T", "text"),
        ("   # T\ntext", "T", "text"),
        ("## S\n\n# T\n\ntext", "T", "## S\n\n\n\ntext"),
        ("## S\ntext\n# T\n", "Key", "## S\ntext\n# T"),
        ("text\n# T\n", "Key", "text\n# T"),
        ("#tag\n# T\n", "Key", "#tag\n# T"),
        ("```\n# T\n```\n", "Key", "```\n# T\n```"),
        ("    # T\n", "Key", "    # T"),
        ("T\n===\n", "Key", "T\n==="),
        ("# \n# T\n", "T", "#"),
        ("#\n", "Key", "#"),
        ("####### x\n# T", "Key", "####### x\n# T"),
        ("# C #\n", "C #", ""),
        ("# T\n# U\n", "T", "# U"),
        ("", "Key", ""),
    ],
)
def test_leading_h1_becomes_the_title_and_is_removed_from_content(
    body: str, title: str, content: str
) -> None:
    document = read(f"---\ntitle: Key\n---\n{body}")
    assert (document.note.title, document.content) == (title, content)


def test_crlf_and_byte_order_mark_do_not_change_values() -> None:
    document = read("\ufeff---\r\ntitle: x\r\ntags:\r\n- a\r\n---\r\n\r\n# T\r\n\r\none\r\n\r\ntwo\r\n")
    assert (document.note.title, document.note.tags, document.content) == ("T", ("a",), "one\n\ntwo")
    assert read("\ufeff# T\r\n").note.title == "T"


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("---\ntitle: x\n", "---\ntitle: x"),
        ("\n---\ntitle: x\n---\n", "---\ntitle: x\n---"),
        ("----\ntitle: x\n----\n", "----\ntitle: x\n----"),
        ("---\ntitle: x\n ...\ntext", "---\ntitle: x\n ...\ntext"),
        ("---", "---"),
    ],
)
def test_unclosed_frontmatter_is_read_as_text(text: str, content: str) -> None:
    document = read(text)
    assert (document.note.title, document.content) == ("some-file", content)


@pytest.mark.parametrize(
    "text", ["---\n---\n", "---\n# only a comment\n\n---", "--- \n---\t\n", "---\n{}\n---\n"]
)
def test_empty_frontmatter_is_valid(text: str) -> None:
    assert read(text).note.title == "some-file"


@pytest.mark.parametrize(
    "data",
    [
        b"---\ntitle: [a\n---\n",
        b"---\n\ttitle: a\n---\n",
        b"---\ntitle: a: b\n---\n",
        b"---\ntitle: *missing\n---\n",
        b"---\ntitle: \x01\n---\n",
        b"---\na: b\n--- c: d\n...\n",
        b"text with \0 inside",
        b"\xff\xfe\x00a",
        "Größe".encode("latin-1"),
    ],
)
def test_malformed_and_binary_files_are_unreadable_with_a_reason(data: bytes) -> None:
    """behaviour 22"""
    with pytest.raises(UnreadableNote) as caught:
        parse_document(data, "a.md", MODIFIED)
    assert len(caught.value.reason) > 30
    with pytest.raises(UnreadableNote):
        given_keys(data)


def test_reason_for_an_unreadable_file_names_its_line() -> None:
    """behaviour 22"""
    with pytest.raises(UnreadableNote, match="line 3 "):
        read("---\ntitle: a\nbad: b: c\n---\n")


def _laughs() -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    return "\n".join(lines)


@pytest.mark.parametrize(
    "head",
    [
        "a: " + "[" * 100_000,
        "a: " + "[" * 20_000 + "]" * 20_000,
        "a: " + "{b: " * 3_000 + "}" * 3_000,
        "? " * 50_000 + "x",
        "\n".join(" " * n + f"k{n}:" for n in range(400)),
        "a: " + "[" * 63 + "[\n" * 60 + "]" * 123,
        _laughs(),
        "a: &a [*a]",
        "a: &a {<<: *a, b: 1}",
        f"a: &a '{'x' * 20_000}'\nb: [{', '.join(['*a'] * 20_000)}]",
        f"a: &a [{'x, ' * 20_000}]\ntags: [{', '.join(['*a'] * 20_000)}]",
    ],
    ids=range(11),
)
def test_hostile_nesting_and_aliases_are_refused(head: str) -> None:
    """behaviour 22"""
    with pytest.raises(UnreadableNote):
        note(head)


def test_many_plain_values_are_accepted() -> None:
    read_note = note("tags:\n" + "".join(f"- t{n}\n" for n in range(20_000)) + "x: [" + "[a], " * 5_000 + "]")
    assert (len(read_note.tags), len(read_note.extra["x"])) == (20_000, 5_000)


@pytest.mark.parametrize(
    "number", ["0x" + "f" * 9_000, "0" + "7" * 9_000, "0b" + "1" * 90_000, "9" * 9_000, "1" + ":59" * 9_000]
)
def test_too_long_number_is_read_as_text(number: str) -> None:
    """Python cannot print a number of more than 4,300 digits, so such a note stopped the server at start."""
    extra = note(f"big: {number}\nsmall: 0x{'f' * 20}").extra
    assert extra == {"big": number, "small": int("f" * 20, 16)}
    json.dumps(extra)
