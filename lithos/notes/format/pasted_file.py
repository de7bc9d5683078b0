"""A note file that an agent passes as the content of a note.

The content is parsed like a file (docs/spec/tools.md §3).

Agents may send back the text that a resource or an editor shows. If Lithos stored this text unchanged, its
frontmatter would be a second block below the note's own frontmatter, and would never be read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from attrs import evolve, frozen

from lithos.kernel.values.errors import InvalidInput, VersionConflict
from lithos.kernel.values.limits import TITLE, check_merged
from lithos.kernel.values.times import EPOCH
from lithos.notes.format.document import Reading, open_document
from lithos.notes.format.owned_keys import PREFIX
from lithos.notes.model.note import OWNED_KEYS, Note, current_of
from lithos.text.yaml.layout import FRONTMATTER, frontmatter_at, tail_of
from lithos.text.yaml.nodes import UnreadableNote
from lithos.text.yaml.vault_style import VaultStyle

#: Keys that no argument of a write changes. Their values are compared with the note, but not written.
KEPT: Final = frozenset({
    "id", "author", "created_at", "updated_at", "contributors", "supersedes", "version", "quarantine_reason",
    "entities", "entities_extractor",
})  # fmt: skip
#: The keys in `KEPT` that each write sets automatically.
_SET_BY_WRITES: Final = frozenset({"id", "updated_at", "version", "contributors"})
#: Older names of owned keys. Lithos accepts their values.
_SPELLINGS: Final = frozenset({"tag", "alias"})
#: Maximum number of characters per key in a warning, and maximum number of keys in a warning.
_QUOTED, _NAMED = 60, 20


@frozen(kw_only=True)
class Pasted:
    """A content with frontmatter, split into the values of the frontmatter and the text below.

    `values` are fields of a note that a write has an argument for, `said` are fields without an argument
    (`KEPT`), and `extra` are additional keys. `unused` are keys with unusable values.
    """

    content: str
    values: Mapping[str, Any]
    said: Mapping[str, Any]
    extra: Mapping[str, Any]
    unused: tuple[str, ...]
    #: True if the frontmatter is empty.
    is_empty: bool

    def properties(self, old: Mapping[str, Any]) -> dict[str, Any]:
        """Return the additional keys to store in a note.

        `old` are the additional keys that the note already has.

        Raise `InvalidInput` if there would be too many keys.
        """
        merged = {key: value for key, value in self.extra.items() if key in old or key not in _SPELLINGS}
        check_merged(old, {**old, **merged})
        return merged


def read_pasted(content: str, style: VaultStyle) -> Pasted | None:
    """Parse the content as a note file. Return None if it does not begin with frontmatter.

    Raise `InvalidInput` if the frontmatter cannot be read.
    """
    start = frontmatter_at(content)
    if start is None:
        return None
    try:
        data = content[start:].encode("utf-8", "surrogatepass")
        reading = open_document(data, "", EPOCH, "-", evolve(style, serves_broken=False))
    except UnreadableNote as problem:
        raise InvalidInput(
            f"content begins with a frontmatter that cannot be read: {problem.reason}. Nothing "
            "was changed. Correct the frontmatter, or omit it and pass title, tags and metadata "
            "as arguments. To begin a text with a horizontal rule, write ***."
        ) from problem
    values = dict(reading.owned.values)
    if reading.title_heading is not None:
        values["title"] = reading.document.note.title
    if len(values.get("title", "")) > TITLE:
        raise InvalidInput(f"The title in content has more than {TITLE:,} characters. Shorten it.")
    extra = reading.document.note.extra
    lost = (
        key
        for key in reading.nodes
        if key not in extra and key.removeprefix(PREFIX) not in values and _says(reading, key)
    )
    return Pasted(
        content=reading.document.content + tail_of(content),
        values={key: value for key, value in values.items() if key not in KEPT},
        said={key: value for key, value in values.items() if key in KEPT},
        extra=extra,
        unused=tuple(lost),
        is_empty=not reading.nodes,
    )


def begins_with_note_keys(text: str) -> bool:
    """Return whether a text begins with frontmatter that has a key of a note, such as the title."""
    start = frontmatter_at(text)
    found = FRONTMATTER.find(text[start:]) if start is not None else None
    if found is None:
        return False
    try:
        return not FRONTMATTER.load(found[0]).nodes.keys().isdisjoint((*OWNED_KEYS, *_SPELLINGS))
    except UnreadableNote:
        return True


def check_said(said: Mapping[str, Any], note: Note, own_version: int, expected: int | None) -> None:
    """Raise an error if the file belongs to another note, or is an older version of this note.

    `own_version` is the current version in the note's file. If `expected` is given, the caller compares that
    version instead.
    """
    if "id" in said and said["id"] != note.id:
        raise InvalidInput(
            f"content begins with the frontmatter of note {said['id'][:100]}, but this is note "
            f"{note.id}. Nothing was changed. Give the id of the intended note, or omit the id "
            "line."
        )
    version = said.get("version", own_version)
    if "id" in said and expected is None and version < own_version:
        raise VersionConflict(
            f"content contains version {version} of the file, but the note is at version "
            f"{note.version}. Read the note again, merge your change and retry. If you pass "
            "expected_version, that version is compared instead.",
            **current_of(note),
        )


def warn_of_unused(said: Mapping[str, Any], unused: tuple[str, ...], note: Note | None) -> tuple[str, ...]:
    """Return a warning that names the frontmatter keys whose values the write does not use.

    `note` is the note before the write, or None for a new note.
    """
    names = [
        key
        for key, value in said.items()
        if (note is None or (key not in _SET_BY_WRITES and getattr(note, key) != value))
    ]
    if names := [*names, *unused]:
        named = ", ".join(name[:_QUOTED] for name in names[:_NAMED])
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        return (
            f"content began with frontmatter. Its values were used, except for {named}{more}. A "
            "write sets these keys itself, or cannot use their values.",
        )
    return ()


def _says(reading: Reading, key: str) -> bool:
    """Return whether the value of a key is not empty."""
    return reading.mapping.values.value(reading.nodes[key]) not in (None, "", [], {})
