"""The doctor check for sessions."""

from __future__ import annotations

import os
from collections.abc import Iterator

from lithos.kernel.databases.sqlite import CorruptDatabase, DatabaseFailed
from lithos.kernel.values.findings import DOCTOR, CheckFinding, Installation, check, has_data, ok, warn
from lithos.sessions.files.added_folders import ADDED, FoldersUnreadable, all_folders
from lithos.sessions.files.opencode import survey_added
from lithos.sessions.rows.summary import read_summary
from lithos.sessions.settings import SessionsConfig


def _has_folders(each: Installation) -> bool:
    is_added = each.is_outside and (each.private / ADDED).exists()
    return has_data(each) and (is_added or bool(each.config.of(SessionsConfig).folders))


@check("sessions", DOCTOR, place=135, when=_has_folders)
def check_sessions(patient: Installation) -> Iterator[CheckFinding]:
    """Check whether the added transcripts can be read. A warning says what could not be read."""
    try:
        folders = all_folders(patient.private, patient.config.of(SessionsConfig).folders, os.environ)
        stored = read_summary(patient.private, is_live=patient.is_live)
    except FoldersUnreadable as damage:
        yield warn(str(damage).partition(". ")[0] + ".", "Delete the file, and add the folders again.")
        return
    except (CorruptDatabase, DatabaseFailed, OSError) as failure:
        yield warn(
            f"The index of sessions cannot be read: {failure}.",
            "Restart the server: it moves a damaged file aside and indexes the transcripts again.",
        )
        return
    for survey in map(survey_added, folders):
        if survey.problem:
            yield warn(
                f"The transcripts of {survey.folder.name} cannot be read ({survey.problem}).",
                f"Check the path, or run: lithos sessions remove {survey.folder.name}",
            )
    if stored.troubled:
        first = stored.troubled[0]
        yield warn(
            f"Transcripts that were read only in part: {len(stored.troubled):,}, such as {first.path} "
            f"({' '.join(first.notices())})",
            "Run: lithos sessions list",
        )
    count = sum(stored.sessions.values())
    yield ok(f"Sessions that are indexed: {count:,}, from {len(folders):,} added folders.")
