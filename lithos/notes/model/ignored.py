"""The files below the notes folder that are not notes: globs of the configuration, filters of Obsidian.

A glob is a path relative to the notes folder: `*` and `?` stay within one name, `**` spans folders, and a
glob that names a folder covers everything below it. A filter of Obsidian is the beginning of a path, or a
regular expression between slashes; both ignore case, as Obsidian does.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable
from typing import Any, Final, Self

from attrs import frozen

from lithos.text.words.analysis import normalise

#: Filters of one vault at most, and characters of one.
MOST_FILTERS: Final = 1_000
LONGEST_FILTER: Final = 500
#: Unbounded repetitions in one expression: each more multiplies its time by the length of a path.
_MOST_REPEATS: Final = 2
#: `*`, `+`, `?`, or `{n,m}` right after a closing bracket: a repeated group.
_REPEATED_GROUP: Final = re.compile(r"\)[*+{]")
_GLOB_PARTS: Final = re.compile(r"\*\*/|\*\*|\*|\?|[^*?]+")
_GLOBS: Final = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


@frozen
class Ignored:
    """Patterns of paths that are not notes; without patterns all files are notes."""

    _globs: re.Pattern[str] | None = None
    _prefixes: tuple[str, ...] = ()
    _expressions: tuple[re.Pattern[str], ...] = ()

    @classmethod
    def of(cls, globs: Iterable[str] = (), filters: Iterable[str] = (), prefixes: Iterable[str] = ()) -> Self:
        """From the globs of the configuration, filters that `check_filter` accepts, beginnings of paths."""
        translated = [_translate(glob) for glob in globs if glob.strip("/ ")]
        plain = [_folded(each) for each in prefixes if each]
        expressions: list[re.Pattern[str]] = []
        for each in filters:
            if _is_expression(each):
                expressions.append(_compile(each[1:-1]))
            else:
                plain.append(_folded(each))
        return cls(
            re.compile("|".join(translated), re.DOTALL) if translated else None,
            tuple(plain),
            tuple(expressions),
        )

    def __bool__(self) -> bool:
        return self._globs is not None or bool(self._prefixes) or bool(self._expressions)

    def covers(self, path: str) -> bool:
        """Return whether the file at this path, relative to the notes folder, is ignored."""
        return self.covers_folder(path) or any(each.search(path) for each in self._expressions)

    def covers_folder(self, path: str) -> bool:
        """Return whether nothing below a folder (`path` ends with `/`) is a note; False where that is not
        sure.
        """
        if self._globs is not None and self._globs.fullmatch(path) is not None:
            return True
        return bool(self._prefixes) and _folded(path).startswith(self._prefixes)


def _folded(path: str) -> str:
    """Return the form in which file systems without case and normal forms compare a path."""
    return path.lower() if path.isascii() else normalise("NFC", normalise("NFC", path).casefold())


def check_filter(text: str) -> str | None:
    """Return why a filter of Obsidian cannot be used; None if it can.

    An expression comes with the vault and is not trusted: one that may never finish is refused.
    """
    if not text or len(text) > LONGEST_FILTER:
        return f"it is empty or longer than {LONGEST_FILTER} characters"
    if not _is_expression(text):
        return None
    expression = text[1:-1]
    try:
        _compile(expression)
    except (re.error, RecursionError, OverflowError) as failure:
        return f"it is not a regular expression: {failure}"
    repeats = len(re.findall(r"(?<!\\)[*+]|\{\d*,\d*\}", expression))
    if _REPEATED_GROUP.search(expression) or re.search(r"\\[1-9]|\(\?P=", expression):
        return "it repeats a group or refers back to one, which may never finish"
    if repeats > _MOST_REPEATS:
        return f"it has more than {_MOST_REPEATS} repetitions, which may never finish"
    return None


def _is_expression(text: str) -> bool:
    return len(text) > 2 and text.startswith("/") and text.endswith("/")


def _compile(expression: str) -> re.Pattern[str]:
    """Raises `re.error`, `RecursionError` and `OverflowError`."""
    with warnings.catch_warnings():
        # That `[[` or `--` in a set may mean something else one day is nothing the vault's owner can act on.
        warnings.simplefilter("ignore", FutureWarning)
        return re.compile(expression, re.IGNORECASE)


def _translate(glob: str) -> str:
    """Return a regular expression for the paths that a glob names, and for everything below those."""
    parts = _GLOB_PARTS.findall(glob.strip().strip("/"))
    return f"(?:{''.join(_GLOBS.get(part) or re.escape(part) for part in parts)})(?:/.*)?"


def read_filters(document: Any) -> tuple[list[str], list[str]]:
    """The usable filters in the parsed `app.json` of Obsidian, and a complaint for each of the others."""
    given = document.get("userIgnoreFilters") if isinstance(document, dict) else None
    if given is None:
        return [], [] if isinstance(document, dict) else ["it does not contain an object"]
    if not isinstance(given, list):
        return [], ["userIgnoreFilters is not a list"]
    usable: list[str] = []
    complaints = [f"only the first {MOST_FILTERS} filters are used"] if len(given) > MOST_FILTERS else []
    for each in given[:MOST_FILTERS]:
        reason = check_filter(each) if isinstance(each, str) else "it is not text"
        if reason is None:
            usable.append(each)
        else:
            complaints.append(f"the filter {str(each)[:80]!r} is left out: {reason}")
    return usable, complaints
