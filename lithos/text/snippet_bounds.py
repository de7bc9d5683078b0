"""Bounds of the passages that snippets show (docs/spec/vault.md §4).

A passage begins and ends at a sentence or line (in code and tables at a line), or else at a word, and never
inside a grapheme.
"""

from __future__ import annotations

import re
from typing import Final

from lithos.kernel.values.graphemes import beginning, whole
from lithos.text.excerpt_bounds import expects_more, first_block
from lithos.text.sentences import (
    CLAUSES,
    LINES,
    MARKS,
    SENTENCES,
    Edges,
    is_clause_end,
    is_end,
    last_match,
    whole_end,
)

#: Target length of a snippet in characters.
WINDOW: Final = 300
#: Number of characters before and after a snippet in which sentence boundaries are searched for.
REACH: Final = 150
#: Maximum number of characters of a reply that is shown after a question, and of several such replies
#: together.
REPLY: Final = 200
MOST_REPLIES: Final = 400
#: Length of a snippet in characters above which text before the match is left out.
LONGEST_WINDOW: Final = WINDOW + REACH
ELLIPSIS: Final = "..."
#: Fraction (1/N) of the spare length that may precede the first match.
_BEFORE: Final = 3


def cut_window(text: str, start: int, end: int) -> str:
    """Return about 300 characters around `text[start:end]`.

    The text is cut at sentences or lines if possible, else at words.
    """
    spare = WINDOW - (end - start)
    begin = start - spare // _BEFORE if spare > 0 else start
    edges = edges_at(text, start)
    begin = _beginning(text, begin, start, edges) if begin > 0 else 0
    stop = max(end, begin + WINDOW)
    if stop >= len(text):
        stop = len(text)
        if begin > stop - WINDOW:
            begin = _beginning(text, stop - WINDOW, start, edges) if stop > WINDOW else 0
    else:
        stop = ending(text, begin, end, stop, edges)
        if stop - begin > LONGEST_WINDOW:
            begin = _beginning(text, min(start, stop - LONGEST_WINDOW), start, edges, back=0)
    return ELLIPSIS * (begin > 0) + shown_part(text, begin, stop)


def shown_part(text: str, begin: int, stop: int) -> str:
    """Return a part of a text. Dots mark an end that is inside a sentence."""
    if not text.isascii():
        begin = whole(text, begin)
        stop = whole(text, stop, begin)
    shown = tidy(text[begin:stop])
    is_whole = stop == len(text) or shown[-1:] in MARKS or _ends(text, shown, stop)
    return shown if is_whole else shown + ELLIPSIS


def _ends(text: str, shown: str, stop: int) -> bool:
    return is_end(shown, len(shown)) or (not text.isascii() and is_clause_end(text, stop))


def edges_at(text: str, at: int) -> Edges:
    """Return the patterns for cutting at `at`: sentences and lines, or only lines in code and tables."""
    before = text[at - WINDOW if at > WINDOW else 0 : at]
    if "|" not in before and "    " not in before and "\t" not in before and "```" not in text:
        return SENTENCES
    line = text.rfind("\n", 0, at) + 1
    is_fenced = (text.startswith("```") + text.count("\n```", 0, at)) % 2 == 1
    return LINES if is_fenced or text.startswith(("|", "    ", "\t"), line) else SENTENCES


def _beginning(text: str, begin: int, start: int, edges: Edges, back: int = REACH) -> int:
    """Return the start of a passage that includes `start`.

    The start is the beginning of a sentence or line, or else of a word.

    The first sentence or line from `begin` on is preferred. Otherwise the last sentence or line within `back`
    characters before `begin` is used.
    """
    found = edges.edge.search(text, begin - 1 if begin > 0 else 0, start)
    if found is None:
        least = begin - back if begin > back else 0
        found = last_match(edges.edge, text, least, begin + 1)
        if found is None and back and not least:
            return 0
    found = found or _LINE_END.search(text, begin - 1 if begin > 0 else 0, start)
    if found is not None:
        return start - len(text[found.end() : start].lstrip())
    space = _SPACE.search(text, begin - 1 if begin > 0 else 0, start)
    return space.end() if space else begin


def ending(text: str, begin: int, end: int, stop: int, edges: Edges) -> int:
    """Return the end of a passage that includes the text before `end`. The passage may extend to `stop`.

    The passage ends after a sentence or line, or else after a word. If possible, it does not end with a
    question or colon. If such an end cannot be avoided, the passage includes the reply.
    """
    found = last_match(edges.settled, text, end, stop + 1)
    if found is not None:
        at = found.end()
        if text[at : at + 1] > "\x7f":
            at = whole_end(text, at)
        if "\n#" not in text[begin:at] or not expects_more(text[begin:at]):
            return at
    found = last_match(edges.edge, text, end, stop + 1) or edges.edge.search(text, stop, stop + REACH)
    if found is not None:
        return _past_question(text, begin, whole_end(text, found.end()))
    if stop + REACH >= len(text):
        return len(text)
    line = text.rfind("\n", end, stop + 1)
    if line >= 0:
        return _past_question(text, begin, line)
    space = _LAST_SPACE.match(text, end, stop)
    return space.start(1) if space else stop


def _past_question(text: str, begin: int, stop: int) -> int:
    """Return `stop`, or the end of the reply if the passage would end with a question or an announcement."""
    limit = stop + MOST_REPLIES
    while stop < limit:
        following = _WORD.search(text, stop)
        if following is None or not expects_more(text[begin:stop]):
            break
        end = first_block(text, following.start(), len(text), min(REPLY, limit - stop))
        if end <= stop:  # No word of the reply fits into the limit.
            break
        stop = end
    return stop


def cut_at_word(text: str, most: int) -> str:
    """Return the beginning of a text, cut at a word. Dots mark the cut."""
    if len(text) <= most:
        return text
    space = _LAST_SPACE.match(text, most // 2, most)
    return beginning(text, space.start(1) if space else most).rstrip() + ELLIPSIS


def tidy(text: str) -> str:
    """Return a short text without blank lines and without white space around it."""
    text = text.strip()
    return _BLANK_LINES.sub("\n", text) if "\n" in text else text


_BLANK_LINES: Final = re.compile(r"\n\s*\n")
_LINE_END: Final = re.compile(r"\n")
_WORD: Final = re.compile(r"\S")
_SPACE: Final = re.compile(r"\s")
#: The last position between words, or after a clause in scripts without spaces.
_LAST_SPACE: Final = re.compile(rf"(?s:.*)(\s|(?<=[{CLAUSES}]))")
