"""Links and provenance (docs/spec/notes.md §7 and §9).

This module parses links, resolves them, and checks `derived_from_ids`.

Links are wiki-links, embeds and Markdown links to notes, in the body and in properties (docs/spec/vault.md
§2).
"""

from __future__ import annotations

import re
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from itertools import chain
from operator import itemgetter
from typing import Final, TypeAlias

from attrs import define, field, frozen

from lithos.kernel.values.errors import InvalidInput
from lithos.kernel.values.graphemes import whole
from lithos.notes.links.forms import (
    destinations,
    is_placed,
    join_lines,
    may_have_links,
    note_target,
    place_target,
    shown_by,
    wiki_links,
    written_target,
)
from lithos.notes.links.literal import mask_literal
from lithos.notes.links.properties import properties_in
from lithos.notes.model.paths import folder_of
from lithos.text.markdown import mask_code
from lithos.text.sentences import LINK_END
from lithos.text.words.analysis import normalise

#: Maximum number of characters of a sentence before the beginning of its link, and after it.
_LONGEST_SIDE: Final = 1_000
_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_SUFFIX: Final = ".md"
#: Maximum length of a name by which a note can be linked. A path has at most this length in bytes. Titles,
#: aliases and link targets may be as long as the file.
LONGEST_NAME: Final = 4_096

#: A lookup key of a note or of a link target, as (kind, name).
Key: TypeAlias = tuple[str, str]
_ID: Final = "id"
_TAIL: Final = "tail"
_KINDS: Final = ("path", _TAIL, "stem", "title", "alias")
#: Numbers of path parts at the end of a path by which a note can be found. A target with more parts is first
#: compared with whole paths, and then by these numbers of parts.
_TAIL_PARTS: Final = (3, 2)
#: Maximum number of path parts at the end of a target that may be a whole path.
_MOST_PARTS: Final = 12
#: Kinds of keys by which a target matches only if exactly one note has the key.
_ONE: Final = ("stem", _TAIL)


@frozen
class WikiLink:
    """A link `[[target]]`, `[[target|display]]` or `[display](target.md)`.

    The target is relative to the notes folder.
    """

    target: str
    display: str


def scan_links(content: str, path: str = "") -> list[WikiLink]:
    """Return the links in the body of the note at `path` in order, with repetitions. Code is ignored.

    `a[[0]]` is an index, not a link. A line break in a link counts as a space.
    """
    return [link for _, link in _placed_links(content, mask_literal(content), path)]


def links_in(data: bytes, content: str, path: str) -> tuple[WikiLink, ...]:
    """Return the links in the properties and body of the note at `path`. `data` are the bytes of its file.

    Links in properties come before links in the body.
    """
    properties = properties_in(data)
    if not properties:
        return tuple(scan_links(content, path))
    found = (
        link for each in properties for _, link in _placed_links(each.value, mask_code(each.value), path)
    )
    return (*found, *scan_links(content, path))


def targets_in(data: bytes, content: str, path: str) -> tuple[str, ...]:
    """Return the targets of `links_in`, except for links within the note itself. Faster than `links_in`."""
    properties = properties_in(data)
    if not properties:
        return scan_targets(content, path)
    found = [target for each in properties for target in _targets(each.value, mask_code(each.value), path)]
    return (*found, *scan_targets(content, path))


def _placed_links(content: str, masked: str, path: str) -> Iterator[tuple[int, WikiLink]]:
    """Yield the links with their positions. The position of a Markdown link is the end of its link text."""
    folder = folder_of(path)
    wiki = (
        (match.start(), _link_of(_target_of(match, content, folder), shown_by(match, content)))
        for match in wiki_links(masked)
    )
    markdown = (
        (each.place, _link_of(target, each.shown))
        for each in destinations(content, masked)
        if (target := note_target(content[each.start : each.end], folder))
    )
    return merge(wiki, markdown, key=itemgetter(0))


def _link_of(target: str, shown: str) -> WikiLink:
    return WikiLink(target, shown or target)


def linking_sentence(content: str, path: str, keys: frozenset[Key]) -> str:
    """Return the sentence or line with the first link to the note of `keys`, or "".

    The text is that of the note at `path`.

    The sentence is copied from the Markdown text, with at most `_LONGEST_SIDE` characters before and after
    the beginning of the link.
    """
    links = _placed_links(content, mask_literal(content), path)
    place = next((at for at, link in links if not keys.isdisjoint(target_keys(link.target))), None)
    if place is None:
        return ""
    before = content[whole(content, max(0, place - _LONGEST_SIDE)) : place].rpartition("\n")[2]
    behind = content[place : whole(content, place + _LONGEST_SIDE, place)].partition("\n")[0]
    # Ignore characters inside the link that look like the end of a sentence.
    begins, closes = len(before), "]]" if behind.startswith("[[") else "]"
    if behind.startswith("]("):
        begins, closes = before.rfind("["), ")"
    ends = [match.end() for match in LINK_END.finditer(before, 0, max(begins, 0))]
    end = LINK_END.search(behind, max(behind.find(closes), 0))
    return before[ends[-1] if ends else 0 :] + (behind[: end.end()].rstrip() if end else behind)


def scan_targets(content: str, path: str = "") -> tuple[str, ...]:
    """Return the targets of `scan_links`, except for links within the note itself.

    Twice as fast as `scan_links`.

    A text of a megabyte may contain 100,000 targets.
    """
    return _targets(content, mask_literal(content), path) if may_have_links(content) else ()


def _targets(content: str, masked: str, path: str) -> tuple[str, ...]:
    folder = folder_of(path)
    wiki = (_target_of(match, content, folder) for match in wiki_links(masked))
    markdown = (note_target(content[each.start : each.end], folder) for each in destinations(content, masked))
    return (*(target for target in wiki if not target.startswith(("#", "^"))), *filter(None, markdown))


def _target_of(match: re.Match[str], content: str, folder: str) -> str:
    """Return the target of a wiki-link in a note in `folder`.

    A relative target is returned with a leading slash, as a path from the notes folder.
    """
    target = join_lines(written_target(match, content))
    return place_target(target, folder) if is_placed(target) else target


def note_keys(note_id: str, path: str, title: str, aliases: Iterable[str]) -> frozenset[Key]:
    """Return all keys by which a note can be linked. Names that are too long are left out.

    `path` is relative to `knowledge/`.
    """
    keys = {("path", _normalise(path)), ("stem", file_alias(path)), (_ID, note_id), *_tails_of(path)}
    if len(title) <= LONGEST_NAME:
        keys.add(("title", _title_key(title)))
    keys.update(("alias", _normalise(alias).casefold()) for alias in aliases if len(alias) <= LONGEST_NAME)
    return frozenset(keys)


def target_keys(target: str) -> tuple[Key, ...]:
    """Return the lookup keys of a link target, in order of precedence.

    A target with an anchor (`note#heading`, `note#^block`) leads to the note with that complete name. Without
    such a note, it leads to the note before the `#`, as in Obsidian. Only a note with one of these keys can
    change the resolution of the target. A target that is longer than any name does not have keys.
    """
    page, anchor, _ = target.partition("#")
    return _page_keys(target) + (_page_keys(page) if anchor and page.strip() else ())


def _tails_of(path: str) -> Iterator[Key]:
    """Yield keys for the whole path, with a leading slash, and for the last parts of the path.

    The keys are case-folded and do not contain the suffix.
    """
    parts = _normalise(path).removesuffix(_SUFFIX).casefold().split("/")
    yield _TAIL, f"/{'/'.join(parts)}"
    for count in _TAIL_PARTS:
        if len(parts) > count:
            yield _TAIL, "/".join(parts[-count:])


def names_of(keys: Iterable[Key]) -> set[str]:
    """Return the reduced names of keys.

    Equal keys have equal names, regardless of their kind. There are fewer names than keys.

    Keys for the last parts of a path do not have names. A note and a target that share such a key also share
    the file name.
    """
    return {name.casefold().replace("-", " ").removesuffix(_SUFFIX) for kind, name in keys if kind != _TAIL}


def target_names(target: str) -> set[str]:
    """Return `names_of(target_keys(target))`. This is three times as fast if the target is ASCII."""
    if not target.isascii() or "#" in target or target.lstrip().startswith("/") or len(target) > LONGEST_NAME:
        return names_of(target_keys(target))
    name = target.strip()
    stem = name.rpartition("/")[2].removesuffix(_SUFFIX)
    names = {text.lower().replace("-", " ").removesuffix(_SUFFIX) for text in {target, name, stem}}
    names.add(name.lower().replace("-", " "))
    return names


def _page_keys(target: str) -> tuple[Key, ...]:
    if len(target) > LONGEST_NAME:
        return ()
    name = _normalise(target)
    if name.startswith("/"):  # the target names a location, so notes with this name elsewhere do not match
        bare = name.removeprefix("/")
        return ("path", bare), ("path", bare + _SUFFIX), (_TAIL, name.removesuffix(_SUFFIX).casefold())
    return (
        ("path", name),
        ("path", name + _SUFFIX),
        *_ends_of(name),
        ("stem", file_alias(target)),
        (_ID, target),
        ("alias", name.casefold()),
        ("title", _title_key(target)),
    )


def _ends_of(name: str) -> Iterator[Key]:
    """Yield the keys of the path ends that a target with folders may refer to, longest first."""
    if "/" not in name:
        return
    parts = name.removesuffix(_SUFFIX).casefold().split("/")
    for count in range(min(len(parts), _MOST_PARTS), 1, -1):
        end = "/".join(parts[-count:])
        yield _TAIL, f"/{end}"
        if count in _TAIL_PARTS:
            yield _TAIL, end


def _normalise(name: str) -> str:
    return normalise("NFC", name).strip()


def file_alias(path: str) -> str:
    """Return the file name without `.md` as a link target, without changing its case.

    Obsidian ignores the case.
    """
    return _normalise(path).rpartition("/")[2].removesuffix(_SUFFIX)


def _title_key(title: str) -> str:
    return _normalise(title).casefold().replace("-", " ")


#: The path and id of a note, followed by the kind and name of each other key of the note.
_Record: TypeAlias = tuple[str, ...]


@define
class LinkTable:
    """Index of all notes by their link keys.

    The result does not depend on the order in which notes are added.

    If several notes have the same alias or title, a link leads to the first note in sorted path order. If
    several notes have the same stem or path end, a link leads to none of them. To save memory, there is one
    record per note, and keys are not objects: their names are dict keys.
    """

    #: Records by note id. The id is also a key by which a note can be linked.
    _records: dict[str, _Record] = field(factory=dict, init=False)
    #: Records by kind of key, then by name. If several notes share a name, the value is a sorted list.
    _by_kind: dict[str, dict[str, _Record | list[_Record]]] = field(
        factory=lambda: {kind: {} for kind in _KINDS}, init=False
    )

    def __len__(self) -> int:
        return len(self._records)

    def add(self, note_id: str, path: str, title: str, aliases: Sequence[str] = ()) -> None:
        """Add a note, or replace the note with this id."""
        self.add_keys(note_id, path, note_keys(note_id, path, title, aliases))

    def add_keys(self, note_id: str, path: str, keys: frozenset[Key]) -> None:
        """Add a note whose `note_keys` are already known."""
        self.remove(note_id)
        others = [key for key in keys if key[0] != _ID]
        self._records[note_id] = record = path, note_id, *chain.from_iterable(others)
        for kind, name in others:
            by_name = self._by_kind[kind]
            known = by_name.setdefault(name, record)
            if isinstance(known, list):
                insort(known, record)
            elif known is not record:
                by_name[name] = sorted((known, record))

    def remove(self, note_id: str) -> None:
        """Remove a note. An unknown id is ignored."""
        record = self._records.pop(note_id, ())
        for kind, name in _keys_in(record):
            by_name = self._by_kind[kind]
            notes = by_name[name]
            if not isinstance(notes, list):
                del by_name[name]
                continue
            del notes[bisect_left(notes, record)]
            if len(notes) == 1:
                by_name[name] = notes[0]

    def resolve(self, target: str) -> str | None:
        """Return the id of the note to which a target leads.

        Return `None` if no note matches, or if several notes have the same stem.
        """
        kind, notes = self._first_match(target)
        return notes[0][1] if len(notes) == 1 or (notes and kind not in _ONE) else None

    def named_in(self, text: str, spans: Iterable[tuple[int, int]], most: int) -> dict[str, str]:
        """Return the notes whose titles or aliases are among the spans of a lower-case text, by id.

        Each note has the first of its matching names. Names that more than `most` notes share are ignored. In
        titles, hyphens and spaces are equal. An alias matches the text, or the text with hyphens for spaces.
        """
        titles, aliases = self._by_kind["title"], self._by_kind["alias"]
        spaced, hyphened = text.replace("-", " "), text.replace(" ", "-")
        found: dict[str, str] = {}
        for start, end in spans:
            title, alias, other = spaced[start:end], text[start:end], hyphened[start:end]
            # Most spans are not names. This check avoids a function call for them.
            if title in titles or alias in aliases or other in aliases:
                keys = ("title", title), ("alias", alias), ("alias", other)
                notes = {note[1] for key in keys for note in self._notes(key)[: most + 1]}
                if len(notes) <= most:
                    found = dict.fromkeys(notes, alias) | found
        return found

    def resolve_if_moved(self, target: str, note_id: str, path: str, keys: frozenset[Key]) -> str | None:
        """Return the id of the note to which a target would lead if the note had this path and these keys.

        The lookup takes constant time.
        """
        old_keys = {(_ID, note_id), *_keys_in(self._records[note_id])}
        for key in target_keys(target):
            notes = self._notes(key)
            count = len(notes) - (key in old_keys) + (key in keys)
            if not count:
                continue
            if key[0] in _ONE and count > 1:
                return None
            candidates = [note[:2] for note in notes[:2] if note[1] != note_id]
            return min([*candidates, (path, note_id)] if key in keys else candidates)[1]
        return None

    def candidates(self, target: str) -> list[str]:
        """Return the paths of the notes between which a target is ambiguous.

        The target is ambiguous because the paths of these notes have the same end.

        The paths are sorted.
        """
        kind, notes = self._first_match(target)
        return [note[0] for note in notes] if kind in _ONE and len(notes) > 1 else []

    def _first_match(self, target: str) -> tuple[str, Sequence[_Record]]:
        for key in target_keys(target):
            notes = self._notes(key)
            if notes:
                return key[0], notes
        return "", ()

    def _notes(self, key: Key) -> Sequence[_Record]:
        kind, name = key
        notes = self._records.get(name) if kind == _ID else self._by_kind[kind].get(name)
        if notes is None:
            return ()
        return notes if isinstance(notes, list) else (notes,)


def _keys_in(record: _Record) -> Iterator[Key]:
    """Yield all keys of a record, except for the id."""
    return zip(record[2::2], record[3::2], strict=True)


def normalise_sources(ids: Sequence[str], self_id: str | None) -> tuple[str, ...]:
    """Return `derived_from_ids` in stored form: in lower case, sorted and without duplicates.

    Raise `InvalidInput` if an entry is not a UUID or is the id of the note itself.
    """
    sources = {source.strip().lower() for source in ids}
    for source in sorted(sources):
        if not _UUID.fullmatch(source):
            raise InvalidInput(
                f"{source[:100]!r} in derived_from_ids is not a note id (UUID); find the id of a "
                "note with lithos_search"
            )
    if self_id is not None and self_id.lower() in sources:
        raise InvalidInput(
            f"derived_from_ids contains the id of the note itself ({self_id}); leave that id out"
        )
    return tuple(sorted(sources))


#: Maximum number of remembered files. In a vault with more files, every link with a file suffix counts as
#: valid.
MOST_FILES: Final = 100_000


class FileNames:
    """Files that are not notes, by case-insensitive name. Links need not contain the folder of a file."""

    def __init__(self, paths: Iterable[str] = ()) -> None:
        self._paths: set[str] = set()
        self._names: Counter[str] = Counter()
        self._is_full = False
        for path in paths:
            self.add(path)

    def __len__(self) -> int:
        return len(self._paths)

    def __contains__(self, target: object) -> bool:
        """Return whether a link target leads to one of the files. The anchor is ignored."""
        if not isinstance(target, str) or len(target) > LONGEST_NAME:
            return False
        name = file_key(target.partition("#")[0])
        # `[x](LICENSE)` may lead to this file, or to a note, which has priority.
        bare = name.removesuffix(_SUFFIX)
        return name in self._names or bare in self._names or (self._is_full and "." in bare)

    def paths(self) -> frozenset[str]:
        """Return all remembered paths. Takes two milliseconds if the maximum number is remembered."""
        return frozenset(self._paths)

    def add(self, path: str) -> bool:
        """Remember a file by its path in the vault.

        Return False if the file is already known or the limit is reached.
        """
        if path in self._paths:
            return False
        if len(self._paths) >= MOST_FILES:
            self._is_full = True
            return False
        self._paths.add(path)
        self._names[file_key(path)] += 1
        return True

    def discard(self, path: str) -> bool:
        """Forget a file. Return False if it is not known."""
        if path not in self._paths:
            return False
        self._paths.remove(path)
        name = file_key(path)
        self._names[name] -= 1
        if not self._names[name]:
            del self._names[name]
        return True


def file_key(path: str) -> str:
    """Return the file name of a path in its form for comparisons with links."""
    return normalise("NFC", path.rpartition("/")[2]).strip().casefold()


def named_file(target: str) -> str:
    """Return the `file_key` of the file to which a link target refers. The anchor is ignored.

    Return "" if the target has more than `LONGEST_NAME` characters.
    """
    return file_key(target.partition("#")[0]) if len(target) <= LONGEST_NAME else ""


def same_name(paths: Iterable[str], target: str) -> str | None:
    """Return the first path whose file name is that of a link target, or None.

    Higher folders come first, then the alphabet decides.
    """
    wanted = file_key(target.partition("#")[0])
    return min(
        (path for path in paths if file_key(path) == wanted),
        key=lambda path: (path.count("/"), path),
        default=None,
    )
