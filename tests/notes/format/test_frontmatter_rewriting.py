"""Writing of note files: new files, and edits without unnecessary changes."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import frontmatter as python_frontmatter
import pytest
from attrs import evolve

from lithos.notes.format.document import (
    derive_id,
    given_keys,
    parse_document,
    render_document,
    rewrite_document,
)
from lithos.notes.model.note import Document, Note
from lithos.text.yaml.nodes import UnreadableNote
from lithos.text.yaml.vault_style import VaultStyle

ID = "0f0f0f0f-1111-4222-8333-444444444444"
MODIFIED = datetime(2025, 5, 5, 5, 5, 5, tzinfo=UTC)
LATER = datetime(2026, 6, 6, 6, 6, 6, 123456, tzinfo=UTC)
LATER_TEXT = "2026-06-06T06:06:06.123456+00:00"
#: A complete frontmatter, so that an update adds no keys.
FULL = """\
id: 0f0f0f0f-1111-4222-8333-444444444444
title: Old
author: ann
created_at: 2020-01-01T00:00:00.000000+00:00
updated_at: 2020-01-01T00:00:00.000000+00:00
tags: []
aliases: []
confidence: 1.0
contributors: []
source: null
supersedes: null
version: 1
schema_version: 1
access_scope: shared
note_type: observation
status: active
"""


def update(
    data: bytes | str,
    *,
    path: str = "a.md",
    content: str | None = None,
    extra: dict[str, Any] | None = None,
    **changes: Any,
) -> str:
    """Return the file after an update with `changes`.

    Values in `extra` are merged, and None deletes a key.
    """
    raw = data if isinstance(data, bytes) else data.encode()
    old = parse_document(raw, path, MODIFIED)
    merged = {key: value for key, value in {**old.note.extra, **(extra or {})}.items() if value is not None}
    new = Document(
        note=evolve(old.note, extra=merged, **changes), content=old.content if content is None else content
    )
    return rewrite_document(raw, path, MODIFIED, new, replace_body=content is not None).decode()


def full(**lines: str) -> str:
    """Return a complete file. The named keys have the given source text."""
    head = ""
    for line in FULL.splitlines():
        key = line.split(":")[0]
        head += lines.pop(key, line) + "\n"
    return "---\n" + head + "".join(f"{line}\n" for line in lines.values()) + "---\n\nbody\n"


def test_new_file_has_the_documented_layout() -> None:
    """behaviours 17, 19"""
    note = Note(
        id=ID, title="T", author="ann", created_at=LATER, updated_at=LATER, tags=("a", "2024"),
        source="task-1", expires_at=LATER, summaries={"short": "s"},
        extra={"due": "2024-01-01", "deep": {"a": [1]}},
    )  # fmt: skip
    assert render_document(Document(note=note, content="\n  text\n\n# more")).decode() == (
        f"---\nid: {ID}\ntitle: T\nauthor: ann\ncreated_at: '{LATER_TEXT}'\nupdated_at: '{LATER_TEXT}'\n"
        "tags:\n  - a\n  - '2024'\naliases: []\nconfidence: 1.0\ncontributors: []\nsource: task-1\n"
        f"supersedes: null\nversion: 1\nexpires_at: '{LATER_TEXT}'\nschema_version: 1\naccess_scope: shared\n"
        "note_type: observation\nstatus: active\nsummaries:\n  short: s\ndue: '2024-01-01'\n"
        "deep:\n  a:\n    - 1\n"
        "---\n\n# T\n\n  text\n\n# more\n"
    )


def test_python_frontmatter_reads_the_same_values_from_new_file() -> None:
    extra = {"emoji 🚀": "yes", "list": [1, 1.5, True, None, "x: y", {"k": ["#", "- a"]}], "": "~"}
    note = Note(id=ID, title="12:30 #tag", created_at=LATER, updated_at=LATER, extra=extra)
    post = python_frontmatter.loads(render_document(Document(note=note, content="")).decode())
    assert (post["id"], post["title"], post["updated_at"]) == (ID, "12:30 #tag", LATER_TEXT)
    assert {key: post[key] for key in extra} == extra


def test_update_with_an_unreadable_result_is_not_written() -> None:
    note = Note(id=ID, title="T", created_at=LATER, updated_at=LATER)
    for content in ("nul \0", "surrogate \ud800"):
        with pytest.raises(UnreadableNote):
            render_document(Document(note=note, content=content))
    with pytest.raises(UnreadableNote):
        render_document(Document(note=evolve(note, extra={"title": "x"}), content=""))
    deep: Any = "x"
    for _ in range(5_000):
        deep = [deep]
    with pytest.raises(UnreadableNote, match="100 levels"):
        update(full(), extra={"deep": deep})


def test_update_without_changes_keeps_every_byte() -> None:
    """behaviour 175"""
    for text in (full(), full().replace("\n", "\r\n"), "\ufeff" + full(), full().rstrip("\n")):
        assert update(text) == text


@pytest.mark.parametrize(
    ("key", "line", "value", "expected"),
    [
        ("title", "title: Old # why", "New", "title: New # why"),
        ("title", "title: 'Old' # why", "It's", "title: 'It''s' # why"),
        ("title", 'title:   "Old"  # why', 'a "b" \\', 'title:   "a \\"b\\" \\\\"  # why'),
        ("title", "title: Old", "yes", "title: 'yes'"),
        ("title", "title: Old", "a: b", "title: 'a: b'"),
        ("title", "title: >- # why\n  folded\n  old\n\n# next", "New", "title: New # why\n\n# next"),
        ("title", "title:\n    Old # why", "New", "title:\n    New # why"),
        ("title", "title: plain\n  on two # why", "New", "title: New # why"),
        ("title", '"title": Old', "New", '"title": New'),
        ("title", "title: !!str Old # why", "New", "title: New # why"),
        ("title", "? title\n: Old", "New", "title: New"),
        ("version", "version: 1   # count", 2, "version: 2   # count"),
        ("version", "version: '1'", 2, "version: 2"),
        ("confidence", "confidence: 1", 0.25, "confidence: 0.25"),
        ("confidence", "confidence: 1", 1e-7, "confidence: 1.0e-07"),
        ("updated_at", "updated_at: 2020-01-01 # day", LATER, f"updated_at: {LATER_TEXT} # day"),
        ("updated_at", "updated_at: '2020-01-01'", LATER, f"updated_at: '{LATER_TEXT}'"),
        ("updated_at", 'updated_at: "2020-01-01"', LATER, f'updated_at: "{LATER_TEXT}"'),
        ("source", "source: # none", "t-1", "source: t-1 # none"),
        ("source", "source:", "t-1", "source: t-1"),
        ("source", "source: ~", "t-1", "source: t-1"),
        ("source", "source: 'x' # t", None, "source: null # t"),
        ("tags", "tags: [ 'a', b ] # t", ("a", "c"), "tags: ['a', c] # t"),
        ("tags", "tags: [a] # t", (), "tags: [] # t"),
        ("tags", "tags: a, b # t", ("a", "x, y"), "tags: [a, 'x, y'] # t"),
        ("tags", "tags: # t", ("a",), "tags: [a] # t"),
        ("tags", "tags: # t\n# first\n- a\n- b # 2\n# end", (), "tags: [] # t\n# first\n# end"),
        (
            "tags",
            "tags: # t\n  # one\n  - 'a' # 1\n\n  # two\n  -   b # 2\n  - c\n# end",
            ("a", "x", "c", "d"),
            "tags: # t\n  # one\n  - 'a' # 1\n\n  # two\n  - x\n  - c\n  - d\n# end",
        ),
        ("tags", "tags:\n- a\n- 2024-01-01 # 2", ("2024-01-01",), "tags:\n- 2024-01-01 # 2"),
        ("tags", "tags: &t\n- a\n- b", ("b",), "tags: [b]"),
        ("tags", "tags:\n-\n  a\n- b", ("b", "c"), "tags:\n- b\n- c"),
        ("contributors", "contributors:\n- bob # b", ("bob", "eve"), "contributors:\n- bob # b\n- eve"),
        ("status", "status: active # mine", "archived", "status: archived # mine"),
    ],
)
def test_new_value_keeps_position_and_style_of_the_old_value(
    key: str, line: str, value: Any, expected: str
) -> None:
    """behaviour 175"""
    for newline in ("\n", "\r\n"):
        before, after = (full(**{key: text}).replace("\n", newline) for text in (line, expected))
        assert update(before, **{key: value}) == after


@pytest.mark.parametrize(
    ("key", "line", "empty"),
    [
        ("source_url", "source_url: http://x.y # u", None),
        ("derived_from_ids", "derived_from_ids:\n- 11111111-2222-4333-8444-555555555555 # d", ()),
        ("expires_at", "expires_at: 2026-01-01", None),
        ("namespace", "namespace: |\n  a", None),
        ("summaries", "summaries:\n  short: a\n  long: >\n    b\n    c", None),
        ("entities", "entities: [a,\n  b] # e", ()),
        ("entities_extractor", "entities_extractor: 3", None),
    ],
)
def test_cleared_optional_key_is_removed_with_its_lines(key: str, line: str, empty: Any) -> None:
    before = full(**{key: line, "z": "# stays\nz: 1"})
    assert update(before, **{key: empty}) == full(z="# stays\nz: 1")


def test_missing_keys_are_appended_in_order_except_namespace() -> None:
    """behaviours 19, 20, 177"""
    data = "---\n# mine\nzeta: 1 # z\ntitle: T\n---\nbody"
    expected = (
        f"---\n# mine\nzeta: 1 # z\ntitle: T\nid: {derive_id('in/a.md')}\nauthor: unknown\n"
        f"created_at: '2025-05-05T05:05:05.000000+00:00'\nupdated_at: '{LATER_TEXT}'\ntags: []\naliases: []\n"
        "confidence: 1.0\ncontributors: []\nsource: null\nsupersedes: null\nversion: 2\nschema_version: 1\n"
        "access_scope: shared\nnote_type: observation\nstatus: active\n---\nbody"
    )
    assert update(data, path="in/a.md", version=2, updated_at=LATER) == expected
    assert "id" in given_keys(expected.encode())
    assert "namespace: team\n---" in update(full(), namespace="team")


def test_first_update_replaces_unusable_id_and_adds_creation_time() -> None:
    """behaviour 177"""
    text = update(full(id="id: # todo", created_at="created_at: long ago"))
    assert f"\nid: {derive_id('a.md')} # todo\n" in text
    assert "\ncreated_at: long ago\n" in text
    assert "\nlithos_created_at: '2025-05-05" in text


def test_healed_values_keep_their_source_until_they_change() -> None:
    """behaviours 15, 175"""
    before = full(confidence="confidence: high", status="status: draft", author="author:")
    assert update(before, version=2) == before.replace("version: 1", "version: 2", 1)


def test_older_keys_are_kept_next_to_current_keys_except_source() -> None:
    lineage = "11111111-2222-4333-8444-555555555555"
    before = (
        f"---\nid: {ID}\ntitle: T\ncreated: 2020-01-01 # then\nsource: # from\n  task: t-1\n"
        f"  derived_from: [{lineage}]\n---\n"
    )
    text = update(before)
    assert text.startswith(
        f"---\nid: {ID}\ntitle: T\ncreated: 2020-01-01 # then\nsource: t-1 # from\nauthor: "
    )
    assert "\ncreated_at: '2020-01-01T00:00:00.000000+00:00'\n" in text
    assert f"\nderived_from_ids:\n  - {lineage}\n" in text
    assert "source: {page: 3}" in update(full(source="source: {page: 3}"), version=2)


def test_only_named_extra_keys_change() -> None:
    """behaviours 10, 39"""
    lines = {
        "k1": "k1: 1 # one",
        "k2": "k2:\n  deep: [a, {b: c}] # two\n  more: x",
        "k3": "k3: |\n  text\n   more",
        "k4": "k4: 2024-01-01",
        "k5": "k5: [1, '1', true]",
    }
    before = full(**lines)
    assert update(before, extra={"k1": 1}) == before
    assert update(before, extra={"k1": True}) == full(**lines | {"k1": "k1: true # one"})
    assert update(before, extra={"k1": 1.0}) == full(**lines | {"k1": "k1: 1.0 # one"})
    changed = full(**lines | {"k2": "k2:\n  deep:\n    - b"})
    assert update(before, extra={"k2": {"deep": ["b"]}}) == changed
    level = full(k="k: # a list\n- 1 # one\n# c", z="z: 'z'")
    assert update(level, extra={"k": {"a": 2}}) == full(k="k: # a list\n  a: 2\n# c", z="z: 'z'")
    assert update(before, extra={"k2": "x"}) == full(**lines | {"k2": "k2: x"})
    assert update(before, extra={"k5": ["1", 1]}) == full(**lines | {"k5": "k5: ['1', 1]"})
    assert update(before, extra={"k3": None}) == full(**{k: v for k, v in lines.items() if k != "k3"})
    assert update(before, extra={"k6": {"a": []}}) == full(**lines, k6="k6:\n  a: []")


def test_update_edits_the_last_duplicate_key_and_removal_deletes_all() -> None:
    before = full(title="title: First\ntitle: Old", x="x: 1\ny: 2\nx: 3")
    assert update(before, title="New") == before.replace("title: Old", "title: New")
    assert update(before, extra={"x": None}) == full(title="title: First\ntitle: Old", x="y: 2")


def test_anchored_keys_are_written_out_without_changing_other_lines() -> None:
    """behaviour 175"""
    before = full(tags="tags: &t [a, b] # t", x="# c1\nx: *t # x\n# c2\ny: 'y' # y")
    written_out = full(tags="tags: [b] # t", x="# c1\nx: [a, b] # x\n# c2\ny: 'y' # y")
    assert update(before, tags=("b",)) == written_out
    assert update(before, extra={"x": [1]}) == before.replace("x: *t", "x: [1]")


def test_merge_keys_are_expanded_only_if_necessary() -> None:
    """behaviour 175"""
    base = "base: &b {k: 1, j: 2} # b\n<<: *b # m\n# c\ny: 'y'"
    assert update(full(base=base), extra={"k": 5}) == full(base=base, k="k: 5")
    assert update(full(base=base), extra={"k": None}) == full(base=base.replace("<<: *b # m\n", ""), j="j: 2")


@pytest.mark.parametrize(
    "head",
    [
        "{id: n, title: Old, when: 2024-01-01, tags: [a]}\n", "id: n\ntitle: Old\n...\n",
        "id: n\ntitle: Old\u2028when: 2024-01-01\n", "&k id: n\n? *k\n: again\ntitle: Old\n",
        "a: &a title\nid: n\n? *a\n: Old\n", "  id: n\n  title: Old\n  when: 2024-01-01\n",
        "!!map\nid: n\ntitle: Old\n",
    ],
)  # fmt: skip
def test_unusual_yaml_is_rewritten_without_losing_a_value(head: str) -> None:
    data = f"---\n{head}---\nbody".encode()
    old = parse_document(data, "a.md", MODIFIED)
    new = evolve(old, note=evolve(old.note, title="New", tags=("b",), extra={**old.note.extra, "k": "v"}))
    result = rewrite_document(data, "a.md", MODIFIED, new, replace_body=False)
    assert parse_document(result, "a.md", MODIFIED) == new
    assert result.endswith(b"---\nbody")


def test_body_is_unchanged_except_its_leading_h1() -> None:
    """behaviours 52, 175"""
    body = "\r\n\r\n  #\t Old \t\r\n\n# Old\r\n  x  \n\n\n"
    before = full().replace("\n\nbody\n", "\n" + body)
    after = update(before, title="New")
    assert after.endswith(body.replace("Old", "New", 1))
    assert "title: New\n" in after
    no_heading = full().replace("body", "text\n\n# Old")
    assert update(no_heading, title="New") == no_heading.replace("title: Old", "title: New")


def test_replaced_body_keeps_the_line_breaks_of_the_file() -> None:
    """behaviour 175"""
    before = full()
    head = before[: before.index("\nbody")]
    assert update(before, content="\n one\n\ntwo ") == head + "\n# Old\n\n one\n\ntwo\n"
    assert update(before, content="", title="New") == head.replace("Old", "New") + "\n# New\n"
    crlf = "\ufeff" + before.replace("\n", "\r\n")
    assert update(crlf, content="one\ntwo\r\nthree") == (
        "\ufeff" + head.replace("\n", "\r\n") + "\r\n# Old\r\n\r\none\r\ntwo\r\nthree\r\n"
    )
    assert update(head.removesuffix("\n"), content="x") == head + "\n# Old\n\nx\n"


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("body", ["# Old\n\ntext\n", "\n\n# Old\ntext", "text\n", "---\nopen\n", ""])
def test_update_adds_frontmatter_to_a_file_without_frontmatter(mark: str, newline: str, body: str) -> None:
    """behaviour 177"""
    data = mark + body.replace("\n", newline)
    text = update(data, version=2)
    eol = newline if "\n" in body else "\n"
    assert text.startswith(f"{mark}---{eol}id: {derive_id('a.md')}{eol}")
    assert text.endswith(data.removeprefix(mark))
    assert text.count("\n") == text.count(eol)
    assert parse_document(text.encode(), "a.md", MODIFIED).note.version == 2


def test_unreadable_file_is_not_rewritten() -> None:
    """behaviour 22"""
    new = Document(note=Note(id="n", title="T"), content="")
    with pytest.raises(UnreadableNote):
        rewrite_document(b"---\na: [\n---\n", "a.md", MODIFIED, new, replace_body=True)


def test_title_with_line_breaks_is_written_on_one_line() -> None:
    assert "title: a b\n" in update(full(), title="a \n\n b")


def test_summaries_and_long_keys_read_back_unchanged() -> None:
    """behaviour 21"""
    text = update(
        full(), summaries={"short": "a: b"}, extra={"k" * 2_000: "v", "two\nlines": {"x" * 2_000: 1}}
    )
    note = parse_document(text.encode(), "a.md", MODIFIED).note
    assert note.summaries == {"short": "a: b"}
    assert note.extra == {"k" * 2_000: "v", "two\nlines": {"x" * 2_000: 1}}


def test_long_list_is_edited_item_by_item() -> None:
    """behaviour 175: unchanged items keep their line, their quoting and their comment."""
    items = [f"item-{number}" for number in range(5_000)]
    lines = "".join(f"  - '{item}'  # {item}\n" for item in items)
    data = f"---\ntags:\n{lines}---\n# A\n".encode()
    old = parse_document(data, "a.md", MODIFIED)
    kept = (*items[10:2_000], "new", *items[2_001:], items[2_000])
    new = evolve(old, note=evolve(old.note, tags=kept))
    text = rewrite_document(data, "a.md", MODIFIED, new, replace_body=False).decode()
    assert parse_document(text.encode(), "a.md", MODIFIED).note.tags == kept
    assert all(f"  - '{item}'  # {item}\n" in text for item in items[10:2_000])
    assert text.count("# item-") == 5_000 - 11


FOREIGN = VaultStyle.of_foreign()


def update_foreign(data: str, content: str | None = None, path: str = "Name.md", **changes: Any) -> str:
    """Return the file after an update in the style of a foreign vault."""
    old = parse_document(data.encode(), path, MODIFIED, style=FOREIGN)
    text = old.content if content is None else content
    new = Document(note=evolve(old.note, **changes), content=text)
    return rewrite_document(
        data.encode(), path, MODIFIED, new, replace_body=content is not None, style=FOREIGN
    ).decode()


def test_heading_of_a_foreign_note_is_ordinary_text() -> None:
    """behaviour 254"""
    data = "---\ncssclass: x\n---\n\n# A heading\n\nText.\n"
    old = parse_document(data.encode(), "Name.md", MODIFIED, style=FOREIGN)
    assert (old.note.title, old.content) == ("Name", "# A heading\n\nText.")
    changed = update_foreign(data, version=2, updated_at=LATER)
    assert changed.replace("'", "") == (f"---\ncssclass: x\nid: {old.note.id}\n---\n\n# A heading\n\nText.\n")
    assert update_foreign(data, title="Other", version=2).count("title: Other\n") == 1
    assert "title" not in update_foreign(data, title="Name", version=2)
    assert update_foreign(data, content="# New\n\nNewer", version=2).endswith("\n---\n\n# New\n\nNewer\n")


def test_unusual_values_of_a_foreign_note_stay_unchanged() -> None:
    """behaviour 254"""
    data = "---\ncreated_at: some day\ntags: a, b\nconfidence: high\nversion: x\nid:\n---\nText"
    changed = update_foreign(data, version=2, updated_at=LATER)
    assert "created_at: some day\ntags: a, b\nconfidence: high\nversion: x\nid: " in changed
    assert changed.endswith("\n---\nText")


def test_new_foreign_vault_note_has_few_keys_and_no_heading() -> None:
    """behaviour 254"""
    note = Note(id=ID, title="Name", author="ann", created_at=LATER, updated_at=LATER, status="archived")
    data = render_document(Document(note=note, content="Text"), "Name.md", FOREIGN).decode()
    keys = [line.partition(":")[0] for line in data.splitlines()]
    assert keys == ["---", "id", "author", "created_at", "updated_at", "version", "status", "---", "", "Text"]
    data = render_document(Document(note=note, content="Text"), "Other.md", FOREIGN).decode()
    assert "title: Name\n" in data
