"""Surveys of added folders: which transcripts there are, with their size and time.

Symbolic links in an added folder are not followed. The folder itself may be a link, because a person named
it. A link whose target is in the same folder leads to a transcript that is found anyway. All other links are
counted and reported.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from attrs import define, field, frozen

from lithos.sessions.files.added_folders import AddedFolder

#: Maximum number of transcripts of one added folder, of entries that a survey reads, and depth of folders.
MOST_TRANSCRIPTS: Final = 20_000
MOST_ENTRIES: Final = 500_000
DEEPEST: Final = 10
#: Endings of transcripts by client. Each is a file of its own, except in opencode.
_ENDINGS: Final = {
    "claude-code": (".jsonl",),
    "codex": (".jsonl", ".jsonl.zst"),
    "gemini": (".jsonl", ".json"),
    "opencode": (),
    "other": (".jsonl", ".ndjson", ".jsonl.zst"),
}


@frozen
class FoundTranscript:
    """A transcript. `kind` says how it is read: `lines`, `document`, or a session of opencode.

    `path` identifies the transcript. It is the path of a file, or, for a session in a database, the path of
    the database, `#` and the id of the session.
    """

    path: str
    folder: str
    client: str
    size: int
    mtime_ns: int
    kind: str = "lines"


@define  # bounded: `MOST_TRANSCRIPTS`, and the few reasons below
class FolderSurvey:
    """The transcripts of one added folder, and the reasons why others were left out, with their number."""

    folder: AddedFolder
    found: list[FoundTranscript] = field(factory=list)
    left_out: dict[str, int] = field(factory=dict)
    #: Why the folder cannot be read, or "".
    problem: str = ""

    @property
    def bytes(self) -> int:
        """Return the size of all transcripts."""
        return sum(each.size for each in self.found)

    def leave_out(self, reason: str) -> None:
        """Count something that is not read."""
        self.left_out[reason] = self.left_out.get(reason, 0) + 1


LINKS: Final = "symbolic links that lead out of the folder"
SPECIAL: Final = "files that are not regular files"
UNREADABLE: Final = "folders that cannot be read"
TOO_MANY: Final = f"transcripts beyond the newest {MOST_TRANSCRIPTS:,}"
TOO_DEEP: Final = f"folders more than {DEEPEST} levels deep"


def survey_folder(folder: AddedFolder) -> FolderSurvey:
    """Return the transcripts of an added folder, the newest first. Only names and sizes are read."""
    survey = FolderSurvey(folder)
    missing: list[str] = []
    for place in folder.places:
        try:
            info = os.stat(place)
        except OSError as failure:
            missing.append(f"{place}: {failure.strerror or failure}")
            continue
        if stat.S_ISREG(info.st_mode):
            survey.found.append(
                FoundTranscript(str(place), folder.name, folder.client, info.st_size, info.st_mtime_ns)
            )
        elif stat.S_ISDIR(info.st_mode):
            survey.found += _transcripts(str(place), survey)
        else:
            missing.append(f"{place}: the path is not a file or folder")
    if len(missing) == len(folder.places):
        survey.problem = "; ".join(missing)
    survey.found.sort(key=lambda each: (-each.mtime_ns, each.path))
    for _ in survey.found[MOST_TRANSCRIPTS:]:
        survey.leave_out(TOO_MANY)
    del survey.found[MOST_TRANSCRIPTS:]
    return survey


def _transcripts(place: str, survey: FolderSurvey) -> Iterator[FoundTranscript]:
    folder = survey.folder
    for entry in _walk(place, os.path.realpath(place), survey, [0], 0):
        if not entry.name.endswith(_ENDINGS[folder.client]) or not _is_chat(folder.client, entry.path):
            continue
        try:
            info = entry.stat(follow_symlinks=False)
        except OSError:  # The file has just been deleted.
            continue
        kind = "document" if entry.name.endswith((".json", ".zst")) else "lines"
        yield FoundTranscript(entry.path, folder.name, folder.client, info.st_size, info.st_mtime_ns, kind)


def _is_chat(client: str, path: str) -> bool:
    """Return whether a file of Gemini CLI is a chat. Other clients keep nothing else in these files."""
    return client != "gemini" or f"{os.sep}chats{os.sep}" in path


def _walk(
    place: str, root: str, survey: FolderSurvey, seen: list[int], depth: int
) -> Iterator[os.DirEntry[str]]:
    """Yield the regular files below a folder. `seen` counts all entries."""
    if depth > DEEPEST:
        survey.leave_out(TOO_DEEP)
        return
    try:
        with os.scandir(place) as entries:
            listed = sorted(entries, key=lambda entry: entry.name)
    except OSError:
        survey.leave_out(UNREADABLE)
        return
    for entry in listed:
        seen[0] += 1
        if seen[0] > MOST_ENTRIES:
            survey.leave_out(TOO_MANY)
            return
        if entry.is_symlink():
            if not (os.path.realpath(entry.path) + os.sep).startswith(root + os.sep):
                survey.leave_out(LINKS)
        elif entry.is_dir(follow_symlinks=False):
            yield from _walk(entry.path, root, survey, seen, depth + 1)
        elif entry.is_file(follow_symlinks=False):
            yield entry
        else:
            survey.leave_out(SPECIAL)


def project_hint(path: str, client: str) -> str:
    """Return the folder in which a client worked, if a file next to the transcript says so, or "".

    Gemini CLI keeps it in `.project_root` (`packages/core/src/config/projectRegistry.ts`, commit 04fbf507).
    """
    if client != "gemini":
        return ""
    above = Path(path).parent
    while above.name and above.name != "chats":
        above = above.parent
    try:
        with (above.parent / ".project_root").open("rb") as file:
            return file.read(4_096).decode("utf-8", "replace").strip()
    except OSError:
        return ""
