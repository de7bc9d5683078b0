"""The languages of a vault: the share of its notes that are not English.

The share decides which model of the accurate tier embeds the vault. It is taken from at most `LOOKED_AT`
notes. They are chosen by a hash of their ids, so they stay the same while the vault grows. A note whose
language is unclear (code, lists of names, a few words) counts as English.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from heapq import nsmallest
from typing import Final, TypeAlias

from attrs import define, field

from lithos.kernel.actors.threads import Blocking, slices
from lithos.notes.catalogue.catalogue import Catalogue, Entry
from lithos.notes.files.files import NoteFiles
from lithos.search.indexing.repair import LOOK_SLICE, load_note
from lithos.text.words.analysis import FUNCTION_WORDS
from lithos.text.yaml.vault_style import VaultStyle

#: Maximum number of notes from which the share is taken. Its standard error is 1.5 percent points at a tenth.
LOOKED_AT: Final = 400
#: Number of characters of a note that decide about its language.
_CHARACTERS: Final = 2_000
#: Share of letters of other scripts, and of letters with marks, from which a text is not English.
_OTHER_SCRIPT, _MARKED = 0.3, 0.06
#: Minimum number of words of a text that marks decide about. Shorter texts may be only names.
_MARKED_WORDS: Final = 8
#: Minimum number of function words, and how many times as many as English ones there must be.
_LEAST_WORDS, _TIMES = 2, 1.5
_WORD: Final = re.compile(r"[^\W\d_]+")
#: Frequent words of languages in Latin script, a line for each, and those that are frequent in English too.
_LATIN: Final = """
der die das und ist nicht ein eine einen einem dem des mit auf für von zu wird sich auch oder wenn bei
im sind sie wir muss werden haben aus nach zum zur bis können nur sein ihre über alle
el los las una unos que por con para del se es como más pero este esta cuando
le les une des et est dans pour que qui avec sur par pas ce cette sont ou au aux du
il lo gli di che con della delle sono nel più questo anche quando
os uma que não com por mais como dos das ao também
de het een van niet met voor zijn op dat ook wordt bij naar
och det att som på är av för med inte till har om ett
og ikke til af er på det fra kan
ja ei se että joka mutta ovat olla myös kun
w z na nie się jest oraz dla jak przez są
je na se v že pro jako které jsou není
și este sau în care pentru cu din pe nu mai fi sunt
az és nem egy hogy ez azt meg csak
ve bir bu için ile olarak da değil olan daha çok
yang dan untuk dengan pada dari ini tidak adalah
"""
_ALSO_ENGLISH: Final = "care con dan el fi kan om pro van"
_OTHER_WORDS: Final = frozenset(_LATIN.split()) - FUNCTION_WORDS - frozenset(_ALSO_ENGLISH.split())


def is_other_language(text: str) -> bool:
    """Return whether a text is certainly not in English, by its script and its function words."""
    words = [word.lower() for word in _WORD.findall(text[:_CHARACTERS])]
    letters = sum(map(len, words))
    if not letters:
        return False
    # Letters up to U+024F and U+1E00 to U+1EFF are Latin.
    foreign = sum(
        letter > "\u024f" and not "\u1e00" <= letter <= "\u1eff" for word in words for letter in word
    )
    if foreign >= _OTHER_SCRIPT * letters:
        return True
    counted = Counter(words)
    other = sum(counted[word] for word in counted.keys() & _OTHER_WORDS)
    english = sum(counted[word] for word in counted.keys() & FUNCTION_WORDS)
    marked = sum(letter > "\x7f" for word in words for letter in word)
    if len(words) >= _MARKED_WORDS and marked >= _MARKED * letters and english <= other + _LEAST_WORDS:
        return True
    return other >= _LEAST_WORDS and other >= _TIMES * english


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
