"""Reading all note files to see what is wrong with them, and putting right what can be put right."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

from attrs import field, frozen

from lithos.actors.examination import LARGEST_FILE
from lithos.core.frontmatter import UnreadableNote, amend_document, given_keys, parse_document
from lithos.core.links import scan_links
from lithos.core.times import from_nanoseconds
from lithos.core.validation import Amendment, CheckedFile, Issue, find_issues, plan_amendments
from lithos.stores.files import FileChanged, FileState, NoteFiles, NotSynced, OutsideKnowledge, Put

#: Files written at once, so that they share the syncs of their folders.
_BATCH = 32

#: Told what is done, how far, of how many.
Progress = Callable[[str, int, int], None]


@frozen
class Validation:
    """What is wrong with the note files of a folder: issues by group."""

    files: tuple[CheckedFile, ...] = field(repr=False)
    groups: Mapping[str, tuple[Issue, ...]]

    @property
    def total(self) -> int:
        """How many issues there are."""
        return sum(map(len, self.groups.values()))


@frozen
class Fixing:
    """How many issues were put right, what is left, and the files that could not be written."""

    fixed: int
    left: Validation
    failures: tuple[str, ...]


def validate_notes(files: NoteFiles, progress: Progress | None = None) -> Validation:
    """Read all files; changes nothing. Blocks. Raises `OSError` without a folder of notes."""
    os.scandir(files.root).close()  # a listing takes a folder that cannot be read for an empty one
    found = files.list_notes()
    checked = []
    for number, file in enumerate(found, start=1):
        checked.append(_check(files, file.path, file.state))
        if progress is not None:
            progress("validate", number, len(found))
    return Validation(tuple(checked), find_issues(checked))


def _check(files: NoteFiles, path: str, state: FileState) -> CheckedFile:
    if state.size > LARGEST_FILE:
        return CheckedFile(path=path, reason=f"it has {state.size} bytes, more than {LARGEST_FILE}")
    try:
        source = files.read(path)
        return _checked(path, source.data, source.state)
    except (OSError, OutsideKnowledge) as failure:
        return CheckedFile(path=path, reason=f"it cannot be read: {failure}")
    except UnreadableNote as problem:
        return CheckedFile(path=path, reason=problem.reason)


def _checked(path: str, data: bytes, state: FileState) -> CheckedFile:
    """Raises `UnreadableNote`."""
    document = parse_document(data, path, from_nanoseconds(state.mtime_ns))
    links = tuple(link.target for link in scan_links(document.content))
    return CheckedFile(path=path, note=document.note, given=given_keys(data), links=links)


def fix_notes(
    files: NoteFiles, before: Validation, new_id: Callable[[], str], progress: Progress | None = None
) -> Fixing:
    """Write what `before` found missing, each file whole or not at all, and look again. Blocks.

    Only for the owner of the data directory. One file that cannot be written leaves the others alone.
    """
    known = {file.path: file for file in before.files}
    amendments = tuple(plan_amendments(before.files, new_id))
    failures: list[str] = []
    fixed = 0
    for start in range(0, len(amendments), _BATCH):
        batch = amendments[start : start + _BATCH]
        reasons = _write(files, batch, known)
        fixed += sum(each.issues for each in batch if each.path not in reasons)
        failures += (f"{path}: {reason}" for path, reason in reasons.items())
        if progress is not None:
            progress("fix", start + len(batch), len(amendments))
    return Fixing(fixed, validate_notes(files) if amendments else before, tuple(failures))


def _write(
    files: NoteFiles, batch: Sequence[Amendment], known: Mapping[str, CheckedFile]
) -> Mapping[str, str]:
    """Write the files of a batch; why some could not be written, by path."""
    reasons: dict[str, str] = {}
    puts: list[Put] = []
    for amendment in batch:
        try:
            puts.append(_prepare(files, amendment, known[amendment.path]))
        except (OSError, OutsideKnowledge) as failure:
            reasons[amendment.path] = f"it cannot be read: {failure}"
        except UnreadableNote as problem:
            reasons[amendment.path] = problem.reason
        except FileChanged:
            reasons[amendment.path] = "it was changed meanwhile; run the command again"
    for put, result in zip(puts, files.apply(puts), strict=True):
        if isinstance(result, Exception):
            reasons[put.path] = _explain(result)
        elif trouble := _keep_time(files, put):
            reasons[put.path] = trouble
    return reasons


def _prepare(files: NoteFiles, amendment: Amendment, checked: CheckedFile) -> Put:
    """Raises `FileChanged` when the file is not what was validated."""
    source = files.read(amendment.path)
    if _checked(amendment.path, source.data, source.state) != checked:
        raise FileChanged(amendment.path)
    modified = from_nanoseconds(source.state.mtime_ns)
    data = amend_document(source.data, amendment.path, modified, amendment.values)
    return Put(amendment.path, data, source.state)


def _keep_time(files: NoteFiles, put: Put) -> str | None:
    """A note without dates is as old as its file, so that stays; why it could not."""
    assert put.expected is not None
    if len(put.data) == put.expected.size:
        return None  # with size and time as before, no scan would notice the change
    time = put.expected.mtime_ns
    try:
        os.utime(files.root / put.path, ns=(time, time))
    except OSError as failure:
        return f"it was written, but its time could not be kept: {failure}"
    return None


def _explain(failure: Exception) -> str:
    if isinstance(failure, FileChanged):
        return "it was changed meanwhile; run the command again"
    if isinstance(failure, NotSynced):
        return f"it was written, but the disk does not confirm it: {failure}. Check the disk"
    return f"it cannot be written: {failure}. Check its permissions, those of its folder and the disk space"
