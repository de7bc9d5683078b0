"""Letters that are equal in a search, although Unicode normal forms keep them distinct.

`LETTERS` maps each lower-case letter to its replacement. Most replacements follow from Unicode names:
keyboards without a letter `WITH STROKE` offer the letter without the stroke, so `ø` becomes `o`. The
remaining replacements are spellings of one language: `ß` becomes `ss`, and the Persian `ک` becomes the Arabic
`ك`. Arabic is folded as in Lucene's normalisers. Decimal digits of any script become ASCII digits.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Final

#: Ranges of Latin and Cyrillic letters that do not decompose.
_RANGES: Final = (
    range(0xC0, 0x2B0), range(0x460, 0x530), range(0x1D00, 0x1DC0), range(0x1E00, 0x1F00),
    range(0x2C60, 0x2C80), range(0xA720, 0xA800), range(0xAB30, 0xAB70),
)  # fmt: skip
_NAMED: Final = re.compile(
    r"LATIN SMALL LETTER ([A-Z])(?: WITH .*)?|LATIN LETTER SMALL CAPITAL ([A-Z])"
    r"|LATIN SMALL (?:LETTER|LIGATURE) ([A-Z]{2})(?: DIGRAPH)?|(CYRILLIC SMALL LETTER [A-Z]+) WITH .*"
)
#: The Unicode name of this letter contains `OI`, but it is the letter gha.
_MISNAMED: Final = "\u01a3"
_LATIN: Final = {
    "ß": "ss", "þ": "th", "ð": "d", "ı": "i", "ȷ": "j", "ŋ": "n", "ĸ": "q", "ə": "e", "ǝ": "e",
    "ɛ": "e", "ɔ": "o", "ɑ": "a", "ɣ": "g", "ɩ": "i", "ƿ": "w",
}  # fmt: skip
#: U+02BC is an apostrophe, although Unicode classifies it as a letter. The other characters describe the
#: sound of a letter, and people mostly omit them.
_APOSTROPHES: Final = {"\u02bc": "'"} | dict.fromkeys("\u02b9\u02ba\u02bb\u02bd\u02be\u02bf\ua78c", "")
_SEMITIC: Final = {
    "\u0640": "",  # kashida
    **dict.fromkeys("\u0671\u0672\u0673", "\u0627"),  # alef
    **dict.fromkeys("\u0649\u06cc\u06cd\u06d2", "\u064a"),  # yeh
    **dict.fromkeys("\u06a9\u06aa", "\u0643"),  # kaf
    **dict.fromkeys("\u0629\u06be\u06c1\u06c3\u06d5", "\u0647"),  # heh
    "\u06ba": "\u0646",  # noon
    "\u05f0": "\u05d5\u05d5", "\u05f1": "\u05d5\u05d9", "\u05f2": "\u05d9\u05d9",  # Yiddish digraphs
}  # fmt: skip
#: Dots that people often omit, and consonants that older texts write with a joiner after a virama.
_INDIC: Final = {
    **dict.fromkeys("\u093c\u09bc\u0a3c\u0abc\u0b3c\u0cbc", ""),
    "\u0901": "\u0902",
    "\u09ce": "\u09a4\u09cd",
    "\u0d7a": "\u0d23\u0d4d", "\u0d7b": "\u0d28\u0d4d", "\u0d7c": "\u0d30\u0d4d", "\u0d7d": "\u0d32\u0d4d",
    "\u0d7e": "\u0d33\u0d4d", "\u0d7f": "\u0d15\u0d4d",
}  # fmt: skip
#: The zeros of all scripts whose digits normal forms do not change.
_NOUGHTS: Final = (
    0x660, 0x6F0, 0x7C0, 0x966, 0x9E6, 0xA66, 0xAE6, 0xB66, 0xBE6, 0xC66, 0xCE6, 0xD66, 0xDE6, 0xE50, 0xED0,
    0xF20, 0x1040, 0x1090, 0x17E0, 0x1810, 0x1946, 0x19D0, 0x1A80, 0x1A90, 0x1B50, 0x1BB0, 0x1C40, 0x1C50,
    0xA620, 0xA8D0, 0xA900, 0xA9D0, 0xA9F0, 0xAA50, 0xABF0,
)  # fmt: skip


def _named() -> Iterator[tuple[str, str]]:
    """Yield the letters whose Unicode name contains a plain letter, except letters that decompose."""
    for code in (code for some in _RANGES for code in some):
        letter = chr(code)
        named = _NAMED.fullmatch(unicodedata.name(letter, ""))
        if named is None or letter == _MISNAMED or unicodedata.normalize("NFKD", letter) != letter:
            continue
        yield letter, unicodedata.lookup(named[4]) if named[4] else (named[1] or named[2] or named[3]).lower()


LETTERS: Final = {
    **dict(_named()), **_LATIN, **_APOSTROPHES, **_SEMITIC, **_INDIC,
    **{chr(nought + digit): str(digit) for nought in _NOUGHTS for digit in range(10)},
}  # fmt: skip
_ANY: Final = re.compile(f"[{''.join(LETTERS)}]")


def replace_letters(text: str) -> str:
    """Return `text` with each letter of `LETTERS` replaced. `text` must be decomposed and in lower case."""
    return _ANY.sub(_letter, text)


def _letter(found: re.Match[str]) -> str:
    return LETTERS[found[0]]
