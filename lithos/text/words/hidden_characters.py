"""Detection of invisible characters and look-alike letters in a text, and the names that are shown for them.

A person who approves a change must see all of it (docs/spec/scopes.md §2). Invisible characters are
zero-width characters, characters that reverse the direction of the following text, tags, variation selectors,
unusual spaces and control characters. Look-alikes are letters of another script inside a word, for example
the Cyrillic а in pаypal.

A character that is normal in its context is quiet: a joiner in an emoji or in a script that needs it, a
selector after its picture or ideograph, or a no-break space. A quiet character may stay in the text, with its
name next to it. All functions take linear time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from heapq import merge
from itertools import chain, islice
from typing import Final, Literal
from unicodedata import category, name, normalize

from attrs import frozen

#: `hidden` characters are invisible. `mixed` letters belong to another script than the rest of their word.
Kind = Literal["hidden", "mixed"]

#: Joiners that some scripts and emoji need.
_NON_JOINER: Final = "\u200c"
_JOINER: Final = "\u200d"
_TAGS: Final = "\U000e0000-\U000e007f"
_SELECTORS: Final = "\ufe00-\ufe0f\U000e0100-\U000e01ef"
#: Spaces that are common in the texts of many languages.
_COMMON_SPACES: Final = frozenset("\u00a0\u202f\u3000")
#: Visible format characters, for example the Arabic number mark and the end-of-verse mark.
_SEEN: Final = "\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"
_PREFIXED: Final = re.compile(f"[{_SEEN}]")
#: Content of a character class: control characters except tab and line feed, format characters, unusual
#: spaces, fillers and joiners without a shape, and default-ignorable characters.
_UNSEEN: Final = (
    "\x00-\x08\x0b-\x1f\x7f-\xa0\xad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200f"
    "\u2028-\u202f\u205f-\u206f\u2800\u3000\u3164\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff"
    "\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
    f"{_SEEN}{_SELECTORS}"
)
#: A run of tags, a run of selectors, or a run of one repeated character. The CR of a line break does not
#: match.
_HIDDEN: Final = re.compile(
    f"(?P<tags>[{_TAGS}]+)|(?P<selectors>[{_SELECTORS}]+)|(?!\r\n)(?P<one>[{_UNSEEN}])(?P=one)*"
)

_CONTROLS: Final = (
    "NULL", "START OF HEADING", "START OF TEXT", "END OF TEXT", "END OF TRANSMISSION", "ENQUIRY",
    "ACKNOWLEDGE", "BELL", "BACKSPACE", "TABULATION", "LINE FEED", "LINE TABULATION", "FORM FEED",
    "CARRIAGE RETURN", "SHIFT OUT", "SHIFT IN", "DATA LINK ESCAPE", "DEVICE CONTROL ONE",
    "DEVICE CONTROL TWO", "DEVICE CONTROL THREE", "DEVICE CONTROL FOUR", "NEGATIVE ACKNOWLEDGE",
    "SYNCHRONOUS IDLE", "END OF TRANSMISSION BLOCK", "CANCEL", "END OF MEDIUM", "SUBSTITUTE", "ESCAPE",
    "FILE SEPARATOR", "GROUP SEPARATOR", "RECORD SEPARATOR", "UNIT SEPARATOR",
)  # fmt: skip
_OTHER_NAMES: Final = {
    "\x7f": "DELETE", "\x85": "NEXT LINE", "\ufeff": "ZERO WIDTH NO-BREAK SPACE (BYTE ORDER MARK)",
}  # fmt: skip

#: Scripts in which joiners distinguish spellings, as contents of character classes: first the scripts with
#: joiners between two letters, then the scripts with joiners after a mark.
_JOINED: Final = re.compile(
    "[\u0620-\u06ff\u0700-\u07ff\u0840-\u08ff\u1800-\u18af\ufb50-\ufdff\ufe70-\ufefc]"
)
_CONJOINED: Final = re.compile(
    "[\u0900-\u0dff\u0f00-\u109f\u1780-\u17ff\u1a20-\u1aaf\u1b00-\u1bff\ua8e0-\ua9ff]"
)
_MONGOLIAN: Final = re.compile("[\u1800-\u18af]")
_FREE_SELECTORS: Final = frozenset("\u180b\u180c\u180d\u180e\u180f")
#: Characters that may be pictures although they are not symbols. A keycap emoji begins with `#`, `*` or a
#: digit.
_PICTURES: Final = frozenset("#*0123456789\u203c\u2049\u2139\u3030\u303d")
_FLAG: Final = "\U0001f3f4"
_CANCEL: Final = "\U000e007f"

#: Greek letters that look like Latin letters. Other Greek letters next to Latin letters are common in
#: formulas.
_LATIN_LOOKS: Final = frozenset("ΑΒΕΖΗΙΚΜΝΟΡΤΥΧϹϺϳαγικνορυχϲ")
_LATIN: Final = (
    "A-Za-zªºÀ-ÖØ-öø-\u02af\u1d00-\u1d25\u1d6b-\u1d77\u1d79-\u1d9a\u1e00-\u1eff\u2c60-\u2c7f\ua722-\ua787"
    "\ua78b-\ua7ff\uab30-\uab5a\uff21-\uff3a\uff41-\uff5a"
)
_GREEK: Final = "\u0370-\u0373\u0376-\u037d\u037f\u0386\u0388-\u03e1\u03f0-\u03ff\u1f00-\u1fbc\u1fc2-\u1ffc"
_CYRILLIC: Final = "\u0400-\u052f\u1c80-\u1c8f\ua640-\ua69b"
_SCRIPTS: Final = (
    ("Latin", re.compile(f"[{_LATIN}]")),
    ("Cyrillic", re.compile(f"[{_CYRILLIC}]")),
    ("Greek", re.compile(f"[{_GREEK}]")),
)
_OF_TWO: Final = re.compile(f"[{_GREEK}{_CYRILLIC}]")
#: Zero-width characters. Readers see the text before and after them as one word.
_WIDTHLESS: Final = f"\xad\u034f\u061c\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff{_SELECTORS}{_TAGS}"
#: Text that readers see as one word: letters, digits, marks, and invisible characters between them. Longer
#: words match in several pieces.
_WORD: Final = re.compile(f"[\\w\u0300-\u036f{_WIDTHLESS}]{{1,1000}}")
#: Maximum number of letters of a run that are shown by name.
_NAMED: Final = 4
#: Maximum number of special characters to count.
MOST_COUNTED: Final = 10_000


@frozen
class Sign:
    """A range `text[start:end]` that must be shown by name.

    `is_quiet` is True if the range is normal in its context.

    Ranges do not overlap.
    """

    start: int
    end: int
    name: str
    kind: Kind = "hidden"
    is_quiet: bool = False


def find_signs(text: str) -> Iterator[Sign]:
    """Yield the invisible and look-alike characters of a text lazily, in order and without overlaps."""
    hidden = map(_hidden_sign, _HIDDEN.finditer(text))
    if text.isascii() or not _OF_TWO.search(text):
        return hidden
    return merge(hidden, _mixed_signs(text), key=lambda sign: sign.start)


def pieces_of(text: str) -> Iterator[tuple[str, Sign | None]]:
    """Yield the pieces of a text, each with its `Sign`. Plain text has None instead."""
    done = 0
    for sign in find_signs(text):
        if sign.is_quiet:
            continue
        if sign.start > done:
            yield text[done : sign.start], None
        yield text[sign.start : sign.end], sign
        done = sign.end
    if done < len(text):
        yield text[done:], None


def spell_out(text: str) -> str:
    """Return a text with names in brackets.

    Names replace hidden characters, and follow look-alike letters.
    """
    return "".join(
        piece if sign is None else f"{piece if sign.kind == 'mixed' else ''}[{sign.name}]"
        for piece, sign in pieces_of(text)
    )


def count_names(
    texts: Iterable[str], most: int = MOST_COUNTED
) -> tuple[dict[str, int], dict[str, int], bool]:
    """Return the counts of special characters by name, separately for non-quiet and quiet characters.

    Also return whether the counts are complete. At most `most` special characters are counted.
    """
    loud: dict[str, int] = {}
    quiet: dict[str, int] = {}
    for sign in islice(chain.from_iterable(map(find_signs, texts)), most):
        counts = quiet if sign.is_quiet else loud
        counts[sign.name] = counts.get(sign.name, 0) + 1
    return loud, quiet, sum(loud.values()) + sum(quiet.values()) < most


def name_of(character: str) -> str:
    """Return the code point and the name of one character."""
    code = ord(character)
    if code < len(_CONTROLS):
        told = _CONTROLS[code]
    elif category(character) == "Cs":
        told = "SURROGATE"
    else:
        told = _OTHER_NAMES.get(character) or name(character, "") or _nameless(character)
    return f"U+{code:04X} {told}"


def _nameless(character: str) -> str:
    return "CONTROL CHARACTER" if category(character) == "Cc" else "NOT ASSIGNED"


# -- invisible characters --------------------------------------------------------------------------


def _hidden_sign(found: re.Match[str]) -> Sign:
    start, end = found.span()
    text = found.string
    if found["tags"]:
        return Sign(start, end, _name_tags(found[0]), is_quiet=_is_flag(text, start, found[0]))
    if found["selectors"]:
        return Sign(start, end, _name_run(found[0]), is_quiet=_is_selector(text, start, found[0]))
    return Sign(start, end, _name_run(found[0]), is_quiet=_belongs(text, start, end))


def _name_run(run: str) -> str:
    """Return the name of a repeated character, with the number of repetitions.

    For a run of different characters, return the name of the first one and the number of further characters.
    """
    times = "" if len(run) == 1 else f" × {len(run):,}"
    if len(set(run)) > 1:
        times = f" and {len(run) - 1:,} more selectors"
    return name_of(run[0]) + times


def _name_tags(run: str) -> str:
    """Return the name of a run of tags, with the text that they spell.

    Programs can read the text of tags, but people cannot see it.
    """
    spelled = "".join(chr(ord(tag) - 0xE0000) for tag in run if "\U000e0020" <= tag <= "\U000e007e")
    shown = spelled[:200] + ("…" if len(spelled) > 200 else "")
    if len(run) == 1:
        return name_of(run)
    return f"{len(run):,} TAG characters from U+{ord(run[0]):04X}" + (
        f" that spell “{shown}”" if shown else ""
    )


def _belongs(text: str, start: int, end: int) -> bool:
    """Return whether a character, or a run of one character, is normal in its context."""
    character = text[start]
    if character in _COMMON_SPACES or _PREFIXED.match(character):
        return True
    if end - start > 1:
        return False
    before, after = text[start - 1 : start], text[end : end + 1]
    if character in _FREE_SELECTORS:
        return bool(_MONGOLIAN.match(before))
    if character == _JOINER and _is_picture(before, text[start - 2 : start - 1]) and _is_symbol(after):
        return True
    if character not in (_JOINER, _NON_JOINER):
        return False
    return bool(_CONJOINED.match(before) or (_JOINED.match(before) and _JOINED.match(after)))


def _is_symbol(character: str) -> bool:
    return bool(character) and category(character) == "So"


def _is_picture(character: str, before: str) -> bool:
    """Return whether an emoji ends with `character`: a symbol, or a selector or skin tone after a symbol."""
    is_behind = character == "\ufe0f" or "\U0001f3fb" <= character <= "\U0001f3ff"
    return _is_symbol(before) if is_behind else _is_symbol(character)


def _is_selector(text: str, start: int, run: str) -> bool:
    """Return whether a selector follows a character to which it can apply."""
    before = text[start - 1 : start]
    if len(run) > 1 or not before:
        return False
    if run in "\ufe0e\ufe0f" and (before in _PICTURES or category(before) in ("So", "Sm", "Sk")):
        return True
    is_ideograph = "\u3400" <= before <= "\u9fff" or "\uf900" <= before <= "\ufaff" or before >= "\U00020000"
    return is_ideograph and category(before) == "Lo"


def _is_flag(text: str, start: int, run: str) -> bool:
    """Return whether tags belong to a flag such as Scotland's. At most seven tags follow a black flag."""
    return text[start - 1 : start] == _FLAG and len(run) <= 8 and run.endswith(_CANCEL)


# -- letters of another script ---------------------------------------------------------------------


def _mixed_signs(text: str) -> Iterator[Sign]:
    """Yield the letters whose script differs from that of most letters in their word."""
    for word in _WORD.finditer(text):
        if _OF_TWO.search(word[0]):
            yield from _odd_letters(word[0], word.start())


def _odd_letters(word: str, begin: int) -> Iterator[Sign]:
    """Yield the runs of letters in a word that belong to another script.

    Greek letters are only reported if they look like Latin letters.

    Formulas such as `σ_x` contain adjacent letters of two scripts. Greek letters are therefore only checked
    within the parts between underscores.
    """
    letters = [(place, script) for place, character in enumerate(word) if (script := _script_of(character))]
    counts = {script: sum(one == script for _, one in letters) for script, _ in _SCRIPTS}
    most = max(counts.values())
    main = next(script for script, count in counts.items() if count == most)  # Latin wins ties.
    if most == len(letters):
        return
    if set(filter(counts.__getitem__, counts)) == {"Latin", "Greek"} and not _passes_for_latin(word):
        return
    run: list[int] = []
    for place, script in letters:
        if script == main:
            continue
        if run and place != run[-1] + 1:
            yield _mixed_sign(word, run, begin, main)
            run = []
        run.append(place)
    if run:
        yield _mixed_sign(word, run, begin, main)


def _passes_for_latin(word: str) -> bool:
    """Return whether a part of `word`, split at underscores, mixes Latin letters with Greek look-alikes."""
    latin = _SCRIPTS[0][1]
    return any(
        latin.search(part) and any(normalize("NFD", each)[0] in _LATIN_LOOKS for each in part)
        for part in word.split("_")
    )


def _script_of(character: str) -> str:
    """Return the script of a character if it has look-alike letters (one of three scripts), otherwise ""."""
    return next((script for script, pattern in _SCRIPTS if pattern.match(character)), "")


def _mixed_sign(word: str, run: list[int], begin: int, main: str) -> Sign:
    names = "; ".join(name_of(word[place]) for place in run[:_NAMED])
    more = f" and {len(run) - _NAMED:,} more" if len(run) > _NAMED else ""
    return Sign(begin + run[0], begin + run[-1] + 1, f"{names}{more} in a {main} word", "mixed")
