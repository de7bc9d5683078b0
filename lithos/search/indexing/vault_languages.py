"""The languages of a vault: the share of its notes that are not English.

The share decides which model of the accurate tier embeds the vault. It is taken from at most `LOOKED_AT`
notes. They are chosen by a hash of their ids, so they stay the same while the vault grows. A note whose
language is unclear (code, lists of names, a few words) counts as English.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from heapq import nsmallest
from typing import Final, TypeAlias

from attrs import define, field

from lithos.kernel.actors.threads import Blocking, slices
from lithos.notes.catalogue.catalogue import Catalogue, Entry
from lithos.notes.files.files import NoteFiles
from lithos.search.indexing.repair import LOOK_SLICE, load_note
from lithos.text.words.languages import is_other_language
from lithos.text.yaml.vault_style import VaultStyle

#: Maximum number of notes from which the share is taken. Its standard error is 1.5 percent points at a tenth.
LOOKED_AT: Final = 400
#: Number of characters of a note that decide about its language.
_CHARACTERS: Final = 2_000
#: Stamp of the file and whether the note is in another language, by serial.
Languages: TypeAlias = dict[int, tuple[int, bool]]


@define(eq=False)
class VaultLanguages:
    """The share of notes that are not English. A note is read again only if its file has changed."""

    _catalogue: Catalogue
    _files: NoteFiles
    _reading: Blocking
    #: Languages of the chosen notes. bounded: `LOOKED_AT`
    _known: Languages = field(factory=dict, init=False)

    async def share_of_other_languages(self) -> float:
        """Return the share (0..1) of the notes that are not English. Return 0 for a vault without notes."""
        chosen: list[Entry] = []
        async for some in slices(self._catalogue.serials(), LOOK_SLICE):
            chosen = choose_notes([*chosen, *self._catalogue.at_serials(some)])
        style, known = self._catalogue.style, self._known
        self._known = await self._reading.run(lambda: read_languages(self._files, chosen, style, known))
        return share_of(self._known)


def choose_notes(entries: Iterable[Entry]) -> list[Entry]:
    """Return the notes that stand for all, at most `LOOKED_AT`."""
    return nsmallest(LOOKED_AT, entries, key=_place)


def _place(entry: Entry) -> tuple[int, int]:
    return zlib.crc32(entry.note.id.encode("utf-8", "surrogatepass")), entry.serial


def read_languages(
    files: NoteFiles, entries: Sequence[Entry], style: VaultStyle, known: Languages | None = None
) -> Languages:
    """Return the languages of these notes. Unreadable notes are left out. Blocks."""
    found: Languages = {}
    for entry in entries:
        before = (known or {}).get(entry.serial)
        if before is not None and before[0] == entry.stamp:
            found[entry.serial] = before
            continue
        loaded = load_note(files, entry, style)
        if loaded is not None:
            text = f"{entry.note.title}\n{loaded.document.content[:_CHARACTERS]}"
            found[entry.serial] = entry.stamp, is_other_language(text)
    return found


def share_of(languages: Languages) -> float:
    """Return the share (0..1) of notes in other languages, 0 without notes."""
    return sum(is_other for _, is_other in languages.values()) / max(1, len(languages))
