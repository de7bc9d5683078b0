"""Ends of sentences in all scripts.

Latin, Cyrillic, Greek and Hebrew sentences end with a mark and white space, because the same marks occur
within words, numbers and code. The marks of most other scripts need no white space. Thai and Lao have no full
stop: a space between two of their letters separates clauses, and counts as the end of a sentence.

Each pattern begins with a class of characters, so that a search only stops at these. It continues with
alternatives that look back at this character. Matches do not overlap.
"""

from __future__ import annotations

import re
from typing import Final

from attrs import frozen

#: Marks that end a sentence without white space: CJK, Arabic, Urdu, Syriac, Indic scripts, Tibetan, Burmese,
#: Khmer, Ethiopic, Mongolian, Armenian, Ol Chiki and Meetei. The Arabic semicolon ends none, as in Latin.
_STOPS: Final = "。！｡︒﹗۔܀܁܂।॥෴།༎။។៕።፨᠃᠉։᱾᱿꯫"
_QUESTIONS: Final = "？﹖؟፧"
_ENDS: Final = _STOPS + _QUESTIONS
MARKS: Final = tuple(f".!?…{_ENDS}")
#: Closing marks that belong to the sentence before them. The wide ones never open anything.
_CLOSING_WIDE: Final = "」』）”’】》〉〕］｝»›"
_CLOSING: Final = f"\"')]*_{_CLOSING_WIDE}"
#: Marks that end a clause in scripts with few spaces, and in Arabic.
CLAUSES: Final = "，、；：､،؛၊፣፤"

#: The question mark of Greek is a semicolon, which has two code points.
_GREEK: Final = "[\u0370-\u03ff\u1f00-\u1fff]"
_SEMICOLONS: Final = ";\u037e"
#: Letters of Thai and Lao with which a word ends or begins. A mark of repetition stays with its word.
_THAI_END: Final = (
    "\u0e01-\u0e2e\u0e30-\u0e3a\u0e40-\u0e45\u0e47-\u0e4e\u0e81-\u0ebd\u0ec0-\u0ec4\u0ec8-\u0ecd"
)
_THAI_BEGIN: Final = "\u0e01-\u0e2e\u0e40-\u0e44\u0e81-\u0eae\u0ec0-\u0ec4"

_CLOSED: Final = rf"[{re.escape(_CLOSING)}]{{0,4}}(?=\s)"
_CLOSED_ALONE: Final = rf"(?:{_CLOSED}|[{_CLOSING_WIDE}]{{0,3}})"
_CLAUSE_END: Final = rf"(?<=[{_THAI_END}])(?= {{1,4}}[{_THAI_BEGIN}])"
_GREEK_END: Final = rf"(?<={_GREEK}[{_SEMICOLONS}]){_CLOSED}"
#: Characters at which a search for an end without white space stops, and the rest of this end.
_STARTS: Final = f"{_ENDS}{_SEMICOLONS}{_THAI_END}"
_END: Final = rf"(?<=[{_ENDS}])[{_ENDS}!?]{{0,8}}{_CLOSED_ALONE}|{_CLAUSE_END}|{_GREEK_END}"
#: The same without questions.
_STOPS_END: Final = rf"(?<=[{_STOPS}])(?![{_QUESTIONS}?])[{_STOPS}!]{{0,8}}{_CLOSED_ALONE}|{_CLAUSE_END}"

#: Lookbehind that excludes the dot after an abbreviation, an initial or an item number.
_NO_END: Final = (
    r"(?<!\b(?:e\.g|i\.e|z\.B|Mrs)\.)(?<!\b(?:cf|vs|ca|No|Mr|Ms|Dr|St)\.)"
    r"(?<![\s(][A-ZÀ-ÞΑ-ΩА-Я]\.)(?<!\n\d\.)(?<!\n\d\d\.)"
)
#: A line break that ends a sentence. If the next line begins with a lower-case letter, the line break only
#: wraps the sentence.
_BREAK: Final = r"(?<=\n)(?![ \t]*[a-zß-öø-ÿά-ώа-џ])"
#: A line break that does not follow a blank, a question or a colon.
_ASKING: Final = (
    rf"(?<!\s\n)(?<![?:…：{_QUESTIONS}]\n)(?<![?:…：{_QUESTIONS}][{re.escape(_CLOSING)}]\n)"
    rf"(?<!{_GREEK}[{_SEMICOLONS}]\n)"
)


@frozen
class Edges:
    """Patterns of positions to cut a text:

    `edge` matches all positions, `settled` only those not after a question or colon.
    """

    edge: re.Pattern[str]
    settled: re.Pattern[str]


SENTENCES: Final = Edges(
    re.compile(rf"[.!?…\n{_STARTS}](?:(?<=[.!?…]){_NO_END}{_CLOSED}|{_END}|{_BREAK})"),
    re.compile(rf"[.!\n{_STOPS}{_THAI_END}](?:(?<=[.!]){_NO_END}{_CLOSED}|{_STOPS_END}|{_ASKING}{_BREAK})"),
)
LINES: Final = Edges(re.compile(r"\n"), re.compile(rf"\n{_ASKING}"))

#: Ends of sentences without closing marks after `.` `!` `?`, and without a check for abbreviations.
PLAIN_END: Final = re.compile(rf"[.!?{_STARTS}](?:(?<=[.!?])(?=\s)|{_END})")
#: The same with closing marks.
CLOSED_END: Final = re.compile(rf"[.!?…{_STARTS}](?:(?<=[.!?…]){_CLOSED}|{_END})")
#: The same as `PLAIN_END`, followed by the white space between two sentences as the last group.
GAP: Final = re.compile(rf"[.!?{_STARTS}](?:(?<=[.!?])(\s+)|(?:{_END})(\s*))")
#: The same with closing marks, for the sentence around a link.
LINK_END: Final = re.compile(rf"[.!?…{_STARTS}](?:(?<=[.!?…])[)\"'”’]{{0,2}}\s+|(?:{_END})\s*)")
GAP_ASCII: Final = re.compile(r"[.!?](\s+)")
#: Characters between which a large text must not be divided to search for `GAP`.
GAP_CHARACTERS: Final = rf"\s!?{_ENDS}{re.escape(_CLOSING)}"

#: The position after an end that needs no white space and its closing marks, for patterns that split there.
AFTER_END: Final = (
    rf"(?:(?<=[{_ENDS}])|(?<=[{_ENDS}][{_CLOSING_WIDE}])|(?<=[{_ENDS}][{_CLOSING_WIDE}]{{2}})"
    rf"|(?<={_GREEK}[{_SEMICOLONS}])(?=\s)|{_CLAUSE_END})(?![{_ENDS}!?{_CLOSING_WIDE}])"
)

_WHOLE: Final = re.compile(
    rf"[.!?…{_ENDS}][{re.escape(_CLOSING)}]{{0,1}}\Z|(?<=[{_ENDS}])[{_CLOSING_WIDE}]{{2,3}}\Z"
    rf"|{_GREEK}[{_SEMICOLONS}][{re.escape(_CLOSING)}]{{0,1}}\Z"
)
_REST: Final = re.compile(rf"[{_ENDS}{_CLOSING_WIDE}][{_ENDS}!?]{{0,8}}[{_CLOSING_WIDE}]{{0,3}}")
_CLAUSE: Final = re.compile(rf"[{_THAI_END}]{_CLAUSE_END}")
_OPEN: Final = tuple(f"?:…：︰{_QUESTIONS}")
_GREEK_QUESTION: Final = re.compile(rf"{_GREEK}[{_SEMICOLONS}]\Z")


def whole_end(text: str, at: int) -> int:
    """Return the end of a sentence that was found up to `at`. Further closing marks belong to it."""
    if at < len(text) and text[at] > "\x7f" and (found := _REST.match(text, max(0, at - 1))) is not None:
        return found.end()
    return at


def is_end(text: str, at: int) -> bool:
    """Return whether a sentence ends at `at` with a mark, and perhaps closing marks."""
    return _WHOLE.search(text, max(0, at - 4), at) is not None


def is_clause_end(text: str, at: int) -> bool:
    """Return whether a clause of Thai or Lao ends before the space at `at`."""
    return at > 0 and _CLAUSE.match(text, at - 1) is not None


def asks(text: str) -> bool:
    """Return whether a text ends with a question mark or a colon of any script. Closing marks may follow."""
    last = text.rstrip(_CLOSING)[-2:]
    return last[-1:] in _OPEN or (last[-1:] in _SEMICOLONS and _GREEK_QUESTION.match(last) is not None)


def last_match(pattern: re.Pattern[str], text: str, start: int, stop: int) -> re.Match[str] | None:
    """Return the last match of a pattern in `text[start:stop]`."""
    found = None
    for found in pattern.finditer(text, start, stop):  # noqa: B007 - the last one is wanted
        pass
    return found
