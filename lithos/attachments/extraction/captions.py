"""Captions: the text around an image in the notes that show it.

An image has no other text than its captions and its file name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from attrs import define, field

from lithos.attachments.model.captions import around
from lithos.kernel.actors.threads import Blocking, Threads, slices
from lithos.notes.catalogue.catalogue import Catalogue, Entry
from lithos.notes.files.files import NoteFiles
from lithos.notes.files.values import OutsideKnowledge
from lithos.text.yaml.layout import read_layout
from lithos.text.yaml.nodes import UnreadableNote

#: Maximum number of notes to use for the caption of one image.
MOST_NOTES: Final = 10


@define(eq=False)
class Captions:
    """The captions of images. Methods that read notes block. Call all other methods on the event loop."""

    _catalogue: Catalogue
    _files: NoteFiles
    _reading: Blocking = field(factory=Threads)
    _fingerprint: int | None = field(default=None, init=False)
    #: For each image path, the versions of the notes from which its caption was made.
    # bounded: an image file of the folder each
    _made_of: dict[str, tuple[str, ...]] = field(factory=dict, init=False)

    def showing(self, path: str, most: int) -> list[Entry]:
        """Return the notes that embed or link a file, sorted by title."""
        ids = self._catalogue.graph.sources_of_file(path)
        entries = [entry for note_id in ids if (entry := self._catalogue.get(note_id)) is not None]
        return sorted(entries, key=lambda entry: (entry.note.title.casefold(), entry.path))[:most]

    async def changed(self, paths: Sequence[str]) -> list[str]:
        """Return the images whose captions now come from other notes or from other versions of notes."""
        fingerprint = self._catalogue.graph.fingerprint
        if fingerprint == self._fingerprint:
            return []
        found: list[str] = []
        async for some in slices(paths):
            found += [path for path in some if self._made_of.get(path) != self._states(path)]
        self._fingerprint = fingerprint
        return found

    async def text_of(self, path: str) -> str:
        """Return the name and folders of an image and the paragraphs that show it."""
        entries = self.showing(path, MOST_NOTES)
        self._made_of[path] = self._states(path)
        told = await self._reading.run(lambda: [self._around(entry, path) for entry in entries])
        return "\n\n".join([path.rpartition(".")[0].replace("/", " / "), *filter(None, told)])

    def _states(self, path: str) -> tuple[str, ...]:
        return tuple(f"{entry.note.id} {entry.digest}" for entry in self.showing(path, MOST_NOTES))

    def _around(self, entry: Entry, path: str) -> str:
        try:
            content = read_layout(self._files.read(entry.path).data, keeps_heading=True).content
        except (OSError, OutsideKnowledge, UnreadableNote):
            return ""
        return f"{entry.note.title}\n{around(content, path.rpartition('/')[2])}"
