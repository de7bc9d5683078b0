"""The piece of each found note that an answer shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import frozen

from lithos.actors.catalogue import Entry
from lithos.actors.vector_port import ChunkSizes
from lithos.core.snippet import Terms, make_snippet
from lithos.services.texts import NoteTexts


@frozen
class Snippets:
    """Reads the notes and cuts."""

    _texts: NoteTexts
    _sizes: ChunkSizes

    async def cut(
        self, entries: Sequence[Entry], terms: Sequence[str], chunks: Mapping[int, int]
    ) -> list[str | None]:
        """One per note; None where the file is gone or cannot be read.

        `chunks` maps serials to the chunk to show; of other notes the surroundings of a term are shown.
        """
        prepared = Terms.of(terms)

        def cut_one(position: int, content: str) -> str:
            entry = entries[position]
            number = chunks.get(entry.serial)
            if number is None:
                return make_snippet(entry.note.title, content, prepared)
            of_note = self._sizes.chunks(entry.note.title, content)
            return of_note[number].text if number < len(of_note) else ""

        return await self._texts.map_contents(entries, cut_one)
