"""Issues of note files, and the fixes that `lithos validate --fix` makes."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Final

from attrs import define, field, frozen

from lithos.kernel.values.errors import InvalidInput
from lithos.kernel.values.findings import VALIDATE, Issue, IssueGroup, check, checks_of, name_some
from lithos.notes.links.links import LinkTable, file_alias
from lithos.notes.model.note import Note
from lithos.notes.model.paths import folder_of, normalise_url, slug_of
from lithos.text.yaml.vault_style import PLAIN, VaultStyle

#: Frontmatter fields that a file should have and that `--fix` adds.
_WANTED: Final = ("id", "title", "author")


@frozen(kw_only=True)
class CheckedFile:
    """A parsed note file. It has the note, or the `reason` why the file could not be read.

    `given` are the keys with a usable value in the file. `links` are the targets of the links in the file.
    """

    path: str
    note: Note | None = None
    reason: str = ""
    given: frozenset[str] = frozenset()
    links: tuple[str, ...] = ()


@frozen
class Amendment:
    """A planned fix of one file. The frontmatter `values` (by key) resolve `issues` issues."""

    path: str
    values: Mapping[str, str]
    issues: int


@define(eq=False, slots=False)
class NoteFolder:
    """The note files of a folder in path order, and further data that the checks need.

    `escapes` are symbolic links out of the folder. Links to `attachments` are not broken. If several files
    have the same id, `doubled` gives the path that counts; if the id is missing there, the first path counts.
    `copies` are conflict copies with the paths of their notes; `files` does not contain them.
    """

    files: Sequence[CheckedFile]
    style: VaultStyle = PLAIN
    escapes: Sequence[str] = ()
    attachments: Container[str] = ()
    doubled: Mapping[str, str] = field(factory=dict)
    copies: Mapping[str, str] = field(factory=dict)

    @property
    def notes(self) -> Iterator[tuple[str, CheckedFile, Note]]:
        """Yield the files that are notes, with their paths."""
        return ((file.path, file, file.note) for file in self.files if file.note is not None)

    @cached_property
    def unresolved(self) -> list[tuple[str, str, Sequence[str]]]:
        """Links that match no note or several notes: path, target and candidates."""
        table, holders = LinkTable(), dict(self.doubled)
        for path, _, note in self.notes:
            if holders.setdefault(note.id, path) == path:
                names = [file_alias(path)] if self.style.is_foreign else []
                names += [note.link_id] if note.link_id is not None else []
                table.add(note.id, path, note.title, (*note.aliases, *names))
        return [
            (path, target, table.candidates(target))
            for path, file, _ in self.notes
            for target in dict.fromkeys(file.links)
            if table.resolve(target) is None
        ]


def find_issues(folder: NoteFolder) -> list[IssueGroup]:
    """Return the issue groups of a folder, without empty groups."""
    groups = [(each, tuple(each.look(folder))) for each in checks_of(VALIDATE)]
    return [IssueGroup(each, len(found), found) for each, found in groups if found]


def plan_amendments(
    folder: NoteFolder, new_id: Callable[[], str], *, ids: bool = True
) -> Iterator[Amendment]:
    """Plan fixes that give every file a title and an author. With `ids`, every file also gets a unique id."""
    wanted = [key for key in _WANTED if ids or key != "id"]
    taken = {note.id for _, _, note in folder.notes}
    holders = dict(folder.doubled)
    for path, file, note in folder.notes:
        if note.frontmatter_error is not None:
            continue
        missing = [key for key in wanted if _lacks(key, file, note)]
        values = {key: str(getattr(note, key)) for key in missing}
        issues = len(missing)
        if ids and holders.setdefault(note.id, path) != path:
            values = {"id": _unused(new_id, taken)} | {key: values[key] for key in missing if key != "id"}
            issues += 1
        if values:
            yield Amendment(path, values, issues)


def _lacks(key: str, file: CheckedFile, note: Note) -> bool:
    """Return whether a file lacks a frontmatter key.

    A title or author counts as present even if a person uses the key for other data.
    """
    return key not in file.given and (key == "id" or key not in note.extra)


def _unused(new_id: Callable[[], str], taken: set[str]) -> str:
    while (note_id := new_id()) in taken:
        pass
    taken.add(note_id)
    return note_id


@check("PARSE_ERROR", VALIDATE, place=1, severity="error")
def _unread(folder: NoteFolder) -> Iterator[Issue]:
    for file in folder.files:
        if file.note is None:
            yield Issue(file.path, file.reason)
        elif (problem := file.note.frontmatter_problem) is not None:
            yield Issue(file.path, f"{problem}; the note is served without its frontmatter")


@check("DUPLICATE_ID", VALIDATE, place=2, severity="error", mend=plan_amendments)
def _second_files(folder: NoteFolder) -> Iterator[Issue]:
    return _repeated("id", ((path, note.id) for path, _, note in folder.notes), folder.doubled)


@check("ESCAPE", VALIDATE, place=3, severity="error")
def _escapes(folder: NoteFolder) -> Iterator[Issue]:
    for path in folder.escapes:
        yield Issue(path, "the symbolic link leads out of the notes folder")


@check("CONFLICT_COPY", VALIDATE, place=4, severity="warning")
def _conflict_copies(folder: NoteFolder) -> Iterator[Issue]:
    for path, original in sorted(folder.copies.items()):
        yield Issue(path, f"the file is another machine's version of {original}")


@check("CONFLICT_MARKERS", VALIDATE, place=5, severity="warning")
def _conflict_markers(folder: NoteFolder) -> Iterator[Issue]:
    for path, _, note in folder.notes:
        if note.has_conflict_markers:
            yield Issue(path, "git left conflict markers in the text, <<<<<<< to >>>>>>>")


@check("BROKEN_LINK", VALIDATE, place=6, severity="warning")
def _broken_links(folder: NoteFolder) -> Iterator[Issue]:
    for path, target, candidates in folder.unresolved:
        if not candidates and target not in folder.attachments:
            yield Issue(path, f"[[{target}]] leads to no note")


@check("AMBIGUOUS", VALIDATE, place=7, severity="warning")
def _ambiguous_links(folder: NoteFolder) -> Iterator[Issue]:
    for path, target, candidates in folder.unresolved:
        if candidates:
            yield Issue(path, f"[[{target}]] may mean {name_some(candidates, 'or {} others')}")


@check("SLUG_COLLISION", VALIDATE, place=8, severity="warning")
def _same_slugs(folder: NoteFolder) -> Iterator[Issue]:
    slugs = ((path, slug_of(note.title, note.id)) for path, _, note in folder.notes)
    if folder.style.is_foreign:
        slugs = ((path, f"{folder_of(path)}/{slug}") for path, slug in slugs)
    return _repeated("slug", slugs)


@check("DUPLICATE_URL", VALIDATE, place=9, severity="warning")
def _same_urls(folder: NoteFolder) -> Iterator[Issue]:
    found = ((path, note.source_url) for path, _, note in folder.notes)
    return _repeated("source_url", ((path, _address(url)) for path, url in found if url))


def _address(url: str) -> str:
    try:
        return normalise_url(url)
    except InvalidInput:
        return url


def _missing(key: str, folder: NoteFolder) -> Iterator[Issue]:
    for path, file, note in folder.notes:
        if note.frontmatter_error is None and _lacks(key, file, note):
            own = (
                f"the {key} {note.own_id!r} in the file is a person's own property"
                if key in note.extra
                else ""
            )
            cause = own or f"the file has no {key}"
            yield Issue(path, f"{cause}; {getattr(note, key)!r} is used")


for _place, _key in enumerate(_WANTED, start=10):
    _register = check(
        f"MISSING_{_key.upper()}", VALIDATE, place=_place, severity="info", mend=plan_amendments
    )
    _register(partial(_missing, _key))


def _repeated(
    name: str, keys: Iterable[tuple[str, str]], holders: Mapping[str, str] | None = None
) -> Iterator[Issue]:
    """Yield an issue for each file with a duplicate key. The file that counts gets no issue."""
    known = dict(holders or {})
    for path, key in keys:
        if known.setdefault(key, path) != path:
            yield Issue(path, f"{known[key]} has the same {name} {key}")
