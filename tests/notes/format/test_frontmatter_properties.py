"""Property tests of generated note files: edits change nothing else, written values read back unchanged."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any, Final

import yaml
from attrs import evolve, frozen
from hypothesis import given
from hypothesis import strategies as st

from lithos.notes.format.document import parse_document, render_document, rewrite_document
from lithos.notes.model.note import OWNED_KEYS, Document, Note
from lithos.text.yaml.layout import trim_content
from lithos.text.yaml.nodes import UnreadableNote, write_entry, write_inline

MODIFIED: Final = datetime(2025, 5, 5, 5, 5, 5, tzinfo=UTC)
LATER: Final = datetime(2026, 6, 6, 6, 6, 6, 123456, tzinfo=UTC)

#: YAML source forms of keys that Lithos owns. `{c}` marks the position of a comment.
OWNED_FORMS: Final[dict[str, list[str]]] = {
    "id": ["id: 11111111-2222-4333-8444-555555555555{c}", "id: 'mine'{c}"],
    "title": [
        "title: Old name{c}",
        "title: 'Old: name'{c}",
        'title: "Öld \\" name"{c}',
        "title: >-{c}\n  Old\n  name",
    ],
    "author": ["author: ann{c}", "author:{c}"],
    "created_at": ["created_at: 2020-01-01{c}", "created_at: '2020-01-01T00:00:00Z'{c}"],
    "updated_at": ["updated_at: 2020-01-01 10:00:00{c}", 'updated_at: "2020-01-01T00:00:00+02:00"{c}'],
    "tags": [
        "tags: [ a,'b' , c]{c}", "tags:{c}\n- a\n- 'b'\n-   c", "tags:{c}\n    - a\n\n    - b",
        "tags: a, b{c}", "tags:{c}",
    ],
    "aliases": ["aliases: []{c}", "aliases:{c}\n  - 'An alias'\n  - [[odd]]", "aliases: [x,\n  y]{c}"],
    "confidence": ["confidence: 1{c}", "confidence: '0.5'{c}", "confidence: high{c}", "confidence: 0.50{c}"],
    "contributors": ["contributors: []{c}", "contributors:{c}\n- bob"],
    "source": ["source: null{c}", "source: t-1{c}", "source: ''{c}", "source:{c}"],
    "version": ["version: 3{c}", "version: '3'{c}", "version: x{c}"],
    "status": ["status: draft{c}", "status: 'active'{c}"],
    "quarantine_reason": ["quarantine_reason: 'odd: one'{c}", "quarantine_reason: >-{c}\n  two\n  lines"],
    "expires_at": ["expires_at: 2030-01-01{c}"],
    "summaries": ["summaries: {short: s}{c}", "summaries:{c}\n  short: |\n    s\n  odd: 1"],
}  # fmt: skip
EXTRA_FORMS: Final = [
    "1{c}", "'1'{c}", "yes{c}", "2024-01-01{c}", ".nan{c}", "{c}", "~{c}",
    "plain text{c}", "'single ''q'''{c}",
    '"dbl \\u00e9"{c}', "|{c}\n  lit\n   eral", ">-{c}\n  fol\n  ded", "[a, {b: c}]{c}", "{x: 1, y: [2]}{c}",
    "{c}\n- a\n-  b", "{c}\n  deep:\n    - 1\n    # inside\n    - 2\n  more: ~", "&{a} v{c}", "!!str 5{c}",
    "日本語 🚀{c}", "plain\n  on two lines{c}", "'[[link]]'{c}",
]  # fmt: skip
FILLERS: Final = ["", "\n", "# note\n", "\n# a: b\n\n", "#\n"]
BODIES: Final = [
    "", "\n# Old name\n\ntext\n", "text", "\n\n## sub\n# Old: name  \nx\n---\ny\n",
    "# \n```\n# no\n```\n\n\n",
]  # fmt: skip


@frozen(kw_only=True)
class Piece:
    """The lines of one key, or blank lines and comments without a key."""

    key: str | None
    text: str
    comment: str = ""


@st.composite
def pieces(draw: st.DrawFn) -> list[Piece]:
    keys = draw(st.lists(st.sampled_from(sorted(OWNED_FORMS)), unique=True, max_size=8))
    extras = draw(
        st.lists(st.sampled_from(["zeta", "k 1", "due", "created", "'q'", "2024"]), unique=True, max_size=4)
    )
    made: list[Piece] = []
    for key in draw(st.permutations(keys + extras)):
        comment = draw(st.sampled_from(["", " # why", "   # 'it' [is]: so"]))
        if key in OWNED_FORMS:
            form = draw(st.sampled_from(OWNED_FORMS[key]))
        else:
            value = draw(st.sampled_from(EXTRA_FORMS))
            form = f"{key}:{value}" if value.startswith("{c}") else f"{key}: {value}"
        made.append(Piece(key=None, text=draw(st.sampled_from(FILLERS))))
        made.append(
            Piece(
                key=key.strip("'"),
                text=form.replace("{c}", comment).replace("{a}", f"a{len(made)}") + "\n",
                comment=comment,
            )
        )
    return [*made, Piece(key=None, text=draw(st.sampled_from(FILLERS)))]


texts = st.text(
    alphabet=st.sampled_from("ab é日🚀:#'\"-[]{},&*!|>%@`~?\\ \t\n\x07\x7f\x85\u2028\ufeff0.1e_=<"),
    max_size=12,
)
any_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20) | texts
words = st.sampled_from(
    [
        "yes", "null", "~", "1.0", "1e3", "0o7", "2024-01-01", "12:30", "<<", "=", "n", "---", "...",
        "- a", "a: b", "a #b",
    ]
)  # fmt: skip
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | any_text
    | words
)
json_values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(any_text | words, inner, max_size=3),
    max_leaves=8,
)
extra_keys = (any_text | words).filter(lambda key: key not in OWNED_KEYS)
titles = (any_text | words).filter(lambda text: text.strip() and "\0" not in text)
items = st.lists((any_text | words).filter(lambda text: text.strip()), max_size=3).map(tuple)
updates = st.fixed_dictionaries(
    {},
    optional={
        "title": titles,
        "tags": items | st.sampled_from([("a", "c"), ("b", "a"), ("a", "b", "c", "d"), ()]),
        "version": st.integers(2, 9),
        "updated_at": st.just(LATER),
        "confidence": st.floats(0, 1),
        "status": st.sampled_from(["archived", "active"]),
        "quarantine_reason": st.none() | words,
        "source": st.none() | words,
        "expires_at": st.none() | st.just(LATER),
        "summaries": st.none() | st.just({"short": "n"}),
        "contributors": st.just(("bob", "eve")),
    },
)
extra_updates = st.dictionaries(
    st.sampled_from(["zeta", "k 1", "due", "new", "<<"]), st.none() | json_values, max_size=2
)


def changed_keys(old: Note, new: Note) -> set[str]:
    owned = {key for key in OWNED_FORMS if getattr(old, key) != getattr(new, key)}
    return owned | {
        key
        for key in old.extra.keys() | new.extra.keys()
        if repr(old.extra.get(key, ...)) != repr(new.extra.get(key, ...))
    }


def allowed(parts: list[Piece], changed: set[str]) -> str:
    """Return a pattern that matches the old lines after the edit.

    Only changed keys may differ from the old lines. Comments stay.
    """
    pattern = ""
    for piece in parts:
        if piece.key not in changed:
            pattern += re.escape(piece.text)
        elif piece.comment:
            pattern += f"(?:[^\n]*{re.escape(piece.comment)}\n(?:[ \t-][^\n]*\n|\n)*)?"
        else:
            pattern += "(?:[^#\n][^\n]*\n|\n)*"
    return pattern


@given(
    parts=pieces(), mark=st.sampled_from(["", "\ufeff"]), newline=st.sampled_from(["\n", "\r\n"]),
    body=st.sampled_from(BODIES), changes=updates, extra=extra_updates,
)  # fmt: skip
def test_update_changes_only_the_given_values(
    parts: list[Piece], mark: str, newline: str, body: str, changes: dict[str, Any], extra: dict[str, Any]
) -> None:
    """behaviour 175"""
    head = "".join(piece.text for piece in parts)
    data = f"{mark}---\n{head}---\n{body}".replace("\n", newline).encode()
    old = parse_document(data, "a.md", MODIFIED)
    merged = {key: value for key, value in {**old.note.extra, **extra}.items() if value is not None}
    note = evolve(old.note, **changes, extra=merged)
    result = rewrite_document(data, "a.md", MODIFIED, Document(note=note, content=""), replace_body=False)

    read = parse_document(result, "a.md", MODIFIED)
    changed = changed_keys(old.note, read.note)
    unified = result.decode().replace(newline, "\n")
    closing = unified.index("\n---\n", 4 + len(mark)) + 1
    assert unified.startswith(f"{mark}---\n")
    assert re.match(allowed(parts, changed), unified[4 + len(mark) : closing])
    if read.note.title == old.note.title:
        assert unified[closing:] == f"---\n{body}"
    assert read.content == old.content
    assert rewrite_document(result, "a.md", MODIFIED, read, replace_body=False) == result


@given(
    title=titles, author=any_text | words, tags=items, source=st.none() | any_text | words, content=any_text,
    extra=st.dictionaries(extra_keys, json_values, max_size=3), confidence=st.floats(0, 1),
)  # fmt: skip
def test_written_note_reads_back_unchanged(
    title: str,
    author: str,
    tags: tuple[str, ...],
    source: str | None,
    content: str,
    extra: Any,
    confidence: float,
) -> None:
    note = Note(
        id="n-1",
        title=title,
        author=author.strip() or "a",
        tags=tags,
        source=source,
        confidence=confidence,
        extra=extra,
    )
    if "\0" in content:
        content = ""
    document = parse_document(render_document(Document(note=note, content=content)), "a.md", MODIFIED)
    assert document.note.extra == extra
    assert document.note.tags == tuple(tag.strip() for tag in tags)
    assert document.note.source == ((source or "").strip() or None)
    assert document.content == trim_content(content)
    assert "\n" not in document.note.title


@given(value=json_values, key=any_text | words)
def test_written_values_read_back_in_pyyaml_in_both_styles(value: Any, key: str) -> None:
    """PyYAML is an independent reader. It shows how other tools parse the files."""
    assert yaml.load(write_inline({key: value}), yaml.CSafeLoader) == {key: value}
    assert yaml.load(write_entry(key, value, "  ", "\n"), yaml.CSafeLoader) == {key: value}
    assert yaml.load(write_entry(key, value, "", "\r\n"), yaml.CSafeLoader) == {key: value}


@given(head=texts.map(lambda text: text * 2) | st.text("ab:-?[]{}&*!|>'\"#%, \n\t<", max_size=40), body=texts)
def test_readable_file_keeps_its_values_after_an_edit(head: str, body: str) -> None:
    """behaviours 22, 175"""
    data = f"---\n{head}\n---\n{body}".encode()
    try:
        old = parse_document(data, "a.md", MODIFIED)
    except UnreadableNote:
        return
    new = evolve(old, note=evolve(old.note, version=7, tags=("t",), extra={**old.note.extra, "new": 1}))
    result = rewrite_document(data, "a.md", MODIFIED, new, replace_body=False)
    assert parse_document(result, "a.md", MODIFIED) == new
