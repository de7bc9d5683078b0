"""A note file passed as the content of a note, and parsed like a file (docs/spec/tools.md §3).

Agents send back the text that a resource or an editor shows to them. If it were stored as it is, its
frontmatter would be a second block below the note's own, which is never read.
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
from lithos.notes.model.note import OWNED_KEYS, Note
from lithos.text.yaml.layout import FRONTMATTER, frontmatter_at, tail_of
from lithos.text.yaml.nodes import UnreadableNote
from lithos.text.yaml.vault_style import VaultStyle

#: Keys that no argument of a write changes. They are compared with the note and not taken over.
KEPT: Final = frozenset({
    "id", "author", "created_at", "updated_at", "contributors", "supersedes", "version", "quarantine_reason",
    "entities", "entities_extractor",
})  # fmt: skip
#: The keys in `KEPT` that each write sets.
_SET_BY_WRITES: Final = frozenset({"id", "updated_at", "version", "contributors"})
#: Older spellings of owned keys. Their values are taken over.
_SPELLINGS: Final = frozenset({"tag", "alias"})
#: Maximum number of characters per key, and of keys, in a warning.
_QUOTED, _NAMED = 60, 20


@frozen(kw_only=True)
class Pasted:
    """A content with frontmatter: the values in the frontmatter, and the text below it.

    `values` are fields of a note with an argument, `said` are fields without an argument (`KEPT`), `extra`
    are further keys. `unused` are keys with unusable values.
    """

    content: str
    values: Mapping[str, Any]
    said: Mapping[str, Any]
    extra: Mapping[str, Any]
    unused: tuple[str, ...]
    #: True if the frontmatter is empty.
    is_empty: bool

    def properties(self, old: Mapping[str, Any]) -> dict[str, Any]:
        """Return the further keys to store in a note that already has the keys `old`.

        Raises `InvalidInput` if there are too many keys.
        """
        merged = {key: value for key, value in self.extra.items() if key in old or key not in _SPELLINGS}
        check_merged(old, {**old, **merged})
        return merged


def read_pasted(content: str, style: VaultStyle) -> Pasted | None:
    """Parse the content as a note file. Return None if it does not begin with frontmatter.

    Raises `InvalidInput` if the frontmatter cannot be read.
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
            "was changed. Correct the frontmatter, or leave it out and pass title, tags and "
            "metadata as arguments. To begin a text with a rule, write ***."
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
    """Return whether a text begins with frontmatter that contains a value of a note, such as its title."""
    start = frontmatter_at(text)
    found = FRONTMATTER.find(text[start:]) if start is not None else None
    if found is None:
        return False
    try:
        return not FRONTMATTER.load(found[0]).nodes.keys().isdisjoint((*OWNED_KEYS, *_SPELLINGS))
    except UnreadableNote:
        return True


def check_said(said: Mapping[str, Any], note: Note, own_version: int, expected: int | None) -> None:
    """Raise an error if the file is that of another note, or an older version of this note.

    `own_version` is the current version in the note's file. If an `expected` version is given, that version
    is compared instead.
    """
    if "id" in said and said["id"] != note.id:
        raise InvalidInput(
            f"content begins with the frontmatter of note {said['id'][:100]}, but this is note "
            f"{note.id}. Nothing was changed. Give the id of the intended note, or leave the id "
            "line out."
        )
    version = said.get("version", own_version)
    if "id" in said and expected is None and version < own_version:
        raise VersionConflict(
            f"content is the file at version {version}, but the note is at version "
            f"{note.version}. Read the note again, merge your change and retry. If you pass "
            "expected_version, that version is compared instead.",
            current_version=note.version,
        )


def warn_of_unused(said: Mapping[str, Any], unused: tuple[str, ...], note: Note | None) -> tuple[str, ...]:
    """Return a warning that names the frontmatter keys that the write does not take over.

    `note` is the current note.
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
            f"content began with a frontmatter, which was taken over except {named}{more}. A "
            "write sets these keys itself, or cannot use their values.",
        )
    return ()


def _says(reading: Reading, key: str) -> bool:
    """Return whether a key has a value."""
    return reading.mapping.values.value(reading.nodes[key]) not in (None, "", [], {})
