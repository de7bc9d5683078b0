"""Duplicate detection: the nearest notes by vector are confirmed by shared word pairs.

`similar` runs while a note is created (docs/spec/copies.md §4). It only warns and never refuses a write.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import Final

import trio
from attrs import define, field
from outcome import Error, Outcome

from lithos.kernel.actors.threads import start_call
from lithos.kernel.log import get_logger
from lithos.kernel.values.errors import IndexFailed
from lithos.notes.catalogue.catalogue import Catalogue, Entry
from lithos.notes.files.files import NoteFiles
from lithos.notes.files.values import OutsideKnowledge
from lithos.notes.model.versions import body_of
from lithos.notes.service.ports import NewNote, Similar
from lithos.notes.writing.messages import WriteOutcome
from lithos.search.indexing.semantic import SemanticBackend, SemanticUnavailable
from lithos.search.service.retrieval_filter import RetrievalFilter
from lithos.text.chunk import ChunkSizes
from lithos.text.words.similarity import likeness, match_of, word_pairs

log = get_logger("lithos.duplicates")

#: Number of passages of a new note to search for, number of leading characters that contain the passages, and
#: number of nearest notes per passage.
PASSAGES: Final = 4
OPENING: Final = 8_000
NEAREST: Final = 8
#: Number of notes that are compared with the new note, and number of characters of each that are compared.
COMPARED: Final = 4
CHARACTERS: Final = 8_000
#: Average number of checks per second, and maximum number of checks in a burst. A caller that creates notes
#: faster, such as an import program, gets warnings only for its first notes. Its writes are not slowed down.
RATE, BURST = 20.0, 32
#: Maximum number of seconds that a finished write waits for the check. A check takes a few milliseconds.
PATIENCE: Final = 0.5
#: Maximum number of notes that a warning lists.
TOLD: Final = 3


@define(eq=False)
class Duplicates:
    """Finds notes that have the same content as a new note."""

    _semantic: SemanticBackend
    _catalogue: Catalogue
    _files: NoteFiles
    _sizes: ChunkSizes
    #: Number of checks that may start now (token bucket).
    _left: float = field(default=BURST, init=False)
    _at: float = field(default=0.0, init=False)

    async def beside(
        self, new: NewNote, write: Callable[[], Awaitable[WriteOutcome]]
    ) -> tuple[WriteOutcome, list[Similar]]:
        """Write a note. Return the outcome and at most three similar notes, with the most similar first.

        The search runs during the write, so it may find the new note itself, which is left out. Raises the
        errors of the write.
        """
        if not self._may_look():
            return await write(), []
        looked = trio.Event()
        outcomes: list[Outcome[list[Similar]]] = []

        def take(outcome: Outcome[list[Similar]]) -> None:
            outcomes.append(outcome)
            looked.set()

        start_call(partial(self.similar, new), take)
        answer = await write()
        if not outcomes:
            with trio.move_on_after(PATIENCE):
                await looked.wait()
        for outcome in outcomes:
            if isinstance(outcome, Error):
                log.error("similar note check failed", reason=repr(outcome.error))
            else:
                others = [each for each in outcome.unwrap() if each.entry.note.id != answer.id]
                return answer, others[:TOLD]
        return answer, []

    def _may_look(self) -> bool:
        now = trio.current_time()
        self._left = min(BURST, self._left + max(0.0, now - self._at) * RATE)
        self._at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True

    def similar(self, new: NewNote) -> list[Similar]:
        """Return notes that may have the same content as a new note, with the most similar first. Blocks.

        The new note may be among them. Without vectors the result is empty, because a write does not wait for
        vectors.
        """
        texts = self._passages(new)
        try:
            return self._confirm(new, self._semantic.nearest_to(texts, NEAREST)) if texts else []
        except (SemanticUnavailable, IndexFailed):
            return []

    def _passages(self, new: NewNote) -> list[str]:
        passages = self._sizes.chunks(new.title, new.content[:OPENING])
        number = min(PASSAGES, len(passages))
        return [passages[place * len(passages) // number].embedded for place in range(number)]

    def _confirm(self, new: NewNote, near: Mapping[int, float]) -> list[Similar]:
        """Return the visible notes in `near` that share enough word pairs with the new note."""
        gate = RetrievalFilter(agent_id=new.agent)
        known = ((similarity, self._catalogue.at_serial(serial)) for serial, similarity in near.items())
        seen = [(each, entry) for each, entry in known if entry is not None and gate.passes(entry)]
        seen.sort(key=lambda each: (-each[0], each[1].note.id))
        entries = [entry for _, entry in seen[: COMPARED + 1]]
        own = word_pairs(new.content[:CHARACTERS])
        found: list[tuple[float, Similar]] = []
        for entry, text in zip(entries, read_bodies(self._files, entries), strict=True):
            share = 0.0 if text is None else likeness(own, word_pairs(text[:CHARACTERS]))
            if (match := match_of(share)) is not None:
                found.append((share, Similar(entry, match)))
        found.sort(key=lambda each: (-each[0], each[1].entry.note.id))
        return [each for _, each in found]


def read_bodies(files: NoteFiles, entries: Iterable[Entry]) -> list[str | None]:
    """Read the current bodies from the files. Unreadable files give None. Blocks and fills no cache."""
    texts: list[str | None] = []
    for entry in entries:
        try:
            texts.append(body_of(files.read(entry.path).data).decode("utf-8", "replace"))
        except (OSError, OutsideKnowledge):
            texts.append(None)
    return texts
