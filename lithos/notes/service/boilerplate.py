"""Boilerplate: texts that most notes of a folder share at their beginning or end, found by sampling.

Excerpts and snippets omit such texts (`text.hidden`), because a footer that thousands of notes share is
useless in an answer. A folder is sampled before the first excerpt or snippet of its notes, and again when its
number of notes has doubled or halved. If the folder has few notes, the sample comes from the next parent
folder that has enough.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import trio

from lithos.notes.catalogue.catalogue import Catalogue, Entry
from lithos.notes.model.paths import folder_of
from lithos.text.hidden_text import LEAST_NOTES, NO_FRAME, Frame, names_in, shared_blocks

#: Number of sampled notes per folder, and number of characters that are read in each sampled note.
SAMPLE: Final = 16
LONGEST_READ: Final = 64 * 1024
#: Maximum number of folders for which shared texts are remembered.
KEPT: Final = 1_024


class Frames:
    """The hashes of shared texts by folder.

    Call `learn` on the event loop. `of` may be called in any thread.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        read: Callable[[Sequence[Entry]], Sequence[str | None]],
        limiter: trio.CapacityLimiter,
    ) -> None:
        """Create an instance that has no shared texts yet.

        `read` returns the contents of notes. It is called in a worker thread within `limiter`.
        """
        self._catalogue = catalogue
        self._read = read
        self._limiter = limiter
        self._counting = trio.Lock()
        #: Size of each folder at its last sample, as the bit length of the number of notes.
        self._known: OrderedDict[str, int] = OrderedDict()
        #: Hashes of shared texts by folder. Folders without shared texts are left out.
        self._shared: dict[str, frozenset[int]] = {}

    def of(self, entry: Entry) -> Frame:
        """Return the shared texts of the note's folder. Until the folder is sampled, the result is empty."""
        shared = self._shared.get(folder_of(entry.path)) if self._shared else None
        return NO_FRAME if shared is None else Frame(shared, names_in(folder_of(entry.path)))

    async def learn(self, entries: Iterable[Entry]) -> None:
        """Sample the folders of these notes that are unknown, or have grown or shrunk since sampling."""
        folders = {folder_of(entry.path) for entry in entries}
        if not self._grown(folders):
            return
        async with self._counting:  # Only one search at a time counts a folder.
            grown = self._grown(folders)
            if not grown:
                return
            samples = {folder: self._catalogue.at_serials(self._sample(folder)) for folder in grown}
            found = await trio.to_thread.run_sync(self._count, samples, limiter=self._limiter)
            for folder, size in grown.items():
                self._known[folder] = size
                self._known.move_to_end(folder)
            self._shared = {folder: shared for folder, shared in (self._shared | found).items() if shared}
            while len(self._known) > KEPT:
                self._shared.pop(self._known.popitem(last=False)[0], None)

    def _grown(self, folders: Iterable[str]) -> dict[str, int]:
        """Return the sizes of the folders that are unknown or have grown or shrunk since the last sample."""
        facets = self._catalogue.facets
        grown: dict[str, int] = {}
        for folder in folders:
            notes = facets.size_of(folder)
            size = (notes if notes >= LEAST_NOTES else -len(facets)).bit_length()
            if self._known.get(folder) != size:
                grown[folder] = size
        return grown

    def _sample(self, folder: str) -> list[int]:
        """Return the serial numbers of some notes in the folder.

        If the folder has too few notes, use the next parent folder that has enough.
        """
        facets = self._catalogue.facets
        serials = facets.in_folder(folder)
        while len(serials) < LEAST_NOTES and folder:
            folder = folder_of(folder)
            serials = facets.below(folder)
        taken = min(SAMPLE, len(serials))
        return [serials[number * len(serials) // taken] for number in range(taken)]

    def _count(self, samples: Mapping[str, Sequence[Entry]]) -> dict[str, frozenset[int]]:
        found: dict[str, frozenset[int]] = {}
        for folder, entries in samples.items():
            read = zip(entries, self._read(entries), strict=True)
            found[folder] = shared_blocks(
                [(folder_of(at.path), text[:LONGEST_READ]) for at, text in read if text is not None]
            )
        return found
