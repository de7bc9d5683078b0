"""The command `lithos validate`, which finds issues in all note files and repairs them with `--fix`.

`survey_notes` reads the notes into a catalogue and changes nothing. It works even while a server runs.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from attrs import field, frozen

from lithos.history.rows.reading import read_contents, read_places
from lithos.history.rows.schema import DamagedContent
from lithos.history.rows.store import HISTORY
from lithos.kernel.databases.lock import is_owned
from lithos.kernel.databases.sqlite import CorruptDatabase, snapshot
from lithos.kernel.values.findings import IssueGroup, Severity
from lithos.kernel.values.times import from_nanoseconds
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.notes.catalogue.copy_origin import MOST_VERSIONS
from lithos.notes.catalogue.note_reading import LARGEST_FILE
from lithos.notes.catalogue.note_records import NoteRecords
from lithos.notes.catalogue.scan import scan_folder
from lithos.notes.files.displaced import DISPLACED, Displaced
from lithos.notes.files.files import NoteFiles
from lithos.notes.files.guard_orders import VanishedFiles
from lithos.notes.files.lookup import list_attachments
from lithos.notes.files.manifest import Manifest
from lithos.notes.files.tree import is_inside
from lithos.notes.files.values import (
    GRACE,
    FileBusy,
    FileChanged,
    FileState,
    Kept,
    NotSynced,
    OutsideKnowledge,
    PathRedirected,
    Put,
    ReadFile,
)
from lithos.notes.format.document import amend_document, given_keys, parse_document
from lithos.notes.links.links import FileNames, targets_in
from lithos.notes.model.note_projects import DEFAULT_RULES, ProjectRules
from lithos.notes.model.plan import MASS_LOSS, RecordedPath, VanishRule
from lithos.notes.rows_coordination import NoteRows, load_note_rows
from lithos.text.yaml.nodes import UnreadableNote
from lithos.text.yaml.vault_style import PLAIN, VaultStyle
from lithos.upkeep.model.note_issues import Amendment, CheckedFile, NoteFolder, find_issues


@frozen
class CheckedVault:
    """The notes of a data directory (`data`), read into `catalogue`.

    `is_live` is True while a server owns the directory.
    """

    data: Path
    files: NoteFiles
    catalogue: Catalogue
    is_live: bool
    #: Serials of known notes whose files cannot be read now.
    unreadable: frozenset[int] = frozenset()

    @property
    def nameless(self) -> dict[str, str]:
        """Ids of notes whose files contain no id, by path."""
        return {each.path: each.note.id for each in self.catalogue if not each.identified}

    @property
    def doubled(self) -> dict[str, str]:
        """Ids that occur in several files, each mapped to the path of the file that Lithos serves."""
        entries = filter(None, map(self.catalogue.get, self.catalogue.doubles))
        return {entry.note.id: entry.path for entry in entries}

    @property
    def copies(self) -> dict[str, str]:
        """Paths of conflict copies, each mapped to the path of its note."""
        return {path: copy.original for _, path, copy in self.catalogue.copied()}

    @property
    def private(self) -> Path:
        """The directory of the databases."""
        return self.data / ".lithos"


def read_note_rows(private: Path, *, is_live: bool) -> NoteRows:
    """Return the records of note files in `coordination.db`.

    The result is empty if the database is damaged. A server does not start with a damaged database.
    """
    try:
        with snapshot(private / "coordination.db", is_live=is_live) as connection:
            return load_note_rows(connection)
    except CorruptDatabase:
        return NoteRows()


def survey_notes(
    data: Path,
    files: NoteFiles,
    now: datetime,
    style: VaultStyle = PLAIN,
    projects: ProjectRules = DEFAULT_RULES,
) -> CheckedVault:
    """Read the notes of a data directory with the serials that the indexes use. Blocks.

    Raises `FileNotFoundError` if the notes folder does not exist.
    """
    if not files.root.is_dir():
        raise FileNotFoundError(2, "The notes folder is missing", str(files.root))
    private = data / ".lithos"
    vanished = VanishedFiles(private)
    rule = VanishRule(MASS_LOSS, kept=vanished.kept(), approved=vanished.approved())
    is_live = is_owned(private / "lock")
    records = read_note_rows(private, is_live=is_live)
    catalogue = Catalogue(NoteRecords(records), style, projects)
    recorded = partial(_recorded, private, is_live)
    versions = partial(_versions, private, is_live)
    scan = partial(scan_folder, announced=(), now=now, rule=rule, recorded=recorded, versions=versions)
    try:
        with snapshot(private / "manifest.db", is_live=is_live) as connection:
            scanned = scan(files, Manifest.view(connection, style.reading), catalogue)
    except CorruptDatabase:
        # The next start would move the damaged manifest away and renumber the notes, so this survey also
        # renumbers them.
        catalogue = catalogue.like(NoteRecords(records))
        scanned = scan(files, Manifest.view(None), catalogue)
    lost = {*scanned.vanished, *(each.note.id for each in catalogue if each.path in catalogue.skipped)}
    unreadable = frozenset(each.serial for each in catalogue if each.note.id in lost)
    return CheckedVault(data, files, catalogue, is_live, unreadable)


def _recorded(private: Path, is_live: bool, ids: Collection[str]) -> Mapping[str, RecordedPath]:
    """Return the last known paths of notes from the history. Return no paths if the history is damaged."""
    try:
        with snapshot(private / HISTORY, is_live=is_live) as connection:
            return {} if connection is None else read_places(connection, ids)
    except CorruptDatabase:
        return {}


def _versions(private: Path, is_live: bool, note_id: str) -> list[bytes]:
    """Return the stored versions of a note. Return no versions if the history is damaged."""
    try:
        with snapshot(private / HISTORY, is_live=is_live) as connection:
            return [] if connection is None else read_contents(connection, note_id, MOST_VERSIONS)
    except (CorruptDatabase, DamagedContent):
        return []


#: Seconds to wait while another program writes a file, and seconds between two attempts.
_PATIENCE, _PAUSE = 2.0, 0.02
#: Number of files to write at once, so that they share folder syncs.
_BATCH = 32

#: Progress callback: name of the step, number of finished items, and total number.
Progress = Callable[[str, int, int], None]


@frozen
class Validation:
    """The note files of a folder, and their issues by group."""

    folder: NoteFolder = field(repr=False)
    groups: Sequence[IssueGroup]

    @property
    def total(self) -> int:
        """The total number of issues."""
        return sum(each.total for each in self.groups)

    def count(self, severity: Severity) -> int:
        """Return the number of issues with this severity."""
        return sum(each.total for each in self.groups if each.check.severity == severity)


@frozen
class Fixing:
    """The result of a fix: number of fixed issues, remaining issues, and an error for each unwritten file."""

    fixed: int
    left: Validation
    failures: tuple[str, ...]


def validate_notes(
    files: NoteFiles,
    progress: Progress | None = None,
    ids: Mapping[str, str] | None = None,
    style: VaultStyle = PLAIN,
    doubled: Mapping[str, str] | None = None,
    copies: Mapping[str, str] | None = None,
) -> Validation:
    """Read all note files and return their issues.

    Changes nothing. Blocks. Raises `OSError` if the notes folder cannot be read.

    A survey provides `ids`, `doubled` and `copies`. `ids` maps paths of files without an id to their ids,
    unless the path determines the id. `doubled` maps each id that several files have to the path that
    counts. If such an id is missing there, its first path counts. `copies` are not notes and stay
    unchanged.
    """
    ids, copies = ids or {}, copies or {}
    os.scandir(files.root).close()  # raises for an unreadable folder, which looks empty in a listing
    found = [file for file in files.list_notes() if file.path not in copies]
    checked = []
    for number, file in enumerate(found, start=1):
        checked.append(_check(files, file.path, file.state, ids.get(file.path), style))
        if progress is not None:
            progress("validate", number, len(found))
    attachments = FileNames(list_attachments(str(files.root)))
    given = {(file.note.id, file.path) for file in checked if file.note is not None}
    doubled = {note_id: path for note_id, path in (doubled or {}).items() if (note_id, path) in given}
    folder = NoteFolder(checked, style, find_escapes(files.root), attachments, doubled, copies)
    return Validation(folder, find_issues(folder))


def find_escapes(root: Path) -> list[str]:
    """Return the sorted symbolic links that lead to notes or folders outside the notes folder. Blocks."""
    found: list[str] = []
    real_root = os.path.realpath(root)
    for folder, folders, names in os.walk(real_root):
        folders[:] = [name for name in folders if not name.startswith(".")]
        notes = [name for name in names if name.endswith(".md") and not name.startswith(".")]
        for name in (*folders, *notes):
            path = os.path.join(folder, name)
            if os.path.islink(path) and not is_inside(os.path.realpath(path), real_root):
                found.append(os.path.relpath(path, real_root).replace(os.sep, "/"))
    return sorted(found)


def _check(
    files: NoteFiles, path: str, state: FileState, stand_in: str | None, style: VaultStyle
) -> CheckedFile:
    if state.size > LARGEST_FILE:
        return CheckedFile(path=path, reason=f"it has {state.size} bytes, more than {LARGEST_FILE}")
    try:
        source = files.read(path)
        return _checked(path, source.data, source.state, stand_in, style)
    except (OSError, OutsideKnowledge) as failure:
        return CheckedFile(path=path, reason=f"the file cannot be read: {failure}")
    except UnreadableNote as problem:
        return CheckedFile(path=path, reason=problem.reason)


def _checked(
    path: str, data: bytes, state: FileState, stand_in: str | None, style: VaultStyle
) -> CheckedFile:
    """Parse a note file. Raises `UnreadableNote`."""
    document = parse_document(data, path, from_nanoseconds(state.mtime_ns), stand_in, style)
    links = targets_in(data, document.content, path)
    is_broken = document.note.frontmatter_error is not None
    given = frozenset[str]() if is_broken else given_keys(data)
    return CheckedFile(path=path, note=document.note, given=given, links=links)


def fix_notes(
    files: NoteFiles,
    before: Validation,
    amendments: Sequence[Amendment],
    progress: Progress | None = None,
) -> Fixing:
    """Write the planned amendments, then validate all files again.

    Each file is written whole or not at all. Blocks.

    The change counts as an edit by a person, and the next start records it as a version. Only the owner of
    the data directory may call this function. If a file cannot be written, the next files are still written.
    """
    folder = before.folder
    known = {file.path: file for file in folder.files}
    failures: list[str] = []
    fixed = 0
    for start in range(0, len(amendments), _BATCH):
        batch = amendments[start : start + _BATCH]
        reasons = _write(files, batch, known, folder.style)
        fixed += sum(each.issues for each in batch if each.path not in reasons)
        failures += (f"{path}: {reason}" for path, reason in reasons.items())
        if progress is not None:
            progress("fix", start + len(batch), len(amendments))
    _settle(files, Displaced(files.root.parent / ".lithos" / DISPLACED))
    left = before
    if amendments:
        left = validate_notes(files, None, _nameless(folder), folder.style, folder.doubled, folder.copies)
    return Fixing(fixed, left, tuple(failures))


def _nameless(folder: NoteFolder) -> dict[str, str]:
    return {path: note.id for path, file, note in folder.notes if "id" not in file.given}


def _write(
    files: NoteFiles, batch: Sequence[Amendment], known: Mapping[str, CheckedFile], style: VaultStyle
) -> Mapping[str, str]:
    """Write a batch of files. Return the reason for each file that could not be written, by path."""
    reasons: dict[str, str] = {}
    puts: list[Put] = []
    times: list[FileState] = []
    for amendment in batch:
        try:
            put, before = _prepare(files, amendment, known[amendment.path], style)
            puts.append(put)
            times.append(before)
        except (OSError, OutsideKnowledge) as failure:
            reasons[amendment.path] = f"the file cannot be read: {failure}"
        except UnreadableNote as problem:
            reasons[amendment.path] = problem.reason
        except (FileChanged, FileBusy) as failure:
            reasons[amendment.path] = _explain(failure)
    for put, before, result in zip(puts, times, files.apply(puts), strict=True):
        if isinstance(result, Exception):
            reasons[put.path] = _explain(result)
        elif trouble := _keep_time(files, put, before):
            reasons[put.path] = trouble
    return reasons


def _prepare(
    files: NoteFiles, amendment: Amendment, checked: CheckedFile, style: VaultStyle
) -> tuple[Put, FileState]:
    """Return the planned change, and the previous state of the file.

    Raises `FileChanged` if the file has changed since the validation.
    """
    source = _read_patiently(files, amendment.path)
    stand_in = checked.note.id if checked.note is not None and "id" not in checked.given else None
    if _checked(amendment.path, source.data, source.state, stand_in, style) != checked:
        raise FileChanged(amendment.path)
    modified = from_nanoseconds(source.state.mtime_ns)
    data = amend_document(source.data, amendment.path, modified, amendment.values, stand_in, style)
    real = files.real_paths([amendment.path]).get(amendment.path)
    return Put(amendment.path, data, source.digest, real=real), source.state


def _read_patiently(files: NoteFiles, path: str) -> ReadFile:
    """Read a file. If another program is writing it, wait, and raise `FileBusy` if that takes too long."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            return files.read_quiet(path)
        except FileBusy:
            if time.monotonic() > deadline:
                raise
        time.sleep(_PAUSE)


def _settle(files: NoteFiles, displaced: Displaced) -> None:
    """Remove the replaced files after a grace period, in which other programs may still open them.

    If other programs may write to a file for longer, the next server start removes the file.
    """
    kept = [each for each in files.take_kept() if each.is_leased]
    if kept:
        time.sleep(GRACE)
    for each in kept:
        with suppress(FileBusy, OSError):
            files.settle(each, partial(_save, files, displaced))


def _save(files: NoteFiles, displaced: Displaced, kept: Kept, data: bytes) -> None:
    displaced.save(files.relative(kept.note), data, datetime.now(UTC))


def _keep_time(files: NoteFiles, put: Put, before: FileState) -> str | None:
    """Restore the modification time of a file, because this time dates notes without date fields.

    If the time could not be restored, return the reason.
    """
    if len(put.data) == before.size:
        return None  # if size and time were unchanged, no scan would notice the change
    time = before.mtime_ns
    try:
        os.utime(files.root / put.path, ns=(time, time))
    except OSError as failure:
        return f"the file was written, but its modification time could not be restored: {failure}"
    return None


def _explain(failure: Exception) -> str:
    if isinstance(failure, FileChanged | PathRedirected):
        return "the file was changed in the meantime; run the command again"
    if isinstance(failure, FileBusy):
        return "another program is writing the file; close it there, then run the command again"
    if isinstance(failure, NotSynced):
        return f"the file was written, but the disk does not confirm it: {failure}. Check the disk"
    return (
        f"the file cannot be written: {failure}. Check the permissions of the file and its "
        "folder, and the disk space"
    )
