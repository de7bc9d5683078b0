"""Values in the JSON of clients, which may be missing or have another type than expected."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from attrs import frozen

from lithos.kernel.values.times import EPOCH, from_microseconds, parse_time
from lithos.sessions.model.draft import SessionDraft

Record = Mapping[str, Any]

#: Names of tool arguments that contain the path of a file.
_PATHS: Final = ("file_path", "filePath", "absolute_path", "notebook_path", "path", "file", "filename")
#: Maximum number of characters of a tool's arguments that are searched for paths.
_SEARCHED: Final = 200_000
#: Lines of a patch in the form of Codex (openai/codex, `codex-rs/apply-patch`).
_PATCHED: Final = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: ([^\n]{1,1000})$", re.MULTILINE)
#: Numbers from here on are milliseconds, and from the second on microseconds since 1970.
_MILLISECONDS, _MICROSECONDS = 1e11, 1e14


@frozen
class TranscriptFormat:
    """The reader of one client's records.

    `recognises` returns whether a record has this form. `read` adds a record to a draft.
    """

    client: str
    recognises: Callable[[Record], bool]
    read: Callable[[Record, SessionDraft], None]


def text_in(record: Record, *names: str) -> str:
    """Return the first of the named values that is a text with any content, or ""."""
    return next((each for name in names if isinstance(each := record.get(name), str) and each), "")


def object_in(record: Record, name: str) -> Record:
    """Return the object with this name, or an empty one."""
    found = record.get(name)
    return found if isinstance(found, dict) else {}


def objects_in(value: object) -> Iterator[Record]:
    """Yield the objects of a list."""
    for each in value if isinstance(value, list) else ():
        if isinstance(each, dict):
            yield each


def time_in(record: Record, *names: str) -> datetime | None:
    """Return the first of the named values that is a time: a text, or a number since 1970."""
    for name in names:
        value = record.get(name)
        try:
            if isinstance(value, str) and value:
                return parse_time(value)
            if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
                return _of_number(value)
        except (ValueError, OverflowError):
            continue
    return None


def _of_number(value: float) -> datetime:
    scale = 1 if value >= _MICROSECONDS else 1_000 if value >= _MILLISECONDS else 1_000_000
    found = from_microseconds(int(value * scale))
    if found <= EPOCH:
        raise ValueError(value)
    return found


def texts_in(content: object, *kinds: str) -> str:
    """Return the text of a message: a text, or the parts of a list that have a `text`, one per paragraph.

    With `kinds`, only parts of these types count. Images and other parts are left out.
    """
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        content = [content]
    parts = [
        each if isinstance(each, str) else text_in(each, "text")
        for each in (content if isinstance(content, list) else ())
        if isinstance(each, str) or (isinstance(each, dict) and (not kinds or each.get("type") in kinds))
    ]
    return "\n\n".join(part for part in parts if part)


def files_in(arguments: object) -> list[str]:
    """Return the files that a tool's arguments name. Arguments may also be JSON, or a patch."""
    if isinstance(arguments, str):
        text = arguments[:_SEARCHED]
        try:
            arguments = json.loads(text) if text.lstrip().startswith("{") else None
        except (ValueError, RecursionError):
            arguments = None
        if arguments is None:
            return patched_files(text)
    if not isinstance(arguments, dict):
        return []
    found = [path for name in _PATHS if isinstance(path := arguments.get(name), str)]
    for value in arguments.values():
        for text in value if isinstance(value, list) else (value,):
            if isinstance(text, str) and "*** " in text[:_SEARCHED]:
                found += patched_files(text[:_SEARCHED])
    return found


def patched_files(patch: str) -> list[str]:
    """Return the files that a patch changes."""
    return [path.strip() for path in _PATCHED.findall(patch)]
