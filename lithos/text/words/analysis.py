"""Text analysis for full-text search in any script: normalisation, folding of case and accents, tokens.

Documents and queries are processed by the same two functions. `fold` unifies spellings: `Café` becomes
`cafe`, and `Straße` becomes `strasse`. `index_text` rewrites scripts without spaces between words, so that a
word tokeniser finds every substring. A run `c1c2c3` becomes `c1 c1c2 c2 c2c3 c3`. The tokens of any substring
are consecutive, so a phrase query matches consecutive characters.

Unicode normalisation is limited to linear time (UAX #15, Stream-Safe Text Format). Normalisation sorts each
run of combining marks, and common implementations take quadratic time for long runs. No script uses more than
30 marks in a row, so longer runs are cut.

`FUNCTION_WORDS` are the stop words: folded English words that carry no meaning in a question.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Final, Literal

from lithos.text.pieces import PIECE
from lithos.text.words.letter_folding import replace_letters

#: Maximum number of consecutive combining marks that are passed to normalisation.
LONGEST_RUN: Final = 30
#: COMBINING GRAPHEME JOINER, a starter without a visible form.
_JOINER: Final = "\u034f"
#: Characters that may be combining marks: characters that are neither letters nor digits for `re`, and the
#: half-width voicing marks of kana. Symbols and punctuation are excluded, because people repeat them to draw
#: long lines.
_CANDIDATES: Final = (
    r"(?:[^\w\s\x00-\u02ff\u2010-\u20cf\u2100-\u2bff\u3000-\u3029\u3030-\u3098\ufe30-\uff9d"
    r"\U0001f000-\U0001faff]|[\uff9e\uff9f])"
)
#: A character may decompose into three marks, so a third of the limit already requires a check.
_SUSPECT: Final = re.compile(f"{_CANDIDATES}{{{LONGEST_RUN // 3},}}")


def normalise(form: Literal["NFC", "NFD", "NFKC", "NFKD"], text: str) -> str:
    """Return `text` in a Unicode normal form, with a joiner before every 31st consecutive mark."""
    return text if text.isascii() else unicodedata.normalize(form, separate_marks(text))


def name_key(text: str) -> str:
    """Return the comparison key of a name.

    Names that differ only in case or Unicode form (NFC, NFD) have the same key.
    """
    if text.isascii():
        return text.lower()
    return normalise("NFC", normalise("NFC", text).casefold())


def separate_marks(text: str) -> str:
    """Return `text` with joiners in every run of more than 30 marks, as in the Stream-Safe Text Process."""
    return _SUSPECT.sub(lambda run: "".join(_separated(run, _JOINER)), text)


def drop_excess_marks(text: str) -> str:
    """Return `text` with at most 30 marks per run. Used for text that is searched but not shown."""
    return _SUSPECT.sub(lambda run: "".join(_separated(run, "")), text)


def _separated(run: re.Match[str], joiner: str) -> Iterator[str]:
    """Yield the characters of a run.

    The joiner is inserted before each excess mark. If `joiner` is empty, excess marks are dropped.
    """
    marks = _marks_of(run.string[run.start() - 1])[1] if run.start() else 0
    for character in run[0]:
        leading, trailing, is_mark = _marks_of(character)
        if marks + leading > LONGEST_RUN:
            if not joiner:
                continue
            yield joiner
            marks = 0
        marks = marks + leading if is_mark else trailing
        yield character


def _marks_of(character: str) -> tuple[int, int, bool]:
    """Return the number of marks at both ends of the decomposition, and whether it consists only of marks."""
    is_mark = [unicodedata.combining(part) != 0 for part in unicodedata.normalize("NFKD", character)]
    leading = is_mark.index(False) if False in is_mark else len(is_mark)
    trailing = is_mark[::-1].index(False) if False in is_mark else len(is_mark)
    return leading, trailing, False not in is_mark


#: Han, Hiragana, Katakana, Hangul, Thai, Lao, Khmer and Myanmar: letters, marks and digits, without
#: punctuation and currency symbols. The value is the content of a character class.
_UNSEGMENTED: Final = (
    "\u3005-\u3007\u3021-\u3029\u3038-\u303b\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # Han
    "\U00020000-\U000323af"
    "\u3041-\u3096\u3099\u309a\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"  # kana
    "\U0001b000-\U0001b16f"
    "\u1100-\u11ff\ua960-\ua97c\uac00-\ud7a3\ud7b0-\ud7fb"  # Hangul
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e50-\u0e59"  # Thai
    "\u0e81-\u0ece\u0ed0-\u0ed9\u0edc-\u0edf"  # Lao
    "\u1780-\u17d3\u17d7\u17dc\u17dd\u17e0-\u17e9"  # Khmer
    "\u1000-\u1049\u1050-\u109d\ua9e0-\ua9fe\uaa60-\uaa76\uaa7a-\uaa7f"  # Myanmar
)
_UNSEGMENTED_RUN: Final = re.compile(f"[{_UNSEGMENTED}]+")
_WORD_ASCII: Final = re.compile("[0-9A-Za-z]+")

#: Characters that folding removes from decomposed text: Latin, Greek and Cyrillic diacritics, Hebrew points,
#: Arabic harakat, and characters without a visible form (joiners, selectors, soft hyphen). Voicing marks of
#: kana and vowel signs of Indic and South-East Asian scripts are kept, because they distinguish words.
_DROPPED: Final = re.compile(
    "[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"
    "\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7"
    "\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed"
    "\u08d3-\u08e1\u08e3-\u08ff\u061c\u180b-\u180f"
    "\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufe00-\ufe0f\U000e0100-\U000e01ef]+"
)

#: Characters that may merge with the previous character: marks, symbols, Hangul letters and half-width
#: voicing marks. A text may be cut before any other character without changing the folded text.
_MERGES: Final = r"(?:[^\w\s\x00-\x7f]|[\u1100-\u11ff\u3131-\u318e\ua960-\ua97c\ud7b0-\ud7fb\uff9e-\uffdc])"
_MERGING: Final = f"{_MERGES}*"
_BLOCK: Final = re.compile("(?s:.{1,1024})" + _MERGING)
#: A run of more than 65,536 merging characters is not real text, so it may be cut anywhere.
_PIECE: Final = re.compile(f"(?s:.{{1,{PIECE - 1}}}){_MERGES}{{0,{PIECE}}}")
_CLUSTER: Final = re.compile("(?s:.)" + _MERGING)


def fold(text: str) -> str:
    """Return `text` in NFKC form and lower case, without diacritics and with plain letters. Idempotent.

    If more than 30 marks are consecutive, the excess marks are dropped.
    """
    if text.isascii():
        return text.lower()
    if len(text) > PIECE:  # Long texts are folded in pieces, because each call holds the interpreter lock.
        return "".join(_fold(piece[0]) for piece in _PIECE.finditer(text))
    return _fold(text)


def _fold(text: str) -> str:
    lowered = unicodedata.normalize("NFKC", drop_excess_marks(text)).lower().replace("ς", "σ")
    bare = _DROPPED.sub("", unicodedata.normalize("NFD", lowered))
    return unicodedata.normalize("NFC", replace_letters(bare))


def unfold_offset(text: str, offset: int) -> int:
    """Return the position in `text` of the character that became `fold(text)[offset]`.

    The position is accurate to the smallest unit that folds separately, which is a letter with its marks. If
    `offset` is the length of the folded text, the result is `len(text)`.
    """
    if text.isascii():
        return min(offset, len(text))
    for block in _BLOCK.finditer(text):
        length = len(fold(block[0]))
        if length > offset:
            return block.start() + unfold_offsets(block[0], [offset])[0]
        offset -= length
    return len(text)


def unfold_offsets(text: str, offsets: Iterable[int]) -> list[int]:
    """Return the result of `unfold_offset` for each offset.

    `offsets` must be ascending. The function passes over a short text once.
    """
    places: list[int] = []
    wanted = iter(offsets)
    offset = next(wanted, None)
    folded = 0
    for piece in _CLUSTER.finditer(text):
        if offset is None:
            return places
        folded += len(fold(piece[0]))
        while offset is not None and offset < folded:
            places.append(piece.start())
            offset = next(wanted, None)
    rest = [] if offset is None else [offset, *wanted]
    return [*places, *(len(text) for _ in rest)]


def index_text(text: str) -> str:
    """Return folded text for a word tokeniser. Scripts without spaces are rewritten as overlapping tokens.

    The same function is used for documents, words and phrases.
    """
    folded = fold(text)
    return folded if folded.isascii() else _UNSEGMENTED_RUN.sub(_interleave, folded)


def _interleave(run: re.Match[str]) -> str:
    characters = run[0]
    pairs = [f"{first} {first}{second}" for first, second in pairwise(characters)]
    return f" {' '.join([*pairs, characters[-1]])} "


def runs(folded: str) -> Iterator[tuple[bool, str]]:
    """Split folded text into `(is_unsegmented, run)` pairs. Joined in order, the runs are the folded text."""
    position = 0
    for match in _UNSEGMENTED_RUN.finditer(folded):
        if match.start() > position:
            yield False, folded[position : match.start()]
        yield True, match[0]
        position = match.end()
    if position < len(folded):
        yield False, folded[position:]


def words(folded: str) -> list[tuple[bool, str]]:
    """Return the words of folded text as `(is_unsegmented, word)`, in order.

    A word is a maximal run of letters, numbers and marks in one kind of script. The full-text tokeniser keeps
    the same characters.
    """
    if folded.isascii():
        return [(False, word) for word in _WORD_ASCII.findall(folded)]
    pieces: list[tuple[bool, str]] = []
    for is_unsegmented, run in runs(folded):
        spaced = run if is_unsegmented else "".join([c if _is_word_character(c) else " " for c in run])
        pieces += [(is_unsegmented, word) for word in spaced.split()]
    return pieces


def _is_word_character(character: str) -> bool:
    return character.isalnum() or unicodedata.category(character)[0] == "M"


def bigrams(run: str) -> list[str]:
    """Return the overlapping pairs of an unsegmented run, or the run itself if it has one character."""
    return [run[i : i + 2] for i in range(len(run) - 1)] or [run]


_WORDS = """
    a about after all also am an and any are as at be been before being between but by can could did do does
    during for from get had has have he how i if in into is it its may me might must my no not of on or our
    over shall she should so some such than that the their then there these they this through to under use
    used using was we were what when where which who whom whose why will with would you your
"""
FUNCTION_WORDS: Final = frozenset(_WORDS.split())
