"""What is wrong with note files, and what can be put right in them (cli-config spec, section 2.1)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from attrs import frozen

from lithos.core.errors import InvalidInput
from lithos.core.links import LinkTable
from lithos.core.model import Note
from lithos.core.paths import slug_of
from lithos.core.urls import normalise_url

PARSE_ERROR: Final = "PARSE_ERROR"
MISSING_ID: Final = "MISSING_ID"
MISSING_TITLE: Final = "MISSING_TITLE"
MISSING_AUTHOR: Final = "MISSING_AUTHOR"
DUPLICATE_ID: Final = "DUPLICATE_ID"
BROKEN_LINK: Final = "BROKEN_LINK"
AMBIGUOUS: Final = "AMBIGUOUS"
SLUG_COLLISION: Final = "SLUG_COLLISION"
DUPLICATE_URL: Final = "DUPLICATE_URL"
#: In the order in which they are told.
GROUPS: Final = (
    PARSE_ERROR, MISSING_ID, MISSING_TITLE, MISSING_AUTHOR, DUPLICATE_ID, BROKEN_LINK, AMBIGUOUS,
    SLUG_COLLISION, DUPLICATE_URL,
)  # fmt: skip

_MISSING: Final = {"id": MISSING_ID, "title": MISSING_TITLE, "author": MISSING_AUTHOR}


@frozen(kw_only=True)
class CheckedFile:
    """One note file as it was read: its note, or the `reason` why it has none.

    `given` are the keys of which the file itself gives a usable value, `links` the targets it links to.
    """

    path: str
    note: Note | None = None
    reason: str = ""
    given: frozenset[str] = frozenset()
    links: tuple[str, ...] = ()


@frozen
class Issue:
    """One thing that is wrong with one file."""

    group: str
    path: str
    detail: str


@frozen
class Amendment:
    """What is to be written into a file: `values` by key, which puts `issues` issues right."""

    path: str
    values: Mapping[str, str]
    issues: int


def find_issues(files: Sequence[CheckedFile]) -> dict[str, tuple[Issue, ...]]:
    """The issues by group, without the empty groups; `files` are in path order."""
    notes = [(file, file.note) for file in files if file.note is not None]
    issues = [
        *(Issue(PARSE_ERROR, file.path, file.reason) for file in files if file.note is None),
        *_missing(notes),
        *_duplicates(DUPLICATE_ID, "id", notes, lambda note: note.id),
        *_links(notes),
        *_duplicates(SLUG_COLLISION, "slug", notes, lambda note: slug_of(note.title, note.id)),
        *_duplicates(DUPLICATE_URL, "source_url", notes, _address),
    ]
    groups = {group: tuple(issue for issue in issues if issue.group == group) for group in GROUPS}
    return {group: found for group, found in groups.items() if found}


def plan_amendments(files: Sequence[CheckedFile], new_id: Callable[[], str]) -> Iterator[Amendment]:
    """What makes every file say its id, title and author, and no two files the same id.

    `files` are in path order: the first one keeps an id that several have.
    """
    taken = {file.note.id for file in files if file.note is not None}
    seen: set[str] = set()
    for file in files:
        if file.note is None:
            continue
        missing = [key for key in _MISSING if key not in file.given]
        values = {key: str(getattr(file.note, key)) for key in missing}
        issues = len(missing)
        if file.note.id in seen:
            values = {"id": _unused(new_id, taken)} | {key: values[key] for key in missing if key != "id"}
            issues += 1
        seen.add(file.note.id)
        if values:
            yield Amendment(file.path, values, issues)


def _unused(new_id: Callable[[], str], taken: set[str]) -> str:
    while (note_id := new_id()) in taken:
        pass
    taken.add(note_id)
    return note_id


_Notes = Sequence[tuple[CheckedFile, Note]]


def _missing(notes: _Notes) -> Iterator[Issue]:
    for file, note in notes:
        for key, group in _MISSING.items():
            if key not in file.given:
                yield Issue(group, file.path, f"the file names no {key}; {getattr(note, key)!r} is used")


def _duplicates(
    group: str, name: str, notes: _Notes, key_of: Callable[[Note], str | None]
) -> Iterator[Issue]:
    holders: dict[str, str] = {}
    for file, note in notes:
        key = key_of(note)
        holder = file.path if key is None else holders.setdefault(key, file.path)
        if holder != file.path:
            yield Issue(group, file.path, f"{holder} has the same {name} {key}")


def _address(note: Note) -> str | None:
    try:
        return normalise_url(note.source_url) if note.source_url else None
    except InvalidInput:
        return note.source_url


def _links(notes: _Notes) -> Iterator[Issue]:
    table = _table(notes)
    for file, _ in notes:
        for target in dict.fromkeys(file.links):
            if table.resolve(target) is not None:
                continue
            candidates = table.candidates(target)
            if candidates:
                yield Issue(AMBIGUOUS, file.path, f"[[{target}]] may mean {_listing(candidates)}")
            else:
                yield Issue(BROKEN_LINK, file.path, f"[[{target}]] leads to no note")


def _table(notes: _Notes) -> LinkTable:
    """The notes that count: of two with one id the first."""
    table, known = LinkTable(), set[str]()
    for file, note in notes:
        if note.id not in known:
            known.add(note.id)
            table.add(note.id, file.path, note.title, note.aliases)
    return table


def _listing(paths: Iterable[str], most: int = 3) -> str:
    named = list(paths)
    more = f" or {len(named) - most} others" if len(named) > most else ""
    return ", ".join(named[:most]) + more
