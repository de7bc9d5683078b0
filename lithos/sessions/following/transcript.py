"""One step with one transcript: read some records, turn them into turns, and store these and the progress."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from attrs import define, evolve, field, frozen

from lithos.kernel.values.errors import InvalidInput
from lithos.kernel.values.projects import normalise_project
from lithos.kernel.values.times import from_nanoseconds
from lithos.server.mcp.working_project import project_of
from lithos.sessions.files.added_folders import OTHER
from lithos.sessions.files.documents import read_document
from lithos.sessions.files.lines import (
    LineReading,
    NotReadable,
    check_encoding,
    has_marks,
    marks_at,
    opened_transcript,
    read_records,
)
from lithos.sessions.files.opencode import TABLES, TREE, read_opencode
from lithos.sessions.files.surveying import FoundTranscript, project_hint
from lithos.sessions.formats.generic import FORMATS, GENERIC, recognise
from lithos.sessions.formats.values import TranscriptFormat
from lithos.sessions.model.draft import AGENT, FOLDER, NATIVE, REPOSITORY, SessionDraft
from lithos.sessions.model.masking import SecretMask
from lithos.sessions.model.notices import REST, RESTARTS
from lithos.sessions.model.session import session_id
from lithos.sessions.rows.schema import Progress, SessionFacts
from lithos.sessions.rows.store import Embedding, SessionStore

#: Names of further values in `Progress.memory`: the format, the session id, whether a person removed the
#: session, and whether the turns that are stored are those of the transcript's earlier content.
FORMAT, ID, FORGOTTEN, STALE = "format", "id", "forgotten", "stale"
#: Size of a transcript that is not read to its end yet.
UNFINISHED: Final = -1
#: Number of folders whose projects are remembered.
_MOST_FOLDERS: Final = 2_000
NOT_KNOWN: Final = "records of an unknown form"


@frozen(kw_only=True)
class _Read:
    """Records, and the progress once they are stored."""

    reading: LineReading
    progress: Progress


@define(eq=False)
class TranscriptSteps:
    """Reads transcripts step by step. The methods block, and only the writing thread may call them."""

    _store: SessionStore
    _mask: SecretMask
    _embedding: Callable[[], Embedding]
    _clock: Callable[[], datetime]
    _projects: dict[tuple[str, str], str | None] = field(factory=dict, init=False)

    def step(self, found: FoundTranscript, known: Progress | None) -> Progress:
        """Read and store the next part of a transcript. Return the progress, which is also stored.

        The progress has the size `UNFINISHED` until the end is reached.
        """
        progress = known or Progress(path=found.path, folder=found.folder)
        progress = evolve(progress, folder=found.folder)
        if progress.memory.get(FORGOTTEN):
            return self._keep(evolve(progress, size=found.size, mtime_ns=found.mtime_ns))
        try:
            read = _read_lines(found, progress) if found.kind == "lines" else _read_whole(found, progress)
        except NotReadable as reason:
            return self._keep(evolve(progress, size=found.size, mtime_ns=found.mtime_ns, problem=str(reason)))
        return self._index(found, read)

    def _keep(self, progress: Progress) -> Progress:
        self._store.store_progress(progress)
        return progress

    def _index(self, found: FoundTranscript, read: _Read) -> Progress:
        progress, reading = read.progress, read.reading
        number = None if progress.memory.get(STALE) else progress.session
        draft = self._draft(progress, number)
        _interpret(reading, found, draft)
        skipped = Counter(progress.skipped) + reading.skipped + draft.skipped
        progress = evolve(progress, memory=draft.memory, skipped=dict(skipped), problem="")
        seen = from_nanoseconds(found.mtime_ns)
        turns = [each if each.when is not None else evolve(each, when=seen) for each in draft.take()]
        if not turns:
            return self._keep(progress)
        facts = self._facts(found, draft)
        if facts is None:
            return self._keep(evolve(progress, size=found.size, mtime_ns=found.mtime_ns))
        draft.memory.pop(STALE, None)
        return self._store.append(
            facts, progress, turns, self._embedding(), self._clock(), starts_again=number is None
        )

    def _draft(self, progress: Progress, number: int | None) -> SessionDraft:
        """Return the draft of a session, which continues the stored turns if it has a number."""
        memory = dict(progress.memory)
        if number is None:
            return SessionDraft(self._mask, memory)
        turns, size = self._store.size_of(number)
        last = self._store.last_turn(number) if turns else None
        return SessionDraft(self._mask, memory, last, size, lambda: self._store.keys_of(number))

    def _facts(self, found: FoundTranscript, draft: SessionDraft) -> SessionFacts | None:
        """Return the facts of the session, or None if a person removed it. Its id is chosen once."""
        memory = draft.memory
        client = str(memory.get(FORMAT, OTHER)) if found.client == OTHER else found.client
        if ID not in memory:
            memory[ID] = self._choose_id(client, found.path, str(memory.get(NATIVE, "")))
        if self._store.is_forgotten(memory[ID]):
            memory[FORGOTTEN] = True
            return None
        agent = str(memory.get(AGENT, ""))
        folder = str(memory.get(FOLDER, "")) or project_hint(found.path, found.client)
        return SessionFacts(
            id=memory[ID],
            client=client,
            agent=self._mask.clean(f"{client}/{agent}" if agent else client, 200),
            project=self._project(folder, str(memory.get(REPOSITORY, ""))),
            path=found.path,
            folder=found.folder,
        )

    def _choose_id(self, client: str, path: str, native: str) -> str:
        """Return the id of a session.

        A transcript that was moved keeps its session. A copy next to the transcript becomes another session.
        """
        if native:
            chosen = session_id(client, native)
            owner = self._store.owner_of(chosen)
            if owner in (None, "", path) or not os.path.lexists(str(owner).partition("#")[0]):
                return chosen
        return session_id(client, f"{native}\0{path}")

    def _project(self, folder: str, repository: str) -> str | None:
        """Return the project key of a folder. If it is missing, the repository counts, then its name."""
        key = (folder, repository)
        if key not in self._projects:
            if len(self._projects) >= _MOST_FOLDERS:
                self._projects.clear()
            self._projects[key] = _find_project(folder, repository)
        return self._projects[key]


def _find_project(folder: str, repository: str) -> str | None:
    is_path = folder.startswith("/") and "\0" not in folder
    if repository and not (is_path and os.path.isdir(folder)):
        try:
            return normalise_project(repository)
        except InvalidInput:
            pass
    return project_of(Path(folder)) if is_path else None


def _read_lines(found: FoundTranscript, progress: Progress) -> _Read:
    """Read the next lines. If the part that was read has changed, start again."""
    with opened_transcript(found.path) as descriptor:
        info = os.fstat(descriptor)
        is_same = info.st_size >= progress.offset and has_marks(descriptor, progress.marks)
        if not is_same:
            progress = _restarted(progress)
        if not progress.offset:
            check_encoding(descriptor)
        reading = read_records(descriptor, progress.offset)
        marks = marks_at(descriptor, reading.offset)
    memory: dict[str, Any] = {**progress.memory, REST: reading.rest}
    done = (info.st_size, info.st_mtime_ns) if reading.is_done else (UNFINISHED, 0)
    progress = evolve(
        progress, offset=reading.offset, marks=marks, memory=memory, size=done[0], mtime_ns=done[1]
    )
    return _Read(reading=reading, progress=progress)


def _restarted(progress: Progress) -> Progress:
    """Return the progress in a transcript that was replaced, cut or rewritten. Its session is kept."""
    restarts = int(progress.memory.get(RESTARTS, 0)) + 1
    memory = {RESTARTS: restarts, STALE: progress.session is not None}
    return Progress(path=progress.path, folder=progress.folder, session=progress.session, memory=memory)


def _read_whole(found: FoundTranscript, progress: Progress) -> _Read:
    """Read a document. Its messages have ids, so only new messages are added. Packed lines lack ids."""
    is_session = found.kind in (TREE, TABLES)
    reading = read_opencode(found.path, found.kind) if is_session else read_document(found.path)
    progress = evolve(progress, size=found.size, mtime_ns=found.mtime_ns, skipped={})
    if found.path.endswith(".zst") and progress.session is not None:
        progress = evolve(progress, memory={**progress.memory, STALE: True})
    return _Read(reading=reading, progress=progress)


def _interpret(reading: LineReading, found: FoundTranscript, draft: SessionDraft) -> None:
    """Add all records to a draft, in the format of the client or in the format that they have."""
    for record in reading.records:
        reader = _format_of(found, draft, record)
        if reader is None:
            draft.skipped[NOT_KNOWN] += 1
        else:
            reader.read(record, draft)


def _format_of(
    found: FoundTranscript, draft: SessionDraft, record: Mapping[str, Any]
) -> TranscriptFormat | None:
    if found.client != OTHER:
        return FORMATS[found.client]
    name = draft.memory.get(FORMAT)
    if name is None:
        known = recognise(record)
        if known is None:
            return None
        draft.memory[FORMAT] = name = known.client
    return FORMATS.get(str(name), GENERIC)
